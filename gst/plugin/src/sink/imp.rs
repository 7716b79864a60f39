use crate::caller::{self, Caller};
use crate::failure::Failure;
use crate::paths::Ends;
use crate::places;
use crate::properties::{self, given, live_flag, live_number, live_text, number, text, told};
use crate::protection::Protection;
use crate::sending::{Change, Piece, Refused, Said, Sending, Settings, Suggestion};
use crate::thread::lock;
use crate::uri;
use braidcast_sctp::SchedulerKind;
use braidcast_session::{RateLimits, Redundancy, SenderOptions, wire};
use gst::{ResourceError, glib, glib::subclass::Signal};
use gstreamer as gst;
use gstreamer_base::prelude::*;
use gstreamer_base::subclass::prelude::*;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static CATEGORY: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("braidcastsink", gst::DebugColorFlags::empty(), Some("Braidcast, sending"))
});

/// What the properties say.
#[derive(Clone)]
struct Properties {
    to: String,
    via: String,
    at: String,
    latency: u32,
    fec: String,
    scheduler: String,
    stream_name: String,
    min_bitrate: u32,
    max_bitrate: u32,
    give_up: u32,
    wait_for_connection: bool,
    protection: Protection,
}

impl Default for Properties {
    fn default() -> Self {
        let RateLimits { least, greatest, .. } = RateLimits::default();
        let SenderOptions { latency, redundancy, scheduler, .. } = SenderOptions::default();
        Self {
            to: String::new(),
            via: String::new(),
            at: String::new(),
            latency: latency.as_millis() as u32,
            fec: redundancy.to_string(),
            scheduler: scheduler.to_string(),
            stream_name: String::new(),
            min_bitrate: least as u32,
            max_bitrate: greatest as u32,
            give_up: 0,
            wait_for_connection: true,
            protection: Protection::default(),
        }
    }
}

impl Properties {
    fn settings(&self) -> Result<Settings, Failure> {
        let encoder = self.encoder()?;
        let names = SchedulerKind::ALL.map(|(name, _)| name).join(", ");
        let scheduler = SchedulerKind::from_str(&self.scheduler);
        let scheduler = scheduler.map_err(|_| {
            Failure::property("scheduler", format!("there is no '{}'", self.scheduler), format!("there are {names}"))
        })?;
        let redundancy = Redundancy::from_str(&self.fec)
            .map_err(|why| Failure::property("fec", why, "set auto, none, or a code, for example tetrys:10,9,200"))?;
        if !self.stream_name.is_empty() {
            wire::check_name(&self.stream_name).map_err(|why| Failure::property("stream-name", why, "give another"))?;
        }
        let names: Vec<String> = places::parts(&self.to).into_iter().map(String::from).collect();
        let (ends, security) = match self.at.is_empty() {
            true => (Ends::Dial(places::links("to", &self.to, &self.via)?), self.protection.client(&names)?),
            false if self.to.is_empty() && self.via.is_empty() => {
                (Ends::Listen(places::binds("at", &self.at)?), self.protection.server()?)
            }
            false => return Err(one_of_both()),
        };
        Ok(Settings {
            ends,
            security,
            latency: Duration::from_millis(self.latency.into()),
            redundancy,
            scheduler,
            name: self.stream_name.clone(),
            encoder,
            give_up: (self.give_up > 0).then(|| Duration::from_millis(self.give_up.into())),
        })
    }

    fn encoder(&self) -> Result<RateLimits, Failure> {
        if self.min_bitrate > self.max_bitrate {
            let why = format!("{} is more than max-bitrate, {}", self.min_bitrate, self.max_bitrate);
            return Err(Failure::property("min-bitrate", why, "set both in bit/s"));
        }
        Ok(RateLimits::new(self.min_bitrate.into(), self.max_bitrate.into()))
    }

    /// What a property that was set just now changes while the pipeline plays.
    fn change(&self, name: &str) -> Result<Option<Change>, Failure> {
        Ok(match name {
            "to" | "via" if !self.at.is_empty() => return Err(one_of_both()),
            "to" | "via" => Some(Change::Links(places::links("to", &self.to, &self.via)?)),
            "latency" => Some(Change::Latency(Duration::from_millis(self.latency.into()))),
            "min-bitrate" | "max-bitrate" => Some(Change::Encoder(self.encoder()?)),
            _ => None,
        })
    }

    fn set(&mut self, name: &str, value: &glib::Value) {
        let text = || given(value);
        let number = || value.get::<u32>().unwrap_or_default();
        match name {
            "to" => self.to = text().unwrap_or_default(),
            "via" => self.via = text().unwrap_or_default(),
            "at" => self.at = text().unwrap_or_default(),
            "latency" => self.latency = number(),
            "fec" => self.fec = text().unwrap_or_else(|| Self::default().fec),
            "scheduler" => self.scheduler = text().unwrap_or_else(|| Self::default().scheduler),
            "stream-name" => self.stream_name = text().unwrap_or_default(),
            "min-bitrate" => self.min_bitrate = number(),
            "max-bitrate" => self.max_bitrate = number(),
            "give-up" => self.give_up = number(),
            "wait-for-connection" => self.wait_for_connection = value.get().unwrap_or_default(),
            name => self.protection.set(name, value),
        }
    }
}

fn one_of_both() -> Failure {
    let how = "set to, and via if you like, to call a receiver; set at alone to wait for its call";
    Failure::property("at", "to or via is set too", how)
}

/// The element's own part.
#[derive(Default)]
pub struct Sink {
    properties: Mutex<Properties>,
    session: Mutex<Option<Arc<Sending>>>,
    suggested: AtomicU32,
}

impl Sink {
    fn session(&self) -> Option<Arc<Sending>> {
        lock(&self.session).clone()
    }

    /// Hears what the thread says, in the thread.
    fn hear(&self, said: Said) {
        let it = self.obj();
        match said {
            Said::Connected => {
                gst::info!(CATEGORY, imp = self, "connected");
                // Whoever receives now has seen nothing before.
                let fields = gst::Structure::builder("GstForceKeyUnit").field("all-headers", true).field("count", 0u32);
                let _nobody = it.sink_pad().push_event(gst::event::CustomUpstream::new(fields.build()));
            }
            Said::Note(words) => gst::info!(CATEGORY, imp = self, "{words}"),
            Said::State(state) => state.post(&*it),
            Said::Trouble(words) => gst::element_imp_warning!(self, ResourceError::Write, ("{words}")),
            Said::Rate(suggestion) => self.suggest(&suggestion),
            Said::Added(caller) => caller.signal(&*it, "caller-added", &caller.fingerprint),
            Said::Removed(caller) => caller.signal(&*it, "caller-removed", &caller.fingerprint),
            Said::Rejected(caller, why) => caller.signal(&*it, "caller-rejected", &why),
            Said::Failed(failure) => {
                it.post_message(gst::message::Error::builder(failure.code, &failure.to_string()).src(&*it).build())
                    .ok();
            }
        }
    }

    /// Has a running element be different from now on.
    ///
    /// # Errors
    /// It cannot be. What depends on other properties is kept for when those fit.
    fn change(&self, session: &Sending, value: &glib::Value, spec: &glib::ParamSpec) -> Result<(), Failure> {
        properties::refused_while_running(spec).map_or(Ok(()), Err)?;
        let mut it = lock(&self.properties);
        let name = spec.name();
        let peers = match name {
            "peer-key" => Some(it.protection.changed_peers(&given(value).unwrap_or_default())?),
            _ => None,
        };
        it.set(name, value);
        if name == "wait-for-connection" {
            session.go_on(!it.wait_for_connection);
        }
        let change = peers.map(Change::Peers).map_or_else(|| it.change(name), |change| Ok(Some(change)))?;
        change.into_iter().for_each(|change| session.change(change));
        Ok(())
    }

    fn suggest(&self, suggestion: &Suggestion) {
        self.suggested.store(suggestion.bitrate, Relaxed);
        let it = self.obj();
        it.notify("suggested-bitrate");
        let report = &suggestion.report;
        let words = gst::Structure::builder("braidcast-suggested-bitrate")
            .field("suggested-bitrate", suggestion.bitrate)
            .field("next-frame-bits", report.next_frame_bits)
            .field("bitrate", report.rate as u64)
            .field("below-least", report.below_least)
            .field("waiting-ms", report.waiting_ms);
        let _ = it.post_message(gst::message::Element::builder(words.build()).src(&*it).build());
    }

    /// Holds up the beginning of a pipeline until somebody receives, unless it is live: then what
    /// cannot be sent is late soon.
    fn wait_for_receiver(&self) -> Result<(), gst::FlowError> {
        let Some(session) = self.session().filter(|session| !session.has_begun()) else { return Ok(()) };
        let begins = self.obj().current_state() != gst::State::Playing;
        if !begins || !lock(&self.properties).wait_for_connection || self.is_live() {
            return Ok(());
        }
        session.wait_for_receiver().map_err(|refused| match refused {
            Refused::Interrupted => gst::FlowError::Flushing,
            Refused::Over(_) => gst::FlowError::Error,
        })
    }

    fn is_live(&self) -> bool {
        let mut query = gst::query::Latency::new();
        self.obj().sink_pad().peer_query(&mut query) && query.result().0
    }

    /// Has all of them sent, without a copy.
    fn send(&self, buffers: impl Iterator<Item = gst::Buffer>) -> Result<gst::FlowSuccess, gst::FlowError> {
        let session = self.session().ok_or(gst::FlowError::Flushing)?;
        let mapped: Result<Vec<Piece>, _> = buffers.map(gst::Buffer::into_mapped_buffer_readable).collect();
        let mut pieces = mapped.map_err(|_| {
            gst::element_imp_error!(self, gst::CoreError::Failed, ("a buffer cannot be read"));
            gst::FlowError::Error
        })?;
        while let Err(refused) = session.push(&mut pieces) {
            self.refused(refused)?;
        }
        Ok(gst::FlowSuccess::Ok)
    }

    /// What becomes of a call that was refused; its pad's lock is held, as
    /// [`wait_preroll`](BaseSinkExt::wait_preroll) wants it.
    fn refused(&self, refused: Refused) -> Result<(), gst::FlowError> {
        match refused {
            Refused::Interrupted => self.obj().wait_preroll().map(|_| ()),
            Refused::Over(failure) => {
                // The thread has said why.
                gst::debug!(CATEGORY, imp = self, "not taken: {failure}");
                Err(gst::FlowError::Error)
            }
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for Sink {
    const NAME: &'static str = "GstBraidcastSink";
    type Type = super::Sink;
    type ParentType = gstreamer_base::BaseSink;
    type Interfaces = (gst::URIHandler,);
}

impl ObjectImpl for Sink {
    fn properties() -> &'static [glib::ParamSpec] {
        static ALL: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let default = Properties::default();
            let mut all = vec![
                live_text("to", "Where the receiver listens, HOST:PORT; several with commas make several paths"),
                live_text("via", "Network interfaces or local addresses to send from, with commas; each makes a path"),
                text(
                    "at",
                    "UDP ports or addresses where the receiver's call is waited for, in place of to: 9000, 192.0.2.1:9000, several with commas",
                    "",
                ),
                live_number(
                    "latency",
                    "End-to-end delay: each frame is played so long after its capture, ms",
                    default.latency,
                    10..=60_000,
                ),
                text("fec", "Redundancy: auto, none, or a code, for example tetrys:10,9,200", &default.fec),
                text("scheduler", "Which path the next packet takes", &default.scheduler),
                text("stream-name", "What the stream is called, for a receiver that serves several", ""),
                live_number("min-bitrate", "Least that the encoder can make, bit/s", default.min_bitrate, 1..=u32::MAX),
                live_number("max-bitrate", "Most that the encoder can make, bit/s", default.max_bitrate, 1..=u32::MAX),
                number(
                    "give-up",
                    "Time without an answer of a receiver after which the stream ends with an error, ms; 0: never",
                    default.give_up,
                    0..=u32::MAX,
                ),
                live_flag(
                    "wait-for-connection",
                    "A pipeline that is not live begins when the receiver is there",
                    default.wait_for_connection,
                ),
                told(
                    "suggested-bitrate",
                    "What a video encoder may make now, bit/s; notified when it changes by a twentieth",
                    0,
                ),
                properties::stats("send"),
            ];
            all.extend(Protection::properties("receiver"));
            all
        });
        &ALL
    }

    fn signals() -> &'static [Signal] {
        static ALL: LazyLock<Vec<Signal>> = LazyLock::new(caller::signals);
        &ALL
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        let Some(session) = self.session() else { return lock(&self.properties).set(spec.name(), value) };
        if let Err(failure) = self.change(&session, value, spec) {
            gst::element_imp_warning!(self, ResourceError::Settings, ("{failure}; nothing changes"));
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let it = lock(&self.properties).clone();
        match spec.name() {
            "to" => it.to.to_value(),
            "via" => it.via.to_value(),
            "at" => it.at.to_value(),
            "latency" => it.latency.to_value(),
            "fec" => it.fec.to_value(),
            "scheduler" => it.scheduler.to_value(),
            "stream-name" => it.stream_name.to_value(),
            "min-bitrate" => it.min_bitrate.to_value(),
            "max-bitrate" => it.max_bitrate.to_value(),
            "give-up" => it.give_up.to_value(),
            "wait-for-connection" => it.wait_for_connection.to_value(),
            "suggested-bitrate" => self.suggested.load(Relaxed).to_value(),
            "stats" => {
                let stats = self.session().map(|session| session.stats()).unwrap_or_default();
                stats.to_structure().to_value()
            }
            name => it.protection.get(name).unwrap_or_else(|| spec.default_value().clone()),
        }
    }
}

impl GstObjectImpl for Sink {}

impl ElementImpl for Sink {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static IT: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Braidcast sink",
                "Sink/Network",
                "Sends an MPEG transport stream over several networks at once, on time",
                "Braidcast <https://github.com/braidcast/braidcast>",
            )
        });
        Some(&IT)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static ALL: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst::Caps::builder("video/mpegts").field("systemstream", true).build();
            gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &caps)
                .into_iter()
                .collect()
        });
        &ALL
    }
}

impl BaseSinkImpl for Sink {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.properties).settings().map_err(|failure| failure.message())?;
        let it = self.obj().downgrade();
        let tell = move |said| {
            if let Some(it) = it.upgrade() {
                it.imp().hear(said);
            }
        };
        let it = self.obj().downgrade();
        let ask = move |caller: &Caller| it.upgrade().is_none_or(|it| caller.asks(&it));
        let session = Sending::start(settings, Arc::new(tell), Arc::new(ask));
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

    fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let size = caps.structure(0).and_then(|it| it.get::<i32>("packetsize").ok());
        match size {
            None | Some(188) => self.parent_set_caps(caps),
            Some(size) => {
                let failure = Failure::new(
                    ResourceError::Settings,
                    format!("packets of {size} bytes are not MPEG-TS as networks carry it"),
                    "let the multiplexer make packets of 188 bytes: mpegtsmux m2ts-mode=false",
                );
                self.hear(Said::Failed(failure.clone()));
                Err(gst::loggable_error!(CATEGORY, "{failure}"))
            }
        }
    }

    fn prepare(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.wait_for_receiver()?;
        self.parent_prepare(buffer)
    }

    fn prepare_list(&self, list: &gst::BufferList) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.wait_for_receiver()?;
        self.parent_prepare_list(list)
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.send(std::iter::once(buffer.clone()))
    }

    fn render_list(&self, list: &gst::BufferList) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.send(list.iter_owned())
    }

    fn event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::Eos
            && let Some(session) = self.session()
        {
            let pad = self.obj().sink_pad().clone();
            match session.finish(|| pad.pad_flags().contains(gst::PadFlags::FLUSHING)) {
                Some(Ok(())) => gst::info!(CATEGORY, imp = self, "delivered to its end"),
                Some(Err(failure)) => {
                    // It is the end of the pipeline too, and not in good order.
                    self.hear(Said::Failed(failure));
                    return false;
                }
                None => return false,
            }
        }
        self.parent_event(event)
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

impl URIHandlerImpl for Sink {
    const URI_TYPE: gst::URIType = gst::URIType::Sink;

    fn protocols() -> &'static [&'static str] {
        &[uri::SCHEME]
    }

    fn uri(&self) -> Option<String> {
        uri::get(&*self.obj(), ["to", "at"])
    }

    fn set_uri(&self, text: &str) -> Result<(), glib::Error> {
        uri::set(&*self.obj(), ["to", "at"], text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_runs_as_documented;

    #[test]
    fn a_sink_runs_as_documented() {
        let properties = Properties { to: "192.0.2.1:9000".into(), ..Properties::default() };
        let session = properties.settings().map_err(|failure| format!("{failure:?}")).unwrap().session();
        assert_runs_as_documented!("`braidcastsink`", session.transport(), session.redundancy);
    }
}
