use crate::caller::{self, Caller};
use crate::failure::Failure;
use crate::hub::{Common, Settings};
use crate::paths::Ends;
use crate::places;
use crate::properties::{self, flag, given, number, text, told};
use crate::protection::Protection;
use crate::receiving::{Next, Output, Receiving, Said};
use crate::thread::lock;
use crate::uri;
use braidcast_session::wire;
use gst::{ResourceError, glib, glib::subclass::Signal};
use gstreamer as gst;
use gstreamer_base::prelude::*;
use gstreamer_base::subclass::base_src::CreateSuccess;
use gstreamer_base::subclass::prelude::*;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static CATEGORY: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("braidcastsrc", gst::DebugColorFlags::empty(), Some("Braidcast, receiving"))
});

/// A sender's latency unless it says another one.
const LATENCY: Duration = Duration::from_millis(500);
/// Time that a lost sender is waited for, ms.
const GIVE_UP: u32 = 300_000;

/// What the properties say.
#[derive(Clone)]
struct Properties {
    listen: String,
    from: String,
    via: String,
    stream_name: String,
    keep_listening: bool,
    give_up: u32,
    protection: Protection,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            listen: "9000".into(),
            from: String::new(),
            via: String::new(),
            stream_name: String::new(),
            keep_listening: false,
            give_up: GIVE_UP,
            protection: Protection::default(),
        }
    }
}

impl Properties {
    fn settings(&self) -> Result<Settings, Failure> {
        let never = self.keep_listening || self.give_up == 0;
        if !self.stream_name.is_empty() {
            wire::check_name(&self.stream_name).map_err(|why| Failure::property("stream-name", why, "give another"))?;
        }
        let names: Vec<String> = places::parts(&self.from).into_iter().map(String::from).collect();
        let (ends, security) = match (names.is_empty(), self.via.is_empty()) {
            (true, true) => (Ends::Listen(places::binds("listen", &self.listen)?), self.protection.server()?),
            (true, false) => {
                let how = "leave it out, or say where a sender waits: from=field.example:9000";
                return Err(Failure::property("via", "it needs from", how));
            }
            (false, _) => (Ends::Dial(places::links("from", &self.from, &self.via)?), self.protection.client(&names)?),
        };
        Ok(Settings {
            ends,
            security,
            common: Common {
                protection: self.protection.clone(),
                keep: self.keep_listening,
                give_up: (!never).then(|| Duration::from_millis(self.give_up.into())),
            },
            name: self.stream_name.clone(),
        })
    }
}

/// The element's own part.
pub struct Source {
    properties: Mutex<Properties>,
    session: Mutex<Option<Arc<Receiving>>>,
    /// What latency queries were last answered, or would be.
    latency: Mutex<Duration>,
}

impl Default for Source {
    fn default() -> Self {
        Self { properties: Mutex::default(), session: Mutex::default(), latency: Mutex::new(LATENCY) }
    }
}

impl Source {
    fn session(&self) -> Option<Arc<Receiving>> {
        lock(&self.session).clone()
    }

    /// Hears what the thread says, in the thread.
    fn hear(&self, said: Said) {
        let it = self.obj();
        match said {
            Said::Note(words) => gst::info!(CATEGORY, imp = self, "{words}"),
            Said::State(state) => state.post(&*it),
            Said::Added(caller) => caller.signal(&*it, "caller-added", &caller.fingerprint),
            Said::Removed(caller) => caller.signal(&*it, "caller-removed", &caller.fingerprint),
            Said::Rejected(caller, why) => caller.signal(&*it, "caller-rejected", &why),
            Said::Trouble(words) => gst::element_imp_warning!(self, ResourceError::Read, ("{words}")),
            Said::Failed(failure) => {
                it.post_message(gst::message::Error::builder(failure.code, &failure.to_string()).src(&*it).build())
                    .ok();
            }
        }
    }

    /// The pipeline has to know how long after its capture the stream comes.
    fn follow_latency(&self, latency: Duration) {
        let old = std::mem::replace(&mut *lock(&self.latency), latency);
        if old != latency {
            let it = self.obj();
            let _ = it.post_message(gst::message::Latency::builder().src(&*it).build());
        }
    }

    /// Has a running element be different from now on.
    ///
    /// # Errors
    /// It cannot be, and nothing changes.
    fn change(&self, session: &Receiving, value: &glib::Value, spec: &glib::ParamSpec) -> Result<(), Failure> {
        properties::refused_while_running(spec).map_or(Ok(()), Err)?;
        // What can be changed is the list of keys.
        let mut it = lock(&self.properties);
        let keys = it.protection.changed_peers(&given(value).unwrap_or_default())?;
        it.protection.set(spec.name(), value);
        session.change_peers(keys, it.protection.clone());
        Ok(())
    }

    /// A buffer with the time of its capture, in the pipeline's clock.
    fn stamp(&self, output: Output) -> gst::Buffer {
        let age = output.at.elapsed() + output.latency.unwrap_or_default();
        output.latency.iter().for_each(|latency| self.follow_latency(*latency));
        let captured = self.obj().current_running_time().map(|now| {
            now.saturating_sub(gst::ClockTime::from_nseconds(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)))
        });
        let mut buffer = gst::Buffer::from_mut_slice(output.bytes);
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(captured);
            buffer.set_dts(captured);
        }
        buffer
    }
}

#[glib::object_subclass]
impl ObjectSubclass for Source {
    const NAME: &'static str = "GstBraidcastSrc";
    type Type = super::Source;
    type ParentType = gstreamer_base::PushSrc;
    type Interfaces = (gst::URIHandler,);
}

impl ObjectImpl for Source {
    fn constructed(&self) {
        self.parent_constructed();
        let it = self.obj();
        it.set_live(true);
        it.set_format(gst::Format::Time);
    }

    fn properties() -> &'static [glib::ParamSpec] {
        static ALL: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let default = Properties::default();
            let mut all = vec![
                text(
                    "listen",
                    "UDP ports or addresses to listen on: 9000, 192.0.2.1:9000, several with commas",
                    &default.listen,
                ),
                text(
                    "from",
                    "Where a sender waits, HOST:PORT; several with commas make several paths. It is called, and listen is not used",
                    "",
                ),
                text("via", "Network interfaces or local addresses to call from, with commas; each makes a path", ""),
                text(
                    "stream-name",
                    "Receive the stream of this name only; elements with different names may listen on the same ports",
                    &default.stream_name,
                ),
                flag(
                    "keep-listening",
                    "Wait for the next sender when one has ended; otherwise that is the end of the stream",
                    default.keep_listening,
                ),
                number(
                    "give-up",
                    "Time that a lost sender is waited for, ms; 0: for ever, as with keep-listening",
                    default.give_up,
                    0..=u32::MAX,
                ),
                told(
                    "latency",
                    "How long after its capture the stream comes out, as the sender has it, ms",
                    LATENCY.as_millis() as u32,
                ),
                properties::stats("receive"),
            ];
            all.extend(Protection::properties("sender"));
            all
        });
        &ALL
    }

    fn signals() -> &'static [Signal] {
        static ALL: LazyLock<Vec<Signal>> = LazyLock::new(caller::signals);
        &ALL
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if let Some(session) = self.session() {
            if let Err(failure) = self.change(&session, value, spec) {
                gst::element_imp_warning!(self, ResourceError::Settings, ("{failure}"));
            }
            return;
        }
        let mut it = lock(&self.properties);
        match spec.name() {
            "listen" => it.listen = given(value).unwrap_or_else(|| Properties::default().listen),
            "from" => it.from = given(value).unwrap_or_default(),
            "via" => it.via = given(value).unwrap_or_default(),
            "stream-name" => it.stream_name = given(value).unwrap_or_default(),
            "keep-listening" => it.keep_listening = value.get().unwrap_or_default(),
            "give-up" => it.give_up = value.get().unwrap_or(GIVE_UP),
            name => it.protection.set(name, value),
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let it = lock(&self.properties).clone();
        match spec.name() {
            "listen" => it.listen.to_value(),
            "from" => it.from.to_value(),
            "via" => it.via.to_value(),
            "stream-name" => it.stream_name.to_value(),
            "keep-listening" => it.keep_listening.to_value(),
            "give-up" => it.give_up.to_value(),
            "latency" => (lock(&self.latency).as_millis() as u32).to_value(),
            "stats" => {
                let stats = self.session().map(|session| session.stats()).unwrap_or_default();
                stats.to_structure().to_value()
            }
            name => it.protection.get(name).unwrap_or_else(|| spec.default_value().clone()),
        }
    }
}

impl GstObjectImpl for Source {}

impl ElementImpl for Source {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static IT: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Braidcast source",
                "Source/Network",
                "Receives an MPEG transport stream over several networks at once, on time",
                "Braidcast <https://github.com/braidcast/braidcast>",
            )
        });
        Some(&IT)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static ALL: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps =
                gst::Caps::builder("video/mpegts").field("systemstream", true).field("packetsize", 188i32).build();
            gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &caps).into_iter().collect()
        });
        &ALL
    }
}

impl BaseSrcImpl for Source {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let properties = lock(&self.properties).clone();
        let settings = properties.settings().map_err(|failure| failure.message())?;
        let it = self.obj().downgrade();
        let tell = move |said| {
            if let Some(it) = it.upgrade() {
                it.imp().hear(said);
            }
        };
        let it = self.obj().downgrade();
        let ask = move |caller: &Caller| it.upgrade().is_none_or(|it| caller.asks(&it));
        let session = Receiving::start(settings, Arc::new(tell), Arc::new(ask));
        let session = session.map_err(|failure| failure.message())?;
        *lock(&self.session) = Some(Arc::new(session));
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        // Its end waits for its thread, which may be telling us something: not under the lock.
        let session = lock(&self.session).take();
        drop(session);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        false
    }

    fn query(&self, query: &mut gst::QueryRef) -> bool {
        if let gst::QueryViewMut::Latency(query) = query.view_mut() {
            let latency = u64::try_from(lock(&self.latency).as_nanos()).unwrap_or(u64::MAX);
            // Buffers have the time of their capture, and come one latency after it.
            query.set(true, gst::ClockTime::from_nseconds(latency), gst::ClockTime::NONE);
            return true;
        }
        BaseSrcImplExt::parent_query(self, query)
    }

    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        self.session().iter().for_each(|session| session.interrupt(true));
        Ok(())
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        self.session().iter().for_each(|session| session.interrupt(false));
        Ok(())
    }
}

impl PushSrcImpl for Source {
    fn create(&self, _buffer: Option<&mut gst::BufferRef>) -> Result<CreateSuccess, gst::FlowError> {
        let session = self.session().ok_or(gst::FlowError::Flushing)?;
        match session.next() {
            Next::Output(output) => Ok(CreateSuccess::NewBuffer(self.stamp(output))),
            Next::Ended => Err(gst::FlowError::Eos),
            Next::Interrupted => Err(gst::FlowError::Flushing),
            Next::Failed => Err(gst::FlowError::Error),
        }
    }
}

impl URIHandlerImpl for Source {
    const URI_TYPE: gst::URIType = gst::URIType::Src;

    fn protocols() -> &'static [&'static str] {
        &[uri::SCHEME]
    }

    fn uri(&self) -> Option<String> {
        uri::get(&*self.obj(), ["listen", "from"])
    }

    fn set_uri(&self, text: &str) -> Result<(), glib::Error> {
        uri::set(&*self.obj(), ["listen", "from"], text)
    }
}
