use braidcast_core::Rng;
use std::collections::BTreeSet;

/// Which packets are lost in flight. Lost packets have used their share of the rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with this probability, 0 to 1, on its own.
    Uniform(f64),
    /// In bursts: two states with a loss probability each (Gilbert 1960, Elliott 1963; parameters named as in netem).
    GilbertElliott(GilbertElliott),
    /// Exactly these, numbered from 0 in the order in which they were offered to the link.
    Packets(BTreeSet<u64>),
}

impl Loss {
    /// Bursts of consecutive losses of `burst` packets on average, making up `mean` of all packets: a
    /// Gilbert–Elliott chain that loses all in its bad state and nothing in its good one.
    ///
    /// `None` unless `0 <= mean < 1`, `burst >= 1` and the good state can last a packet or more
    /// (`mean <= burst / (burst + 1)`).
    pub fn bursts(mean: f64, burst: f64) -> Option<Self> {
        let r = 1.0 / burst;
        let p = mean * r / (1.0 - mean);
        let possible = (0.0..1.0).contains(&mean) && burst >= 1.0 && p <= 1.0;
        possible.then_some(Self::GilbertElliott(GilbertElliott { p, r, good: 0.0, bad: 1.0 }))
    }

    /// The share of packets lost in the long run; `None` for a list of packets.
    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Uniform(p) => Some(*p),
            Self::GilbertElliott(ge) => Some(ge.mean()),
            Self::Packets(_) => None,
        }
    }
}

/// The Gilbert–Elliott model. All four are probabilities, 0 to 1; the chain starts in its good state and steps once
/// per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// From good to bad.
    pub p: f64,
    /// From bad to good.
    pub r: f64,
    /// Loss in the good state.
    pub good: f64,
    /// Loss in the bad state.
    pub bad: f64,
}

impl GilbertElliott {
    fn mean(&self) -> f64 {
        if self.p <= 0.0 {
            return self.good;
        }
        let bad_share = self.p / (self.p + self.r);
        bad_share * self.bad + (1.0 - bad_share) * self.good
    }
}

/// Decides packet by packet.
#[derive(Debug)]
pub(super) struct LossProcess {
    loss: Loss,
    in_bad_state: bool,
    rng: Rng,
}

impl LossProcess {
    pub(super) fn new(loss: Loss, rng: Rng) -> Self {
        Self { loss, in_bad_state: false, rng }
    }

    /// Returns `true` if the packet with this number is lost.
    pub(super) fn loses(&mut self, number: u64) -> bool {
        match &self.loss {
            Loss::None => false,
            Loss::Uniform(p) => self.rng.chance(*p),
            Loss::GilbertElliott(ge) => {
                let (loss, leave) = if self.in_bad_state { (ge.bad, ge.r) } else { (ge.good, ge.p) };
                let lost = self.rng.chance(loss);
                self.in_bad_state ^= self.rng.chance(leave);
                lost
            }
            Loss::Packets(numbers) => numbers.contains(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of packets lost and mean length of runs of losses.
    fn observe(loss: Loss) -> (f64, f64) {
        let mut process = LossProcess::new(loss, Rng::from_seed(11));
        let (mut lost, mut bursts, mut last) = (0_u32, 0_u32, false);
        for number in 0..1_000_000 {
            let now = process.loses(number);
            lost += u32::from(now);
            bursts += u32::from(now && !last);
            last = now;
        }
        (f64::from(lost) / 1e6, f64::from(lost) / f64::from(bursts.max(1)))
    }

    #[test]
    fn uniform_losses_come_alone() {
        let (share, burst) = observe(Loss::Uniform(0.05));
        assert!((share - 0.05).abs() < 0.001, "{share}");
        assert!((burst - 1.0 / 0.95).abs() < 0.01, "{burst}");
    }

    #[test]
    fn bursts_have_the_mean_loss_and_the_mean_length_asked_for() {
        let (share, burst) = observe(Loss::bursts(0.05, 4.0).unwrap());
        assert!((share - 0.05).abs() < 0.002, "{share}");
        assert!((burst - 4.0).abs() < 0.1, "{burst}");
        assert_eq!(Loss::bursts(0.9, 2.0), None);
        assert_eq!(Loss::bursts(0.1, 0.5), None);
        assert_eq!(Loss::bursts(f64::NAN, 2.0), None);
    }

    #[test]
    fn gilbert_elliott_loses_its_stationary_mean() {
        let loss = Loss::GilbertElliott(GilbertElliott { p: 0.02, r: 0.2, good: 0.01, bad: 0.5 });
        let mean = loss.mean().unwrap();
        assert!((observe(loss).0 - mean).abs() < 0.002, "{mean}");
    }

    #[test]
    fn a_list_loses_exactly_its_packets() {
        let mut process = LossProcess::new(Loss::Packets([1, 3].into()), Rng::from_seed(0));
        assert_eq!([0, 1, 2, 3, 4].map(|n| process.loses(n)), [false, true, false, true, false]);
    }
}
