use crate::api::SackPath;
use braidcast_core::{Instant, PathId};
use core::time::Duration;

/// When a receiver answers with a SACK (RFC 9260 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AckPolicy {
    /// After how many packets with DATA a SACK goes out at the latest. 0 counts as 1.
    pub(crate) every: u32,
    /// How long DATA waits for its SACK at the longest; more than 500 ms counts as 500 ms.
    pub(crate) delay: Duration,
    /// Delayed acknowledgement for concurrent multipath transfer (Iyengar, Amer, Stewart, IEEE/ACM Transactions
    /// on Networking 14(5), 2006, §III-D): packets that come out of order, as they do whenever paths differ, are
    /// acknowledged as late as any others, and the SACK says how many it stands for.
    pub(crate) dac: bool,
    /// Over which path it goes back.
    pub(crate) path: SackPath,
}

impl AckPolicy {
    /// The longest `SACK.Delay` allowed (RFC 9260 §6.2).
    const MAX_DELAY: Duration = Duration::from_millis(500);
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self { every: 2, delay: Duration::from_millis(200), dac: false, path: SackPath::default() }
    }
}

/// `true` if a SACK is owed, by when, and over which path it goes.
#[derive(Debug)]
pub(crate) struct AckTimer {
    policy: AckPolicy,
    /// When the SACK goes out; `None`: none is owed.
    deadline: Option<Instant>,
    /// Paths that data came over, the one that a SACK went back over last at the end.
    paths: Vec<Source>,
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// Some DATA has come: the first is answered at once (RFC 9260 §5.1).
    started: bool,
    /// The path of the last packet with DATA.
    last: Option<PathId>,
    /// SACKs that went out; it wraps.
    turn: usize,
    /// The last one went back over a path that may lead nowhere: it goes over another one as well.
    doubtful: bool,
}

/// A path that data came over.
#[derive(Clone, Copy, Debug)]
struct Source {
    path: PathId,
    /// Data came over it since the last SACK.
    fresh: bool,
    /// When data came over it last.
    latest: Instant,
    /// When the data had come that a SACK went back over it for.
    answered: Instant,
}

impl AckTimer {
    /// A path that brought data within this time is a live one: longer than between two packets of a path that
    /// carries a hundredth of a stream, shorter than a frame waits.
    const OF_LATE: Duration = Duration::from_millis(100);
    /// A path that brings data has a SACK of its own this often, be another one quicker.
    const OWN_EACH: Duration = Duration::from_millis(100);
    /// Paths remembered at most; those beyond are forgotten, the most recently answered first.
    const MAX_PATHS: usize = 16;

    /// Nothing received yet.
    pub(crate) const fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            deadline: None,
            paths: Vec::new(),
            packets: 0,
            started: false,
            last: None,
            turn: 0,
            doubtful: false,
        }
    }

    /// A packet with DATA, I-DATA or FORWARD-TSN chunks has been worked through; call once per packet.
    ///
    /// `new_data`: some chunk was new; without any, the sender did not get the last SACK and one goes out at
    /// once. `gap_or_duplicate`: some chunk was out of order, filled a gap or came again. `immediate`: some
    /// chunk had the I bit (RFC 7053).
    pub(crate) fn on_data_packet(
        &mut self,
        now: Instant,
        path: PathId,
        new_data: bool,
        gap_or_duplicate: bool,
        immediate: bool,
    ) {
        match self.paths.iter_mut().find(|source| source.path == path) {
            Some(source) => (source.fresh, source.latest) = (true, now),
            None => {
                self.paths.truncate(Self::MAX_PATHS - 1);
                self.paths.insert(0, Source { path, fresh: true, latest: now, answered: now });
            }
        }
        self.last = Some(path);
        self.packets = self.packets.saturating_add(1);
        let at_once = immediate
            || !new_data
            || !self.started
            || self.packets >= self.policy.every
            || (gap_or_duplicate && !self.policy.dac);
        self.started = true;
        let deadline = if at_once { now } else { now + self.policy.delay.min(AckPolicy::MAX_DELAY) };
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
    }

    /// Asks for a SACK at once, to tell of a wider window.
    pub(crate) fn demand(&mut self, now: Instant) {
        self.deadline = Some(now);
    }

    /// The last SACK may be lost: once more, if there was one.
    pub(crate) fn repeat(&mut self, now: Instant) {
        if self.started {
            self.demand(now);
        }
    }

    /// Returns `true` if the SACK must go out by `now`.
    pub(crate) fn due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Returns `true` if a SACK is owed, be it later: it may go along with a packet that leaves anyway.
    pub(crate) const fn pending(&self) -> bool {
        self.deadline.is_some()
    }

    /// When [`due`](Self::due) becomes true.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Where the SACK goes: back over a path that data came over since the last one (RFC 9260 §6.4), and of several
    /// over the one that has waited longest. A sender can measure a path only by a SACK that comes back over it, and
    /// where packets alternate, "the last packet's path" would be the same one for ever (THESIS §6.2.4).
    pub(crate) fn path(&self) -> Option<PathId> {
        if self.policy.path == SackPath::Last {
            return self.last;
        }
        let fresh = self.paths.iter().find(|source| source.fresh);
        fresh.or(self.paths.last()).map(|source| source.path)
    }

    /// Of the paths that brought data of late, the first by `key`; one that has waited too long for a SACK of its own
    /// goes before them. `None`: `key` knows none of them, or the rule is another one.
    pub(crate) fn quickest<K: Ord>(&self, key: impl Fn(PathId) -> Option<K>) -> Option<PathId> {
        if self.policy.path != SackPath::Quickest {
            return None;
        }
        let latest = self.paths.iter().map(|source| source.latest).max()?;
        let owed = |it: &&Source| it.latest == latest && latest - it.answered >= Self::OWN_EACH;
        if let Some(source) = self.paths.iter().find(|it| owed(it) && key(it.path).is_some()) {
            return Some(source.path);
        }
        let live = self.paths.iter().filter(|it| latest - it.latest <= Self::OF_LATE);
        live.filter_map(|it| Some((key(it.path)?, it.path))).min_by(|a, b| a.0.cmp(&b.0)).map(|(_, path)| path)
    }

    /// What the SACK's flags report to a sender with DAC: the packets with DATA since the last SACK, 0..=3;
    /// 0 without DAC. usrsctp puts it into the two highest bits of the flags.
    pub(crate) fn dac_packets(&self) -> u8 {
        if self.policy.dac { self.packets.min(3) as u8 } else { 0 }
    }

    /// How many SACKs went out; it wraps.
    pub(crate) const fn turn(&self) -> usize {
        self.turn
    }

    /// Returns `true` if the last SACK is to go over another path as well.
    pub(crate) const fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// A SACK went out over `path`, which answers or not; one over a path that does not goes over another one as well,
    /// at once.
    pub(crate) fn sent(&mut self, now: Instant, path: PathId, answers: bool) {
        self.turn = self.turn.wrapping_add(1);
        self.doubtful = !answers && !self.doubtful;
        self.deadline = self.doubtful.then_some(now);
        self.packets = 0;
        for source in &mut self.paths {
            source.fresh = false;
        }
        if let Some(at) = self.paths.iter().position(|source| source.path == path) {
            self.paths[at].answered = self.paths[at].latest;
            self.paths[at..].rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A timer whose first DATA has been answered.
    fn running(policy: AckPolicy) -> AckTimer {
        let mut timer = AckTimer::new(policy);
        timer.on_data_packet(Instant::ZERO, PathId(0), true, false, false);
        assert!(timer.due(Instant::ZERO), "the first DATA is answered at once");
        timer.sent(Instant::ZERO, PathId(2), true);
        timer
    }

    #[test]
    fn an_answer_over_a_path_that_does_not_answer_goes_over_another_one_as_well() {
        let mut timer = running(AckPolicy::default());
        let now = Instant::from_millis(10);
        timer.on_data_packet(now, PathId(1), true, true, false);
        timer.sent(now, PathId(1), false);
        assert!(timer.due(now) && timer.is_doubtful());
        timer.sent(now, PathId(2), false);
        assert!(!timer.pending() && !timer.is_doubtful());
    }

    #[test]
    fn only_what_went_out_is_repeated() {
        let now = Instant::from_millis(10);
        let mut timer = AckTimer::new(AckPolicy::default());
        timer.repeat(now);
        assert!(!timer.pending(), "there is nothing to acknowledge");
        let mut timer = running(AckPolicy::default());
        assert!(!timer.pending());
        timer.repeat(now);
        assert!(timer.due(now));
    }

    #[test]
    fn every_second_packet_is_acknowledged_over_its_path() {
        let mut timer = running(AckPolicy::default());
        let now = Instant::from_millis(10);
        timer.on_data_packet(now, PathId(1), true, false, false);
        assert!(!timer.due(now) && timer.pending());
        timer.on_data_packet(now + MS, PathId(2), true, false, false);
        assert!(timer.due(now + MS));
        assert_eq!(timer.path(), Some(PathId(2)));
        timer.sent(Instant::ZERO, PathId(2), true);
        assert_eq!(timer.poll_timeout(), None);
    }

    #[test]
    fn a_lone_packet_waits_from_its_own_arrival_and_never_past_500_ms() {
        let mut timer =
            running(AckPolicy { every: 9, delay: Duration::from_secs(5), dac: false, ..AckPolicy::default() });
        let now = Instant::from_millis(10);
        timer.on_data_packet(now, PathId(0), true, false, false);
        timer.on_data_packet(now + 50 * MS, PathId(0), true, false, false);
        assert_eq!(timer.poll_timeout(), Some(now + 500 * MS));
        assert!(timer.due(now + 500 * MS));
    }

    #[test]
    fn gaps_duplicates_and_the_i_bit_are_answered_at_once() {
        for (new_data, gap_or_duplicate, immediate) in [(true, true, false), (false, true, false), (true, false, true)]
        {
            let mut timer = running(AckPolicy::default());
            timer.on_data_packet(Instant::from_millis(1), PathId(0), new_data, gap_or_duplicate, immediate);
            assert!(timer.due(Instant::from_millis(1)));
        }
    }

    #[test]
    fn the_quickest_live_path_is_answered_over_and_each_other_one_now_and_then() {
        let mut timer = running(AckPolicy { path: SackPath::Quickest, ..AckPolicy::default() });
        let quickest = |timer: &AckTimer| timer.quickest(|PathId(id)| (id != 3).then_some(10 - id));
        let mut over = Vec::new();
        for n in 1..=20 {
            let now = Instant::from_millis(10 * n);
            // Path 2 is the quickest and brings nothing after 100 ms; 3 is not known.
            let paths: &[u16] = if n <= 10 { &[1, 2, 3, 0] } else { &[1, 3, 0] };
            for &path in paths {
                timer.on_data_packet(now, PathId(path), true, false, false);
            }
            let path = quickest(&timer).unwrap();
            over.push(path.0);
            timer.sent(Instant::ZERO, path, true);
        }
        assert_eq!(over, [2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0]);
        let rotating = running(AckPolicy::default());
        assert_eq!(quickest(&rotating), None);
    }

    #[test]
    fn with_dac_reordering_waits_and_the_sack_counts_packets() {
        let mut timer = running(AckPolicy { every: 3, dac: true, ..AckPolicy::default() });
        let now = Instant::from_millis(1);
        timer.on_data_packet(now, PathId(0), true, true, false);
        timer.on_data_packet(now, PathId(1), true, true, false);
        assert!(!timer.due(now));
        assert_eq!(timer.dac_packets(), 2);
        timer.on_data_packet(now, PathId(0), true, true, false);
        assert!(timer.due(now));
        assert_eq!(timer.dac_packets(), 3);
        timer.sent(Instant::ZERO, PathId(2), true);
        timer.on_data_packet(now, PathId(0), false, true, false);
        assert!(timer.due(now), "a packet of duplicates alone means that a SACK was lost");
    }
}
