use crate::by_frame::ByFrame;
use crate::by_worth::{ByWorth, finished_at, sending_rank};
use crate::fifo::Fifo;
use crate::fifo_timed::FifoTimed;
use crate::in_time::InTime;
use crate::keep_alive::KeepAlive;
use crate::lifo::Lifo;
use crate::lifo_priority::LifoPriority;
use crate::never_discard::NeverDiscard;
use crate::ring::Ring;
use crate::ring_sbpn2::RingSbpn2;
use crate::rule::By;
use crate::sbpn1::Sbpn1;
use crate::sbpn2::Sbpn2;
use crate::weighted::{Weighted, Weights};
use crate::{Limits, SendQueue, Tag};
use braidcast_core::named;
use core::fmt;

/// Which queue; the crate's page has them side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Method {
    /// In the order of arrival.
    Fifo,
    /// The same, the expired discarded.
    FifoTimed,
    /// By priority and expiry, the expired discarded.
    Sbpn1,
    /// The same, but the last message goes in any case.
    Sbpn2,
    /// The newest first.
    Lifo,
    /// By priority, the newest first.
    LifoPriority,
    /// By priority; the oldest of the least important makes room.
    Ring,
    /// The ring in, SBPN2 out. What live streams use unless told otherwise.
    RingSbpn2,
    /// The ring in; what expired goes out when nothing else waits.
    NeverDiscard,
    /// The ring in, SBPN1 out, and padding in place of what expired.
    KeepAlive,
    /// By a score of priority, time left and size.
    Weighted,
    /// What can still be in time, by priority; frames whole or not at all. What tunnels use unless told otherwise.
    #[default]
    InTime,
    /// What brings most to what can be shown, whole and in time or not at all.
    ByWorth,
    /// What brings most to what can be shown, laid over the paths when it comes.
    ByFrame,
}

impl Method {
    /// An empty queue of this kind.
    pub fn queue<M: fmt::Debug + Send + 'static>(self, limits: Limits) -> Box<dyn SendQueue<M>> {
        match self {
            Self::Fifo => Box::new(By::<M, Fifo>::new(limits)),
            Self::FifoTimed => Box::new(By::<M, FifoTimed>::new(limits)),
            Self::Sbpn1 => Box::new(By::<M, Sbpn1>::new(limits)),
            Self::Sbpn2 => Box::new(By::<M, Sbpn2>::new(limits)),
            Self::Lifo => Box::new(By::<M, Lifo>::new(limits)),
            Self::LifoPriority => Box::new(By::<M, LifoPriority>::new(limits)),
            Self::Ring => Box::new(By::<M, Ring>::new(limits)),
            Self::RingSbpn2 => Box::new(By::<M, RingSbpn2>::new(limits)),
            Self::NeverDiscard => Box::new(NeverDiscard::new(limits)),
            Self::KeepAlive => Box::new(KeepAlive::new(limits)),
            Self::InTime => Box::new(InTime::new(limits)),
            Self::ByWorth => Box::new(ByWorth::new(limits)),
            Self::ByFrame => Box::new(ByFrame::new(limits)),
            Self::Weighted => Box::new(Weighted::new(limits, Weights::default())),
        }
    }

    /// Returns `true` if which message goes, or is discarded, depends on how long messages are in flight
    /// ([`Outlook::one_way_delay`](crate::Outlook)): then it matters which path has room.
    pub const fn heeds_delay(self) -> bool {
        match self {
            Self::Fifo | Self::FifoTimed | Self::Ring => false,
            Self::Sbpn1
            | Self::Sbpn2
            | Self::Lifo
            | Self::LifoPriority
            | Self::RingSbpn2
            | Self::NeverDiscard
            | Self::KeepAlive
            | Self::Weighted
            | Self::InTime
            | Self::ByWorth
            | Self::ByFrame => true,
        }
    }

    /// Returns the multiple of the rate of all paths at which the last byte of a message that was
    /// begun must be in time; otherwise it is abandoned. `None`: its length does not matter.
    pub const fn finished_at(self, tag: &Tag) -> Option<f64> {
        match self {
            Self::ByWorth | Self::ByFrame => finished_at(tag),
            _ => None,
        }
    }

    /// Returns which messages go before others once they are taken out: 0 first. Those of a number take turns.
    pub const fn rank(self, tag: &Tag) -> u8 {
        match self {
            Self::ByWorth | Self::ByFrame => sending_rank(tag),
            _ if self.heeds_priority() => tag.priority.get(),
            _ => 0,
        }
    }

    /// Returns `true` if a message goes before a less important one, whichever came first.
    pub const fn heeds_priority(self) -> bool {
        match self {
            Self::Fifo | Self::FifoTimed | Self::Lifo => false,
            Self::Sbpn1
            | Self::Sbpn2
            | Self::LifoPriority
            | Self::Ring
            | Self::RingSbpn2
            | Self::NeverDiscard
            | Self::KeepAlive
            | Self::Weighted
            | Self::InTime
            | Self::ByWorth
            | Self::ByFrame => true,
        }
    }
}

named! {
    /// Every method, by the name that command line and scenarios use.
    Method, "queue" {
        "fifo" => Fifo,
        "fifo-timed" => FifoTimed,
        "sbpn1" => Sbpn1,
        "sbpn2" => Sbpn2,
        "lifo" => Lifo,
        "lifo-priority" => LifoPriority,
        "ring" => Ring,
        "ring-sbpn2" => RingSbpn2,
        "never-discard" => NeverDiscard,
        "keep-alive" => KeepAlive,
        "weighted" => Weighted,
        "in-time" => InTime,
        "by-worth" => ByWorth,
        "by-frame" => ByFrame,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, audio, video};
    use core::time::Duration;

    #[test]
    fn what_a_method_heeds_is_what_it_does() {
        for (name, method) in Method::ALL {
            let after = |delay| {
                let mut bench = Bench::new(method, Limits::NONE);
                bench.push([audio(1, 100), audio(2, 1000)]);
                bench.outlook.one_way_delay = Duration::from_millis(delay);
                bench.pop_all()
            };
            assert_eq!(after(0) != after(500), method.heeds_delay(), "{name}");
            let first = |messages| {
                let mut bench = Bench::new(method, Limits::NONE);
                bench.push::<2>(messages);
                bench.pop()
            };
            let orders = [[audio(1, 9000), video(2, 9000)], [video(2, 9000), audio(1, 9000)]];
            assert_eq!(orders.map(first) == [["1"], ["1"]], method.heeds_priority(), "{name}");
        }
    }
}
