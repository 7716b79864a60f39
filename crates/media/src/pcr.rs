use crate::ts::{PACKET, Packet, PacketSync, Pcr};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// The clock wraps here: 2³³ · 300 ticks of 27 MHz, 26.5 hours.
const WRAP: u64 = (1 << 33) * 300;
/// Two clock references further apart than this are not of one timeline (ISO/IEC 13818-1 §2.7.2 asks for one
/// every 100 ms).
const MAX_STEP: Duration = Duration::from_secs(5);
/// Packets held back while the next clock reference is awaited.
const MAX_AHEAD: usize = 16_384;
/// Packets handed out at once, if they are due within [`GROUP_SPAN`].
const GROUP: usize = 7;
const GROUP_SPAN: Duration = Duration::from_millis(2);

/// Reads the program clock reference as time that passes, over its wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct PcrClock {
    last: Option<u64>,
}

impl PcrClock {
    /// A clock that has seen nothing.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// The time since the reference before `pcr`; `None` if there is none on the same timeline: it is the first, the
    /// stream says that the clock jumps (`jumps`), it went backwards, or by more than five seconds.
    pub fn step(&mut self, pcr: Pcr, jumps: bool) -> Option<Duration> {
        let last = self.last.replace(pcr.0)?;
        // 27 ticks are a microsecond; 1000/27 ns each.
        let ticks = (pcr.0 + WRAP - last % WRAP) % WRAP;
        let step = Duration::from_nanos(ticks.saturating_mul(1000) / 27);
        (!jumps && step <= MAX_STEP).then_some(step)
    }
}

/// Releases a recorded transport stream at the speed of its own clock.
///
/// [`push`](Self::push) what has been read, then [`poll`](Self::poll) until it returns `None`, and
/// read on. Packets between two clock references are spread evenly; if the clock jumps, or none is
/// seen for 16384 packets, the last known speed goes on. The first program's clock counts: that of
/// the first PID that has one.
///
/// Memory: at most 16384 packets, plus what was pushed at once.
#[derive(Debug)]
pub struct Pacer {
    sync: PacketSync,
    clock: PcrClock,
    clock_pid: Option<u16>,
    /// Packets since the last clock reference, whose time is not known yet.
    waiting: Vec<u8>,
    /// When the first of them is due.
    next_due: Instant,
    /// Time from packet to packet in the last stretch.
    spacing: Duration,
    ready: VecDeque<(Instant, [u8; PACKET])>,
    ended: bool,
}

impl Pacer {
    /// A pacer whose first packet is due at `start`.
    pub fn new(start: Instant) -> Self {
        Self {
            sync: PacketSync::new(),
            clock: PcrClock::new(),
            clock_pid: None,
            waiting: Vec::new(),
            next_due: start,
            spacing: Duration::ZERO,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// Takes the next piece of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.sync.push(bytes);
        self.walk();
    }

    /// The stream has ended: what waits for a clock reference goes at the last known speed.
    pub fn finish(&mut self) {
        self.ended = true;
        self.walk();
        self.release(None);
    }

    /// Puts the next packets, at most 7, into `out` (cleared first) and says when they are due; `None` if more must be
    /// pushed.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> Option<Instant> {
        out.clear();
        let (first, _) = *self.ready.front()?;
        let mut due = first;
        while let Some((at, packet)) = self.ready.front() {
            if out.len() >= GROUP * PACKET || at.since(first) > GROUP_SPAN {
                break;
            }
            due = *at;
            out.extend_from_slice(packet);
            self.ready.pop_front();
        }
        Some(due)
    }

    /// Bytes that belonged to no packet; they are dropped.
    pub const fn garbage_bytes(&self) -> u64 {
        self.sync.garbage()
    }

    fn walk(&mut self) {
        while let Some(bytes) = self.sync.next(self.ended).copied() {
            let packet = Packet::new(&bytes);
            if let Some(pcr) = packet.pcr()
                && *self.clock_pid.get_or_insert(packet.pid()) == packet.pid()
            {
                let step = self.clock.step(pcr, packet.discontinuity());
                self.release(step);
            } else if self.waiting.len() >= MAX_AHEAD * PACKET {
                // The clock's PID has fallen silent: let another one take over.
                self.clock_pid = None;
                self.release(None);
            }
            self.waiting.extend_from_slice(&bytes);
        }
    }

    /// Sets the times of the waiting packets, spread over `span`, or at the last known speed.
    fn release(&mut self, span: Option<Duration>) {
        let packets = self.waiting.as_chunks::<PACKET>().0;
        if packets.is_empty() {
            return;
        }
        if let Some(span) = span {
            self.spacing = span / u32::try_from(packets.len()).unwrap_or(u32::MAX);
        }
        for packet in packets {
            self.ready.push_back((self.next_due, *packet));
            self.next_due += self.spacing;
        }
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet without payload whose clock reference is `micros`.
    fn clock(micros: u64, jumps: bool) -> [u8; PACKET] {
        let ticks = micros * 27 % WRAP;
        let (base, extension) = (ticks / 300, ticks % 300);
        let mut packet = [0xff; PACKET];
        packet[..4].copy_from_slice(&[0x47, 1, 0, 0x20]);
        packet[4] = 183;
        packet[5] = if jumps { 0x90 } else { 0x10 };
        packet[6..10].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
        packet[10] = ((base & 1) << 7) as u8 | 0x7e | (extension >> 8) as u8;
        packet[11] = extension as u8;
        packet
    }

    fn plain() -> [u8; PACKET] {
        let mut packet = [0; PACKET];
        packet[0] = 0x47;
        packet[3] = 0x10;
        packet
    }

    fn due_times(packets: &[[u8; PACKET]]) -> Vec<u64> {
        let (mut pacer, mut out, mut due) = (Pacer::new(Instant::from_millis(100)), Vec::new(), Vec::new());
        pacer.push(packets.as_flattened());
        pacer.finish();
        while let Some(at) = pacer.poll(&mut out) {
            due.extend(out.as_chunks::<PACKET>().0.iter().map(|_| at.as_micros()));
        }
        due
    }

    #[test]
    fn packets_between_two_clock_references_are_spread_evenly() {
        let stream = [clock(0, false), plain(), clock(20_000, false), plain(), plain(), plain(), clock(60_000, false)];
        assert_eq!(due_times(&stream), [100_000, 110_000, 120_000, 130_000, 140_000, 150_000, 160_000]);
    }

    #[test]
    fn the_wrap_of_the_clock_is_no_jump() {
        let wrap = WRAP / 27;
        let stream = [clock(wrap - 10_000, false), clock(wrap + 10_000, false), clock(wrap + 30_000, false)];
        assert_eq!(due_times(&stream), [100_000, 120_000, 140_000]);
    }

    #[test]
    fn over_a_jump_the_last_speed_goes_on() {
        let stream = [
            clock(0, false),
            clock(10_000, false),
            clock(11_000, true),
            clock(900_000_000, false),
            clock(900_010_000, false),
        ];
        assert_eq!(due_times(&stream), [100_000, 110_000, 120_000, 130_000, 140_000]);
    }

    #[test]
    fn a_stream_without_a_clock_is_not_held_back_for_ever() {
        let stream = vec![plain(); 20_000];
        assert_eq!(due_times(&stream).len(), 20_000);
    }
}
