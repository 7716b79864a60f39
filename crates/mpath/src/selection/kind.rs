use super::{Candidate, Train};
use core::time::Duration;

/// By what the one path that carries data is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathSelection {
    /// The shortest smoothed round trip (Kelly, Muntean, Perry, Murphy, "Delay-centric handover in
    /// SCTP over WLAN", 2004; PATHS §5.2).
    BestDelay,
    /// The shortest way to the receiver, which may have another one back (Ribeiro, Leung,
    /// "Asymmetric path delay optimization in mobile multi-homed SCTP multimedia transport", 2005;
    /// PATHS §5.3).
    OneWay,
    /// The widest bottleneck by packet pairs, PSM (Kashihara, Iida, Koga, Kadobayashi, Yamaguchi,
    /// "Path selection using active measurement in multi-homed wireless networks", 2003; PATHS
    /// §5.2).
    PacketPair,
    /// The same by packet trains, as in WiSE (Fracchia, Casetti, Chiasserini, Meo, "WiSE: Best-path
    /// selection in wireless multihoming environments", IEEE Transactions on Mobile Computing
    /// 6(10), 2007; PATHS §5.2).
    PacketTrain,
    /// What a call would sound like, by trains of heartbeats that imitate one (Fitzpatrick, Murphy,
    /// Atiquzzaman, Murphy, "ECHO: A quality of service based endpoint centric handover scheme for
    /// VoIP", WCNC 2008; PATHS §5.2).
    Echo,
}

braidcast_core::named! {
    /// Every way to choose, by the name that command line and scenarios use.
    PathSelection, "path selection" {
        "best-delay" => BestDelay,
        "one-way" => OneWay,
        "packet-pair" => PacketPair,
        "packet-train" => PacketTrain,
        "echo" => Echo,
    }
}

impl PathSelection {
    /// How much of a path's rate the other one must have more, and how much more of a score: the
    /// sources have no margin, and what is measured is never twice the same.
    const WIDER: f64 = 0.1;
    const BETTER: f64 = 0.1;

    /// The packets that measure a path, where acknowledgements and heartbeats do not do.
    pub const fn train(self) -> Option<Train> {
        match self {
            Self::BestDelay | Self::OneWay => None,
            Self::PacketPair => Some(Train::PAIR),
            Self::PacketTrain => Some(Train::WISE),
            Self::Echo => Some(Train::CALL),
        }
    }

    /// Returns `true` if the way to the receiver alone counts.
    pub const fn heeds_forward_delay(self) -> bool {
        matches!(self, Self::OneWay)
    }

    /// How bad a path is; `None`: not known.
    pub(super) fn cost(self, path: &Candidate) -> Option<f64> {
        match self {
            Self::BestDelay => path.srtt.map(|it| it.as_secs_f64()),
            Self::OneWay => path.forward_delay.map(|it| it.as_secs_f64()),
            Self::PacketPair | Self::PacketTrain => path.bottleneck.map(|rate| -rate),
            Self::Echo => path.opinion.map(|score| -score),
        }
    }

    /// By how much the cost of another path must be less than `cost`, that of the path in use;
    /// `hysteresis` is about delays.
    pub(super) fn margin(self, cost: f64, hysteresis: Duration) -> f64 {
        match self {
            Self::BestDelay | Self::OneWay => hysteresis.as_secs_f64(),
            Self::PacketPair | Self::PacketTrain => Self::WIDER * -cost,
            Self::Echo => Self::BETTER,
        }
    }
}
