//! `braidcast doctor`: what is between this machine and the other end, and what to do about it.

mod advice;
mod finding;
mod here;
mod nat;
mod probe;
mod show;
mod tried;
mod work;

use super::common;
use super::key::identity;
use super::through::{Through, signer};
use super::ticket::Towards;
use crate::args::values::Remote;
use crate::args::via::Via as Named;
use crate::args::{Common, DoctorArgs};
use crate::failure::{Failure, Outcome, broken};
use crate::out::live::Live;
use crate::process;
use braidcast_core::Instant;
use braidcast_driver::{Carrier, Driver, Link, Links, LinksError, Target, Via, source_address};
use braidcast_relay::Place;
use braidcast_sctp::Endpoint;
use finding::{Finding, Level};
use here::{Here, Name};
use probe::Probe;
use show::Report;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tried::{State, Tried};
use work::Work;

/// What a network is called that the routing table chooses.
const AS_ROUTED: &str = "as routed";

pub(super) fn run(args: &DoctorArgs, common: &Common) -> Outcome {
    let live = Live::new(common.quiet);
    let here = Here::look().map_err(|e| broken(&e))?;
    let mut findings = here.findings();
    if args.to.is_empty() {
        let ok = here.is_connected();
        if ok {
            findings.push(Finding::good(
                "this machine is in a network; give an address or a ticket to see what lies behind it",
            ));
        }
        Report { ok, here: &here, names: &[], tried: &[], nats: &[], findings: &findings }.print(common.json)?;
        return outcome(ok);
    }
    let towards = Towards::of(&args.to)?;
    let security = towards.security(&args.shared, &live)?;
    let (names, tried) = plan(&towards, &args.via, &here);
    findings.extend(names.iter().filter_map(unresolved));
    let mut driver = common::driver()?;
    let (links, tried) = open(tried, &mut driver)?;
    process::drop_privileges()?;
    let through = through(&towards, &tried)?;
    let options = common::sctp_options(&security);
    let port = options.local_port;
    let mut rng = common::rng(None)?;
    let probe = Probe { endpoint: Endpoint::new(options, rng.fork())?, relays: Vec::new() };
    let signer = args.relay_key.as_deref().map(|path| identity(path, &live)).transpose()?.map(signer);
    let next_look = Instant::ZERO;
    let (interrupted, filling, message) = (false, false, Vec::new());
    let mut work =
        Work { driver, links, probe, through, tried, security, signer, rng, interrupted, filling, next_look, message };
    live.note("asking who answers");
    work.begin(port);
    work.reach()?;
    if work.tried.iter().any(|it| it.state == State::Answers && it.id.is_some()) {
        live.note("looking at the paths that answer");
        work.measure(args.duration)?;
    }
    let nats = nat::find(&mut work)?;
    work.end()?;
    let tried = work.tried;
    let ok = tried.iter().any(Tried::is_of_use);
    if ok {
        // What this machine lacks is not in the way.
        findings.iter_mut().for_each(|it| it.level = it.level.max(Level::Doubtful));
    }
    findings.extend(advice::findings(&tried, &nats, &here));
    findings.sort_by_key(|finding| finding.level);
    Report { ok, here: &here, names: &names, tried: &tried, nats: &nats, findings: &findings }.print(common.json)?;
    outcome(ok)
}

/// The exit status.
fn outcome(ok: bool) -> Outcome {
    if ok {
        Ok(())
    } else {
        Err(Failure::new("no stream could go from here", "what to do stands above, behind `bad:`"))
    }
}

fn unresolved(name: &Name) -> Option<Finding> {
    let trouble = name.trouble.as_ref()?;
    let what = format!("the name {} leads nowhere: {trouble}", name.host);
    Some(Finding::bad(what, "check the name; if no name resolves, look at /etc/resolv.conf: resolvectl status"))
}

/// Each network to each address of each place.
fn plan(towards: &Towards, via: &[Named], here: &Here) -> (Vec<Name>, Vec<Tried>) {
    let places: Vec<(Remote, bool)> = match towards {
        Towards::Remotes(all) => all.iter().map(|remote| (remote.clone(), false)).collect(),
        Towards::Ticket(ticket) => {
            ticket.reached.iter().map(|it| (Remote { host: it.host.clone(), port: it.port }, it.is_relay)).collect()
        }
    };
    let networks: Vec<(Via, String)> = if via.is_empty() {
        vec![(Via::Any, AS_ROUTED.into())]
    } else {
        let parsed = via.iter().map(|it| {
            let Ok(parsed) = it.at.parse();
            (parsed, it.name.clone().unwrap_or_else(|| it.at.clone()))
        });
        parsed.collect()
    };
    let (mut names, mut tried) = (Vec::new(), Vec::new());
    for (place, by_relay) in places {
        let name = here::resolve(&place);
        for (via, network) in &networks {
            for addr in &name.addresses {
                let remote = SocketAddr::new(*addr, place.port);
                let called = if via == &Via::Any { remote.to_string() } else { format!("{network} to {remote}") };
                let mut it = Tried::new(called, network.clone(), via.clone(), remote, by_relay);
                it.local = local(via, remote, here);
                it.state = usable(&it, here);
                tried.push(it);
            }
        }
        names.push(name);
    }
    (names, tried)
}

/// The address that packets to `remote` leave from.
fn local(via: &Via, remote: SocketAddr, here: &Here) -> Option<std::net::IpAddr> {
    match via {
        Via::Any => source_address(None, remote).ok(),
        Via::Addr(addr) => Some(*addr),
        Via::Device(name) => source_address(Some(name), remote).ok().or_else(|| here.address(name, remote)),
    }
}

/// Why a path cannot even be tried, if that is so.
fn usable(it: &Tried, here: &Here) -> State {
    let (family, is_v4) = (here::family(it.remote.ip()), it.remote.is_ipv4());
    let why = match &it.via {
        Via::Any if it.local.is_none() => format!("this machine has no route to {}", it.remote.ip()),
        Via::Addr(addr) if addr.is_ipv4() != is_v4 => format!("{addr} is no {family} address"),
        Via::Addr(addr) if here.device_of(*addr).is_none() => {
            format!("this machine does not have the address {addr} now")
        }
        Via::Device(name) if !here.has(name) => format!("there is no {name} now, or it has no address"),
        Via::Device(name) if here.address(name, it.remote).is_none() && !is_link_local(it.remote) => {
            format!("{name} has no {family} address")
        }
        _ => return State::Waiting,
    };
    State::Unusable(why)
}

fn is_link_local(addr: SocketAddr) -> bool {
    matches!(addr, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local())
}

/// A socket for each path that can be tried.
fn open(mut tried: Vec<Tried>, driver: &mut Driver) -> Outcome<(Links, Vec<Tried>)> {
    let can = tried.iter().filter(|it| it.state == State::Waiting);
    let links = can.map(|it| Link::new(it.via.clone(), Target::Addr(it.remote), it.name.clone()));
    let cannot = |error: LinksError| Failure::new(error.to_string(), "leave out --via");
    let (links, _warnings) = Links::open(links.collect(), Carrier::Udp, driver).map_err(cannot)?;
    for it in tried.iter_mut().filter(|it| it.state == State::Waiting) {
        it.route = links.routes().into_iter().find(|route| links.name(route.socket) == Some(&it.name));
        if it.route.is_none() {
            it.state = State::Unusable("no socket could be opened for it".into());
        }
    }
    Ok((links, tried))
}

/// The places at the relays of a ticket.
fn through(towards: &Towards, tried: &[Tried]) -> Outcome<Option<Through>> {
    let Towards::Ticket(ticket) = towards else { return Ok(None) };
    let paths: BTreeSet<String> = tried.iter().filter(|it| it.by_relay).map(|it| it.name.clone()).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    Through::new(Place::Guest(ticket.circuit), None, true, paths).map(Some)
}
