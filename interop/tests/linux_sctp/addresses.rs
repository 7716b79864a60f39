//! Addresses come and go while data flows (RFC 5061), authenticated (RFC 4895): ours as Linux sees
//! them, and Linux's as we see them.

use crate::{ECHO, LESS, SCTP, exchange_of};
use braidcast_core::{PathId, Route, SocketId};
use braidcast_driver::Bind;
use braidcast_interop::Ours;
use braidcast_interop::linux::{GUEST, Guest, HOST};
use braidcast_sctp::{
    Association, AssociationId, CloseReason, JoinError, Options, PathReport, PathState, SchedulerKind, SendOptions,
};
use std::net::SocketAddr;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// A request is authenticated or ignored (`net.sctp.addip_noauth_enable` stays off).
fn let_addresses_change(guest: &Guest, on: bool) {
    let on = u8::from(on);
    guest.run(&format!("sysctl -w net.sctp.addip_enable={on} net.sctp.auth_enable={on}"));
}

/// An endpoint on both links that lists the first `listed` of its addresses.
fn ours(concurrent: bool, listed: usize) -> Ours {
    let binds = HOST.map(|addr| Bind::to_ip(addr.parse().unwrap(), SCTP));
    let options = Options::prompt().with(|it| {
        it.local_addresses = HOST[..listed].iter().map(|addr| addr.parse().unwrap()).collect();
        it.congestion.queueing_limit = None;
        it.paths.concurrent = concurrent;
        it.paths.scheduler = SchedulerKind::RoundRobin;
    });
    Ours::on(options, &binds)
}

/// From our address on the link `from` to the guest's on the link `to`.
fn route(from: u16, to: usize) -> Route {
    Route::new(SocketId(from), SocketAddr::new(GUEST[to].parse().unwrap(), 0))
}

/// The paths whose report is as `wanted`.
fn paths(ours: &mut Ours, id: AssociationId, wanted: impl Fn(&PathReport) -> bool) -> Vec<(PathId, Route)> {
    let all = |it: &mut Association, _| it.paths().filter(&wanted).map(|path| (path.id, path.route)).collect();
    ours.with(id, all).unwrap_or_default()
}

fn until_active(ours: &mut Ours, id: AssociationId, route: Route) {
    let active = |path: &PathReport| path.route == route && path.state == PathState::Active;
    ours.until(LIMIT, "the path", |ours| !paths(ours, id, active).is_empty());
}

/// Linux says of our address `addr` that it is in the state `state` now.
fn until_linux_says(ours: &mut Ours, guest: &Guest, addr: &str, state: &str) {
    let wanted = format!("event=peer_addr_change addr={addr} state={state}");
    let mut asked = 0;
    ours.until(LIMIT, &wanted, |_| {
        asked += 1;
        asked % 20 == 1 && guest.shell("lp-log peer").0.contains(&wanted)
    });
    println!("  Linux: {addr} {state}");
}

/// An association over the first path, and the second one joins.
fn joined(ours: &mut Ours, guest: &Guest, [first, second]: [Route; 2]) -> AssociationId {
    guest.start("peer", &format!("sctp_peer -l -p 5001 {ECHO}"));
    let id = ours.connect_to(5001, &[first.remote]);
    until_active(ours, id, first);
    ours.with(id, |it, now| it.join(now, second)).unwrap().unwrap();
    until_active(ours, id, second);
    until_linux_says(ours, guest, HOST[1], "ADDED");
    id
}

/// What is sent now comes back, then both part.
fn say_goodbye(ours: &mut Ours, id: AssociationId) {
    let mut buf = Vec::new();
    ours.with(id, |it, now| it.send(now, b"The last one", SendOptions::default())).unwrap().unwrap();
    ours.until(LIMIT, "the echo", |ours| {
        ours.with(id, |it, now| it.recv(now, &mut buf).is_some() && buf == b"The last one").unwrap()
    });
    ours.with(id, |it, now| it.shutdown(now));
    ours.until(LIMIT, "shutdown", |ours| ours.closed(id).is_some());
    assert_eq!(ours.closed(id), Some(&CloseReason::Shutdown), "{:?}", ours.events);
}

/// Ours: one joins, is to be sent to, and the one of the handshake leaves.
fn the_first_of_ours_leaves(guest: &Guest) {
    let mut ours = ours(true, 1);
    let [first, second] = [route(0, 0), route(1, 1)];
    let id = joined(&mut ours, guest, [first, second]);
    assert!(ours.with(id, |it, now| it.ask_primary(now, second)).unwrap());
    until_linux_says(&mut ours, guest, HOST[1], "MADE_PRIM");
    ours.with(id, |it, now| it.leave(now, first));
    until_linux_says(&mut ours, guest, HOST[0], "REMOVED");
    say_goodbye(&mut ours, id);
    guest.stop("peer");
}

/// Ours: one joins, leaves and joins again, and both carry data.
fn one_of_ours_comes_back(guest: &Guest) {
    let mut ours = ours(true, 1);
    let [first, second] = [route(0, 0), route(1, 1)];
    let id = joined(&mut ours, guest, [first, second]);
    ours.with(id, |it, now| it.leave(now, second));
    until_linux_says(&mut ours, guest, HOST[1], "REMOVED");
    ours.with(id, |it, now| it.join(now, second)).unwrap().unwrap();
    until_active(&mut ours, id, second);
    exchange_of(LESS, &mut ours, id);
    guest.stop("peer");
}

/// Has the guest's program do `wish`, which goes to it as a message.
fn wish(ours: &mut Ours, guest: &Guest, id: AssociationId, wish: &str) {
    ours.with(id, |it, now| it.send(now, wish.as_bytes(), SendOptions::default())).unwrap().unwrap();
    let mut asked = 0;
    ours.until(LIMIT, wish, |_| {
        asked += 1;
        asked % 20 == 1 && guest.shell("lp-log addresses").0.contains(&format!("{wish} ok"))
    });
    println!("  Linux: {wish}");
}

/// Linux's: one joins, is to be sent to, and the one of the handshake leaves.
fn linux_changes(guest: &Guest) {
    guest.start("addresses", &format!("{} 5001 {}", guest.program("linux_addresses"), GUEST[0]));
    let mut ours = ours(false, 2);
    let [first, second] = [route(0, 0), route(1, 1)];
    let id = ours.connect_to(5001, &[first.remote]);
    until_active(&mut ours, id, first);
    wish(&mut ours, guest, id, &format!("add {}", GUEST[1]));
    until_active(&mut ours, id, second);
    let sent = |ours: &mut Ours, route| {
        ours.with(id, |it, _| it.paths().find(|path| path.route == route).map(|path| path.sent_chunks)).flatten()
    };
    assert_eq!(sent(&mut ours, second), Some(0), "the first one is the primary one");
    wish(&mut ours, guest, id, &format!("primary {}", GUEST[1]));
    ours.until(LIMIT, "data over the second path", |ours| {
        ours.with(id, |it, now| it.send(now, b"Echo", SendOptions::default())).unwrap().unwrap();
        (0..5).for_each(|_| ours.turn());
        sent(ours, second) > Some(0)
    });
    wish(&mut ours, guest, id, &format!("remove {}", GUEST[0]));
    let gone = |path: &PathReport| path.route.remote == first.remote;
    ours.until(LIMIT, "the first address to leave", |ours| paths(ours, id, gone).is_empty());
    // What is sent from now on comes back from the address that is left.
    let mut buf = Vec::new();
    ours.with(id, |it, now| while it.recv(now, &mut buf).is_some() {});
    say_goodbye(&mut ours, id);
    guest.stop("addresses");
}

/// As Linux is set by default it offers no ASCONF, and who wants to join is told so.
fn none_joins_where_linux_does_not_offer_it(guest: &Guest) {
    guest.start("peer", &format!("sctp_peer -l -p 5001 {ECHO}"));
    let mut ours = ours(true, 1);
    let id = ours.connect_to(5001, &[route(0, 0).remote]);
    until_active(&mut ours, id, route(0, 0));
    let refused = ours.with(id, |it, now| it.join(now, route(1, 1))).unwrap();
    assert_eq!(refused, Err(JoinError::NotSupported));
    guest.stop("peer");
}

pub(super) fn come_and_go(guest: &Guest) {
    println!("native, addresses stay: no ASCONF");
    none_joins_where_linux_does_not_offer_it(guest);
    let_addresses_change(guest, true);
    println!("native, our addresses come and go");
    the_first_of_ours_leaves(guest);
    one_of_ours_comes_back(guest);
    println!("native, Linux's addresses come and go");
    linux_changes(guest);
    let_addresses_change(guest, false);
}
