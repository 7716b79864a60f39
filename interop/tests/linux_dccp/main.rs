//! Linux's DCCP, in a kernel of its own, over IP itself.

mod ends;
mod features;
mod flows;
mod link;
mod lossy;
mod queue;
mod throughput;

use braidcast_dccp::wire::Kind;
use braidcast_dccp::{Ccid, CloseReason, ConnectionId, Options, ServiceCode};
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::{Guest, with_guest};
use std::time::Duration;

/// `-S TEST` of `dccp_peer`.
const SERVICE: ServiceCode = ServiceCode(0x5445_5354);
/// For anything that takes a few round trips; the guest is emulated, and the processors may be busy.
const LIMIT: Duration = Duration::from_secs(30);

/// The Sequence Window that Linux begins with.
const LINUX_WINDOW: u64 = 500;

/// What we are like unless a story says otherwise. Linux's client returns no Init Cookie.
fn options(ccids: &[Ccid]) -> Options {
    // Nobody else in this namespace speaks DCCP.
    Options { ccids: ccids.to_vec(), answer_for_host: true, ..Options::default() }
}

/// A connection to the guest's `port` that is up.
fn connect(ours: &mut Dccp, port: u16) -> ConnectionId {
    let id = ours.connect(port, SERVICE);
    ours.until(LIMIT, "connect", |ours| ours.is_connected(id));
    id
}

/// The value of `key` in the last line of `said` that has it.
fn value<'a>(said: &'a str, key: &str) -> &'a str {
    let key = format!("{key}=");
    let word = said.lines().rev().find_map(|line| line.split(' ').find_map(|word| word.strip_prefix(&key)));
    word.unwrap_or_else(|| panic!("no {key} in {said}"))
}

fn number(said: &str, key: &str) -> u64 {
    value(said, key).parse().unwrap_or_else(|_| panic!("{key} is not a number in {said}"))
}

/// Runs `dccp_peer` with these arguments against us until it ends by itself. Returns what it said.
fn linux_client(ours: &mut Dccp, guest: &Guest, arguments: &str, each: impl FnMut(&mut Dccp)) -> String {
    let command = format!("dccp_peer -h {} -S TEST {arguments}", ours.address());
    ours.meanwhile(|| guest.shell(&command), each).0
}

/// Waits until `id` has ended as both sides want it.
fn until_closed(ours: &mut Dccp, id: ConnectionId) {
    ours.until(LIMIT, "close", |ours| ours.closed(id).is_some());
    assert_eq!(ours.closed(id), Some(&CloseReason::Closed));
}

/// The types of packets to and from `port`, in the order in which they were first seen: those that
/// left with a `>`, those that came with a `<`, and the code of a Reset. They begin with
/// `expected`, data and acknowledgements left out.
fn trail(ours: &Dccp, port: u16, expected: &[&str]) {
    let mut names: Vec<String> = Vec::new();
    for seen in ours.seen() {
        let header = seen.packet().expect("all packets are valid").header;
        let way = if seen.sent { '>' } else { '<' };
        let name = match header.kind {
            Kind::Data | Kind::Ack { .. } | Kind::DataAck { .. } => continue,
            Kind::Reset { reset, .. } => format!("{way}Reset {}", reset.code.0),
            kind => format!("{way}{}", kind.name()),
        };
        if [header.source_port, header.destination_port].contains(&port) && !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(expected.len());
    assert_eq!(names, expected);
}

#[test]
fn linux_guest_dccp() {
    with_guest("linux_guest_dccp", concat!(env!("CARGO_TARGET_TMPDIR"), "/linux-peer"), |guest| {
        // A Linux that is slow to read drops what exceeds its receive buffer, unseen by DCCP.
        let settings = format!("net.core.rmem_default=4000000 net.dccp.default.seq_window={LINUX_WINDOW}");
        let (said, status) = guest.shell(&format!("sysctl -w {settings}"));
        assert!(status.success(), "{said}");
        flows::all(guest);
        ends::all(guest);
        features::all(guest);
        lossy::all(guest);
        queue::all(guest);
    });
}

/// Prints how much ours and Linux carry over the same link: see `interop/README.md`.
#[test]
#[ignore = "takes minutes and asserts nothing: for the table in README.md"]
fn linux_guest_throughput_beside_linux_to_linux() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/linux-peer");
    with_guest("linux_guest_throughput_beside_linux_to_linux", out, throughput::table);
}
