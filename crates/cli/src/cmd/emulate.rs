//! `braidcast emulate`: a link in real time between UDP ports.

use super::resolve::resolve;
use crate::args::values::{Listen, Place};
use crate::args::{Common, EmulateArgs};
use crate::failure::{Failure, Outcome, broken};
use crate::out::live::Live;
use crate::out::table::{Table, Tone};
use crate::out::{json, units};
use braidcast_core::{Instant, Rng};
use braidcast_emulate::{DirectionReport, Emulator, EmulatorReport, Stopped, is_local};
use braidcast_sim::link::{LinkModel, Rate, Trace};
use serde::Serialize;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[derive(Serialize)]
struct Document {
    seed: u64,
    #[serde(flatten)]
    report: EmulatorReport,
}

pub(super) fn run(args: &EmulateArgs, common: &Common) -> Outcome {
    let listen = one_address(&args.listen)?;
    let [to_forward, to_clients] = models(args)?;
    let forward = resolve(&args.forward, |_| true)?;
    refuse_circle(listen, forward)?;
    let mut emulator = Emulator::new(listen, forward, to_forward, to_clients, &Rng::from_seed(args.seed))
        .map_err(|e| Failure::new(format!("cannot emulate at {listen}: {e}"), "choose another LISTEN"))?;
    emulator.catch_interrupts().map_err(|e| broken(&e))?;
    let mut live = Live::new(common.quiet);
    live.note(format!("listening on {}, forwarding to {forward}; Ctrl-C ends", emulator.listen_addr()));
    let end = args.duration.map(|duration| Instant::ZERO + duration);
    let mut before = (Instant::ZERO, emulator.report());
    loop {
        let until = [end, live.next()].into_iter().flatten().min();
        let stopped = emulator.run(until).map_err(|e| broken(&e))?;
        let now = emulator.now();
        if stopped == Stopped::Interrupt || end.is_some_and(|end| end <= now) {
            break;
        }
        if live.due(now) {
            let report = emulator.report();
            show(&live, &before.1, &report, now - before.0);
            before = (now, report);
        }
    }
    live.close();
    let report = emulator.report();
    if common.json {
        return json::print("emulate", &Document { seed: args.seed, report });
    }
    if !common.quiet {
        say!("{}", summary(&report, &live));
    }
    Ok(())
}

/// The one address in `listen`.
fn one_address(listen: &Listen) -> Outcome<SocketAddr> {
    match listen.0.as_slice() {
        [Place { addr, port, zone: None }] => {
            Ok(SocketAddr::new(addr.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), *port))
        }
        _ => Err(Failure::usage("an emulated link has one LISTEN", "start one `braidcast emulate` for each link")),
    }
}

/// What goes to where it came in would go round for ever.
fn refuse_circle(listen: SocketAddr, forward: SocketAddr) -> Outcome {
    let same = listen.ip() == forward.ip()
        || (listen.ip().is_unspecified() && (forward.ip().is_loopback() || is_local(forward.ip())));
    if same && listen.port() == forward.port() {
        return Err(Failure::usage(
            format!("FORWARD {forward} is where this emulator listens: datagrams would go round for ever"),
            "give FORWARD another port, the one of the receiver",
        ));
    }
    Ok(())
}

/// The link towards FORWARD and the one back.
fn models(args: &EmulateArgs) -> Outcome<[LinkModel; 2]> {
    let rate = match (&args.trace, &args.rate) {
        (Some(path), _) => Rate::Trace(Arc::new(trace(path, args.trace_from)?)),
        (None, Some(rate)) => rate.clone(),
        (None, None) => Rate::Unlimited,
    };
    let forward = LinkModel {
        rate,
        delay_schedule: Some(args.delay.clone()),
        jitter: args.jitter.unwrap_or_default(),
        queue: args.queue,
        loss: args.loss.clone(),
        reorder: args.reorder.unwrap_or_default(),
        duplicate: args.duplicate,
        outages: args.outage.clone(),
        ..LinkModel::default()
    };
    let back = if args.both {
        forward.clone()
    } else {
        LinkModel {
            delay_schedule: forward.delay_schedule.clone(),
            jitter: forward.jitter,
            outages: forward.outages.clone(),
            ..LinkModel::default()
        }
    };
    Ok([forward, back])
}

/// The recording at `path`, turned so that it begins `from` its start and goes round.
fn trace(path: &Path, from: Duration) -> Outcome<Trace> {
    let trace = Trace::load(path)
        .map_err(|e| Failure::new(e.to_string(), "give a recording in mahimahi's format: a time in ms per line"))?;
    let period = trace.period_millis();
    trace.beginning_at(from).ok_or_else(|| {
        Failure::usage(
            format!(
                "--trace-from {} ms lies behind the end of {}, which lasts {period} ms",
                from.as_millis(),
                path.display()
            ),
            "choose an earlier time",
        )
    })
}

fn show(live: &Live, before: &EmulatorReport, now: &EmulatorReport, span: Duration) {
    let mut table = Table::new(&["", "rate", "packets", "dropped", "queue peak"], live.style());
    let mut line = format!("{:.0} s", now.seconds);
    for (name, before, now) in
        [("forward", &before.to_forward, &now.to_forward), ("back", &before.to_clients, &now.to_clients)]
    {
        let bits = now.delivered_bytes.saturating_sub(before.delivered_bytes) as f64 * 8.0;
        let rate = units::rate(bits / span.as_secs_f64().max(1e-3));
        let dropped = dropped(now);
        line += &format!(" | {name} {rate}, {} packets, {dropped} dropped", now.offered_packets);
        let tone = if dropped > 0 { Tone::Doubtful } else { Tone::Plain };
        table.row([
            (name.into(), Tone::Plain),
            (rate, Tone::Plain),
            (now.offered_packets.to_string(), Tone::Plain),
            (dropped.to_string(), tone),
            (units::bytes(now.queue_peak_bytes as u64), Tone::Plain),
        ]);
    }
    live.show(&line, &format!("{} to {}", now.listen, now.forward), &table);
}

fn summary(report: &EmulatorReport, live: &Live) -> Table {
    let mut table = Table::new(&["", "offered", "delivered", "loss", "queue", "outage", "other"], live.style());
    for (name, d) in [("forward", &report.to_forward), ("back", &report.to_clients)] {
        let queue = d.dropped_queue + d.dropped_early;
        let counts = [d.offered_packets, d.delivered_packets, d.dropped_loss, queue, d.dropped_outage];
        let cells = counts
            .into_iter()
            .chain([d.dropped_too_big + d.dropped_policed + d.dropped_memory])
            .map(|n| (n.to_string(), Tone::Plain));
        table.row(std::iter::once((name.to_owned(), Tone::Plain)).chain(cells));
    }
    table
}

/// Packets that went in and will never come out.
pub(super) fn dropped(direction: &DirectionReport) -> u64 {
    direction.dropped_loss
        + direction.dropped_queue
        + direction.dropped_early
        + direction.dropped_outage
        + direction.dropped_too_big
        + direction.dropped_policed
        + direction.dropped_memory
}
