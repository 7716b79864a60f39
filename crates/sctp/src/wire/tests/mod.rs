//! Tests that go through whole packets; those of single chunks, parameters and causes stand beside them.

use braidcast_core::Writer;

use super::*;

mod captures;
mod properties;

const HEADER: Header = Header { source_port: 9, destination_port: 10, verification_tag: 0x0102_0304 };

/// A sealed packet whose chunks are `chunks`.
fn packet(chunks: &[u8]) -> Vec<u8> {
    let mut buf = Vec::new();
    begin(&mut buf, HEADER);
    buf.extend_from_slice(chunks);
    seal(&mut buf);
    buf
}

/// What framing makes of `chunks`: type and offset of each, and the error at the end if there is one.
fn frame(chunks: &[u8]) -> (Vec<(u8, usize)>, Option<ParseError>) {
    let bytes = packet(chunks);
    let packet = Packet::parse(&bytes).expect("sealed");
    let error = packet.chunks().find_map(Result::err);
    (packet.chunks().map_while(Result::ok).map(|c| (c.kind, c.offset)).collect(), error)
}

#[test]
fn crc32c_gives_the_values_of_rfc_3720_b_4() {
    let up: Vec<u8> = (0..32).collect();
    let down: Vec<u8> = (0..32).rev().collect();
    for (bytes, crc) in
        [(&[0; 32][..], 0x8a91_36aa), (&[0xff; 32], 0x62a8_ab43), (&up, 0x46dd_794e), (&down, 0x113f_db5c)]
    {
        assert_eq!(crc_fast::crc32_iscsi(bytes), crc);
    }
}

#[test]
fn the_checksum_goes_out_low_byte_first() {
    // 32 zeros have the CRC 0x8a9136aa (RFC 3720 §B.4); the checksum field counts as zeros itself.
    let mut zeros = [0; 32];
    zeros[8..12].fill(0x55);
    seal(&mut zeros);
    assert_eq!(zeros[8..12], [0xaa, 0x36, 0x91, 0x8a]);
    assert!(Packet::parse(&zeros).is_ok());
}

#[test]
fn a_packet_after_others_in_one_buffer_is_sealed_alone() {
    let mut buf = packet(&[11, 0, 0, 4]);
    let start = buf.len();
    begin(&mut buf, HEADER);
    chunk::CookieAck.emit(&mut Writer::new(&mut buf));
    seal(&mut buf[start..]);
    assert_eq!(buf[..start], buf[start..]);
    assert_eq!(Packet::parse(&buf[start..]).expect("sealed").header, HEADER);
}

#[test]
fn packets_too_short_or_too_long_are_refused() {
    let place = Place::Packet;
    for given in [0, 11] {
        let error = ParseError::Length { place, given, needed: 12 };
        assert_eq!(Packet::parse(&vec![0; given]).unwrap_err(), error);
    }
    let error = ParseError::Length { place, given: 65536, needed: 65535 };
    assert_eq!(Packet::parse(&vec![0; 65536]).unwrap_err(), error);
}

#[test]
fn chunks_are_framed_with_their_padding_and_offset() {
    assert_eq!(frame(&[]), (vec![], None));
    assert_eq!(frame(&[10, 0, 0, 5, 1, 0, 0, 0, 11, 0, 0, 4]), (vec![(10, 12), (11, 20)], None));
    // Padding missing at the end of the packet is forgiven.
    assert_eq!(frame(&[11, 0, 0, 4, 10, 0, 0, 5, 1]), (vec![(11, 12), (10, 16)], None));
}

#[test]
fn framing_ends_at_the_first_chunk_of_impossible_length() {
    let length = |place, given, needed| Some(ParseError::Length { place, given, needed });
    let ack = [11, 0, 0, 4];
    let with = |tail: &[u8]| frame(&[&ack, tail].concat());
    assert_eq!(with(&[10, 0, 0]), (vec![(11, 12)], length(Place::Packet, 3, 4)));
    assert_eq!(with(&[10, 0, 0, 3, 11, 0, 0, 4]), (vec![(11, 12)], length(Place::Chunk(10), 3, 4)));
    assert_eq!(with(&[10, 0, 0, 0]), (vec![(11, 12)], length(Place::Chunk(10), 0, 4)));
    assert_eq!(with(&[10, 0, 0, 9, 1, 2, 3, 4]), (vec![(11, 12)], length(Place::Chunk(10), 8, 9)));
}

#[test]
fn parameters_are_framed_as_chunks_are() {
    let parse = |bytes: &[u8]| -> Result<Vec<u16>, ParseError> {
        Parameters::new(bytes).iter().map(|raw| raw.map(|raw| raw.kind)).collect()
    };
    let length = |kind, given, needed| Err(ParseError::Length { place: Place::Parameter(kind), given, needed });
    assert_eq!(parse(&[0, 7, 0, 5, 1, 0, 0, 0, 0xc0, 0, 0, 4]), Ok(vec![7, 0xc000]));
    assert_eq!(parse(&[0, 7, 0, 5, 1, 0, 0, 0]), Ok(vec![7]));
    assert_eq!(parse(&[0, 7, 0, 5, 1]), Ok(vec![7]));
    assert_eq!(parse(&[0, 7, 0]), length(7, 3, 4));
    assert_eq!(parse(&[0, 7, 0, 3]), length(7, 3, 4));
    assert_eq!(parse(&[0, 7, 0, 9, 1, 2, 3, 4]), length(7, 8, 9));
}

#[test]
fn the_two_high_bits_say_what_to_do_with_the_unknown() {
    use UnknownAction::{Skip, SkipAndReport, Stop, StopAndReport};
    for (kind, action, skips, reports) in [
        (0x3f, Stop, false, false),
        (0x7f, StopAndReport, false, true),
        (0xbf, Skip, true, false),
        (0xff, SkipAndReport, true, true),
    ] {
        assert_eq!(UnknownAction::for_chunk(kind), action);
        assert_eq!(UnknownAction::for_parameter(u16::from(kind) << 8), action);
        assert_eq!((action.skips(), action.reports()), (skips, reports));
    }
}

#[test]
fn unknown_chunks_survive() {
    let bytes = packet(&[0x3f, 3, 0, 5, 9, 0, 0, 0]);
    let raw = Packet::parse(&bytes).expect("sealed").chunks().next().expect("a chunk").expect("framed");
    let chunk = Chunk::parse(raw).expect("any bytes will do");
    assert_eq!(chunk, Chunk::Unknown(raw));
    assert_eq!(chunk.to_string(), "type=0x3f flags=0x03 len=1");
    let mut buf = Vec::new();
    chunk.emit(&mut Writer::new(&mut buf));
    assert_eq!(buf, bytes[12..]);
}
