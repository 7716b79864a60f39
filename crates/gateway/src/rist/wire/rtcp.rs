//! RTCP as RIST has it (TR-06-1 §5): reports, names, round trips, and what is missing.

use braidcast_core::{Reader, Truncated, Writer};
use core::time::Duration;

/// Packet types (RFC 3550 §12.1, RFC 4585 §6.1).
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const APPLICATION: u8 = 204;
const FEEDBACK: u8 = 205;
/// What the application-defined packets are called.
const RIST: [u8; 4] = *b"RIST";
/// Subtypes of these (TR-06-1 §5.3.2.2, TR-06-2 §8.4).
const RANGES: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const ECHO_ANSWER: u8 = 3;
/// The format of feedback that is a generic NACK (RFC 4585 §6.2.1).
const GENERIC_NACK: u8 = 1;
/// Numbers that one datagram can ask for: what asks for more is a mistake or an attack.
pub(crate) const MOST: usize = 4096;
/// Longest name in bytes (RFC 3550 §6.5).
const NAME: usize = 255;

/// One packet of a compound one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// What a sender says of its clock.
    SenderReport {
        /// Who sends.
        source: u32,
        /// Its time, in units of 2⁻³² s since 1900.
        ntp: u64,
    },
    /// What a receiver says of losses.
    ReceiverReport {
        /// Who says so.
        source: u32,
    },
    /// What a source is called.
    Name {
        /// Of which source.
        source: u32,
        /// The canonical name, which should be UTF-8.
        name: &'a [u8],
    },
    /// To be answered at once.
    EchoRequest {
        /// Who asks.
        source: u32,
        /// To be sent back as it is.
        stamp: u64,
    },
    /// The answer.
    EchoAnswer {
        /// What was asked with.
        stamp: u64,
        /// How long the answer was in coming, at the other end.
        delay: Duration,
    },
    /// Packets that are to be sent again.
    Missing(Missing<'a>),
    /// Anything else.
    Other(u8),
}

/// Numbers of packets that are missing, as they were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing<'a> {
    /// The first two bytes of each four are a number; the others are bits of the 16 numbers behind it.
    bits: bool,
    records: &'a [u8],
}

impl Missing<'_> {
    /// The numbers, at most 4096.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        let records = self
            .records
            .chunks_exact(4)
            .map(|record| (u16::from_be_bytes([record[0], record[1]]), u16::from_be_bytes([record[2], record[3]])));
        let bits = self.bits;
        let each = records.flat_map(move |(first, more)| {
            (0..if bits { 17_u32 } else { u32::from(more) + 1 })
                .filter(move |n| !bits || *n == 0 || more >> (n - 1) & 1 == 1)
                .map(move |n| first.wrapping_add(n as u16))
        });
        each.take(MOST)
    }
}

/// The packets of a compound one, up to the first that is cut off.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a>(&'a [u8]);

impl<'a> Items<'a> {
    /// Reads `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns `true` if `bytes` is RTCP to its end.
    pub fn are_whole(bytes: &'a [u8]) -> bool {
        let mut items = Self(bytes);
        let known = |item| !matches!(item, Item::Other(0..192 | 224..));
        !bytes.is_empty() && items.by_ref().all(known) && items.0.is_empty()
    }

    fn read(&mut self) -> Result<Item<'a>, Truncated> {
        let mut r = Reader::new(self.0);
        let (flags, kind, words) = (r.u8()?, r.u8()?, r.u16()?);
        let body = r.take(usize::from(words) * 4)?;
        self.0 = r.rest();
        if flags >> 6 != 2 {
            return Ok(Item::Other(0));
        }
        // What is shorter than its kind asks for says nothing.
        Ok(Self::item(flags & 31, kind, Reader::new(body)).unwrap_or(Item::Other(kind)))
    }

    fn item(subtype: u8, kind: u8, mut r: Reader<'a>) -> Result<Item<'a>, Truncated> {
        let source = r.u32()?;
        Ok(match (kind, subtype) {
            (SENDER_REPORT, _) => Item::SenderReport { source, ntp: r.u64()? },
            (RECEIVER_REPORT, _) => Item::ReceiverReport { source },
            (DESCRIPTION, _) if r.u8()? == 1 => {
                let len = r.u8()?;
                Item::Name { source, name: r.take(len.into())? }
            }
            (APPLICATION, RANGES) if r.array()? == RIST => Item::Missing(Missing { bits: false, records: r.rest() }),
            (APPLICATION, ECHO_REQUEST) if r.array()? == RIST => Item::EchoRequest { source, stamp: r.u64()? },
            (APPLICATION, ECHO_ANSWER) if r.array()? == RIST => {
                Item::EchoAnswer { stamp: r.u64()?, delay: Duration::from_micros(r.u32()?.into()) }
            }
            (FEEDBACK, GENERIC_NACK) => {
                r.u32()?;
                Item::Missing(Missing { bits: true, records: r.rest() })
            }
            _ => Item::Other(kind),
        })
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.0.is_empty() {
            return None;
        }
        self.read().ok()
    }
}

/// What a receiver reports of a source (RFC 3550 §6.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// The source.
    pub source: u32,
    /// Share of packets that were lost since the last report, in 1/256.
    pub fraction: u8,
    /// Packets that were lost, all in all; 24 bits.
    pub lost: u32,
    /// The highest number that came, with how often numbers began anew.
    pub highest: u32,
    /// The middle of the last sender report's time, and how long ago it came, in 1/65,536 s.
    pub last_report: (u32, u32),
}

/// Writes RTCP behind what is in a buffer.
#[derive(Debug)]
pub struct Composer<'a> {
    w: Writer<'a>,
    source: u32,
}

impl<'a> Composer<'a> {
    /// Packets of `source`.
    pub const fn new(source: u32, buf: &'a mut Vec<u8>) -> Self {
        Self { w: Writer::new(buf), source }
    }

    fn head(&mut self, count: u8, kind: u8, words: usize) {
        self.w.u8(0x80 | count);
        self.w.u8(kind);
        self.w.u16(words as u16);
        self.w.u32(self.source);
    }

    /// A sender report: the time of now, by the clock that names times and by the media's; what was sent.
    pub fn sender_report(&mut self, ntp: u64, timestamp: u32, packets: u32, bytes: u32) {
        self.head(0, SENDER_REPORT, 6);
        self.w.u64(ntp);
        [timestamp, packets, bytes].into_iter().for_each(|field| self.w.u32(field));
    }

    /// A receiver report.
    pub fn receiver_report(&mut self, block: Option<&Block>) {
        let Some(block) = block else { return self.head(0, RECEIVER_REPORT, 1) };
        self.head(1, RECEIVER_REPORT, 7);
        self.w.u32(block.source);
        self.w.u32(u32::from(block.fraction) << 24 | block.lost & 0xff_ffff);
        // Jitter is not measured.
        [block.highest, 0, block.last_report.0, block.last_report.1].into_iter().for_each(|field| self.w.u32(field));
    }

    /// What the source is called.
    pub fn name(&mut self, name: &str) {
        let name = &name.as_bytes()[..name.len().min(NAME)];
        // The name, its kind and length, and at least one byte of zero up to a whole word.
        let words = (name.len() + 2) / 4 + 1;
        self.head(1, DESCRIPTION, words + 1);
        self.w.u8(1);
        self.w.u8(name.len() as u8);
        self.w.bytes(name);
        self.w.zeros(words * 4 - 2 - name.len());
    }

    /// Asks for an answer at once.
    pub fn echo_request(&mut self, stamp: u64) {
        self.head(ECHO_REQUEST, APPLICATION, 5);
        self.w.bytes(&RIST);
        self.w.u64(stamp);
        self.w.u32(0);
    }

    /// Answers a request that `source` made, without delay.
    pub fn echo_answer(&mut self, source: u32, stamp: u64) {
        let own = core::mem::replace(&mut self.source, source);
        self.head(ECHO_ANSWER, APPLICATION, 5);
        self.source = own;
        self.w.bytes(&RIST);
        self.w.u64(stamp);
        self.w.u32(0);
    }

    /// Asks `source` for packets again: the first number of each range, and how many follow it.
    pub fn missing(&mut self, source: u32, ranges: &[(u16, u16)]) {
        let own = core::mem::replace(&mut self.source, source);
        self.head(RANGES, APPLICATION, 2 + ranges.len());
        self.source = own;
        self.w.bytes(&RIST);
        for (first, more) in ranges {
            self.w.u16(*first);
            self.w.u16(*more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn written(source: u32, write: impl FnOnce(&mut Composer<'_>)) -> Vec<u8> {
        let mut buf = Vec::new();
        write(&mut Composer::new(source, &mut buf));
        buf
    }

    /// What `ristsender` and `ristreceiver` 0.2.7 said to each other on 2026-11-30.
    #[test]
    fn packets_read_as_librist_means_them_and_are_written_as_it_writes_them() {
        const SOURCE: u32 = 0xc0cb_4c98;
        let report = bytes("80c80006c0cb4c98eeb784682c3b8515d56aad67000000000000000081ca0003c0cb4c980102766d00000000");
        let items: Vec<_> = Items::new(&report).collect();
        assert_eq!(
            items,
            [
                Item::SenderReport { source: SOURCE, ntp: 0xeeb7_8468_2c3b_8515 },
                Item::Name { source: SOURCE, name: b"vm" }
            ]
        );
        let again = written(SOURCE, |to| {
            to.sender_report(0xeeb7_8468_2c3b_8515, 0xd56a_ad67, 0, 0);
            to.name("vm");
        });
        assert_eq!(again, report);
        let request =
            bytes("80c90001c0cb4c9881ca0003c0cb4c980102766d0000000082cc0005c0cb4c985249535483aa8001f324200d00000000");
        let stamp = 0x83aa_8001_f324_200d;
        assert_eq!(Items::new(&request).last(), Some(Item::EchoRequest { source: SOURCE, stamp }));
        let answer = written(SOURCE, |to| to.echo_answer(SOURCE, stamp));
        assert_eq!(answer, bytes("83cc0005c0cb4c985249535483aa8001f324200d00000000"));
        assert_eq!(Items::new(&answer).next(), Some(Item::EchoAnswer { stamp, delay: Duration::ZERO }));
        let nack = bytes("80cc0004c0cb4c985249535400380000006a0002");
        let Some(Item::Missing(missing)) = Items::new(&nack).next() else { panic!("not a NACK") };
        assert!(missing.numbers().eq([0x38, 0x6a, 0x6b, 0x6c]));
        assert_eq!(written(SOURCE, |to| to.missing(SOURCE, &[(0x38, 0), (0x6a, 2)])), nack);
    }

    #[test]
    fn both_kinds_of_nack_are_bounded() {
        // RFC 4585: 7, and of the 16 behind it the first and the last.
        let nack = bytes("81cd00030000000000000001000780010000");
        let Some(Item::Missing(missing)) = Items::new(&nack[..16]).next() else { panic!("not a NACK") };
        assert!(missing.numbers().eq([7, 8, 23]));
        let all = written(1, |to| to.missing(1, &[(5, u16::MAX); 300]));
        let Some(Item::Missing(missing)) = Items::new(&all).next() else { panic!("not a NACK") };
        assert_eq!(missing.numbers().count(), MOST);
        assert!(Items::are_whole(&all) && !Items::are_whole(&all[..all.len() - 1]) && !Items::are_whole(&[]));
        assert!(!Items::are_whole(&[0x80, 33, 0, 0]) && !Items::are_whole(&[0x47; 188]));
    }

    #[test]
    fn names_of_any_length_are_whole_words() {
        for len in 0..40 {
            let name = "x".repeat(len);
            let written = written(9, |to| to.name(&name));
            assert_eq!(Items::new(&written).next(), Some(Item::Name { source: 9, name: name.as_bytes() }));
            assert!(Items::are_whole(&written) && written.ends_with(&[0]));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for item in Items::new(&bytes) {
                if let Item::Missing(missing) = item {
                    prop_assert!(missing.numbers().count() <= MOST);
                }
            }
        }
    }
}
