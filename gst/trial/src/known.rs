//! `known`: a rule that is told what each link carries, which nobody knows. It is a yardstick for
//! `follow`, and no bound: its own settings are the best of a few.

use crate::link::PAYLOAD;
use braidcast_core::Instant;
use braidcast_sctp::PathState;
use braidcast_session::Sender;

/// Span over which the rate of a link is averaged, ms: the best one of those that were tried (100,
/// 200, 400).
const BEFORE: u64 = 400;
/// Target of what waits, s, and the share of a lack or excess that the next frame makes up for: the
/// best of those that were tried (20 to 120 ms, 0.3 to 1).
const WAITS: f64 = 0.05;
const SHARE: f64 = 0.3;
/// Before the association is up, bit/s.
const FIRST: f64 = 1_000_000.0;

pub(crate) struct Known {
    /// When each link may pass a packet, ms, and its delay, ms.
    pub(crate) links: Vec<(Vec<u32>, u64)>,
    /// It knows this span of what is to come, ms, and takes the mean over that alone; 0: it knows
    /// the present.
    pub(crate) ahead: u64,
    /// Bit/s.
    pub(crate) greatest: f64,
    pub(crate) fps: f64,
}

impl Known {
    /// Returns the bits of the frame that is captured now.
    pub(crate) fn bits(&self, now: Instant, sender: &Sender) -> u64 {
        let (at, interval) = (now.since(Instant::ZERO).as_millis() as u64, 1.0 / self.fps);
        let endpoint = sender.endpoint();
        let Some(association) = endpoint.associations().next().and_then(|id| endpoint.association(id)) else {
            return (FIRST * interval) as u64;
        };
        let (from, to) = if self.ahead > 0 { (at, at + self.ahead) } else { (at.saturating_sub(BEFORE), at) };
        let rate = (0..self.links.len()).map(|n| self.passes(n, from, to)).sum::<f64>() * 1000.0 / (to - from) as f64;
        let mut waits = association.waiting() as f64;
        for path in association.paths().filter(|path| path.state == PathState::Active) {
            let n = usize::from(path.route.socket.0);
            // What has left the queue and is not acknowledged: a round trip without queues.
            let under_way = self.passes(n, at.saturating_sub(2 * self.links[n].1), at);
            waits += (path.in_flight as f64 - under_way).max(0.0);
        }
        let time = interval + SHARE * (WAITS - waits / rate.max(1.0));
        (rate * 8.0 * time.clamp(0.0, 3.0 * interval)).min(self.greatest * interval) as u64
    }

    /// Bytes of payload that link `n` may pass from one time to another, ms.
    fn passes(&self, n: usize, from: u64, to: u64) -> f64 {
        let before = |time: u64| self.links[n].0.partition_point(|at| u64::from(*at) < time);
        (before(to) - before(from)) as f64 * PAYLOAD as f64
    }
}
