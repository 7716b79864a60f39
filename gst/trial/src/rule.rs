//! What sets the encoder's rate.

use crate::aimd::{Aimd, Seen};
use crate::known::Known;
use braidcast_core::Instant;
use braidcast_rate::{Allowance, Follower, Verdict};
use braidcast_sctp::PathState;
use braidcast_session::Sender;
use std::time::Duration;

pub(crate) enum Rule {
    /// What the sender says, as `braidcast encode` does it.
    Follow(Box<Follower>),
    /// What the links carry, which nobody knows, in place of what the sender says.
    Known(Box<Follower>, Known),
    /// Always the same, bit/s.
    Fixed,
    /// A guess from the round trip, looked at last at this time, ms.
    Aimd(Box<Aimd>, u64, f64),
}

impl Rule {
    /// Takes the bytes that came out of the encoder and of the multiplexer until now.
    pub(crate) fn measure(&mut self, encoded: u64, multiplexed: u64) {
        if let Self::Follow(follower) | Self::Known(follower, _) = self {
            follower.measure(encoded, multiplexed);
        }
    }

    /// Returns what becomes of the frame of `now`, and what the sender says about it, bits.
    pub(crate) fn next(&mut self, now: Instant, sender: &Sender) -> (Verdict, u64) {
        let Some(report) = sender.rate_report(now) else { return (Verdict::Encode(None), 0) };
        let verdict = match self {
            Self::Fixed => Verdict::Encode(None),
            Self::Aimd(_, _, rate) => Verdict::Encode(Some(*rate as u64)),
            Self::Known(follower, known) => {
                let next_frame_bits = known.bits(now, sender);
                let rate = next_frame_bits as f64 * known.fps;
                let allowance = Allowance { next_frame_bits, video_rate: rate, smoothed_rate: rate, connected: true };
                let now = Duration::from_nanos(now.since(Instant::ZERO).as_nanos() as u64);
                follower.next(now, Some((allowance, now)))
            }
            Self::Follow(follower) => {
                let now = Duration::from_nanos(now.since(Instant::ZERO).as_nanos() as u64);
                let allowance = Allowance {
                    next_frame_bits: report.next_frame_bits,
                    video_rate: report.video_rate,
                    smoothed_rate: report.smoothed_rate,
                    connected: sender.endpoint().associations().next().is_some(),
                };
                follower.next(now, Some((allowance, now)))
            }
        };
        (verdict, report.next_frame_bits)
    }

    /// When it wants to look at the paths again.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self {
            Self::Aimd(_, at, _) => Some(Instant::from_millis(at + 20)),
            _ => None,
        }
    }

    /// Looks at them.
    pub(crate) fn look(&mut self, now: Instant, sender: &Sender) {
        let (due, millis) = (self.due(), now.since(Instant::ZERO).as_millis() as u64);
        let Self::Aimd(aimd, at, rate) = self else { return };
        if due.is_some_and(|due| now < due) {
            return;
        }
        *at = millis;
        let endpoint = sender.endpoint();
        let Some(association) = endpoint.associations().next().and_then(|id| endpoint.association(id)) else { return };
        let (mut rtt, mut weight, mut bytes) = (0.0, 0.0, association.waiting() as f64);
        for path in association.paths().filter(|path| path.state == PathState::Active) {
            // A bond has one round trip: that of whatever its acknowledgements speak of, so of the
            // paths by what they carry.
            if let Some(srtt) = path.srtt {
                let carries = path.in_flight as f64 + 1.0;
                (rtt, weight) = (rtt + srtt.as_secs_f64() * 1e3 * carries, weight + carries);
            }
            bytes += path.in_flight as f64;
        }
        if weight > 0.0 {
            // Packets of SRT hold seven of the transport stream.
            *rate = aimd.look(millis, &Seen { rtt: rtt / weight, packets: bytes / 1316.0 });
        }
    }
}
