//! Linux's DCCP, in a kernel of its own, over IP itself.

mod ends;
mod flows;

use braidcast_dccp::{Ccid, CloseReason, ConnectionId, Options, ServiceCode};
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::{GUEST, Guest, HOST, with_guest};
use std::time::Duration;

/// `-S TEST` of `dccp_peer`.
const SERVICE: ServiceCode = ServiceCode(0x5445_5354);
/// For anything that takes a few round trips; the guest is emulated, and the processors may be busy.
const LIMIT: Duration = Duration::from_secs(30);

/// What we are like unless a story says otherwise. Linux's client returns no Init Cookie.
fn options(ccids: &[Ccid]) -> Options {
    Options { ccids: ccids.to_vec(), half_open: 16, ..Options::default() }
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
    value(said, key).parse().unwrap_or_else(|_| panic!("{key} is no number in {said}"))
}

/// Runs `dccp_peer` with these arguments against us until it ends by itself; what it said.
fn linux_client(ours: &mut Dccp, guest: &Guest, arguments: &str, each: impl FnMut(&mut Dccp)) -> String {
    let command = format!("dccp_peer -h {} -S TEST {arguments}", HOST[0]);
    ours.meanwhile(|| guest.shell(&command), each).0
}

/// Waits until `id` has ended as both sides want it.
fn until_closed(ours: &mut Dccp, id: ConnectionId) {
    ours.until(LIMIT, "close", |ours| ours.closed(id).is_some());
    assert_eq!(ours.closed(id), Some(&CloseReason::Closed));
}

/// Types of the last `count` packets, those that came with a `<`, those that left with a `>`; and the code of a Reset.
fn last(ours: &Dccp, count: usize) -> Vec<String> {
    let name = |seen: &braidcast_interop::dccp::Seen| {
        let packet = seen.packet().expect("all packets are sound");
        let code = match packet.header.kind {
            braidcast_dccp::wire::Kind::Reset { reset, .. } => format!(" {}", reset.code.0),
            _ => String::new(),
        };
        format!("{}{}{code}", if seen.sent { '>' } else { '<' }, packet.header.kind.name())
    };
    ours.seen().iter().rev().take(count).rev().map(name).collect()
}

#[test]
fn with_linux() {
    with_guest("with_linux", concat!(env!("CARGO_TARGET_TMPDIR"), "/linux-peer"), |guest| {
        assert_eq!(GUEST[0], "10.77.1.2");
        flows::all(guest);
        ends::all(guest);
    });
}
