//! The choices that the papers compare, each by a name that command line and scenarios share.

use braidcast_core::named;

/// What makes a packet count as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossDetection {
    /// Overdue while later packets of the same path have arrived ([`braidcast_cc::Rack`], after RFC 8985).
    #[default]
    Time,
    /// Reported missing three times, counting reports about later packets of the same path only: the papers' rule
    /// (split fast retransmit, SFR: Iyengar et al. 2006 §III-B; THESIS §3.6; PRCMT fig. 6).
    Count,
    /// Reported missing three times, whatever paths the reports are about: RFC 9260 §7.2.4 taken as
    /// it stands, which over several paths takes reordering for loss.
    PlainCount,
}

named! {
    /// Every rule, by the name that command line and scenarios use.
    LossDetection, "loss detection" {
        "time" => Time,
        "count" => Count,
        "plain-count" => PlainCount,
    }
}

/// Which acknowledgements let a path's window grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CwndUpdate {
    /// Those that move the association's cumulative TSN (RFC 4960 §7.2.1 and §7.2.2; RFC 9260 keeps
    /// it for slow start). Over several paths it seldom moves, and windows stay small.
    Plain,
    /// Those of the lowest TSN that is out on the path (pseudo-cumack; Iyengar et al. 2006 §III-C, "CUC").
    Cuc,
    /// Those of the lowest TSN that is out on the path among those sent once, or among those sent
    /// again (rtx-pseudo-cumack; Iyengar et al. 2006 §V-B, "CUCv2"): a chunk sent again over
    /// another path does not hold up the window.
    #[default]
    Cucv2,
}

named! {
    /// Every rule, by the name that command line and scenarios use.
    CwndUpdate, "window update" {
        "plain" => Plain,
        "cuc" => Cuc,
        "cucv2" => Cucv2,
    }
}

/// What a packet counts for in a congestion window, of which only the data in flight takes up room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CwndUnit {
    /// The MTU (RFC 9260 §7.2). Headers are not data, so a window of n MTUs lets n + 1 packets out.
    /// It may grow if one more would have filled it.
    #[default]
    Mtu,
    /// The data of a full packet: a window of n packets lets n out, and may grow only if n were out
    /// (RFC 9260 §7.2.2 to the letter). ns-2 counts so.
    Payload,
}

named! {
    /// Both, by the name that command line and scenarios use.
    CwndUnit, "unit of the window" {
        "mtu" => Mtu,
        "payload" => Payload,
    }
}

/// What happens to a message whose lifetime ends while a part of it is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Abandonment {
    /// It is abandoned at once and no longer outstanding: FORWARD-TSN leaves, other data may take
    /// its room in the window, an acknowledgement that still comes earns the window nothing, and a
    /// loss goes unnoticed (RFC 3758 §3.5 A2, F5). Messages that expire as they leave then know no
    /// congestion control.
    Immediate,
    /// The same, but it fills the window until it is acknowledged or T3 expires: the baseline of
    /// our experiments (PRCMT §3.1, §4.2: PR-SCTP).
    ImmediateCounted,
    /// It is expired, and abandoned only once it is lost; what arrives after all counts for the
    /// window (PRCMT §4.2, fig. 5).
    #[default]
    Delayed,
}

impl Abandonment {
    /// Returns `true` if a message whose lifetime ends is abandoned then, wherever it is.
    pub(crate) fn is_immediate(self) -> bool {
        self != Self::Delayed
    }
}

named! {
    /// All, by the name that command line and scenarios use.
    Abandonment, "abandonment" {
        "immediate" => Immediate,
        "immediate-counted" => ImmediateCounted,
        "delayed" => Delayed,
    }
}

/// Which of the streams that wait is served next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StreamOrder {
    /// The most important, by [`Priority`](crate::Priority); those of the same rank take turns
    /// (PRCMT §4.4; RFC 8260 §3.2, §3.4).
    #[default]
    Priority,
    /// The one whose message was given to us first, priorities or not (PRCMT fig. 7 a; RFC 8260
    /// §3.1). For what is lost all messages are equal too. Each chunk looks at all streams that
    /// wait.
    Fcfs,
    /// All take turns, priorities or not, by chunk with I-DATA and by message without (RFC 8260 §3.2).
    RoundRobin,
    /// The same, but a packet has chunks of one stream alone, so that a lost packet holds up one
    /// stream (RFC 8260 §3.3).
    RoundRobinPacket,
    /// The one that got fewest bytes since it waits (RFC 8260 §3.5). Each chunk looks at all streams that wait.
    FairCapacity,
    /// The same in proportion to the weights of streams
    /// ([`set_weight`](crate::Association::set_weight); RFC 8260 §3.6), as data channels of WebRTC
    /// want it.
    WeightedFair,
}

named! {
    /// All of them, by the name that scenarios use.
    StreamOrder, "stream order" {
        "priority" => Priority,
        "fcfs" => Fcfs,
        "round-robin" => RoundRobin,
        "round-robin-packet" => RoundRobinPacket,
        "fair" => FairCapacity,
        "weighted-fair" => WeightedFair,
    }
}

/// Over which path a SACK goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SackPath {
    /// That of the last data packet (RFC 9260 §6.4, and the papers' simulations).
    Last,
    /// Of the paths that brought data since the last SACK, the one that has waited longest for one.
    #[default]
    Rotate,
    /// Of the paths that brought data of late, the one of the shortest round trip, so that a loss over a far path is
    /// known soon; each of the others ten times a second, so that a return path that is dead silences no other one
    /// (decision 34).
    Quickest,
}

named! {
    /// All of them, by the name that command line and scenarios use.
    SackPath, "SACK path" {
        "last" => Last,
        "rotate" => Rotate,
        "quickest" => Quickest,
    }
}

/// Which acknowledgements measure a path's round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RttSamples {
    /// All, over whatever path they come back: the papers' rule, by which a short path looks as long as the return path
    /// (THESIS §6.2.4).
    AnyReturn,
    /// Those that come back over the path itself and waited for no other path's packet: they are
    /// for this path alone, or for a packet that asked for its SACK at once.
    #[default]
    SameReturn,
}

named! {
    /// Both, by the name that command line and scenarios use.
    RttSamples, "RTT sampling" {
        "any-return" => AnyReturn,
        "same-return" => SameReturn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        macro_rules! check {
            ($($type:ty),*) => { $(for (name, it) in <$type>::ALL {
                assert_eq!((name.parse(), it.to_string().as_str()), (Ok(it), name));
            })* };
        }
        check!(
            LossDetection,
            CwndUpdate,
            CwndUnit,
            Abandonment,
            StreamOrder,
            SackPath,
            RttSamples,
            crate::api::MarkResponse,
            crate::api::QueueScope
        );
        let error = "cuc3".parse::<CwndUpdate>().unwrap_err();
        assert_eq!(error.to_string(), "no window update is called 'cuc3'; there are: plain, cuc, cucv2");
    }
}
