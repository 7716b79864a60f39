//! The thread behind `braidcastsrc`: a session over all paths in, bytes of a transport stream out, each when it is due.

use crate::failure::Failure;
use crate::stats::Stats;
use crate::thread::{Shared, Tell};
use braidcast_core::{Instant, Machine, Rng};
use braidcast_driver::{Bind, Driver, Wake, entropy};
use braidcast_sctp::SecurityOptions;
use braidcast_session::{ChannelId, Content, Event, Farewell, Receiver, ReceiverOptions};
use gst::ResourceError as Code;
use gstreamer as gst;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Clock};

/// Bytes that may wait for the pipeline; then they stay in the session.
const MAX_WAITING: usize = 8 << 20;
/// Bytes that are handed out at once: 64 packets.
const OUTPUT: usize = 64 * 188;
/// Interval at which statistics are brought up to date.
const REPORT_EACH: Duration = Duration::from_millis(200);

/// How to receive.
pub(crate) struct Settings {
    pub(crate) binds: Vec<Bind>,
    pub(crate) security: Option<SecurityOptions>,
    /// The next sender is waited for when one has ended.
    pub(crate) keep: bool,
    /// Time that a lost sender is waited for.
    pub(crate) give_up: Option<Duration>,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Said {
    Note(String),
    Trouble(String),
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
struct Passing {
    ready: VecDeque<Output>,
    bytes: usize,
    /// The thread wants to know when something is taken.
    watched: bool,
    closing: bool,
}

/// A session that receives.
pub(crate) struct Receiving {
    shared: Arc<Shared<Passing>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiving {
    pub(crate) fn start(settings: Settings, tell: Tell<Said>) -> Result<Self, Failure> {
        let worker_tell = Arc::clone(&tell);
        let (shared, thread) = Shared::start(
            "braidcastsrc",
            |shared| Worker::open(settings, shared, worker_tell),
            Worker::run,
            move |failure| tell(Said::Failed(failure)),
        )?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Waits for what is due next.
    pub(crate) fn next(&self) -> Next {
        let mut state = self.shared.wait(|it| it.ready.is_empty());
        if state.interrupted {
            return Next::Interrupted;
        }
        let Some(output) = state.data.ready.pop_front() else {
            return if state.over == Some(Ok(())) { Next::Ended } else { Next::Failed };
        };
        state.data.bytes -= output.bytes.len();
        if state.data.watched {
            self.shared.bell.ring();
        }
        Next::Output(output)
    }

    /// Whoever waits is to come back, or may wait again.
    pub(crate) fn interrupt(&self, interrupted: bool) {
        self.shared.interrupt(interrupted);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.shared.state().data.closing = true;
        self.shared.bell.ring();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the thread has.
struct Worker {
    shared: Arc<Shared<Passing>>,
    tell: Tell<Said>,
    driver: Driver,
    receiver: Receiver,
    channel: ChannelId,
    keep: bool,
    connected: bool,
    reliable: bool,
    flush_asked: bool,
    /// Bytes of the present stream that were handed out.
    handed: u64,
    report_at: Instant,
    output: Vec<u8>,
}

impl Worker {
    fn open(settings: Settings, shared: Arc<Shared<Passing>>, tell: Tell<Said>) -> Result<Self, Failure> {
        let mut driver = Driver::new().map_err(|error| Failure::broken(&error))?;
        shared.bell.wake(&mut driver)?;
        for bind in &settings.binds {
            let bound = driver.bind(bind);
            bound.map_err(|error| Failure::new(Code::OpenRead, error.to_string(), "set listen to another port"))?;
        }
        let options = ReceiverOptions::default().with(|it| {
            it.keep = settings.keep;
            it.hold = !settings.keep;
            it.output_size = OUTPUT;
            it.give_up = settings.give_up;
            it.security = settings.security;
        });
        let seed = entropy().map_err(|error| Failure::broken(&error))?;
        let receiver = Receiver::new(options, Rng::from_entropy(seed)).map_err(|error| {
            Failure::new(Code::Settings, format!("cannot receive: {error}"), "look at the element's properties")
        })?;
        let channel = receiver.channels().map(|(id, _)| id).next().unwrap_or(ChannelId(0));
        let report_at = driver.now();
        Ok(Self {
            shared,
            tell,
            driver,
            receiver,
            channel,
            keep: settings.keep,
            connected: false,
            reliable: false,
            flush_asked: false,
            handed: 0,
            report_at,
            output: Vec::new(),
        })
    }

    fn run(mut self) {
        let how = self.work();
        if let Err(failure) = &how {
            (self.tell)(Said::Failed(failure.clone()));
        }
        let now = self.driver.now();
        self.publish(now);
        self.shared.end(how);
    }

    /// Runs until the stream is over or nobody wants it any more.
    fn work(&mut self) -> Result<(), Failure> {
        loop {
            let now = self.driver.now();
            let ended = self.take_events(now);
            self.hand_out(now);
            if ended && !self.keep {
                return Ok(());
            }
            if self.shared.state().data.closing {
                self.receiver.abort(now, Farewell::ReceiverStopped);
                // The senders are told in one more turn.
                let _ = self.driver.drive(&mut self.receiver, Some(now));
                return Ok(());
            }
            if now >= self.report_at {
                self.publish(now);
            }
            match self.driver.drive(&mut self.receiver, Some(self.report_at)) {
                Ok(Wake::Input(_)) => self.shared.bell.silence(),
                Ok(_) => {}
                Err(error) => return Err(Failure::broken(&error)),
            }
        }
    }

    /// Returns `true` if a stream has ended, all of it handed out.
    fn take_events(&mut self, now: Instant) -> bool {
        let mut ended = false;
        while let Some((channel, event)) = self.receiver.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    (self.tell)(Said::Note("a sender is there".into()));
                }
                Event::Offered(offer) => {
                    (self.reliable, self.flush_asked, self.handed) = (offer.reliable, false, 0);
                    if offer.reliable {
                        self.receiver.accept(now, self.channel, Content::default());
                    }
                }
                Event::Anew => self.handed = 0,
                Event::Flush => self.flush_asked = true,
                Event::Lost(reason) => {
                    (self.tell)(Said::Trouble(format!("the sender is gone ({reason}); waiting for it")));
                }
                Event::Back => (self.tell)(Said::Note("the sender is back".into())),
                Event::Restarted => (self.tell)(Said::Note("the sender was started anew".into())),
                Event::ClockJumped => (self.tell)(Said::Note("the sender's clock jumped; following it".into())),
                Event::PathUp(_, route) => (self.tell)(Said::Note(format!("path from {} is up", route.remote))),
                Event::PathDown(_, route) => {
                    (self.tell)(Said::Note(format!("path from {} does not answer", route.remote)));
                }
                Event::Insecure(reason) => (self.tell)(Said::Trouble(format!("a sender was turned away: {reason}"))),
                Event::Refused { why, .. } => (self.tell)(Said::Trouble(format!("a sender was turned away: {why}"))),
                Event::Ended { complete, reason } if channel == Some(self.channel) => {
                    self.connected = false;
                    ended = true;
                    if !complete {
                        (self.tell)(Said::Trouble(format!("the stream broke off: {reason}")));
                    }
                }
                _ => {}
            }
        }
        ended
    }

    /// Puts what is due where the pipeline takes it.
    #[allow(
        clippy::disallowed_methods,
        reason = "how long bytes wait for the pipeline is asked in its thread, which has no driver"
    )]
    fn hand_out(&mut self, now: Instant) {
        let mut waiting = self.shared.state().data.bytes;
        let latency = self.receiver.latency(self.channel);
        let mut any = false;
        while waiting < MAX_WAITING && self.receiver.poll_output(now, self.channel, &mut self.output) {
            let passing = &mut self.shared.state().data;
            passing.bytes += self.output.len();
            self.handed += self.output.len() as u64;
            waiting = passing.bytes;
            let bytes = std::mem::take(&mut self.output);
            passing.ready.push_back(Output { bytes, at: Clock::now(), latency });
            any = true;
        }
        if any {
            self.shared.notify();
        }
        let full = waiting >= MAX_WAITING;
        self.receiver.pause_output(self.channel, full);
        self.shared.state().data.watched = full || self.reliable;
        if self.reliable {
            self.receiver.written(now, self.channel, self.handed.saturating_sub(waiting as u64));
        }
        if self.flush_asked && waiting == 0 {
            self.flush_asked = false;
            self.receiver.flushed(now, self.channel);
        }
    }

    fn publish(&mut self, now: Instant) {
        self.report_at = now + REPORT_EACH;
        let report = self.receiver.report(now, self.channel);
        self.shared.publish(Stats { connected: self.connected, report, names: Vec::new() });
    }
}
