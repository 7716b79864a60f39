//! The thread behind `braidcastsink`: bytes of a transport stream in, a session over all paths out.

use crate::caller::{Ask, Caller};
use crate::failure::Failure;
use crate::paths::{Ends, Paths, Words};
use crate::protection::Secured;
use crate::state::State as Happening;
use crate::stats::Stats;
use crate::thread::{Bell, Shared, State, Tell, spawn};
use braidcast_core::{Instant, Machine, Rng, SocketId};
use braidcast_driver::{Driver, Link, Wake, entropy};
use braidcast_media::{Format, Framing, Input};
use braidcast_sctp::{AssociationId, CloseReason, Fingerprint, SchedulerKind};
use braidcast_session::{
    Event, Farewell, PathReport, RateLimits, RateReport, Redundancy, SecurityReport, Sender, SenderOptions, StartError,
};
use gst::ResourceError as Code;
use gstreamer as gst;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that wait for the thread before more is refused; it takes them at once, so there are more
/// only if it hardly runs.
const MAX_WAITING: usize = 4 << 20;
/// Interval at which the rate for an encoder is checked.
const RATE_EACH: Duration = Duration::from_millis(20);
/// A change of the rate by this share is told.
const RATE_CHANGE: f64 = 0.05;
/// Overhead of transport stream packets and their headers over the encoded video, as a factor.
const OVERHEAD: f64 = 1.06;
/// Interval at which statistics are brought up to date.
const REPORT_EACH: Duration = Duration::from_millis(200);
/// Time without an answer of a receiver after which a warning is due.
const NO_ANSWER: Duration = Duration::from_secs(3);
/// Longest time that the end may take without EOS before it.
const CLOSING: Duration = Duration::from_millis(500);

/// How to send.
pub(crate) struct Settings {
    pub(crate) ends: Ends,
    pub(crate) security: Secured,
    pub(crate) latency: Duration,
    pub(crate) redundancy: Redundancy,
    pub(crate) scheduler: SchedulerKind,
    pub(crate) name: String,
    pub(crate) encoder: RateLimits,
    pub(crate) give_up: Option<Duration>,
}

impl Settings {
    /// The session that they describe.
    pub(crate) fn session(&self) -> SenderOptions {
        SenderOptions::default().with(|it| {
            it.latency = self.latency;
            it.redundancy = self.redundancy;
            it.scheduler = self.scheduler;
            it.give_up = self.give_up;
            it.security = self.security.options();
            it.skip_tsns = true;
            it.name = self.name.clone();
            it.encoder = self.encoder;
            it.ask = matches!(self.ends, Ends::Listen(_));
        })
    }
}

/// What an encoder may make.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Suggestion {
    /// Of an encoder of video: without audio, tables and what the transport stream adds, bit/s.
    pub(crate) bitrate: u32,
    pub(crate) report: RateReport,
}

impl Suggestion {
    fn of(report: RateReport) -> Self {
        let rate = report.video_rate.min(report.smoothed_rate) / OVERHEAD;
        Self { bitrate: rate.clamp(1.0, f64::from(u32::MAX)) as u32, report }
    }
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Said {
    Connected,
    /// What applications may want to show.
    State(Happening),
    /// The receiver is gone, or does not answer at all; it is tried on.
    Trouble(String),
    Note(String),
    Rate(Suggestion),
    /// This receiver called, and is sent to from here on.
    Added(Caller),
    /// It is not any more.
    Removed(Caller),
    /// A receiver that called was turned away, for this reason.
    Rejected(Caller, String),
    /// It is over before its end.
    Failed(Failure),
}

/// Why bytes were not taken.
pub(crate) enum Refused {
    /// Someone wants the caller back.
    Interrupted,
    Over(Failure),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Ending {
    #[default]
    Not,
    /// After all that came.
    Orderly,
    /// After all that came, and soon.
    Soon,
}

/// What is to be different from now on.
pub(crate) enum Change {
    Latency(Duration),
    Encoder(RateLimits),
    /// The paths, those included that stay as they are.
    Links(Vec<Link>),
    /// Receivers with one of these keys are sent to, and no others.
    Peers(Vec<Fingerprint>),
}

/// Bytes of the stream as GStreamer has them.
pub(crate) type Piece = gst::MappedBuffer<gst::buffer::Readable>;

/// What goes into the thread, and what it says about that.
#[derive(Default)]
struct Passing {
    waiting: Vec<Piece>,
    bytes: usize,
    changes: Vec<Change>,
    ending: Ending,
    /// There is, or was, a receiver.
    begun: bool,
    /// No receiver is waited for.
    free: bool,
}

/// A session that sends.
pub(crate) struct Sending {
    shared: Arc<Shared<Passing>>,
    thread: Option<JoinHandle<()>>,
}

impl Sending {
    pub(crate) fn start(settings: Settings, tell: Tell<Said>, ask: Ask) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::new(Arc::new(Bell::new()?)));
        let (inside, on_panic) = ((Arc::clone(&shared), Arc::clone(&tell)), Arc::clone(&shared));
        let thread = spawn(
            "braidcastsink",
            move || Worker::open(settings, inside.0, inside.1, ask),
            Worker::run,
            move |failure| {
                on_panic.end(Err(failure.clone()));
                tell(Said::Failed(failure));
            },
        )?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes all of `pieces`; waits while too many bytes wait, and takes none if it has to come back before.
    pub(crate) fn push(&self, pieces: &mut Vec<Piece>) -> Result<(), Refused> {
        let mut state = self.shared.wait(|it| it.bytes >= MAX_WAITING);
        refused_when_over(&state)?;
        let passing = &mut state.data;
        if passing.bytes >= MAX_WAITING {
            return Err(Refused::Interrupted);
        }
        passing.bytes += pieces.iter().map(|piece| piece.len()).sum::<usize>();
        passing.waiting.append(pieces);
        drop(state);
        self.shared.bell.ring();
        Ok(())
    }

    /// Has something be different from now on.
    pub(crate) fn change(&self, change: Change) {
        self.shared.state().data.changes.push(change);
        self.shared.bell.ring();
    }

    /// Returns `true` if there is, or was, a receiver.
    pub(crate) fn has_begun(&self) -> bool {
        self.shared.state().data.begun
    }

    /// Waits until there is, or was, a receiver.
    pub(crate) fn wait_for_receiver(&self) -> Result<(), Refused> {
        let state = self.shared.wait(|it| !it.begun && !it.free);
        refused_when_over(&state)?;
        if state.data.begun || state.data.free { Ok(()) } else { Err(Refused::Interrupted) }
    }

    /// Has who waits for a receiver go on without one, if it `is_free`.
    pub(crate) fn go_on(&self, is_free: bool) {
        self.shared.state().data.free = is_free;
        self.shared.notify();
    }

    /// The stream has ended: waits until what was promised is delivered, or cannot be; `None` if
    /// `leave` says so before.
    pub(crate) fn finish(&self, leave: impl Fn() -> bool) -> Option<Result<(), Failure>> {
        self.end(Ending::Orderly);
        self.shared.wait_for_end(leave)
    }

    /// Whoever waits in a call is to come back, or may wait again.
    pub(crate) fn interrupt(&self, interrupted: bool) {
        self.shared.interrupt(interrupted);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.shared.stats()
    }

    fn end(&self, how: Ending) {
        self.shared.state().data.ending = how;
        self.shared.bell.ring();
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.end(Ending::Soon);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn refused_when_over(state: &State<Passing>) -> Result<(), Refused> {
    let ended = || {
        Failure::new(Code::Write, "the stream has ended already", "bring the element to READY and back to begin anew")
    };
    match &state.over {
        Some(over) => Err(Refused::Over(over.clone().err().unwrap_or_else(ended))),
        None => Ok(()),
    }
}

/// What the thread has.
struct Worker {
    shared: Arc<Shared<Passing>>,
    tell: Tell<Said>,
    ask: Ask,
    driver: Driver,
    paths: Paths,
    sender: Sender,
    /// What the stream is called.
    name: String,
    /// The receiver calls.
    is_called: bool,
    /// The receiver that the application lets in, until it is connected.
    admitted: Option<Caller>,
    /// The last receiver that called.
    caller: Caller,
    security: Secured,
    input: Input,
    suggested: u32,
    rate_at: Instant,
    report_at: Instant,
    /// When a word is due that nobody answers.
    say_at: Option<Instant>,
    connected: bool,
    ending: Ending,
    /// When it is ended in any case.
    end_by: Option<Instant>,
}

impl Worker {
    fn open(settings: Settings, shared: Arc<Shared<Passing>>, tell: Tell<Said>, ask: Ask) -> Result<Self, Failure> {
        let mut driver = Driver::new().map_err(|error| Failure::broken(&error))?;
        shared.bell.wake(&mut driver)?;
        let options = settings.session();
        let Settings { ends, security, name, .. } = settings;
        let is_called = options.ask;
        let properties = if is_called { "at" } else { "to and via" };
        let (paths, words) = Paths::open(ends, &mut driver, Code::OpenWrite, properties)?;
        say(&tell, words);
        let seed = entropy().map_err(|error| Failure::broken(&error))?;
        let (now, port, rng) = (driver.now(), options.local_port, Rng::from_entropy(seed));
        let sender = match is_called {
            true => Sender::listen(now, options, rng).map_err(StartError::from),
            false => Sender::new(now, options, rng, port, &paths.routes()),
        };
        let sender = sender.map_err(|error| {
            Failure::new(Code::Settings, format!("cannot begin a session: {error}"), "look at the element's properties")
        })?;
        Ok(Self {
            shared,
            tell,
            ask,
            driver,
            paths,
            sender,
            name,
            is_called,
            admitted: None,
            caller: Caller::default(),
            security,
            input: Input::new(Format::Ts, Framing::Datagrams),
            suggested: 0,
            rate_at: now,
            report_at: now,
            say_at: Some(now + NO_ANSWER),
            connected: false,
            ending: Ending::Not,
            end_by: None,
        })
    }

    fn run(mut self) {
        let how = self.work();
        let now = self.driver.now();
        self.publish(now);
        if let Err(failure) = &how
            && self.ending == Ending::Not
        {
            (self.tell)(Said::Failed(failure.clone()));
        }
        self.shared.end(how);
    }

    /// Runs until the session has ended.
    fn work(&mut self) -> Result<(), Failure> {
        loop {
            let now = self.driver.now();
            self.take_changes(now);
            self.take_input(now);
            if let Some((complete, reason)) = self.take_events() {
                // The last packets leave in one more turn.
                let _ = self.driver.drive(&mut self.sender, Some(now));
                return if complete { Ok(()) } else { Err(self.broke_off(&reason)) };
            }
            if self.end_by.is_some_and(|at| at <= now) {
                self.sender.abort(now, Farewell::SenderStopped);
                let _ = self.driver.drive(&mut self.sender, Some(now));
                return Ok(());
            }
            self.suggest(now);
            if now >= self.report_at {
                self.publish(now);
            }
            if self.say_at.is_some_and(|at| at <= now) {
                self.say_at = None;
                self.say_no_answer();
            }
            let words = self.paths.tend(&mut self.driver, &mut self.sender);
            say(&self.tell, words);
            let until = [Some(self.rate_at), self.input.poll_timeout(), self.say_at, self.end_by, self.paths.next()];
            match self.driver.drive(&mut self.sender, until.into_iter().flatten().min()) {
                Ok(Wake::Input(_)) => self.shared.bell.silence(),
                Ok(Wake::Interfaces(_)) => {
                    let words = self.paths.refresh(&mut self.driver, &mut self.sender)?;
                    say(&self.tell, words);
                }
                Ok(_) => {}
                Err(error) => return Err(Failure::broken(&error)),
            }
        }
    }

    /// Does what the element's properties say now.
    fn take_changes(&mut self, now: Instant) {
        let changes = std::mem::take(&mut self.shared.state().data.changes);
        for change in changes {
            match change {
                Change::Latency(latency) => self.sender.set_latency(latency),
                Change::Encoder(limits) => self.sender.set_rate_limits(limits),
                Change::Links(wanted) => {
                    let words = self.paths.change(&mut self.driver, &mut self.sender, wanted);
                    say(&self.tell, words);
                }
                Change::Peers(keys) => self.change_peers(now, &keys),
            }
        }
    }

    /// Only these receivers may have the stream from now on.
    fn change_peers(&mut self, now: Instant, keys: &[Fingerprint]) {
        self.security.trust(keys);
        let security = self.sender.report(now).security;
        if self.connected && !security.is_some_and(|it| is_listed(&it, keys)) {
            self.sender.dismiss(now, Farewell::NotForYou);
        }
    }

    /// Moves what came into the session.
    fn take_input(&mut self, now: Instant) {
        let (pieces, ending) = {
            let passing = &mut self.shared.state().data;
            passing.bytes = 0;
            (std::mem::take(&mut passing.waiting), passing.ending)
        };
        if !pieces.is_empty() {
            self.shared.notify();
        }
        pieces.iter().for_each(|piece| self.input.push(now, piece.as_slice()));
        if self.input.poll_timeout().is_some_and(|at| at <= now) {
            self.input.push(now, &[]);
        }
        let ends = ending != Ending::Not && self.ending == Ending::Not;
        if ends {
            self.input.finish(now);
        }
        while let Some(unit) = self.input.poll() {
            // A live session gives nothing back.
            let _none = self.sender.push(now, unit);
        }
        if ends {
            self.sender.stop(now);
        }
        if ending == Ending::Soon && self.end_by.is_none() {
            self.end_by = Some(now + CLOSING);
        }
        self.ending = ending;
    }

    /// How it ended, if it has.
    fn take_events(&mut self) -> Option<(bool, CloseReason)> {
        let mut end = None;
        while let Some(event) = self.sender.poll_event() {
            match event {
                Event::Calling { id, remotes, security } => self.called(id, &remotes, security),
                Event::Refused { why, .. } => {
                    let caller = self.admitted.take().unwrap_or_default();
                    self.reject(caller, why.to_string());
                }
                Event::Insecure(reason) => self.reject(Caller::default(), reason.to_string()),
                Event::Connected => self.begin(),
                Event::PathUp(_, route) => {
                    self.note(format!("{} is up", self.paths.name(route)));
                    (self.tell)(Said::State(Happening::of_path("path-up", &self.paths.name(route))));
                    let words = self.paths.up(&mut self.driver, &mut self.sender, route);
                    say(&self.tell, words);
                }
                Event::PathDown(_, route) => {
                    self.note(format!("{} does not answer", self.paths.name(route)));
                    (self.tell)(Said::State(Happening::of_path("path-down", &self.paths.name(route))));
                    self.paths.down(self.driver.now(), Some(route));
                }
                Event::PathRemoved(_, route) if self.paths.has_another(route) => {}
                Event::PathRemoved(_, route) => {
                    self.note(format!("{} has left", self.paths.name(route)));
                    (self.tell)(Said::State(Happening::of_path("path-removed", &self.paths.name(route))));
                }
                Event::Lost(reason) => {
                    self.set_connected(false);
                    self.paths.down(self.driver.now(), None);
                    (self.tell)(Said::State(Happening::with_reason("lost", words(&reason))));
                    let next = if self.is_called { "waiting for a receiver's call" } else { "reconnecting" };
                    (self.tell)(Said::Trouble(format!("{}; {next}", words(&reason))));
                }
                Event::InLine => {
                    (self.tell)(Said::State(Happening::new("in-line")));
                    (self.tell)(Said::Trouble("another sender is being received; waiting for its end".into()));
                }
                Event::Ended { complete, reason } => {
                    (self.tell)(Said::State(Happening::with_reason("ended", words(&reason))));
                    end = Some((complete, reason));
                }
                _ => {}
            }
        }
        if end.is_some() {
            self.set_connected(false);
        }
        end
    }

    /// A receiver calls: the application says if it gets the stream.
    fn called(&mut self, id: AssociationId, remotes: &[SocketAddr], security: Option<SecurityReport>) {
        let fingerprint = security.and_then(|it| it.peer_fingerprint);
        let caller = Caller::new(remotes, self.name.clone(), fingerprint);
        let why_not = (!(self.ask)(&caller)).then_some(Farewell::NotForYou);
        self.admitted = Some(caller);
        self.sender.admit(self.driver.now(), id, why_not);
    }

    fn reject(&self, caller: Caller, why: String) {
        (self.tell)(Said::Trouble(format!("a receiver was turned away: {why}")));
        (self.tell)(Said::State(Happening::with_reason("rejected", why.clone())));
        (self.tell)(Said::Rejected(caller, why));
    }

    /// There is a receiver.
    fn begin(&mut self) {
        if self.is_called {
            // One that was started anew at the same addresses is the same.
            self.caller = self.admitted.take().unwrap_or_else(|| self.caller.clone());
        }
        self.set_connected(true);
        self.say_at = None;
        (self.tell)(Said::Connected);
        (self.tell)(Said::State(Happening::new("connected")));
        self.remember();
    }

    fn set_connected(&mut self, connected: bool) {
        if self.is_called && connected != self.connected {
            let caller = self.caller.clone();
            (self.tell)(if connected { Said::Added(caller) } else { Said::Removed(caller) });
        }
        self.connected = connected;
        self.shared.state().data.begun |= connected;
        self.shared.notify();
    }

    fn note(&self, words: String) {
        (self.tell)(Said::Note(words));
    }

    /// Says whose key was seen for the first time.
    fn remember(&mut self) {
        let report = self.sender.report(self.driver.now());
        match self.security.connected(report.security.as_ref()) {
            Some(Ok(words)) => self.note(words),
            Some(Err(words)) => (self.tell)(Said::Trouble(words)),
            None => {}
        }
    }

    fn say_no_answer(&self) {
        if !self.connected {
            let words = if self.is_called {
                "no receiver has called yet; going on waiting (does `braidcast receive --from` or braidcastsrc with from run there, with the same key, and does UDP reach this port?)"
            } else {
                "no receiver answers yet; going on trying (does `braidcast receive` or braidcastsrc run there, with the same key, and does UDP reach it?)"
            };
            (self.tell)(Said::Trouble(words.into()));
        }
    }

    /// Reports the rate that an encoder may use, if it has changed.
    fn suggest(&mut self, now: Instant) {
        if now < self.rate_at {
            return;
        }
        self.rate_at = now + RATE_EACH;
        let Some(report) = self.sender.rate_report(now) else { return };
        let suggestion = Suggestion::of(report);
        let (old, new) = (f64::from(self.suggested), f64::from(suggestion.bitrate));
        if (new - old).abs() >= RATE_CHANGE * old.max(1.0) {
            self.suggested = suggestion.bitrate;
            (self.tell)(Said::Rate(suggestion));
        }
    }

    fn publish(&mut self, now: Instant) {
        self.report_at = now + REPORT_EACH;
        let report = self.sender.report(now);
        let name = |path: &PathReport| self.paths.name_of(SocketId(path.socket)).unwrap_or_else(|| path.remote.clone());
        let names = report.paths.iter().map(name).collect();
        self.shared.publish(Stats { connected: self.connected, report, names });
    }

    fn broke_off(&self, reason: &CloseReason) -> Failure {
        let known = self.security.hint().filter(|_| matches!(reason, CloseReason::Insecure(_)));
        let how = known.as_deref().unwrap_or_else(|| match Farewell::of(reason) {
            Some(Farewell::Busy) => "wait for its end, or start the receiver with --keep or keep-listening",
            Some(Farewell::UnknownName) => "set stream-name as one of the receiver's --accept has it",
            Some(Farewell::NotPermitted) => "the receiver's --authorized file needs this end's identity",
            _ => "the receiver's own messages say more; both ends need the same key, or none",
        });
        let connected = self.sender.report(self.driver.now()).seconds > 0.0;
        let (code, what) = match connected {
            true => (Code::Write, "the stream was not delivered to its end"),
            false => (Code::OpenWrite, "no connection"),
        };
        Failure::new(code, format!("{what}: {}", words(reason)), how)
    }
}

fn words(reason: &CloseReason) -> String {
    Farewell::of(reason).map_or_else(|| reason.to_string(), |farewell| farewell.to_string())
}

/// Reports what happened to paths.
fn say(tell: &Tell<Said>, words: Words) {
    words.notes.into_iter().for_each(|words| tell(Said::Note(words)));
    words.troubles.into_iter().for_each(|words| tell(Said::Trouble(words)));
}

/// Returns `true` if the other end has one of these keys.
fn is_listed(security: &SecurityReport, keys: &[Fingerprint]) -> bool {
    let shown = security.peer_fingerprint.as_ref();
    shown.is_some_and(|shown| keys.iter().any(|key| key.to_string() == *shown))
}
