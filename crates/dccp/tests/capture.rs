//! What Wireshark's dissector, which others wrote, makes of our packets.

mod common;

use braidcast_core::{Datagram, Ecn, Machine, Route, SocketId};
use braidcast_dccp::{CloseReason, Options, SendOptions};
use braidcast_sim::{Duplex, TapAction};
use common::*;
use std::process::Command;

const CLIENT_IP: &str = "10.1.0.1:0";

/// A connection with as many kinds of packets and options as can be had, as a capture.
fn capture(path: &std::path::Path) -> Vec<&'static str> {
    let options = Options {
        ndp_count: true,
        data_checksum: true,
        min_coverage: 1,
        receive_buffer: 3000,
        sequence_window: 64,
        ..Options::default()
    };
    let mut pair = Pair::native(&options, Duplex::both(link(4, 20)), [CLIENT_IP, "10.1.0.2:0"]);
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
    let old = pair.record.sent(CLIENT_IP).into_iter().rev().nth(20).unwrap();
    pair.net.with(pair.server, |endpoint, now| {
        let route = Route::new(SocketId(0), CLIENT_IP.parse().unwrap());
        endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &old.bytes });
    });
    pair.run(ms(200));
    pair.on_server(|it, now| it.close(now));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    let sent: Vec<_> = pair.record.all().into_iter().filter(|it| it.action == TapAction::Sent).collect();
    std::fs::write(path, pcap(&sent)).unwrap();
    sent.iter().map(|it| it.name()).collect()
}

/// A pcap file of raw IPv4 (draft-ietf-opsawg-pcap §4), protocol 33.
fn pcap(packets: &[Seen]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 0xffff, 101]);
    for seen in packets {
        let (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) = (seen.from.ip(), seen.to.ip()) else { continue };
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

#[test]
fn wireshark_reads_every_packet() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let path = std::env::temp_dir().join(format!("braidcast-dccp-{}.pcap", std::process::id()));
    let names = capture(&path);
    let output = Command::new("tshark")
        .args(["-r", path.to_str().unwrap(), "-o", "dccp.check_checksum:TRUE", "-T", "fields"])
        .args(["-e", "dccp.type", "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "dccp.checksum.status"])
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), names.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for (line, name) in lines.iter().zip(&names) {
        let kind: usize = line[0].parse().unwrap_or_else(|_| panic!("not seen as DCCP: {line:?}"));
        assert_eq!(braidcast_dccp::wire::Kind::NAMES[kind], *name);
        assert!(line[1].is_empty(), "malformed: {line:?}");
        assert!(line[2].is_empty(), "complaint: {line:?}");
        assert_eq!(line[3], "1", "checksum: {line:?}");
    }
    for name in ["Request", "Response", "Data", "Ack", "DataAck", "CloseReq", "Close", "Reset", "Sync", "SyncAck"] {
        assert!(names.contains(&name), "no {name} in the capture");
    }
}
