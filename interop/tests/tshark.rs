//! Everything that we send, read by Wireshark's dissector.

mod scenarios;

use braidcast_interop::tshark;
use scenarios::Capture;
use std::collections::BTreeSet;

/// What `provoked` lets the peer send, and we give back, and the number of our own that each INIT
/// names (SLICE, decision 17): the only things whose names tshark need not know.
const NAMELESS: [&str; 3] = ["(254)", "(0xc077)", "(177)"];

/// Checks every packet of `capture`; the chunk types that tshark saw.
fn judge(name: &str, capture: &Capture) -> BTreeSet<u8> {
    // Errors. (Warnings and notes are about events on the path: retransmissions and the like.)
    let bad = "_ws.malformed || _ws.expert.severity >= 0x800000 || sctp.checksum.status != 1 || !sctp";
    assert_eq!(tshark::read(capture.path(), &["-Y", bad, "-V"]), "", "{name}");
    let verbose = tshark::read(capture.path(), &["-V", "-O", "sctp"]);
    let nameless = verbose.lines().filter(|line| line.contains("type: Unknown"));
    let nameless: Vec<&str> = nameless.filter(|line| !NAMELESS.iter().any(|known| line.contains(known))).collect();
    assert!(nameless.is_empty(), "{name}: {nameless:#?}");
    let sound = verbose.lines().filter(|line| line.trim() == "[Checksum Status: Good]").count();
    assert_eq!(sound, capture.packets(), "{name}: every checksum was verified");
    let kinds = verbose.lines().filter_map(|line| line.trim().strip_prefix("Chunk type: ")?.split(['(', ')']).nth(1));
    kinds.filter_map(|kind| kind.parse().ok()).collect()
}

#[test]
fn tshark_finds_no_fault_in_anything_we_send() {
    if !tshark::is_installed() {
        return;
    }
    let mut all = BTreeSet::new();
    for (name, scenario) in scenarios::ALL {
        let capture = scenario();
        let named = judge(name, &capture);
        assert!(capture.kinds().is_subset(&named), "{name}: sent {:?}, tshark saw {named:?}", capture.kinds());
        all.extend(capture.kinds());
    }
    use braidcast_sctp::wire::chunk::kind;
    let every = [
        kind::DATA,
        kind::INIT,
        kind::INIT_ACK,
        kind::SACK,
        kind::HEARTBEAT,
        kind::HEARTBEAT_ACK,
        kind::ABORT,
        kind::SHUTDOWN,
        kind::SHUTDOWN_ACK,
        kind::ERROR,
        kind::COOKIE_ECHO,
        kind::COOKIE_ACK,
        kind::SHUTDOWN_COMPLETE,
        kind::AUTH,
        kind::I_DATA,
        kind::ASCONF_ACK,
        kind::PAD,
        kind::FORWARD_TSN,
        kind::ASCONF,
        kind::I_FORWARD_TSN,
    ];
    assert_eq!(all, BTreeSet::from(every));
}
