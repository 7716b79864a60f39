//! What foresight could have had: the largest frames that all come on time.
//!
//! Each chance of a link carries bytes of the earliest frame that was there by then, that would
//! still come on time, and that has not all it may have (earliest deadline first; no other order
//! carries more). Headers are taken off as in our own packets.

use crate::link::PAYLOAD;

/// The frames that an encoder was to make.
pub(crate) struct Pictures {
    pub(crate) count: usize,
    /// When the first one is captured, and from one to the next, µs.
    pub(crate) first: u64,
    pub(crate) interval: u64,
    /// Times after its capture, µs, at which it is whole, and at which it has to be there.
    pub(crate) whole: u64,
    pub(crate) latency: u64,
    /// Bytes that one may have at most.
    pub(crate) most: u64,
}

/// Returns the bytes of each frame.
pub(crate) fn sizes(pictures: &Pictures, links: &[(Vec<u32>, u64)]) -> Vec<u64> {
    // When bytes arrive that leave at a chance, and when that was.
    let mut chances: Vec<(u64, u64)> = links
        .iter()
        .flat_map(|(at, delay)| at.iter().map(move |ms| (u64::from(*ms) * 1000, u64::from(*ms) * 1000 + delay)))
        .collect();
    chances.sort_unstable();
    let mut sizes = vec![0; pictures.count];
    let mut first = 0;
    for (leaves, arrives) in chances {
        let captured = |n: usize| pictures.first + n as u64 * pictures.interval;
        // Too late over the quickest link is too late over all, nearly: delays differ little.
        while first < pictures.count && captured(first) + pictures.latency < leaves {
            first += 1;
        }
        let mut left = PAYLOAD;
        for (n, size) in sizes.iter_mut().enumerate().skip(first) {
            if captured(n) + pictures.whole > leaves || left == 0 {
                break;
            }
            if captured(n) + pictures.latency >= arrives {
                let bytes = left.min(pictures.most - *size);
                *size += bytes;
                left -= bytes;
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_the_earliest_picture_that_still_comes_on_time() {
        let pictures =
            Pictures { count: 3, first: 0, interval: 40_000, whole: 40_000, latency: 100_000, most: 2 * PAYLOAD };
        // Before any is whole; three for the first one, which may have two; one that is too late for the first.
        let links = [(vec![10, 41, 42, 43, 81], 50_000)];
        assert_eq!(sizes(&pictures, &links), [2 * PAYLOAD, PAYLOAD, 0]);
    }
}
