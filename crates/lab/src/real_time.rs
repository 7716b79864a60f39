//! Runs a plan on real UDP sockets of this machine: hosts in threads, all links in one more, as real-time emulators.

use crate::plan::{Done, HostPlan, LinkDone, Plan};
use crate::scenario::Wrap;
use crate::simulate::Failed;
use braidcast_core::{Instant, Rng, Route};
use braidcast_driver::{Bind, Driver};
use braidcast_emulate::{Mesh, MeshLink};
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;

/// How often threads look whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const LOOPBACK: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A link's name and its two directions.
type Directions = (String, MeshLink, MeshLink);

/// Runs `plan` to its end, in as much time as it says, and hands it to `measure`.
///
/// The hosts' clocks start within microseconds of each other. Packets are wrapped in UDP whatever
/// the scenario says; links count the headers that it says.
pub(crate) fn run<R>(
    plan: Plan,
    seed: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&Done<'_>) -> R,
) -> Result<R, Failed> {
    let rng = Rng::from_seed(seed);
    let Plan { mut hosts, links, paths, limit, warm } = plan;
    let mut drivers = hosts.iter().map(|_| Driver::new().map_err(broken)).collect::<Result<Vec<_>, _>>()?;
    let mut mesh = Mesh::new().map_err(broken)?;
    let directions: Vec<Directions> = links
        .into_iter()
        .map(|link| {
            // A link's streams depend on its generator's seed alone, so each direction needs a seed of its own.
            let seed = |direction: &str| Rng::from_seed(rng.stream(&format!("{} {direction}", link.name)).u64());
            let (there, back) = (seed("there"), seed("back"));
            (link.name, mesh.add_link(link.there, there), mesh.add_link(link.back, back))
        })
        .collect();
    let mut routes = vec![Vec::new(); hosts.len()];
    for path in &paths {
        let mut bind = |host: usize| -> Result<_, Failed> {
            let socket = drivers[host].bind(&Bind::to_addr(LOOPBACK)).map_err(broken)?;
            Ok((socket, drivers[host].socket(socket).map_or(LOOPBACK, |socket| socket.local_addr())))
        };
        let ((from, from_address), (to, to_address)) = (bind(path.from)?, bind(path.to)?);
        let there: Vec<_> = path.links.iter().map(|&link| directions[link].1).collect();
        let back: Vec<_> = path.links.iter().rev().map(|&link| directions[link].2).collect();
        let headers = headers(&hosts[path.from]);
        let ways = mesh.join([from_address, to_address], [&there, &back], headers).map_err(broken)?;
        routes[path.from].push(Route::new(from, ways[0]));
        routes[path.to].push(Route::new(to, ways[1]));
    }
    for ((host, routes), driver) in hosts.iter_mut().zip(&routes).zip(&drivers) {
        let local = |route: &Route| driver.socket(route.socket).map_or(LOOPBACK, |socket| socket.local_addr());
        host.host.open(routes, &routes.iter().map(local).collect::<Vec<_>>());
    }
    // The last one to finish ends the run for the links.
    let unfinished = AtomicUsize::new(hosts.len());
    let over = || unfinished.load(Ordering::Relaxed) == 0 || stop.load(Ordering::Relaxed);
    let links = thread::scope(|scope| -> Result<Vec<LinkDone>, Failed> {
        let carrying = scope.spawn(|| carry(mesh, directions, warm, &over));
        let threads: Vec<_> = hosts
            .iter_mut()
            .zip(drivers)
            .map(|(host, driver)| {
                let (unfinished, over) = (&unfinished, &over);
                scope.spawn(move || drive(host, driver, limit, unfinished, over))
            })
            .collect();
        let mut outcome = Ok(());
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| {
                // Nobody waits for it any more.
                unfinished.store(0, Ordering::Relaxed);
                Err(Failed::Broken("a host panicked".to_owned()))
            });
            outcome = outcome.and(ended);
        }
        outcome?;
        carrying.join().unwrap_or_else(|_| Err(Failed::Broken("the links panicked".to_owned())))
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failed::Stopped);
    }
    let hosts = hosts.iter().map(|host| (host.name.as_str(), &host.host)).collect();
    Ok(measure(&Done { hosts, links }))
}

/// Bytes of the headers that the scenario has before each packet of a host.
const fn headers(host: &HostPlan) -> usize {
    if host.port == 0 { Wrap::Ip.bytes() } else { Wrap::Udp.bytes() }
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

/// Runs the links until all hosts are done. What they had done by `warm` is told apart.
fn carry(
    mut mesh: Mesh,
    directions: Vec<Directions>,
    warm: Option<Instant>,
    over: &(impl Fn() -> bool + Sync),
) -> Result<Vec<LinkDone>, Failed> {
    let mut before = vec![Default::default(); directions.len()];
    let mut warm = warm;
    while !over() {
        mesh.run(mesh.now() + LOOK_EVERY).map_err(broken)?;
        if warm.take_if(|at| mesh.now() >= *at).is_some() {
            before = directions.iter().map(|(_, there, back)| [mesh.stats(*there), mesh.stats(*back)]).collect();
        }
    }
    let done = |((name, there, back), before): (Directions, _)| LinkDone {
        name,
        there: mesh.stats(there),
        back: mesh.stats(back),
        before,
    };
    Ok(directions.into_iter().zip(before).map(done).collect())
}

fn broken(error: impl core::fmt::Display) -> Failed {
    Failed::Broken(format!("a system call failed: {error}"))
}
