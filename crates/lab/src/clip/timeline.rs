//! What a clip is to whoever sends it: packets that come from an encoder at their times, in units
//! that are ready at theirs.

use super::{Clip, FrameKind};
use braidcast_core::Instant;
use braidcast_media::ts::{PACKET, sham_packet};
use braidcast_media::{Run, Unit};
use core::time::Duration;

/// Bit/s within a frame: an encoder hands it on at once, its network or pipe takes a while.
const BURST: u64 = 30_000_000;
/// Packets that come at once: a datagram's.
const DATAGRAM: u32 = 7;
/// A video frame that has not grown for this time is complete (`braidcast_media::ts::Demux`).
const IDLE: Duration = Duration::from_millis(100);
/// Frames that a run has at most: an hour and three quarters with audio and tables.
const MAX_SHOTS: usize = 1 << 18;
/// Bytes of a packet that carry video.
const PAYLOAD: u64 = 184;
/// Offset of a packet's number.
const NUMBER: usize = PACKET - 8;
/// Bytes that remain, in the mean, of each packet of the tables that ffmpeg writes.
const TABLES_LEAVE: usize = 162;
/// The PIDs of video and audio.
const VIDEO: u16 = 256;
const AUDIO: u16 = 257;

/// A frame of a clip that plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shot {
    /// What it is.
    pub kind: FrameKind,
    /// When it leaves the encoder, from the start; its first packet comes then, or once those before it are through.
    pub at: Duration,
    /// When its first packet comes.
    pub captured: Duration,
    /// When a demultiplexer knows that it is complete: with its last packet, whose stuffing shows
    /// it. If a video frame fills its last packet to the byte, as one in 184 does, it is complete
    /// when the next one begins.
    pub ready: Duration,
    /// The number of its first packet.
    pub first: u64,
    /// How many there are, at least 1.
    pub packets: u32,
    /// When it is shown, 90 kHz.
    pub pts: Option<u64>,
}

impl Shot {
    /// Its bytes.
    pub const fn bytes(&self) -> u64 {
        self.packets as u64 * PACKET as u64
    }

    /// When its packet number `n`, counted from 0, comes.
    pub fn packet(&self, n: u32) -> Duration {
        self.captured + taking(u64::from(n / DATAGRAM) * u64::from(DATAGRAM))
    }

    /// The unit that it makes if the clip begins at `start`. Each packet says its number. Headers
    /// and stuffing are as a multiplexer writes them; what they hold is not.
    pub fn unit(&self, start: Instant) -> Unit {
        let mut bytes = Vec::with_capacity(self.bytes() as usize);
        for index in self.first..self.first + u64::from(self.packets) {
            let mut packet = sham_packet(self.pid(), index == self.first, index as u8, self.left(index));
            packet[NUMBER..].copy_from_slice(&index.to_be_bytes());
            bytes.extend_from_slice(&packet);
        }
        Unit {
            kind: self.kind.kind(),
            reference: self.kind.is_reference(),
            continues: false,
            more: false,
            pid: self.pid(),
            runs: vec![Run { first: self.first, count: self.packets, null: false }],
            bytes,
            first_captured: start + self.captured,
            last_captured: start + self.packet(self.packets - 1),
            pts: self.pts,
            dts: None,
        }
    }

    /// Returns the bytes of packet `index` without payload: those left over in the last packet of a
    /// frame, most of each packet of tables.
    fn left(&self, index: u64) -> usize {
        match self.kind {
            FrameKind::Tables => TABLES_LEAVE,
            _ if index + 1 < self.first + u64::from(self.packets) => 0,
            _ => (left_in_last(self.first) as usize).min(NUMBER - 4),
        }
    }

    const fn pid(&self) -> u16 {
        match self.kind {
            FrameKind::Tables => 0,
            FrameKind::Audio => AUDIO,
            _ => VIDEO,
        }
    }

    /// The number that `packet`, one of a [unit](Self::unit)'s, says.
    pub fn number(packet: &[u8]) -> Option<u64> {
        Some(u64::from_be_bytes(packet.get(NUMBER..)?.try_into().ok()?))
    }
}

/// The room that the frame whose first packet has this number leaves in its last one. The clips do
/// not say; one in 184 leaves none.
const fn left_in_last(first: u64) -> u64 {
    (first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff) * PAYLOAD / 0x10000
}

/// Returns the time that `packets` packets take.
const fn taking(packets: u64) -> Duration {
    Duration::from_nanos(packets * (PACKET as u64 * 8 * 1_000_000_000 / BURST))
}

/// The frames of a clip that plays for a while, in the order in which they come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Timeline {
    shots: Vec<Shot>,
    /// Their places, in the order in which they are ready.
    order: Vec<usize>,
}

impl Timeline {
    /// `clip` for `duration`, again and again if need be; 262,144 frames at most.
    pub fn new(clip: &Clip, duration: Duration) -> Self {
        let mut shots: Vec<Shot> = Vec::new();
        let (mut gate, mut first) = (Duration::ZERO, 0);
        for round in 0_u32.. {
            let start = clip.period() * round;
            if start >= duration || shots.len() == MAX_SHOTS {
                break;
            }
            for frame in clip.frames() {
                let at = start + frame.at;
                if at >= duration || shots.len() == MAX_SHOTS {
                    break;
                }
                let (captured, packets) = (at.max(gate), frame.packets());
                gate = captured + taking(u64::from(packets));
                let ticks = |pts: Duration| (start + pts).as_micros() as u64 * 9 / 100;
                let (kind, pts) = (frame.kind, frame.pts.map(ticks));
                shots.push(Shot { kind, at, captured, ready: captured, first, packets, pts });
                first += u64::from(packets);
            }
        }
        let (mut next, mut next_picture) = (None, None);
        for shot in shots.iter_mut().rev() {
            let last = shot.packet(shot.packets - 1);
            let end = |next: Option<Duration>| next.map_or(last + IDLE, |next| next.min(last + IDLE));
            shot.ready = match shot.kind {
                // Its length stands in its header.
                FrameKind::Audio => last,
                FrameKind::Tables => end(next),
                _ if left_in_last(shot.first) > 0 => {
                    next_picture = Some(shot.captured);
                    last
                }
                _ => end(next_picture.replace(shot.captured)),
            };
            next = Some(shot.captured);
        }
        let mut order: Vec<usize> = (0..shots.len()).collect();
        order.sort_by_key(|&n| shots[n].ready);
        Self { shots, order }
    }

    /// The frames.
    pub fn shots(&self) -> &[Shot] {
        &self.shots
    }

    /// The place of the frame that is ready as number `n`.
    pub fn ready_place(&self, n: usize) -> Option<usize> {
        self.order.get(n).copied()
    }

    /// That frame.
    pub fn ready(&self, n: usize) -> Option<&Shot> {
        self.ready_place(n).map(|place| &self.shots[place])
    }

    /// The place of the frame that packet number `packet` belongs to.
    pub fn place(&self, packet: u64) -> Option<usize> {
        let place = self.shots.partition_point(|shot| shot.first <= packet).checked_sub(1)?;
        (packet < self.shots[place].first + u64::from(self.shots[place].packets)).then_some(place)
    }

    /// When the last frame is ready.
    pub fn end(&self) -> Duration {
        self.order.last().map_or(Duration::ZERO, |&place| self.shots[place].ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn a_picture_is_ready_with_its_last_packet_unless_it_fills_that_and_audio_always() {
        // 8 packets take 401 µs; the eighth is in the second datagram.
        let clip = Clip::parse("c", "0 1504 I 80\n0 188 A\n40 188 P 160\n50 188 A\n").unwrap();
        let line = Timeline::new(&clip, Duration::from_millis(60));
        let of = |n: usize| (line.shots()[n].captured, line.shots()[n].ready);
        let packet = Duration::from_nanos(50_133);
        assert_eq!(of(0), (us(0), us(40_000)));
        assert_eq!(of(1), (packet * 8, packet * 8));
        assert!(left_in_last(0) == 0 && left_in_last(9) > 0);
        assert_eq!(of(2), (us(40_000), us(40_000)));
        assert_eq!(line.shots()[0].packet(7), packet * 7);
        let order: Vec<_> = (0..4).map(|n| line.ready(n).unwrap().kind).collect();
        assert_eq!(order, [FrameKind::Audio, FrameKind::I, FrameKind::P, FrameKind::Audio]);
        assert_eq!((line.place(7), line.place(8), line.place(10), line.place(11)), (Some(0), Some(1), Some(3), None));
        assert_eq!(line.end(), us(50_000));
    }

    #[test]
    fn a_clip_begins_again_with_its_times_going_on() {
        let clip = Clip::parse("c", "0 188 I 80\n40 188 P 120\n").unwrap();
        let line = Timeline::new(&clip, Duration::from_millis(200));
        let seen: Vec<_> = line.shots().iter().map(|it| (it.at.as_millis(), it.pts.unwrap() / 90)).collect();
        assert_eq!(seen, [(0, 80), (40, 120), (80, 160), (120, 200), (160, 240)]);
    }

    #[test]
    fn packets_of_a_unit_say_their_numbers() {
        let clip = Clip::parse("c", "0 188 A\n0 700 I 0\n").unwrap();
        let line = Timeline::new(&clip, us(1));
        let unit = line.shots()[1].unit(Instant::from_millis(5));
        assert_eq!(unit.bytes.len(), 4 * PACKET);
        let numbers: Vec<_> = unit.packets().map(|(index, packet)| (index, Shot::number(packet))).collect();
        assert_eq!(numbers, [1, 2, 3, 4].map(|n| (n, Some(n))));
        assert_eq!(unit.first_captured, Instant::from_millis(5) + Duration::from_nanos(50_133));
    }
}
