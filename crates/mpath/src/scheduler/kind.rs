use super::Scheduler;
use super::fill_in_turn::FillInTurn;
use super::lowest_delay::LowestDelay;
use super::round_robin::RoundRobin;
use core::fmt;
use core::str::FromStr;

/// Which [`Scheduler`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchedulerKind {
    /// The paths in turn, a packet each.
    RoundRobin,
    /// The paths in turn, each until its window is full, as ns-2 does.
    FillInTurn,
    /// Of the paths with room, the one with the shortest round trip.
    #[default]
    LowestDelay,
}

impl SchedulerKind {
    /// Every scheduler, by the name that command line and scenarios use.
    pub const ALL: [(&'static str, Self); 3] =
        [("round-robin", Self::RoundRobin), ("fill-in-turn", Self::FillInTurn), ("lowest-delay", Self::LowestDelay)];

    /// A scheduler of this kind that has seen nothing yet.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin => Box::new(RoundRobin::default()),
            Self::FillInTurn => Box::new(FillInTurn::default()),
            Self::LowestDelay => Box::new(LowestDelay),
        }
    }
}

/// There is no scheduler of this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownScheduler(String);

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no scheduler is called '{}'; there are: ", self.0)?;
        for (i, (name, _)) in SchedulerKind::ALL.iter().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownScheduler {}

impl FromStr for SchedulerKind {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, it)| it)
            .ok_or_else(|| UnknownScheduler(name.into()))
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::ALL.iter().find(|(_, it)| it == self).expect("every scheduler is in ALL");
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (name, scheduler) in SchedulerKind::ALL {
            assert_eq!(name.parse(), Ok(scheduler));
            assert_eq!(scheduler.to_string(), name);
        }
        let error = "fastest".parse::<SchedulerKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no scheduler is called 'fastest'; there are: round-robin, fill-in-turn, lowest-delay"
        );
    }
}
