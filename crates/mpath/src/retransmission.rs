use crate::PathView;
use braidcast_core::named;
use core::time::Duration;

/// Which path carries what was lost, when it is sent again.
///
/// The `Rtx` policies are those of concurrent multipath transfer (Iyengar, Amer, Stewart,
/// "Concurrent multipath transfer using SCTP multihoming over independent end-to-end paths",
/// IEEE/ACM Transactions on Networking 14(5), 2006, §V); `AllRtxAlt` and `FrSameRtoAlt` are those
/// of multihoming with one path in use (Caro, Amer, Stewart, "Retransmission policies for
/// multihomed transport protocols", Computer Communications 29(10), 2006, §3), and `AllRtxSame` is
/// `RtxSame` by another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RetransmissionPolicy {
    /// The path that it was sent over, until that path fails.
    RtxSame,
    /// Any path with room in its congestion window, at once. Of several the paper takes one at
    /// random; here the scheduler says which.
    #[default]
    RtxAsap,
    /// The path with the largest congestion window.
    RtxCwnd,
    /// The path with the largest slow start threshold.
    RtxSsthresh,
    /// The path that loses the smallest share of its packets.
    RtxLossRate,
    /// Another path than the one that lost it, if there is one (RFC 9260 §6.4: "SHOULD try to
    /// retransmit to an alternate").
    AllRtxAlt,
    /// The same path after a fast retransmission, another one after a timeout.
    FrSameRtoAlt,
}

impl RetransmissionPolicy {
    /// The index of the path to send a lost packet over, whether or not it has room now; `None`: any, as the scheduler
    /// likes. `lost_on` is the index of the path that lost it, `timed_out` whether a timer found that out.
    ///
    /// If the papers break ties at random, a path other than the one that lost the packet is
    /// taken, then the lowest index.
    pub fn pick(self, paths: &[PathView], lost_on: usize, timed_out: bool) -> Option<usize> {
        let active = || (0..paths.len()).filter(|&i| paths[i].active);
        let other = || active().filter(|&i| i != lost_on).min_by_key(|&i| paths[i].srtt.unwrap_or(Duration::MAX));
        let same = || paths.get(lost_on).is_some_and(|path| path.active).then_some(lost_on);
        match self {
            Self::RtxAsap => None,
            Self::RtxSame => same().or_else(other),
            Self::AllRtxAlt => other().or_else(same),
            Self::FrSameRtoAlt if timed_out => other().or_else(same),
            Self::FrSameRtoAlt => same().or_else(other),
            Self::RtxCwnd => active().min_by_key(|&i| (usize::MAX - paths[i].cwnd, i == lost_on)),
            Self::RtxSsthresh => active().min_by_key(|&i| (usize::MAX - paths[i].ssthresh, i == lost_on)),
            Self::RtxLossRate => active().min_by(|&a, &b| {
                let rates = paths[a].loss_rate.total_cmp(&paths[b].loss_rate);
                rates.then((a == lost_on).cmp(&(b == lost_on)))
            }),
        }
    }
}

named! {
    /// Every policy, by the name that command line and scenarios use; the first name of a policy is
    /// the one it is shown by.
    RetransmissionPolicy, "retransmission policy" {
        "rtx-same" => RtxSame,
        "rtx-asap" => RtxAsap,
        "rtx-cwnd" => RtxCwnd,
        "rtx-ssthresh" => RtxSsthresh,
        "rtx-lossrate" => RtxLossRate,
        "all-rtx-same" => RtxSame,
        "all-rtx-alt" => AllRtxAlt,
        "fr-same-rto-alt" => FrSameRtoAlt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(active: bool, cwnd: usize, ssthresh: usize, loss_rate: f32, srtt_ms: u64) -> PathView {
        let srtt = Some(Duration::from_millis(srtt_ms));
        PathView { active, cwnd, ssthresh, loss_rate, srtt, ..PathView::default() }
    }

    /// What each policy does with a packet lost on path 0, 1, 2: by acknowledgements, then by a
    /// timeout. Then the same with path 1 failed.
    #[test]
    fn behaviour() {
        let table = |paths: &[PathView]| -> Vec<String> {
            let row = |(name, policy): &(&str, RetransmissionPolicy)| {
                let picks = |timed_out| -> String {
                    let pick = |lost_on| policy.pick(paths, lost_on, timed_out);
                    (0..3).map(|lost_on| pick(lost_on).map_or("-".into(), |it| it.to_string())).collect()
                };
                format!("{name} {} {}", picks(false), picks(true))
            };
            RetransmissionPolicy::ALL.iter().map(row).collect()
        };
        let [a, b, c] =
            [path(true, 9000, 4000, 0.02, 50), path(true, 3000, 8000, 0.01, 20), path(true, 9000, 2000, 0.05, 80)];
        assert_eq!(
            table(&[a, b, c]),
            [
                "rtx-same 012 012",
                "rtx-asap --- ---",
                "rtx-cwnd 200 200",
                "rtx-ssthresh 111 111",
                "rtx-lossrate 111 111",
                "all-rtx-same 012 012",
                "all-rtx-alt 101 101",
                "fr-same-rto-alt 012 101",
            ]
        );
        assert_eq!(
            table(&[a, PathView { active: false, ..b }, c]),
            [
                "rtx-same 002 002",
                "rtx-asap --- ---",
                "rtx-cwnd 200 200",
                "rtx-ssthresh 000 000",
                "rtx-lossrate 000 000",
                "all-rtx-same 002 002",
                "all-rtx-alt 200 200",
                "fr-same-rto-alt 002 200",
            ]
        );
    }

    #[test]
    fn names_go_both_ways() {
        for (name, policy) in RetransmissionPolicy::ALL {
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!(RetransmissionPolicy::RtxSame.to_string(), "rtx-same");
        let error = "rtx".parse::<RetransmissionPolicy>().unwrap_err().to_string();
        assert!(
            error.starts_with("no retransmission policy is called 'rtx'; there are: rtx-same, rtx-asap,"),
            "{error}"
        );
    }

    proptest! {
        /// Whatever the paths, what is picked is active; and something is, if anything is.
        #[test]
        fn only_active_paths_are_picked(
            paths in prop::collection::vec((any::<bool>(), 0_usize..5, 0_usize..5, 0.0_f32..1.0, 0_u64..5), 0..5),
            lost_on in 0_usize..6,
            timed_out: bool,
        ) {
            let paths: Vec<_> = paths.into_iter().map(|(a, c, s, l, r)| path(a, c, s, l, r)).collect();
            for (_, policy) in RetransmissionPolicy::ALL {
                let picked = policy.pick(&paths, lost_on, timed_out);
                prop_assert!(picked.is_none_or(|i| paths[i].active));
                let any = policy == RetransmissionPolicy::RtxAsap;
                prop_assert_eq!(picked.is_some(), !any && paths.iter().any(|path| path.active));
            }
        }
    }
}
