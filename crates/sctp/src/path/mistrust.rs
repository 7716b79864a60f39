use super::Path;
use braidcast_core::Instant;
use core::time::Duration;

/// How long a path that failed under data is not gone back to, where one path is used at a time,
/// though it answers heartbeats: these may get through where data does not. Each further failure
/// doubles it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mistrust {
    until: Instant,
    pause: Duration,
}

impl Mistrust {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    /// If a path has not failed for this long since it was trusted again, its next failure has the
    /// shortest pause.
    const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

    fn on_failed(&mut self, now: Instant) {
        let forgotten = now.since(self.until) > Self::FORGOTTEN_AFTER;
        self.pause = if forgotten { Self::SHORTEST } else { (self.pause * 2).clamp(Self::SHORTEST, Self::LONGEST) };
        self.until = now + self.pause;
    }
}

impl Path {
    /// It was the path in use and failed: data left it for another one.
    pub(crate) fn on_left(&mut self, now: Instant) {
        self.mistrust.on_failed(now);
    }

    /// Returns `true` if it failed under data a short while ago.
    pub(crate) fn is_mistrusted(&self, now: Instant) -> bool {
        now < self.mistrust.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_with_each_failure_and_is_forgotten_after_a_minute_without_one() {
        let mut mistrust = Mistrust::default();
        let mut now = Instant::from_millis(1000);
        let mut fail = |after| {
            now += Duration::from_secs(after);
            mistrust.on_failed(now);
            (mistrust.until - now).as_secs()
        };
        let pauses: Vec<u64> = [0, 1, 3, 5, 10, 20, 40, 61].map(&mut fail).to_vec();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(fail(60 + 60), 60);
        assert_eq!(fail(60 + 61), 1);
    }
}
