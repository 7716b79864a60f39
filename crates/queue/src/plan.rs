//! The ways that messages that wait would go if all paths carried what they can: laid over them in their order, by when
//! each path's next byte arrives (decision 41).

/// The place of a message in its queue, until that changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(pub(crate) usize);

/// What a path takes a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planned {
    /// The message that was taken out and is not sent to its end.
    UnderWay,
    /// One that waits.
    Waiting(Place),
}

/// One path, as a plan sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Way {
    /// Until a byte arrives that is handed to it now, behind all that stands in its queue, s; at least `least`.
    pub first: f64,
    /// The same with an empty queue, s.
    pub least: f64,
    /// Bytes that it delivers in a second, above 0.
    pub rate: f64,
    /// How much later than a packet that arrives the repeat of one that is lost is there, s.
    pub again: f64,
}

impl Way {
    /// How much a path's own delay counts when a message is shared out. 0: each share ends at the same moment, so that
    /// near paths are kept full, and the next large frame finds them so. 1: each path is busy for the same part of
    /// the time that a message has over it, so that the end of each comes over the far path. Of 0, 0.3, 0.5 and 1
    /// this one shows most (decision 41).
    const EVEN: f64 = 0.5;

    /// A path that takes `first` seconds until a byte arrives, `least` of them without its queue, at `rate` bytes in a
    /// second. What it loses is not repeated later than it would have been there.
    pub const fn new(first: f64, least: f64, rate: f64) -> Self {
        Self { first: first.max(least), least, rate: rate.max(1.0), again: 0.0 }
    }

    /// The same path, where the repeat of a packet that is lost takes `again` seconds more.
    #[must_use]
    pub const fn repeating(self, again: f64) -> Self {
        Self { again, ..self }
    }

    /// When the share of a message that has `within` seconds begins, s.
    fn from(&self) -> f64 {
        Self::EVEN * self.least
    }

    /// The time from there to the end of `within`, s; to where what is lost can be repeated until then, if that is
    /// asked for.
    fn span(&self, within: f64, to_repeat: bool) -> f64 {
        (within - if to_repeat { self.again } else { 0.0 } - self.from()).max(0.0)
    }
}

/// The paths that a plan lays messages over, in any order.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    ways: Vec<Way>,
    /// The same behind what was laid over them.
    laid: Vec<Way>,
}

impl Ways {
    /// Forgets all paths.
    pub fn clear(&mut self) {
        self.ways.clear();
    }

    /// One more path.
    pub fn push(&mut self, way: Way) {
        self.ways.push(way);
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.ways.len()
    }

    /// Returns `true` if there is none.
    pub const fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Begins a plan: nothing is laid.
    pub(crate) fn begin(&mut self) {
        self.laid.clone_from(&self.ways);
    }

    /// Lays `bytes` that have `within` seconds over all of them. Returns which part of their time it takes: above 1, it
    /// is late.
    pub(crate) fn lay(&mut self, bytes: f64, within: f64) -> f64 {
        let level = self.level(bytes, within, false);
        self.fill(level, within, false);
        level
    }

    /// Lays `bytes` over all of them such that whatever is lost of them can be repeated `within` seconds. Returns
    /// `false`, and lays nothing, if they cannot carry it so.
    pub(crate) fn lay_to_repeat(&mut self, bytes: f64, within: f64) -> bool {
        let level = self.level(bytes, within, true);
        if level <= 1.0 {
            self.fill(level, within, true);
        }
        level <= 1.0
    }

    /// Has each path be busy up to `level` of its time.
    fn fill(&mut self, level: f64, within: f64, to_repeat: bool) {
        for way in &mut self.laid {
            way.first = way.first.max(way.from() + level.min(Self::LATE) * way.span(within, to_repeat));
        }
    }

    /// What is late by more than this is not told apart.
    const LATE: f64 = 64.0;

    /// Lays `bytes` over the path over which they arrive first.
    pub(crate) fn lay_first(&mut self, bytes: f64) {
        if let Some(way) = self.laid.iter_mut().min_by(|a, b| a.first.total_cmp(&b.first)) {
            way.first += bytes / way.rate;
        }
    }

    /// How much later the repeat of what the path `place` loses is there, s.
    pub(crate) fn again(&self, place: usize) -> f64 {
        self.laid[place].again
    }

    /// When a byte would arrive that is handed to the path `place` behind what was laid, s.
    pub(crate) fn first(&self, place: usize) -> f64 {
        self.laid[place].first
    }

    /// Bytes that the path `place` carries while its first arrival moves on from `before`.
    pub(crate) fn share_since(&self, place: usize, before: f64) -> f64 {
        (self.laid[place].first - before) * self.laid[place].rate
    }

    /// The part of the time at which all paths together have carried `bytes`. What they carry by then is convex and
    /// made of straight pieces, so that Newton's steps from above reach it in as many as there are paths.
    fn level(&self, bytes: f64, within: f64, to_repeat: bool) -> f64 {
        if bytes <= 0.0 {
            return 0.0;
        }
        let mut level = f64::INFINITY;
        loop {
            let span = |way: &Way| way.span(within, to_repeat);
            let takes = |way: &&Way| span(way) > 0.0 && way.from() + level * span(way) > way.first;
            let (mut held, mut rate) = (bytes, 0.0);
            for way in self.laid.iter().filter(takes) {
                held += way.rate * (way.first - way.from());
                rate += way.rate * span(way);
            }
            if rate == 0.0 {
                return f64::INFINITY;
            }
            let next = held / rate;
            if next >= level {
                return level;
            }
            level = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;

    fn ways(all: &[(f64, f64, f64)]) -> Ways {
        let mut ways = Ways::default();
        all.iter().for_each(|&(first, least, rate)| ways.push(Way::new(first, least, rate)));
        ways.begin();
        ways
    }

    #[test]
    fn what_has_little_time_goes_over_the_near_path_and_what_has_more_over_both() {
        let both = [(0.05, 0.05, 100_000.0), (0.25, 0.25, 100_000.0)];
        let mut it = ways(&both);
        assert!(it.lay(5_000.0, 0.2) < 1.0);
        assert_eq!(it.share_since(1, 0.25), 0.0, "it would be late there");
        let mut it = ways(&both);
        assert!(it.lay(40_000.0, 0.5) < 1.0);
        let [near, far] = [it.share_since(0, 0.05), it.share_since(1, 0.25)];
        assert!((near + far - 40_000.0).abs() < 1.0, "{near} {far}");
        assert!(near > far && far > 5_000.0, "{near} {far}");
    }

    #[test]
    fn what_does_not_fit_is_late() {
        let mut it = ways(&[(0.1, 0.1, 10_000.0)]);
        assert_eq!(it.lay(2_000.0, 0.3), 1.0);
        assert!(it.lay(10.0, 0.3) > 1.0, "the path is full until then");
        assert!(ways(&[(0.1, 0.1, 10_000.0)]).lay(10.0, 0.0).is_infinite());
        assert!(ways(&[]).lay(10.0, 1.0).is_infinite());
    }

    #[test]
    fn what_others_need_leaves_time_to_repeat_it() {
        let far = Way::new(0.25, 0.25, 100_000.0).repeating(0.1);
        let mut it = Ways { ways: vec![Way::new(0.05, 0.05, 100_000.0), far], ..Ways::default() };
        it.begin();
        assert!(it.lay_to_repeat(40_000.0, 0.5));
        assert!(it.first(1) <= 0.4, "{}", it.first(1));
        it.begin();
        assert!(!it.lay_to_repeat(65_000.0, 0.5), "45 kB and 15 kB are there in time");
        assert_eq!([it.first(0), it.first(1)], [0.05, 0.25], "nothing is laid");
        assert!(it.lay(65_000.0, 0.5) < 1.0);
    }

    #[test]
    fn small_messages_take_the_quickest_way() {
        let mut it = ways(&[(0.3, 0.1, 1_000.0), (0.2, 0.2, 1_000.0)]);
        it.lay_first(200.0);
        assert_eq!([it.first(0), it.first(1)], [0.3, 0.4]);
    }

    /// Messages that are there now and due in their order can all be in time exactly if for each of them the paths
    /// carry by then what is due until then. If that holds with a tenth to spare, the plan has all of them in time.
    #[test]
    fn nearly_all_that_can_be_in_time_is() {
        let mut rng = Rng::from_seed(41);
        let (mut possible, mut planned) = (0, 0);
        while possible < 1000 {
            let all: Vec<(f64, f64, f64)> = (0..2 + rng.below(3))
                .map(|_| {
                    let least = 0.01 + 0.3 * rng.f64();
                    (least + 0.2 * rng.f64(), least, 30_000.0 + 270_000.0 * rng.f64())
                })
                .collect();
            let messages: Vec<(f64, f64)> =
                (0..12).map(|n| (2_000.0 + 25_000.0 * rng.f64(), 0.2 + 0.04 * f64::from(n))).collect();
            let carried = |by: f64| all.iter().map(|&(first, _, rate)| rate * (by - first).max(0.0)).sum::<f64>();
            let fits = (1..=messages.len()).all(|n| {
                let bytes: f64 = messages[..n].iter().map(|it| it.0).sum();
                1.1 * bytes <= carried(messages[n - 1].1)
            });
            if !fits {
                continue;
            }
            possible += 1;
            let mut it = ways(&all);
            planned += i32::from(messages.iter().all(|&(bytes, within)| it.lay(bytes, within) <= 1.0));
        }
        assert!(planned >= 950, "{planned} of {possible}");
    }
}
