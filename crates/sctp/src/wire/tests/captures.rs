//! An association between two usrsctp 0.9.5 (Debian's `tsctp -n 2 -l 30`) as it went over UDP on the loopback:
//! each packet's checksum holds, it prints as below, and what was read is written back byte for byte.

use braidcast_core::Writer;

use crate::wire::{Chunk, Packet, Parameter, begin, param::kind, seal};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|d| u8::from_str_radix(str::from_utf8(d).expect("ASCII"), 16).expect("hex")).collect()
}

const INIT: &str = "f5091389000000006ad52bdb 0100006aa4805e2700020000000a08003d894078 c0060008000000008000
    0004c000000480080009c00fc18082000000800200242628f096d97bb5f62b4394213b6c1465d9b4693aab635faadfe122d86730b96e80040006
    000100008003000680c10000000c000600050000";

/// DATA with the message's one fragment, then the same with the I bit.
const DATA: [&str; 2] = [
    "f5091389de853572cb0c938a 0003002e3d8940780000000000000000
     6262626262626262626262626262626262626262626262626262626262620000",
    "f5091389de8535729b4f87bf 000b002e3d8940790000000100000000
     6262626262626262626262626262626262626262626262626262626262620000",
];

#[track_caller]
fn replay(hex: &str, line: &str) {
    let bytes = bytes(hex);
    let packet = Packet::parse(&bytes).expect("a good checksum");
    let mut again = Vec::new();
    begin(&mut again, packet.header);
    let mut lines = Vec::new();
    for raw in packet.chunks() {
        let chunk = raw.and_then(Chunk::parse).expect("a well-formed chunk");
        lines.push(chunk.to_string());
        chunk.emit(&mut Writer::new(&mut again));
    }
    seal(&mut again);
    assert_eq!(lines.join("; "), line);
    assert_eq!(again, bytes);
}

#[test]
fn usrsctp_handshake() {
    replay(
        INIT,
        "INIT tag=0xa4805e27 a_rwnd=131072 out=10 in=2048 tsn=1032405112 \
         parameters=[0xc006 0x8000 0xc000 0x8008 0x8002 0x8004 0x8003 0x000c]",
    );
    replay("1389f509a4805e27107cd14a 0b000004", "COOKIE-ACK");
}

#[test]
fn usrsctp_data_and_sack() {
    replay(DATA[0], "DATA tsn=1032405112 stream=0 ssn=0 ppid=0 flags=--BE len=30");
    replay(DATA[1], "DATA tsn=1032405113 stream=0 ssn=1 ppid=0 flags=I-BE len=30");
    let sack = "1389f509a4805e27e416f1d3 030000103d8940780001fee200000000";
    replay(sack, "SACK cum=1032405112 a_rwnd=130786 gaps=[] dups=[]");
}

#[test]
fn usrsctp_shutdown() {
    replay("f5091389de853572e2021818 07000008d4666432", "SHUTDOWN cum=3563480114");
    replay("1389f509a4805e2729f5f328 08000004", "SHUTDOWN-ACK");
    replay("f5091389de853572716d2863 0e000004", "SHUTDOWN-COMPLETE");
}

#[test]
fn usrsctp_parameters_are_read_as_what_they_are() {
    let bytes = bytes(INIT);
    let packet = Packet::parse(&bytes).expect("a good checksum");
    let raw = packet.chunks().next().expect("a chunk").expect("framed");
    let Ok(Chunk::Init(init)) = Chunk::parse(raw) else { panic!("INIT expected") };
    let mut read = init.parameters.iter().map(|raw| raw.and_then(Parameter::parse).expect("well-formed"));
    assert_eq!(read.next(), Some(Parameter::AdaptationLayer(0)));
    assert_eq!(read.next(), Some(Parameter::EcnCapable));
    assert_eq!(read.next(), Some(Parameter::ForwardTsnSupported));
    assert_eq!(read.next(), Some(Parameter::SupportedExtensions(&[0xc0, 0x0f, 0xc1, 0x80, 0x82])));
    assert!(matches!(read.next(), Some(Parameter::Random(random)) if random.len() == 32));
    assert!(matches!(read.next(), Some(Parameter::HmacAlgorithms(ids)) if ids.iter().eq([1])));
    assert_eq!(read.next(), Some(Parameter::ChunkList(&[0x80, 0xc1])));
    assert!(matches!(read.next(), Some(Parameter::SupportedAddressTypes(types)) if types.iter().eq([kind::IPV4])));
    assert_eq!(read.next(), None);
}
