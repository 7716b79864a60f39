use crate::ts::{PACKET, Packet, PacketSync, Pcr, PesHeader};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// The clock wraps here: 2³³ · 300 ticks of 27 MHz, 26.5 hours.
const WRAP: u64 = (1 << 33) * 300;
/// Presentation times wrap here.
const TIMES: u64 = 1 << 33;
/// Two clock references further apart than this are not of one timeline (ISO/IEC 13818-1 §2.7.2 asks for one
/// every 100 ms).
const MAX_STEP: Duration = Duration::from_secs(5);
/// Packets held back while the next clock reference is awaited: 24 MB, so that of a stream of the largest frames too.
const MAX_AHEAD: usize = 131_072;
/// Clock references in a row that show that there is a clock.
const CLOCK: usize = 3;
/// Presentation times that pass without them show that there is none, or that it is too rare: 2 s, of 90 kHz.
const RARE: u64 = 180_000;
/// What follows one another by more was sorted or cut: no clock of presentation times.
const UNSORTED: Duration = Duration::from_secs(1);
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

/// By what a recorded stream is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Timing {
    /// Nothing was found yet.
    #[default]
    Unknown,
    /// By the clock references of this PID.
    Clock(u16),
    /// By the decoding times of this PID's frames: clock references are missing, or too rare.
    Times(u16),
    /// There is neither.
    Nothing,
}

/// Releases a recorded transport stream at the speed of its own clock, or of its decoding times if it has no clock.
///
/// [`push`](Self::push) what has been read, then [`poll`](Self::poll) until it returns `None`, and
/// read on. Packets between two references are spread evenly; if the clock jumps, the last known speed goes on. The
/// first program's clock counts: that of the first PID that has one; if it falls silent for 131,072 packets,
/// another one is looked for.
///
/// Memory: at most 131,072 packets, plus what was pushed at once.
#[derive(Debug)]
pub struct Pacer {
    sync: PacketSync,
    clock: PcrClock,
    timing: Timing,
    /// Clock references seen of a PID while the timing is unknown, and the first and last decoding time of one.
    clocks: BTreeMap<u16, usize>,
    times: BTreeMap<u16, (u64, u64)>,
    /// Packets since the last reference, whose time is not known yet.
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
    pub const fn new(start: Instant) -> Self {
        Self::of_size(start, PACKET)
    }

    /// The same for packets each of which begins `size` bytes after the one before, at least 188. What stands between
    /// them is left out.
    pub const fn of_size(start: Instant, size: usize) -> Self {
        Self {
            sync: PacketSync::of_size(size),
            clock: PcrClock::new(),
            timing: Timing::Unknown,
            clocks: BTreeMap::new(),
            times: BTreeMap::new(),
            waiting: Vec::new(),
            next_due: start,
            spacing: Duration::ZERO,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// By what the stream is timed.
    pub const fn timing(&self) -> Timing {
        self.timing
    }

    /// Takes the next piece of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.sync.push(bytes);
        self.walk();
    }

    /// The stream has ended: what waits for a reference goes at the last known speed.
    pub fn finish(&mut self) {
        self.ended = true;
        self.walk();
        if self.timing == Timing::Unknown {
            self.decide(true);
        }
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
            if self.timing == Timing::Unknown {
                self.waiting.extend_from_slice(&bytes);
                self.note(&Packet::new(&bytes));
                self.decide(false);
            } else {
                self.place(&bytes);
            }
        }
    }

    /// Notes what a packet says of time.
    fn note(&mut self, packet: &Packet<'_>) {
        if packet.pcr().is_some() {
            *self.clocks.entry(packet.pid()).or_default() += 1;
        }
        if let Some(time) = time_of(packet) {
            let (_, last) = self.times.entry(packet.pid()).or_insert((time, time));
            *last = time;
        }
    }

    /// Chooses by what the stream is timed, if that is known or the time for it is over, and sets the times
    /// of what waits.
    fn decide(&mut self, now: bool) {
        let now = now || self.waiting.len() >= MAX_AHEAD * PACKET;
        let most = if now { 2 } else { CLOCK };
        let clock = self.clocks.iter().find(|(_, count)| **count >= most).map(|(pid, _)| Timing::Clock(*pid));
        let passed = |(first, last): (u64, u64)| (last + TIMES - first) % TIMES;
        let long = |range: &(u64, u64)| (if now { 1 } else { RARE }..TIMES / 2).contains(&passed(*range));
        let times = self.times.iter().find(|(_, range)| long(range)).map(|(pid, _)| Timing::Times(*pid));
        self.timing = match clock.or(times) {
            Some(timing) => timing,
            None if now => Timing::Nothing,
            None => return,
        };
        self.clock = PcrClock::new();
        (self.clocks, self.times) = (BTreeMap::new(), BTreeMap::new());
        let waiting = core::mem::take(&mut self.waiting);
        waiting.as_chunks::<PACKET>().0.iter().for_each(|packet| self.place(packet));
    }

    /// Takes a packet whose time is that of the references around it.
    fn place(&mut self, bytes: &[u8; PACKET]) {
        let packet = Packet::new(bytes);
        let reference = match self.timing {
            Timing::Clock(pid) if packet.pid() == pid => packet.pcr(),
            Timing::Times(pid) if packet.pid() == pid => time_of(&packet).map(|time| Pcr(time * 300)),
            _ => None,
        };
        if let Some(reference) = reference {
            let step = self.clock.step(reference, packet.discontinuity());
            let sane = |step: &Duration| !matches!(self.timing, Timing::Times(_)) || *step <= UNSORTED;
            self.release(step.filter(sane));
        } else if self.waiting.len() >= MAX_AHEAD * PACKET {
            self.release(None);
            // The clock's PID has fallen silent: let another one take over.
            self.timing = Timing::Unknown;
        }
        self.waiting.extend_from_slice(bytes);
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

/// The decoding time of the frame that begins in `packet`, or its presentation time if that is the same.
fn time_of(packet: &Packet<'_>) -> Option<u64> {
    if !packet.starts_unit() || packet.scrambled() {
        return None;
    }
    let pes = PesHeader::parse(packet.payload())?;
    pes.dts.or(pes.pts)
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

    /// A packet that begins a PES packet of audio with this presentation time.
    fn timed(ms: u64) -> [u8; PACKET] {
        let pts = ms * 90;
        let mut packet = [0xff; PACKET];
        packet[..13].copy_from_slice(&[0x47, 0x41, 1, 0x10, 0, 0, 1, 0xc0, 0, 0, 0x80, 0x80, 5]);
        let byte = |shift: u32| (pts >> shift) as u8;
        let time = [0x21 | byte(29) & 0x0e, byte(22), byte(14) | 1, byte(7), byte(0) << 1 | 1];
        packet[13..18].copy_from_slice(&time);
        packet
    }

    #[test]
    fn a_stream_without_a_clock_goes_by_its_decoding_times() {
        let stream: Vec<_> = (0..100).flat_map(|n| [timed(n * 40), plain()]).collect();
        let due = due_times(&stream);
        assert_eq!(due[2..6], [140_000, 160_000, 180_000, 200_000]);
        // The same with a clock reference every 8 s.
        let rare: Vec<_> = (0..300)
            .flat_map(
                |n| if n % 200 == 0 { [clock(n * 40_000, false), timed(n * 40)] } else { [plain(), timed(n * 40)] },
            )
            .collect();
        let length = due_times(&rare)[599] - 100_000;
        assert!((11_800_000..12_100_000).contains(&length), "{length}");
    }

    #[test]
    fn many_packets_between_clock_references_take_as_long_as_the_clock_says() {
        let stretch = || core::iter::once(()).chain((0..17_000).map(|_| ()));
        let stream: Vec<_> = (0..4)
            .flat_map(|n| {
                stretch().enumerate().map(move |(k, ())| if k == 0 { clock(n * 500_000, false) } else { plain() })
            })
            .collect();
        let due = due_times(&stream);
        assert!((2_090_000..2_110_000).contains(due.last().unwrap()), "{:?}", due.last());
    }

    #[test]
    fn a_stream_without_a_clock_is_not_held_back_for_ever() {
        let stream = vec![plain(); 140_000];
        assert_eq!(due_times(&stream).len(), 140_000);
    }
}
