use super::{PACKET, Scheduler, quickest_two};
use crate::View;
use braidcast_core::Instant;

/// Blocking estimation: a slow path is left alone if what it holds of the receive window would keep
/// the quickest path from sending all that it could meanwhile (Ferlin, Alay, Mehani, Boreli,
/// "BLEST: Blocking estimation-based MPTCP scheduler for heterogeneous networks", IFIP Networking
/// 2016, §III).
#[derive(Debug)]
pub(super) struct Blest {
    /// Corrects the estimate of what the quickest path could send (λ): more once the window was shut after all.
    correction: f64,
    /// The window was shut since the correction was last looked at.
    held: bool,
    /// When it is looked at next: once in each round trip of the slow path.
    next: Instant,
}

impl Default for Blest {
    fn default() -> Self {
        Self { correction: Self::LEAST, held: false, next: Instant::ZERO }
    }
}

impl Blest {
    // The bounds and the step of MPTCP's implementation by the authors (mptcp_blest.c), which the paper leaves open.
    const LEAST: f64 = 1.0;
    const MOST: f64 = 1.3;
    const STEP: f64 = 0.1;
}

impl Scheduler for Blest {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let (slow, fast) = quickest_two(view)?;
        let Some((fast, fast_path)) = fast.filter(|&(fast, _)| fast != slow) else { return Some(slow) };
        let path = &view.paths[slow];
        let Some((rtt_slow, rtt_fast)) = path.srtt.zip(fast_path.srtt).filter(|(slow, fast)| slow > fast) else {
            return Some(slow);
        };
        debug_assert_ne!(fast, slow);
        if view.now >= self.next {
            let step = if self.held { Self::STEP } else { -Self::STEP };
            self.correction = (self.correction + step).clamp(Self::LEAST, Self::MOST);
            (self.held, self.next) = (false, view.now + rtt_slow);
        }
        let rounds = rtt_slow.as_secs_f64() / rtt_fast.as_secs_f64().max(1e-6);
        // The window grows by a packet in each round.
        let could_send = (fast_path.cwnd as f64 + PACKET as f64 * (rounds - 1.0) / 2.0) * rounds * self.correction;
        let window = view.waiting.peer_room + view.paths.iter().map(|path| path.in_flight).sum::<usize>();
        let left = window.saturating_sub(path.in_flight + PACKET);
        (could_send <= left as f64).then_some(slow)
    }

    fn on_held(&mut self) {
        self.held = true;
    }
}
