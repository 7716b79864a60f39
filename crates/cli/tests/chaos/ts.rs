//! A transport stream without an end, each packet of which has a number and the time when it was
//! made, and its reader, which insists that every packet is as it was, comes once and in order.

use std::time::Duration;

pub(crate) const PACKET: usize = 188;
/// Time from one frame to the next.
pub(crate) const FRAME: Duration = Duration::from_millis(40);
const PMT_PID: u16 = 0x1000;
const VIDEO_PID: u16 = 0x100;
/// Frames from one I frame to the next.
const GROUP: u64 = 25;
/// Number and time stand at the end of each packet, seven bits a byte, so that nothing there looks like a start code.
const SEPTETS: usize = 10;
const TRAILER: usize = 2 * SEPTETS;
/// What comes before: TS header, adaptation field with a clock, PES header, delimiter and slice header at most.
const HEADERS: usize = 4 + 8 + 14 + 6 + 6;

/// Makes frames of H.264, as far as anyone looks at them.
pub(crate) struct Source {
    /// Packets of a P frame; an I frame has three times as many.
    packets: u64,
    frames: u64,
    serial: u64,
    tables: u8,
}

impl Source {
    /// A stream of about 41 kbit/s for each of `packets`.
    pub(crate) fn new(packets: u64) -> Self {
        Self { packets, frames: 0, serial: 0, tables: 0 }
    }

    /// Appends the next frame, made `now` after the test began.
    pub(crate) fn frame(&mut self, now: Duration, out: &mut Vec<u8>) {
        let key = self.frames.is_multiple_of(GROUP);
        if key {
            self.tables(out);
        }
        let packets = if key { 3 * self.packets } else { self.packets };
        let clock = self.frames * 90_000 / 25 + 900;
        for n in 0..packets {
            self.packet(now, (n == 0).then_some((clock, key)), out);
        }
        self.frames += 1;
    }

    fn tables(&mut self, out: &mut Vec<u8>) {
        let video = VIDEO_PID.to_be_bytes();
        let pat = [0, 1, 0xe0 | (PMT_PID >> 8) as u8, PMT_PID as u8];
        let pmt = [0xe0 | video[0], video[1], 0xf0, 0, 0x1b, 0xe0 | video[0], video[1], 0xf0, 0];
        for (pid, table, id, body) in [(0, 0, 1, &pat[..]), (PMT_PID, 2, 1, &pmt[..])] {
            let length = 5 + body.len() + 4;
            let mut section = vec![table, 0xb0, length as u8, 0, id, 0xc1, 0, 0];
            section.extend_from_slice(body);
            section.extend_from_slice(&crc32(&section).to_be_bytes());
            let start = out.len();
            out.extend_from_slice(&[0x47, 0x40 | (pid >> 8) as u8, pid as u8, 0x10 | (self.tables % 16), 0]);
            out.extend_from_slice(&section);
            out.resize(start + PACKET, 0xff);
        }
        self.tables = self.tables.wrapping_add(1);
    }

    fn packet(&mut self, now: Duration, first: Option<(u64, bool)>, out: &mut Vec<u8>) {
        let start = out.len();
        let unit_start = u8::from(first.is_some()) << 6;
        let adaptation = u8::from(first.is_some()) << 5;
        let counter = (self.serial % 16) as u8;
        out.extend_from_slice(&[
            0x47,
            unit_start | (VIDEO_PID >> 8) as u8,
            VIDEO_PID as u8,
            adaptation | 0x10 | counter,
        ]);
        if let Some((clock, key)) = first {
            // PCR: 33 bits at 90 kHz, six reserved, nine of extension.
            out.extend_from_slice(&[7, if key { 0x50 } else { 0x10 }]);
            out.extend_from_slice(&(((clock - 900) << 15) | 0x7e00).to_be_bytes()[2..]);
            out.extend_from_slice(&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5]);
            let pts = clock + 900;
            out.extend_from_slice(&[
                0x21 | (pts >> 29) as u8 & 0x0e,
                (pts >> 22) as u8,
                (pts >> 14) as u8 | 1,
                (pts >> 7) as u8,
                (pts << 1) as u8 | 1,
            ]);
            // Access unit delimiter, then a slice whose type says I or P.
            out.extend_from_slice(&[0, 0, 0, 1, 9, 0xf0]);
            out.extend_from_slice(&if key { [0, 0, 0, 1, 0x65, 0x88] } else { [0, 0, 0, 1, 0x41, 0x9a] });
        }
        let fill = filler(self.serial);
        out.extend((out.len() - start..PACKET - TRAILER).map(fill));
        for value in [self.serial, now.as_micros() as u64] {
            out.extend((0..SEPTETS).map(|n| 0x80 | (value >> (7 * n)) as u8));
        }
        debug_assert_eq!(out.len() - start, PACKET);
        self.serial += 1;
    }
}

/// What stands in a packet of this number where nothing else does.
fn filler(serial: u64) -> impl Fn(usize) -> u8 {
    move |at| 0x80 | (serial.wrapping_mul(31) as usize + at) as u8
}

/// ISO/IEC 13818-1, annex A.
fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ (u32::from(byte) << 24), |crc, _| (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    })
}

/// Packets that did not come: made after one and before another, times from the test's beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gap {
    pub(crate) after: Duration,
    pub(crate) before: Duration,
    pub(crate) packets: u64,
}

/// What came out at the other end.
#[derive(Default)]
pub(crate) struct Sink {
    rest: Vec<u8>,
    last: Option<(u64, Duration)>,
    /// `true` if the receiver is a new one, which cannot know what the old one had written.
    anew: bool,
    /// `true` if all packets since the beginning of a frame are there.
    whole: bool,
    pub(crate) packets: u64,
    pub(crate) frames: u64,
    /// When it was seen last that a frame was whole: as the next one began.
    pub(crate) at: Duration,
    pub(crate) gaps: Vec<Gap>,
    /// Times without a whole frame, of more than half a second.
    pub(crate) pauses: Vec<(Duration, Duration)>,
    /// What is wrong, if anything is.
    pub(crate) wrong: Option<String>,
}

impl Sink {
    /// What follows comes from a receiver that was started anew; what stood half in the old one's output is gone.
    pub(crate) fn anew(&mut self) {
        self.rest.clear();
        (self.anew, self.whole) = (true, false);
    }

    /// Takes what came `now` after the test began.
    pub(crate) fn read(&mut self, now: Duration, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() / PACKET * PACKET;
        let rest = self.rest.split_off(whole);
        for packet in std::mem::replace(&mut self.rest, rest).chunks(PACKET) {
            if let Err(wrong) = self.packet(now, packet) {
                self.wrong.get_or_insert(wrong);
            }
        }
    }

    fn packet(&mut self, now: Duration, packet: &[u8]) -> Result<(), String> {
        if packet[0] != 0x47 {
            return Err(format!("at {now:?} no transport stream: {:02x?}", &packet[..8]));
        }
        if u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) != VIDEO_PID {
            return Ok(());
        }
        let number = |at: usize| (0..SEPTETS).fold(0, |value, n| value | u64::from(packet[at + n] & 0x7f) << (7 * n));
        let (serial, made) = (number(PACKET - TRAILER), Duration::from_micros(number(PACKET - SEPTETS)));
        let fill = filler(serial);
        if u64::from(packet[3] & 0xf) != serial % 16 || (HEADERS..PACKET - TRAILER).any(|at| packet[at] != fill(at)) {
            return Err(format!("at {now:?} packet {serial} is not what was sent: {packet:02x?}"));
        }
        match self.last {
            Some((last, _)) if serial <= last && !self.anew => {
                return Err(format!("at {now:?} packet {serial} after packet {last}"));
            }
            Some((last, after)) if serial > last + 1 => {
                self.gaps.push(Gap { after, before: made, packets: serial - last - 1 });
            }
            _ => {}
        }
        let follows = self.last.is_some_and(|(last, _)| serial == last + 1);
        let begins = packet[1] & 0x40 != 0;
        if begins && follows && self.whole {
            if now.saturating_sub(self.at) > Duration::from_millis(500) {
                self.pauses.push((self.at, now));
            }
            self.frames += 1;
            self.at = now;
        }
        self.whole = begins || follows && self.whole;
        // A new receiver repeats at most what was kept for it; from there on each packet is new again.
        if self.last.is_none_or(|(last, _)| serial > last) {
            self.anew = false;
        }
        self.last = Some((serial, made));
        self.packets += 1;
        Ok(())
    }
}

#[test]
fn what_is_read_is_what_was_made() {
    let (mut source, mut bytes) = (Source::new(4), Vec::new());
    (0..100).for_each(|n| source.frame(FRAME * n, &mut bytes));
    let read = |bytes: &[u8]| {
        let mut sink = Sink::default();
        bytes.chunks(1000).for_each(|chunk| sink.read(FRAME, chunk));
        sink
    };
    let sink = read(&bytes);
    assert_eq!((sink.packets, sink.frames, sink.gaps.len(), &sink.wrong), (96 * 4 + 4 * 12, 99, 0, &None));
    // One byte altered, a packet twice, a packet lost.
    let mut altered = bytes.clone();
    altered[10 * PACKET + 100] ^= 1;
    assert!(read(&altered).wrong.unwrap().contains("not what was sent"));
    let twice = [&bytes[..10 * PACKET], &bytes[9 * PACKET..]].concat();
    assert!(read(&twice).wrong.unwrap().contains("after packet"));
    let lost = [&bytes[..10 * PACKET], &bytes[12 * PACKET..]].concat();
    assert_eq!(read(&lost).frames, 98);
    assert_eq!(read(&lost).gaps, [Gap { after: Duration::ZERO, before: Duration::ZERO, packets: 2 }]);
}
