//! How much redundancy, if any: from what a path does to packets and how soon they must be there.

use crate::Code;
use core::time::Duration;

/// Losses as a Gilbert model sees them: a path is in a good state, where all packets arrive, or in
/// a bad one, where none do (Gilbert 1960; RFC 3611 §4.7.2 speaks of bursts and gaps in this
/// sense). Old packets count less and less.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LossMeter {
    packets: f64,
    lost: f64,
    bursts: f64,
    last_lost: bool,
}

impl LossMeter {
    /// Packets over which a count falls to 1/e.
    const MEMORY: f64 = 2000.0;
    /// Packets that a meter must have seen before it says anything.
    const ENOUGH: f64 = 100.0;

    /// The next packet, in the order of sending, was `lost` or not.
    pub fn on_packet(&mut self, lost: bool) {
        self.on_packets(1, u64::from(lost), u64::from(lost && !self.last_lost));
        self.last_lost = lost;
    }

    /// A packet that counts as lost arrived after all.
    pub fn on_late_arrival(&mut self) {
        let lost = (self.lost - 1.0).max(0.0);
        // Bursts as long as before: which one it was of is not known any more.
        self.bursts *= lost / self.lost.max(1.0);
        self.lost = lost;
    }

    /// What was lost so far will not be lost again: less is sent from now on than was too much.
    pub const fn forget(&mut self) {
        (self.lost, self.bursts, self.last_lost) = (0.0, 0.0, false);
    }

    /// Counts `packets` whose outcome is known, of which `lost` were lost, in `bursts` of
    /// neighbours. For those who have counters only. What redundancy repaired counts as lost: else
    /// redundancy that works would seem needless.
    pub fn on_packets(&mut self, packets: u64, lost: u64, bursts: u64) {
        let keep = libm::exp(-(packets as f64) / Self::MEMORY);
        self.packets = self.packets * keep + packets as f64;
        self.lost = self.lost * keep + lost.min(packets) as f64;
        self.bursts = self.bursts * keep + bursts.min(lost) as f64;
    }

    /// The share that is lost and the mean length of a burst, packets; `None` before enough was seen.
    pub fn fit(&self) -> Option<(f64, f64)> {
        let burst = if self.bursts > 0.0 { (self.lost / self.bursts).max(1.0) } else { 1.0 };
        (self.packets >= Self::ENOUGH).then(|| (self.lost / self.packets, burst))
    }
}

/// A path, or several that carry one stream of symbols, and what is sent over it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// The share of packets that is lost, 0 to 1.
    pub loss: f64,
    /// Mean length of a burst of losses, packets, 1 or more.
    pub burst: f64,
    /// Round-trip time.
    pub rtt: Duration,
    /// From when a packet that is lost leaves until its repeat is there, over whichever path that goes.
    pub repeat: Duration,
    /// How long after it was first sent a packet is still of use at the other end. `None`: for ever.
    pub deadline: Option<Duration>,
    /// Packets with data in a second.
    pub rate: f64,
}

impl Conditions {
    /// Packets that may stay lost, as a share, without any redundancy: a video frame is some ten
    /// packets, and 99 of 100 frames shall be whole.
    const BEARABLE: f64 = 1e-3;
    /// What redundancy aims at: large frames are forty packets, and 99 of 100 of these shall be whole too.
    const RESIDUAL: f64 = 2.5e-4;
    /// Redundancy in proportion to all packets, at most: beyond, the path is none to rely on.
    const MOST: f64 = 0.5;
    /// Packets that a repair covers at most.
    const WINDOW: f64 = 512.0;
    /// The last packets of a large frame leave after this share of the deadline: they wait for
    /// those before them, and so does what is sent again.
    const LEAVING: f64 = 0.2;
    /// Factor over the average at which packets may leave for a while: a frame that all others
    /// reference is some ten times as large as others, and a repair is to cover all of it.
    const BURSTS: f64 = 4.0;

    /// Several paths that one code spreads its symbols over, as one; `None` if there is none. Loss
    /// and burst by what each carries, the slowest round trip, the rates together, the earliest
    /// deadline. What a path loses and repeats in time does not count.
    pub fn merged(paths: &[Self]) -> Option<Self> {
        let rate: f64 = paths.iter().map(|path| path.rate).sum();
        let mean = |of: fn(&Self) -> f64, weight: fn(&Self) -> f64, other: f64| {
            let total: f64 = paths.iter().map(weight).sum();
            if total > 0.0 { paths.iter().map(|it| of(it) * weight(it)).sum::<f64>() / total } else { other }
        };
        Some(Self {
            loss: mean(Self::unrepeated, |it| it.rate, 0.0),
            burst: mean(|it| it.burst, |it| it.rate * it.unrepeated(), 1.0),
            rtt: paths.iter().map(|path| path.rtt).max()?,
            repeat: paths.iter().map(|path| path.repeat).max()?,
            deadline: paths.iter().filter_map(|path| path.deadline).min(),
            rate,
        })
    }

    /// The share that is lost on this path and for redundancy to make up for: none if retransmission is enough.
    fn unrepeated(&self) -> f64 {
        if self.lost_with_retransmission() > Self::BEARABLE { self.loss } else { 0.0 }
    }

    /// How many repairs by `code`, chosen for this path and others `together`, each packet over
    /// this path calls for: of all repairs as many as are to be expected to make up for losses of
    /// this path. Over all packets of all paths that is what `code` has. One at most.
    pub fn owed(&self, together: &Self, code: Code) -> f64 {
        let share = code.redundancy();
        let loss = if together.loss > 0.0 { self.unrepeated() / together.loss } else { 0.0 };
        (share / (1.0 - share) * loss).min(1.0)
    }

    /// The share that stays lost if nothing but retransmission helps: a repeat that is lost, too, is known to be a round
    /// trip and a quarter later (RFC 8985 §6.2). The mean over packets that leave at once and later ones, evenly up to a
    /// fifth of the deadline.
    pub fn lost_with_retransmission(&self) -> f64 {
        let Some(deadline) = self.deadline else { return 0.0 };
        let (first, next) = (self.repeat.as_secs_f64(), 1.25 * self.rtt.as_secs_f64().max(1e-6));
        let lost = |late: f64| {
            let left = deadline.as_secs_f64() * (1.0 - late);
            let turns = ((left - first) / next).floor().clamp(-2.0, 99.0) + 1.0;
            // Losses of one burst are behind it by then: turns are independent.
            libm::pow(self.loss, turns + 1.0)
        };
        [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0].map(|part| lost(part * Self::LEAVING)).iter().sum::<f64>() / 4.0
    }

    /// How long after a packet a repair may leave and still be of use to it.
    pub fn patience(&self) -> Duration {
        self.deadline.unwrap_or_default().saturating_sub(self.rtt / 2)
    }

    /// Packets, redundancy included, that leave in the time in which a repair may still be of use to the first of them.
    fn in_time(&self) -> f64 {
        self.patience().as_secs_f64() * self.rate
    }

    /// The redundancy with which as few stay lost as is aimed at: of `window` packets, repairs
    /// included, those that are lost in windows where more are lost than there are repairs.
    ///
    /// Bursts that come by chance and have geometric lengths, as the Gilbert model's are while
    /// losses are few, make the number of losses one of Pólya and Aeppli's (Johnson, Kemp, Kotz:
    /// Univariate Discrete Distributions, §9.7, for the recurrence).
    fn needed(&self, window: f64) -> f64 {
        let goes_on = 1.0 - 1.0 / self.burst.max(1.0);
        let bursts = window * self.loss * (1.0 - goes_on);
        let (mut before, mut chance) = (0.0, libm::exp(-bursts));
        let (mut unrepaired, mut repairs) = (window * self.loss, 0.0);
        while unrepaired > Self::RESIDUAL * window && repairs < Self::MOST * window {
            repairs += 1.0;
            let next = (2.0 * goes_on * (repairs - 1.0) + bursts * (1.0 - goes_on)) * chance
                - goes_on * goes_on * (repairs - 2.0) * before;
            (before, chance) = (chance, next / repairs);
            unrepaired -= repairs * chance;
        }
        repairs / window
    }

    /// The code that serves, none if retransmission does or nothing can.
    ///
    /// | where | code |
    /// |---|---|
    /// | retransmission leaves 1 packet in 1000 lost, or fewer; clean paths, long deadlines | none |
    /// | a packet takes as long as it may: a repair would come too late as well | none |
    /// | acknowledgements come within the deadline | Tetrys: they shrink its window, so that a repair is spent on what is missing, and bursts fit into it |
    /// | they do not | convolutional, over as many packets as a repair can still help |
    ///
    /// Blocks are never chosen: at the same redundancy they lose more in bursts, and their repairs come later.
    pub fn choose(&self) -> Option<Code> {
        let window = self.in_time().round().min(Self::WINDOW);
        if self.lost_with_retransmission() <= Self::BEARABLE || window < 1.0 {
            return None;
        }
        let (n, k) = ratio(self.needed(window).min(Self::MOST));
        if self.deadline.is_some_and(|deadline| self.rtt < deadline) {
            let m = (Self::BURSTS * window).max(f64::from(k)).min(Self::WINDOW) as u16;
            return Some(Code::Tetrys { n, k, m: m.next_power_of_two() });
        }
        Some(Code::Convolutional { n, k, m: window.max(f64::from(k)) as u16 })
    }
}

/// The smallest n, up to 20 or with one repair symbol, and k with at least this redundancy, and as
/// little more as may be.
fn ratio(share: f64) -> (u16, u16) {
    let share = share.clamp(0.005, 0.5);
    let single = ((1.0 - share) / share).floor().clamp(1.0, 199.0) as u16;
    let several = (2..=20u16).map(|n| (n, (f64::from(n) * (1.0 - share)).floor() as u16));
    let all = several.chain([(single + 1, single)]).filter(|&(n, k)| k > 0 && k < n);
    let excess = |&(n, k): &(u16, u16)| f64::from(n - k) / f64::from(n);
    all.min_by(|a, b| excess(a).total_cmp(&excess(b)).then(a.0.cmp(&b.0))).unwrap_or((2, 1))
}

/// Keeps a choice until the conditions are clearly others, so that a code is not changed with every loss.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Auto {
    chosen: Option<Code>,
    /// How often in a row the choice would have been less.
    less: u32,
}

impl Auto {
    /// Updates in a row that must ask for less before there is less.
    const PATIENCE: u32 = 5;
    /// How much more than the present redundancy is needed before there is more.
    const MARGIN: f64 = 1.1;

    /// What is in use.
    pub const fn chosen(&self) -> Option<Code> {
        self.chosen
    }

    /// Conditions as they are now; call it at even pauses, a round trip or longer. The new choice,
    /// if it changes: more at once, less only after a while.
    pub fn update(&mut self, conditions: &Conditions) -> Option<Option<Code>> {
        let wanted = conditions.choose();
        let share = |code: Option<Code>| code.map_or(0.0, Code::redundancy);
        let (now, then) = (share(self.chosen), share(wanted));
        self.less = if then < now { self.less + 1 } else { 0 };
        let change = then > now * Self::MARGIN || self.less >= Self::PATIENCE;
        if !change || wanted == self.chosen {
            return None;
        }
        (self.chosen, self.less) = (wanted, 0);
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// 1000 packets a second, to be there within `deadline`.
    fn path(loss: f64, burst: f64, rtt: u64, deadline: u64) -> Conditions {
        Conditions {
            loss,
            burst,
            rtt: ms(rtt),
            repeat: ms(rtt).mul_f64(1.75),
            deadline: Some(ms(deadline)),
            rate: 1000.0,
        }
    }

    fn chosen(conditions: &Conditions) -> String {
        conditions.choose().map_or_else(|| "none".into(), |code| code.to_string())
    }

    #[test]
    fn the_table_of_decisions() {
        for (loss, burst, rtt, deadline, code) in [
            // Clean, or nearly.
            (0.0, 1.0, 100, 150, "none"),
            (0.001, 1.0, 100, 150, "none"),
            // Time for two retransmissions.
            (0.03, 1.0, 40, 150, "none"),
            // For one, for which there is hardly time.
            (0.03, 1.0, 250, 500, "tetrys:17,16,512"),
            // The papers' path: none comes in time.
            (0.01, 1.0, 100, 150, "tetrys:25,24,512"),
            (0.05, 1.0, 100, 150, "tetrys:15,13,512"),
            (0.10, 1.0, 100, 150, "tetrys:19,15,512"),
            // The same loss in bursts needs more, and more time needs less.
            (0.05, 4.0, 100, 150, "tetrys:5,3,512"),
            (0.01, 1.0, 400, 600, "tetrys:44,43,512"),
            // Acknowledgements come too late to shrink a window.
            (0.05, 1.0, 200, 150, "convolutional:6,5,50"),
            // A repair would be late too.
            (0.05, 1.0, 320, 150, "none"),
            // Half of it is lost.
            (0.50, 1.0, 100, 150, "tetrys:2,1,512"),
        ] {
            assert_eq!(
                chosen(&path(loss, burst, rtt, deadline)),
                code,
                "loss {loss}, burst {burst}, {rtt} of {deadline} ms"
            );
        }
        let patient = Conditions { deadline: None, ..path(0.1, 1.0, 100, 0) };
        assert_eq!(chosen(&patient), "none", "retransmission is always in time");
        let slow = Conditions { rate: 4.0, ..path(0.1, 1.0, 100, 150) };
        assert_eq!(chosen(&slow), "none", "not one packet more leaves in time");
    }

    /// What it promises, tried on a Gilbert model: few packets stay lost.
    #[test]
    #[cfg_attr(miri, ignore = "eight million draws take hours")]
    fn repairs_suffice_for_nearly_all_windows() {
        let mut rng = braidcast_core::Rng::from_seed(1);
        for (loss, burst) in [(0.01, 1.0), (0.05, 1.0), (0.05, 3.0), (0.02, 6.0)] {
            let conditions = path(loss, burst, 100, 150);
            let share = conditions.choose().unwrap().redundancy();
            let leaves_bad = 1.0 / burst;
            let leaves_good = leaves_bad * loss / (1.0 - loss);
            let (mut bad, mut left, window) = (false, 0, 100);
            for _ in 0..20_000 {
                let mut lost = 0;
                for _ in 0..window {
                    bad = if bad { !rng.chance(leaves_bad) } else { rng.chance(leaves_good) };
                    lost += usize::from(bad);
                }
                left += if lost as f64 > share * window as f64 { lost } else { 0 };
            }
            let left = left as f64 / (20_000 * window) as f64;
            println!("loss {loss}, burst {burst}: {share:.3} leaves {left:.5}");
            assert!(left < 1.3 * Conditions::RESIDUAL, "loss {loss}, burst {burst}: {share} leaves {left}");
            assert!(left > 0.02 * Conditions::RESIDUAL, "loss {loss}, burst {burst}: {share} is more than it takes");
        }
    }

    #[test]
    fn ratios_are_enough_and_not_much_more() {
        for share in (1..=50).map(|it| f64::from(it) / 100.0) {
            let (n, k) = ratio(share);
            let has = f64::from(n - k) / f64::from(n);
            assert!(has >= share - 1e-9 && has <= share * 1.2, "{share}: ({n}, {k})");
        }
    }

    #[test]
    fn losses_are_measured_with_their_bursts() {
        let mut meter = LossMeter::default();
        assert_eq!(meter.fit(), None);
        (0..1000).for_each(|n| meter.on_packet(n % 50 < 2));
        let (loss, burst) = meter.fit().unwrap();
        assert!((0.03..0.05).contains(&loss) && (burst - 2.0).abs() < 0.05, "{loss} {burst}");
        let mut counters = LossMeter::default();
        (0..100).for_each(|_| counters.on_packets(50, 2, 1));
        let (loss, burst) = counters.fit().unwrap();
        assert!((0.039..0.041).contains(&loss) && (burst - 2.0).abs() < 1e-9, "{loss} {burst}");
        (0..40).for_each(|_| counters.on_late_arrival());
        let (half, burst) = counters.fit().unwrap();
        assert!((loss - half - 40.0 / 2000.0).abs() < 0.003 && (burst - 2.0).abs() < 1e-9, "{half} {burst}");
        (0..200).for_each(|_| counters.on_packets(100, 0, 0));
        assert!(counters.fit().unwrap().0 < 1e-4, "long ago");
    }

    #[test]
    fn paths_are_merged_by_what_they_carry() {
        let merged =
            Conditions::merged(&[path(0.1, 4.0, 50, 150), Conditions { rate: 3000.0, ..path(0.0, 1.0, 80, 150) }]);
        let merged = merged.unwrap();
        assert_eq!((merged.loss, merged.burst, merged.rtt, merged.rate), (0.025, 4.0, ms(80), 4000.0));
        assert_eq!(Conditions::merged(&[]), None);
    }

    #[test]
    fn each_path_owes_its_own_share_and_a_clean_one_nothing() {
        let (clean, lossy) = (Conditions { rate: 3000.0, ..path(0.0, 1.0, 100, 150) }, path(0.08, 1.0, 100, 150));
        let near = path(0.02, 1.0, 20, 150);
        let together = Conditions::merged(&[clean, lossy, near]).unwrap();
        assert_eq!((together.loss, together.rate), (0.016, 5000.0), "repeating is in time for the near one");
        let code = together.choose().unwrap();
        let owed = [clean, lossy, near].map(|it| it.owed(&together, code));
        assert_eq!((owed[0], owed[2]), (0.0, 0.0));
        let per_packet = code.redundancy() / (1.0 - code.redundancy());
        assert!((owed[1] * 1000.0 - per_packet * 5000.0).abs() < 1e-6, "{owed:?} by {code}");
        // Two codes, one for each of two such paths, take more than one over both, as bad luck of
        // one helps the other nothing.
        let (alone, both) = (lossy.needed(40.0), lossy.needed(80.0));
        println!("a code for each path {alone:.3}, one for both {both:.3}");
        assert!(alone > 1.15 * both, "{alone} {both}");
    }

    #[test]
    fn more_comes_at_once_and_less_only_after_a_while() {
        let mut auto = Auto::default();
        assert_eq!(auto.update(&path(0.0, 1.0, 100, 150)), None, "nothing costs nothing");
        let some = auto.update(&path(0.02, 1.0, 100, 150)).unwrap();
        assert!(some.is_some() && auto.chosen() == some);
        assert_eq!(auto.update(&path(0.0201, 1.0, 100, 150)), None, "as good as the same");
        assert!(auto.update(&path(0.1, 1.0, 100, 150)).is_some());
        let calm = path(0.0, 1.0, 100, 150);
        let changes: Vec<_> = (0..6).map(|_| auto.update(&calm)).collect();
        assert_eq!(changes, [None, None, None, None, Some(None), None]);
    }
}
