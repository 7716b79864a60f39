//! Streams of shapes that encoders and stations make, by hand: which units they become.

use braidcast_core::Instant;
use braidcast_media::Unit;
use braidcast_media::ts::{Demux, PACKET, SYNC};
use core::time::Duration;
use std::collections::BTreeMap;

const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_MPEG_2);
const VIDEO: u16 = 0x100;
const AUD: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];

/// Writes packets, each with the counter of its PID.
#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    counters: BTreeMap<u16, u8>,
}

impl Writer {
    /// One packet; what `payload` lacks is filled up in an adaptation field.
    fn packet(&mut self, pid: u16, starts: bool, payload: &[u8]) {
        let counter = self.counters.entry(pid).or_insert(15);
        *counter = (*counter + 1) & 15;
        let mut packet = vec![SYNC, if starts { 0x40 } else { 0 } | (pid >> 8) as u8, pid as u8, 0x10 | *counter];
        let left = PACKET - 4 - payload.len();
        if left > 0 {
            packet[3] |= 0x20;
            packet.push(left as u8 - 1);
            packet.extend([0].into_iter().chain(core::iter::repeat(0xff)).take(left - 1));
        }
        packet.extend_from_slice(payload);
        self.out.extend_from_slice(&packet);
    }

    fn packets(&mut self, pid: u16, starts: bool, bytes: &[u8]) {
        for (n, piece) in bytes.chunks(PACKET - 4).enumerate() {
            self.packet(pid, starts && n == 0, piece);
        }
    }

    fn pes(&mut self, pid: u16, id: u8, pts: Option<u64>, stream: &[u8]) {
        let mut pes = vec![0, 0, 1, id, 0, 0, 0x80, if pts.is_some() { 0x80 } else { 0 }, 0];
        if let Some(pts) = pts {
            pes[8] = 5;
            let byte = |shift: u32| (pts >> shift) as u8;
            pes.extend([0x21 | byte(29) & 0x0e, byte(22), byte(14) | 1, byte(7), byte(0) << 1 | 1]);
        }
        if id & 0xf0 != 0xe0 {
            let length = (pes.len() - 6 + stream.len()) as u16;
            pes[4..6].copy_from_slice(&length.to_be_bytes());
        }
        pes.extend_from_slice(stream);
        self.packets(pid, true, &pes);
    }

    fn section(&mut self, pid: u16, table: u8, body: &[u8]) {
        let mut section = vec![table, 0xb0, (body.len() + 9) as u8, 0, 1, 0xc1, 0, 0];
        section.extend_from_slice(body);
        section.extend_from_slice(&CRC.checksum(&section).to_be_bytes());
        let mut payload = vec![0];
        payload.extend_from_slice(&section);
        payload.resize(PACKET - 4, 0xff);
        self.packet(pid, true, &payload);
    }

    /// PAT and PMT, which announces `streams`: type, PID, descriptors.
    fn tables(&mut self, streams: &[(u8, u16, &[u8])]) {
        self.section(0, 0, &[0, 1, 0xf0, 0]);
        let mut body = vec![0xe1, 0, 0xf0, 0];
        for (stream_type, pid, descriptors) in streams {
            body.extend([*stream_type, 0xe0 | (pid >> 8) as u8, *pid as u8, 0xf0, descriptors.len() as u8]);
            body.extend_from_slice(descriptors);
        }
        self.section(0x1000, 2, &body);
    }

    /// A clock reference and nothing else.
    fn clock(&mut self, pid: u16) {
        let mut packet = [0xff; PACKET];
        packet[..12].copy_from_slice(&[SYNC, (pid >> 8) as u8, pid as u8, 0x20, 183, 0x10, 0, 0, 0, 0, 0x7e, 0]);
        self.out.extend_from_slice(&packet);
    }
}

/// An access unit of H.264: a slice of `slice_type` (table 7-6) and `bytes` more.
fn picture(slice_type: u8, reference: bool, bytes: usize) -> Vec<u8> {
    let nal = if slice_type == 7 { 0x65 } else { 0x01 } | if reference { 0x60 } else { 0 };
    // first_mb_in_slice 0 is 1; slice_type as ue(v): 5 is 00110, 6 00111, 7 0001000.
    let header: &[u8] = match slice_type {
        5 => &[0b1001_1010],
        6 => &[0b1001_1110],
        _ => &[0b1000_1000],
    };
    [&[0, 0, 1, nal][..], header, &[0x80], &vec![0xab; bytes]].concat()
}

fn units(stream: &[u8]) -> Vec<Unit> {
    let mut demux = Demux::new();
    demux.push(Instant::ZERO, stream);
    demux.finish(Instant::ZERO);
    let units: Vec<Unit> = core::iter::from_fn(|| demux.poll()).collect();
    let packets: BTreeMap<u64, Vec<u8>> =
        units.iter().flat_map(Unit::packets).map(|(index, packet)| (index, packet.to_vec())).collect();
    assert!(packets.into_values().flatten().eq(stream.iter().copied()), "the units together are the stream");
    units
}

/// Kinds of the units of `pid`, a lower-case letter for what continues, and an apostrophe for what none needs.
fn kinds(units: &[Unit], pid: u16) -> String {
    let name = |unit: &Unit| {
        let name = &unit.kind.name()[..1];
        let name = if unit.continues { name.to_lowercase() } else { name.to_uppercase() };
        name + if unit.reference { "" } else { "'" }
    };
    units.iter().filter(|unit| unit.pid == pid).map(name).collect()
}

#[test]
fn pictures_in_one_pes_packet_are_units_of_their_own_and_leave_as_they_come() {
    let mut writer = Writer::default();
    writer.tables(&[(0x1b, VIDEO, &[])]);
    let pictures = (0..6).map(|n| [&AUD[..], &picture(if n == 3 { 7 } else { 5 }, true, 1000 + n)].concat());
    writer.pes(VIDEO, 0xe0, Some(9000), &pictures.collect::<Vec<_>>().concat());
    assert_eq!(kinds(&units(&writer.out), VIDEO), "PPPIPP");
    let mut demux = Demux::new();
    let (mut there, mut pictures) = (0, Vec::new());
    for packet in writer.out.as_chunks::<PACKET>().0 {
        demux.push(Instant::ZERO, packet);
        there += core::iter::from_fn(|| demux.poll()).filter(|unit| unit.kind.is_video()).count();
        pictures.push(there);
    }
    assert!(pictures.windows(2).all(|pair| pair[1] - pair[0] < 2) && there >= 5, "{pictures:?}");
}

#[test]
fn a_picture_in_several_pes_packets_is_one_frame() {
    let mut writer = Writer::default();
    writer.tables(&[(0x1b, VIDEO, &[])]);
    for (n, slice_type) in [7, 5, 6].into_iter().enumerate() {
        let picture = [&AUD[..], &picture(slice_type, slice_type != 6, 1200)].concat();
        let pts = Some([0, 10_800, 3600][n]);
        writer.pes(VIDEO, 0xe0, pts, &picture[..500]);
        writer.pes(VIDEO, 0xe0, None, &picture[500..900]);
        writer.pes(VIDEO, 0xe0, None, &picture[900..]);
    }
    assert_eq!(kinds(&units(&writer.out), VIDEO), "IiiPppB'b'b'");
}

#[test]
fn the_first_field_of_a_pair_is_an_i_picture_though_the_second_is_not() {
    let mut writer = Writer::default();
    writer.tables(&[(0x1b, VIDEO, &[])]);
    writer.pes(VIDEO, 0xe0, Some(0), &[&AUD[..], &picture(7, true, 700), &AUD, &picture(5, true, 300)].concat());
    writer.pes(VIDEO, 0xe0, Some(3600), &[&AUD[..], &picture(5, true, 700), &AUD, &picture(5, true, 300)].concat());
    assert_eq!(kinds(&units(&writer.out), VIDEO), "IPPP");
}

#[test]
fn b_slices_that_lean_on_the_past_alone_are_p_and_p_that_none_leans_on_is_not_needed() {
    let mut writer = Writer::default();
    writer.tables(&[(0x1b, VIDEO, &[])]);
    // In order of decoding: I0, GPB at 3, B 1, B 2, GPB 4, P 5 of a higher temporal layer.
    for (slice_type, reference, at) in
        [(7, true, 0), (6, true, 3), (6, true, 1), (6, false, 2), (6, true, 4), (5, false, 5)]
    {
        let pts = ((1 << 33) - 7200 + at * 3600) % (1 << 33);
        writer.pes(VIDEO, 0xe0, Some(pts), &[&AUD[..], &picture(slice_type, reference, 400)].concat());
    }
    assert_eq!(kinds(&units(&writer.out), VIDEO), "IPBB'PP'");
}

#[test]
fn video_whose_pictures_cannot_be_read_is_known_by_random_access_and_order() {
    for stream in [(0x32, &[][..]), (0x06, b"\x05\x04AV01"), (0x33, &[])] {
        let mut writer = Writer::default();
        writer.tables(&[(stream.0, VIDEO, stream.1)]);
        for (n, at) in [0, 3, 1, 2, 4].into_iter().enumerate() {
            let from = writer.out.len();
            writer.pes(VIDEO, 0xe0, Some(at * 3600), &vec![0x55; 500 + n]);
            if n == 0 {
                // An adaptation field in place of some bytes, with random_access_indicator.
                let packet = &mut writer.out[from..from + PACKET];
                packet[3] |= 0x20;
                packet.copy_within(4..PACKET - 2, 6);
                packet[4..6].copy_from_slice(&[1, 0x40]);
            }
        }
        assert_eq!(kinds(&units(&writer.out), VIDEO), "IPBBP", "{:#x}", stream.0);
    }
}

#[test]
fn without_tables_audio_and_pictures_are_known_by_their_pes_packets() {
    let mut writer = Writer::default();
    for n in 0..3 {
        writer.pes(VIDEO, 0xe0, Some(n * 3600), &[&AUD[..], &picture(if n == 0 { 7 } else { 5 }, true, 900)].concat());
        writer.pes(0x101, 0xc0, Some(n * 3600), &[0xff; 100]);
    }
    let units = units(&writer.out);
    assert_eq!((kinds(&units, VIDEO), kinds(&units, 0x101)), ("IPP".into(), "AAA".into()));
}

#[test]
fn streams_on_low_pids_are_what_the_pmt_says() {
    let mut writer = Writer::default();
    writer.tables(&[(0x1b, 0x11, &[]), (0x0f, 0x12, &[])]);
    writer.pes(0x11, 0xe0, Some(0), &[&AUD[..], &picture(7, true, 900)].concat());
    writer.pes(0x12, 0xc0, Some(0), &[0xff; 100]);
    let units = units(&writer.out);
    assert_eq!((kinds(&units, 0x11), kinds(&units, 0x12)), ("I".into(), "A".into()));
}

#[test]
fn a_pes_packet_on_the_pid_of_a_pmt_is_no_table() {
    let mut writer = Writer::default();
    writer.tables(&[]);
    writer.pes(0x1000, 0xe0, Some(0), &[&AUD[..], &picture(7, true, 900)].concat());
    writer.pes(0x1000, 0xe0, Some(0), &[&AUD[..], &picture(5, true, 900)].concat());
    let units = units(&writer.out);
    assert_eq!(kinds(&units[1..], 0x1000), "IP");
}

#[test]
fn what_is_small_goes_with_the_tables_and_a_program_guide_last() {
    let mut writer = Writer::default();
    writer.tables(&[(0x06, 0x1f1, b"\x05\x04KLVA"), (0x86, 0x1f2, &[])]);
    writer.pes(0x1f1, 0xbd, None, &[6, 0x0e, 0x2b, 0x34, 1, 2, 3]);
    writer.section(0x1f2, 0xfc, &[0; 20]);
    writer.clock(0x1ff);
    for _ in 0..400 {
        writer.section(0x12, 0x50, &[7; 150]);
    }
    let units = units(&writer.out);
    assert_eq!([0x1f1, 0x1f2, 0x1ff].map(|pid| kinds(&units, pid)), ["T", "T", "T"]);
    // Three kilobytes a second would be a small one; all came at once.
    let guide = kinds(&units, 0x12);
    assert!(guide.starts_with('T') && guide.ends_with(&"O'".repeat(250)), "{guide}");
}

#[test]
fn a_picture_that_is_long_in_coming_leaves_in_parts() {
    let mut writer = Writer::default();
    writer.tables(&[(0x1b, VIDEO, &[])]);
    writer.pes(VIDEO, 0xe0, Some(0), &[&AUD[..], &picture(7, true, 20_000)].concat());
    writer.pes(VIDEO, 0xe0, Some(3600), &[&AUD[..], &picture(5, true, 200)].concat());
    let mut demux = Demux::new();
    demux.set_patience(Duration::from_millis(40));
    let (mut now, mut units) = (Instant::ZERO, Vec::new());
    for packet in writer.out.as_chunks::<PACKET>().0 {
        demux.push(now, packet);
        now += Duration::from_millis(2);
        units.extend(core::iter::from_fn(|| demux.poll()));
    }
    demux.finish(now);
    units.extend(core::iter::from_fn(|| demux.poll()));
    assert_eq!(kinds(&units, VIDEO), "IiiiiiP");
    let more: Vec<bool> = units.iter().filter(|unit| unit.pid == VIDEO).map(|unit| unit.more).collect();
    assert_eq!(more, [true, true, true, true, true, false, false], "the last part says that it is the last");
    assert!(units.iter().all(|unit| unit.last_captured.since(unit.first_captured) <= Duration::from_millis(40)));
}
