use braidcast_core::Instant;
use core::time::Duration;

/// Packetization layer path MTU discovery (RFC 8899): which size to probe, and when. Probes are the
/// caller's, as a transport has them: a padded HEARTBEAT of SCTP (RFC 8899 §6.2), a padded Sync of
/// DCCP (RFC 4340 §14.1).
///
/// Starts from a size that every path carries and tries sizes that real links have, largest first: one round trip
/// finds the usual case. ICMP is not used. Sizes are bytes of packets of the transport, headers included.
#[derive(Debug)]
pub struct PathMtu {
    base: usize,
    max: usize,
    current: usize,
    /// Largest size still to try, if any.
    candidate: Option<usize>,
    attempts: u32,
    timer: Option<Instant>,
    outstanding: bool,
    /// Timeouts in a row with full packets out.
    black_holes: u32,
    /// Of those, the ones before which a small packet was answered since the one before.
    alive: u32,
    /// A small packet was answered since the last timeout.
    small_answered: bool,
    /// The largest packet that got through since the first of those timeouts, bytes.
    delivered: usize,
    /// When the last timeout was.
    timed_out: Option<Instant>,
    /// Packets that were lost since one as large as any of them got through.
    streak: Streak,
    /// Probes of the base size failed, and nobody has asked yet.
    narrow_news: bool,
}

impl PathMtu {
    /// MAX_PROBES (RFC 8899 §5.1.2).
    const MAX_PROBES: u32 = 3;
    /// PMTU_RAISE_TIMER (RFC 8899 §5.1.1).
    const RAISE: Duration = Duration::from_secs(600);
    /// The same below the base, where it costs much.
    const RAISE_NARROW: Duration = Duration::from_secs(30);
    /// Packets at most this many bytes below the present size count as nearly full.
    const NEARLY: usize = 100;
    /// Timeouts so far apart have nothing to do with each other.
    const APART: Duration = Duration::from_secs(10);
    /// Packet sizes behind common links: Ethernet, PPPoE, common tunnels, IPv6 minimum; over UDP and IPv4 or IPv6.
    const SIZES: [usize; 15] = [8972, 4352, 1472, 1452, 1444, 1424, 1400, 1372, 1280, 1200, 1152, 1024, 896, 768, 640];
    /// The smallest size: what is left of the 576 bytes that every IPv4 host takes (RFC 1122
    /// §3.3.3) behind the longest IPv4 header and a UDP header (MIN_PLPMTU, RFC 8899 §5.1.2).
    pub const MIN: usize = 508;

    /// A path that carries `base` bytes, and of which more than `max` is not wanted.
    pub const fn new(base: usize, max: usize) -> Self {
        Self {
            base,
            max,
            current: base,
            candidate: None,
            attempts: 0,
            timer: None,
            outstanding: false,
            black_holes: 0,
            alive: 0,
            small_answered: false,
            delivered: 0,
            timed_out: None,
            streak: Streak::NONE,
            narrow_news: false,
        }
    }

    /// The present size is being probed.
    fn is_doubting(&self) -> bool {
        self.candidate == Some(self.current)
    }

    /// Base and largest size are the same: that is what is sent, whatever becomes of it.
    const fn is_fixed(&self) -> bool {
        self.base == self.max
    }

    /// Returns `true` if packets of the base size get lost, so that smaller ones are sent.
    pub const fn is_narrow(&self) -> bool {
        self.current < self.base
    }

    /// Takes `size` for one that gets through, between the base and the largest; to be [confirmed](Self::confirm).
    pub fn assume(&mut self, size: usize) {
        self.current = size.min(self.max).max(self.base);
    }

    /// The largest packet known to get through.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// Returns `true` if a probe is out or due.
    pub const fn is_searching(&self) -> bool {
        self.candidate.is_some()
    }

    /// When [`due`](Self::due) is to be asked again; `None` before [`start`](Self::start).
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The path is confirmed: search.
    pub fn start(&mut self, now: Instant) {
        self.attempts = 0;
        self.outstanding = false;
        // Below the base the path is a strange one: look for what it carries from below the size that failed.
        let first = if self.is_narrow() { self.base } else { self.max };
        self.candidate = (first > self.current).then_some(first);
        self.timer = Some(if self.candidate.is_some() { now } else { now + self.pause() });
    }

    /// Doubts that the present size still gets through (RFC 8899 §4.3): probes it, and falls back
    /// to the base if it does not, or from the base to [`MIN`](Self::MIN), from where the search
    /// goes on below what failed; where small packets are answered, at once to `MIN`. For
    /// transports that cannot tell by [`on_timeout`](Self::on_timeout).
    pub const fn confirm(&mut self, now: Instant) {
        if self.candidate.is_none() && self.current > Self::MIN && !self.is_fixed() {
            self.attempts = 0;
            self.outstanding = false;
            self.candidate = Some(self.current);
            self.timer = Some(now);
        }
    }

    /// Nothing was ever heard of packets of the present size, and something was lost: falls to
    /// [`MIN`](Self::MIN), and searches from there.
    pub fn distrust(&mut self, now: Instant) {
        if !self.is_fixed() && self.current > Self::MIN {
            self.current = Self::MIN;
            self.start(now);
        }
    }

    /// The size to probe now, if the timer says so.
    pub fn due(&mut self, now: Instant) -> Option<usize> {
        if self.timer.is_none_or(|timer| timer > now) {
            return None;
        }
        if self.candidate.is_none() {
            self.start(now);
        } else if self.outstanding {
            self.outstanding = false;
            self.attempts += 1;
            if self.attempts >= Self::MAX_PROBES && self.is_doubting() {
                // What has just failed three times need not be tried again at once.
                if core::mem::take(&mut self.small_answered) {
                    // No outage: small packets are all that can be trusted until more is found to get through.
                    self.current = Self::MIN;
                    self.start(now);
                } else {
                    self.current = if self.current > self.base { self.base } else { Self::MIN };
                    self.next_smaller();
                }
            } else if self.attempts >= Self::MAX_PROBES {
                self.next_smaller();
            }
        }
        if self.candidate.is_none() {
            self.timer = Some(now + self.pause());
        }
        self.candidate
    }

    /// How long a search that is over rests.
    const fn pause(&self) -> Duration {
        if self.is_narrow() { Self::RAISE_NARROW } else { Self::RAISE }
    }

    fn next_smaller(&mut self) {
        self.attempts = 0;
        self.narrow_news |= self.candidate == Some(self.base) && self.is_narrow();
        self.candidate = self
            .candidate
            .and_then(|failed| Self::SIZES.into_iter().find(|&size| size < failed))
            .filter(|&size| size > self.current);
    }

    /// The probe that is out says nothing, as nothing else came through either: it is to be repeated, and not counted.
    pub const fn discount(&mut self) {
        self.outstanding = false;
    }

    /// A probe left; it counts as failed after `timeout`.
    pub fn sent(&mut self, now: Instant, timeout: Duration) {
        self.outstanding = true;
        self.timer = Some(now + timeout);
    }

    /// A probe of `size` bytes was acknowledged.
    pub fn answered(&mut self, now: Instant, size: usize) {
        if size <= self.max && size >= self.current {
            let was_narrow = self.is_narrow();
            self.current = size;
            self.candidate = None;
            self.outstanding = false;
            self.timer = Some(now + self.pause());
            if was_narrow && !self.is_narrow() {
                self.start(now);
            }
        }
        (self.black_holes, self.alive) = (0, 0);
    }

    /// A packet much smaller than the base got through and was answered.
    pub const fn on_small_answered(&mut self) {
        self.small_answered = true;
    }

    /// Returns `true` if probes of the base size have failed since this was last asked.
    pub const fn take_narrow_news(&mut self) -> bool {
        core::mem::replace(&mut self.narrow_news, false)
    }

    /// A packet of `size` bytes got through; small ones say nothing about full packets.
    pub fn on_delivered(&mut self, size: usize) {
        self.delivered = self.delivered.max(size);
        self.streak.on_delivered(size);
        if size + Self::NEARLY < self.current {
            return;
        }
        (self.black_holes, self.alive) = (0, 0);
        if self.is_doubting() {
            (self.candidate, self.outstanding) = (None, false);
        }
    }

    /// A packet of `size` bytes got lost while others arrived, so that no timer runs out. After
    /// some of them, none as large having got through, the MTU falls if smaller ones did meanwhile;
    /// else the present size is [probed](Self::confirm).
    pub fn on_lost(&mut self, now: Instant, size: usize) {
        if size <= Self::MIN || self.is_fixed() || !self.streak.on_lost(size) {
            return;
        }
        let streak = core::mem::replace(&mut self.streak, Streak::NONE);
        if streak.smaller < Streak::LONG / 2 {
            if !self.is_doubting() {
                self.candidate = None; // No use to search above while the present size is in doubt.
            }
            self.confirm(now);
        } else if self.current > streak.delivered.max(Self::MIN) {
            self.current = streak.delivered.max(Self::MIN);
            self.start(now);
        }
    }

    /// A timeout; full packets may have stopped getting through (RFC 8899 §4.3). Whether the MTU
    /// fell. If small packets were answered between two timeouts it is not an outage, and
    /// [`MIN`](Self::MIN) is all that can be trusted, or what got through meanwhile; after three
    /// timeouts without answers it is the base. From there the search begins anew, which takes a
    /// round trip or two where nothing was wrong.
    pub fn on_timeout(&mut self, now: Instant) -> bool {
        if self.timed_out.replace(now).is_some_and(|at| now.since(at) > Self::APART) {
            (self.black_holes, self.alive) = (0, 0);
        }
        if self.black_holes == 0 {
            self.delivered = 0;
        }
        self.black_holes += 1;
        self.alive += core::mem::take(&mut self.small_answered) as u32;
        let least = if self.is_fixed() {
            return false;
        } else if self.alive >= 2 {
            self.delivered.max(Self::MIN)
        } else if self.black_holes >= Self::MAX_PROBES {
            self.base
        } else {
            return false;
        };
        if self.current <= least {
            return false;
        }
        (self.black_holes, self.alive) = (0, 0);
        self.current = least;
        self.start(now);
        true
    }
}

/// Packets that got lost since one as large as any of them got through.
#[derive(Clone, Copy, Debug)]
struct Streak {
    lost: u32,
    /// The smallest of them, bytes.
    least: usize,
    /// Smaller packets that got through meanwhile.
    smaller: u32,
    /// The largest of those, bytes.
    delivered: usize,
}

impl Streak {
    const NONE: Self = Self { lost: 0, least: usize::MAX, smaller: 0, delivered: 0 };
    /// This number is not a coincidence.
    const LONG: u32 = 12;

    /// Returns `true` if the streak is a long one now.
    fn on_lost(&mut self, size: usize) -> bool {
        self.lost += 1;
        self.least = self.least.min(size);
        self.lost >= Self::LONG
    }

    fn on_delivered(&mut self, size: usize) {
        if size >= self.least {
            *self = Self::NONE;
        } else if self.lost > 0 {
            self.smaller += 1;
            self.delivered = self.delivered.max(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search over a path that carries `limit` bytes; the sizes tried.
    fn search(limit: usize, max: usize) -> (usize, Vec<usize>) {
        let mut pmtu = PathMtu::new(1200, max);
        let (mut now, mut tried) = (Instant::ZERO, Vec::new());
        pmtu.start(now);
        while now < Instant::from_millis(60_000) {
            if let Some(size) = pmtu.due(now) {
                tried.push(size);
                pmtu.sent(now, Duration::from_secs(1));
                if size <= limit {
                    pmtu.answered(now, size);
                }
            }
            now = pmtu.poll_timeout().unwrap();
        }
        (pmtu.current(), tried)
    }

    #[test]
    fn the_usual_case_takes_one_probe() {
        assert_eq!(search(1472, 1472), (1472, vec![1472]));
    }

    #[test]
    fn a_tunnel_is_found_by_trying_each_size_three_times() {
        assert_eq!(search(1430, 1472), (1424, vec![1472, 1472, 1472, 1452, 1452, 1452, 1444, 1444, 1444, 1424]));
        assert_eq!(search(1200, 1280), (1200, vec![1280, 1280, 1280]));
    }

    #[test]
    fn a_black_hole_brings_the_base_back() {
        let mut pmtu = PathMtu::new(1200, 1472);
        pmtu.start(Instant::ZERO);
        pmtu.answered(Instant::ZERO, 1472);
        assert!(!pmtu.on_timeout(Instant::ZERO) && !pmtu.on_timeout(Instant::ZERO));
        assert!(pmtu.on_timeout(Instant::ZERO));
        assert_eq!(pmtu.current(), 1200);
    }

    #[test]
    fn where_small_packets_alone_are_answered_two_timeouts_tell() {
        let mut pmtu = PathMtu::new(1200, 1472);
        pmtu.answered(Instant::ZERO, 1472);
        let mut timeout = |answered: bool| {
            if answered {
                pmtu.on_small_answered();
            }
            pmtu.on_timeout(Instant::ZERO).then(|| pmtu.current())
        };
        assert_eq!([true, true].map(&mut timeout), [None, Some(508)]);
        assert!(pmtu.is_narrow() && !pmtu.take_narrow_news(), "perhaps more gets through");
        pmtu.answered(Instant::ZERO, 1200);
        assert_eq!([false; 5].map(|answered| pmtu.on_timeout(Instant::ZERO) || answered), [false; 5], "an outage");
    }

    #[test]
    fn where_large_packets_alone_are_lost_the_size_falls_to_what_gets_through() {
        let now = Instant::ZERO;
        let found = || {
            let mut pmtu = PathMtu::new(1200, 1472);
            pmtu.answered(now, 1472);
            pmtu
        };
        let mut pmtu = found();
        for n in 0..30 {
            pmtu.on_lost(now, if n % 3 == 0 { 800 } else { 1400 });
            if n % 5 == 4 {
                pmtu.on_delivered(1000);
            }
        }
        assert!(!pmtu.is_searching(), "as large ones get through as get lost");
        for _ in 0..12 {
            pmtu.on_delivered(600);
            pmtu.on_lost(now, 900);
        }
        assert_eq!((pmtu.current(), pmtu.due(now)), (600, Some(1200)));
        let mut pmtu = found();
        (0..12).for_each(|_| pmtu.on_lost(now, 1400));
        assert_eq!((pmtu.current(), pmtu.due(now)), (1472, Some(1472)), "perhaps all is lost");
        pmtu.on_delivered(1400);
        assert!(!pmtu.is_searching(), "large packets do get through");
    }

    #[test]
    fn below_the_base_the_largest_size_is_searched_that_gets_through() {
        for (limit, found) in [(1199, 1152), (1000, 896), (700, 640), (600, 508), (1300, 1280)] {
            let mut pmtu = PathMtu::new(1200, 1472);
            let mut now = Instant::ZERO;
            for _ in 0..3 {
                pmtu.on_small_answered();
                pmtu.on_timeout(now);
            }
            assert_eq!(pmtu.current(), 508);
            while now < Instant::from_millis(60_000) {
                if let Some(size) = pmtu.due(now) {
                    pmtu.sent(now, Duration::from_secs(1));
                    if size <= limit {
                        pmtu.answered(now, size);
                    }
                }
                now = pmtu.poll_timeout().unwrap();
            }
            assert_eq!((pmtu.current(), pmtu.take_narrow_news()), (found, found < 1200), "{limit}");
        }
    }

    #[test]
    fn a_size_in_doubt_is_probed_and_given_up_if_it_gets_through_no_more() {
        let doubt = |answer: bool| {
            let mut pmtu = PathMtu::new(1200, 1472);
            let mut now = Instant::ZERO;
            pmtu.assume(9000);
            pmtu.confirm(now);
            let mut tried = Vec::new();
            while let Some(size) = pmtu.due(now).filter(|_| tried.len() < 6) {
                tried.push(size);
                pmtu.sent(now, Duration::from_secs(1));
                if answer {
                    pmtu.answered(now, size);
                    break;
                }
                now += Duration::from_secs(1);
            }
            (pmtu.current(), tried)
        };
        assert_eq!(doubt(true), (1472, vec![1472]));
        assert_eq!(doubt(false), (1200, vec![1472, 1472, 1472, 1452, 1452, 1452]), "then the search goes on below");
        let mut pmtu = PathMtu::new(1480, 1480);
        pmtu.confirm(Instant::ZERO);
        for _ in 0..9 {
            pmtu.on_small_answered();
            assert!(!pmtu.on_timeout(Instant::ZERO));
        }
        assert!(!pmtu.is_searching(), "a fixed size stays");
    }
}
