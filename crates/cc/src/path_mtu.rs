use braidcast_core::Instant;
use core::time::Duration;

/// Packetization layer path MTU discovery (RFC 8899): which size to probe, and when. Probes are the caller's, as a transport has
/// them: a padded HEARTBEAT of SCTP (RFC 8899 §6.2), a padded Sync of DCCP (RFC 4340 §14.1).
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
    /// Timeouts in a row with full packets out, while small ones get through.
    black_holes: u32,
}

impl PathMtu {
    /// MAX_PROBES (RFC 8899 §5.1.2).
    const MAX_PROBES: u32 = 3;
    /// PMTU_RAISE_TIMER (RFC 8899 §5.1.1).
    const RAISE: Duration = Duration::from_secs(600);
    /// Packet sizes behind common links: Ethernet, PPPoE, common tunnels, IPv6 minimum; over UDP and IPv4 or IPv6.
    const SIZES: [usize; 9] = [8972, 4352, 1472, 1452, 1444, 1424, 1400, 1372, 1280];

    /// A path that carries `base` bytes, and of which more than `max` is not wanted.
    pub const fn new(base: usize, max: usize) -> Self {
        Self { base, max, current: base, candidate: None, attempts: 0, timer: None, outstanding: false, black_holes: 0 }
    }

    /// The largest packet known to get through.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// Whether a probe is out or due.
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
        self.candidate = (self.max > self.current).then_some(self.max);
        self.timer = Some(if self.candidate.is_some() { now } else { now + Self::RAISE });
    }

    /// Doubts that the present size still gets through (RFC 8899 §4.3): probes it, and falls back to the base, from where
    /// the search begins anew, if it does not. For transports that cannot tell by [`on_timeout`](Self::on_timeout).
    pub const fn confirm(&mut self, now: Instant) {
        if self.candidate.is_none() && self.current > self.base {
            self.attempts = 0;
            self.outstanding = false;
            self.candidate = Some(self.current);
            self.timer = Some(now);
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
            if self.attempts >= Self::MAX_PROBES && self.candidate == Some(self.current) {
                self.fall_back(now);
            } else if self.attempts >= Self::MAX_PROBES {
                self.next_smaller();
            }
        }
        if self.candidate.is_none() {
            self.timer = Some(now + Self::RAISE);
        }
        self.candidate
    }

    fn next_smaller(&mut self) {
        self.attempts = 0;
        self.candidate = self
            .candidate
            .and_then(|failed| Self::SIZES.into_iter().find(|&size| size < failed))
            .filter(|&size| size > self.current);
    }

    /// A probe left; it counts as failed after `timeout`.
    pub fn sent(&mut self, now: Instant, timeout: Duration) {
        self.outstanding = true;
        self.timer = Some(now + timeout);
    }

    /// A probe of `size` bytes was acknowledged.
    pub fn answered(&mut self, now: Instant, size: usize) {
        if size <= self.max && size >= self.current {
            self.current = size;
            self.candidate = None;
            self.outstanding = false;
            self.timer = Some(now + Self::RAISE);
        }
        self.black_holes = 0;
    }

    /// A packet of `size` bytes got through; small ones say nothing about full packets.
    pub const fn on_delivered(&mut self, size: usize) {
        if size > self.base {
            self.black_holes = 0;
        }
    }

    /// A timeout; full packets may have stopped getting through (RFC 8899 §4.3). Whether the MTU fell back to its base,
    /// from where the search begins anew.
    pub fn on_timeout(&mut self, now: Instant) -> bool {
        self.black_holes += 1;
        let falls_back = self.black_holes >= Self::MAX_PROBES && self.current > self.base;
        if falls_back {
            self.fall_back(now);
        }
        falls_back
    }

    fn fall_back(&mut self, now: Instant) {
        self.black_holes = 0;
        self.current = self.base;
        self.start(now);
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
    fn a_size_in_doubt_is_probed_and_given_up_if_it_gets_through_no_more() {
        let doubt = |answer: bool| {
            let mut pmtu = PathMtu::new(1200, 1472);
            let mut now = Instant::ZERO;
            pmtu.start(now);
            pmtu.answered(now, 1472);
            pmtu.confirm(now);
            let mut tried = Vec::new();
            while let Some(size) = pmtu.due(now).filter(|&size| size == 1472 && tried.len() < 6) {
                tried.push(size);
                pmtu.sent(now, Duration::from_secs(1));
                if answer {
                    pmtu.answered(now, size);
                    break;
                }
                now += Duration::from_secs(1);
            }
            (pmtu.current(), tried.len(), pmtu.is_searching())
        };
        assert_eq!(doubt(true), (1472, 1, false));
        assert_eq!(doubt(false), (1200, 6, true), "three to confirm, three of the new search");
        let mut pmtu = PathMtu::new(1200, 1472);
        pmtu.confirm(Instant::ZERO);
        assert!(!pmtu.is_searching(), "nothing is smaller than the base");
    }
}
