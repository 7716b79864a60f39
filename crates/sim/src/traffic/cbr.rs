use super::{Emission, Kind, Stream};
use core::time::Duration;

/// A packet of the same size at the same interval, from the start on.
#[derive(Debug)]
pub(super) struct Cbr {
    stream: Stream,
    sent: u64,
}

impl Cbr {
    pub(super) const fn new(stream: Stream) -> Self {
        Self { stream, sent: 0 }
    }
}

impl Iterator for Cbr {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let frame = self.sent;
        self.sent += 1;
        // From the bits sent so far rather than gap by gap, so that rounding does not add up.
        let nanos = u128::from(frame) * self.stream.size as u128 * 8 * 1_000_000_000 / u128::from(self.stream.rate);
        let at = Duration::from_nanos(u64::try_from(nanos).ok()?);
        Some(Emission { at, bytes: self.stream.size, kind: Kind::Data, flow: 0, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_exact_even_where_the_gap_is_not_a_whole_number() {
        let source = Cbr::new(Stream { rate: 3_000_000, size: 1000 });
        let packets: Vec<_> = source.take_while(|e| e.at < Duration::from_secs(60)).collect();
        assert_eq!(packets.len(), 22_500);
        assert_eq!(packets[1].at, Duration::from_nanos(2_666_666));
    }
}
