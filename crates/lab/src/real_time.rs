//! Runs a plan on real UDP sockets of this machine: hosts in threads, the link of each path as a real-time emulator.

use crate::plan::{Done, HostPlan, LinkDone, Plan};
use crate::simulate::Failed;
use braidcast_core::{Instant, Rng, Route};
use braidcast_driver::{Bind, Driver};
use braidcast_emulate::{DirectionReport, Emulator};
use braidcast_sim::link::LinkStats;
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;

/// How often threads look whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const LOOPBACK: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Runs `plan` to its end, in as much time as it says, and hands it to `measure`.
///
/// The hosts' clocks start within microseconds of each other. Packets are wrapped in UDP whatever the scenario says.
pub(crate) fn run<R>(
    plan: Plan,
    seed: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&Done<'_>) -> R,
) -> Result<R, Failed> {
    check(&plan)?;
    let rng = Rng::from_seed(seed);
    let Plan { mut hosts, links, paths, limit, warm: _ } = plan;
    let mut drivers = hosts.iter().map(|_| Driver::new().map_err(broken)).collect::<Result<Vec<_>, _>>()?;
    let (mut routes, mut emulators) = (vec![Vec::new(); hosts.len()], Vec::new());
    for path in &paths {
        let to = drivers[path.to].bind(&Bind::to_addr(LOOPBACK)).map_err(broken)?;
        let from = drivers[path.from].bind(&Bind::to_addr(LOOPBACK)).map_err(broken)?;
        let forward = drivers[path.to].socket(to).map_or(LOOPBACK, |socket| socket.local_addr());
        let link = links[path.links[0]].clone();
        let emulator =
            Emulator::new(LOOPBACK, forward, link.there, link.back, &rng.stream(&link.name)).map_err(broken)?;
        routes[path.from].push(Route::new(from, emulator.listen_addr()));
        emulators.push((link.name, emulator));
    }
    for ((host, routes), driver) in hosts.iter_mut().zip(&routes).zip(&drivers) {
        let local = |route: &Route| driver.socket(route.socket).map_or(LOOPBACK, |socket| socket.local_addr());
        host.host.open(routes, &routes.iter().map(local).collect::<Vec<_>>());
    }
    // The last one to finish ends the run for the emulators.
    let unfinished = AtomicUsize::new(hosts.len());
    let over = || unfinished.load(Ordering::Relaxed) == 0 || stop.load(Ordering::Relaxed);
    let links = thread::scope(|scope| -> Result<Vec<LinkDone>, Failed> {
        let emulators: Vec<_> = emulators.into_iter().map(|it| scope.spawn(|| carry(it, &over))).collect();
        let threads: Vec<_> = hosts
            .iter_mut()
            .zip(drivers)
            .map(|(host, driver)| {
                let (unfinished, over) = (&unfinished, &over);
                scope.spawn(move || drive(host, driver, limit, unfinished, over))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap_or_else(|_| Err(Failed::Broken("a host panicked".to_owned())))?;
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Failed::Broken("a link panicked".to_owned())))
        };
        emulators.into_iter().map(join).collect()
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failed::Stopped);
    }
    let hosts = hosts.iter().map(|host| (host.name.as_str(), &host.host)).collect();
    Ok(measure(&Done { hosts, links }))
}

/// An emulated link stands between two sockets, so each path has one link, and no other path has it.
fn check(plan: &Plan) -> Result<(), Failed> {
    for (i, path) in plan.paths.iter().enumerate() {
        let shared = plan.paths[..i].iter().any(|other| other.links == path.links);
        if path.links.len() != 1 || shared {
            let names: Vec<_> = path.links.iter().map(|&link| plan.links[link].name.as_str()).collect();
            let what = format!("in real time each path has one link for itself, not {}", names.join(" and "));
            return Err(Failed::Broken(what));
        }
    }
    Ok(())
}

/// Runs a host until all have measured everything, as those that have not still need its answers.
fn drive(
    host: &mut HostPlan,
    mut driver: Driver,
    limit: Instant,
    unfinished: &AtomicUsize,
    over: &(impl Fn() -> bool + Sync),
) -> Result<(), Failed> {
    let mut finished = false;
    while !over() {
        let now = driver.now();
        if !finished && (host.host.is_finished(now) || now >= limit) {
            finished = true;
            unfinished.fetch_sub(1, Ordering::Relaxed);
        }
        if let Err(e) = driver.drive(&mut host.host, Some(now + LOOK_EVERY)) {
            unfinished.store(0, Ordering::Relaxed);
            return Err(broken(e));
        }
    }
    Ok(())
}

/// Runs a link until all hosts are done.
fn carry((name, mut emulator): (String, Emulator), over: &(impl Fn() -> bool + Sync)) -> Result<LinkDone, Failed> {
    while !over() {
        let until = emulator.driver().now() + LOOK_EVERY;
        emulator.run(Some(until)).map_err(broken)?;
    }
    let report = emulator.report();
    let before = Default::default();
    Ok(LinkDone { name, there: stats(&report.to_forward), back: stats(&report.to_clients), before })
}

fn stats(report: &DirectionReport) -> LinkStats {
    LinkStats {
        offered: report.offered_packets,
        offered_bytes: report.offered_bytes,
        delivered: report.delivered_packets,
        delivered_bytes: report.delivered_bytes,
        duplicated: report.duplicated_packets,
        corrupted: report.corrupted_packets,
        dropped_too_big: report.dropped_too_big,
        dropped_queue: report.dropped_queue,
        dropped_outage: report.dropped_outage,
        dropped_loss: report.dropped_loss,
        queue_peak_packets: report.queue_peak_packets,
        queue_peak_bytes: report.queue_peak_bytes,
        ..LinkStats::default()
    }
}

fn broken(error: impl core::fmt::Display) -> Failed {
    Failed::Broken(format!("a system call failed: {error}"))
}
