//! The messages that carry units.

use super::packed::{self, Packed};
use super::{Message, VERSION, WireError, below_max};
use braidcast_core::{Reader, Writer};
use braidcast_media::ts::{NULL_PACKET, PACKET};
use braidcast_media::{Kind, Run};

pub(super) const UNIT: u8 = 0;

const FLAG_REFERENCE: u8 = 0x01;
const FLAG_PTS: u8 = 0x02;
const FLAG_RELIABLE: u8 = 0x04;
const FLAG_AGAIN: u8 = 0x08;
const FLAG_PACKED: u8 = 0x10;
const FLAG_MORE: u8 = 0x20;

/// Packets of one message at most, null packets included: 65,536. A short message must not stand for endless output.
pub const MAX_PACKETS: u64 = 1 << 16;
/// Null packets that one message may leave out, at most, for each packet that it carries: what
/// comes out is never more than 17 times what came in. Of longer runs the sender carries some
/// packets as they are ([`write_unit`]).
pub const NULLS_PER_PACKET: u64 = 16;
/// Bytes of a [`UnitHeader`] at most, and of each run behind it.
pub(crate) const UNIT_HEADER: usize = 46;
pub(crate) const RUN: usize = 16;

/// What stands before a unit's bytes.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +---------------+---------------+---------------+---------------+
/// |  Version = 1  |   Type = 0    |     Kind      |Fla|M|C|A|L|T|R|
/// +---------------+---------------+---------------+---------------+
/// |                     Unit sequence number                      |
/// +-------------------------------+-------------------------------+
/// |             Part              |             Parts             |
/// +-------------------------------+-------------------------------+
/// |        Captured: first packet, sender's clock in µs (64)      |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |             Span: from first to last packet, µs               |
/// +---------------------------------------------------------------+
/// |         Latency: due this long after its capture, µs          |
/// +---------------------------------------------------------------+
/// |                Index of the first packet (64)                 |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |           Presentation time, 90 kHz (64), if T is set         |
/// |                                                               |
/// +-------------------------------+-------------------------------+
/// |         Number of runs        |  runs ...                     |
/// +-------------------------------+                               |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |  The packets that are not null, 188 bytes each or packed, or the bytes
/// \                                                               \
/// ```
///
/// R: other frames are predicted from this one. T: a presentation time is there. L: reliable,
/// nothing is ever late. A: it may have come before, over an earlier association. C: the packets
/// are [`Packed`], as the receiver [understands](super::Feedback::unpacks) that. A run is two
/// numbers in LEB128 (seven bits a byte, lowest first): twice the gap between the run before and
/// this one, plus one if its packets are null packets; and its length in packets. The first run's
/// gap is zero. There are at most [`NULLS_PER_PACKET`] null packets for each packet that is
/// carried. A unit too large for a message goes in several parts, each of which stands on its own,
/// and so does a frame that takes long to come in. M: more parts follow than are counted yet; only a
/// part without it says how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitHeader {
    /// What the unit holds.
    pub kind: Kind,
    /// `true` if other frames are predicted from it.
    pub reference: bool,
    /// `true` if the session is reliable.
    pub reliable: bool,
    /// `true` if it was sent over an earlier association already.
    pub again: bool,
    /// Counts units from 0 and wraps.
    pub sequence: u32,
    /// Which part of the unit this is, from 0.
    pub part: u16,
    /// How many parts the unit has, at least 1; as far as known, if there are [`more`](Self::more).
    pub parts: u16,
    /// More parts may follow than `parts` counts.
    pub more: bool,
    /// When the part's first packet was captured, µs of the sender's clock.
    pub captured: u64,
    /// Time from the first to the last packet, µs.
    pub span: u32,
    /// How long after its capture a packet is due, µs.
    pub latency: u32,
    /// Presentation time, 90 kHz.
    pub pts: Option<u64>,
}

/// The bytes of a unit message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytes<'a> {
    /// As they are.
    Plain(&'a [u8]),
    /// Packets that are packed.
    Packed(Packed<'a>),
}

impl Bytes<'_> {
    /// How many they are.
    pub const fn len(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(packets) => packets.len(),
        }
    }

    /// As how many they were carried.
    pub const fn carried(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(packets) => packets.carried(),
        }
    }

    /// Returns `true` if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends them to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(bytes) => out.extend_from_slice(bytes),
            Self::Packed(packets) => packets.append_to(out),
        }
    }
}

/// The runs of a unit message, already checked; ascending, disjoint, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runs<'a> {
    pub(super) reader: Encoded<'a>,
    pub(super) left: u16,
    pub(super) at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Encoded<'a>(pub(super) &'a [u8]);

impl Encoded<'_> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..56).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        self.left = self.left.checked_sub(1)?;
        let gap = self.reader.number()?;
        let count = u32::try_from(self.reader.number()?).ok()?;
        let first = self.at.checked_add(gap >> 1)?;
        self.at = first.checked_add(u64::from(count))?;
        Some(Run { first, count, null: gap & 1 == 1 })
    }
}

pub(super) fn parse_unit(mut reader: Reader<'_>) -> Result<Message<'_>, WireError> {
    let kind = *Kind::ALL.get(usize::from(reader.u8()?)).ok_or(WireError::Field("kind"))?;
    let flags = reader.u8()?;
    let (sequence, part, parts) = (reader.u32()?, reader.u16()?, reader.u16()?);
    let captured = below_max(reader.u64()?, "capture time")?;
    let (span, latency) = (reader.u32()?, reader.u32()?);
    let first = below_max(reader.u64()?, "packet index")?;
    let pts = if flags & FLAG_PTS != 0 { Some(reader.u64()?) } else { None };
    if part >= parts {
        return Err(WireError::Field("part number"));
    }
    let header = UnitHeader {
        kind,
        reference: flags & FLAG_REFERENCE != 0,
        reliable: flags & FLAG_RELIABLE != 0,
        again: flags & FLAG_AGAIN != 0,
        sequence,
        part,
        parts,
        more: flags & FLAG_MORE != 0,
        captured,
        span,
        latency,
        pts,
    };
    let left = reader.u16()?;
    let runs = Runs { reader: Encoded(reader.rest()), left, at: first };
    let bytes = check_runs(kind, flags & FLAG_PACKED != 0, runs.clone())?;
    Ok(Message::Unit { header, runs, bytes })
}

/// Walks all runs once, so that nobody has to doubt them later; gives the bytes behind them.
fn check_runs(kind: Kind, packed: bool, mut runs: Runs<'_>) -> Result<Bytes<'_>, WireError> {
    let (mut packets, mut carried) = (0_u64, 0_u64);
    while runs.left > 0 {
        let run = runs.next().ok_or(WireError::Field("run"))?;
        packets += u64::from(run.count);
        carried += if run.null { 0 } else { u64::from(run.count) };
        if run.count == 0 || packets > MAX_PACKETS {
            return Err(WireError::Field("number of packets"));
        }
        below_max(run.end(), "packet index")?;
    }
    let bytes = runs.reader.0;
    if packets - carried > carried * NULLS_PER_PACKET {
        return Err(WireError::Field("number of null packets"));
    }
    let plain = Some(Bytes::Plain(bytes));
    let bytes = match kind {
        Kind::Data => plain.filter(|_| (packets, carried, packed) == (1, 1, false)),
        _ if packed => Packed::parse(carried as usize, (packets - carried) as usize, bytes)
            .filter(|it| !it.is_empty())
            .map(Bytes::Packed),
        _ => plain.filter(|bytes| packets > 0 && bytes.len() as u64 == carried * PACKET as u64),
    };
    bytes.ok_or(WireError::Field("length"))
}

/// Writes a unit message into `out`, which is cleared first; its packets `packed` where that makes it shorter.
///
/// `runs` are ascending and disjoint, at most 65,535, and `bytes` are as many as they call for.
/// If more null packets are left out than a message may leave out, the first of them are carried like
/// others. Returns as how many bytes the packets are carried.
pub fn write_unit(out: &mut Vec<u8>, header: &UnitHeader, runs: &[Run], bytes: &[u8], packed: bool) -> usize {
    out.clear();
    let mut w = Writer::new(out);
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    w.bytes(&[VERSION, UNIT, header.kind.index() as u8]);
    w.u8(flag(header.reference, FLAG_REFERENCE)
        | flag(header.pts.is_some(), FLAG_PTS)
        | flag(header.reliable, FLAG_RELIABLE)
        | flag(header.again, FLAG_AGAIN)
        | flag(header.more, FLAG_MORE));
    w.u32(header.sequence);
    w.u16(header.part);
    w.u16(header.parts);
    w.u64(header.captured);
    w.u32(header.span);
    w.u32(header.latency);
    let mut at = runs.first().map_or(0, |run| run.first);
    w.u64(at);
    if let Some(pts) = header.pts {
        w.u64(pts);
    }
    let shown = || carry(runs);
    w.u16(u16::try_from(shown().count()).unwrap_or(u16::MAX));
    for (_, run) in shown() {
        number(&mut w, run.first.saturating_sub(at) << 1 | u64::from(run.null));
        number(&mut w, u64::from(run.count));
        at = run.end();
    }
    let start = out.len();
    if header.kind == Kind::Data {
        out.extend_from_slice(bytes);
        return bytes.len();
    }
    let nulls = shown().filter(|(_, run)| run.null).map(|(_, run)| run.count as usize).sum();
    if packed && packed::pack(out, nulls, carried(runs, bytes)) {
        out[3] |= FLAG_PACKED;
        return out.len() - start;
    }
    let mut w = Writer::new(out);
    let mut rest = bytes;
    for (was_null, run) in shown().filter(|(_, run)| !run.null) {
        let wanted = run.count as usize * PACKET;
        if was_null {
            (0..run.count).for_each(|_| w.bytes(&NULL_PACKET));
        } else {
            let (now, later) = rest.split_at(wanted.min(rest.len()));
            w.bytes(now);
            rest = later;
        }
    }
    w.bytes(rest);
    out.len() - start
}

/// Puts into the unit message in `message`, which [parses](Message::parse), another number, place and
/// time, as a stream of this end that it goes on in: `captured` in µs of this end's clock.
pub(crate) fn renumber(message: &mut [u8], sequence: u32, first: u64, captured: u64) {
    message[4..8].copy_from_slice(&sequence.to_be_bytes());
    message[12..20].copy_from_slice(&captured.to_be_bytes());
    message[28..36].copy_from_slice(&first.to_be_bytes());
}

/// The same for what differs from one receiver of it to the next: the latency in µs, and whether
/// it may have come `again`.
pub(crate) fn redirect(message: &mut [u8], latency: u32, again: bool) {
    message[3] = message[3] & !FLAG_AGAIN | if again { FLAG_AGAIN } else { 0 };
    message[24..28].copy_from_slice(&latency.to_be_bytes());
}

/// The runs as they are written, and whether each was one of null packets: so many of the first
/// null packets are carried that the others may be left out.
fn carry(runs: &[Run]) -> impl Iterator<Item = (bool, Run)> + Clone {
    let mut surplus = literal_nulls(runs);
    runs.iter().flat_map(move |&run| {
        let carried = if run.null { surplus.min(u64::from(run.count)) as u32 } else { 0 };
        surplus -= u64::from(carried);
        let first = Run { count: carried, null: false, ..run };
        let rest = Run { first: run.first + u64::from(carried), count: run.count - carried, ..run };
        [first, rest].into_iter().filter(|part| part.count > 0).map(move |part| (run.null, part))
    })
}

/// The packets that a message carries, of which `bytes` has those that are not null.
fn carried<'a>(runs: &'a [Run], bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone {
    let mut next = 0;
    carry(runs).filter(|(_, run)| !run.null).flat_map(move |(was_null, run)| {
        let first = next;
        next += if was_null { 0 } else { run.count as usize };
        let packet = move |place| bytes.get(place * PACKET..(place + 1) * PACKET).unwrap_or_default();
        (0..run.count as usize).map(move |n| if was_null { &NULL_PACKET[..] } else { packet(first + n) })
    })
}

/// How many of the null packets in `runs` a message carries.
pub(crate) fn literal_nulls(runs: &[Run]) -> u64 {
    let count = |null| runs.iter().filter(|run| run.null == null).map(|run| u64::from(run.count)).sum::<u64>();
    count(true).saturating_sub(count(false) * NULLS_PER_PACKET).div_ceil(NULLS_PER_PACKET + 1)
}

pub(super) fn number(w: &mut Writer<'_>, mut value: u64) {
    while value >= 0x80 {
        w.u8(value as u8 | 0x80);
        value >>= 7;
    }
    w.u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: UnitHeader = UnitHeader {
        kind: Kind::P,
        reference: true,
        reliable: false,
        again: false,
        sequence: 7,
        part: 0,
        parts: 1,
        more: false,
        captured: 1_000_000,
        span: 40_000,
        latency: 500_000,
        pts: Some(133_200),
    };

    #[test]
    fn a_unit_message_stands_on_the_wire_as_drawn() {
        let runs = [Run { first: 1000, count: 1, null: false }, Run { first: 1200, count: 16, null: true }];
        let mut out = Vec::new();
        write_unit(&mut out, &HEADER, &runs, &[0x47; PACKET], false);
        #[rustfmt::skip]
        let expected = [
            1, 0, 3, 0b011, // version, unit, P, T and R
            0, 0, 0, 7, 0, 0, 0, 1, // sequence, part 0 of 1
            0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, // captured
            0, 0, 0x9c, 0x40, 0, 0x07, 0xa1, 0x20, // span, latency
            0, 0, 0, 0, 0, 0, 0x03, 0xe8, // first index
            0, 0, 0, 0, 0, 2, 0x08, 0x50, // pts
            0, 2, // runs
            0, 1, // no gap, 1 packet
            0x8f, 0x03, 16, // gap of 199, null; 16 packets
        ];
        assert_eq!(out[..expected.len()], expected);
        let Ok(Message::Unit { header, runs: read, bytes }) = Message::parse(&out) else { panic!("does not parse") };
        let plain = Bytes::Plain(&[0x47; PACKET]);
        assert_eq!((header, read.collect::<Vec<_>>(), bytes), (HEADER, runs.to_vec(), plain));
    }

    #[test]
    fn a_message_that_goes_on_elsewhere_has_the_same_packets_at_another_place_and_time() {
        let runs = [Run { first: 1000, count: 1, null: false }, Run { first: 1200, count: 16, null: true }];
        for pts in [None, Some(7)] {
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            write_unit(&mut out, &UnitHeader { pts, ..HEADER }, &runs, &[0x47; PACKET], false);
            renumber(&mut out, 9, 71_000, 123_456);
            redirect(&mut out, 900_000, true);
            let header = UnitHeader { sequence: 9, captured: 123_456, latency: 900_000, again: true, pts, ..HEADER };
            write_unit(
                &mut expected,
                &header,
                &runs.map(|run| Run { first: run.first + 70_000, ..run }),
                &[0x47; PACKET],
                false,
            );
            assert_eq!(out, expected);
            redirect(&mut out, 900_000, false);
            assert!(matches!(Message::parse(&out), Ok(Message::Unit { header, .. }) if !header.again));
        }
    }

    #[test]
    fn packets_are_packed_where_that_makes_the_message_shorter() {
        let mut bytes = [[0x47; PACKET]; 2];
        bytes[1][4..100].fill(0xff);
        for (nulls, packed) in [(0, true), (8, true), (30, false)] {
            let runs = [
                Run { first: 3, count: nulls, null: true },
                Run { first: 3 + u64::from(nulls), count: 2, null: false },
            ];
            let runs: Vec<Run> = runs.into_iter().filter(|run| run.count > 0).collect();
            let (mut out, mut whole) = (Vec::new(), Vec::new());
            write_unit(&mut out, &HEADER, &runs, bytes.as_flattened(), true);
            let Ok(Message::Unit { header, runs: read, bytes: read_bytes }) = Message::parse(&out) else {
                panic!("refused")
            };
            assert_eq!((header, read.collect::<Vec<_>>()), (HEADER, runs));
            assert_eq!(matches!(read_bytes, Bytes::Packed(_)), packed, "{nulls}");
            read_bytes.append_to(&mut whole);
            assert_eq!((whole.len(), &whole[..]), (read_bytes.len(), bytes.as_flattened()));
        }
    }

    #[test]
    fn null_packets_that_may_not_be_left_out_are_carried() {
        let mut out = Vec::new();
        for (nulls, carried) in [(16, 0), (17, 1), (33, 1), (34, 2), (512, 30)] {
            let runs = [Run { first: 5, count: nulls, null: true }, Run::one(5 + u64::from(nulls), false)];
            write_unit(&mut out, &HEADER, &runs, &[9; PACKET], false);
            let Ok(Message::Unit { runs: read, bytes, .. }) = Message::parse(&out) else { panic!("{nulls}: refused") };
            let Bytes::Plain(bytes) = bytes else { panic!("{nulls}: packed") };
            assert_eq!(bytes.len(), (carried + 1) * PACKET, "{nulls}");
            assert_eq!(bytes[carried * PACKET..], [9; PACKET]);
            assert!(bytes[..carried * PACKET].chunks(PACKET).all(|packet| packet == NULL_PACKET));
            assert_eq!(read.map(|run| run.count).sum::<u32>(), nulls + 1);
        }
        // Those that found no unit to travel with.
        write_unit(&mut out, &HEADER, &[Run { first: 0, count: 512, null: true }], &[], false);
        let Ok(Message::Unit { bytes, .. }) = Message::parse(&out) else { panic!("refused") };
        assert_eq!(bytes.len(), 31 * PACKET);
    }

    #[test]
    fn a_message_cannot_stand_for_many_more_packets_than_it_carries() {
        let mut bomb = Vec::new();
        write_unit(&mut bomb, &UnitHeader { pts: None, ..HEADER }, &[Run::one(0, false)], &[0; PACKET], false);
        let runs = UNIT_HEADER - 8;
        for (more, refused) in [(&[1, 16][..], false), (&[1, 17], true), (&[1, 0x80, 0x80, 3], true)] {
            let mut message = bomb.clone();
            message[runs - 1] = 2;
            message.splice(runs + 2..runs + 2, more.iter().copied());
            let expected = refused.then_some(WireError::Field("number of null packets"));
            assert_eq!(Message::parse(&message).err(), expected, "{more:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let one = [Run::one(1, false)];
        let mut out = Vec::new();
        write_unit(&mut out, &HEADER, &one, &[0x47; PACKET - 1], false);
        assert_eq!(Message::parse(&out), Err(WireError::Field("length")));
        write_unit(&mut out, &HEADER, &[Run { first: 0, count: 70_000, null: true }], &[], false);
        assert_eq!(Message::parse(&out), Err(WireError::Field("number of packets")));
        write_unit(&mut out, &HEADER, &[], &[], false);
        assert_eq!(Message::parse(&out), Err(WireError::Field("length")));
        write_unit(&mut out, &UnitHeader { part: 1, ..HEADER }, &one, &[0x47; PACKET], false);
        assert_eq!(Message::parse(&out), Err(WireError::Field("part number")));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(start in 0_u8..9, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let message = [&[VERSION, start][..], &bytes].concat();
            if let Ok(Message::Unit { runs, .. }) = Message::parse(&message) {
                let of = |null| runs.clone().filter(|run| run.null == null).map(|run| u64::from(run.count)).sum::<u64>();
                prop_assert!(of(true) + of(false) <= MAX_PACKETS && of(true) <= NULLS_PER_PACKET * of(false));
            }
        }
    }
}
