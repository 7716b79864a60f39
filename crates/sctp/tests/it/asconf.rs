//! Requests to change addresses that are not the peer's, or not new: forged, recorded and sent
//! again (RFC 5061 §4.1, §5.2; RFC 4895 §6.3).

use crate::common::{CLIENT, Pair, Recording, SERVER, Seen, link, ms, pattern, raw_packet, route, tag};
use braidcast_core::{Route, Writer};
use braidcast_sctp::wire::chunk::{Asconf, AsconfAck, Auth, Heartbeat, kind};
use braidcast_sctp::wire::{Chunk, Packet, Parameter, Parameters};
use braidcast_sctp::{Options, PathState, SendOptions};
use braidcast_sim::Duplex;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Of nobody's.
const STRANGER: &str = "192.0.2.9:9899";
/// In a HEARTBEAT behind a request: its answer shows that the rest of the packet was heeded.
const MARK: &[u8] = b"the rest of the packet";

/// Two ends over two paths, one at a time.
fn pair() -> Pair {
    Pair::connected(&options(), vec![Duplex::both(link(10, 15)); 2])
}

/// The same where each end lists its addresses.
fn listing_pair() -> Pair {
    let listing = |addresses: &[&str]| {
        let ours = addresses.iter().map(|at| at.parse::<SocketAddr>().unwrap().ip()).collect();
        options().with(|it| it.local_addresses = ours)
    };
    let mut pair = Pair::with(listing(&CLIENT[..2]), listing(&SERVER[..2]), vec![Duplex::both(link(10, 15)); 2]);
    pair.connect();
    pair
}

fn options() -> Options {
    Options::prompt().with(|it| it.paths.concurrent = false)
}

/// The server's paths, by where they lead.
fn server_paths(pair: &mut Pair) -> Vec<(SocketAddr, PathState)> {
    let mut paths: Vec<_> = pair.on_server(|it, _| it.paths().map(|path| (path.route.remote, path.state)).collect());
    paths.sort_by_key(|(at, _)| *at);
    paths
}

/// Sends 50 messages from the server, and returns how many chunks went over each of the client's
/// addresses.
fn server_sends(pair: &mut Pair) -> [u64; 2] {
    let sent = |pair: &mut Pair| {
        let over = |it: &braidcast_sctp::Association, at: &str| {
            it.paths().find(|path| path.route.remote == at.parse().unwrap()).map_or(0, |path| path.sent_chunks)
        };
        pair.on_server(|it, _| [CLIENT[0], CLIENT[1]].map(|at| over(it, at)))
    };
    let before = sent(pair);
    for n in 0..50 {
        pair.on_server(|it, now| it.send(now, &pattern(200, n), SendOptions::default())).unwrap();
        pair.run(ms(10));
    }
    pair.run(ms(200));
    assert_eq!(pair.client_recv().len(), 50);
    let after = sent(pair);
    [0, 1].map(|i| after[i] - before[i])
}

fn chunk(chunk: &Chunk<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    chunk.emit(&mut Writer::new(&mut bytes));
    bytes
}

/// An ASCONF with this serial number that wants `parameter`.
fn asking(serial: u32, parameter: &Parameter<'_>) -> Vec<u8> {
    let mut parameters = Vec::new();
    parameter.emit(&mut Writer::new(&mut parameters));
    let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    chunk(&Chunk::Asconf(Asconf { serial, address, parameters: Parameters::new(&parameters) }))
}

/// Nothing, and AUTH chunks that vouch for nothing: of each hash, with a length that is not its
/// own, with one that nobody offered, under another key.
fn vouchers() -> Vec<Vec<u8>> {
    let auth = |key_id, hmac_id, hmac: &[u8]| chunk(&Chunk::Auth(Auth { key_id, hmac_id, hmac }));
    let forged =
        [auth(0, 1, &[7; 20]), auth(0, 3, &[7; 32]), auth(0, 3, &[7; 20]), auth(0, 9, &[]), auth(1, 3, &[7; 32])];
    [vec![Vec::new()], forged.to_vec()].concat()
}

/// The serial number of the ASCONF in a packet.
fn serial(bytes: &[u8]) -> u32 {
    let packet = Packet::parse(bytes).unwrap();
    let serial = packet.chunks().flatten().find_map(|raw| match Chunk::parse(raw) {
        Ok(Chunk::Asconf(asconf)) => Some(asconf.serial),
        _ => None,
    });
    serial.expect("an ASCONF")
}

fn packets_to(recording: &Recording, at: &str) -> Vec<Seen> {
    recording.all().into_iter().filter(|seen| seen.to == at.parse().unwrap()).collect()
}

/// Waits for the packet of the client that holds its next ASCONF.
fn next_asconf(pair: &mut Pair, recording: &Recording) -> Vec<u8> {
    pair.run(ms(500));
    recording.last(&CLIENT, kind::ASCONF).expect("the client asks")
}

/// The client's second path leaves and joins anew; the packet that asks for it.
fn recorded_join(pair: &mut Pair, recording: &Recording) -> Vec<u8> {
    pair.on_client(|it, now| it.leave(now, route(1)));
    pair.run(ms(500));
    pair.on_client(|it, now| it.join(now, route(1)).map(drop)).unwrap();
    next_asconf(pair, recording)
}

#[test]
fn an_asconf_that_nobody_vouches_for_is_dropped_with_the_rest_of_its_packet() {
    let mut pair = pair();
    let recording = pair.record();
    pair.on_client(|it, now| it.ask_primary(now, route(0)));
    let asked = next_asconf(&mut pair, &recording);
    let (to_server, last) = (tag(&asked), serial(&asked));
    let before = server_paths(&mut pair);
    assert_eq!(before.len(), 2);
    recording.clear();
    let ip = |at: &str| at.parse::<SocketAddr>().unwrap().ip();
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let correlation = 1;
    let wishes = [
        Parameter::DeleteIp { correlation, address: ip(CLIENT[1]) },
        Parameter::DeleteIp { correlation, address: any },
        Parameter::SetPrimary { correlation, address: ip(CLIENT[1]) },
        Parameter::SetPrimary { correlation, address: any },
        Parameter::AddIp { correlation, address: ip(STRANGER) },
        Parameter::AddIp { correlation, address: any },
    ];
    let rest = chunk(&Chunk::Heartbeat(Heartbeat { info: MARK }));
    let mut injected = 0;
    for serial in [last, last.wrapping_add(1)] {
        for wish in &wishes {
            for voucher in vouchers() {
                let bytes = raw_packet(to_server, &[voucher, asking(serial, wish), rest.clone()].concat());
                for (socket, from) in [(0, CLIENT[0]), (1, CLIENT[1]), (0, STRANGER)] {
                    pair.inject_server(socket, from, &bytes);
                    injected += 1;
                }
            }
        }
    }
    pair.run(ms(500));
    assert_eq!(server_paths(&mut pair), before);
    assert_eq!(recording.count(&SERVER, kind::ASCONF_ACK), 0);
    assert_eq!(recording.count(&SERVER, kind::ERROR) + recording.count(&SERVER, kind::ABORT), 0);
    let marked = |seen: &Seen| seen.bytes.windows(MARK.len()).any(|bytes| bytes == MARK);
    assert!(!recording.sent(&SERVER).iter().any(marked), "the rest of the packet was heeded");
    assert!(packets_to(&recording, STRANGER).is_empty());
    assert!(pair.on_server(|it, _| it.stats().dropped_packets) >= injected);
    assert_eq!(server_sends(&mut pair), [50, 0], "the primary path is the same");
    // The client's own next request is the next one to the server as well.
    assert!(pair.on_client(|it, now| it.ask_primary(now, route(1))));
    pair.run(ms(500));
    assert_eq!(server_sends(&mut pair), [0, 50]);
}

#[test]
fn an_asconf_ack_that_nobody_vouches_for_neither_answers_nor_ends_anything() {
    let mut pair = pair();
    let recording = pair.record();
    pair.on_client(|it, now| it.ask_primary(now, route(0)));
    let last = serial(&next_asconf(&mut pair, &recording));
    let to_client = tag(&recording.last(&SERVER, kind::ASCONF_ACK).expect("the server answers"));
    let forge = |pair: &mut Pair, serial: u32| {
        for voucher in vouchers() {
            let ack = chunk(&Chunk::AsconfAck(AsconfAck { serial, parameters: Parameters::EMPTY }));
            pair.inject_client(0, SERVER[0], &raw_packet(to_client, &[voucher, ack].concat()));
        }
    };
    // Nothing is out: one that is authentic would be the end (RFC 5061 §5.3 F0).
    forge(&mut pair, last.wrapping_add(1));
    // A request is out, whose answers get lost: it is sent again until one comes that is the server's.
    pair.cut(0, true);
    pair.cut(1, true);
    assert!(pair.on_client(|it, now| it.ask_primary(now, route(1))));
    pair.run(ms(50));
    forge(&mut pair, last.wrapping_add(1));
    pair.cut(0, false);
    pair.cut(1, false);
    recording.clear();
    assert_eq!(serial(&next_asconf(&mut pair, &recording)), last.wrapping_add(1), "it is sent again");
    pair.run(ms(2000));
    assert_eq!(server_sends(&mut pair), [0, 50]);
}

#[test]
fn a_recorded_asconf_that_is_sent_again_changes_nothing() {
    let mut pair = pair();
    let recording = pair.record();
    pair.on_client(|it, now| it.leave(now, route(1)));
    let left = next_asconf(&mut pair, &recording);
    assert_eq!(server_paths(&mut pair).len(), 1);
    pair.on_client(|it, now| it.join(now, route(1)).map(drop)).unwrap();
    let joined = next_asconf(&mut pair, &recording);
    assert_eq!(serial(&joined), serial(&left).wrapping_add(1));
    let both = server_paths(&mut pair);
    assert_eq!(both.len(), 2);
    recording.clear();
    // The one before the last: there is no answer to it any more (RFC 5061 §5.2 E2).
    for (socket, from) in [(0, CLIENT[0]), (1, CLIENT[1]), (0, STRANGER)] {
        pair.inject_server(socket, from, &left);
    }
    pair.run(ms(500));
    assert_eq!(recording.count(&SERVER, kind::ASCONF_ACK), 0);
    assert_eq!(server_paths(&mut pair), both);
    // The last one, from where it came: answered again, and that is all.
    pair.inject_server(1, CLIENT[1], &joined);
    pair.run(ms(500));
    assert_eq!(recording.count(&SERVER, kind::ASCONF_ACK), 1);
    assert_eq!(server_paths(&mut pair), both);
    assert_eq!(server_sends(&mut pair), [50, 0]);
}

/// What a request adds is the source of its packet, whoever sent it on (RFC 5061 §4.2.1): who has
/// recorded the last one and sends it from elsewhere is asked whether the path works, and gets
/// nothing else.
#[test]
fn a_recorded_join_that_is_sent_from_elsewhere_brings_no_data_there() {
    let mut pair = pair();
    let recording = pair.record();
    let joined = recorded_join(&mut pair, &recording);
    recording.clear();
    for _ in 0..20 {
        pair.inject_server(0, STRANGER, &joined);
        pair.run(ms(100));
    }
    assert_eq!(server_sends(&mut pair), [50, 0]);
    pair.cut(0, true);
    pair.cut(1, true);
    for n in 0..50 {
        let _ = pair.on_server(|it, now| it.send(now, &pattern(200, n), SendOptions::default()));
        pair.run(ms(100));
    }
    let there = packets_to(&recording, STRANGER);
    assert!(there.iter().any(|seen| seen.kinds().contains(&kind::HEARTBEAT)), "it is asked");
    let harmless = [kind::AUTH, kind::ASCONF_ACK, kind::HEARTBEAT, kind::PAD];
    assert!(there.iter().flat_map(Seen::kinds).all(|kind| harmless.contains(&kind)));
    let bytes = |seen: &[Seen]| seen.iter().map(|it| it.bytes.len()).sum::<usize>();
    assert!(bytes(&there) <= 3 * 20 * joined.len(), "{} bytes", bytes(&there));
}

/// The stranger's path ends where one that never answers has failed (RFC 9260 §8.2), and gets no
/// more than the heartbeats until then.
#[test]
fn a_join_that_nobody_answers_for_ends_after_path_max_retrans() {
    let mut pair = pair();
    let recording = pair.record();
    let joined = recorded_join(&mut pair, &recording);
    pair.run(ms(1000));
    let known = server_paths(&mut pair);
    recording.clear();
    pair.inject_server(0, STRANGER, &joined);
    assert_eq!(server_paths(&mut pair).len(), known.len() + 1);
    pair.run(ms(60_000));
    assert_eq!(server_paths(&mut pair), known);
    let heartbeats =
        packets_to(&recording, STRANGER).iter().flat_map(Seen::kinds).filter(|&it| it == kind::HEARTBEAT).count();
    let most = Options::prompt().paths.path_max_retrans as usize + 1;
    assert!((1..=most).contains(&heartbeats), "{heartbeats} heartbeats");
}

/// It does not count as an address that the peer listed either: nothing but a request makes a path to it.
#[test]
fn a_stranger_who_never_answers_is_not_listed() {
    let mut pair = listing_pair();
    let recording = pair.record();
    let joined = recorded_join(&mut pair, &recording);
    pair.run(ms(1000));
    let known = server_paths(&mut pair);
    let heartbeat = recording.last(&CLIENT, kind::HEARTBEAT).expect("the client asks whether the path works");
    for wait in [0, 60_000] {
        pair.inject_server(0, STRANGER, &joined);
        pair.run(ms(wait));
        let before = server_paths(&mut pair);
        assert_eq!(before.len(), known.len() + usize::from(wait == 0));
        pair.inject_server(1, STRANGER, &heartbeat);
        assert_eq!(server_paths(&mut pair), before, "after {wait} ms");
        pair.run(ms(60_000));
        assert_eq!(server_paths(&mut pair), known);
    }
}

/// The peer is there, but what we ask does not reach it at first: whichever end wants the path asks again.
#[test]
fn a_path_that_works_one_way_for_a_minute_joins_when_it_works_both_ways() {
    for server_asks in [false, true] {
        let mut pair = pair();
        pair.on_client(|it, now| it.leave(now, route(1)));
        pair.run(ms(1000));
        assert_eq!(server_paths(&mut pair).len(), 1);
        let (there, back) = pair.links[1];
        let deaf = if server_asks { there } else { back };
        pair.net.set_down(deaf, true);
        if server_asks {
            let towards = Route::new(route(1).socket, CLIENT[1].parse().unwrap());
            pair.on_server(|it, now| it.join(now, towards).map(drop)).unwrap();
        } else {
            pair.on_client(|it, now| it.join(now, route(1)).map(drop)).unwrap();
        }
        pair.run(ms(60_000));
        pair.net.set_down(deaf, false);
        pair.run(ms(10_000));
        let both = [CLIENT[0], CLIENT[1]].map(|at| (at.parse().unwrap(), PathState::Active));
        assert_eq!(server_paths(&mut pair), both, "the server asks: {server_asks}");
        assert_eq!(pair.client_path(1).map(|path| path.state), Some(PathState::Active));
    }
}
