//! One flow: an application here, one there, and what went between them.

use super::class::{Class, Guess};
use braidcast_core::{Instant, Route, Unwrapper};
use braidcast_dccp::{Priority, Why};
use braidcast_media::voice::{Heard, JitterBuffer, Playout};
use std::time::Duration;

/// Figures "now" are those of the last one to two of these.
const WINDOW: Duration = Duration::from_secs(5);
/// Datagrams that wait for the socket of a new flow.
const MAX_PENDING: usize = 16;
/// Datagrams that come so soon after the first of them are one burst: the packets of a frame.
/// Frames come 16 ms apart or more.
const BURST: Duration = Duration::from_millis(5);
/// A listener's jitter buffer waits at least so long.
const LEAST_BUFFER: Duration = Duration::from_millis(20);

/// Datagrams and the bytes in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes in them, without headers.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

/// Datagrams of the application here that the send queue abandoned, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Discards {
    /// They would have come too late.
    pub expired: u64,
    /// The queue was full, and newer or more important ones took their place.
    pub replaced: u64,
    /// The queue was full of more important ones.
    pub no_room: u64,
    /// They became too long for the path while they waited.
    pub outgrown: u64,
}

impl Discards {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.expired + self.replaced + self.no_room + self.outgrown
    }

    fn since(&self, then: &Self) -> Self {
        Self {
            expired: self.expired - then.expired,
            replaced: self.replaced - then.replaced,
            no_room: self.no_room - then.no_room,
            outgrown: self.outgrown - then.outgrown,
        }
    }
}

/// What a flow had done at some time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    sent: Count,
    discarded: Discards,
    received: Count,
    heard: Heard,
}

/// A flow at work.
#[derive(Debug)]
pub struct Flow {
    /// Which `--listen` of the opening end it belongs to.
    pub port: u8,
    /// Between us and the application here; none until a new flow has its socket.
    pub local: Option<Route>,
    /// Datagrams that wait for `local`.
    pub(super) pending: Vec<Vec<u8>>,
    class: Class,
    guess: Guess,
    /// When the burst began that the last datagram was in.
    burst: Instant,
    /// What came from the application here.
    sent: Count,
    /// Of these, what could not be handed to DCCP.
    pub refused: u64,
    /// Of these, what its queue abandoned.
    discarded: Discards,
    /// What came from the other end.
    received: Count,
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
pub struct Figures {
    /// How long that is.
    pub seconds: f64,
    /// What came from the application here.
    pub sent: Count,
    /// Of these, what the send queue abandoned.
    pub discarded: Discards,
    /// What came from the other end.
    pub received: Count,
    /// What a listener here makes of the latter.
    pub heard: Heard,
}

impl Flow {
    pub(super) fn new(now: Instant, port: u8, class: Class, local: Option<Route>, jitter_buffer: Duration) -> Self {
        let mark = Mark {
            at: now,
            sent: Count::default(),
            discarded: Discards::default(),
            received: Count::default(),
            heard: Heard::default(),
        };
        Self {
            port,
            local,
            pending: Vec::new(),
            class,
            guess: Guess::default(),
            burst: now,
            sent: Count::default(),
            refused: 0,
            discarded: Discards::default(),
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
        self.guess.note(now, bytes);
        if now < self.burst || now.since(self.burst) > BURST {
            self.burst = now;
        }
        self.last_used = now;
        number
    }

    /// How important its datagrams are now, and whether that is only a guess.
    pub fn priority(&self, now: Instant) -> (Priority, bool) {
        self.class.priority.map_or_else(|| (self.guess.priority(now), true), |priority| (priority, false))
    }

    /// How long its datagrams are of use, from application to application; `None` if the user said nothing of it.
    pub const fn lifetime(&self) -> Option<Duration> {
        self.class.lifetime
    }

    /// Until when the datagram that was numbered last is of use, if its flow's are for `usual`
    /// unless otherwise said. All of a burst have one deadline, so that queues can tell what
    /// belongs together.
    pub(super) fn deadline(&self, usual: Duration) -> Instant {
        self.burst + self.lifetime().unwrap_or(usual)
    }

    /// The send queue abandoned a datagram.
    pub(super) fn discard(&mut self, why: Option<Why>) {
        let Discards { expired, replaced, no_room, outgrown } = &mut self.discarded;
        *match why {
            Some(Why::Expired) => expired,
            Some(Why::Replaced) => replaced,
            Some(Why::NoRoom) => no_room,
            None => outgrown,
        } += 1;
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
        let Self { sent, discarded, received, .. } = *self;
        Mark { at: now, sent, discarded, received, heard: self.heard() }
    }

    fn heard(&self) -> Heard {
        self.arrivals.as_ref().map_or_else(Heard::default, |it| *it.buffer.heard())
    }

    /// Since the beginning.
    pub fn whole(&self, now: Instant) -> Figures {
        let seconds = now.since(self.began).as_secs_f64();
        // What is in the jitter buffer still has its turn.
        let heard = self.arrivals.as_ref().map_or_else(Heard::default, |it| it.buffer.clone().finish());
        let Self { sent, discarded, received, .. } = *self;
        Figures { seconds, sent, discarded, received, heard }
    }

    /// Over the last seconds.
    pub fn recent(&self, now: Instant) -> Figures {
        let since = self.marks[0];
        let minus = |now: Count, then: Count| Count {
            datagrams: now.datagrams - then.datagrams,
            bytes: now.bytes - then.bytes,
        };
        Figures {
            seconds: now.since(since.at).as_secs_f64(),
            sent: minus(self.sent, since.sent),
            discarded: self.discarded.since(&since.discarded),
            received: minus(self.received, since.received),
            heard: self.heard().since(&since.heard),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: Duration = Duration::from_millis(100);

    fn flow() -> Flow {
        Flow::new(Instant::ZERO, 0, Class::default(), None, BUFFER)
    }

    #[test]
    fn what_was_never_sent_is_lost_to_the_listener() {
        let (mut here, mut there) = (flow(), flow());
        for packet in 0..100 {
            let sent = Instant::from_millis(20 * packet);
            let number = here.number(sent, 160);
            if packet % 10 != 5 {
                // The sender's clock is an hour ahead, and its stamps wrap.
                let stamp = sent.as_micros().wrapping_add(3_600_000_000) as u32;
                there.arrive(sent + Duration::from_millis(300), number, stamp, 160);
            }
        }
        let now = Instant::from_millis(2400);
        let (sent, received) = (here.whole(now), there.whole(now));
        assert_eq!(sent.sent, Count { datagrams: 100, bytes: 16_000 });
        assert_eq!((received.received.datagrams, received.heard.played, received.heard.lost), (90, 90, 10));
        assert_eq!(received.heard.jitter(), Duration::ZERO);
    }

    #[test]
    fn recent_figures_are_those_of_the_last_window_or_two() {
        let mut flow = flow();
        for second in 0..60 {
            let now = Instant::from_millis(1000 * second);
            flow.number(now, 100);
            flow.tick(now);
        }
        let recent = flow.recent(Instant::from_millis(59_000));
        assert!((5..=10).contains(&recent.sent.datagrams), "{recent:?}");
        assert!((5.0..=10.0).contains(&recent.seconds), "{recent:?}");
    }

    #[test]
    fn the_packets_of_a_picture_expire_together() {
        let mut flow = flow();
        let expiries = [0, 1, 5, 40, 43, 46, 20].map(|ms| {
            let now = Instant::from_millis(ms);
            flow.number(now, 1200);
            flow.deadline(Duration::from_millis(200)).since(Instant::ZERO).as_millis()
        });
        assert_eq!(expiries, [200, 200, 200, 240, 240, 246, 220], "the last one by a clock that stepped back");
    }

    #[test]
    fn only_a_few_datagrams_wait_for_a_socket() {
        let mut flow = flow();
        let refused = (0..20).filter_map(|_| flow.keep(vec![0])).count();
        assert_eq!((refused, flow.pending.len()), (20 - MAX_PENDING, MAX_PENDING));
    }
}
