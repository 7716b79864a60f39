//! Wireshark as a witness: it reads everything that we send, and sees in it what we meant. It has
//! no DCCP in UDP (RFC 6773): the packets are the same in there, but for the checksum.

use crate::common::*;
use braidcast_core::{Datagram, Ecn, Machine, Route, SocketId};
use braidcast_dccp::wire::option::Ccid3Option;
use braidcast_dccp::wire::{Builder, Checksum, Header, Kind, Opt, Packet};
use braidcast_dccp::{Ccid, CloseReason, Options, SendOptions, ServiceCode};
use braidcast_sim::{Duplex, TapAction};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::Command;

const IP: [&str; 2] = ["10.1.0.1:0", "10.1.0.2:0"];

/// All that was sent in a life of a pair of endpoints.
type Life = fn() -> Vec<Seen>;

const LIVES: [(&str, Life); 7] = [
    ("CCID 2 with nonces, checksums and drops, closed by the server", ccid_2),
    ("CCID 3 with losses, aborted", || rate_controlled(Ccid::Three, false)),
    ("CCID 4 with losses and short sequence numbers, closed by the client", || rate_controlled(Ccid::Four, true)),
    ("what is wrong is reset", resets),
    ("a mandatory option that nobody knows", || ended_by(&[1, 45, 4, 1, 2])),
    ("Mandatory at the end", || ended_by(&[2, 2, 2, 1])),
    ("no ECN", without_ecn),
];

fn sent(pair: &Pair) -> Vec<Seen> {
    pair.record.all().into_iter().filter(|it| it.action == TapAction::Sent).collect()
}

/// Hands the server, or the client, a packet of the other end.
fn give(pair: &mut Pair, to_server: bool, bytes: &[u8]) {
    let (node, from) = if to_server { (pair.server, IP[0]) } else { (pair.client, IP[1]) };
    let route = Route::new(SocketId(0), from.parse().unwrap());
    pair.net.with(node, |endpoint, now| {
        endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
    });
}

fn ccid_2() -> Vec<Seen> {
    let options = Options {
        ndp_count: true,
        data_checksum: true,
        min_coverage: 1,
        receive_buffer: 3000,
        sequence_window: 64,
        ecn_nonce: true,
        ..Options::default()
    };
    let mut pair = Pair::native(&options, Duplex::both(link(4, 20)), IP);
    pair.connect();
    pair.on_server(|it, _| it.set_slow_receiver(true));
    for n in 0..60 {
        let _ = pair.client_send(&message(n, 300));
        let _ = pair.server_send(&message(n, 200));
        pair.run(ms(30));
    }
    let how = SendOptions { coverage: 1, ..SendOptions::default() };
    let _ = pair.on_server(|it, now| it.send(now, b"coverage", how));
    // A packet from long ago comes once more: it is out of the window, which takes a Sync and its answer.
    let old = pair.record.sent(IP[0]).into_iter().rev().nth(20).unwrap();
    give(&mut pair, true, &old.bytes);
    pair.run(ms(200));
    pair.on_server(|it, now| it.close(now));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    sent(&pair)
}

fn rate_controlled(ccid: Ccid, close: bool) -> Vec<Seen> {
    let options = Options { ccids: vec![ccid], short_seqnos: ccid == Ccid::Four, ..Options::default() };
    let mut pair = Pair::native(&options, Duplex::both(lossy(1, 20, "5%")), IP);
    pair.connect();
    for n in 0..200 {
        let _ = pair.client_send(&message(n, 300));
        let _ = pair.server_send(&message(n, 100));
        pair.run(ms(10));
    }
    if close {
        pair.on_client(|it, now| it.close(now));
        pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    } else {
        pair.on_client(|it, _| it.abort());
        pair.run(ms(100));
    }
    sent(&pair)
}

/// A connection, and the answers to what does not belong to it.
fn resets() -> Vec<Seen> {
    let options = Options { max_connections: 1, answer_for_host: true, ..Options::default() };
    let mut pair = Pair::native(&options, Duplex::both(link(4, 20)), IP);
    // In REQUEST, something that is no Response.
    give(&mut pair, false, &forged([IP[1], IP[0]], (PORT, 4001), 7, Kind::Data, &[]));
    pair.connect();
    let request = Kind::Request { service: SERVICE };
    for (port, kind, options) in [
        (99, request, &[][..]),
        (PORT, Kind::Request { service: ServiceCode(5) }, &[]),
        (PORT, request, &[]),
        (99, Kind::Ack { ack: 1 }, &[]),
        (PORT, Kind::Ack { ack: 1 }, &[36, 4, 1, 2]),
    ] {
        give(&mut pair, true, &forged(IP, (4002, port), 7, kind, options));
    }
    pair.run(ms(100));
    sent(&pair)
}

/// A connection that ends with an Ack of the client that has these options.
fn ended_by(options: &[u8]) -> Vec<Seen> {
    let mut pair = Pair::native(&Options::default(), Duplex::both(link(4, 20)), IP);
    pair.connect();
    pair.run(ms(100));
    let last = pair.record.sent(IP[0]).pop().unwrap();
    let header = last.packet().header;
    let ack = header.kind.ack().unwrap();
    give(&mut pair, true, &forged(IP, (4001, PORT), header.seq + 1, Kind::Ack { ack }, options));
    pair.run(ms(100));
    sent(&pair)
}

fn without_ecn() -> Vec<Seen> {
    let mut pair = Pair::native(&Options { ecn: false, ..Options::default() }, Duplex::both(link(4, 20)), IP);
    pair.connect();
    pair.run(ms(200));
    sent(&pair)
}

fn address(text: &str) -> IpAddr {
    text.parse::<std::net::SocketAddr>().unwrap().ip()
}

/// A packet that nobody has sent.
fn forged(ends: [&str; 2], ports: (u16, u16), seq: u64, kind: Kind, options: &[u8]) -> Vec<u8> {
    let (source_port, destination_port) = ports;
    let header = Header { source_port, destination_port, ccval: 0, coverage: 0, short: false, seq, kind };
    let mut bytes = Vec::new();
    let mut builder = Builder::begin(&mut bytes, &header);
    builder.options().bytes(options);
    builder.finish(&[], Checksum::Ip(address(ends[0]), address(ends[1])));
    bytes
}

/// A pcap file of raw IPv4 (draft-ietf-opsawg-pcap §4), protocol 33.
fn pcap(packets: &[Seen]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 0xffff, 101]);
    for seen in packets {
        let (IpAddr::V4(from), IpAddr::V4(to)) = (seen.from.ip(), seen.to.ip()) else { continue };
        let len = seen.bytes.len() + 20;
        let at = seen.at.as_micros();
        file.extend(words(&[(at / 1_000_000) as u32, (at % 1_000_000) as u32, len as u32, len as u32]));
        file.extend([0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 64, 33, 0, 0]);
        file.extend(from.octets());
        file.extend(to.octets());
        file.extend(&seen.bytes);
    }
    file
}

/// Fields of each packet, as `tshark` is asked for them. Several values of one field have commas between them.
const FIELDS: [&str; 21] = [
    "_ws.malformed",
    "_ws.expert.message",
    "dccp.checksum.status",
    "dccp.srcport",
    "dccp.dstport",
    "dccp.type",
    "dccp.ccval",
    "dccp.cscov",
    "dccp.x",
    "dccp.seq_raw",
    "dccp.seq",
    "dccp.ack_raw",
    "dccp.service_code",
    "dccp.reset_code",
    "dccp.data1",
    "dccp.option_type",
    "dccp.feature_number",
    "dccp.ndp_count",
    "dccp.elapsed_time",
    "dccp.ccid3_loss_event_rate",
    "dccp.ccid3_receive_rate",
];

/// Types of all options in turn, padding and Mandatory too, which [`Packet::options`] has no values for.
fn option_types(mut bytes: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let Some(&kind) = bytes.first() {
        types.push(kind);
        bytes = &bytes[if kind < 32 { 1 } else { usize::from(bytes[1]) }..];
    }
    types
}

fn joined<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

/// What [`FIELDS`] should be.
fn expected(packet: &Packet<'_>) -> Vec<String> {
    let Header { source_port, destination_port, ccval, coverage, short, seq, kind } = packet.header;
    let (service, reset) = match kind {
        Kind::Request { service } | Kind::Response { service, .. } => (Some(service.0), None),
        Kind::Reset { reset, .. } => (None, Some(reset)),
        _ => (None, None),
    };
    let all: Vec<Opt<'_>> = packet.options.known().collect();
    let pick = |f: fn(&Opt<'_>) -> Option<u64>| joined(all.iter().filter_map(f));
    vec![
        String::new(),
        String::new(),
        "1".into(),
        source_port.to_string(),
        destination_port.to_string(),
        kind.code().to_string(),
        ccval.to_string(),
        coverage.to_string(),
        u8::from(!short).to_string(),
        // Short numbers have a field of their own.
        joined((!short).then_some(seq)),
        joined(short.then_some(seq)),
        joined(kind.ack()),
        joined(service),
        joined(reset.map(|it| it.code.0)),
        joined(reset.map(|it| it.data[0])),
        joined(option_types(packet.options.as_bytes())),
        pick(|it| if let Opt::Feature(it) = it { Some(it.feature.into()) } else { None }),
        pick(|it| if let Opt::NdpCount(count) = it { Some(*count) } else { None }),
        pick(|it| match it {
            Opt::ElapsedTime(units) => Some((*units).into()),
            _ => None,
        }),
        pick(|it| match ccid3(it) {
            Some(Ccid3Option::LossEventRate(n)) => Some(n.into()),
            _ => None,
        }),
        pick(|it| match ccid3(it) {
            Some(Ccid3Option::ReceiveRate(n)) => Some(n.into()),
            _ => None,
        }),
    ]
}

fn ccid3<'a>(opt: &Opt<'a>) -> Option<Ccid3Option<'a>> {
    if let Opt::Ccid(raw) = *opt { Ccid3Option::parse(raw) } else { None }
}

/// What `tshark` prints about `packets` with `args`.
fn tshark(packets: &[Seen], args: &[&str]) -> String {
    let path = std::env::temp_dir().join(format!("braidcast-dccp-{}.pcap", std::process::id()));
    std::fs::write(&path, pcap(packets)).unwrap();
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-o", "dccp.check_checksum:TRUE", "-o", "dccp.relative_sequence_numbers:FALSE"])
        .args(args)
        .output();
    std::fs::remove_file(&path).unwrap();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Names of the options, or features, in a text, by their numbers: lines like `Option Type: Change L (32)`.
fn names(text: &str, label: &str) -> BTreeMap<u8, String> {
    let named = |line: &str| {
        let (name, number) = line.trim().strip_prefix(label)?.trim_start().rsplit_once(" (")?;
        Some((number.strip_suffix(')')?.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(named).collect()
}

fn table(rows: &[(u8, &str)]) -> BTreeMap<u8, String> {
    rows.iter().map(|&(number, name)| (number, name.to_owned())).collect()
}

/// Every option that we send, as Wireshark 4.0 calls it.
const OPTIONS: [(u8, &str); 20] = [
    (0, "Padding"),
    (1, "Mandatory"),
    (2, "Slow Receiver"),
    (32, "Change L"),
    (33, "Confirm L"),
    (34, "Change R"),
    (35, "Confirm R"),
    (36, "Init Cookie"),
    (37, "NDP Count"),
    (38, "Ack Vector [Nonce 0]"),
    (39, "Ack Vector [Nonce 1]"),
    (40, "Data Dropped"),
    (41, "Timestamp"),
    (42, "Timestamp Echo"),
    (43, "Elapsed Time"),
    (44, "Data checksum"),
    (192, "CCID3 Loss Event Rate"),
    (193, "CCID3 Loss Intervals"),
    (194, "CCID3 Receive Rate"),
    // CCID 4's Dropped Packets (RFC 5622 §8.7), which it does not know by name and shows as bytes.
    (195, "CCID option"),
];

/// Every feature that we negotiate.
const FEATURES: [(u8, &str); 10] = [
    (1, "Congestion Control ID (CCID)"),
    (2, "Allow Short Seqnums"),
    (3, "Sequence Window"),
    (4, "ECN Incapable"),
    (5, "Ack Ratio"),
    (6, "Send Ack Vector"),
    (7, "Send NDP Count"),
    (8, "Minimum Checksum Coverage"),
    (9, "Check Data Checksum"),
    (192, "Send Loss Event Rate"),
];

/// Every code of a Reset that we sent.
const RESETS: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

#[test]
fn wireshark_reads_every_packet() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "tshark is not installed");
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let mut all = Vec::new();
    for (name, life) in LIVES {
        let packets = life();
        let fields: Vec<&str> = FIELDS.iter().flat_map(|field| ["-e", field]).collect();
        let text = tshark(&packets, &[&["-T", "fields"][..], &fields].concat());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.len(), packets.len(), "{name}");
        for (line, seen) in lines.iter().zip(&packets) {
            assert_eq!(*line, expected(&seen.packet()), "{name}: {FIELDS:?}");
        }
        all.extend(packets);
    }
    let kinds: BTreeSet<&str> = all.iter().map(Seen::name).collect();
    assert_eq!(kinds, BTreeSet::from(Kind::NAMES), "every type of packet is there");
    let text = tshark(&all, &["-V", "-O", "dccp"]);
    assert_eq!(names(&text, "Option Type:"), table(&OPTIONS));
    assert_eq!(names(&text, "Feature Number:"), table(&FEATURES));
    let code =
        |it: &Seen| if let Kind::Reset { reset, .. } = it.packet().header.kind { Some(reset.code.0) } else { None };
    assert_eq!(all.iter().filter_map(code).collect::<BTreeSet<u8>>(), BTreeSet::from(RESETS));
}
