//! The thread behind `braidcastsrc`: a session over all paths in, bytes of a transport stream out, each when it is due.

use crate::caller::{Ask, Caller};
use crate::failure::Failure;
use crate::hub::{Hub, Settings};
use crate::paths::{Ends, Paths, Words};
use crate::protection::{Protection, Secured};
use crate::state::State as Happening;
use crate::stats::Stats;
use crate::thread::{Bell, Shared, Tell, lock};
use braidcast_core::{Instant, Machine, Rng};
use braidcast_driver::{Driver, Wake, entropy};
use braidcast_sctp::{CloseReason, Fingerprint};
use braidcast_session::{
    Admission, ChannelId, Content, Event, Farewell, Offer, Permit, Receiver, ReceiverOptions, StartError,
};
use gst::ResourceError as Code;
use gstreamer as gst;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

/// Bytes that may wait for the pipeline; then they stay in the session.
const MAX_WAITING: usize = 8 << 20;
/// Bytes that are handed out at once: 64 packets.
const OUTPUT: usize = 64 * 188;
/// Interval at which statistics are brought up to date.
const REPORT_EACH: Duration = Duration::from_millis(200);
/// Time without an answer of a sender that is called after which a warning is due.
const NO_ANSWER: Duration = Duration::from_secs(3);

/// What happened.
#[derive(Debug)]
pub(crate) enum Said {
    Note(String),
    Trouble(String),
    /// What applications may want to show.
    State(Happening),
    /// This sender's stream comes out from here on.
    Added(Caller),
    /// It is over.
    Removed(Caller),
    /// A sender was turned away, for this reason.
    Rejected(Caller, String),
    /// It is over before its end.
    Failed(Failure),
}

/// Bytes that are due.
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// When they became so.
    pub(crate) at: Clock,
    /// How long after their capture that is; `None` for what has no time.
    pub(crate) latency: Option<Duration>,
}

/// What there is to hand on.
pub(crate) enum Next {
    Output(Output),
    /// The stream is over.
    Ended,
    Interrupted,
    Failed,
}

/// What comes out of the thread, and what it is told about that.
#[derive(Default)]
pub(crate) struct Passing {
    ready: VecDeque<Output>,
    bytes: usize,
    /// The thread wants to know when something is taken.
    watched: bool,
    closing: bool,
    /// The senders that may come in from now on, and the protection that says so.
    peers: Option<(Vec<Fingerprint>, Protection)>,
}

/// An element, as the thread knows it.
pub(crate) struct Member {
    /// What its stream has to be called; empty: anything.
    pub(crate) name: String,
    pub(crate) shared: Shared<Passing>,
    pub(crate) tell: Tell<Said>,
    ask: Ask,
}

impl Member {
    /// Returns `true` if the element takes nothing any more.
    pub(crate) fn has_left(&self) -> bool {
        self.shared.state().data.closing
    }
}

/// A session that receives, for one element.
pub(crate) struct Receiving {
    member: Arc<Member>,
}

impl Receiving {
    pub(crate) fn start(settings: Settings, tell: Tell<Said>, ask: Ask) -> Result<Self, Failure> {
        let name = settings.name.clone();
        let member = |bell: Arc<Bell>| Member { name, shared: Shared::new(bell), tell, ask };
        Ok(Self { member: Hub::join(settings, member)? })
    }

    /// Waits for what is due next.
    pub(crate) fn next(&self) -> Next {
        let mut state = self.member.shared.wait(|it| it.ready.is_empty());
        if state.interrupted {
            return Next::Interrupted;
        }
        let Some(output) = state.data.ready.pop_front() else {
            return if state.over == Some(Ok(())) { Next::Ended } else { Next::Failed };
        };
        state.data.bytes -= output.bytes.len();
        if state.data.watched {
            self.member.shared.bell.ring();
        }
        Next::Output(output)
    }

    /// Whoever waits is to come back, or may wait again.
    pub(crate) fn interrupt(&self, interrupted: bool) {
        self.member.shared.interrupt(interrupted);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.member.shared.stats()
    }

    /// Lets in senders with one of these keys and no others, at these ports: `protection` is what the
    /// other elements there need to have from now on.
    pub(crate) fn change_peers(&self, keys: Vec<Fingerprint>, protection: Protection) {
        let shared = &self.member.shared;
        shared.state().data.peers = Some((keys, protection));
        shared.bell.ring();
    }
}

impl Drop for Receiving {
    /// Waits until the thread has let go of it, and of the ports if it was the last.
    fn drop(&mut self) {
        let shared = &self.member.shared;
        shared.state().data.closing = true;
        shared.bell.ring();
        shared.wait_for_end(|| false);
    }
}

/// What the thread has for an element.
struct Outlet {
    member: Arc<Member>,
    channel: ChannelId,
    caller: Caller,
    connected: bool,
    /// The present sender is sent away, and nothing of it comes out.
    refused: bool,
    /// The stream is over, all of it handed out.
    ended: bool,
    reliable: bool,
    flush_asked: bool,
    /// Bytes of the present stream that were handed out.
    handed: u64,
}

impl Outlet {
    fn new(member: Arc<Member>, channel: ChannelId) -> Self {
        Self {
            member,
            channel,
            caller: Caller::default(),
            connected: false,
            refused: false,
            ended: false,
            reliable: false,
            flush_asked: false,
            handed: 0,
        }
    }

    fn tell(&self, said: Said) {
        (self.member.tell)(said);
    }

    fn note(&self, words: impl Into<String>) {
        self.tell(Said::Note(words.into()));
    }

    /// A stream has its turn, unless the application does not want it.
    fn offered(&mut self, now: Instant, receiver: &mut Receiver, offer: Offer) {
        self.gone();
        let report = receiver.report(now, self.channel);
        let fingerprint = report.security.and_then(|it| it.peer_fingerprint);
        self.caller = Caller::new(&receiver.remotes(self.channel), offer.name, fingerprint);
        self.ended = false;
        (self.reliable, self.flush_asked, self.handed) = (offer.reliable, false, 0);
        self.refused = !(self.member.ask)(&self.caller);
        if self.refused {
            receiver.refuse(now, self.channel, Farewell::NotPermitted);
            self.reject(self.caller.clone(), Farewell::NotPermitted.words().into());
            return;
        }
        self.connected = true;
        self.note("a sender is there");
        self.tell(Said::State(Happening::new("connected")));
        self.tell(Said::Added(self.caller.clone()));
        if offer.reliable {
            receiver.accept(now, self.channel, Content::default());
        }
    }

    /// A sender is not taken.
    fn reject(&self, caller: Caller, why: String) {
        self.tell(Said::Trouble(format!("a sender was turned away: {why}")));
        self.tell(Said::State(Happening::with_reason("rejected", why.clone())));
        self.tell(Said::Rejected(caller, why));
    }

    /// The sender that was there is not any more.
    fn gone(&mut self) {
        if std::mem::take(&mut self.connected) {
            let caller = std::mem::take(&mut self.caller);
            self.tell(Said::Removed(caller));
        }
    }

    fn happened(&mut self, now: Instant, receiver: &mut Receiver, paths: &Paths, event: Event) {
        match event {
            Event::Offered(offer) => self.offered(now, receiver, offer),
            Event::Ended { .. } if std::mem::take(&mut self.refused) => {}
            _ if self.refused => {}
            Event::Anew => self.handed = 0,
            Event::Flush => self.flush_asked = true,
            Event::Lost(reason) => {
                self.tell(Said::State(Happening::with_reason("lost", reason.to_string())));
                self.tell(Said::Trouble(format!("the sender is gone ({reason}); waiting for it")));
            }
            Event::Back => {
                self.tell(Said::State(Happening::new("connected")));
                self.note("the sender is back");
            }
            Event::Restarted => self.note("the sender was started anew"),
            Event::ClockJumped => self.note("the sender's clock jumped; following it"),
            Event::PathUp(_, route) => {
                self.tell(Said::State(Happening::of_path("path-up", &paths.name(route))));
                self.note(format!("path {} is up", paths.name(route)));
            }
            Event::PathDown(_, route) => {
                self.tell(Said::State(Happening::of_path("path-down", &paths.name(route))));
                self.note(format!("path {} does not answer", paths.name(route)));
            }
            Event::PathRemoved(_, route) => {
                self.tell(Said::State(Happening::of_path("path-removed", &paths.name(route))));
            }
            Event::Ended { complete, reason } => {
                self.ended = true;
                self.tell(Said::State(Happening::with_reason("ended", reason.to_string())));
                self.gone();
                if !complete {
                    self.tell(Said::Trouble(format!("the stream broke off: {reason}")));
                }
            }
            _ => {}
        }
    }

    /// Puts what is due where the pipeline takes it.
    #[allow(
        clippy::disallowed_methods,
        reason = "how long bytes wait for the pipeline is asked in its thread, which has no driver"
    )]
    fn hand_out(&mut self, now: Instant, receiver: &mut Receiver, output: &mut Vec<u8>) {
        if self.refused {
            while receiver.poll_output(now, self.channel, output) {}
            return;
        }
        let shared = &self.member.shared;
        let mut waiting = shared.state().data.bytes;
        let latency = receiver.latency(self.channel);
        let mut any = false;
        while waiting < MAX_WAITING && receiver.poll_output(now, self.channel, output) {
            let passing = &mut shared.state().data;
            passing.bytes += output.len();
            self.handed += output.len() as u64;
            waiting = passing.bytes;
            let bytes = std::mem::take(output);
            passing.ready.push_back(Output { bytes, at: Clock::now(), latency });
            any = true;
        }
        if any {
            shared.notify();
        }
        let full = waiting >= MAX_WAITING;
        receiver.pause_output(self.channel, full);
        shared.state().data.watched = full || self.reliable;
        if self.reliable {
            receiver.written(now, self.channel, self.handed.saturating_sub(waiting as u64));
        }
        if self.flush_asked && waiting == 0 {
            self.flush_asked = false;
            receiver.flushed(now, self.channel);
        }
    }

    fn publish(&self, now: Instant, receiver: &Receiver) {
        let report = receiver.report(now, self.channel);
        self.member.shared.publish(Stats { connected: self.connected, report, names: Vec::new() });
    }
}

/// What the thread has.
pub(crate) struct Worker {
    hub: Arc<Hub>,
    driver: Driver,
    paths: Paths,
    receiver: Receiver,
    security: Secured,
    outlets: Vec<Outlet>,
    keep: bool,
    report_at: Instant,
    /// When a word is due that no sender answers that is called.
    say_at: Option<Instant>,
    output: Vec<u8>,
}

impl Worker {
    pub(crate) fn open(settings: Settings, hub: Arc<Hub>, first: Arc<Member>) -> Result<Self, Failure> {
        let mut driver = Driver::new().map_err(|error| Failure::broken(&error))?;
        hub.bell.wake(&mut driver)?;
        let Settings { ends, security, common, name } = settings;
        let dials = matches!(ends, Ends::Dial(_));
        let properties = if dials { "from and via" } else { "listen" };
        let (paths, words) = Paths::open(ends, &mut driver, Code::OpenRead, properties)?;
        let keep = common.keep;
        let options = ReceiverOptions::default().with(|it| {
            it.keep = keep;
            it.hold = !keep;
            it.output_size = OUTPUT;
            it.give_up = common.give_up;
            it.security = security.options();
            match (dials, name.is_empty()) {
                (true, _) => it.name = name,
                (false, true) => {}
                (false, false) => it.admission = Admission::Named(vec![name]),
            }
        });
        let seed = entropy().map_err(|error| Failure::broken(&error))?;
        let (now, port, rng) = (driver.now(), options.local_port, Rng::from_entropy(seed));
        let receiver = match dials {
            true => Receiver::call(now, options, rng, port, &paths.routes()),
            false => Receiver::new(options, rng).map_err(StartError::from),
        };
        let receiver = receiver.map_err(|error| {
            Failure::new(Code::Settings, format!("cannot receive: {error}"), "look at the element's properties")
        })?;
        let channel = receiver.channels().map(|(id, _)| id).next().unwrap_or(ChannelId(0));
        let (outlets, say_at) = (vec![Outlet::new(first, channel)], dials.then_some(now + NO_ANSWER));
        let output = Vec::new();
        let it = Self { hub, driver, paths, receiver, security, outlets, keep, report_at: now, say_at, output };
        it.say(words);
        Ok(it)
    }

    pub(crate) fn run(mut self) {
        let how = self.work();
        let now = self.driver.now();
        self.publish(now);
        let Self { hub, driver, .. } = self;
        // The ports are free before anybody hears of the end.
        drop(driver);
        match how {
            Ok(()) => {
                let members = std::mem::take(&mut lock(&hub.members).all);
                members.iter().for_each(|member| member.shared.end(Ok(())));
            }
            Err(failure) => hub.fail(&failure),
        }
    }

    /// Runs until all streams are over or nobody wants them any more.
    fn work(&mut self) -> Result<(), Failure> {
        loop {
            let now = self.driver.now();
            self.take_in(now);
            self.take_events(now)?;
            for outlet in &mut self.outlets {
                outlet.hand_out(now, &mut self.receiver, &mut self.output);
            }
            if self.let_go(now) {
                return Ok(());
            }
            if now >= self.report_at {
                self.publish(now);
            }
            if self.say_at.is_some_and(|at| at <= now) {
                self.say_at = None;
                let words = "no sender answers yet; going on calling (does `braidcast send --at` or braidcastsink with at run there, with the same key, and does UDP reach it?)";
                self.say(Words { notes: Vec::new(), troubles: vec![words.into()] });
            }
            let words = self.paths.tend(&mut self.driver, &mut self.receiver);
            self.say(words);
            let until = [Some(self.report_at), self.say_at, self.paths.next()].into_iter().flatten().min();
            match self.driver.drive(&mut self.receiver, until) {
                Ok(Wake::Input(_)) => self.hub.bell.silence(),
                Ok(Wake::Interfaces(_)) => {
                    let words = self.paths.refresh(&mut self.driver, &mut self.receiver)?;
                    self.say(words);
                }
                Ok(_) => {}
                Err(error) => return Err(Failure::broken(&error)),
            }
        }
    }

    /// Elements that came since the last turn, and what elements have others do.
    fn take_in(&mut self, now: Instant) {
        for outlet in &self.outlets {
            let Some((keys, protection)) = outlet.member.shared.state().data.peers.take() else { continue };
            self.security.trust(&keys);
            lock(&self.hub.common).protection = protection;
            self.receiver.set_permits(now, keys.into_iter().map(|key| (key, Permit::default())).collect());
        }
        let new = std::mem::take(&mut lock(&self.hub.members).new);
        for member in new {
            let channel = self.receiver.add_name(&member.name);
            self.outlets.push(Outlet::new(member, channel));
        }
    }

    /// Lets elements go that have had their stream or want none any more. Returns `true` if none is left.
    fn let_go(&mut self, now: Instant) -> bool {
        let keep = self.keep;
        let is_over = |outlet: &Outlet| outlet.ended && !keep;
        let goes = |outlet: &Outlet| is_over(outlet) || outlet.member.has_left();
        if self.outlets.iter().all(goes) {
            let mut members = lock(&self.hub.members);
            if members.new.is_empty() {
                members.over = true;
                drop(members);
                if !self.outlets.iter().all(is_over) {
                    self.receiver.abort(now, Farewell::ReceiverStopped);
                    // The senders are told in one more turn.
                    let _ = self.driver.drive(&mut self.receiver, Some(now));
                }
                return true;
            }
        }
        for outlet in self.outlets.extract_if(.., |outlet| goes(outlet)) {
            outlet.publish(now, &self.receiver);
            self.receiver.remove_name(now, outlet.channel, Farewell::ReceiverStopped);
            lock(&self.hub.members).all.retain(|member| !Arc::ptr_eq(member, &outlet.member));
            outlet.member.shared.end(Ok(()));
        }
        false
    }

    /// # Errors
    /// The sender that is called refuses this end's key, or shows another one.
    fn take_events(&mut self, now: Instant) -> Result<(), Failure> {
        while let Some((channel, event)) = self.receiver.poll_event() {
            match &event {
                Event::Connected => self.remember(now, channel),
                Event::PathUp(_, route) => {
                    let words = self.paths.up(&mut self.driver, &mut self.receiver, *route);
                    self.say(words);
                }
                Event::PathDown(_, route) => self.paths.down(now, Some(*route)),
                Event::Lost(_) => self.paths.down(now, None),
                _ => {}
            }
            let outlet = self.outlets.iter_mut().find(|outlet| Some(outlet.channel) == channel);
            match (outlet, event) {
                (Some(outlet), event) => outlet.happened(now, &mut self.receiver, &self.paths, event),
                (None, Event::Insecure(reason)) => self.reject(Caller::default(), reason.to_string()),
                (None, Event::Refused { name, why }) => {
                    self.reject(Caller { name, ..Caller::default() }, why.to_string());
                }
                (None, Event::Ended { reason, .. }) => return Err(self.not_taken(&reason)),
                (None, Event::Lost(reason)) => {
                    self.say(Words { notes: vec![format!("{reason}; calling again")], troubles: Vec::new() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A sender is there: says whose key was seen for the first time.
    fn remember(&mut self, now: Instant, channel: Option<ChannelId>) {
        self.say_at = None;
        let report = channel.map(|channel| self.receiver.report(now, channel));
        let said = self.security.connected(report.and_then(|it| it.security).as_ref());
        let mut words = Words::default();
        match said {
            Some(Ok(it)) => words.notes.push(it),
            Some(Err(it)) => words.troubles.push(it),
            None => {}
        }
        self.say(words);
    }

    fn not_taken(&self, reason: &CloseReason) -> Failure {
        let how = self.security.hint().filter(|_| matches!(reason, CloseReason::Insecure(_)));
        let how =
            how.unwrap_or_else(|| "the sender's own messages say more; both ends need the same key, or none".into());
        Failure::new(Code::OpenRead, format!("no connection: {reason}"), how)
    }

    /// Reports to the first element what happened to paths.
    fn say(&self, words: Words) {
        let Some(outlet) = self.outlets.first() else { return };
        words.notes.into_iter().for_each(|words| outlet.note(words));
        words.troubles.into_iter().for_each(|words| outlet.tell(Said::Trouble(words)));
    }

    /// Who was turned away before it had a place concerns the element with its name, or the first.
    fn reject(&self, caller: Caller, why: String) {
        let named = self.outlets.iter().find(|outlet| !caller.name.is_empty() && outlet.member.name == caller.name);
        if let Some(outlet) = named.or_else(|| self.outlets.first()) {
            outlet.reject(caller, why);
        }
    }

    fn publish(&mut self, now: Instant) {
        self.report_at = now + REPORT_EACH;
        self.outlets.iter().for_each(|outlet| outlet.publish(now, &self.receiver));
    }
}
