//! The threads behind `braidcastsrc`, one for each set of ports: elements that take streams of different
//! names share it, so that several senders are received at one port.

use crate::failure::Failure;
use crate::paths::Ends;
use crate::places;
use crate::protection::{Protection, Secured};
use crate::receiving::{Member, Said, Worker};
use crate::thread::{Bell, lock, spawn};
use braidcast_driver::Bind;
use gst::ResourceError as Code;
use gstreamer as gst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What elements that share a thread have in common.
#[derive(Clone, PartialEq)]
pub(crate) struct Common {
    pub(crate) protection: Protection,
    /// The next sender is waited for when one has ended.
    pub(crate) keep: bool,
    /// Time that a lost sender is waited for.
    pub(crate) give_up: Option<Duration>,
}

/// How to receive.
pub(crate) struct Settings {
    pub(crate) ends: Ends,
    pub(crate) security: Secured,
    pub(crate) common: Common,
    /// What the stream has to be called that the first element takes; empty: anything, and there is no second one.
    /// An element that dials has a thread of its own in any case.
    pub(crate) name: String,
}

/// Who came and has not been taken in by the thread yet, and who is there.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) new: Vec<Arc<Member>>,
    /// All that have to be told if the thread panics.
    pub(crate) all: Vec<Arc<Member>>,
    /// The thread takes nobody any more.
    pub(crate) over: bool,
}

/// A thread that receives for all elements at the same ports.
pub(crate) struct Hub {
    binds: Vec<Bind>,
    pub(crate) common: Mutex<Common>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) members: Mutex<Members>,
}

/// Those that may be shared.
static HUBS: Mutex<Vec<Arc<Hub>>> = Mutex::new(Vec::new());

impl Hub {
    /// Has `member` be received for, by the thread that does so at these ports already or by a new one.
    ///
    /// # Errors
    /// The ports cannot be had, or another element has them for something else.
    pub(crate) fn join(settings: Settings, member: impl FnOnce(Arc<Bell>) -> Member) -> Result<Arc<Member>, Failure> {
        let mut hubs = lock(&HUBS);
        hubs.retain(|hub| !lock(&hub.members).over);
        let binds = match &settings.ends {
            Ends::Listen(binds) => binds.clone(),
            Ends::Dial(_) => Vec::new(),
        };
        let named = !settings.name.is_empty() && !binds.is_empty();
        let meets = |hub: &&Arc<Self>| named && places::meet(&hub.binds, &binds);
        if let Some(hub) = hubs.iter().find(meets) {
            let mut members = lock(&hub.members);
            if !members.over {
                hub.check(&settings, &binds, &members)?;
                let member = Arc::new(member(Arc::clone(&hub.bell)));
                members.new.push(Arc::clone(&member));
                members.all.push(Arc::clone(&member));
                hub.bell.ring();
                return Ok(member);
            }
        }
        let bell = Arc::new(Bell::new()?);
        let member = Arc::new(member(Arc::clone(&bell)));
        let members = Members { new: Vec::new(), all: vec![Arc::clone(&member)], over: false };
        let common = Mutex::new(settings.common.clone());
        let hub = Arc::new(Self { binds, common, bell, members: Mutex::new(members) });
        let (inside, on_panic, first) = (Arc::clone(&hub), Arc::clone(&hub), Arc::clone(&member));
        let thread = spawn(
            "braidcastsrc",
            move || Worker::open(settings, inside, first),
            Worker::run,
            move |failure| on_panic.fail(&failure),
        )?;
        // It ends when its last member has left, and that waits for its ports to be free.
        drop(thread);
        if named {
            hubs.push(hub);
        }
        Ok(member)
    }

    fn check(&self, settings: &Settings, binds: &[Bind], members: &Members) -> Result<(), Failure> {
        if !places::serve(&self.binds, binds) {
            let why = "another braidcastsrc has one of these ports at another address, or beside others";
            return Err(Failure::property("listen", why, "give both elements the same ports and addresses"));
        }
        if *lock(&self.common) != settings.common {
            let how = "set key, key-file, identity, peer-key, plain, keep-listening and give-up as it has them";
            return Err(Failure::property("listen", "another braidcastsrc listens there in another way", how));
        }
        if members.all.iter().any(|member| member.name == settings.name && !member.has_left()) {
            let why = format!("another braidcastsrc takes '{}' there", settings.name);
            return Err(Failure::new(Code::Busy, format!("property stream-name: {why}"), "give each its own"));
        }
        Ok(())
    }

    /// All members hear that nothing comes any more.
    pub(crate) fn fail(&self, failure: &Failure) {
        let members = {
            let mut members = lock(&self.members);
            members.over = true;
            std::mem::take(&mut members.all)
        };
        for member in members {
            member.shared.end(Err(failure.clone()));
            (member.tell)(Said::Failed(failure.clone()));
        }
    }
}
