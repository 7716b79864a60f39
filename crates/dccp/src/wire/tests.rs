use super::option::{emit_mandatory, emit_slow_receiver};
use super::*;
use proptest::prelude::*;
use std::net::IpAddr;

fn header(kind: Kind, short: bool, seq: u64) -> Header {
    Header { source_port: 0x1234, destination_port: 0x5678, ccval: 5, coverage: 0, short, seq, kind }
}

fn build(header: &Header, payload: &[u8], checksum: Checksum) -> Vec<u8> {
    let mut buf = vec![0xee];
    Builder::begin(&mut buf, header).finish(payload, checksum);
    buf.split_off(1)
}

/// By hand from the figures of RFC 4340 §5.1 to §5.7.
#[test]
fn headers_are_laid_out_as_rfc_4340_5_draws_them() {
    let ports = [0x12, 0x34, 0x56, 0x78];
    let long_seq = [0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6];
    let long_ack = [0, 0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6];
    let (seq, ack) = (0xa1a2_a3a4_a5a6, 0xb1b2_b3b4_b5b6);
    let service = ServiceCode(0x6664_707a);
    let reset = Reset { code: ResetCode(5), data: [32, 1, 2] };
    let cases: [(Kind, u8, u8, &[u8]); 10] = [
        (Kind::Request { service }, 5, 0, b"fdpz"),
        (Kind::Response { ack, service }, 7, 1, b"fdpz"),
        (Kind::Data, 4, 2, b""),
        (Kind::Ack { ack }, 6, 3, b""),
        (Kind::DataAck { ack }, 6, 4, b""),
        (Kind::CloseReq { ack }, 6, 5, b""),
        (Kind::Close { ack }, 6, 6, b""),
        (Kind::Reset { ack, reset }, 7, 7, &[5, 32, 1, 2]),
        (Kind::Sync { ack }, 6, 8, b""),
        (Kind::SyncAck { ack }, 6, 9, b""),
    ];
    for (kind, words, code, extra) in cases {
        let mut bytes = ports.to_vec();
        bytes.extend([words, 0x50, 0, 0, code << 1 | 1]);
        bytes.extend(long_seq);
        bytes.extend(if kind.ack().is_some() { &long_ack[..] } else { &[] });
        bytes.extend(extra);
        let header = header(kind, false, seq);
        assert_eq!(build(&header, b"", Checksum::Udp), bytes, "{kind:?}");
        assert_eq!(Packet::parse(&bytes, Checksum::Udp).unwrap().header, header);
        assert_eq!(header.size(), usize::from(words) * 4);
    }
    let short = header(Kind::DataAck { ack: 0xb4_b5b6 }, true, 0xa4_a5a6);
    let bytes = [&ports[..], &[4, 0x50, 0, 0, 8, 0xa4, 0xa5, 0xa6, 0, 0xb4, 0xb5, 0xb6], b"hi"].concat();
    assert_eq!(build(&short, b"hi", Checksum::Udp), bytes);
    let packet = Packet::parse(&bytes, Checksum::Udp).unwrap();
    assert_eq!((packet.header, packet.payload), (short, &b"hi"[..]));
}

#[test]
fn what_breaks_step_1_is_refused() {
    let good = build(&header(Kind::Ack { ack: 1 }, false, 2), b"", Checksum::Udp);
    let parse = |bytes: &[u8]| Packet::parse(bytes, Checksum::Udp).map(|_| ()).unwrap_err();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(parse(&good[..11]), ParseError::Short { given: 11, needed: 12 });
    assert_eq!(parse(&good[..20]), ParseError::Short { given: 20, needed: 24 });
    assert_eq!(parse(&with(4, 5)), ParseError::DataOffset { given: 20, header: 24, len: 24 });
    assert_eq!(parse(&with(4, 7)), ParseError::DataOffset { given: 28, header: 24, len: 24 });
    assert_eq!(parse(&with(8, 10 << 1 | 1)), ParseError::ReservedType(10));
    assert_eq!(parse(&with(8, 8 << 1)), ParseError::ShortSequence("Sync"));
    assert_eq!(parse(&with(5, 2)), ParseError::Coverage { coverage: 2, payload: 0 });
}

fn addresses(v6: bool) -> Checksum {
    let parse = |text: &str| text.parse::<IpAddr>().unwrap();
    if v6 {
        Checksum::Ip(parse("fd00::1"), parse("fd00::2"))
    } else {
        Checksum::Ip(parse("10.0.0.1"), parse("10.0.0.2"))
    }
}

/// Summed up by hand: pseudo-header 10.0.0.1, 10.0.0.2, 33, length 17; then the words of the packet, `!` as 0x2100.
#[test]
fn the_checksum_is_that_of_rfc_4340_9_1() {
    let bytes = build(&header(Kind::Data, false, 1), b"!", addresses(false));
    let words = [0x0a00, 1, 0x0a00, 2, 33, 17, 0x1234, 0x5678, 0x0450, 0x0500, 0, 0, 1, 0x2100_u32];
    let sum: u32 = words.iter().sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    assert_eq!(bytes[6..8], folded.to_be_bytes());
    assert!(Packet::parse(&bytes, addresses(false)).is_ok());
    assert_eq!(Packet::parse(&bytes, addresses(true)), Err(ParseError::Checksum));
}

#[test]
fn partial_coverage_lets_the_rest_be_damaged() {
    for v6 in [false, true] {
        for (coverage, first_free) in [(1, 0), (2, 4)] {
            let header = Header { coverage, ..header(Kind::Data, false, 9) };
            let bytes = build(&header, b"12345678", addresses(v6));
            for at in 0..8 {
                let mut damaged = bytes.clone();
                damaged[16 + at] ^= 0x40;
                assert_eq!(Packet::parse(&damaged, addresses(v6)).is_ok(), at >= first_free, "byte {at}");
            }
        }
    }
}

#[test]
fn options_are_padded_to_words() {
    let mut buf = Vec::new();
    let mut builder = Builder::begin(&mut buf, &header(Kind::Ack { ack: 1 }, true, 2));
    emit_mandatory(&mut builder.options());
    emit_slow_receiver(&mut builder.options());
    builder.finish(b"", addresses(false));
    let packet = Packet::parse(&buf, addresses(false)).unwrap();
    assert_eq!(packet.options.as_bytes(), [1, 2, 0, 0]);
}

fn kinds() -> impl Strategy<Value = Kind> {
    let (service, reset) = (ServiceCode(9), Reset::new(ResetCode::CLOSED));
    (0_u8..10, 0_u64..1 << 48).prop_map(move |(code, ack)| match code {
        0 => Kind::Request { service },
        1 => Kind::Response { ack, service },
        2 => Kind::Data,
        3 => Kind::Ack { ack },
        4 => Kind::DataAck { ack },
        5 => Kind::CloseReq { ack },
        6 => Kind::Close { ack },
        7 => Kind::Reset { ack, reset },
        8 => Kind::Sync { ack },
        _ => Kind::SyncAck { ack },
    })
}

proptest! {
    #[test]
    fn packets_come_back_as_they_were(kind in kinds(), seq in 0_u64..1 << 48, payload: Vec<u8>, v6: bool, udp: bool) {
        let checksum = if udp { Checksum::Udp } else { addresses(v6) };
        let header = header(kind, false, seq);
        let bytes = build(&header, &payload, checksum);
        let packet = Packet::parse(&bytes, checksum).unwrap();
        prop_assert_eq!(packet.header, header);
        prop_assert_eq!(packet.payload, &payload[..]);
        prop_assert_eq!(packet.as_bytes(), &bytes[..]);
    }

    #[test]
    fn any_bit_that_flips_is_noticed(kind in kinds(), payload: Vec<u8>, at: prop::sample::Index, bit in 0_u8..8) {
        let mut bytes = build(&header(kind, false, 7), &payload, addresses(false));
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Packet::parse(&bytes, addresses(false)).is_err() || (at == 5 && bit < 4));
    }
}
