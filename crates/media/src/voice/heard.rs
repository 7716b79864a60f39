use core::time::Duration;

/// What a jitter buffer made of the packets of a call, counted from its beginning; of a part of it by [`Heard::since`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    /// Packets played.
    pub played: u64,
    /// Packets that were not there when their turn came, late ones among them.
    pub lost: u64,
    /// Packets that came after their turn.
    pub late: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Runs of lost packets.
    pub bursts: u64,
    /// Sums over played packets: from sent to played, and what of this exceeded the quickest packet's transit; ns.
    pub(super) delay: i128,
    pub(super) buffering: i128,
    /// Differences of transit time between packets one after the other: their number, sum and maximum; ns.
    pub(super) steps: u64,
    pub(super) jitter: u128,
    pub(super) max_jitter: u64,
}

impl Heard {
    /// The share of packets that were not played, 0 to 1; 0 if there were none.
    pub fn loss(&self) -> f64 {
        let all = self.played + self.lost;
        if all == 0 { 0.0 } else { self.lost as f64 / all as f64 }
    }

    /// Mean length of a run of losses, over that of independent losses at the same rate, 1/(1 −
    /// loss) (G.107 §7.5). 1 if nothing was lost, or everything.
    pub fn burst_ratio(&self) -> f64 {
        if self.bursts == 0 || self.played == 0 {
            return 1.0;
        }
        self.lost as f64 / self.bursts as f64 * (1.0 - self.loss())
    }

    /// Mean time from sent to played. Means something if both clocks agree.
    pub fn delay(&self) -> Duration {
        mean(self.delay, self.played)
    }

    /// Mean time by which packets were played later than the quickest packet could have been. Add
    /// the one-way delay of an empty network, about half the shortest round trip, for the delay
    /// between clocks that do not agree.
    pub fn buffering(&self) -> Duration {
        mean(self.buffering, self.played)
    }

    /// Mean difference of transit time between packets that came one after the other: jitter as THESIS §4.4 has it.
    pub fn jitter(&self) -> Duration {
        mean(i128::try_from(self.jitter).unwrap_or(i128::MAX), self.steps)
    }

    /// The greatest of these differences since the call began.
    pub const fn max_jitter(&self) -> Duration {
        Duration::from_nanos(self.max_jitter)
    }

    /// What came after `earlier`, an earlier state of the same buffer.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            played: self.played.saturating_sub(earlier.played),
            lost: self.lost.saturating_sub(earlier.lost),
            late: self.late.saturating_sub(earlier.late),
            duplicates: self.duplicates.saturating_sub(earlier.duplicates),
            bursts: self.bursts.saturating_sub(earlier.bursts),
            delay: self.delay.saturating_sub(earlier.delay),
            buffering: self.buffering.saturating_sub(earlier.buffering),
            steps: self.steps.saturating_sub(earlier.steps),
            jitter: self.jitter.saturating_sub(earlier.jitter),
            max_jitter: self.max_jitter,
        }
    }
}

/// A mean of nanoseconds; zero for none, or if it is negative.
fn mean(sum: i128, count: u64) -> Duration {
    Duration::from_nanos(u64::try_from(sum / i128::from(count.max(1))).unwrap_or(0))
}
