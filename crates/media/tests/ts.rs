//! Real transport streams into units and back.

use braidcast_core::Instant;
use braidcast_media::ts::{NULL_PACKET, PACKET, Packet};
use braidcast_media::{Format, Framing, Input, Kind, Pacer, Unit};
use core::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeMap;

const H264: &[u8] = include_bytes!("clips/h264.ts");
const H265: &[u8] = include_bytes!("clips/h265.ts");

fn demux_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Unit> {
    let mut input = Input::new(Format::Auto, Framing::Stream(1000));
    let mut units = Vec::new();
    for piece in pieces {
        input.push(Instant::ZERO, piece);
        units.extend(core::iter::from_fn(|| input.poll()));
    }
    input.finish(Instant::ZERO);
    units.extend(core::iter::from_fn(|| input.poll()));
    units
}

fn demux(stream: &[u8]) -> Vec<Unit> {
    demux_pieces([stream])
}

/// The packets of all units in the order of their indexes.
fn put_together(units: &[Unit]) -> Vec<u8> {
    let mut packets = BTreeMap::new();
    for (index, packet) in units.iter().flat_map(Unit::packets) {
        assert!(packets.insert(index, packet).is_none(), "packet {index} is in two units");
    }
    packets.into_values().flatten().copied().collect()
}

/// Presentation time and frame type, one a line, in presentation order, as ffprobe lists them.
fn frame_list(units: &[Unit]) -> String {
    let frames: BTreeMap<u64, Kind> =
        units.iter().filter(|u| u.kind.is_video()).map(|u| (u.pts.unwrap(), u.kind)).collect();
    frames.iter().map(|(pts, kind)| format!("{pts},{kind}\n")).collect()
}

#[test]
fn picture_types_of_h264_are_those_that_ffprobe_finds() {
    assert_eq!(frame_list(&demux(H264)), include_str!("clips/h264.frames"));
}

#[test]
fn picture_types_of_h265_are_those_that_ffprobe_finds() {
    assert_eq!(frame_list(&demux(H265)), include_str!("clips/h265.frames"));
}

#[test]
fn in_a_b_pyramid_the_middle_b_is_a_reference_and_the_others_are_not() {
    for clip in [H264, H265] {
        let units = demux(clip);
        let of = |reference| units.iter().filter(|u| u.kind == Kind::B && u.reference == reference).count();
        assert!(of(true) > 0 && of(false) > of(true), "{} references, {} others", of(true), of(false));
        assert!(units.iter().all(|u| u.reference || u.kind == Kind::B));
    }
}

#[test]
fn tables_and_audio_are_found_and_nothing_is_left_over() {
    let units = demux(H264);
    let count = |kind| units.iter().filter(|u| u.kind == kind).count();
    assert!(count(Kind::Tables) >= 10 && count(Kind::Audio) >= 4, "{:?}", Kind::ALL.map(count));
    assert_eq!((count(Kind::Other), count(Kind::Data)), (0, 0));
    assert!(units.iter().filter(|u| u.kind == Kind::Audio).all(|u| u.pts.is_some()));
}

#[test]
fn the_units_together_are_the_input() {
    for clip in [H264, H265] {
        assert_eq!(put_together(&demux(clip)), clip);
    }
}

#[test]
fn null_packets_cost_no_bytes_and_come_back_in_their_places() {
    let mut padded = Vec::new();
    for (n, packet) in H264.as_chunks::<PACKET>().0.iter().enumerate() {
        padded.extend_from_slice(packet);
        padded.extend(NULL_PACKET.repeat(n % 3));
    }
    padded.extend(NULL_PACKET.repeat(1000));
    let units = demux(&padded);
    assert_eq!(units.iter().map(|u| u.bytes.len()).sum::<usize>(), H264.len());
    assert_eq!(put_together(&units), padded);
}

#[test]
fn a_picture_is_closed_when_its_pid_falls_silent() {
    let mut input = Input::new(Format::Ts, Framing::Datagrams);
    // Up to the last packet of the last frame, which would show its end.
    let last = H265.as_chunks::<PACKET>().0.iter().rposition(|packet| Packet::new(packet).pid() == 256).unwrap();
    input.push(Instant::ZERO, &H265[..last * PACKET]);
    let at_once = core::iter::from_fn(|| input.poll()).count();
    let timeout = input.poll_timeout().unwrap();
    assert_eq!(timeout, Instant::from_millis(100));
    input.push(timeout, &[]);
    assert_eq!(core::iter::from_fn(|| input.poll()).count(), 1, "the last frame, after {at_once} units");
    assert_eq!(input.poll_timeout(), None);
}

/// Returns for each frame how many packets came behind its last one until it was there.
fn waits(stream: &[u8]) -> Vec<u64> {
    let mut input = Input::new(Format::Ts, Framing::Datagrams);
    let mut waits = Vec::new();
    for (n, packet) in (0..).zip(stream.as_chunks::<PACKET>().0) {
        input.push(Instant::ZERO, packet);
        let pictures = core::iter::from_fn(|| input.poll()).filter(|unit| unit.kind.is_video());
        waits.extend(pictures.map(|unit| n + 1 - unit.runs.last().unwrap().end()));
    }
    waits
}

#[test]
fn a_picture_is_there_with_its_last_packet_where_stuffing_ends_it() {
    for clip in [H264, H265] {
        let waits = waits(clip);
        let at_once = waits.iter().filter(|wait| **wait == 0).count();
        assert!(at_once * 20 >= waits.len() * 19, "{at_once} of {}: {waits:?}", waits.len());
    }
}

/// `stream` with one more stuffed packet of the video's in front of the last packet of each frame:
/// its multiplexer stuffs anywhere.
fn stuffed_within(stream: &[u8]) -> Vec<u8> {
    let (mut out, mut shift) = (Vec::new(), 0);
    for packet in stream.as_chunks::<PACKET>().0 {
        let mut packet = *packet;
        let of_video = Packet::new(&packet).pid() == 256;
        if of_video && Packet::new(&packet).is_stuffed() && packet[1] & 0x40 == 0 {
            // The same without its last byte, then its last byte alone.
            let length = usize::from(packet[4]);
            let mut first = packet;
            first[4] += 1;
            first.copy_within(5 + length..PACKET - 1, 6 + length);
            first[5 + length] = 0xff;
            if length == 0 {
                first[5] = 0;
            }
            first[3] = first[3] & 0xf0 | (first[3] + shift) & 0x0f;
            out.extend_from_slice(&first);
            shift += 1;
            let last = packet[PACKET - 1];
            packet[4] = 182;
            packet[5] = 0;
            packet[6..].fill(0xff);
            packet[PACKET - 1] = last;
        }
        if of_video {
            packet[3] = packet[3] & 0xf0 | (packet[3] + shift) & 0x0f;
        }
        out.extend_from_slice(&packet);
    }
    out
}

#[test]
fn a_stream_that_is_stuffed_within_pictures_is_cut_wrongly_once() {
    let stream = stuffed_within(H264);
    let (units, plain) = (demux(&stream), demux(H264));
    assert_eq!(put_together(&units), stream);
    let pictures = |units: &[Unit]| units.iter().filter(|unit| unit.kind.is_video()).count();
    assert_eq!(pictures(&units), pictures(&plain) + 1);
    assert_eq!(
        frame_list(&units.into_iter().filter(|unit| unit.pts.is_some()).collect::<Vec<_>>()),
        frame_list(&plain)
    );
}

#[test]
fn a_clock_reference_alone_waits_for_no_picture() {
    let mut input = Input::new(Format::Ts, Framing::Datagrams);
    let cut = H264.as_chunks::<PACKET>().0.iter().rposition(|packet| {
        let packet = Packet::new(packet);
        packet.pid() == 256 && packet.is_stuffed()
    });
    input.push(Instant::ZERO, &H264[..(cut.unwrap() + 1) * PACKET]);
    while input.poll().is_some() {}
    let mut reference = [0xff; PACKET];
    reference[..12].copy_from_slice(&[0x47, 1, 0, 0x20, 183, 0x10, 0, 0, 0, 0, 0x7e, 0]);
    input.push(Instant::ZERO, &reference);
    let unit = input.poll().unwrap();
    assert_eq!((unit.kind, unit.reference, unit.bytes.len()), (Kind::Tables, true, PACKET));
}

#[test]
fn garbage_in_the_middle_costs_only_what_it_touches() {
    let cut = H264.len() / PACKET / 2 * PACKET;
    let mut input = Input::new(Format::Auto, Framing::Stream(1000));
    input.push(Instant::ZERO, &H264[..cut]);
    input.push(Instant::ZERO, &[0; 777]);
    input.push(Instant::ZERO, &H264[cut..]);
    input.finish(Instant::ZERO);
    let units: Vec<Unit> = core::iter::from_fn(|| input.poll()).collect();
    assert_eq!(put_together(&units), H264);
    assert_eq!(input.stats().ts.garbage_bytes, 777);
}

#[test]
fn the_pacer_releases_a_clip_in_as_long_as_it_plays() {
    let (mut pacer, mut out, mut released, mut last) =
        (Pacer::new(Instant::ZERO), Vec::new(), Vec::new(), Instant::ZERO);
    for piece in H264.chunks(1000) {
        pacer.push(piece);
        while let Some(due) = pacer.poll(&mut out) {
            assert!(due >= last);
            last = due;
            released.extend_from_slice(&out);
        }
    }
    pacer.finish();
    while let Some(due) = pacer.poll(&mut out) {
        last = due;
        released.extend_from_slice(&out);
    }
    assert_eq!(released, H264);
    let length = last.since(Instant::ZERO);
    assert!((Duration::from_millis(1000)..Duration::from_millis(1400)).contains(&length), "{length:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_of_any_size_give_the_same_units(cuts in prop::collection::vec(1_usize..3000, 1..60)) {
        let (mut pieces, mut rest) = (Vec::new(), H264);
        for cut in cuts {
            let (piece, later) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = later;
        }
        pieces.push(rest);
        prop_assert_eq!(demux_pieces(pieces), demux(H264));
    }

    #[test]
    fn damaged_streams_do_no_harm(damage in prop::collection::vec((0_usize..H264.len(), any::<u8>()), 0..200)) {
        for clip in [H264, H265] {
            let mut clip = clip.to_vec();
            for (at, byte) in &damage {
                let at = at % clip.len();
                clip[at] = *byte;
            }
            let mut input = Input::new(Format::Ts, Framing::Datagrams);
            input.push(Instant::ZERO, &clip);
            input.finish(Instant::ZERO);
            let units: Vec<Unit> = core::iter::from_fn(|| input.poll()).collect();
            prop_assert_eq!(put_together(&units).len() as u64 + input.stats().ts.garbage_bytes, clip.len() as u64);
        }
    }

    #[test]
    fn packets_of_arbitrary_bytes_do_no_harm(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 187), 0..40),
        pid in 0_u8..3,
    ) {
        let mut input = Input::new(Format::Ts, Framing::Datagrams);
        let mut pacer = Pacer::new(Instant::ZERO);
        for packet in &packets {
            // Few PIDs, so that they meet: the PAT's, a table's, and a stream's.
            let mut bytes = vec![0x47];
            bytes.extend_from_slice(packet);
            bytes[1] &= 0xe0;
            bytes[2] %= pid + 1;
            input.push(Instant::ZERO, &bytes);
            pacer.push(&bytes);
        }
        input.finish(Instant::ZERO);
        pacer.finish();
        let units: Vec<Unit> = core::iter::from_fn(|| input.poll()).collect();
        prop_assert!(put_together(&units).len() <= packets.len() * PACKET);
    }
}
