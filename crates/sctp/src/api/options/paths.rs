use super::LEAST_TIME;
use braidcast_core::Misuse;
use braidcast_mpath::{PathSelection, SchedulerKind, Selector};
use core::time::Duration;

/// The paths of an association: how many, which carries what, how large their packets are, when one counts as failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PathOptions {
    /// Paths that an association may have at once, 1 to [32](Self::MAX_PATHS). Default 8.
    pub max_paths: usize,
    /// Which path carries new data. Default lowest delay.
    pub scheduler: SchedulerKind,
    /// New data goes over all paths at once. Default true; false: over the primary path alone, and
    /// over another one while the primary has failed (RFC 9260 §6.4).
    pub concurrent: bool,
    /// By what the one path that carries data is chosen while the association runs, where
    /// `concurrent` is false. Default `None`: the primary path, as long as it works. What is
    /// measured is `heartbeat_interval` old at most on a path that carries nothing.
    pub selection: Option<PathSelection>,
    /// How much less another path's delay must be than that of the path in use, for `selection`.
    /// The path in use is measured by SACKs, which the peer may hold back: less than that delay can
    /// make two equal paths take turns. Default 0.
    pub hysteresis: Duration,
    /// Time for which another path must be better before it takes over. It is drawn each time,
    /// uniformly from 0 to this (PATHS §5.2 has 3 s). Default 0: at once.
    pub time_guard: Duration,
    /// SCTP packet size that every path is trusted to carry (BASE_PLPMTU, RFC 8899 §5.1.2), [508](Self::MIN_MTU) to
    /// [65,507](Self::MAX_MTU) bytes. Default 1200.
    pub base_mtu: usize,
    /// Largest SCTP packet that probing tries (MAX_PLPMTU), `base_mtu` to [65,507](Self::MAX_MTU)
    /// bytes. Default 1472: Ethernet less IPv4 and UDP headers.
    pub max_mtu: usize,
    /// Send chunks that were cut for larger packets than a path carries now in slices, where the
    /// peer offers that too (decision 17). Default true. Without it such a chunk goes in a packet
    /// that is too large, which may be lost each time.
    pub slices: bool,
    /// Measure the delay to the peer alone, path by path, by timestamps in both directions where
    /// the peer offers that too and the scheduler heeds it (decision 21). Default false: half of
    /// the shortest round trip and the time in queues stand for it.
    pub forward_delay: bool,
    /// A path whose own delay is longer than that of the nearest one by this much takes parts of what
    /// waits by a plan, where a queue can tell what frames need and the scheduler leaves that open
    /// (decision 41). `None`: none does; what waits longest goes first over all paths. Default 100 ms.
    pub plan_from: Option<Duration>,
    /// Pause between heartbeats of an idle path (HB.interval), 1 ms or more. Default 30 s.
    pub heartbeat_interval: Duration,
    /// The pause between heartbeats is `heartbeat_interval`, 50 % more or less at random, and an
    /// RTO (RFC 9260 §8.3). Default false: it is `heartbeat_interval`.
    pub heartbeat_jitter: bool,
    /// Timeouts in a row after which a path is inactive (Path.Max.Retrans). Default 5.
    pub path_max_retrans: u32,
    /// Timeouts in a row after which new data avoids a path and heartbeats ask it each RTO
    /// (PotentiallyFailed.Max.Retrans, RFC 7829 §3). Default 0: the first timeout. `None`: as in
    /// RFC 9260 it carries data until it is inactive, and is asked each `heartbeat_interval`.
    pub quick_failover: Option<u32>,
    /// Timeouts in a row of the primary path after which the one that carries data in its place
    /// becomes the primary path (Primary.Switchover.Max.Retrans, RFC 7829 §5), where one is used at
    /// a time. Not below `quick_failover`, nor below `path_max_retrans` without that. Default
    /// `None`: data goes back as soon as the primary path answers.
    pub switchover: Option<u32>,
    /// Longest interval after which a path that does not answer is asked again, even if its RTO has
    /// backed off further; 1 ms or more. Not sooner than an RTO without back-off. Default `None`:
    /// each RTO (RFC 7829 §4).
    pub longest_silence: Option<Duration>,
    /// A path that does not answer is asked again so often, or each round trip if that is longer,
    /// besides the heartbeats that are missed when they are not answered: the first that comes
    /// through brings it back. The pause grows to a sixteenth of the silence. 1 ms or more. Default
    /// `None`: not (RFC 7829 §4).
    pub silent_interval: Option<Duration>,
    /// Probe a silent path after two round trips (RFC 8985 §7), and meanwhile repeat what it owes over the other
    /// paths. Default true.
    pub probe: bool,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self {
            max_paths: 8,
            scheduler: SchedulerKind::default(),
            concurrent: true,
            selection: None,
            hysteresis: Duration::ZERO,
            time_guard: Duration::ZERO,
            base_mtu: 1200,
            max_mtu: 1472,
            slices: true,
            forward_delay: false,
            plan_from: Some(Duration::from_millis(100)),
            heartbeat_interval: Duration::from_secs(30),
            heartbeat_jitter: false,
            path_max_retrans: 5,
            quick_failover: Some(0),
            switchover: None,
            longest_silence: None,
            silent_interval: None,
            probe: true,
        }
    }
}

impl PathOptions {
    /// The smallest `base_mtu`: what is left of the 576 bytes that every IPv4 host takes (RFC 1122
    /// §3.3.3) behind the longest IPv4 header and a UDP header. The headers of a chunk and of
    /// redundancy over it fit in several times.
    pub const MIN_MTU: usize = braidcast_cc::PathMtu::MIN;
    /// The largest `max_mtu`: what UDP over IPv4 carries.
    pub const MAX_MTU: usize = 65_507;
    /// The largest `max_paths`.
    pub const MAX_PATHS: usize = 32;

    /// Timeouts in a row after which new data avoids a path.
    pub(crate) fn avoided_after(&self) -> u32 {
        self.quick_failover.map_or(self.path_max_retrans, |quick| quick.min(self.path_max_retrans))
    }

    /// What chooses the one path that carries data, if something does.
    pub(crate) fn selector(&self) -> Option<Selector> {
        self.selection.map(|by| Selector::new(by, self.hysteresis, self.time_guard))
    }

    pub(super) fn check(&self) -> Result<(), Misuse> {
        Misuse::unless_within("paths.max_paths", self.max_paths, 1..=Self::MAX_PATHS)?;
        Misuse::unless_within("paths.base_mtu", self.base_mtu, Self::MIN_MTU..=Self::MAX_MTU)?;
        Misuse::unless_within("paths.max_mtu", self.max_mtu, Self::MIN_MTU..=Self::MAX_MTU)?;
        Misuse::above("paths.base_mtu", self.base_mtu, "paths.max_mtu", self.max_mtu)?;
        Misuse::below("paths.heartbeat_interval", self.heartbeat_interval, LEAST_TIME)?;
        if let Some(by) = self.selection.filter(|_| self.concurrent) {
            let (value, limit) = (by.to_string(), "none while all paths are used at once");
            return Err(Misuse::other("paths.selection", value, limit, "set paths.concurrent to false"));
        }
        if let Some(by) = self.selection.filter(|by| by.heeds_forward_delay() && !self.forward_delay) {
            let (value, limit) = (by.to_string(), "another one while forward delays are not measured");
            return Err(Misuse::other("paths.selection", value, limit, "set paths.forward_delay to true"));
        }
        if let Some(after) = self.switchover {
            // RFC 7829 §5 1: "Implementations MUST reject any other values of PSMR."
            Misuse::below("paths.switchover", after, self.avoided_after())?;
        }
        self.silent_interval.map_or(Ok(()), |it| Misuse::below("paths.silent_interval", it, LEAST_TIME))?;
        self.longest_silence.map_or(Ok(()), |it| Misuse::below("paths.longest_silence", it, LEAST_TIME))
    }
}
