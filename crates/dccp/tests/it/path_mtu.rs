//! How large packets may be, and how that is found out (RFC 4340 §14, RFC 8899).

use crate::common::*;
use braidcast_dccp::{Ccid, Event, Options, SendError};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;
use core::time::Duration;

/// A link that carries IP packets of `mtu` bytes.
fn narrow(mtu: usize) -> LinkModel {
    LinkModel { mtu, ..link(20, 20) }
}

/// Begins at 1200 bytes, for up to 1472.
fn cautious(ccid: Ccid) -> Options {
    Options { ccids: vec![ccid], first_packet: Some(1200), max_packet: 1472, ..Options::default() }
}

/// Sends messages of the largest size for `duration`, and returns how many were taken.
fn stream(pair: &mut Pair, duration: Duration) -> usize {
    let (end, mut taken) = (pair.net.now() + duration, 0);
    while pair.net.now() < end {
        let limit = pair.on_client(|it, _| it.max_payload());
        while pair.client_send(&vec![7; limit]).is_ok() {
            taken += 1;
        }
        pair.run(ms(5));
        pair.server_recv();
    }
    taken
}

/// Sizes of the probes that the client sent.
fn probes(pair: &Pair) -> Vec<usize> {
    let sent = pair.record.sent(CLIENT);
    let sizes = sent.iter().filter(|it| it.name() == "Sync").map(|it| it.bytes.len());
    // Each has a small Sync after it.
    sizes.filter(|&size| size > 100).collect()
}

fn told(pair: &Pair) -> Vec<usize> {
    let limits = pair.client_events.iter().filter_map(|it| if let Event::MaxPayload(n) = it { Some(*n) } else { None });
    limits.collect()
}

#[test]
fn what_the_path_carries_is_found_in_a_round_trip_once_there_is_use_for_it() {
    let mut pair = Pair::connected(&cautious(Ccid::Two), Duplex::both(narrow(1500)));
    for _ in 0..50 {
        pair.client_send(&[1; 200]).unwrap();
        pair.run(ms(20));
    }
    assert_eq!((probes(&pair), told(&pair)), (vec![], vec![]), "small messages need no more");
    assert_eq!(pair.client_send(&[1; 1400]), Err(SendError::TooLong { len: 1400, limit: 1160 }));
    pair.run(ms(50));
    assert_eq!((probes(&pair), told(&pair)), (vec![1472], vec![1432]));
    pair.server_recv();
    pair.client_send(&[1; 1432]).unwrap();
    pair.run(ms(50));
    assert_eq!(pair.server_recv(), [[1; 1432]]);
    pair.record.clear();
    pair.run(Duration::from_secs(3600));
    assert_eq!(probes(&pair), [], "an idle hour is quiet");
}

#[test]
fn the_size_that_is_assumed_at_first_is_confirmed_by_the_first_packet_that_needs_it() {
    let assumed = |mtu: usize| {
        let options = Options { max_packet: 1472, ..Options::default() };
        let mut pair = Pair::connected(&options, Duplex::both(narrow(mtu)));
        assert_eq!(pair.on_client(|it, _| it.max_payload()), 1432);
        pair.client_send(&[1; 1000]).unwrap();
        pair.run(ms(500));
        assert_eq!(probes(&pair), []);
        stream(&mut pair, Duration::from_secs(16));
        (probes(&pair), told(&pair))
    };
    let (probes, told) = assumed(1500);
    // Losses in the queue raise a doubt now and then.
    assert!(probes.len() <= 3 && probes.iter().all(|&size| size == 1472) && told.is_empty(), "{probes:?} {told:?}");
    let (probes, told) = assumed(1450);
    assert_eq!(
        (&probes[..4], told),
        (&[1472, 1472, 1472, 1452][..], vec![1160, 1360]),
        "a tunnel: base, then what it carries"
    );
}

/// Lost probes are no data, which NDP Counts tell the receiver (RFC 4342 §6.1): no loss event comes of them.
#[test]
fn a_tunnel_is_found_by_trying_and_no_rate_suffers() {
    for ccid in Ccid::ALL.map(|(_, ccid)| ccid) {
        let mut pair = Pair::connected(&cautious(ccid), Duplex::both(narrow(1450)));
        for _ in 0..700 {
            let limit = pair.on_client(|it, _| it.max_payload());
            pair.client_send(&vec![7; limit]).unwrap();
            pair.run(ms(20));
        }
        let triple = |size: usize| [size; 3];
        let expected = [triple(1472), triple(1452), triple(1444), triple(1424)].concat();
        assert_eq!(probes(&pair)[..12], expected, "{ccid}");
        assert_eq!((probes(&pair)[12..].to_vec(), told(&pair)), (vec![1400], vec![1360]), "{ccid}");
        let report = pair.on_client(|it, now| it.report(now)).ccid;
        assert_eq!((report.lost, report.loss_events, report.timeouts), (0, 0, 0), "{ccid}: {report:?}");
    }
}

#[test]
fn a_path_that_carries_less_of_a_sudden_is_noticed_and_data_flows_again() {
    for ccid in Ccid::ALL.map(|(_, ccid)| ccid) {
        let mut pair = Pair::connected(&cautious(ccid), Duplex::both(narrow(1500)));
        stream(&mut pair, Duration::from_secs(3));
        assert_eq!(told(&pair), [1432], "{ccid}");
        // The route changes; nobody says so.
        let tunnel = pair.net.add_link(narrow(1300));
        let [from, to] = [CLIENT, SERVER].map(|it| it.parse().unwrap());
        pair.net.route((pair.client, 0), to, &[tunnel], (pair.server, 0), from);
        stream(&mut pair, Duration::from_secs(20));
        assert_eq!(told(&pair), [1432, 1160], "{ccid}");
        let before = pair.on_server(|it, now| it.report(now).stats.received_messages);
        stream(&mut pair, Duration::from_secs(10));
        let report = pair.on_server(|it, now| it.report(now));
        assert!(report.stats.received_messages > before + 100, "{ccid}: {} then {report:?}", before);
        let outgrown = pair.on_client(|it, now| it.report(now).stats.outgrown);
        assert!(outgrown > 0, "{ccid}: what waited was too long");
        assert_eq!(pair.client_send(&[1; 1432]), Err(SendError::TooLong { len: 1432, limit: 1160 }), "{ccid}");
    }
}

/// If nothing comes back, nothing is learnt about sizes.
#[test]
fn an_outage_does_not_make_packets_smaller() {
    for ccid in Ccid::ALL.map(|(_, ccid)| ccid) {
        let mut pair = Pair::connected(&cautious(ccid), Duplex::both(narrow(1500)));
        stream(&mut pair, Duration::from_secs(3));
        pair.net.set_down(pair.links.1, true);
        pair.record.clear();
        stream(&mut pair, Duration::from_secs(40));
        // Or both ends would leave each other's windows (found by the fuzzer).
        let syncs = pair.record.names(CLIENT).iter().filter(|name| **name == "Sync").count();
        assert!(syncs < 32, "{ccid}: {syncs} Syncs that nobody answers");
        pair.net.set_down(pair.links.1, false);
        stream(&mut pair, Duration::from_secs(40));
        assert_eq!(told(&pair), [1432], "{ccid}");
        assert!(stream(&mut pair, Duration::from_secs(5)) > 100, "{ccid}");
    }
}

#[test]
fn a_base_as_large_as_the_largest_needs_no_probes() {
    let options = Options { base_packet: 1472, max_packet: 1472, ..Options::default() };
    let mut pair = Pair::connected(&options, Duplex::both(narrow(1500)));
    assert!(stream(&mut pair, Duration::from_secs(2)) > 100);
    assert_eq!((probes(&pair), told(&pair)), (vec![], vec![]));
}
