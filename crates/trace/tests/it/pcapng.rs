//! A capture is read back: by an independent parser, and by tshark if it is installed.

use braidcast_core::{Ecn, Instant};
use braidcast_trace::{Captured, Direction, PcapWriter, Ports, Protocol};
use pcap_parser::pcapng::{Block, PcapNGOption};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{OptionCode, PcapBlockOwned, PcapError, PcapNGReader};
use std::io::Cursor;
use std::net::SocketAddr;
use std::process::Command;

/// An SCTP packet that is a header and a COOKIE ACK, from port 5000 to 5001, its CRC32c right.
const COOKIE_ACK: [u8; 16] = *b"\x13\x88\x13\x89\x01\x02\x03\x04\x8b\x62\x83\x95\x0b\x00\x00\x04";

fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// One packet for each kind of header that the writer makes.
fn capture(ports: Ports) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), ports).expect("a Vec takes it");
    let wifi = writer.interface("wifi").expect("a Vec takes it");
    let lte = writer.interface("lte").expect("a Vec takes it");
    let first = Captured {
        at: Instant::from_nanos(5_000_000_001),
        interface: wifi,
        direction: Direction::Out,
        from: addr("10.0.0.1:9001"),
        to: addr("10.0.0.2:9002"),
        ecn: Ecn::Ect0,
        payload: &COOKIE_ACK,
        comment: "",
    };
    let (v6_from, v6_to) = (addr("[2001:db8::1]:9001"), addr("[2001:db8::2]:9002"));
    let others = [
        Captured {
            interface: lte,
            direction: Direction::In,
            from: v6_from,
            to: v6_to,
            ecn: Ecn::Ce,
            comment: "queue full",
            ..first
        },
        Captured { from: addr("10.0.0.1:0"), to: addr("10.0.0.2:0"), ecn: Ecn::NotEct, ..first },
        Captured { from: addr("[::1]:0"), to: addr("10.0.0.2:0"), ecn: Ecn::Ect1, ..first },
    ];
    writer.packet(&first).expect("a Vec takes it");
    for packet in &others {
        writer.packet(packet).expect("a Vec takes it");
    }
    writer.into_inner()
}

/// Length, time in ns, interface, flags and comment of each packet.
type Packet = (usize, u64, u32, Vec<u8>, String);

fn parse(file: &[u8]) -> (Vec<String>, Vec<Packet>) {
    let option = |options: &[PcapNGOption<'_>], code| {
        options.iter().find(|o| o.code == code).map(|o| o.value[..usize::from(o.len)].to_vec())
    };
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).expect("text");
    let mut reader = PcapNGReader::new(65536, Cursor::new(file)).expect("a pcapng file");
    let (mut names, mut packets) = (vec![], vec![]);
    loop {
        match reader.next() {
            Ok((consumed, PcapBlockOwned::NG(block))) => {
                match block {
                    Block::InterfaceDescription(idb) => {
                        assert_eq!(idb.if_tsresol, 9);
                        names.push(text(option(&idb.options, OptionCode(2))));
                    }
                    Block::EnhancedPacket(epb) => {
                        let at = u64::from(epb.ts_high) << 32 | u64::from(epb.ts_low);
                        let flags = option(&epb.options, OptionCode(2)).expect("flags");
                        let comment = text(option(&epb.options, OptionCode::Comment));
                        packets.push((epb.origlen as usize, at, epb.if_id, flags, comment));
                    }
                    _ => {}
                }
                reader.consume(consumed);
            }
            Err(PcapError::Eof) => return (names, packets),
            Err(PcapError::Incomplete(_)) => reader.refill().expect("all is in memory"),
            Err(error) => panic!("{error:?}"),
            Ok(_) => panic!("a block of another format"),
        }
    }
}

#[test]
fn another_parser_reads_interfaces_times_directions_and_comments() {
    let (names, packets) = parse(&capture(Ports::Real));
    assert_eq!(names, ["wifi", "lte"]);
    let at = 5_000_000_001;
    let (sent, received) = (vec![2, 0, 0, 0], vec![1, 0, 0, 0]);
    assert_eq!(
        packets,
        [
            (20 + 8 + 16, at, 0, sent.clone(), String::new()),
            (40 + 8 + 16, at, 1, received, "queue full".into()),
            (20 + 16, at, 0, sent.clone(), String::new()),
            (40 + 16, at, 0, sent, String::new()),
        ]
    );
}

#[test]
fn a_datagram_too_long_for_ip_is_refused_and_leaves_the_file_whole() {
    let mut writer = PcapWriter::new(Vec::new(), Ports::Real).expect("a Vec takes it");
    let interface = writer.interface("lo").expect("a Vec takes it");
    let packet = Captured {
        at: Instant::ZERO,
        interface,
        direction: Direction::Out,
        from: addr("127.0.0.1:1"),
        to: addr("127.0.0.1:2"),
        ecn: Ecn::NotEct,
        payload: &[0; 65_536],
        comment: "",
    };
    let error = writer.packet(&packet).expect_err("too long");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    writer.packet(&Captured { payload: &[], ..packet }).expect("a Vec takes it");
    assert_eq!(parse(&writer.into_inner()).1.len(), 1);
}

/// What tshark makes of `capture`, a line of fields for each packet; `None` if it is not installed.
fn tshark(name: &str, capture: &[u8], fields: &[&str]) -> Option<Vec<String>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "tshark is not installed");
        eprintln!("skipped: tshark is not installed (tools/setup.sh test installs it)");
        return None;
    }
    let path = std::env::temp_dir().join(format!("braidcast-trace-{}-{name}.pcapng", std::process::id()));
    std::fs::write(&path, capture).expect("a temporary file");
    let output = Command::new("tshark")
        .args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "sctp.checksum:CRC 32c"])
        .args(["-T", "fields", "-E", "separator=;", "-r"])
        .arg(&path)
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark runs");
    std::fs::remove_file(&path).expect("it was written");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn tshark_finds_every_checksum_right_and_nothing_malformed() {
    let fields = [
        "frame.time_epoch",
        "ip.checksum.status",
        "udp.checksum.status",
        "sctp.checksum.status",
        "sctp.chunk_type",
        "ip.dsfield.ecn",
    ];
    let Some(lines) = tshark("sctp", &capture(Ports::Encapsulation), &fields) else { return };
    assert_eq!(
        lines,
        ["5.000000001;1;1;1;11;2", "5.000000001;;1;1;11;", "5.000000001;1;;1;11;0", "5.000000001;;;1;11;"],
        "fields {fields:?}"
    );
}

/// A DCCP-Request for service "test", its checksum right between 10.0.0.1 and 10.0.0.2.
const REQUEST: [u8; 20] = *b"\x0f\xa1\x13\x89\x05\x00\xda\xbc\x01\x00\x00\x00\x00\x00\x00\x07test";

#[test]
fn dccp_is_captured_as_dccp_over_ip_and_over_udp() {
    let mut writer = PcapWriter::of(Protocol::Dccp, Vec::new(), Ports::Encapsulation).expect("a Vec takes it");
    let interface = writer.interface("lo").expect("a Vec takes it");
    for port in [0, 5000] {
        let [from, to] = ["10.0.0.1", "10.0.0.2"].map(|ip| SocketAddr::new(ip.parse().expect("an address"), port));
        let (at, direction, ecn) = (Instant::ZERO, Direction::Out, Ecn::NotEct);
        let packet = Captured { at, interface, direction, from, to, ecn, payload: &REQUEST, comment: "" };
        writer.packet(&packet).expect("a Vec takes it");
    }
    // tshark 4 cannot be told of DCCP over UDP.
    let fields = ["ip.proto", "udp.dstport", "dccp.srcport", "dccp.dstport", "dccp.type"];
    let Some(lines) = tshark("dccp", &writer.into_inner(), &fields) else { return };
    assert_eq!(lines, ["33;;4001;5001;0", "17;6511;;;"], "fields {fields:?}");
}
