//! What a relay reports: statistics, and metrics for Prometheus.

use crate::cmd::watch::{metrics, serve};
use crate::failure::Outcome;
use crate::out::json::round;
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::http::{Answer, Site};
use braidcast_relay::RelayReport;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// What it did so far.
#[derive(Clone, Serialize, Default)]
pub(super) struct Figures {
    time: String,
    uptime_seconds: f64,
    #[serde(flatten)]
    report: RelayReport,
}

impl Figures {
    pub(super) fn new(now: Instant, report: RelayReport) -> Self {
        Self { time: jiff::Timestamp::now().to_string(), uptime_seconds: round(now.as_secs_f64()), report }
    }
}

/// The latest figures, for who asks.
#[derive(Default)]
pub(super) struct Page(Mutex<Figures>);

impl Page {
    pub(super) fn publish(&self, figures: Figures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

struct Shown(Arc<Page>);

impl Site for Shown {
    fn answer(&self, path: &str, accept: &str) -> Answer {
        if path != "/metrics" {
            return Answer::Nothing;
        }
        let figures = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let whole = open_metrics(&figures.report);
        if accept.contains("application/openmetrics-text") {
            return Answer::Document(metrics::OPEN_METRICS, whole.into_bytes());
        }
        Answer::Document(metrics::CLASSIC, metrics::in_classic_form(&whole).into_bytes())
    }
}

/// Serves them at `addr`.
pub(super) fn serve_at(addr: SocketAddr, live: &Live) -> Outcome<Arc<Page>> {
    let page = Arc::new(Page::default());
    let at = serve(addr, None, Shown(Arc::clone(&page)), "--metrics")?;
    live.note(format!("metrics at http://{at}/metrics"));
    Ok(page)
}

fn open_metrics(report: &RelayReport) -> String {
    let mut registry = Registry::with_prefix("braidcast_relay");
    let mut gauge = |name: &str, help: &str, value: usize| {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value as f64);
        registry.register(name, help, gauge);
    };
    gauge("members", "Addresses that are here", report.members);
    gauge("circuits", "Circuits that are open", report.circuits);
    let mut counter = |name: &str, help: &str, value: u64| {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    };
    counter("packets", "Packets passed on", report.packets);
    counter("bytes", "Bytes above UDP passed on", report.bytes);
    counter("astray", "Packets for a leg that is not there", report.astray);
    counter("overflowed", "Packets dropped because too much waited", report.overflowed);
    counter("strange", "Datagrams of strangers", report.strange);
    counter("refused", "Registrations refused", report.refused);
    let mut family = |name: &str, help: &str, value: &dyn Fn(&braidcast_relay::ClientReport) -> u64| {
        let family = Family::<Vec<(&str, String)>, Counter>::default();
        for client in &report.clients {
            family.get_or_create(&vec![("client", client.name.clone())]).inc_by(value(client));
        }
        registry.register(name, help, family);
    };
    family("client_packets", "Packets passed on for a client", &|it| it.packets);
    family("client_bytes", "Bytes above UDP passed on for a client", &|it| it.bytes);
    family("client_over_rate", "Packets dropped because a client exceeded its rate", &|it| it.over_rate);
    family("client_over_quota", "Packets dropped because a client's quota was used up", &|it| it.over_quota);
    let mut quota = |name: &str, help: &str, value: &dyn Fn(&braidcast_relay::ClientReport) -> Option<u64>| {
        let family = Family::<Vec<(&str, String)>, Gauge<f64, AtomicU64>>::default();
        for (client, bytes) in report.clients.iter().filter_map(|client| Some((client, value(client)?))) {
            family.get_or_create(&vec![("client", client.name.clone())]).set(bytes as f64);
        }
        registry.register(name, help, family);
    };
    quota("client_quota_bytes", "Bytes that a client may send in its time", &|it| it.quota_bytes);
    quota("client_quota_left_bytes", "Bytes of a client's quota that are left", &|it| it.quota_left_bytes);
    let mut out = String::new();
    // A string takes everything.
    let _ = text::encode(&mut out, &registry);
    out
}
