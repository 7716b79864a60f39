//! A small multiplexer of MPEG-TS: one program, one video, one audio (ISO/IEC 13818-1).

use super::tag::Codec;

/// Of tables (annex A).
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_MPEG_2);
const PACKET: usize = 188;
const PMT: u16 = 0x1000;
const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
const NULL: u16 = 0x1fff;
/// By how much the program clock is behind the decoding times of what is sent with it, in units of 1/90,000 s: a
/// fifth of a second, in which a decoder may get what comes.
const LEAD: u64 = 18_000;
/// The clock counts 33 bits.
const MASK: u64 = (1 << 33) - 1;

/// What the tables say there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Program {
    pub(super) video: Option<Codec>,
    pub(super) audio: bool,
}

/// Writes packets.
#[derive(Debug, Default)]
pub(super) struct Mux {
    program: Program,
    version: u8,
    /// Counters of the tables, of video and of audio.
    counters: [u8; 4],
    /// The clock jumps with the next reference.
    pub(super) jumps: bool,
}

/// An access unit, its times in units of 1/90,000 s.
pub(super) struct Unit<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) pts: u64,
    pub(super) dts: u64,
    /// A decoder can begin here.
    pub(super) key: bool,
    /// A clock reference goes with it.
    pub(super) clock: bool,
}

impl Mux {
    /// The tables say from now on that this is there.
    pub(super) fn set_program(&mut self, program: Program) {
        if program != self.program {
            self.program = program;
            self.version = (self.version + 1) & 0x1f;
        }
    }

    /// Appends both tables to `out`.
    pub(super) fn tables(&mut self, out: &mut Vec<u8>) {
        let [high, low] = PMT.to_be_bytes();
        self.section(0, &[0, 1, self.version_byte(), 0, 0, 0, 1, 0xe0 | high, low], 0, out);
        // Without video, audio has the clock.
        let clock = match (self.program.video, self.program.audio) {
            (Some(_), _) => VIDEO,
            (None, true) => AUDIO,
            (None, false) => NULL,
        };
        let [high, low] = clock.to_be_bytes();
        let mut body = vec![0, 1, self.version_byte(), 0, 0, 0xe0 | high, low, 0xf0, 0];
        let mut stream = |kind: u8, pid: u16| {
            let [high, low] = pid.to_be_bytes();
            body.extend([kind, 0xe0 | high, low, 0xf0, 0]);
        };
        match self.program.video {
            Some(Codec::H264) => stream(0x1b, VIDEO),
            Some(_) => stream(0x24, VIDEO),
            None => {}
        }
        if self.program.audio {
            stream(0x0f, AUDIO);
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
        let counter = self.count(usize::from(pid != 0));
        let [high, low] = pid.to_be_bytes();
        let end = out.len() + PACKET;
        out.extend([0x47, 0x40 | high, low, 0x10 | counter, 0]);
        out.extend(section);
        out.resize(end, 0xff);
    }

    fn count(&mut self, which: usize) -> u8 {
        let counter = self.counters[which];
        self.counters[which] = (counter + 1) & 0x0f;
        counter
    }

    /// Appends a unit to `out`.
    pub(super) fn unit(&mut self, video: bool, unit: &Unit<'_>, out: &mut Vec<u8>) {
        let (pid, which, stream) = if video { (VIDEO, 2, 0xe0) } else { (AUDIO, 3, 0xc0) };
        let mut pes = vec![0, 0, 1, stream, 0, 0, 0x80, 0x80, 5];
        if unit.dts == unit.pts {
            timestamp(2, unit.pts, &mut pes);
        } else {
            (pes[7], pes[8]) = (0xc0, 10);
            timestamp(3, unit.pts, &mut pes);
            timestamp(1, unit.dts, &mut pes);
        }
        // Video's length need not be said (§2.4.3.7).
        if let Ok(length) = u16::try_from(pes.len() - 6 + unit.bytes.len())
            && !video
        {
            pes[4..6].copy_from_slice(&length.to_be_bytes());
        }
        pes.extend_from_slice(unit.bytes);
        let (mut rest, mut first) = (&pes[..], true);
        while !rest.is_empty() {
            let adaptation = if first { self.adaptation(unit) } else { Vec::new() };
            let counter = self.count(which);
            let used = packet(pid, counter, first, adaptation, rest, out);
            rest = &rest[used..];
            first = false;
        }
    }

    /// Flags, and the clock if it goes along (§2.4.3.4); empty if there is nothing to say.
    fn adaptation(&mut self, unit: &Unit<'_>) -> Vec<u8> {
        let entry = if unit.key { 0x40 } else { 0 };
        if !unit.clock {
            return if unit.key { vec![entry] } else { Vec::new() };
        }
        let jump = if core::mem::take(&mut self.jumps) { 0x80 } else { 0 };
        let base = unit.dts.wrapping_sub(LEAD) & MASK;
        // 33 bits, six reserved, and nine of an extension that is 0.
        let [.., a, b, c, d, e] = (base << 7).to_be_bytes();
        vec![entry | jump | 0x10, a, b, c, d, e | 0x7e, 0]
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
    out.extend([0x47, start | high, low, if has_field { 0x30 } else { 0x10 } | counter]);
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
