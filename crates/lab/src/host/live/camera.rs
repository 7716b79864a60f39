//! A camera whose encoder follows what the sender says it may make.

use crate::scenario::Encoding;
use crate::x264::X264Sizes;
use braidcast_core::{Instant, Rng};
use braidcast_media::ts::{PACKET, sham_packet};
use braidcast_media::{Kind, Run, Unit};
use braidcast_rate::{Allowance, Follower, Profile, Verdict};
use braidcast_session::Sender;
use core::time::Duration;

/// The PID of its frames.
const PID: u16 = 256;
/// Bytes of PES and adaptation fields in the first packet of a frame.
const HEAD: usize = 26;

/// A frame of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Its bytes in the transport stream; 0 if it was left out, as others waited that had not left.
    pub bytes: usize,
    /// When it was captured.
    pub at: Instant,
}

/// The camera: as `braidcast encode` with `x264enc`, whose sizes a model has.
#[derive(Debug)]
pub struct Camera {
    follower: Follower,
    encoder: X264Sizes,
    interval: Duration,
    next: Instant,
    count: usize,
    taken: Vec<Taken>,
    /// A frame that is whole when the next one begins.
    unit: Option<(Instant, Unit)>,
    packets: u64,
    /// Encoded and multiplexed bytes.
    sums: (u64, u64),
}

impl Camera {
    /// Returns a camera that takes its first frame at `begin` and its last one before `duration` is over.
    pub fn new(encoding: &Encoding, begin: Instant, duration: Duration, rng: &Rng) -> Self {
        let Encoding { fps, limits } = *encoding;
        let mut follower = Follower::new(Profile::Live, fps as i32, (limits.least, limits.greatest));
        let encoder = X264Sizes::new(fps, follower.first(), rng.stream("encoder").u64());
        let interval = Duration::from_secs(1) / fps;
        let count = (duration.as_secs_f64() * f64::from(fps)).round() as usize;
        let (taken, unit) = (Vec::with_capacity(count), None);
        Self { follower, encoder, interval, next: begin, count, taken, unit, packets: 0, sums: (0, 0) }
    }

    /// Returns the frames so far.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Returns `true` if it has taken and handed on all frames.
    pub fn is_over(&self) -> bool {
        self.taken.len() == self.count && self.unit.is_none()
    }

    /// Returns when it has something to do next.
    pub fn due(&self) -> Option<Instant> {
        let frame = (self.taken.len() < self.count).then_some(self.next);
        [frame, self.unit.as_ref().map(|(at, _)| *at)].into_iter().flatten().min()
    }

    /// Hands on what is whole and takes what is due.
    pub fn work(&mut self, now: Instant, sender: &mut Sender) {
        while let Some(at) = self.due().filter(|at| *at <= now) {
            if let Some((_, unit)) = self.unit.take_if(|(whole, _)| *whole <= at) {
                // Only reliable sessions give units back.
                let _none = sender.push(now, unit);
            }
            if self.next <= at && self.taken.len() < self.count {
                self.take(self.next, sender);
                self.next += self.interval;
            }
        }
    }

    fn take(&mut self, at: Instant, sender: &Sender) {
        let said = sender.rate_report(at).map(|report| Allowance {
            next_frame_bits: report.next_frame_bits,
            video_rate: report.video_rate,
            smoothed_rate: report.smoothed_rate,
            connected: sender.endpoint().associations().next().is_some(),
        });
        let since = at.since(Instant::ZERO);
        let mut bytes = 0;
        if let Verdict::Encode(rate) = self.follower.next(since, said.map(|it| (it, since))) {
            let coded = self.encoder.next(rate);
            bytes = self.send(at, coded + HEAD);
            self.sums = (self.sums.0 + coded as u64, self.sums.1 + bytes as u64);
            self.follower.measure(self.sums.0, self.sums.1);
        }
        self.taken.push(Taken { bytes, at });
    }

    /// A frame that holds so many bytes; its bytes in the transport stream.
    fn send(&mut self, at: Instant, held: usize) -> usize {
        let packets = held.div_ceil(PACKET - 4);
        let first = self.packets;
        self.packets += packets as u64;
        let left = packets * (PACKET - 4) - held;
        let packet = |n| sham_packet(PID, n == first, n as u8, if n + 1 == self.packets { left } else { 0 });
        let unit = Unit {
            kind: Kind::P,
            reference: true,
            continues: false,
            more: false,
            pid: PID,
            runs: vec![Run { first, count: packets as u32, null: false }],
            bytes: (first..self.packets).flat_map(packet).collect(),
            first_captured: at,
            last_captured: at,
            pts: None,
            dts: None,
        };
        self.unit = Some((at + self.interval, unit));
        packets * PACKET
    }
}
