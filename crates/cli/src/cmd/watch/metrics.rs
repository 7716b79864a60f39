//! `--metrics`: the figures for Prometheus and all that reads its formats.

use super::figures::{Figures, PathFigures, StreamFigures};
use super::state::State;
use crate::cmd::neighbour;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt::Write;
use std::sync::atomic::AtomicU64;

/// The media type of the older text format, which every collector takes.
pub(crate) const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
/// And of OpenMetrics.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;
type Counters = Family<Labels, Counter>;

/// Every state that a path can have, so that each is a series of 0 and 1.
const STATES: [&str; 5] = ["unconfirmed", "active", "potentially failed", "inactive", "left"];

/// The figures as OpenMetrics.
pub(super) fn open_metrics(figures: &Figures) -> String {
    let mut registry = Registry::with_prefix("braidcast");
    fill(&mut registry, figures);
    let mut out = String::new();
    // A string takes everything.
    let _ = text::encode(&mut out, &registry);
    out
}

/// The same in Prometheus' own older format, where a counter's name, not its family's, has `_total`
/// and there is no end marker.
pub(super) fn classic(figures: &Figures) -> String {
    in_classic_form(&open_metrics(figures))
}

/// The same of any figures.
pub(crate) fn in_classic_form(whole: &str) -> String {
    let mut out = String::new();
    let counters: Vec<&str> =
        whole.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    for line in whole.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(&name) => {
                let _ = writeln!(out, "# {what} {name}_total {rest}");
            }
            _ => {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    out
}

fn gauges(registry: &mut Registry, name: &str, help: &str) -> Gauges {
    let family = Gauges::default();
    registry.register(name, help, family.clone());
    family
}

fn counters(registry: &mut Registry, name: &str, help: &str) -> Counters {
    let family = Counters::default();
    registry.register(name, help, family.clone());
    family
}

/// Fills in the counts of what was discarded, by reason.
fn fill_reasons(dropped: &Counters, labels: &Labels, reasons: &[(&str, u64)]) {
    for &(reason, count) in reasons {
        let labels: Labels = labels.iter().cloned().chain([("reason", reason.to_owned())]).collect();
        dropped.get_or_create(&labels).inc_by(count);
    }
}

fn fill(registry: &mut Registry, figures: &Figures) {
    let info = gauges(registry, "build_info", "The version at work");
    let version = env!("CARGO_PKG_VERSION").to_owned();
    info.get_or_create(&vec![("version", version), ("command", figures.command.into())]).set(1.0);
    gauges(registry, "uptime_seconds", "Time since the command began")
        .get_or_create(&vec![])
        .set(figures.uptime_seconds);
    fill_streams(registry, &figures.streams);
    fill_paths(registry, &figures.streams);
    fill_frames(registry, &figures.streams);
    fill_flows(registry, &figures.streams);
    fill_neighbours(registry, &figures.streams);
}

fn fill_streams(registry: &mut Registry, streams: &[StreamFigures]) {
    let states = gauges(registry, "stream_state", "1 for the state that the stream is in, 0 for the others");
    for stream in streams {
        for state in State::ALL {
            let labels = vec![("stream", stream.name.clone()), ("state", state.name().to_owned())];
            states.get_or_create(&labels).set(f64::from(u8::from(stream.state == state)));
        }
    }
    let mut all = |name: &str, help: &str, value: fn(&StreamFigures) -> Option<f64>| {
        let family = gauges(registry, name, help);
        for stream in streams {
            if let Some(value) = value(stream) {
                family.get_or_create(&vec![("stream", stream.name.clone())]).set(value);
            }
        }
    };
    all("stream_connected", "1 if the other end is there, else 0", |it| Some(f64::from(u8::from(it.connected))));
    all("stream_health", "0 good, 1 doubtful, 2 bad", |it| Some(f64::from(it.health as u8)));
    all("stream_input_bytes_per_second", "Input, over five seconds", |it| per_second(it.input_bits_per_second));
    all("stream_delivered_bytes_per_second", "Payload acknowledged", |it| per_second(it.delivered_bits_per_second));
    all("stream_capacity_bytes_per_second", "Payload that the paths could carry together", |it| {
        per_second(it.capacity_bits_per_second)
    });
    all("stream_suggested_encoder_bytes_per_second", "Rate that an encoder should make in all", |it| {
        per_second(it.suggested_encoder_bits_per_second)
    });
    all("stream_waiting_bytes", "Bytes that wait", |it| Some(it.waiting_bytes as f64));
    let reconnections = counters(registry, "stream_reconnections", "Associations after the first");
    let recovered = counters(registry, "stream_recovered_chunks", "Chunks that redundancy repaired");
    for stream in streams {
        let labels = vec![("stream", stream.name.clone())];
        reconnections.get_or_create(&labels).inc_by(stream.reconnections);
        recovered.get_or_create(&labels).inc_by(stream.redundancy.recovered_chunks);
    }
}

fn per_second(bits: Option<f64>) -> Option<f64> {
    bits.map(|bits| bits / 8.0)
}

fn fill_paths(registry: &mut Registry, streams: &[StreamFigures]) {
    let each = || streams.iter().flat_map(|stream| stream.paths.iter().map(move |path| (labels(stream, path), path)));
    let mut gauge = |name: &str, help: &str, value: fn(&PathFigures) -> Option<f64>| {
        let family = gauges(registry, name, help);
        for (labels, path) in each() {
            if let Some(value) = value(path) {
                family.get_or_create(&labels).set(value);
            }
        }
    };
    gauge("path_state_seconds", "Time that the path has been in its state", |it| Some(it.state_seconds));
    gauge("path_capacity_bytes_per_second", "Payload that the path could carry", |it| {
        per_second(it.capacity_bits_per_second)
    });
    gauge("path_delivered_bytes_per_second", "Payload acknowledged", |it| per_second(it.delivered_bits_per_second));
    gauge("path_rtt_seconds", "Smoothed round-trip time", |it| Some(it.rtt_ms? / 1e3));
    gauge("path_queue_seconds", "Time that packets stand in queues", |it| Some(it.queue_ms? / 1e3));
    gauge("path_window_bytes", "Congestion window", |it| Some(it.window_bytes? as f64));
    gauge("path_in_flight_bytes", "Sent and not acknowledged", |it| Some(it.in_flight_bytes? as f64));
    gauge("path_on_time_ratio", "Share on time of the units that came over the path", |it| it.on_time_share);
    let states = gauges(registry, "path_state", "1 for the state that the path is in");
    for (labels, path) in each() {
        for state in STATES {
            let labels: Labels = labels.iter().cloned().chain([("state", state.to_owned())]).collect();
            states.get_or_create(&labels).set(f64::from(u8::from(path.state == state)));
        }
    }
    let mut counter = |name: &str, help: &str, value: fn(&PathFigures) -> u64| {
        let family = counters(registry, name, help);
        for (labels, path) in each() {
            family.get_or_create(&labels).inc_by(value(path));
        }
    };
    counter("path_sent_bytes", "Bytes sent, headers of SCTP included", |it| it.sent_bytes);
    counter("path_received_bytes", "Bytes received, headers of SCTP included", |it| it.received_bytes);
    counter("path_sent_chunks", "Data chunks sent, repeats included", |it| it.sent_chunks);
    counter("path_lost_chunks", "Data chunks found lost", |it| it.lost_chunks);
    counter("path_repeated_chunks", "Data chunks sent again", |it| it.repeated_chunks);
}

fn labels(stream: &StreamFigures, path: &PathFigures) -> Labels {
    vec![("stream", stream.name.clone()), ("path", path.name.clone()), ("remote", path.remote.clone())]
}

fn fill_frames(registry: &mut Registry, streams: &[StreamFigures]) {
    let captured = counters(registry, "frames_captured", "Frames that came in");
    let on_time = counters(registry, "frames_on_time", "Frames that came on time");
    let late = counters(registry, "frames_late", "Frames that came too late");
    let dropped = counters(registry, "frames_dropped", "Frames that were discarded, and why");
    for stream in streams {
        for kind in &stream.kinds {
            let labels = vec![("stream", stream.name.clone()), ("kind", kind.kind.to_owned())];
            captured.get_or_create(&labels).inc_by(kind.total.captured);
            on_time.get_or_create(&labels).inc_by(kind.total.on_time);
            late.get_or_create(&labels).inc_by(kind.total.late);
            let reasons = [
                ("expired", kind.total.dropped_expired),
                ("crowded_out", kind.total.dropped_crowded_out),
                ("refused", kind.total.dropped_refused),
                ("on_the_way", kind.total.dropped_on_the_way),
            ];
            fill_reasons(&dropped, &labels, &reasons);
        }
    }
}

/// Connections that are not ours, in the words that paths have.
fn fill_neighbours(registry: &mut Registry, streams: &[StreamFigures]) {
    let of = |stream: &StreamFigures, it: &neighbour::Figures| {
        let remote = it.remote.clone().unwrap_or_default();
        vec![("stream", stream.name.clone()), ("protocol", it.protocol.to_owned()), ("remote", remote)]
    };
    let each: Vec<(Labels, &neighbour::Figures)> =
        streams.iter().flat_map(|stream| stream.neighbours.iter().map(move |it| (of(stream, it), it))).collect();
    let connected = gauges(registry, "neighbour_connected", "1 if the neighbour is there, else 0");
    let rtt = gauges(registry, "neighbour_rtt_seconds", "Smoothed round-trip time");
    let total = gauges(registry, "neighbour_total_latency_seconds", "From the neighbour's sending to playout");
    for (labels, it) in &each {
        connected.get_or_create(labels).set(f64::from(u8::from(it.connected)));
        rtt.get_or_create(labels).set(it.rtt_ms / 1e3);
        if let Some(ms) = it.total_latency_ms {
            total.get_or_create(labels).set(ms / 1e3);
        }
    }
    let mut counter = |name: &str, help: &str, value: fn(&neighbour::Figures) -> u64| {
        let family = counters(registry, name, help);
        for (labels, it) in &each {
            family.get_or_create(labels).inc_by(value(it));
        }
    };
    counter("neighbour_received_bytes", "Payload that came, each packet once", |it| it.received_bytes);
    counter("neighbour_received_packets", "Packets that came, each once", |it| it.received_packets);
    counter("neighbour_missing_packets", "Packets missing when a later one came", |it| it.missing_packets);
    counter("neighbour_recovered_packets", "Of these, packets that came in time after all", |it| it.recovered_packets);
    counter("neighbour_skipped_packets", "Packets that were not there when they were due", |it| it.skipped_packets);
    counter("neighbour_sent_bytes", "Payload sent, each packet once", |it| it.sent_bytes);
    counter("neighbour_repeated_packets", "Packets sent again", |it| it.repeated_packets);
    counter("neighbour_dropped_packets", "Packets dropped before they were acknowledged", |it| it.dropped_packets);
}

fn fill_flows(registry: &mut Registry, streams: &[StreamFigures]) {
    let sent = counters(registry, "flow_sent_datagrams", "Datagrams of an application taken");
    let received = counters(registry, "flow_received_datagrams", "Datagrams handed to an application");
    let lost = counters(registry, "flow_lost_datagrams", "Datagrams that did not come");
    let late = counters(registry, "flow_late_datagrams", "Datagrams that came too late for the jitter buffer");
    let dropped = counters(registry, "flow_dropped_datagrams", "Datagrams that were discarded, and why");
    for stream in streams {
        for flow in &stream.flows {
            let labels = vec![("stream", stream.name.clone()), ("flow", flow.flow.clone())];
            sent.get_or_create(&labels).inc_by(flow.sent_datagrams);
            received.get_or_create(&labels).inc_by(flow.received_datagrams);
            lost.get_or_create(&labels).inc_by(flow.lost_datagrams);
            late.get_or_create(&labels).inc_by(flow.late_datagrams);
            let reasons = [
                ("expired", flow.dropped_expired),
                ("crowded_out", flow.dropped_crowded_out),
                ("too_long", flow.dropped_too_long),
            ];
            fill_reasons(&dropped, &labels, &reasons);
        }
    }
}
