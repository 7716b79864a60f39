//! All of it, as tables or as JSON.

use super::finding::{Finding, Level};
use super::here::{Here, Interface, Name};
use super::nat::Before;
use super::tried::{Carried, Ecn, Other, State, Tried};
use crate::cmd::tables::MAIN;
use crate::failure::Outcome;
use crate::out::style::Style;
use crate::out::table::{Table, Tone};
use crate::out::{json, text, units};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What was found.
pub(super) struct Report<'a> {
    pub(super) ok: bool,
    pub(super) here: &'a Here,
    pub(super) names: &'a [Name],
    pub(super) tried: &'a [Tried],
    pub(super) nats: &'a [Before],
    pub(super) findings: &'a [Finding],
}

#[derive(Serialize)]
struct Document<'a> {
    /// A stream could go.
    ok: bool,
    interfaces: &'a [Interface],
    names: &'a [Name],
    paths: Vec<PathLine<'a>>,
    nats: &'a [Before],
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct PathLine<'a> {
    name: &'a str,
    network: &'a str,
    local: Option<IpAddr>,
    remote: SocketAddr,
    by_relay: bool,
    state: &'static str,
    other: Option<Other>,
    seen_as: Option<SocketAddr>,
    rtt_ms: Option<f64>,
    /// Longest IP packet that got through, bytes.
    mtu: Option<usize>,
    ecn: Option<Ecn>,
    /// The other end's clock less this one's.
    clock_ahead_ms: Option<f64>,
    carried: Option<Carried>,
}

impl Report<'_> {
    /// Prints it.
    ///
    /// # Errors
    /// stdout took nothing.
    pub(super) fn print(&self, as_json: bool) -> Outcome {
        if as_json {
            let paths = self.tried.iter().map(line).collect();
            let interfaces = &self.here.interfaces;
            let (names, nats, findings) = (self.names, self.nats, self.findings);
            return json::print("doctor", &Document { ok: self.ok, interfaces, names, paths, nats, findings });
        }
        let style = Style::stdout();
        let mut parts = vec![self.interfaces(style).to_string()];
        parts.extend(self.named(style).map(|table| table.to_string()));
        parts.extend(self.paths(style).map(|table| table.to_string()));
        parts.push(self.found(style));
        text::print(&parts.join("\n\n"))
    }

    fn interfaces(&self, style: Style) -> Table {
        let mut table = Table::new(&["network", "addresses", "default route", "MTU"], style);
        for it in &self.here.interfaces {
            let addresses: Vec<String> = it.addresses.iter().map(ToString::to_string).collect();
            let defaults = it.defaults.iter().map(|route| {
                let router = route.gateway.map_or_else(|| "on the link".into(), |it| it.to_string());
                if route.table == MAIN { router } else { format!("{router} (table {})", route.table) }
            });
            let defaults: Vec<String> = defaults.collect();
            let cells =
                [it.name.clone(), or_none(addresses.join(", ")), or_none(defaults.join(", ")), it.mtu.to_string()];
            table.row(cells.map(plain));
        }
        table
    }

    fn named(&self, style: Style) -> Option<Table> {
        let mut table = Table::new(&["name", "addresses"], style);
        for name in self.names.iter().filter(|it| it.host.parse::<IpAddr>().is_err()) {
            let addresses: Vec<String> = name.addresses.iter().map(ToString::to_string).collect();
            let tone = if name.trouble.is_some() { Tone::Bad } else { Tone::Plain };
            table.row([plain(name.host.clone()), (name.trouble.clone().unwrap_or(addresses.join(", ")), tone)]);
        }
        self.names.iter().any(|it| it.host.parse::<IpAddr>().is_err()).then_some(table)
    }

    fn paths(&self, style: Style) -> Option<Table> {
        let head = ["path", "state", "RTT", "carried", "lost", "RTT when full", "MTU", "ECN", "seen as"];
        let mut table = Table::new(&head, style);
        for it in self.tried {
            let ms = |ms: f64| units::time(Duration::from_secs_f64(ms / 1e3));
            let carried = |show: &dyn Fn(&Carried) -> String| it.carried.as_ref().map_or_else(none, show);
            let ecn = it.ecn().map_or_else(none, |ecn| match ecn {
                Ecn::Kept => "kept".into(),
                Ecn::Bleached => "cleared".into(),
                Ecn::Dropped => "dropped".into(),
            });
            let (state, tone) = state(it);
            table.row([
                plain(it.name.clone()),
                (state.into(), tone),
                plain(it.rtt.map_or_else(none, units::time)),
                plain(carried(&|it| units::rate(it.bits_per_second))),
                plain(carried(&|it| units::share(it.loss))),
                plain(carried(&|it| ms(it.rtt_ms))),
                plain(it.mtu().map_or_else(none, |mtu| mtu.to_string())),
                plain(ecn),
                plain(it.seen_as.map_or_else(none, |it| it.to_string())),
            ]);
        }
        (!self.tried.is_empty()).then_some(table)
    }

    fn found(&self, style: Style) -> String {
        let lines = self.findings.iter().map(|finding| {
            let mark = match finding.level {
                Level::Bad => style.red("bad:"),
                Level::Doubtful => style.bold("note:"),
                Level::Good => "ok:".to_owned(),
            };
            let fix = if finding.fix.is_empty() { String::new() } else { format!("\n      {}", finding.fix) };
            format!("{mark} {}{fix}", finding.what)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn line(it: &Tried) -> PathLine<'_> {
    PathLine {
        name: &it.name,
        network: &it.network,
        local: it.local,
        remote: it.remote,
        by_relay: it.by_relay,
        state: state(it).0,
        other: it.other,
        seen_as: it.seen_as,
        rtt_ms: it.rtt.map(|rtt| json::round(rtt.as_secs_f64() * 1e3)),
        mtu: it.mtu(),
        ecn: it.ecn(),
        clock_ahead_ms: it.clock.map(|(_, ahead)| json::round(ahead * 1e3)),
        carried: it.carried,
    }
}

const fn state(it: &Tried) -> (&'static str, Tone) {
    match &it.state {
        State::Answers => ("answers", Tone::Good),
        State::Refuses(..) => ("refuses", Tone::Bad),
        State::Silent(_) => ("silent", Tone::Bad),
        State::Unusable(_) => ("unusable", Tone::Bad),
        State::Waiting => ("unknown", Tone::Doubtful),
    }
}

fn plain(text: String) -> (String, Tone) {
    (text, Tone::Plain)
}

fn none() -> String {
    "–".into()
}

fn or_none(text: String) -> String {
    if text.is_empty() { none() } else { text }
}
