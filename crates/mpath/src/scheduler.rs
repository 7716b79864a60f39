use crate::PathView;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// Which path carries the next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduler {
    /// The paths in turn, each as long as its congestion window has space: the scheduler of CMT-SCTP
    /// (THESIS §6.1, PRCMT §4.3).
    RoundRobin,
    /// The paths in turn, each until its window is full, and with each acknowledgement from the next one on: ns-2.35's CMT
    /// (`SctpCMTAgent::SendMuch`). A receive window that opens by much goes to one path, then.
    FillInTurn,
    /// Of the paths with space, the one whose packet is expected to arrive first: half its round trip, as RTT
    /// measurements already hold the time spent in queues. A slow path helps only once the faster ones are full.
    #[default]
    LowestDelay,
}

impl Scheduler {
    /// Every scheduler, by the name that command line and scenarios use.
    pub const ALL: [(&'static str, Self); 3] =
        [("round-robin", Self::RoundRobin), ("fill-in-turn", Self::FillInTurn), ("lowest-delay", Self::LowestDelay)];

    /// The index of the path to use next, or `None` if no path is ready. `last` is the index used before.
    pub fn pick(self, paths: &[PathView], last: usize) -> Option<usize> {
        match self {
            Self::RoundRobin => (1..=paths.len()).map(|step| (last + step) % paths.len()).find(|&i| paths[i].ready),
            Self::FillInTurn if paths.get(last).is_some_and(|path| path.bursting && path.ready) => Some(last),
            Self::FillInTurn => Self::RoundRobin.pick(paths, last),
            Self::LowestDelay => {
                let ready = paths.iter().enumerate().filter(|(_, path)| path.ready);
                // An unmeasured path is tried at once: only traffic can measure it.
                ready.min_by_key(|(_, path)| path.srtt.unwrap_or(Duration::ZERO)).map(|(index, _)| index)
            }
        }
    }
}

/// There is no scheduler of this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownScheduler(String);

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no scheduler is called '{}'; there are: ", self.0)?;
        for (i, (name, _)) in Scheduler::ALL.iter().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownScheduler {}

impl FromStr for Scheduler {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, it)| it)
            .ok_or_else(|| UnknownScheduler(name.into()))
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::ALL.iter().find(|(_, it)| it == self).expect("every scheduler is in ALL");
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(ready: bool, srtt_ms: Option<u64>) -> PathView {
        PathView { ready, srtt: srtt_ms.map(Duration::from_millis), ..PathView::default() }
    }

    /// What each scheduler does over six packets on three paths, the second of which is full from the fourth packet on.
    #[test]
    fn behaviour() {
        let rows: Vec<String> = Scheduler::ALL
            .iter()
            .map(|(name, scheduler)| {
                let mut last = 0;
                let picks = (0..6).map(|n| {
                    let mut paths = [path(true, Some(80)), path(n < 3, Some(20)), path(true, Some(40))];
                    paths[last].bursting = n % 5 != 0; // An acknowledgement comes before the first and the sixth.
                    last = scheduler.pick(&paths, last).unwrap();
                    last.to_string()
                });
                format!("{name}: {}", picks.collect::<String>())
            })
            .collect();
        assert_eq!(rows, ["round-robin: 120202", "fill-in-turn: 111220", "lowest-delay: 111222"]);
    }

    #[test]
    fn no_ready_path_no_pick() {
        for (_, scheduler) in Scheduler::ALL {
            assert_eq!(scheduler.pick(&[path(false, None), path(false, Some(1))], 0), None);
            assert_eq!(scheduler.pick(&[], 0), None);
        }
    }

    #[test]
    fn names_go_both_ways() {
        for (name, scheduler) in Scheduler::ALL {
            assert_eq!(name.parse(), Ok(scheduler));
            assert_eq!(scheduler.to_string(), name);
        }
        let error = "fastest".parse::<Scheduler>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no scheduler is called 'fastest'; there are: round-robin, fill-in-turn, lowest-delay"
        );
    }
}
