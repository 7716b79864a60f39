//! Program tables: which programs there are (PAT) and what their PIDs carry (PMT), ISO/IEC 13818-1 §2.4.4.

use super::{Codec, Coding, NULL_PID, Packet};
use braidcast_core::{Reader, Truncated};
use std::collections::BTreeMap;

const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_MPEG_2);
/// Longest PAT or PMT section with its header (`section_length` is at most 1021, §2.4.4.5).
const MAX_SECTION: usize = 1024;
/// Programs that are followed; more are carried but not looked into.
const MAX_PROGRAMS: usize = 256;
/// PIDs below this are reserved for tables (PAT, CAT, and the SI tables of DVB), though some stations have audio and
/// video there.
const FIRST_FREE_PID: u16 = 0x20;

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
    /// `section_number` and `last_section_number`.
    number: u8,
    last: u8,
    body: &'a [u8],
}

impl<'a> Section<'a> {
    fn parse(section: &'a [u8]) -> Result<Self, Truncated> {
        let mut reader = Reader::new(section);
        let (table, _length, id, version) = (reader.u8()?, reader.u16()?, reader.u16()?, reader.u8()?);
        let (number, last) = (reader.u8()?, reader.u8()?);
        let body = reader.take(reader.len().saturating_sub(4))?;
        Ok(Self { table, id, version: version >> 1 & 0x1f, current: version & 1 == 1, number, last, body })
    }
}

#[derive(Debug, Default)]
struct Program {
    sections: Sections,
    /// The PIDs that each program on this PMT PID announced.
    streams: BTreeMap<u16, Vec<u16>>,
}

/// What the tables seen so far say about every PID, and what its own bytes say where they do not.
///
/// Bounded: at most 256 program table PIDs with one section under assembly each.
#[derive(Debug)]
pub(crate) struct Tables {
    codecs: Vec<Codec>,
    /// Of PIDs that a PMT names.
    codings: BTreeMap<u16, Coding>,
    pat: Sections,
    /// The PIDs that each section of the newest PAT names.
    named: BTreeMap<u8, Vec<u16>>,
    pat_version: Option<u8>,
    programs: BTreeMap<u16, Program>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        let mut codecs = vec![Codec::Unknown; usize::from(NULL_PID) + 1];
        codecs[..usize::from(FIRST_FREE_PID)].fill(Codec::Sections);
        codecs[0] = Codec::Tables;
        Self {
            codecs,
            codings: BTreeMap::new(),
            pat: Sections::default(),
            named: BTreeMap::new(),
            pat_version: None,
            programs: BTreeMap::new(),
        }
    }

    /// What `pid` carries.
    pub(crate) fn codec(&self, pid: u16) -> Codec {
        self.codecs.get(usize::from(pid)).copied().unwrap_or_default()
    }

    /// What a table says that `pid` is coded as.
    pub(crate) fn coding(&self, pid: u16) -> Option<Coding> {
        self.codings.get(&pid).copied()
    }

    /// Returns `true` if `pid` carries the PAT or a PMT.
    pub(crate) fn is_program_table(&self, pid: u16) -> bool {
        pid == 0 || self.programs.contains_key(&pid)
    }

    /// How many programs there are, those without a PMT yet left out, and what their PIDs carry.
    pub(crate) fn programs(&self) -> (usize, impl Iterator<Item = Codec>) {
        let count = self.programs.values().map(|program| program.streams.len()).sum();
        let pids = self.programs.values().flat_map(|program| program.streams.values().flatten());
        (count, pids.map(|pid| self.codec(*pid)))
    }

    /// `pid`, of which no table says anything, carries `codec` by its own bytes.
    pub(crate) fn guess(&mut self, pid: u16, codec: Codec) {
        if self.codec(pid) == Codec::Unknown {
            self.set(pid, codec);
        }
    }

    /// `pid` is no PMT, though a PAT names it: it carries PES packets.
    pub(crate) fn refute(&mut self, pid: u16) {
        self.forget(pid);
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

    /// The newest PAT counts, whatever its version: two encoders one behind the other have the same.
    fn learn_pat(&mut self, section: &Section<'_>) {
        let pids = section.body.chunks_exact(4).filter_map(|entry| {
            let (number, pid) =
                (u16::from_be_bytes([entry[0], entry[1]]), u16::from_be_bytes([entry[2] & 0x1f, entry[3]]));
            (number != 0 && pid >= FIRST_FREE_PID && pid != NULL_PID).then_some(pid)
        });
        let pids: Vec<u16> = pids.collect();
        if self.pat_version.replace(section.version) != Some(section.version) {
            self.named.clear();
        }
        if self.named.get(&section.number) == Some(&pids) {
            return;
        }
        self.named.insert(section.number, pids);
        self.named.retain(|number, _| *number <= section.last);
        let gone: Vec<u16> = self.programs.keys().copied().filter(|pid| !self.names(*pid)).collect();
        gone.into_iter().for_each(|pid| self.forget(pid));
        for pid in self.named.values().flatten() {
            if self.programs.len() < MAX_PROGRAMS && !self.programs.contains_key(pid) {
                self.programs.insert(*pid, Program::default());
                self.codecs[usize::from(pid & NULL_PID)] = Codec::Tables;
            }
        }
    }

    fn names(&self, pid: u16) -> bool {
        self.named.values().flatten().any(|named| *named == pid)
    }

    /// `pid` is no PMT any more.
    fn forget(&mut self, pid: u16) {
        let Some(program) = self.programs.remove(&pid) else { return };
        self.set(pid, Codec::Unknown);
        program.streams.values().flatten().for_each(|pid| self.release(*pid));
    }

    /// A PMT that announced `pid` counts no more.
    fn release(&mut self, pid: u16) {
        let announced = self.programs.values().flat_map(|program| program.streams.values().flatten());
        if self.codec(pid) != Codec::Tables && announced.into_iter().all(|other| *other != pid) {
            self.set(pid, if pid < FIRST_FREE_PID { Codec::Sections } else { Codec::Unknown });
        }
    }

    fn learn_pmt(&mut self, pmt_pid: u16, section: &Section<'_>) -> Result<(), Truncated> {
        let Some(program) = self.programs.get_mut(&pmt_pid) else { return Ok(()) };
        if program.streams.len() >= MAX_PROGRAMS && !program.streams.contains_key(&section.id) {
            return Ok(());
        }
        let before = program.streams.insert(section.id, Vec::new()).unwrap_or_default();
        let told = self.learn_streams(pmt_pid, section);
        let program = self.programs.get(&pmt_pid);
        let now = program.and_then(|program| program.streams.get(&section.id)).cloned().unwrap_or_default();
        before.into_iter().filter(|pid| !now.contains(pid)).for_each(|pid| self.release(pid));
        told
    }

    fn learn_streams(&mut self, pmt_pid: u16, section: &Section<'_>) -> Result<(), Truncated> {
        let mut reader = Reader::new(section.body);
        let _pcr_pid = reader.u16()?;
        let program_info = reader.u16()? & 0x0fff;
        reader.take(usize::from(program_info))?;
        while !reader.is_empty() {
            let (stream_type, pid, info) = (reader.u8()?, reader.u16()? & 0x1fff, reader.u16()? & 0x0fff);
            let descriptors = reader.take(usize::from(info))?;
            if pid == 0 || pid == NULL_PID || self.programs.contains_key(&pid) {
                continue;
            }
            self.set(pid, Codec::of_stream(stream_type, descriptors));
            self.codings.insert(pid, Coding::of_stream(stream_type, descriptors));
            if let Some(streams) =
                self.programs.get_mut(&pmt_pid).and_then(|program| program.streams.get_mut(&section.id))
            {
                streams.push(pid);
            }
        }
        Ok(())
    }

    fn set(&mut self, pid: u16, codec: Codec) {
        self.codings.remove(&pid);
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
        assert_eq!(codecs(&tables), [Codec::Audio, Codec::Unknown, Codec::H265]);
        tables.learn(&Packet::new(&table(0, 0, 1, 1, &PAT[..4])));
        assert_eq!((tables.codec(0x200), tables.codec(0x201)), (Codec::Unknown, Codec::Unknown));
    }

    #[test]
    fn low_pids_are_what_a_table_says_and_sections_without_one() {
        let mut tables = Tables::new();
        assert_eq!([0, 1, 0x11, 0x1f].map(|pid| tables.codec(pid)), {
            let sections = Codec::Sections;
            [Codec::Tables, sections, sections, sections]
        });
        tables.learn(&Packet::new(&table(0, 0, 1, 0, &PAT)));
        tables.learn(&Packet::new(&table(0x100, 2, 1, 0, &[0xe0, 0x11, 0xf0, 0, 0x1b, 0xe0, 0x11, 0xf0, 0])));
        assert_eq!((tables.codec(0x11), tables.codec(0x12)), (Codec::H264, Codec::Sections));
        tables.learn(&Packet::new(&table(0x100, 2, 1, 0, &[0xe0, 0x11, 0xf0, 0])));
        assert_eq!(tables.codec(0x11), Codec::Sections);
    }

    #[test]
    fn a_pid_that_was_a_pmt_is_what_the_next_encoders_tables_say_though_their_version_is_the_same() {
        let mut tables = Tables::new();
        tables.learn(&Packet::new(&table(0, 0, 1, 0, &PAT[..4])));
        tables.learn(&Packet::new(&table(0x100, 2, 1, 0, &[0xe2, 1, 0xf0, 0, 0x1b, 0xe2, 1, 0xf0, 0])));
        assert_eq!((tables.codec(0x100), tables.codec(0x201)), (Codec::Tables, Codec::H264));
        tables.learn(&Packet::new(&table(0, 0, 1, 0, &[0, 1, 0xf0, 0x00])));
        assert_eq!([0x100, 0x201, 0x1000].map(|pid| tables.codec(pid)), {
            [Codec::Unknown, Codec::Unknown, Codec::Tables]
        });
        let pmt = [0xe1, 0, 0xf0, 0, 0x1b, 0xe1, 0, 0xf0, 0, 0x0f, 0xe1, 1, 0xf0, 0];
        tables.learn(&Packet::new(&table(0x1000, 2, 1, 0, &pmt)));
        assert_eq!((tables.codec(0x100), tables.codec(0x101)), (Codec::H264, Codec::Audio));
        assert_eq!(tables.programs().0, 1);
    }

    #[test]
    fn a_table_with_a_wrong_checksum_is_not_believed() {
        let mut packet = table(0, 0, 1, 0, &PAT);
        packet[15] ^= 1;
        let mut tables = Tables::new();
        tables.learn(&Packet::new(&packet));
        assert_eq!(tables.codec(0x100), Codec::Unknown);
    }
}
