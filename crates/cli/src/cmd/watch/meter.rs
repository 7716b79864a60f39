//! From a session's reports, one after another, to figures of what happened in between.

use super::figures::{KindCounts, KindFigures, PathFigures, RedundancyFigures, StreamFigures};
use super::load::Load;
use super::state::{Pulse, Stream};
use crate::out::json::round;
use crate::out::session::End;
use braidcast_core::Instant;
use braidcast_session::{KindReport, PathReport, Report};
use std::collections::BTreeMap;

/// Follows one stream.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    kinds: BTreeMap<&'static str, KindCounts>,
    paths: BTreeMap<String, Sent>,
    load: Load,
    pulse: Pulse,
}

/// What a path had sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    chunks: u64,
    lost: u64,
    /// Redundancy and copies.
    extra: u64,
}

impl Meter {
    /// Figures by the report of `now`.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        stream: Stream<'_>,
        report: &Report,
        name: impl Fn(&PathReport) -> String,
    ) -> StreamFigures {
        let sends = stream.end == End::Sender;
        let kinds: Vec<_> = report.kinds.iter().map(|kind| self.kind(kind)).collect();
        let (mut extra, mut chunks) = (0, 0);
        let mut paths = Vec::new();
        for path in &report.paths {
            let (figures, sent) = self.path(path, name(path), sends);
            paths.push(figures);
            (extra, chunks) = (extra + sent.extra, chunks + sent.chunks);
        }
        let sum = |count: fn(&PathReport) -> u64| report.paths.iter().map(count).sum::<u64>();
        self.load.follow(now, report);
        let capacity = self.load.capacity().filter(|_| sends);
        let mut figures = StreamFigures {
            name: stream.name.into(),
            connected: stream.connected,
            connected_seconds: round(report.seconds),
            reconnections: report.restarts,
            input_bits_per_second: self.load.input().filter(|_| sends).map(f64::round),
            delivered_bits_per_second: self.load.delivered().filter(|_| sends).map(f64::round),
            capacity_bits_per_second: capacity.map(|it| it.rate.round()),
            capacity_is_floor: capacity.is_some_and(|it| it.is_floor),
            suggested_encoder_bits_per_second: self.load.suggestion().filter(|_| sends),
            encoder: report.encoder,
            end: if sends { "sender" } else { "receiver" },
            waiting_bytes: report.buffered_bytes,
            redundancy: RedundancyFigures {
                code: report.redundancy.clone(),
                share: (sends && chunks + extra > 0).then(|| round(extra as f64 / (chunks + extra) as f64)),
                redundancy_chunks: sum(|path| path.redundancy_chunks),
                copied_chunks: sum(|path| path.copied_chunks),
                recovered_chunks: report.recovered_chunks,
            },
            paths,
            kinds,
            recent: report.recent.clone(),
            recent_seconds: round(report.recent_seconds),
            unheard_seconds: report.unheard_seconds.map(round),
            ..StreamFigures::default()
        };
        let overload = self.load.words().filter(|_| sends);
        (figures.state, figures.health, figures.reasons) = self.pulse.judge(now, stream, report, overload, name);
        figures
    }

    fn kind(&mut self, kind: &KindReport) -> KindFigures {
        let total = KindCounts {
            captured: kind.captured,
            on_time: kind.on_time,
            late: kind.late,
            dropped_expired: kind.expired,
            dropped_crowded_out: kind.crowded_out,
            dropped_refused: kind.unsent.saturating_sub(kind.expired + kind.crowded_out),
            dropped_on_the_way: kind.abandoned,
        };
        let before = self.kinds.insert(kind.kind, total).unwrap_or_default();
        let (missing, not_known_yet) = (kind.missing, kind.not_known_yet);
        KindFigures { kind: kind.kind, total, missing, not_known_yet, interval: total.since(&before) }
    }

    fn path(&mut self, path: &PathReport, name: String, sends: bool) -> (PathFigures, Sent) {
        let (chunks, lost) = (path.sent_chunks, path.lost_chunks);
        let total = Sent { chunks, lost, extra: path.redundancy_chunks + path.copied_chunks };
        let key = format!("{} {}", path.socket, path.remote);
        let before = self.paths.insert(key, total).unwrap_or_default();
        let sent = Sent {
            chunks: chunks.saturating_sub(before.chunks),
            lost: lost.saturating_sub(before.lost),
            extra: total.extra.saturating_sub(before.extra),
        };
        let there = path.state != "left";
        let figures = PathFigures {
            name,
            remote: path.remote.clone(),
            state: path.state,
            state_seconds: round(path.state_seconds),
            sent_bits_per_second: path.send_rate.round(),
            received_bits_per_second: path.receive_rate.round(),
            delivered_bits_per_second: sends.then(|| path.delivered_rate.round()),
            capacity_bits_per_second: path.capacity.filter(|_| sends && there).map(f64::round),
            capacity_is_floor: path.capacity_is_floor,
            rtt_ms: path.rtt_ms.map(round),
            min_rtt_ms: path.min_rtt_ms.map(round),
            queue_ms: (sends && there).then(|| round(path.queued_ms)),
            window_bytes: (sends && there).then_some(path.cwnd_bytes),
            in_flight_bytes: (sends && there).then_some(path.in_flight_bytes),
            // What is found lost now may have been sent before.
            loss_share: (sends && sent.chunks > 0).then(|| round((sent.lost as f64 / sent.chunks as f64).min(1.0))),
            sent_bytes: path.sent_bytes,
            received_bytes: path.received_bytes,
            sent_chunks: chunks,
            lost_chunks: lost,
            repeated_chunks: path.retransmitted_chunks,
            on_time_share: path.on_time_share.map(round),
        };
        (figures, sent)
    }
}
