use core::time::Duration;

/// Packets that measure a path together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Train {
    /// Bytes of each; a path with a smaller MTU gets as much as it carries.
    pub sizes: &'static [u16],
    /// Between two of them.
    pub gap: Duration,
    /// An answer that takes longer counts as lost.
    pub patience: Duration,
}

impl Train {
    const SMALL: u16 = 80;
    const LARGE: u16 = 1000;
    /// Longer than any answer that is of use.
    const LONG: Duration = Duration::from_secs(2);

    /// Two large ones, one behind the other (PSM).
    pub const PAIR: Self = Self { sizes: &[Self::LARGE; 2], gap: Duration::ZERO, patience: Self::LONG };

    /// Two small, two large, two small (WiSE).
    pub const WISE: Self = Self {
        sizes: &[Self::SMALL, Self::SMALL, Self::LARGE, Self::LARGE, Self::SMALL, Self::SMALL],
        gap: Duration::ZERO,
        patience: Self::LONG,
    };

    /// 25 packets of 80 bytes, one each 10 ms, of which those count as lost that come back after
    /// 350 ms, twice the longest one-way delay with coding and decoding (ECHO; PATHS §5.2).
    pub const CALL: Self =
        Self { sizes: &[Self::SMALL; 25], gap: Duration::from_millis(10), patience: Duration::from_millis(350) };

    /// Packets in the longest of them.
    pub const MOST: usize = 25;

    /// When, after the first one, the last packet is waited for no longer.
    pub fn lasts(&self) -> Duration {
        self.gap * self.sizes.len().saturating_sub(1) as u32 + self.patience
    }
}

/// What came of a train: its dispersion, loss and delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dispersion {
    /// Bytes in a second that the bottleneck lets through, by how far apart two large ones arrived that left together
    /// (PATHS §5.2); `None`: they did not arrive, or at the same time. Zero: nothing of the train came.
    pub bottleneck: Option<f64>,
    /// Share of the packets that were not answered in time, 0 to 1.
    pub loss: f64,
    /// Mean round trip of the others; `None`: there are none.
    pub round_trip: Option<Duration>,
}

impl Dispersion {
    /// Of a train of `sizes`, as sent. `answers`: when each packet's answer came after it left, and after the first
    /// packet left. `arrivals`: when each packet arrived there, microseconds of any clock that wraps; of peers that do
    /// not say it, none. Then the gaps between answers have to do, which a queue on the return path squeezes.
    pub fn of(sizes: &[u16], answers: &[Option<(Duration, Duration)>], arrivals: &[Option<u32>]) -> Self {
        let came: Vec<Duration> = answers.iter().flatten().map(|&(round_trip, _)| round_trip).collect();
        let told = arrivals.iter().any(Option::is_some);
        let gap = |place: usize| {
            if told {
                let arrived = |place: usize| arrivals.get(place).copied().flatten();
                let gap = arrived(place)?.wrapping_sub(arrived(place - 1)?).cast_signed();
                return u64::try_from(gap).ok().map(Duration::from_micros);
            }
            let at = |place: usize| answers.get(place).copied().flatten().map(|(_, at)| at);
            at(place)?.checked_sub(at(place - 1)?)
        };
        let pairs = (1..sizes.len()).filter(|&place| sizes[place] > Train::SMALL && sizes[place - 1] > Train::SMALL);
        let rate = |place: usize| {
            gap(place).filter(|gap| !gap.is_zero()).map(|gap| f64::from(sizes[place]) / gap.as_secs_f64())
        };
        let nothing = came.is_empty() && !told;
        Self {
            bottleneck: if nothing { Some(0.0) } else { pairs.filter_map(rate).reduce(f64::max) },
            loss: 1.0 - came.len() as f64 / sizes.len().max(1) as f64,
            round_trip: (!came.is_empty()).then(|| came.iter().sum::<Duration>() / came.len() as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_gap_of_two_large_packets_is_the_bottleneck() {
        // 8 ms for 1000 bytes: 1 Mbit/s. The small ones before and behind do not count.
        let answers = [10, 11, 20, 28, 29, 30].map(|at| Some((ms(at), ms(at))));
        let measured = Dispersion::of(Train::WISE.sizes, &answers, &[]);
        assert_eq!((measured.bottleneck, measured.loss), (Some(125_000.0), 0.0));
        let pair = [Some((ms(20), ms(20))), Some((ms(24), ms(24)))];
        assert_eq!(Dispersion::of(Train::PAIR.sizes, &pair, &[]).bottleneck, Some(250_000.0));
        assert_eq!(Dispersion::of(Train::PAIR.sizes, &[pair[0], None], &[]).bottleneck, None);
        assert_eq!(
            Dispersion::of(Train::PAIR.sizes, &[pair[1], pair[0]], &[]).bottleneck,
            None,
            "one overtook the other"
        );
        assert_eq!(Dispersion::of(Train::PAIR.sizes, &[pair[0], pair[0]], &[]).bottleneck, None);
    }

    #[test]
    fn what_the_other_end_saw_counts_and_not_what_the_way_back_made_of_it() {
        // 163 ms apart there, 10 ms apart here, as answers stood in a queue (49 kbit/s, not 780).
        let answers = [Some((ms(700), ms(700))), Some((ms(710), ms(710)))];
        let arrivals = [Some(u32::MAX - 100_000), Some(63_000)];
        let measured = Dispersion::of(Train::PAIR.sizes, &answers, &arrivals);
        let bits = measured.bottleneck.unwrap() * 8.0;
        assert!((48_000.0..50_000.0).contains(&bits), "{bits}");
        // The answer was lost, the packet was not; or one overtook the other; or one is not known.
        let unanswered = Dispersion::of(Train::PAIR.sizes, &[None, None], &[Some(0), Some(8000)]);
        assert_eq!((unanswered.bottleneck, unanswered.loss), (Some(125_000.0), 1.0));
        for arrivals in [[Some(8000), Some(0)], [Some(0), None], [Some(5), Some(5)]] {
            assert_eq!(Dispersion::of(Train::PAIR.sizes, &answers, &arrivals).bottleneck, None);
        }
    }

    #[test]
    fn loss_and_delay_are_those_of_all_packets() {
        let mut answers = [Some((ms(60), ms(60))); Train::MOST];
        answers[3] = None;
        answers[4] = Some((ms(84), ms(124)));
        let measured = Dispersion::of(Train::CALL.sizes, &answers, &[]);
        assert!((measured.loss - 0.04).abs() < 1e-9 && measured.round_trip == Some(ms(61)));
        assert_eq!(measured.bottleneck, None);
        let nothing = Dispersion::of(Train::CALL.sizes, &[None; Train::MOST], &[]);
        assert_eq!(nothing, Dispersion { bottleneck: Some(0.0), loss: 1.0, round_trip: None });
        assert_eq!(Train::CALL.lasts(), ms(590));
    }
}
