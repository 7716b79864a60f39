//! Program tables: which programs there are (PAT) and what their PIDs carry (PMT), ISO/IEC 13818-1 §2.4.4.

use super::{NULL_PID, Packet};
use braidcast_core::{Reader, Truncated};
use std::collections::BTreeMap;

const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_MPEG_2);
/// Longest PAT or PMT section with its header (`section_length` is at most 1021, §2.4.4.5).
const MAX_SECTION: usize = 1024;
/// Programs that are followed; more are carried but not looked into.
const MAX_PROGRAMS: usize = 256;
/// PIDs below this are reserved for tables (PAT, CAT, and the SI tables of DVB).
const FIRST_FREE_PID: u16 = 0x20;

/// What a PID carries, as far as units are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codec {
    /// MPEG-1 or MPEG-2 video.
    Mpeg2,
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// Any audio codec.
    Audio,
    /// Tables.
    Tables,
    /// Anything else, and whatever no table has announced.
    #[default]
    Other,
}

impl Codec {
    /// Returns `true` if the PID carries video.
    pub const fn is_video(self) -> bool {
        matches!(self, Self::Mpeg2 | Self::H264 | Self::H265)
    }

    /// From `stream_type` and the descriptors behind it (ISO/IEC 13818-1 table 2-34; ATSC A/53; ETSI EN 300 468).
    fn of_stream(stream_type: u8, descriptors: &[u8]) -> Self {
        match stream_type {
            0x01 | 0x02 => Self::Mpeg2,
            0x1b => Self::H264,
            0x24 => Self::H265,
            0x03 | 0x04 | 0x0f | 0x11 | 0x1c | 0x81 | 0x82 | 0x84 | 0x87 => Self::Audio,
            0x06 => Self::of_private(descriptors),
            _ => Self::Other,
        }
    }

    /// Private PES says what it is by a descriptor: of DVB, or a registration of four letters.
    fn of_private(descriptors: &[u8]) -> Self {
        let mut reader = Reader::new(descriptors);
        while let Ok((tag, body)) = descriptor(&mut reader) {
            match (tag, body.get(..4)) {
                (0x6a | 0x7a | 0x7b | 0x7c, _) => return Self::Audio,
                (0x05, Some(b"AC-3" | b"EAC3" | b"Opus" | b"BSSD" | b"DTS1" | b"DTS2" | b"DTS3")) => {
                    return Self::Audio;
                }
                (0x05, Some(b"HEVC")) => return Self::H265,
                _ => {}
            }
        }
        Self::Other
    }
}

fn descriptor<'a>(reader: &mut Reader<'a>) -> Result<(u8, &'a [u8]), Truncated> {
    let (tag, length) = (reader.u8()?, reader.u8()?);
    Ok((tag, reader.take(usize::from(length))?))
}

/// Collects the sections of one PID.
#[derive(Debug, Default)]
struct Sections {
    held: Vec<u8>,
}

impl Sections {
    /// Takes a packet and hands every section that is whole and passes its CRC to `found`.
    fn push(&mut self, packet: &Packet<'_>, mut found: impl FnMut(&[u8])) {
        let payload = packet.payload();
        if !packet.starts_unit() {
            if !self.held.is_empty() {
                self.held.extend_from_slice(payload);
                self.cut(&mut found);
            }
            return;
        }
        let Some((pointer, rest)) = payload.split_first() else { return };
        let Some((tail, sections)) = rest.split_at_checked(usize::from(*pointer)) else { return };
        if !self.held.is_empty() {
            self.held.extend_from_slice(tail);
            self.cut(&mut found);
        }
        self.held.clear();
        self.held.extend_from_slice(sections);
        self.cut(&mut found);
    }

    fn cut(&mut self, found: &mut impl FnMut(&[u8])) {
        let mut at = 0;
        while let [table, high, low, ..] = self.held[at..] {
            let length = 3 + usize::from(u16::from_be_bytes([high & 0x0f, low]));
            if table == 0xff || length > MAX_SECTION {
                // Stuffing up to the end of the packet (§2.4.4), or not a section that is of interest.
                at = self.held.len();
                break;
            }
            let Some(section) = self.held.get(at..at + length) else { break };
            // The CRC of a section with its own CRC field is zero (annex A).
            if CRC.checksum(section) == 0 {
                found(section);
            }
            at += length;
        }
        self.held.drain(..at);
    }
}

/// The fields that PAT and PMT sections share.
struct Section<'a> {
    table: u8,
    /// `transport_stream_id` or `program_number`.
    id: u16,
    version: u8,
    current: bool,
    body: &'a [u8],
}

impl<'a> Section<'a> {
    fn parse(section: &'a [u8]) -> Result<Self, Truncated> {
        let mut reader = Reader::new(section);
        let (table, _length, id, version) = (reader.u8()?, reader.u16()?, reader.u16()?, reader.u8()?);
        let _numbers = reader.u16()?;
        let body = reader.take(reader.len().saturating_sub(4))?;
        Ok(Self { table, id, version: version >> 1 & 0x1f, current: version & 1 == 1, body })
    }
}

#[derive(Debug, Default)]
struct Program {
    sections: Sections,
    /// The PIDs that each program on this PMT PID announced.
    streams: BTreeMap<u16, Vec<u16>>,
}

/// What the tables seen so far say about every PID.
///
/// Bounded: at most 256 program table PIDs with one section under assembly each.
#[derive(Debug)]
pub(crate) struct Tables {
    codecs: Vec<Codec>,
    pat: Sections,
    pat_version: Option<u8>,
    programs: BTreeMap<u16, Program>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        let mut codecs = vec![Codec::Other; usize::from(NULL_PID) + 1];
        codecs[..usize::from(FIRST_FREE_PID)].fill(Codec::Tables);
        Self { codecs, pat: Sections::default(), pat_version: None, programs: BTreeMap::new() }
    }

    /// What `pid` carries.
    pub(crate) fn codec(&self, pid: u16) -> Codec {
        self.codecs.get(usize::from(pid)).copied().unwrap_or_default()
    }

    /// Returns `true` if `pid` carries the PAT or a PMT.
    pub(crate) fn is_program_table(&self, pid: u16) -> bool {
        pid == 0 || self.programs.contains_key(&pid)
    }

    /// Learns from a packet on a PID of [`Codec::Tables`].
    pub(crate) fn learn(&mut self, packet: &Packet<'_>) {
        let pid = packet.pid();
        let mut found: Vec<Vec<u8>> = Vec::new();
        if pid == 0 {
            self.pat.push(packet, |section| found.push(section.to_vec()));
        } else if let Some(program) = self.programs.get_mut(&pid) {
            program.sections.push(packet, |section| found.push(section.to_vec()));
        }
        for section in &found {
            let Ok(section) = Section::parse(section) else { continue };
            match section.table {
                0 if pid == 0 && section.current => self.learn_pat(&section),
                2 if pid != 0 && section.current => {
                    // A PMT that ends in the middle of an entry has told everything up to there.
                    let _cut_short = self.learn_pmt(pid, &section);
                }
                _ => {}
            }
        }
    }

    fn learn_pat(&mut self, section: &Section<'_>) {
        if self.pat_version.replace(section.version) != Some(section.version) {
            for (pid, program) in core::mem::take(&mut self.programs) {
                self.set(pid, Codec::Other);
                program.streams.values().flatten().for_each(|pid| self.set(*pid, Codec::Other));
            }
        }
        for entry in section.body.chunks_exact(4) {
            let (number, pid) =
                (u16::from_be_bytes([entry[0], entry[1]]), u16::from_be_bytes([entry[2] & 0x1f, entry[3]]));
            let follow = number != 0 && pid >= FIRST_FREE_PID && pid != NULL_PID;
            if follow && (self.programs.len() < MAX_PROGRAMS || self.programs.contains_key(&pid)) {
                self.programs.entry(pid).or_default();
                self.set(pid, Codec::Tables);
            }
        }
    }

    fn learn_pmt(&mut self, pmt_pid: u16, section: &Section<'_>) -> Result<(), Truncated> {
        let Some(program) = self.programs.get_mut(&pmt_pid) else { return Ok(()) };
        if program.streams.len() >= MAX_PROGRAMS && !program.streams.contains_key(&section.id) {
            return Ok(());
        }
        for pid in program.streams.insert(section.id, Vec::new()).unwrap_or_default() {
            self.set(pid, Codec::Other);
        }
        let mut reader = Reader::new(section.body);
        let _pcr_pid = reader.u16()?;
        let program_info = reader.u16()? & 0x0fff;
        reader.take(usize::from(program_info))?;
        while !reader.is_empty() {
            let (stream_type, pid, info) = (reader.u8()?, reader.u16()? & 0x1fff, reader.u16()? & 0x0fff);
            let descriptors = reader.take(usize::from(info))?;
            if pid < FIRST_FREE_PID || pid == NULL_PID || self.programs.contains_key(&pid) {
                continue;
            }
            self.set(pid, Codec::of_stream(stream_type, descriptors));
            if let Some(streams) =
                self.programs.get_mut(&pmt_pid).and_then(|program| program.streams.get_mut(&section.id))
            {
                streams.push(pid);
            }
        }
        Ok(())
    }

    fn set(&mut self, pid: u16, codec: Codec) {
        self.codecs[usize::from(pid & NULL_PID)] = codec;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::PACKET;

    /// A packet that holds one section with a right CRC.
    fn table(pid: u16, table: u8, id: u16, version: u8, body: &[u8]) -> [u8; PACKET] {
        let length = u16::try_from(5 + body.len() + 4).unwrap();
        let mut section = vec![table, 0xb0 | (length >> 8) as u8, length as u8];
        section.extend_from_slice(&id.to_be_bytes());
        section.extend_from_slice(&[0xc1 | version << 1, 0, 0]);
        section.extend_from_slice(body);
        section.extend_from_slice(&CRC.checksum(&section).to_be_bytes());
        let mut packet = [0xff; PACKET];
        packet[..5].copy_from_slice(&[0x47, 0x40 | (pid >> 8) as u8, pid as u8, 0x10, 0]);
        packet[5..5 + section.len()].copy_from_slice(&section);
        packet
    }

    const PAT: [u8; 8] = [0, 1, 0xe1, 0x00, 0, 2, 0xe2, 0x00];

    #[test]
    fn two_programs_are_followed_and_a_new_table_replaces_the_old() {
        let mut tables = Tables::new();
        tables.learn(&Packet::new(&table(0, 0, 1, 0, &PAT)));
        assert_eq!((tables.codec(0x100), tables.codec(0x200)), (Codec::Tables, Codec::Tables));
        let pmt = [0xe1, 1, 0xf0, 0, 0x1b, 0xe1, 1, 0xf0, 0, 0x06, 0xe1, 2, 0xf0, 2, 0x6a, 0];
        tables.learn(&Packet::new(&table(0x100, 2, 1, 0, &pmt)));
        tables.learn(&Packet::new(&table(0x200, 2, 2, 0, &[0xe2, 1, 0xf0, 0, 0x24, 0xe2, 1, 0xf0, 0])));
        let codecs = |tables: &Tables| [0x101, 0x102, 0x201].map(|pid| tables.codec(pid));
        assert_eq!(codecs(&tables), [Codec::H264, Codec::Audio, Codec::H265]);
        tables.learn(&Packet::new(&table(0x100, 2, 1, 1, &[0xe1, 2, 0xf0, 0, 0x0f, 0xe1, 1, 0xf0, 0])));
        assert_eq!(codecs(&tables), [Codec::Audio, Codec::Other, Codec::H265]);
        tables.learn(&Packet::new(&table(0, 0, 1, 1, &PAT[..4])));
        assert_eq!((tables.codec(0x200), tables.codec(0x201)), (Codec::Other, Codec::Other));
    }

    #[test]
    fn a_table_with_a_wrong_checksum_is_not_believed() {
        let mut packet = table(0, 0, 1, 0, &PAT);
        packet[15] ^= 1;
        let mut tables = Tables::new();
        tables.learn(&Packet::new(&packet));
        assert_eq!(tables.codec(0x100), Codec::Other);
    }
}
