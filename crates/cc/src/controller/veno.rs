use super::Conditions;
use super::reno::{Reno, Response};

/// Reno with the answer to losses of TCP Veno (Fu and Liew, IEEE JSAC 21(2), 2003, §III-A): half if
/// packets were standing in a queue, else four fifths, as what a radio link loses without a queue
/// says little about congestion.
///
/// Its other half, slower growth with a queue (§III-B), is not there.
pub(super) type Veno = Reno<ByBacklog>;

/// Packets in the queue from which on a loss is taken for congestion (β in the paper).
const BACKLOG: f64 = 3.0;

/// Looks at how much of the window stands in a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByBacklog;

impl Response for ByBacklog {
    fn kept(&self, window: usize, path: &Conditions<'_>) -> f64 {
        if shows_congestion(window, path) { 0.5 } else { 0.8 }
    }
}

/// Returns `true` if a loss now speaks of congestion, as Veno sees it: of a window of `window` bytes, three
/// packets or more stand in a queue.
pub fn shows_congestion(window: usize, path: &Conditions<'_>) -> bool {
    let (queueing, base) = (path.queueing, path.base_rtt);
    let share = queueing.as_secs_f64() / (base + queueing).as_secs_f64().max(1e-9);
    window as f64 / path.mtu as f64 * share >= BACKLOG
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn a_queue_of_three_packets_makes_a_loss_congestion() {
        let kept = |queueing| {
            let ms = Duration::from_millis;
            let path = Conditions { mtu: 1000, queueing: ms(queueing), base_rtt: ms(40), ..Conditions::default() };
            ByBacklog.kept(20_000, &path)
        };
        assert_eq!([0, 5, 7, 40].map(kept), [0.8, 0.8, 0.8, 0.5]);
    }
}
