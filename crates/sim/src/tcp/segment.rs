use braidcast_core::{Reader, Truncated, Writer};
use core::ops::BitOr;

/// Most SACK blocks in a segment without timestamps (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// Control bits (RFC 9293 §3.1, RFC 3168 §6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// Synchronises sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// ECN-Echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Returns `true` if all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// `self`, and `other` if `wanted`.
    #[must_use]
    pub fn with(self, other: Self, wanted: bool) -> Self {
        if wanted { self | other } else { self }
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Ranges of sequence numbers that the receiver holds, the most recent first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    count: usize,
}

impl SackBlocks {
    /// Adds a block if there is room.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(block) = self.blocks.get_mut(self.count) {
            *block = (left, right);
            self.count += 1;
        }
    }

    /// First number of each block and the one after its last.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks[..self.count].iter().copied()
    }
}

/// The options that are understood; others are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// `true` if SACK may be used (RFC 2018 §2).
    pub sack_permitted: bool,
    /// SACK blocks (RFC 2018 §3).
    pub sack: SackBlocks,
}

/// A TCP segment (RFC 9293 §3.1).
///
/// The checksum covers the segment alone: the pseudo-header needs the sender's address, which a machine doesn't know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment<'a> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of the first byte of payload, or of SYN.
    pub sequence: u32,
    /// The next sequence number that is expected, if ACK is set.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// Receive window, unscaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Data.
    pub payload: &'a [u8],
}

/// Bytes that are no segment, or a damaged one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self
    }
}

impl<'a> Segment<'a> {
    /// Replaces the contents of `buf` by this segment.
    pub fn write(&self, buf: &mut Vec<u8>) {
        buf.clear();
        let mut writer = Writer::new(buf);
        writer.u16(self.source);
        writer.u16(self.destination);
        writer.u32(self.sequence);
        writer.u32(self.acknowledgement);
        writer.u8(0);
        writer.u8(self.flags.0);
        writer.u16(self.window);
        writer.u32(0); // Checksum and urgent pointer.
        self.options.write(&mut writer);
        let header = writer.position();
        writer.bytes(self.payload);
        buf[12] = (header / 4) as u8 * 16;
        let sum = checksum(buf);
        Writer::new(buf).patch_u16(16, sum);
    }

    /// Reads a segment.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if checksum(bytes) != 0 {
            return Err(Malformed);
        }
        let mut reader = Reader::new(bytes);
        let (source, destination) = (reader.u16()?, reader.u16()?);
        let (sequence, acknowledgement) = (reader.u32()?, reader.u32()?);
        let header = usize::from(reader.u8()? / 16) * 4;
        let flags = Flags(reader.u8()?);
        let window = reader.u16()?;
        reader.take(4)?;
        let options = Options::read(reader.take(header.checked_sub(20).ok_or(Malformed)?)?)?;
        let payload = reader.rest();
        Ok(Self { source, destination, sequence, acknowledgement, flags, window, options, payload })
    }
}

impl Options {
    fn write(&self, writer: &mut Writer<'_>) {
        if let Some(mss) = self.mss {
            writer.bytes(&[2, 4]);
            writer.u16(mss);
        }
        if let Some(shift) = self.window_scale {
            writer.bytes(&[1, 3, 3, shift]);
        }
        if self.sack_permitted {
            writer.bytes(&[1, 1, 4, 2]);
        }
        if self.sack.count > 0 {
            writer.bytes(&[1, 1, 5, 2 + 8 * self.sack.count as u8]);
            for (left, right) in self.sack.iter() {
                writer.u32(left);
                writer.u32(right);
            }
        }
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let (mut options, mut reader) = (Self::default(), Reader::new(bytes));
        while let Ok(kind) = reader.u8() {
            match kind {
                0 => break,
                1 => continue,
                _ => {}
            }
            let len = usize::from(reader.u8()?).checked_sub(2).ok_or(Malformed)?;
            let mut value = Reader::new(reader.take(len)?);
            match kind {
                2 => options.mss = Some(value.u16()?),
                3 => options.window_scale = Some(value.u8()?),
                4 => options.sack_permitted = true,
                5 => {
                    while !value.is_empty() {
                        options.sack.push(value.u32()?, value.u32()?);
                    }
                }
                _ => {}
            }
        }
        Ok(options)
    }
}

/// The Internet checksum (RFC 1071); 0 over bytes that contain the right one.
fn checksum(bytes: &[u8]) -> u16 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let mut sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    sum += last.first().map_or(0, |byte| u64::from(*byte) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_segment_makes_1480_bytes_and_a_syn_32() {
        let (mut buf, payload) = (Vec::new(), [7; 1460]);
        Segment { payload: &payload, flags: Flags::ACK, ..Segment::default() }.write(&mut buf);
        assert_eq!(buf.len(), 1480);
        let options = Options { mss: Some(1460), window_scale: Some(3), sack_permitted: true, ..Options::default() };
        Segment { flags: Flags::SYN, options, ..Segment::default() }.write(&mut buf);
        assert_eq!((buf.len(), buf[12]), (32, 0x80));
        assert_eq!(&buf[20..], [2, 4, 5, 180, 1, 3, 3, 3, 1, 1, 4, 2]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_unless_a_bit_flips(
            numbers: (u16, u16, u32, u32, u16),
            flags: u8,
            mss: Option<u16>,
            blocks in prop::collection::vec(any::<(u32, u32)>(), 0..4),
            payload in prop::collection::vec(any::<u8>(), 0..100),
            bit: prop::sample::Index,
        ) {
            let mut options = Options { mss, ..Options::default() };
            blocks.iter().for_each(|&(left, right)| options.sack.push(left, right));
            let (source, destination, sequence, acknowledgement, window) = numbers;
            let flags = Flags(flags);
            let segment = Segment { source, destination, sequence, acknowledgement, flags, window, options, payload: &payload };
            let mut buf = Vec::new();
            segment.write(&mut buf);
            prop_assert_eq!(Segment::read(&buf), Ok(segment));
            let bit = bit.index(buf.len() * 8);
            buf[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Segment::read(&buf), Err(Malformed));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), right: bool) {
            let mut bytes = bytes;
            if right && bytes.len() >= 18 {
                bytes[16] = 0;
                bytes[17] = 0;
                let sum = checksum(&bytes);
                bytes[16..18].copy_from_slice(&sum.to_be_bytes());
            }
            let _ = Segment::read(&bytes);
        }
    }
}
