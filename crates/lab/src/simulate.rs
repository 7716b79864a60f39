//! Runs a plan in the simulator.

use crate::host::Host;
use crate::plan::{Done, LinkDone, Plan};
use braidcast_core::{Route, SocketId};
use braidcast_sim::{LinkId, Network, NodeId};
use core::sync::atomic::{AtomicBool, Ordering};

/// Steps after which a run counts as endless and stops: hours of simulated time at gigabits.
const MAX_STEPS: u64 = 2_000_000_000;
/// How often, in steps, it is looked whether the run is over.
const LOOK_EVERY: u64 = 64;

/// Why a run gave nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// The user wants to stop.
    #[error("stopped")]
    Stopped,
    /// It went on and on.
    #[error("no end after {MAX_STEPS} packets and timeouts")]
    Endless,
    /// A panic, or what the system said.
    #[error("{0}")]
    Broken(String),
}

/// Runs `plan` to its end and hands it to `measure`. Everything random about the links follows from `seed`.
pub(crate) fn simulate<R>(
    plan: Plan,
    seed: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&Done<'_>) -> R,
) -> Result<R, Failed> {
    let mut net = Network::new(seed);
    let count = |host: usize| plan.paths.iter().filter(move |path| path.from == host || path.to == host).count();
    let address = |host: usize, i| format!("10.{}.{i}.1:{}", host + 1, plan.hosts[host].port);
    let addresses = |host: usize| (0..count(host)).map(|i| address(host, i)).collect::<Vec<_>>();
    let addresses: Vec<_> = (0..plan.hosts.len()).map(addresses).collect();
    let mut names = Vec::new();
    let mut nodes: Vec<NodeId> = Vec::new();
    for (host, addresses) in plan.hosts.into_iter().zip(&addresses) {
        names.push(host.name);
        nodes.push(net.add(host.host, addresses.iter().map(String::as_str)));
    }
    let links = plan.links.into_iter().map(|link| {
        let (there, back) = (net.add_link(link.there), net.add_link(link.back));
        (link.name, there, back)
    });
    let links: Vec<(String, LinkId, LinkId)> = links.collect();
    let mut routes = vec![Vec::new(); nodes.len()];
    for path in &plan.paths {
        let from = (nodes[path.from], routes[path.from].len() as u16);
        let to = (nodes[path.to], routes[path.to].len() as u16);
        let (from_address, to_address) = (net.address(from), net.address(to));
        let there: Vec<_> = path.links.iter().map(|&link| links[link].1).collect();
        let back: Vec<_> = path.links.iter().rev().map(|&link| links[link].2).collect();
        net.route(from, to_address, &there, to, from_address);
        net.route(to, from_address, &back, from, to_address);
        routes[path.from].push(Route::new(SocketId(from.1), to_address));
        routes[path.to].push(Route::new(SocketId(to.1), from_address));
    }
    for (&node, routes) in nodes.iter().zip(&routes) {
        let local: Vec<_> = (0..routes.len()).map(|at| net.address((node, at as u16))).collect();
        net.with(node, |host, _| host.open(routes, &local));
    }
    let both = |net: &Network<Host>, there, back| [there, back].map(|link| net.link(link).stats());
    let mut before = vec![Default::default(); links.len()];
    if let Some(warm) = plan.warm {
        run(&mut net, &nodes, warm.min(plan.limit), stop)?;
        before = links.iter().map(|&(_, there, back)| both(&net, there, back)).collect();
    }
    run(&mut net, &nodes, plan.limit, stop)?;
    let hosts = names.iter().map(String::as_str).zip(nodes.iter().map(|&node| net.node(node))).collect();
    let done = |((name, there, back), before): ((String, LinkId, LinkId), _)| {
        let [there, back] = both(&net, there, back);
        LinkDone { name, there, back, before }
    };
    Ok(measure(&Done { hosts, links: links.into_iter().zip(before).map(done).collect() }))
}

/// Until all hosts are finished, or `limit`.
fn run(
    net: &mut Network<Host>,
    nodes: &[NodeId],
    limit: braidcast_core::Instant,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let (mut steps, mut failed) = (0_u64, None);
    net.wait_for(limit, |net| {
        steps += 1;
        if !steps.is_multiple_of(LOOK_EVERY) {
            return false;
        }
        if stop.load(Ordering::Relaxed) {
            failed = Some(Failed::Stopped);
        } else if steps > MAX_STEPS {
            failed = Some(Failed::Endless);
        }
        failed.is_some() || nodes.iter().all(|&node| net.node(node).is_finished(net.now()))
    });
    failed.map_or(Ok(()), Err)
}
