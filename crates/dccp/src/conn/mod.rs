//! One connection: states (RFC 4340 §8), sequence numbers (§7) and what holds them together.

mod arrival;
mod close;
mod delay;
mod doubt;
mod handshake;
mod inbox;
mod moving;
mod numbers;
mod options;
mod path_size;
mod protect;
mod queue;
mod receive;
mod received;
mod reorder;
mod tell;
mod timers;
mod transmit;

use crate::ackvec::{AckWindow, ReplayWindow};
use crate::api::{Call, CloseReason, Event, Options, Report, SendError, SendOptions, State, Stats, Wanted};
use crate::ccid::{self, Ccid};
use crate::feature::{Negotiation, Place, number};
use crate::rate_limit::RateLimit;
use crate::seq::Seq;
use crate::wire::{Checksum, Header, Reset, ServiceCode};
use braidcast_core::{Instant, Rng, Route};
use core::time::Duration;
use delay::Delay;
use inbox::Inbox;
use numbers::Numbers;
use path_size::PathSize;
use queue::SendQueue;
use reorder::ReorderBuffer;
use std::collections::VecDeque;
use std::sync::Arc;
use timers::Backoff;

use handshake::PARTOPEN_RETRY;
pub(crate) use handshake::{Handshake, options_of_request};
pub(crate) use protect::{offer_in, offer_of_server};

/// Round-trip time where none is known (RFC 4340 §3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// Syncs per second at most (RFC 4340 §7.5.4).
const SYNCS_PER_SECOND: u32 = 8;

/// A state with what belongs to it. Later states compare greater, as RFC 4340 §4.3 orders them.
#[derive(Debug)]
enum Phase {
    Request { retry: Backoff, give_up: Instant },
    Respond { give_up: Instant, cookie: Vec<u8> },
    PartOpen { retry: Backoff, give_up: Instant, cookie: Vec<u8> },
    Open,
    CloseReq { retry: Backoff, give_up: Instant },
    Closing { retry: Backoff, give_up: Instant },
    Closed { time_wait: bool },
}

/// A packet that is due whatever congestion control says.
#[derive(Clone, Debug)]
enum Control {
    Request,
    Response {
        refused_data: bool,
        /// Bytes that it may have: anybody may have sent the Request.
        most: usize,
    },
    Ack,
    Sync {
        ack: Seq,
    },
    SyncAck {
        ack: Seq,
    },
    CloseReq,
    Close,
    Reset {
        reset: Reset,
        ack: Seq,
    },
    /// A Sync that asks whether packets of `size` bytes get through.
    Probe {
        size: usize,
    },
    /// With a number that is none of ours.
    ForeignReset {
        reset: Reset,
        seq: Seq,
        ack: Seq,
    },
}

/// How [`Connection::close`] is to go on once all that waits has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    No,
    /// It was called then.
    WhenSent(Instant),
}

/// Two half-connections between a client and a server, each with its own congestion control (RFC 4340 §4).
#[derive(Debug)]
pub struct Connection {
    options: Arc<Options>,
    rng: Rng,
    route: Route,
    checksum: Checksum,
    local_port: u16,
    remote_port: u16,
    service: ServiceCode,
    is_server: bool,
    phase: Phase,
    ending: Ending,
    numbers: Numbers,
    replay: ReplayWindow,
    features: Negotiation,
    acks: AckWindow,
    sender: Box<dyn ccid::Sender>,
    sending: Ccid,
    receiver: Box<dyn ccid::Receiver>,
    receiving: Ccid,
    queue: SendQueue,
    reorder: Option<ReorderBuffer>,
    inbox: Inbox,
    controls: VecDeque<Control>,
    events: VecDeque<Event>,
    sync_limit: RateLimit,
    /// The first number that we sent from OPEN.
    opened: Option<Seq>,
    /// When the first Requests or Responses left, to measure the handshake.
    handshake_sent: Vec<Instant>,
    handshake_rtt: Option<Duration>,
    /// When the newest acknowledgeable packet came, for Elapsed Time.
    newest_at: Instant,
    /// When the last valid packet came (RFC 4340 §7.5.3: "active").
    last_valid: Instant,
    /// A Timestamp to echo, and when it came.
    echo: Option<(u32, Instant)>,
    /// Packets without data sent in a row (RFC 4340 §7.7).
    ndp_run: u64,
    /// One of them was a probe, which may well get lost: that it carried no data is told in any case.
    probed: bool,
    path_size: PathSize,
    /// Congestion control lets the next data packet out then.
    pace: Option<Instant>,
    /// The Ack Ratio is not raised again before this (RFC 4341 §6.1.2).
    ratio_pause: Instant,
    slow: bool,
    wanted: Wanted,
    listening: bool,
    peer_is_slow: bool,
    peer_listens: bool,
    /// The peer lost its state and begins again.
    asked_anew: bool,
    wants_room: bool,
    delay: Delay,
    /// The present route is not proved to be the peer's.
    moving: Option<moving::Move>,
    /// The last packet held a record of the peer's that was new.
    authentic: bool,
    /// With [`Options::security`].
    protection: Option<Box<protect::Protection>>,
    stats: Stats,
    told: tell::Told,
}

impl Connection {
    /// Queues a message; it leaves when congestion control lets it. Messages may get lost, overtake
    /// each other, and never come twice.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn send(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        if matches!(self.ending, Ending::WhenSent(_))
            || matches!(self.phase, Phase::CloseReq { .. } | Phase::Closing { .. } | Phase::Closed { .. })
        {
            return Err(SendError::Closing);
        }
        if !self.peer_listens {
            return Err(SendError::NotListening);
        }
        let (len, limit, coverage) = (payload.len(), self.max_payload(), how.coverage);
        self.path_size.asked(len, limit);
        if len > limit {
            return Err(SendError::TooLong { len, limit });
        }
        if coverage > 15 || Header::covered(coverage).is_some_and(|covered| covered > len) {
            return Err(SendError::Coverage { coverage, len });
        }
        if coverage > 0 && self.protection.is_some() {
            return Err(SendError::CoverageRefused { coverage, minimum: 0 });
        }
        let minimum = self.features.value(Place::Remote, number::MIN_COVERAGE) as u8;
        if coverage > 0 && (minimum == 0 || coverage < minimum) && !matches!(self.phase, Phase::Request { .. }) {
            return Err(SendError::CoverageRefused { coverage, minimum });
        }
        self.enqueue(now, payload, how)
    }

    /// Moves the next message that came into `out`, replacing what is there; `false` if there is none.
    pub fn recv(&mut self, out: &mut Vec<u8>) -> bool {
        self.inbox.pop(out)
    }

    /// Asks the peer not to send faster, as long as this is set (RFC 4340 §11.6).
    pub const fn set_slow_receiver(&mut self, slow: bool) {
        self.slow = slow;
    }

    /// Takes no more data from now on; the peer is told (RFC 4340 §11.7, drop code 1).
    pub const fn stop_receiving(&mut self) {
        self.listening = false;
    }

    /// Says what the application wants from the rate, from now on. CCID 2 has no rate to heed it.
    pub fn set_wanted(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.sender.set_wanted(wanted);
        self.pace = None;
    }

    /// The state.
    pub const fn state(&self) -> State {
        match self.phase {
            Phase::Request { .. } => State::Request,
            Phase::Respond { .. } => State::Respond,
            Phase::PartOpen { .. } => State::PartOpen,
            Phase::Open => State::Open,
            Phase::CloseReq { .. } => State::CloseReq,
            Phase::Closing { .. } => State::Closing,
            Phase::Closed { .. } => State::Closed,
        }
    }

    /// The route it runs over.
    pub const fn route(&self) -> Route {
        self.route
    }

    /// Our DCCP port and the peer's.
    pub const fn ports(&self) -> (u16, u16) {
        (self.local_port, self.remote_port)
    }

    /// What the connection is for.
    pub const fn service(&self) -> ServiceCode {
        self.service
    }

    /// How it is doing.
    pub fn report(&self, now: Instant) -> Report {
        Report {
            state: self.state(),
            sending: self.sending,
            receiving: self.receiving,
            ccid: self.sender.report(now),
            reorder: self.reorder.as_ref().map(ReorderBuffer::report),
            rtt: self.rtt(),
            queued_messages: self.queue.len(),
            queued_bytes: self.queue.bytes(),
            sequence_window: self.features.value(Place::Local, number::SEQUENCE_WINDOW),
            peer_is_slow: self.peer_is_slow,
            stats: self.stats,
        }
    }

    /// How many more such calls fit besides `carried` ones: see [`Call::more_that_fit`].
    pub fn more_calls(&self, now: Instant, call: &Call, carried: u32) -> Option<u32> {
        call.more_that_fit(self.sending, &self.sender.report(now), carried)
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Over, with everything sent.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. }) && self.controls.is_empty()
    }

    /// Returns `true` if messages wait to be read.
    pub(crate) fn has_unread(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Returns `true` if the ports must rest.
    pub(crate) const fn needs_time_wait(&self) -> bool {
        matches!(self.phase, Phase::Closed { time_wait: true })
    }

    /// Returns `true` if copies of old packets could begin it again: the number of our Response is a function
    /// of the Request's, so that it needs no memory, and the same handshake leads to the same
    /// connection.
    pub(crate) const fn could_come_back(&self) -> bool {
        self.is_server && self.opened.is_some() && !self.asked_anew
    }

    /// Returns `true` if the handshake of a server is still to be completed.
    pub(crate) const fn is_half_open(&self) -> bool {
        matches!(self.phase, Phase::Respond { .. })
    }

    /// The round-trip time as congestion control has it, at first that of the handshake.
    pub fn rtt(&self) -> Option<Duration> {
        self.sender.srtt().or(self.handshake_rtt)
    }

    /// The round-trip time to reckon with.
    fn rtt_or_default(&self) -> Duration {
        self.rtt().unwrap_or(DEFAULT_RTT)
    }

    fn control(&mut self, control: Control) {
        /// More would not help: each of them repeats what another said.
        const MAX_CONTROLS: usize = 32;
        if self.controls.len() < MAX_CONTROLS {
            self.controls.push_back(control);
        }
    }

    /// Sends a Sync if not too many were sent already (RFC 4340 §7.5.4).
    fn sync(&mut self, now: Instant, ack: Seq) {
        if self.sync_limit.allow(now) {
            self.control(Control::Sync { ack });
        }
    }

    /// The end, told to the application.
    fn closed(&mut self, reason: CloseReason, time_wait: bool) {
        self.phase = Phase::Closed { time_wait };
        self.tell_closed();
        self.queue.clear();
        self.events.push_back(Event::Closed(reason));
    }

    /// The peer broke the protocol: it gets a Reset.
    fn violated(&mut self, reset: Reset) {
        self.controls.clear();
        let ack = self.numbers.acknowledgeable;
        self.control(Control::Reset { reset, ack });
        self.closed(CloseReason::Violation(reset), false);
    }
}
