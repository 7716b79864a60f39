//! The largest frames that foresight could have had, all of them in time.
//!
//! Each chance of a link carries bytes of the earliest frame that is whole by then, still comes in time
//! over that link, and is not as large as it may be yet. If delays are alike, no other order carries more
//! (earliest deadline first).

use super::Route;
use core::time::Duration;

/// The share of payload in a packet: 1500 bytes without IP and UDP (28), SCTP (12), I-DATA (20). The rest
/// holds parts of messages, which stand for packets of the transport stream with four bytes more.
const PAYLOAD: f64 = (1500.0 - 60.0) / 1500.0 * 188.0 / 184.0;

/// The frames that an encoder was to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    pub count: usize,
    /// When the first one is captured, on the clock of the links.
    pub first: Duration,
    /// From one to the next; a frame is whole when the next one is captured.
    pub interval: Duration,
    /// From capture to arrival.
    pub latency: Duration,
    /// Bytes that a frame has at most.
    pub most: f64,
}

/// Bytes of each frame.
pub(crate) fn sizes(frames: &Frames, routes: &[Route]) -> Vec<f64> {
    let mut chances: Vec<_> = routes.iter().flatten().collect();
    chances.sort_by_key(|chance| (chance.at, chance.delay));
    let captured = |n: usize| frames.first + frames.interval * n as u32;
    let (mut sizes, mut first) = (vec![0.0; frames.count], 0);
    for chance in chances {
        // Too late over a link without delay is too late over all.
        while first < frames.count && captured(first) + frames.latency < chance.at {
            first += 1;
        }
        let mut left = chance.bytes * PAYLOAD;
        for (n, size) in sizes.iter_mut().enumerate().skip(first) {
            if captured(n) + frames.interval > chance.at || left <= 0.0 {
                break;
            }
            if captured(n) + frames.latency >= chance.at + chance.delay {
                let bytes = left.min(frames.most - *size);
                *size += bytes;
                left -= bytes;
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::super::Chance;
    use super::*;

    #[test]
    fn bytes_go_to_the_earliest_frame_that_still_comes_in_time() {
        let ms = Duration::from_millis;
        let bytes = 1000.0 / PAYLOAD;
        let frames = Frames { count: 3, first: ms(0), interval: ms(40), latency: ms(100), most: 2000.0 };
        // Before any is whole; three for the first one, which may have two; one that is too late for the first.
        let near = [10, 41, 42, 43, 81].map(|at| Chance { at: ms(at), bytes, delay: ms(50) });
        let seen: Vec<i64> = sizes(&frames, &[near.to_vec()]).iter().map(|it| it.round() as i64).collect();
        assert_eq!(seen, [2000, 1000, 0]);
        // What is too far for the first is not for the second.
        let far = [Chance { at: ms(85), bytes, delay: ms(50) }];
        let seen: Vec<i64> = sizes(&frames, &[far.to_vec()]).iter().map(|it| it.round() as i64).collect();
        assert_eq!(seen, [0, 1000, 0]);
    }
}
