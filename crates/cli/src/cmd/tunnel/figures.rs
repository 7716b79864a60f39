//! A tunnel's live figures.

use super::report::Sight;
use crate::cmd::watch::{FlowFigures, Health, PathFigures, State, StreamFigures};
use crate::out::json::round;
use braidcast_core::{Instant, Route};
use braidcast_dccp::Report;
use braidcast_sctp::{PathReport, PathState};
use braidcast_session::tunnel::{Link, Tunnel};
use std::collections::BTreeMap;
use std::time::Duration;

/// Age after which a measurement of a full path is stale: the path may carry more, or less, by now.
const FULL_OF_LATE: Duration = Duration::from_secs(10);
/// From this share of datagrams that are not on time on, it is worth a look, and people hear it.
const DOUBTFUL: f64 = 0.01;
const BAD: f64 = 0.05;

/// Follows the paths of all links, so that rates can be told.
#[derive(Debug, Default)]
pub(super) struct Meter(BTreeMap<String, Before>);

/// What a path had done when it was looked at last, and since when it is in its state.
#[derive(Clone, Copy, Debug)]
struct Before {
    at: Instant,
    sent: u64,
    received: u64,
    delivered: u64,
    chunks: u64,
    lost: u64,
    state: &'static str,
    since: Instant,
}

/// Bit/s of a count that grew.
fn rate(now: u64, before: u64, span: Duration) -> f64 {
    if span.is_zero() {
        return 0.0;
    }
    (now.saturating_sub(before) as f64 * 8.0 / span.as_secs_f64()).round()
}

fn ms(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

impl Meter {
    /// Figures of all other ends. `name`: what a path is called.
    pub(super) fn take(
        &mut self,
        now: Instant,
        sight: Sight,
        tunnel: &Tunnel,
        name: impl Fn(Route) -> String,
    ) -> Vec<StreamFigures> {
        let there: Vec<_> = tunnel.links().map(|(id, link)| self.link(now, sight, tunnel, (id, link), &name)).collect();
        // Links that have gone are forgotten.
        self.0.retain(|_, before| now.since(before.at) < Duration::from_secs(60));
        there
    }

    fn link(
        &mut self,
        now: Instant,
        sight: Sight,
        tunnel: &Tunnel,
        (id, link): (u32, &Link),
        name: &impl Fn(Route) -> String,
    ) -> StreamFigures {
        let flows: Vec<_> =
            link.flows.iter().map(|(&id, flow)| flow_figures(now, sight, tunnel, link, (id, flow))).collect();
        let mut figures = StreamFigures {
            name: link.route.remote.to_string(),
            connected: link.connected,
            reconnections: link.connections.saturating_sub(1),
            input_bits_per_second: Some(flows.iter().map(|flow| flow.sent_bits_per_second).sum()),
            encoder: tunnel.rate_report(now, link),
            flows,
            end: "tunnel",
            ..StreamFigures::default()
        };
        if let Some(report) = tunnel.report(now, link) {
            figures.waiting_bytes = report.queued_bytes as u64;
            figures.paths.push(dccp_path(now, tunnel, link, &report, name(link.route)));
            self.rates(now, &format!("{id}"), &mut figures.paths[0], 0);
        }
        for path in tunnel.paths(link) {
            figures.redundancy.redundancy_chunks += path.redundancy_chunks;
            figures.redundancy.copied_chunks += path.copied_chunks;
            let mut it = sctp_path(now, &path, name(path.route));
            self.rates(now, &format!("{id} {}", path.id.0), &mut it, path.delivered_bytes);
            figures.paths.push(it);
        }
        let active = || figures.paths.iter().filter(|path| path.state == "active");
        let known = active().any(|path| path.capacity_bits_per_second.is_some());
        figures.capacity_bits_per_second =
            known.then(|| active().filter_map(|path| path.capacity_bits_per_second).sum());
        figures.capacity_is_floor = active().any(|path| path.capacity_is_floor);
        (figures.health, figures.reasons) = judge(&figures);
        figures.state = match figures.health {
            _ if !figures.connected => State::Connecting,
            Health::Good => State::Live,
            Health::Doubtful | Health::Bad => State::Degraded,
        };
        figures
    }

    /// Fills in what needs to know what was before.
    fn rates(&mut self, now: Instant, key: &str, path: &mut PathFigures, delivered: u64) {
        let PathFigures {
            sent_bytes: sent,
            received_bytes: received,
            sent_chunks: chunks,
            lost_chunks: lost,
            state,
            ..
        } = *path;
        let fresh = Before { at: now, sent, received, delivered, chunks, lost, state, since: now };
        let before = self.0.get(key).copied().unwrap_or(fresh);
        let since = if before.state == state { before.since } else { now };
        let span = now.since(before.at);
        path.sent_bits_per_second = rate(sent, before.sent, span);
        if path.delivered_bits_per_second.is_some() {
            path.received_bits_per_second = rate(received, before.received, span);
            path.delivered_bits_per_second = Some(rate(delivered, before.delivered, span));
            let new = chunks.saturating_sub(before.chunks);
            path.loss_share = (new > 0).then(|| round((lost.saturating_sub(before.lost) as f64 / new as f64).min(1.0)));
        }
        path.state_seconds = round(now.since(since).as_secs_f64());
        self.0.insert(key.to_owned(), Before { since, ..fresh });
    }
}

fn flow_figures(
    now: Instant,
    sight: Sight,
    tunnel: &Tunnel,
    link: &Link,
    (id, flow): (braidcast_session::tunnel::FlowId, &braidcast_session::tunnel::Flow),
) -> FlowFigures {
    let (whole, recent) = (flow.whole(now), flow.recent(now));
    let rate = |bytes: u64| (bytes as f64 * 8.0 / recent.seconds.max(0.1)).round();
    FlowFigures {
        flow: super::report::name(id, flow),
        sent_bits_per_second: rate(recent.sent.bytes),
        received_bits_per_second: rate(recent.received.bytes),
        sent_datagrams: whole.sent.datagrams,
        received_datagrams: whole.received.datagrams,
        lost_datagrams: whole.heard.lost.saturating_sub(whole.heard.late),
        late_datagrams: whole.heard.late,
        dropped_expired: whole.discarded.expired,
        dropped_crowded_out: whole.discarded.replaced + whole.discarded.no_room,
        dropped_too_long: whole.discarded.outgrown,
        on_time_share: (recent.received.datagrams > 0).then(|| round(1.0 - recent.heard.loss())),
        jitter_ms: ms(recent.heard.jitter()),
        mos: sight.mos(&recent, tunnel.round_trip(now, link)).map(round),
    }
}

fn dccp_path(now: Instant, tunnel: &Tunnel, link: &Link, report: &Report, name: String) -> PathFigures {
    let received: u64 = link.flows.values().map(|flow| flow.whole(now).received.bytes).sum();
    let recent = link.flows.values().map(|flow| flow.recent(now));
    PathFigures {
        name,
        remote: link.route.remote.to_string(),
        state: if link.connected { "active" } else { "inactive" },
        received_bits_per_second: recent
            .map(|it| it.received.bytes as f64 * 8.0 / it.seconds.max(0.1))
            .sum::<f64>()
            .round(),
        capacity_bits_per_second: report.ccid.allowed_rate.map(|bytes| (bytes * 8.0).round()),
        capacity_is_floor: report.queued_messages == 0,
        rtt_ms: tunnel.round_trip(now, link).map(ms),
        loss_share: report.ccid.loss_event_rate.map(round),
        sent_bytes: report.stats.sent_bytes,
        received_bytes: received,
        ..PathFigures::default()
    }
}

fn sctp_path(now: Instant, path: &PathReport, name: String) -> PathFigures {
    PathFigures {
        name,
        remote: path.route.remote.to_string(),
        state: match path.state {
            PathState::Unconfirmed => "unconfirmed",
            PathState::Active => "active",
            PathState::PotentiallyFailed => "potentially failed",
            PathState::Inactive => "inactive",
        },
        delivered_bits_per_second: Some(0.0),
        capacity_bits_per_second: path.capacity.map(|bytes| bytes as f64 * 8.0),
        capacity_is_floor: path.full_at.is_none_or(|at| now.since(at) > FULL_OF_LATE),
        rtt_ms: path.srtt.map(ms),
        min_rtt_ms: path.min_rtt.map(ms),
        queue_ms: Some(ms(path.queued)),
        window_bytes: Some(path.cwnd as u64),
        in_flight_bytes: Some(path.in_flight as u64),
        sent_bytes: path.sent_bytes,
        received_bytes: path.received_bytes,
        sent_chunks: path.sent_chunks,
        lost_chunks: path.lost_chunks,
        repeated_chunks: path.retransmitted_chunks,
        ..PathFigures::default()
    }
}

fn judge(figures: &StreamFigures) -> (Health, Vec<String>) {
    let (mut health, mut reasons) = (Health::Good, Vec::new());
    if !figures.connected {
        (health, reasons) = (Health::Bad, vec!["not connected".into()]);
    }
    for path in figures.paths.iter().filter(|path| figures.connected && path.state != "active") {
        health = health.max(Health::Doubtful);
        reasons.push(format!("{} does not answer", path.name));
    }
    for flow in &figures.flows {
        let missed = 1.0 - flow.on_time_share.unwrap_or(1.0);
        if missed > DOUBTFUL {
            health = health.max(if missed > BAD { Health::Bad } else { Health::Doubtful });
            reasons.push(format!("of {}, {} is not on time", flow.flow, crate::out::units::share(missed)));
        }
    }
    (health, reasons)
}
