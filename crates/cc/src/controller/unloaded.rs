//! What a path loses of little: as much as radio links lose whatever is sent. No queue runs over
//! then, and no policer's rate is exceeded.

/// Packets that are remembered.
const MEMORY: f64 = 200.0;
/// Packets that must be seen before anything is known.
const ENOUGH: f64 = 10.0;
/// The difference is clear if one more lost packet would not make it this share of the recent loss.
const CLEARLY: f64 = 0.3;
/// The load is low if at most this share of what fills the path without a queue is in flight.
const LITTLE: f64 = 0.6;
/// More than this is not taken for the path's own.
const MOST: f64 = 0.3;

/// The share of packets that a path loses of those that left in a round in which little was out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnloadedLoss {
    packets: f64,
    lost: f64,
    /// What the transport had counted when the round began.
    counted: (u64, u64),
    /// Rounds with little out before this one, in a row.
    rounds: u32,
    /// More was out in this one.
    much: bool,
}

impl UnloadedLoss {
    /// Notes that `bytes` were in flight, where `fill` fills the path.
    pub(super) fn on_flight(&mut self, bytes: usize, fill: f64) {
        self.much |= bytes as f64 > LITTLE * fill;
    }

    /// A round ends; the transport has counted so many packets, and of these so many that were lost.
    pub(super) fn on_round(&mut self, packets: u64, lost: u64) {
        // What is heard of in this round left in the one before, and of losses a little later.
        if self.rounds >= 1 {
            self.packets += packets.saturating_sub(self.counted.0) as f64;
            self.lost += lost.saturating_sub(self.counted.1) as f64;
            let keep = (MEMORY / self.packets.max(1.0)).min(1.0);
            (self.packets, self.lost) = (keep * self.packets, keep * self.lost);
        }
        self.counted = (packets, lost);
        self.rounds = if self.much { 0 } else { self.rounds + 1 };
        self.much = false;
    }

    /// Returns `true` if enough packets were seen.
    pub(super) const fn is_known(&self) -> bool {
        self.packets >= ENOUGH
    }

    /// How much of `lost`, the share that is lost of late, is lost whatever is sent, 0 to 0.3: all
    /// of it, unless it is clear that the path loses less of little.
    pub(super) fn of(&self, lost: f64) -> f64 {
        if !self.is_known() {
            return 0.0;
        }
        let most = (self.lost + 1.0) / self.packets;
        (if most >= CLEARLY * lost { lost } else { self.lost / self.packets }).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds rounds of 100 packets: bytes out of 1000, and lost packets, for each.
    fn play(rounds: &[(usize, u64)]) -> f64 {
        let (mut it, mut lost) = (UnloadedLoss::default(), 0);
        for (n, &(out, more)) in (1..).zip(rounds) {
            lost += more;
            it.on_flight(out, 1000.0);
            it.on_round(100 * n, lost);
        }
        it.of(0.1)
    }

    #[test]
    fn what_a_full_path_loses_does_not_count_even_if_it_is_told_of_later() {
        assert_eq!(play(&[(1000, 20), (1000, 20), (500, 20), (500, 0), (500, 0)]), 0.0);
    }

    #[test]
    fn what_a_path_loses_of_little_does() {
        assert_eq!(play(&[(500, 0), (500, 10), (500, 10), (1000, 10), (1000, 50)]), 0.1);
    }
}
