//! What holds for all bytes and for all chunks.

use braidcast_core::Writer;
use proptest::{collection::vec, prelude::*};

use super::packet;
use crate::wire::{chunk::*, *};

/// Looks at everything in `packet`: chunks, parameters, causes, entries, and prints them.
fn walk(packet: Packet<'_>) -> usize {
    let mut seen = 0;
    for chunk in packet.chunks().map_while(Result::ok).filter_map(|raw| Chunk::parse(raw).ok()) {
        seen += 1 + chunk.to_string().len();
        seen += match chunk {
            Chunk::Init(c) | Chunk::InitAck(c) => walk_parameters(c.parameters),
            Chunk::Asconf(c) => walk_parameters(c.parameters),
            Chunk::AsconfAck(c) => walk_parameters(c.parameters),
            Chunk::ReConfig(c) => walk_parameters(c.parameters),
            Chunk::Abort(c) => walk_causes(c.causes),
            Chunk::Error(c) => walk_causes(c.causes),
            Chunk::Sack(c) => c.gaps.iter().count() + c.duplicates.iter().count(),
            Chunk::NrSack(c) => c.sack.gaps.iter().count() + c.kept.iter().count() + c.sack.duplicates.iter().count(),
            Chunk::ForwardTsn(c) => c.skips.iter().count(),
            Chunk::IForwardTsn(c) => c.skips.iter().count(),
            _ => 0,
        };
    }
    seen
}

fn walk_parameters(parameters: Parameters<'_>) -> usize {
    let read = parameters.iter().map_while(Result::ok).filter_map(|raw| Parameter::parse(raw).ok());
    read.map(|p| if let Parameter::ErrorCauseIndication { causes, .. } = p { walk_causes(causes) } else { 1 }).sum()
}

fn walk_causes(causes: Causes<'_>) -> usize {
    let read = causes.iter().map_while(Result::ok).filter_map(|raw| Cause::parse(raw).ok());
    read.map(|cause| match cause {
        Cause::UnrecognizedParameters(p) | Cause::RestartWithNewAddresses(p) => walk_parameters(p),
        _ => cause.to_string().len(),
    })
    .sum()
}

/// Bytes that look enough like items with `header` bytes of type in front of a 16-bit length to get past the framing.
fn items(kinds: Vec<Vec<u8>>, most: usize) -> impl Strategy<Value = Vec<u8>> {
    let slip = prop_oneof![9 => Just(0i32), 1 => -9i32..9];
    let item = (prop::sample::select(kinds), vec(any::<u8>(), 0..most), slip);
    // The end may lack its padding, or more.
    (vec(item, 0..5), prop_oneof![Just(0), 0usize..8]).prop_map(|(items, cut)| {
        let mut buf = Vec::new();
        for (kind, value, slip) in items {
            let length = value.len() as i32 + 4 + slip;
            buf.extend_from_slice(&kind);
            buf.extend_from_slice(&(length.max(0) as u16).to_be_bytes());
            buf.extend_from_slice(&value);
            buf.resize(padded(buf.len()), 0);
        }
        buf.truncate(buf.len().saturating_sub(cut));
        buf
    })
}

fn tlvs() -> impl Strategy<Value = Vec<u8>> {
    let kinds = (0..=18u16).chain(0xa0..=0xa5).chain([0x105]).chain(0x8000..=0x8008).chain(0xc000..=0xc007);
    items(kinds.map(|kind| kind.to_be_bytes().to_vec()).collect(), 40)
}

fn chunks() -> impl Strategy<Value = Vec<u8>> {
    let kinds = (0..=15u8).chain([64, 0x80, 0x82, 0x84, 0xb0]).chain(0xc0..=0xc3);
    let kinds = kinds.flat_map(|kind| [vec![kind, 0], vec![kind, 0x0f]]).collect();
    items(kinds, 80)
}

/// A chunk that holds `tlvs` where it holds parameters or causes.
fn holder() -> impl Strategy<Value = Vec<u8>> {
    let starts = vec![(1u8, 16usize), (2, 16), (4, 0), (6, 0), (9, 0), (0x80, 4), (0x82, 0), (0xc1, 4)];
    (prop::sample::select(starts), tlvs()).prop_map(|((kind, skip), tlvs)| {
        let mut buf = vec![kind, 0, 0, 0];
        buf.resize(4 + skip, 1);
        buf.extend_from_slice(&tlvs);
        let length = buf.len() as u16;
        buf[2..4].copy_from_slice(&length.to_be_bytes());
        buf
    })
}

/// One chunk as `emit` writes it.
fn emitted(chunk: &Chunk<'_>) -> Vec<u8> {
    let mut buf = Vec::new();
    chunk.emit(&mut Writer::new(&mut buf));
    buf
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(&bytes).map(walk);
        let sealed = packet(&bytes);
        walk(Packet::parse(&sealed).expect("sealed"));
    }

    #[test]
    fn bytes_that_look_like_chunks_never_panic(bytes in prop_oneof![chunks(), holder()]) {
        let sealed = packet(&bytes);
        walk(Packet::parse(&sealed).expect("sealed"));
    }

    #[test]
    fn a_bit_flipped_anywhere_is_noticed(bytes in vec(any::<u8>(), 0..100), at in any::<prop::sample::Index>()) {
        let mut sealed = packet(&bytes);
        let bit = at.index(sealed.len() * 8);
        sealed[bit / 8] ^= 1 << (bit % 8);
        let is_checksum = matches!(Packet::parse(&sealed), Err(ParseError::Checksum { .. }));
        prop_assert!(is_checksum);
    }

    /// What is read, written and read again is the same, and written again is the same bytes.
    #[test]
    fn reading_and_writing_agree(bytes in prop_oneof![chunks(), holder()]) {
        let sealed = packet(&bytes);
        for raw in Packet::parse(&sealed).expect("sealed").chunks().map_while(Result::ok) {
            let Ok(chunk) = Chunk::parse(raw) else { continue };
            let written = emitted(&chunk);
            prop_assert_eq!(written.len() % 4, 0);
            let again = packet(&written);
            let raw = Packet::parse(&again).expect("sealed").chunks().next().expect("a chunk").expect("framed");
            let read = Chunk::parse(raw).expect("well-formed");
            prop_assert_eq!(read.to_string(), chunk.to_string());
            prop_assert_eq!(emitted(&read), written);
        }
    }

    #[test]
    fn parameters_and_causes_read_are_written_back_byte_for_byte(bytes in tlvs()) {
        for raw in Parameters::new(&bytes).iter().map_while(Result::ok) {
            let mut expected = raw.bytes.to_vec();
            expected.resize(padded(expected.len()), 0);
            let mut buf = Vec::new();
            if let Ok(parameter) = Parameter::parse(raw) {
                parameter.emit(&mut Writer::new(&mut buf));
                prop_assert_eq!(parameter.kind(), raw.kind);
                // Reserved bits are not kept.
                let loose = matches!(parameter, Parameter::ErrorCauseIndication { .. })
                    || matches!(raw.kind, param::kind::ADD_OUTGOING | param::kind::ADD_INCOMING);
                prop_assert!(loose || buf == expected, "{:?} became {:?}", parameter, buf);
            }
            buf.clear();
            if let Ok(cause) = Cause::parse(raw) {
                cause.emit(&mut Writer::new(&mut buf));
                prop_assert_eq!(cause.kind(), raw.kind);
                // Reserved bits are not kept, nor is padding that an inner list counted.
                let loose = matches!(
                    cause,
                    Cause::InvalidStream { .. } | Cause::UnrecognizedParameters(_) | Cause::RestartWithNewAddresses(_)
                );
                prop_assert!(loose || buf == expected, "{:?} became {:?}", cause, buf);
            }
        }
    }

    #[test]
    fn data_and_i_data_come_back_as_they_were_sent(
        (tsn, stream, ssn, mid, number) in any::<(u32, u16, u16, u32, u32)>(),
        (unordered, first, last, immediate, timed) in any::<(bool, bool, bool, bool, bool)>(),
        payload in vec(any::<u8>(), 0..50),
    ) {
        let payload = &payload[..];
        let data = Data { tsn, stream, ssn, ppid: number, unordered, first, last, immediate, timed, payload };
        let (ppid, fsn) = if first { (number, 0) } else { (0, number) };
        let idata = IData { tsn, stream, mid, unordered, first, last, immediate, timed, ppid, fsn, payload };
        let mut buf = emitted(&Chunk::Data(data));
        idata.emit(&mut Writer::new(&mut buf));
        let sealed = packet(&buf);
        let read: Vec<_> = Packet::parse(&sealed).expect("sealed").chunks().map(|c| c.and_then(Chunk::parse)).collect();
        prop_assert_eq!(read, [Ok(Chunk::Data(data)), Ok(Chunk::IData(idata))]);
    }

    #[test]
    fn redundancy_comes_back_as_it_was_sent(
        (rule, first_tsn, key) in any::<(u8, u32, u16)>(),
        covers in vec(any::<bool>(), 0..600),
        coded in vec(any::<u8>(), 0..50),
    ) {
        let mut covered = vec![0; covers.len().div_ceil(8)];
        for (n, _) in covers.iter().enumerate().filter(|&(_, &it)| it) {
            covered[n / 8] |= 0x80 >> (n % 8);
        }
        let count = covers.len() as u16;
        let chunk = Redundancy { rule, first_tsn, count, key, covered: &covered, coded: &coded };
        prop_assert!((0..covers.len()).all(|n| chunk.covers(n) == covers[n]));
        let sealed = packet(&emitted(&Chunk::Redundancy(chunk)));
        let read: Vec<_> = Packet::parse(&sealed).expect("sealed").chunks().map(|c| c.and_then(Chunk::parse)).collect();
        prop_assert_eq!(read, [Ok(Chunk::Redundancy(chunk))]);
    }
}
