//! One flow: an application here, one there, and what went between them.

use braidcast_core::{Instant, Route, Unwrapper};
use braidcast_media::voice::{Heard, JitterBuffer, Playout};
use std::time::Duration;

/// Figures "now" are those of the last one to two of these.
const WINDOW: Duration = Duration::from_secs(5);
/// Datagrams that wait for the socket of a new flow.
const MAX_PENDING: usize = 16;
/// A listener's jitter buffer waits at least so long.
const LEAST_BUFFER: Duration = Duration::from_millis(20);

/// Datagrams and the bytes in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Count {
    pub(super) datagrams: u64,
    pub(super) bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

/// What a flow had done at some time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    sent: Count,
    received: Count,
    heard: Heard,
}

/// A flow at work.
#[derive(Debug)]
pub(super) struct Flow {
    /// Which `--listen` of the opening end it belongs to.
    pub(super) port: u8,
    /// Between us and the application here; none until a new flow has its socket.
    pub(super) local: Option<Route>,
    /// Datagrams that wait for `local`.
    pub(super) pending: Vec<Vec<u8>>,
    /// What came from the application here.
    pub(super) sent: Count,
    /// Of these, what could not be handed to DCCP.
    pub(super) refused: u64,
    /// What came from the other end.
    pub(super) received: Count,
    began: Instant,
    pub(super) last_used: Instant,
    next_number: u32,
    arrivals: Option<Arrivals>,
    playout: Playout,
    marks: [Mark; 2],
}

/// Numbers and stamps of what comes, made whole, and what a listener makes of it.
#[derive(Debug)]
struct Arrivals {
    number: Unwrapper<32>,
    stamp: Unwrapper<32>,
    buffer: JitterBuffer,
}

/// How a flow does over some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) seconds: f64,
    pub(super) sent: Count,
    pub(super) received: Count,
    pub(super) heard: Heard,
}

impl Flow {
    pub(super) fn new(now: Instant, port: u8, local: Option<Route>, jitter_buffer: Duration) -> Self {
        let mark = Mark { at: now, sent: Count::default(), received: Count::default(), heard: Heard::default() };
        Self {
            port,
            local,
            pending: Vec::new(),
            sent: Count::default(),
            refused: 0,
            received: Count::default(),
            began: now,
            last_used: now,
            next_number: 0,
            arrivals: None,
            playout: Playout::Adaptive { least: LEAST_BUFFER.min(jitter_buffer), most: jitter_buffer },
            marks: [mark; 2],
        }
    }

    /// The number of the next datagram from the application here, which is counted.
    pub(super) fn number(&mut self, now: Instant, bytes: usize) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.sent.add(bytes);
        self.last_used = now;
        number
    }

    /// A datagram came from the other end.
    pub(super) fn arrive(&mut self, now: Instant, number: u32, stamp: u32, bytes: usize) {
        self.received.add(bytes);
        self.last_used = now;
        let arrivals = self.arrivals.get_or_insert_with(|| Arrivals {
            number: Unwrapper::new(u64::from(number)),
            stamp: Unwrapper::new(u64::from(stamp)),
            buffer: JitterBuffer::new(self.playout),
        });
        let sent = Instant::from_micros(arrivals.stamp.unwrap(u64::from(stamp)));
        arrivals.buffer.arrive(arrivals.number.unwrap(u64::from(number)), sent, now);
    }

    /// Keeps a datagram until there is a socket for it; the buffer back if there are too many.
    pub(super) fn keep(&mut self, datagram: Vec<u8>) -> Option<Vec<u8>> {
        if self.pending.len() >= MAX_PENDING {
            return Some(datagram);
        }
        self.pending.push(datagram);
        None
    }

    /// To be called now and then: moves the window of [`recent`](Self::recent) on.
    pub(super) fn tick(&mut self, now: Instant) {
        let mark = self.mark(now);
        if now.since(self.marks[1].at) >= WINDOW {
            self.marks = [self.marks[1], mark];
        }
    }

    fn mark(&self, now: Instant) -> Mark {
        Mark { at: now, sent: self.sent, received: self.received, heard: self.heard() }
    }

    fn heard(&self) -> Heard {
        self.arrivals.as_ref().map_or_else(Heard::default, |it| *it.buffer.heard())
    }

    /// Since the beginning.
    pub(super) fn whole(&self, now: Instant) -> Figures {
        let seconds = now.since(self.began).as_secs_f64();
        // What is in the jitter buffer still has its turn.
        let heard = self.arrivals.as_ref().map_or_else(Heard::default, |it| it.buffer.clone().finish());
        Figures { seconds, sent: self.sent, received: self.received, heard }
    }

    /// Over the last seconds.
    pub(super) fn recent(&self, now: Instant) -> Figures {
        let since = self.marks[0];
        let minus = |now: Count, then: Count| Count {
            datagrams: now.datagrams - then.datagrams,
            bytes: now.bytes - then.bytes,
        };
        Figures {
            seconds: now.since(since.at).as_secs_f64(),
            sent: minus(self.sent, since.sent),
            received: minus(self.received, since.received),
            heard: self.heard().since(&since.heard),
        }
    }
}
