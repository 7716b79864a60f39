use super::Scheduler;
use super::blest::Blest;
use super::by_rate::ByRate;
use super::daps::Daps;
use super::earliest_delivery::EarliestDelivery;
use super::ecf::Ecf;
use super::fill_in_turn::FillInTurn;
use super::lowest_delay::LowestDelay;
use super::redundant::Redundant;
use super::round_robin::RoundRobin;

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
    /// Of the paths with room, the one over which a packet arrives first, unless it would arrive
    /// sooner over one that is full.
    EarliestDelivery,
    /// The send queue says what goes over which path.
    ByFrame,
    /// Delay-aware: over each path goes what arrives there in order, behind what quicker paths carry meanwhile.
    Daps,
    /// A slow path is used as long as it would not fill the receive window before the quickest path could.
    Blest,
    /// A slow path is used as long as waiting for the quickest one would not be sooner.
    Ecf,
    /// The paths in proportion to what they carry.
    ByRate,
    /// Each packet over all paths.
    Redundant,
}

braidcast_core::named! {
    /// Every scheduler, by the name that command line and scenarios use.
    SchedulerKind, "scheduler" {
        "round-robin" => RoundRobin,
        "fill-in-turn" => FillInTurn,
        "lowest-delay" => LowestDelay,
        "earliest-delivery" => EarliestDelivery,
        "by-frame" => ByFrame,
        "daps" => Daps,
        "blest" => Blest,
        "ecf" => Ecf,
        "by-rate" => ByRate,
        "redundant" => Redundant,
    }
}

impl SchedulerKind {
    /// A scheduler of this kind that has seen nothing yet.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin => Box::new(RoundRobin::default()),
            Self::FillInTurn => Box::new(FillInTurn::default()),
            Self::LowestDelay => Box::new(LowestDelay),
            Self::EarliestDelivery | Self::ByFrame => Box::new(EarliestDelivery),
            Self::Daps => Box::new(Daps),
            Self::Blest => Box::new(Blest::default()),
            Self::Ecf => Box::new(Ecf::default()),
            Self::ByRate => Box::new(ByRate::default()),
            Self::Redundant => Box::new(Redundant),
        }
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
            "no scheduler is called 'fastest'; there are: round-robin, fill-in-turn, lowest-delay, earliest-delivery, \
             daps, blest, ecf, by-rate, redundant"
        );
    }
}
