use super::{Emission, Kind, Stream};
use core::ops::Range;
use core::time::Duration;

/// A packet of the same size at the same interval, from the start on, but for one silence.
#[derive(Debug)]
pub(super) struct Cbr {
    stream: Stream,
    silence: Range<Duration>,
    sent: u64,
}

impl Cbr {
    pub(super) const fn new(stream: Stream) -> Self {
        Self::interrupted(stream, Duration::ZERO..Duration::ZERO)
    }

    /// Nothing is sent during `silence`, which ends before the end of time.
    pub(super) const fn interrupted(stream: Stream, silence: Range<Duration>) -> Self {
        Self { stream, silence, sent: 0 }
    }

    /// From the bits sent so far rather than gap by gap, so that rounding does not add up.
    fn time_of(&self, packet: u64) -> Option<Duration> {
        let nanos = u128::from(packet) * self.stream.size as u128 * 8 * 1_000_000_000 / u128::from(self.stream.rate);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }
}

impl Iterator for Cbr {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        if self.silence.contains(&self.time_of(self.sent)?) {
            let bits = self.silence.end.as_nanos() * u128::from(self.stream.rate);
            self.sent = u64::try_from(bits.div_ceil(self.stream.size as u128 * 8 * 1_000_000_000)).ok()?;
        }
        let (at, frame) = (self.time_of(self.sent)?, self.sent);
        self.sent += 1;
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

    #[test]
    fn nothing_is_sent_during_the_silence_and_the_beat_goes_on() {
        let secs = Duration::from_secs;
        let source = Cbr::interrupted(Stream { rate: 64_000, size: 160 }, secs(10)..secs(20));
        let times: Vec<_> = source.map(|e| e.at).take_while(|at| *at < secs(30)).collect();
        assert_eq!(times.len(), 1000);
        assert_eq!((times[499], times[500]), (Duration::from_millis(9980), secs(20)));
    }
}
