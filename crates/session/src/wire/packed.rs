//! Packets of a transport stream without what can be told from the packet before, and without stuffing.
//!
//! Of a frame's packets all but the first and the last have four bytes of header that follow from
//! the packet before; the last one is filled up with stuffing, as tables are. All of it is put back
//! where it was, byte by byte.

use super::NULLS_PER_PACKET;
use braidcast_media::ts::{PACKET, SYNC};

/// Bytes of a packet behind its header.
const BODY: usize = PACKET - 4;
const STUFFING: u8 = 0xff;
/// Upper limit of output for each byte of input, the same as for packets that are not packed.
const MOST_FOR_A_BYTE: usize = NULLS_PER_PACKET as usize + 1;

/// Packed packets, already checked: how many they are, one bit for each, and the packets.
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |  A bit for each packet, the first one highest: F; zeros up to a byte
/// +---------------+---------------+---------------+---------------+
/// |  The packets, one after the other ...
/// ```
///
/// F set: the header follows from the packet before, and the other 184 bytes stand here. Its bytes
/// 1 and 2 are the same without `payload_unit_start_indicator`, the scrambling bits are the same,
/// there is payload alone, and the counter is one more. Before the first packet all these are zero.
///
/// F clear:
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |       Bytes 1 to 3 of the packet              |    Hole at    |
/// +---------------+---------------+---------------+---------------+
/// |    Length     |  Byte, if the PID is 0x1fff   |
/// +---------------+---------------+---------------+---------------+
/// |  Bytes 4 and on without the hole ...
/// +---------------+---------------+---------------+---------------+
/// ```
///
/// The hole begins so far behind the header, and is as many bytes of 0xff, or in a null packet, whose contents
/// multiplexers choose as they like, of the byte that is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed<'a> {
    count: usize,
    bytes: &'a [u8],
}

/// A header as it follows from the one before.
const fn following(header: [u8; 3]) -> [u8; 3] {
    let [first, second, third] = header;
    [first & !0x40, second, third & 0xc0 | 0x10 | third.wrapping_add(1) & 0x0f]
}

/// Longest hole of a null packet, so that it still stands for no more than it may.
const MOST_OF_A_NULL: usize = 178;

/// Returns `true` if a header is that of a null packet.
const fn is_null(header: [u8; 3]) -> bool {
    header[0] & 0x1f == 0x1f && header[1] == 0xff
}

/// The longest run of stuffing in the body of a packet: where it begins, its length, and its byte, which may be any if
/// the packet is a null packet.
fn hole(body: &[u8], null: bool) -> (usize, usize, u8) {
    let (mut longest, mut at) = ((0, 0, STUFFING), 0);
    for run in body.chunk_by(|a, b| a == b) {
        if (null || run[0] == STUFFING) && run.len() > longest.1 {
            longest = (at, run.len().min(if null { MOST_OF_A_NULL } else { BODY }), run[0]);
        }
        at += run.len();
    }
    longest
}

/// Appends packets, packed. Returns `false`, and appends nothing, if that is no gain, or would stand
/// for too much together with the `nulls` packets that are left out.
pub(super) fn pack<'p>(out: &mut Vec<u8>, nulls: usize, packets: impl Iterator<Item = &'p [u8]> + Clone) -> bool {
    let (start, count) = (out.len(), packets.clone().count());
    let bits = count.div_ceil(8);
    out.resize(start + bits, 0);
    let (mut before, mut packed) = ([0; 3], 0);
    for (place, packet) in packets.enumerate() {
        let (Some(&[SYNC, header @ ..]), Some(body)) = (packet.first_chunk::<4>(), packet.get(4..PACKET)) else {
            break;
        };
        let null = is_null(header);
        if header == following(before) && !null {
            out[start + place / 8] |= 0x80 >> (place % 8);
            out.extend_from_slice(body);
        } else {
            let (at, length, byte) = hole(body, null);
            out.extend_from_slice(&header);
            out.extend_from_slice(&[at as u8, length as u8]);
            out.extend(null.then_some(byte));
            out.extend_from_slice(&body[..at]);
            out.extend_from_slice(&body[at + length..]);
        }
        (before, packed) = (header, place + 1);
    }
    let len = out.len() - start;
    let gains = packed == count && len < count * PACKET && (count + nulls) * PACKET <= MOST_FOR_A_BYTE * len;
    if !gains {
        out.truncate(start);
    }
    gains
}

impl<'a> Packed<'a> {
    /// Checks that `bytes` are `count` packets, and do not stand for too much together with `nulls` null
    /// packets.
    pub(super) fn parse(count: usize, nulls: usize, bytes: &'a [u8]) -> Option<Self> {
        let it = Self { count, bytes };
        let mut read = it.read()?;
        let whole = read.by_ref().all(|packet| packet.is_some()) && read.rest.is_empty();
        (whole && (count + nulls) * PACKET <= MOST_FOR_A_BYTE * bytes.len()).then_some(it)
    }

    /// Bytes of all packets.
    pub const fn len(&self) -> usize {
        self.count * PACKET
    }

    /// Bytes that stand for them.
    pub const fn carried(&self) -> usize {
        self.bytes.len()
    }

    /// Returns `true` if there are no packets.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the packets to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        for Piece { header, front, hole, byte, back } in self.read().into_iter().flatten().flatten() {
            out.push(SYNC);
            out.extend_from_slice(&header);
            out.extend_from_slice(front);
            out.resize(out.len() + hole, byte);
            out.extend_from_slice(back);
        }
    }

    fn read(&self) -> Option<Pieces<'a>> {
        let (bits, rest) = self.bytes.split_at_checked(self.count.div_ceil(8))?;
        Some(Pieces { place: 0, count: self.count, bits, rest, before: [0; 3] })
    }
}

/// A packet in its parts.
struct Piece<'a> {
    header: [u8; 3],
    front: &'a [u8],
    hole: usize,
    byte: u8,
    back: &'a [u8],
}

/// The packets one after the other; `None` in place of one that is cut off or impossible, and of all that follow.
struct Pieces<'a> {
    place: usize,
    count: usize,
    bits: &'a [u8],
    rest: &'a [u8],
    before: [u8; 3],
}

impl<'a> Pieces<'a> {
    fn piece(&mut self) -> Option<Piece<'a>> {
        let follows = self.bits.get(self.place / 8)? << (self.place % 8) & 0x80 != 0;
        let (header, at, hole, byte) = if follows {
            (following(self.before), BODY, 0, STUFFING)
        } else {
            let (&[first, second, third, at, hole], rest) = self.rest.split_first_chunk()?;
            let header = [first, second, third];
            let (byte, rest) = if is_null(header) { rest.split_first()? } else { (&STUFFING, rest) };
            self.rest = rest;
            (header, usize::from(at), usize::from(hole), *byte)
        };
        let behind = BODY.checked_sub(at + hole)?;
        let (front, rest) = self.rest.split_at_checked(at)?;
        let (back, rest) = rest.split_at_checked(behind)?;
        (self.before, self.rest) = (header, rest);
        Some(Piece { header, front, hole, byte, back })
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Option<Piece<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place == self.count {
            return None;
        }
        let piece = self.piece();
        self.place = if piece.is_some() { self.place + 1 } else { self.count };
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet of PID 256: its `payload_unit_start_indicator`, its counter, and so much stuffing
    /// in an adaptation field.
    fn packet(starts: bool, counter: u8, stuffing: usize) -> [u8; PACKET] {
        let mut packet = [0x33; PACKET];
        packet[..4].copy_from_slice(&[0x47, if starts { 0x41 } else { 1 }, 0, 0x10 | counter & 15]);
        if stuffing > 0 {
            packet[3] |= 0x20;
            packet[4..6].copy_from_slice(&[1 + stuffing as u8, 0]);
            packet[6..6 + stuffing].fill(0xff);
        }
        packet
    }

    fn unpacked(count: usize, packed: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        Packed::parse(count, 0, packed)?.append_to(&mut out);
        Some(out)
    }

    #[test]
    fn a_picture_stands_on_the_wire_as_drawn() {
        let picture = [packet(true, 14, 0), packet(false, 15, 0), packet(false, 16, 0), packet(false, 17, 100)];
        let mut out = Vec::new();
        assert!(pack(&mut out, 0, picture.iter().map(|packet| &packet[..])));
        let told = |header: [u8; 3], at: u8, length: u8| [&header[..], &[at, length]].concat();
        let body = [0x33; BODY];
        let expected = [
            vec![0b0110_0000],
            told([0x41, 0, 0x1e], 0, 0),
            body.to_vec(),
            body.to_vec(),
            body.to_vec(),
            told([1, 0, 0x31], 2, 100),
            vec![101, 0],
            vec![0x33; BODY - 102],
        ];
        assert_eq!(out, expected.concat());
        assert_eq!(unpacked(4, &out).unwrap(), picture.concat());
    }

    #[test]
    fn what_gains_nothing_or_stands_for_too_much_is_not_packed() {
        let mut out = vec![7];
        let one = packet(true, 0, 0);
        assert!(!pack(&mut out, 0, [&one[..]].into_iter()));
        let tables = [&[0x47, 0x40, 0, 0x10][..], &[0xff; BODY]].concat();
        assert!(!pack(&mut out, 0, [&tables[..]; 3].into_iter()), "5 bytes for 188");
        let no_packet = [0x33; PACKET];
        assert!(!pack(&mut out, 0, [&one[..], &no_packet[..]].into_iter()));
        assert_eq!(out, [7]);
        assert!(unpacked(1, &[0, 0x1f, 0xff, 0x10, 0, 184, 0xff]).is_none());
    }

    #[test]
    fn null_packets_of_any_one_byte_are_packed_away() {
        let mut packets = Vec::new();
        for counter in 0..64 {
            packets.extend_from_slice(&[0x47, 0x1f, 0xff, 0x10 | counter & 15]);
            packets.resize(packets.len() + BODY, counter);
        }
        let mut out = Vec::new();
        assert!(pack(&mut out, 0, packets.chunks(PACKET)));
        assert_eq!((out.len(), unpacked(64, &out).unwrap() == packets), (8 + 64 * (6 + BODY - MOST_OF_A_NULL), true));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let picture = [packet(true, 14, 0), packet(false, 15, 90)];
        let mut out = Vec::new();
        assert!(pack(&mut out, 0, picture.iter().map(|packet| &packet[..])));
        assert!(unpacked(2, &out).is_some());
        assert!(
            unpacked(2, &out[..out.len() - 1]).is_none() && unpacked(1, &out).is_none() && unpacked(3, &out).is_none()
        );
        let more = [&out[..], &[0]].concat();
        assert!(unpacked(2, &more).is_none());
        // A hole that ends behind the packet.
        out[4] = 185;
        assert!(unpacked(2, &out).is_none());
        assert!(unpacked(2, &[]).is_none());
    }

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in(
            packets in prop::collection::vec((any::<bool>(), 0_u8..16, 0_usize..178, any::<u8>(), 0_usize..PACKET), 1..40),
        ) {
            let mut whole = Vec::new();
            for (place, (starts, odd, stuffing, byte, at)) in packets.iter().enumerate() {
                // Most follow from the one before.
                let counter = if *odd == 0 { *byte } else { place as u8 };
                let mut packet = packet(*starts && *odd < 4, counter, if *odd < 3 { *stuffing } else { 0 });
                packet[1.max(*at)] = if *odd < 2 { *byte } else { packet[1.max(*at)] };
                whole.extend_from_slice(&packet);
            }
            let mut out = Vec::new();
            if pack(&mut out, 0, whole.chunks(PACKET)) {
                prop_assert!(out.len() < whole.len());
                prop_assert_eq!(unpacked(packets.len(), &out), Some(whole));
            }
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(count in 0_usize..40, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(out) = unpacked(count, &bytes) {
                prop_assert!(out.len() == count * PACKET && out.len() <= MOST_FOR_A_BYTE * bytes.len());
            }
        }
    }
}
