//! Reports of a tunnel: live, and a summary at the end.

use crate::cmd::dccp::ConnectionLine;
use crate::out::style::Style;
use crate::out::table::{Table, Tone};
use crate::out::units;
use crate::out::{json, security};
use braidcast_core::{Instant, Route};
use braidcast_dccp::{Call, Report};
use braidcast_media::voice::{Codec, Conditions, EModel, Form};
use braidcast_sctp::{PathReport, PathState};
use braidcast_session::SecurityReport;
use braidcast_session::tunnel::{Count, Discards, Dropped, Figures, Flow, FlowId, HEADER_LEN, Link, Tunnel};
use serde::Serialize;
use std::time::Duration;

/// Speech in a packet, as telephones send it unless told otherwise.
const PACKET: Duration = Duration::from_millis(20);
const PACKETS_PER_SECOND: f64 = 50.0;
/// RTP's header without extensions (RFC 3550 §5.1).
const RTP_HEADER: usize = 12;
/// No more calls fit from this loss event rate on, if nothing else is said.
const MAX_LOSS: f64 = 0.02;

/// What is said of flows.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    /// They are calls with this codec.
    pub(super) codec: Option<Codec>,
    /// The loss event rate from which on no more fit, if it was said.
    pub(super) max_loss: Option<f64>,
}

/// The other end in the JSON document.
#[derive(Serialize)]
pub(super) struct LinkLine {
    peer: String,
    state: &'static str,
    /// Connections that were made; more than one after a break.
    connections: u64,
    /// Null if nothing is encrypted.
    security: Option<SecurityReport>,
    #[serde(flatten)]
    dccp: Option<ConnectionLine>,
    /// Over SCTP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<PathLine>,
    /// How many more calls would fit now; null without --calls, or if the CCID has no rate.
    more_calls: Option<u32>,
    dropped: Dropped,
    ended_flows: u64,
    flows: Vec<FlowLine>,
}

/// A path of SCTP's.
#[derive(Serialize)]
struct PathLine {
    remote: String,
    state: &'static str,
    rtt_ms: Option<f64>,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    lost_chunks: u64,
    redundancy_chunks: u64,
}

impl From<&PathReport> for PathLine {
    fn from(path: &PathReport) -> Self {
        Self {
            remote: path.route.remote.to_string(),
            state: match path.state {
                PathState::Active => "up",
                PathState::Unconfirmed => "joining",
                PathState::PotentiallyFailed | PathState::Inactive => "silent",
            },
            rtt_ms: path.srtt.map(|rtt| json::round(rtt.as_secs_f64() * 1e3)),
            sent_packets: path.sent_packets,
            sent_bytes: path.sent_bytes,
            received_packets: path.received_packets,
            received_bytes: path.received_bytes,
            lost_chunks: path.lost_chunks,
            redundancy_chunks: path.redundancy_chunks,
        }
    }
}

#[derive(Serialize)]
struct FlowLine {
    flow: String,
    /// The place of its --listen.
    port: u8,
    /// The application was at this end.
    opened_here: bool,
    seconds: f64,
    sent_datagrams: u64,
    sent_bytes: u64,
    /// Of these, dropped before DCCP had them.
    refused_datagrams: u64,
    /// Of these, discarded by the send queue.
    discarded_datagrams: Discards,
    /// How important they are, 0 to 7, and whether that is a guess by their lengths.
    priority: u8,
    priority_is_guess: bool,
    /// How long they are of use, if that was said of their port.
    lifetime_ms: Option<f64>,
    received_datagrams: u64,
    received_bytes: u64,
    lost_datagrams: u64,
    late_datagrams: u64,
    duplicates: u64,
    /// Received in time for the jitter buffer, of all that the other end's application sent.
    on_time_share: Option<f64>,
    jitter_ms: f64,
    /// From application to ear: half the RTT, and what jitter makes a listener wait.
    delay_ms: Option<f64>,
    mos: Option<f64>,
}

impl Sight {
    /// All other ends.
    pub(super) fn document(self, now: Instant, tunnel: &Tunnel) -> Vec<LinkLine> {
        tunnel.links().map(|(_, link)| self.link_line(now, tunnel, link)).collect()
    }

    fn link_line(self, now: Instant, tunnel: &Tunnel, link: &Link) -> LinkLine {
        let report = tunnel.report(now, link);
        let rtt = tunnel.round_trip(now, link);
        LinkLine {
            peer: link.route.remote.to_string(),
            state: link.state(),
            connections: link.connections,
            security: link.security.clone(),
            more_calls: report.as_ref().and_then(|report| self.more_calls(now, link, report)),
            dccp: report.as_ref().map(ConnectionLine::from),
            paths: tunnel.paths(link).iter().map(PathLine::from).collect(),
            dropped: link.dropped,
            ended_flows: link.ended_flows,
            flows: link.flows.iter().map(|(&id, flow)| self.flow_line(now, id, flow, rtt)).collect(),
        }
    }

    fn flow_line(self, now: Instant, id: FlowId, flow: &Flow, rtt: Option<Duration>) -> FlowLine {
        let figures = flow.whole(now);
        let heard = figures.heard;
        let any = figures.received.datagrams > 0;
        let delay = delay(&figures, rtt).filter(|_| any);
        let (priority, priority_is_guess) = flow.priority(now);
        FlowLine {
            flow: name(id, flow),
            port: flow.port,
            opened_here: id.ours,
            seconds: json::round(figures.seconds),
            sent_datagrams: figures.sent.datagrams,
            sent_bytes: figures.sent.bytes,
            refused_datagrams: flow.refused,
            discarded_datagrams: figures.discarded,
            priority: priority.get(),
            priority_is_guess,
            lifetime_ms: flow.lifetime().map(|lifetime| json::round(lifetime.as_secs_f64() * 1e3)),
            received_datagrams: figures.received.datagrams,
            received_bytes: figures.received.bytes,
            lost_datagrams: heard.lost.saturating_sub(heard.late),
            late_datagrams: heard.late,
            duplicates: heard.duplicates,
            on_time_share: any.then(|| json::round(1.0 - heard.loss())),
            jitter_ms: json::round(heard.jitter().as_secs_f64() * 1e3),
            delay_ms: delay.map(|delay| json::round(delay.as_secs_f64() * 1e3)),
            mos: self.mos(&figures, rtt).map(json::round),
        }
    }

    /// A call as a telephone makes it.
    pub(super) fn call(self) -> Option<Call> {
        let payload = speech_bytes(self.codec?) + RTP_HEADER + HEADER_LEN;
        Some(Call { payload, rate: PACKETS_PER_SECOND, max_loss: self.max_loss.unwrap_or(MAX_LOSS) })
    }

    /// How many more calls fit, besides the flows that carry one now.
    fn more_calls(self, now: Instant, link: &Link, report: &Report) -> Option<u32> {
        let call = self.call()?;
        // Voice activity detection leaves out half of the packets or more; RTCP and signalling are far below.
        let is_call =
            |figures: &Figures| figures.sent.datagrams as f64 >= 0.2 * PACKETS_PER_SECOND * figures.seconds.max(1.0);
        let carried = link.flows.values().filter(|flow| is_call(&flow.recent(now))).count();
        call.more_that_fit(report.sending, &report.ccid, u32::try_from(carried).unwrap_or(u32::MAX))
    }

    /// Returns the mean opinion score (MOS) of the other side's speech as heard here.
    pub(super) fn mos(self, figures: &Figures, rtt: Option<Duration>) -> Option<f64> {
        let codec = self.codec.filter(|_| is_speech(figures.received, figures.seconds))?;
        let delay = delay(figures, rtt)? + codec.delay(PACKET);
        let (loss, burst_ratio) = (figures.heard.loss(), figures.heard.burst_ratio());
        Some(EModel::new(Form::G107, codec).rate(&Conditions { delay, loss, burst_ratio }).mos)
    }

    /// Everything in one line.
    pub(super) fn line(self, now: Instant, tunnel: &Tunnel) -> String {
        let ends: Vec<String> = tunnel
            .links()
            .filter(|(_, link)| link.connected)
            .map(|(_, link)| {
                let report = tunnel.report(now, link);
                let rtt = tunnel.round_trip(now, link);
                let paths = tunnel.paths(link);
                let gone: u64 = link.flows.values().map(|flow| flow.recent(now).discarded.total()).sum();
                let flows = link.flows.values().map(|flow| flow.recent(now)).filter(|it| it.received.datagrams > 0);
                let on_time = flows.map(|figures| 1.0 - figures.heard.loss()).min_by(f64::total_cmp);
                format!(
                    "{}: {} flows, RTT {}, {}{}{}",
                    link.route.remote,
                    link.flows.len(),
                    rtt.map_or_else(dash, units::time),
                    if paths.is_empty() {
                        format!(
                            "allowed {}, loss events {}",
                            report.map_or_else(dash, |report| allowed(&report)),
                            report.and_then(|report| report.ccid.loss_event_rate).map_or_else(dash, units::share)
                        )
                    } else {
                        let up = paths.iter().filter(|path| path.state == PathState::Active).count();
                        format!("{up} of {} paths up", paths.len())
                    },
                    if gone > 0 { format!(", {gone} discarded") } else { String::new() },
                    on_time.map_or_else(String::new, |share| format!(", {} on time", units::share(share))),
                )
            })
            .collect();
        if ends.is_empty() { "not connected".into() } else { ends.join(" | ") }
    }

    /// The ends, with how their connections do.
    pub(super) fn ends(self, now: Instant, tunnel: &Tunnel, style: Style) -> Table {
        let mut head = vec!["other end", "state", "control", "allowed", "RTT", "loss events", "queue", "dropped"];
        head.extend(self.codec.map(|_| "more calls"));
        let mut table = Table::new(&head, style);
        for (_, link) in tunnel.links() {
            let report = tunnel.report(now, link);
            let loss = report.and_then(|report| report.ccid.loss_event_rate);
            let tone = match (link.connected, link.closed) {
                (true, _) => Tone::Good,
                (false, true) => Tone::Plain,
                (false, false) => Tone::Bad,
            };
            let more = report.as_ref().and_then(|report| self.more_calls(now, link, report));
            let mut cells = vec![
                (link.route.remote.to_string(), Tone::Plain),
                (link.state().into(), tone),
                plain(report.map(|report| report.sending.to_string())),
                plain(report.map(|report| allowed(&report))),
                plain(tunnel.round_trip(now, link).map(units::time)),
                loss.map_or_else(|| (dash(), Tone::Plain), |loss| (units::share(loss), bad_from(loss, 0.01, 0.05))),
                plain(report.map(|it| format!("{} ({})", it.queued_messages, units::bytes(it.queued_bytes as u64)))),
                plain(Some((discarded_by_queue(report.as_ref()) + refused(link)).to_string())),
            ];
            if self.codec.is_some() {
                cells.push(plain(more.map(|calls| calls.to_string())));
            }
            table.row(cells);
        }
        table
    }

    /// The paths of ends over SCTP, by the names that they have here; `None` if there are none.
    pub(super) fn paths(tunnel: &Tunnel, name: impl Fn(Route) -> String, style: Style) -> Option<Table> {
        let mut table = Table::new(&["path", "state", "RTT", "sent", "received", "lost", "redundancy"], style);
        let mut any = false;
        for path in tunnel.links().flat_map(|(_, link)| tunnel.paths(link)) {
            any = true;
            let (state, tone) = match path.state {
                PathState::Active => ("up", Tone::Good),
                PathState::Unconfirmed => ("joining", Tone::Doubtful),
                PathState::PotentiallyFailed | PathState::Inactive => ("silent", Tone::Bad),
            };
            table.row(vec![
                plain(Some(name(path.route))),
                (state.into(), tone),
                plain(path.srtt.map(units::time)),
                plain(Some(units::bytes(path.sent_bytes))),
                plain(Some(units::bytes(path.received_bytes))),
                plain(Some(path.lost_chunks.to_string())),
                plain(Some(path.redundancy_chunks.to_string())),
            ]);
        }
        any.then_some(table)
    }

    /// How what went to each end was protected.
    pub(super) fn security(tunnel: &Tunnel, plain: bool) -> Vec<String> {
        let of = |link: &Link| security::lines(link.security.as_ref(), plain, link.connections > 0);
        let several = tunnel.links().count() > 1;
        let name = |link: &Link| if several { format!("{}: ", link.route.remote) } else { String::new() };
        tunnel.links().flat_map(|(_, link)| of(link).into_iter().map(move |line| name(link) + &line)).collect()
    }

    /// Returns why datagrams were discarded, over the whole time: a line for each flow that lost
    /// some.
    pub(super) fn discards(now: Instant, tunnel: &Tunnel) -> Vec<String> {
        let mut lines = Vec::new();
        for (&id, flow) in tunnel.links().flat_map(|(_, link)| &link.flows) {
            let Discards { expired, replaced, no_room, outgrown } = flow.whole(now).discarded;
            let reasons = [
                (expired, "would have come too late"),
                (replaced, "made room for newer or more important ones"),
                (no_room, "found only more important ones waiting"),
                (outgrown, "were too long for the path"),
            ];
            let reasons = reasons.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}"));
            let reasons = reasons.collect::<Vec<_>>().join(", ");
            if !reasons.is_empty() {
                lines.push(format!("{}: of the discarded, {reasons}", name(id, flow)));
            }
        }
        lines
    }

    /// The flows, over the last seconds or the whole time.
    pub(super) fn flows(self, now: Instant, tunnel: &Tunnel, recent: bool, style: Style) -> Table {
        let mut head =
            vec!["flow", "priority", "sent", "discarded", "received", "lost", "late", "on time", "jitter", "delay"];
        head.extend(self.codec.map(|_| "MOS"));
        let mut table = Table::new(&head, style);
        for (_, link) in tunnel.links() {
            let rtt = tunnel.round_trip(now, link);
            for (&id, flow) in &link.flows {
                let figures = if recent { flow.recent(now) } else { flow.whole(now) };
                let lead = [plain(Some(name(id, flow))), plain(Some(priority(now, flow)))];
                let cells = self.flow_cells(&figures, recent, rtt);
                table.row(lead.into_iter().chain(cells));
            }
        }
        table
    }

    /// All but the first two.
    fn flow_cells(self, figures: &Figures, recent: bool, rtt: Option<Duration>) -> Vec<(String, Tone)> {
        let heard = figures.heard;
        let any = figures.received.datagrams > 0;
        let amount = |count: Count| {
            if recent {
                units::rate(count.bytes as f64 * 8.0 / figures.seconds.max(0.1))
            } else {
                count.datagrams.to_string()
            }
        };
        let on_time = 1.0 - heard.loss();
        let mut cells = vec![
            plain(Some(amount(figures.sent))),
            discarded(figures),
            plain(Some(amount(figures.received))),
            plain(any.then(|| heard.lost.saturating_sub(heard.late).to_string())),
            plain(any.then(|| heard.late.to_string())),
            if any { (units::share(on_time), bad_from(1.0 - on_time, 0.01, 0.05)) } else { plain(None) },
            plain(any.then(|| units::time(heard.jitter()))),
            plain(delay(figures, rtt).filter(|_| any).map(units::time)),
        ];
        if self.codec.is_some() {
            let mos = self.mos(figures, rtt);
            // G.107 table B.1: satisfied from 4.03, many dissatisfied below 3.6.
            let tone = |mos: f64| bad_from(5.0 - mos, 5.0 - 4.03, 5.0 - 3.6);
            cells.push(mos.map_or_else(|| plain(None), |mos| (format!("{mos:.2}"), tone(mos))));
        }
        cells
    }
}

/// A flow's priority, in brackets if it is a guess.
fn priority(now: Instant, flow: &Flow) -> String {
    match flow.priority(now) {
        (priority, true) => format!("({priority})"),
        (priority, false) => priority.to_string(),
    }
}

/// Returns how many of the datagrams that came the queue discarded.
fn discarded(figures: &Figures) -> (String, Tone) {
    let total = figures.discarded.total();
    let share = total as f64 / figures.sent.datagrams.max(total).max(1) as f64;
    (total.to_string(), bad_from(share, 0.01, 0.05))
}

/// Bytes of speech in a packet: RFC 3551 §4.5; for Speex 15 kbit/s (RFC 5574 §3).
const fn speech_bytes(codec: Codec) -> usize {
    match codec {
        Codec::G711 | Codec::G711Plc => 160,
        Codec::G729 | Codec::G729aVad => 20,
        Codec::Speex => 38,
    }
}

/// Returns `true` if these may be the packets of a call: voice activity detection leaves out half of them or
/// more, RTCP and signalling are far fewer.
fn is_speech(count: Count, seconds: f64) -> bool {
    count.datagrams as f64 >= 0.2 * PACKETS_PER_SECOND * seconds.max(1.0)
}

/// One way; the ends' clocks do not agree, so an empty network takes half the RTT.
fn delay(figures: &Figures, rtt: Option<Duration>) -> Option<Duration> {
    rtt.map(|rtt| rtt / 2 + figures.heard.buffering())
}

pub(super) fn name(id: FlowId, flow: &Flow) -> String {
    let application = flow.local.map_or_else(|| "…".into(), |route| route.remote.to_string());
    if id.ours {
        format!("{}: from {application}", flow.port + 1)
    } else {
        format!("{}: to {application}", flow.port + 1)
    }
}

fn allowed(report: &Report) -> String {
    let rate = report.ccid.allowed_rate.map(|rate| units::rate(rate * 8.0));
    rate.or_else(|| report.ccid.cwnd.map(|packets| format!("{packets} packets"))).unwrap_or_else(dash)
}

fn discarded_by_queue(report: Option<&Report>) -> u64 {
    report.map_or(0, |Report { stats, .. }| stats.expired + stats.crowded_out + stats.outgrown)
}

fn refused(link: &Link) -> u64 {
    let Dropped { too_long, queue_full, unconnected, too_many, no_forward, malformed, refused_calls } = link.dropped;
    too_long + queue_full + unconnected + too_many + no_forward + malformed + refused_calls
}

fn plain(text: Option<String>) -> (String, Tone) {
    (text.unwrap_or_else(dash), Tone::Plain)
}

fn dash() -> String {
    "–".into()
}

fn bad_from(value: f64, doubtful: f64, bad: f64) -> Tone {
    match value {
        value if value >= bad => Tone::Bad,
        value if value >= doubtful => Tone::Doubtful,
        _ => Tone::Good,
    }
}
