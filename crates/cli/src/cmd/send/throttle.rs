use braidcast_core::Instant;
use braidcast_media::PcrClock;
use braidcast_media::ts::{PACKET, Packet, PacketSync};
use std::collections::VecDeque;
use std::time::Duration;

/// How much earlier than due by its clock a stream may go: it bridges the irregularities of an encoder.
const AHEAD: Duration = Duration::from_millis(200);
/// As much of a stream is read before it is due, so that a burst leaves its writer at once.
const MOST: Duration = Duration::from_secs(8);
/// The same in bytes.
const MOST_BYTES: usize = 32 << 20;
/// How far a stream may have fallen behind its clock and still catch up at once: what an encoder made while this
/// process stood still is not too early.
const BEHIND: Duration = Duration::from_secs(10);
/// What is always there too early in this time, or in twice the longest pause of late, need not be.
const WINDOW: Duration = Duration::from_secs(2);
/// Then it goes faster than its clock by this share, until it is not.
const FASTER: f64 = 0.3;
/// A pause by which a source in bursts is known.
const PAUSE: Duration = Duration::from_millis(500);
/// After as many of them, each burst begins when it comes.
const BURSTS: u8 = 2;
/// Bytes that share one time.
const PIECE: usize = 7 * PACKET;

/// Spreads a transport stream that comes through a pipe over the time that its clock says.
///
/// A camera or an encoder in real time never notices. A program that writes as fast as it can (`cat`, or ffmpeg
/// without `-re`) is held back to the speed of the stream, where it would otherwise be sent in one burst and be lost;
/// and what comes in bursts, as segments are fetched, goes evenly. A clock that is wrong by a constant factor is
/// followed: of what always waits, less and less waits.
///
/// Memory: 8 s of the stream, 32 MiB at most.
pub(super) struct Throttle {
    sync: PacketSync,
    clock: PcrClock,
    clock_pid: Option<u16>,
    /// When what follows the last clock reference is due.
    due: Option<Instant>,
    /// Time by which all of it comes too early.
    owed: Duration,
    /// The least time that anything waited in this window, and its end.
    least: Duration,
    window: Option<Instant>,
    last: Option<Instant>,
    /// The longest pause of late.
    pause: Duration,
    bursts: u8,
    /// Reading had to stop in this window.
    full: bool,
    queue: VecDeque<(Instant, Vec<u8>)>,
    queued: usize,
}

impl Throttle {
    /// For packets each of which begins `packet_bytes` after the one before.
    pub(super) fn new(packet_bytes: usize) -> Self {
        Self {
            sync: PacketSync::of_size(packet_bytes),
            clock: PcrClock::new(),
            clock_pid: None,
            due: None,
            owed: Duration::ZERO,
            least: Duration::MAX,
            window: None,
            last: None,
            pause: Duration::ZERO,
            bursts: 0,
            full: false,
            queue: VecDeque::new(),
            queued: 0,
        }
    }

    /// A throttle of a stream whose first `bytes` came at `now`, and went.
    pub(super) fn behind(now: Instant, bytes: &[u8], packet_bytes: usize) -> Self {
        let mut new = Self::new(packet_bytes);
        new.arrive(now);
        new.read_clock(now, bytes);
        new
    }

    /// Takes `bytes`, which came at `now`, and hands on what of all may go.
    pub(super) fn take(&mut self, now: Instant, bytes: &[u8], mut hand_on: impl FnMut(&[u8])) {
        self.arrive(now);
        for piece in bytes.chunks(PIECE) {
            let at = self.due.map_or(now, |due| due - AHEAD);
            self.read_clock(now, piece);
            if self.queue.is_empty() && at <= now {
                hand_on(piece);
            } else {
                self.queued += piece.len();
                self.queue.push_back((at, piece.to_vec()));
            }
        }
        self.release(now, hand_on);
    }

    /// Hands on what may go by `now`.
    pub(super) fn release(&mut self, now: Instant, mut hand_on: impl FnMut(&[u8])) {
        while self.next().is_some_and(|at| at <= now)
            && let Some((_, piece)) = self.queue.pop_front()
        {
            self.queued -= piece.len();
            hand_on(&piece);
        }
    }

    /// When there is something to [`release`](Self::release).
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.front().map(|(at, _)| *at)
    }

    /// Drops what waits.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.queued = 0;
    }

    /// Returns the time until which nothing more is to be read; in the past if there is no need.
    pub(super) fn hold_until(&mut self, now: Instant) -> Option<Instant> {
        let until = if self.queued >= MOST_BYTES { self.next() } else { self.due.map(|due| due - MOST) };
        self.full |= until.is_some_and(|until| until > now);
        until
    }

    /// Something comes: what waits already is not needed to bridge the time until then.
    fn arrive(&mut self, now: Instant) {
        let before = self.last.replace(now).map_or(Duration::ZERO, |last| now.since(last));
        self.pause = self.pause.mul_f64(0.99).max(before);
        let Some(due) = &mut self.due else { return };
        if before >= PAUSE {
            self.bursts = self.bursts.saturating_add(1);
            if self.bursts > BURSTS && *due < now {
                *due = now;
            }
        }
        self.least = self.least.min(due.since(now));
        let window = WINDOW.max(2 * self.pause);
        if now >= *self.window.get_or_insert(now + window) {
            // What was written as fast as it could be says nothing of the clock.
            self.owed = if self.full { Duration::ZERO } else { self.least };
            (self.least, self.full, self.window) = (Duration::MAX, false, Some(now + window));
        }
    }

    fn read_clock(&mut self, now: Instant, bytes: &[u8]) {
        self.sync.push(bytes);
        while let Some(bytes) = self.sync.next(false) {
            let packet = Packet::new(bytes);
            let Some(pcr) = packet.pcr() else { continue };
            if *self.clock_pid.get_or_insert(packet.pid()) != packet.pid() {
                continue;
            }
            let step = self.clock.step(pcr, packet.discontinuity()).unwrap_or_default();
            let less = self.owed.min(step.mul_f64(FASTER));
            self.owed -= less;
            // A stream that fell far behind, by a pause or a slow clock, counts anew.
            self.due = Some(self.due.map_or(now, |at| (at + (step - less)).max(now - BEHIND)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each with a clock reference, `step` apart from `start`.
    fn stream(start: Duration, step: Duration, packets: u32) -> Vec<u8> {
        let packet = |n: u32| {
            let base = (start + step * n).as_micros() as u64 * 9 / 100;
            let mut packet = [0xff; PACKET];
            packet[..6].copy_from_slice(&[0x47, 1, 0, 0x20, 183, 0x10]);
            packet[6..10].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
            packet[10..12].copy_from_slice(&[((base & 1) << 7) as u8 | 0x7e, 0]);
            packet
        };
        (0..packets).flat_map(packet).collect()
    }

    /// A source that writes a packet for each 10 ms of its clock; `comes` says when the packet of a time comes. Returns
    /// for each packet when it comes and goes, in ms.
    fn through(packets: u64, comes: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let (mut throttle, mut gone) = (Throttle::new(PACKET), Vec::new());
        let (step, mut next) = (Duration::from_millis(10), 0);
        for ms in 0..packets * 30 {
            let now = Instant::from_millis(60_000 + ms);
            while next < packets && comes(next * 10) <= ms && throttle.hold_until(now).is_none_or(|until| until <= now)
            {
                let packet = stream(step * next as u32, step, 1);
                throttle.take(now, &packet, |piece| gone.extend(vec![ms; piece.len() / PACKET]));
                next += 1;
            }
            throttle.release(now, |piece| gone.extend(vec![ms; piece.len() / PACKET]));
        }
        assert_eq!(gone.len() as u64, packets, "all goes");
        (0..packets).map(|n| comes(n * 10)).zip(gone).collect()
    }

    #[test]
    fn a_stream_that_comes_at_once_is_held_back_to_its_own_clock() {
        let gone = through(2000, |_| 0);
        for (n, (_, at)) in gone.iter().enumerate() {
            let by_clock = n as u64 * 10;
            assert!((by_clock.saturating_sub(220)..by_clock + 20).contains(at), "{n}: {at}");
        }
    }

    #[test]
    fn a_stream_in_real_time_is_never_held_back() {
        // Each tenth frame takes 60 ms longer to make.
        for (comes, goes) in through(2000, |at| at + if at % 400 < 40 { 60 } else { 0 }) {
            assert!(goes <= comes + 60, "{comes}: {goes}");
        }
    }

    #[test]
    fn what_went_before_it_was_known_counts_but_goes_no_second_time() {
        let (now, step) = (Instant::from_millis(60_000), Duration::from_millis(10));
        // The last packet is cut: its rest comes later.
        let mut bytes = stream(Duration::ZERO, step, 100);
        let rest = bytes.split_off(bytes.len() - 100);
        let mut throttle = Throttle::behind(now, &bytes, PACKET);
        assert_eq!(throttle.next(), None);
        let mut gone = Vec::new();
        throttle.take(now, &rest, |piece| gone.extend_from_slice(piece));
        assert_eq!((gone.len(), throttle.next()), (0, Some(now + step * 98 - AHEAD)));
        throttle.release(now + step * 98 - AHEAD, |piece| gone.extend_from_slice(piece));
        assert_eq!(gone, rest);
    }

    #[test]
    fn what_comes_in_bursts_goes_evenly() {
        for seconds in [2, 6] {
            let burst = seconds * 1000;
            let gone = through(3000, |at| (at / burst + 1) * burst);
            let most = gone.windows(60).filter(|window| window[59].1 - window[0].1 < 300).count();
            assert!(most * 20 < gone.len(), "{most} of {} windows of 600 ms go in less than half of it", gone.len());
        }
    }

    #[test]
    fn a_clock_that_is_wrong_by_a_factor_is_followed_with_a_fixed_delay() {
        let gone = through(6000, |at| at * 5 / 6);
        let waits =
            |range: core::ops::Range<usize>| gone[range].iter().map(|(comes, goes)| goes - comes).max().unwrap();
        let (early, late) = (waits(1000..3000), waits(4000..6000));
        assert!(late <= early.max(1500) && late < 1600, "{early} ms, then {late} ms");
    }

    #[test]
    fn what_was_made_while_we_stood_still_goes_at_once_and_what_follows_as_it_comes() {
        // From 4 s on nothing comes for 3 s.
        for (comes, goes) in through(2000, |at| if (4000..7000).contains(&at) { 7000 } else { at }) {
            assert!(goes <= comes + 20, "{comes}: {goes}");
        }
    }
}
