//! Any bytes as video of each codec, in PES packets of any size: what reads access units and frame headers.

use braidcast_core::Instant;
use braidcast_media::ts::{Demux, PACKET};
use core::time::Duration;

/// Stream types, and a descriptor where private data is meant.
const TYPES: [(u8, &[u8]); 7] =
    [(0x02, &[]), (0x10, &[]), (0x1b, &[]), (0x24, &[]), (0x33, &[]), (0x06, b"\x05\x04AV01"), (0x32, &[])];

/// CRC-32 of MPEG-2 (ISO/IEC 13818-1 annex A).
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    })
}

fn packet(pid: u16, starts: bool, payload: &[u8]) -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    packet[..4].copy_from_slice(&[0x47, u8::from(starts) << 6 | (pid >> 8) as u8, pid as u8, 0x30]);
    let left = PACKET - 5 - payload.len();
    packet[4] = left as u8;
    if left > 0 {
        packet[5] = 0;
    }
    packet[PACKET - payload.len()..].copy_from_slice(payload);
    packet
}

fn table(pid: u16, table: u8, body: &[u8]) -> [u8; PACKET] {
    let mut section = vec![table, 0xb0, (body.len() + 9) as u8, 0, 1, 0xc1, 0, 0];
    section.extend_from_slice(body);
    section.extend(crc(&section).to_be_bytes());
    packet(pid, true, &[&[0], &section[..]].concat())
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let Some((&[which, size], stream)) = bytes.split_first_chunk() else { return };
    let (stream_type, descriptor) = TYPES[usize::from(which) % TYPES.len()];
    let pmt = [&[0xe1, 0, 0xf0, 0, stream_type, 0xe1, 0, 0xf0, descriptor.len() as u8], descriptor].concat();
    let mut demux = Demux::new();
    if which & 0x80 != 0 {
        demux.set_patience(Duration::from_millis(20));
    }
    demux.push(Instant::ZERO, &table(0, 0, &[0, 1, 0xf0, 0]));
    demux.push(Instant::ZERO, &table(0x1000, 2, &pmt));
    let (mut now, mut count) = (Instant::ZERO, 0);
    for (n, pes) in stream.chunks(1 + usize::from(size) * 4).enumerate() {
        let time = if n % 2 == 0 { [0x21, n as u8, 1, 0, 1] } else { [0x21, 0, 1, n as u8, 1] };
        let pes = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5], &time[..], pes].concat();
        for (k, payload) in pes.chunks(PACKET - 5).enumerate() {
            demux.push(now, &packet(0x100, k == 0, payload));
            count += 1;
        }
        now += Duration::from_millis(u64::from(size) % 40);
    }
    demux.finish(now);
    let mut video = 0;
    while let Some(unit) = demux.poll() {
        assert!(unit.pid != 0x100 || unit.kind.is_video());
        video += if unit.pid == 0x100 { unit.packets().count() } else { 0 };
    }
    assert_eq!(video, count);
}
