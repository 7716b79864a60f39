//! A small multiplexer of MPEG-TS: one program (ISO/IEC 13818-1).

use super::{Coding, NULL_PID, PACKET, SYNC};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::BTreeMap;

/// Of tables (annex A).
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_MPEG_2);
const PMT: u16 = 0x1000;
/// By how much the program clock is behind the decoding times of what is sent with it, in units of 1/90,000 s: a
/// fifth of a second, in which a decoder may get what comes.
const LEAD: u64 = 18_000;
/// The clock counts 33 bits.
const MASK: u64 = (1 << 33) - 1;
/// The tables and the clock, in units of 1/90,000 s, are repeated at least as often.
const TABLES: Duration = Duration::from_millis(100);
const CLOCK: u64 = 3600;
/// Bytes of a PES packet behind its length, at most (§2.4.3.7).
const LONGEST_PES: usize = u16::MAX as usize;
/// Bytes that leave two of a packet.
const LEAVES_TWO: usize = PACKET - 4 - 2;
/// Begins what a packet says of its access unit, in private data of tag and length, as DVB has it (ETSI TS 101 154
/// annex D); tags from here on are the user's.
pub(super) const ABOUT: u8 = 0xe0;

/// Makes a transport stream of access units: tables each 100 ms and before key frames, and a clock with each 40 ms.
#[derive(Debug, Default)]
pub struct Mux {
    streams: Vec<(u16, Coding)>,
    version: u8,
    /// The next counter of each PID.
    counters: BTreeMap<u16, u8>,
    /// The clock jumps with the next reference.
    jumps: bool,
    tables_at: Option<Instant>,
    clock_at: u64,
    pes: Vec<u8>,
}

/// An access unit that is to be multiplexed.
#[derive(Clone, Copy, Debug)]
pub struct MuxUnit<'a> {
    /// Its bytes, as [`Coding`] has them.
    pub bytes: &'a [u8],
    /// Presentation time in units of 1/90,000 s; of more than 33 bits the lower ones go.
    pub pts: u64,
    /// Decoding time; equal to the presentation time where frames come in that order.
    pub dts: u64,
    /// A decoder can begin here.
    pub key: bool,
    /// The layer, 0 for the one that all others need. Then packets say it, and how long the unit is, so that
    /// [`Elementary`](super::Elementary) knows both. `None`: nothing of that goes along.
    pub layer: Option<u8>,
}

impl Mux {
    /// Elementary streams of a program at most: a table of them fits into a packet.
    pub const MOST_STREAMS: usize = 8;

    /// The tables say from now on that these PIDs are there, the first [`MOST_STREAMS`](Self::MOST_STREAMS) of them,
    /// and they go with the next unit.
    pub fn set_streams(&mut self, streams: &[(u16, Coding)]) {
        let streams = &streams[..streams.len().min(Self::MOST_STREAMS)];
        if streams != self.streams {
            self.streams = streams.to_vec();
            self.version = (self.version + 1) & 0x1f;
        }
        self.tables_at = None;
    }

    /// The tables go with the next unit.
    pub const fn repeat_tables(&mut self) {
        self.tables_at = None;
    }

    /// The times of what comes next are of another clock.
    pub const fn jump(&mut self) {
        self.jumps = true;
    }

    /// The PID whose packets have the clock: of the first video, else of the first stream.
    fn clock_pid(&self) -> u16 {
        let video = self.streams.iter().find(|(_, coding)| coding.is_video());
        video.or(self.streams.first()).map_or(NULL_PID, |(pid, _)| *pid)
    }

    /// Appends the packets of a unit to `out`, behind the tables if these are due. Returns the bytes of the tables;
    /// `None` if there is no such PID, or what is no video is too long for a PES packet.
    pub fn push(&mut self, now: Instant, pid: u16, unit: &MuxUnit<'_>, out: &mut Vec<u8>) -> Option<usize> {
        let (_, coding) = *self.streams.iter().find(|(it, _)| *it == pid)?;
        let before = out.len();
        self.write_pes(coding, unit).then_some(())?;
        if (coding.is_video() && unit.key) || self.tables_at.is_none_or(|at| now.since(at) >= TABLES) {
            self.tables_at = Some(now);
            self.tables(out);
        }
        let tables = out.len() - before;
        let has_clock = pid == self.clock_pid();
        let clock = has_clock && (unit.key || self.jumps || unit.dts.abs_diff(self.clock_at) >= CLOCK);
        if clock {
            self.clock_at = unit.dts;
        }
        // Without video a decoder can begin anywhere.
        let video = self.streams.iter().any(|(_, coding)| coding.is_video());
        let key = if coding.is_video() { unit.key } else { !video };
        let adaptation = self.adaptation(unit, key, clock);
        self.end_short(coding, unit, adaptation.len());
        self.write_packets(pid, adaptation, out);
        Some(tables)
    }

    /// Appends both tables to `out`.
    fn tables(&mut self, out: &mut Vec<u8>) {
        let [high, low] = PMT.to_be_bytes();
        self.section(0, &[0, 1, self.version_byte(), 0, 0, 0, 1, 0xe0 | high, low], 0, out);
        let [high, low] = self.clock_pid().to_be_bytes();
        let mut body = vec![0, 1, self.version_byte(), 0, 0, 0xe0 | high, low, 0xf0, 0];
        for (pid, coding) in &self.streams {
            let [high, low] = pid.to_be_bytes();
            let mut descriptors = Vec::new();
            coding.write_descriptors(&mut descriptors);
            body.extend([coding.stream_type(), 0xe0 | high, low, 0xf0, descriptors.len() as u8]);
            body.extend(descriptors);
        }
        self.section(2, &body, PMT, out);
    }

    const fn version_byte(&self) -> u8 {
        0xc1 | self.version << 1
    }

    /// A section of a table (§2.4.4), which fits into a packet.
    fn section(&mut self, table: u8, body: &[u8], pid: u16, out: &mut Vec<u8>) {
        let length = body.len() as u8 + 4;
        let mut section = vec![table, 0xb0, length];
        section.extend_from_slice(body);
        let sum = CRC.checksum(&section);
        section.extend(sum.to_be_bytes());
        let counter = self.count(pid);
        let [high, low] = pid.to_be_bytes();
        let end = out.len() + PACKET;
        out.extend([SYNC, 0x40 | high, low, 0x10 | counter, 0]);
        out.extend(section);
        out.resize(end, 0xff);
    }

    fn count(&mut self, pid: u16) -> u8 {
        let counter = self.counters.entry(pid).or_default();
        let now = *counter;
        *counter = (now + 1) & 0x0f;
        now
    }

    /// Writes the PES packet of a unit; `false` if it is too long.
    fn write_pes(&mut self, coding: Coding, unit: &MuxUnit<'_>) -> bool {
        let pes = &mut self.pes;
        pes.clear();
        pes.extend([0, 0, 1, coding.stream_id(), 0, 0, 0x80, 0x80, 5]);
        if unit.dts == unit.pts {
            timestamp(2, unit.pts, pes);
        } else {
            (pes[7], pes[8]) = (0xc0, 10);
            timestamp(3, unit.pts, pes);
            timestamp(1, unit.dts, pes);
        }
        coding.write_header(unit.bytes.len(), pes);
        pes.extend_from_slice(unit.bytes);
        let length = u16::try_from(pes.len() - 6).ok();
        match length {
            // Video's length need not be said (§2.4.3.7).
            _ if coding.is_video() && unit.layer.is_none() => {}
            Some(length) => pes[4..6].copy_from_slice(&length.to_be_bytes()),
            None if coding.is_video() => {}
            None => return false,
        }
        true
    }

    /// If a long unit of video would fill its last packet, one more byte in its PES header has that stuffed, so
    /// that its end is seen in it ([`Demux`](super::Demux)).
    fn end_short(&mut self, coding: Coding, unit: &MuxUnit<'_>, adaptation: usize) {
        let pes = &mut self.pes;
        if coding.is_video() && unit.layer.is_some() && pes.len() - 6 > LONGEST_PES {
            let room = PACKET - 4;
            let first = room - if adaptation > 0 { adaptation + 1 } else { 0 };
            // With two bytes left there is a field of flags, and no stuffing in it.
            if matches!((pes.len() - first) % room, 0 | LEAVES_TWO) {
                let header = 9 + usize::from(pes[8]);
                pes[8] += 1;
                pes.insert(header, 0xff);
            }
        }
    }

    /// Flags, the clock if it goes along (§2.4.3.4), and what is said of the unit; empty if there is nothing to say.
    fn adaptation(&mut self, unit: &MuxUnit<'_>, key: bool, clock: bool) -> Vec<u8> {
        let (entry, about) = (if key { 0x40 } else { 0 }, if unit.layer.is_some() { 0x02 } else { 0 });
        let mut field = if clock {
            let jump = if core::mem::take(&mut self.jumps) { 0x80 } else { 0 };
            let base = unit.dts.wrapping_sub(LEAD) & MASK;
            // 33 bits, six reserved, and nine of an extension that is 0.
            let [.., a, b, c, d, e] = (base << 7).to_be_bytes();
            vec![entry | jump | about | 0x10, a, b, c, d, e | 0x7e, 0]
        } else if entry | about != 0 {
            vec![entry | about]
        } else {
            Vec::new()
        };
        if let Some(layer) = unit.layer {
            field.extend([7, ABOUT, 5, layer]);
            field.extend((unit.bytes.len() as u32).to_be_bytes());
        }
        field
    }

    fn write_packets(&mut self, pid: u16, mut adaptation: Vec<u8>, out: &mut Vec<u8>) {
        let pes = core::mem::take(&mut self.pes);
        let (mut rest, mut first) = (&pes[..], true);
        while !rest.is_empty() {
            let counter = self.count(pid);
            let used = packet(pid, counter, first, core::mem::take(&mut adaptation), rest, out);
            rest = &rest[used..];
            first = false;
        }
        self.pes = pes;
    }
}

/// Appends a packet with as much of `payload` as fits; returns how much.
fn packet(pid: u16, counter: u8, first: bool, mut adaptation: Vec<u8>, payload: &[u8], out: &mut Vec<u8>) -> usize {
    let room = PACKET - 4;
    let taken = if adaptation.is_empty() { 0 } else { adaptation.len() + 1 };
    let used = payload.len().min(room - taken);
    // What is left is stuffed: by a length alone, or by flags without a meaning and ones.
    let stuffing = room - taken - used;
    let has_field = taken + stuffing > 0;
    if stuffing > 0 {
        let length = taken + stuffing - 1;
        if adaptation.is_empty() && length > 0 {
            adaptation.push(0);
        }
        adaptation.resize(length, 0xff);
    }
    let [high, low] = pid.to_be_bytes();
    let start = if first { 0x40 } else { 0 };
    out.extend([SYNC, start | high, low, if has_field { 0x30 } else { 0x10 } | counter]);
    if has_field {
        out.push(adaptation.len() as u8);
        out.extend(adaptation);
    }
    out.extend_from_slice(&payload[..used]);
    used
}

/// A time with its marker bits (§2.4.3.7).
fn timestamp(prefix: u8, time: u64, out: &mut Vec<u8>) {
    let part = |shift: u32, bits: u32| (time >> shift & ((1 << bits) - 1)) as u16;
    out.push(prefix << 4 | (part(30, 3) as u8) << 1 | 1);
    out.extend((part(15, 15) << 1 | 1).to_be_bytes());
    out.extend((part(0, 15) << 1 | 1).to_be_bytes());
}
