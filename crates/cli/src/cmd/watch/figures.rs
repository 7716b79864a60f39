//! Live figures: the document that `--stats`, `--metrics` and `--web` publish, each in its own
//! form. docs/figures.schema.json describes it.

use super::state::State;
use crate::cmd::neighbour;
use braidcast_session::{RateReport, RecentKind};
use serde::Serialize;

/// Members may be added under the same number; none is renamed or changes its meaning.
pub(crate) const VERSION: u32 = 1;

/// Everything at one time.
#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) version: u32,
    pub(crate) command: &'static str,
    /// Time of day, RFC 3339.
    pub(crate) time: String,
    pub(crate) uptime_seconds: f64,
    /// Since the figures before these.
    pub(crate) interval_seconds: f64,
    pub(crate) streams: Vec<StreamFigures>,
}

/// One stream; of a tunnel, one other end.
#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct StreamFigures {
    /// Empty if there is only one and it has no name.
    pub(crate) name: String,
    pub(crate) connected: bool,
    /// What it is doing.
    pub(crate) state: State,
    pub(crate) health: Health,
    /// Why it is not good; empty if it is.
    pub(crate) reasons: Vec<String>,
    /// Since it was connected first.
    pub(crate) connected_seconds: f64,
    pub(crate) reconnections: u64,
    /// What comes in, over the last five seconds.
    pub(crate) input_bits_per_second: Option<f64>,
    /// Payload that the other end acknowledged.
    pub(crate) delivered_bits_per_second: Option<f64>,
    /// Payload that all paths that carry data could carry together.
    pub(crate) capacity_bits_per_second: Option<f64>,
    /// Some path was not full of late: it may be more.
    pub(crate) capacity_is_floor: bool,
    /// What an encoder should make in all; null while nothing says how much the paths carry.
    pub(crate) suggested_encoder_bits_per_second: Option<f64>,
    /// What it may make now; null at a receiver, of a reliable stream, and while a tunnel has no rate.
    pub(crate) encoder: Option<RateReport>,
    pub(crate) waiting_bytes: u64,
    /// "sender" or "receiver"; of a tunnel "tunnel".
    pub(crate) end: &'static str,
    /// From capture to playout; null of a reliable stream, and before there is one.
    pub(crate) latency_ms: Option<f64>,
    /// Address of the newest image of the stream, for the page; null without `--thumbnail`, and before there is one.
    pub(crate) thumbnail: Option<String>,
    /// What a receiver writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<OutputFigures>,
    pub(crate) redundancy: RedundancyFigures,
    pub(crate) paths: Vec<PathFigures>,
    /// By kind of frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) kinds: Vec<KindFigures>,
    /// By kind of frame, what became known in the last `recent_seconds`.
    pub(crate) recent: Vec<RecentKind>,
    pub(crate) recent_seconds: f64,
    /// Since the other end last said what it counts; null before it did.
    pub(crate) unheard_seconds: Option<f64>,
    /// Of a tunnel, by flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flows: Vec<FlowFigures>,
    /// Neighbours that it comes from or goes to (`srt://`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) neighbours: Vec<neighbour::Figures>,
}

/// How it goes, and the colour of the alarm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Debug, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// Green: all that is sent comes on time.
    Good,
    /// Amber: something is amiss that most of the stream survives.
    Doubtful,
    /// Red: people notice.
    #[default]
    Bad,
}

#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct OutputFigures {
    /// The file that is written now, or what was given as OUTPUT.
    pub(crate) name: String,
    /// Handed to it by now, of all streams.
    pub(crate) bytes: u64,
    /// Free on its disk; null where it is no file.
    pub(crate) free_bytes: Option<u64>,
}

#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct RedundancyFigures {
    /// The code in use; null for none.
    pub(crate) code: Option<String>,
    /// Of the packets of this interval, redundancy and copies.
    pub(crate) share: Option<f64>,
    pub(crate) redundancy_chunks: u64,
    pub(crate) copied_chunks: u64,
    /// At the receiver: chunks that redundancy made up for.
    pub(crate) recovered_chunks: u64,
}

#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct PathFigures {
    pub(crate) name: String,
    pub(crate) remote: String,
    /// "unconfirmed", "active", "potentially failed", "inactive" or "left".
    pub(crate) state: &'static str,
    pub(crate) state_seconds: f64,
    pub(crate) sent_bits_per_second: f64,
    pub(crate) received_bits_per_second: f64,
    pub(crate) delivered_bits_per_second: Option<f64>,
    pub(crate) capacity_bits_per_second: Option<f64>,
    pub(crate) capacity_is_floor: bool,
    pub(crate) rtt_ms: Option<f64>,
    pub(crate) min_rtt_ms: Option<f64>,
    /// How long packets stand in queues of the network.
    pub(crate) queue_ms: Option<f64>,
    pub(crate) window_bytes: Option<u64>,
    pub(crate) in_flight_bytes: Option<u64>,
    /// Of what was sent in this interval; null if nothing was.
    pub(crate) loss_share: Option<f64>,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_chunks: u64,
    pub(crate) lost_chunks: u64,
    pub(crate) repeated_chunks: u64,
    /// Of the units that came over it, the receiver's count.
    pub(crate) on_time_share: Option<f64>,
}

/// Counts since the beginning, and of this interval.
#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct KindFigures {
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) total: KindCounts,
    /// Their time is over, and nobody knows of them.
    pub(crate) missing: u64,
    /// They may still come, or the other end has not said what became of them.
    pub(crate) not_known_yet: u64,
    pub(crate) interval: KindCounts,
}

#[derive(Clone, Copy, Serialize, Debug, Default)]
pub(crate) struct KindCounts {
    pub(crate) captured: u64,
    pub(crate) on_time: u64,
    /// Came too late.
    pub(crate) late: u64,
    /// Never sent, as it would have come too late.
    pub(crate) dropped_expired: u64,
    /// Never sent, as others took its place in a full queue.
    pub(crate) dropped_crowded_out: u64,
    /// Never sent, as there was no room or nobody to send to.
    pub(crate) dropped_refused: u64,
    /// Abandoned after a part was sent.
    pub(crate) dropped_on_the_way: u64,
}

impl KindCounts {
    /// What has come since `before`.
    pub(crate) const fn since(&self, before: &Self) -> Self {
        Self {
            captured: self.captured.saturating_sub(before.captured),
            on_time: self.on_time.saturating_sub(before.on_time),
            late: self.late.saturating_sub(before.late),
            dropped_expired: self.dropped_expired.saturating_sub(before.dropped_expired),
            dropped_crowded_out: self.dropped_crowded_out.saturating_sub(before.dropped_crowded_out),
            dropped_refused: self.dropped_refused.saturating_sub(before.dropped_refused),
            dropped_on_the_way: self.dropped_on_the_way.saturating_sub(before.dropped_on_the_way),
        }
    }
}

#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct FlowFigures {
    pub(crate) flow: String,
    pub(crate) sent_bits_per_second: f64,
    pub(crate) received_bits_per_second: f64,
    pub(crate) sent_datagrams: u64,
    pub(crate) received_datagrams: u64,
    pub(crate) lost_datagrams: u64,
    pub(crate) late_datagrams: u64,
    pub(crate) dropped_expired: u64,
    pub(crate) dropped_crowded_out: u64,
    pub(crate) dropped_too_long: u64,
    /// Of the last seconds; null while nothing comes.
    pub(crate) on_time_share: Option<f64>,
    pub(crate) jitter_ms: f64,
    pub(crate) mos: Option<f64>,
}
