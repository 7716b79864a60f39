//! The options of CCID 3, which CCID 4 shares (RFC 4342 §8, RFC 5622 §8).

use super::RawOption;
use braidcast_core::Writer;

/// An option from a TFRC receiver to its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ccid3Option<'a> {
    /// The inverse of the loss event rate, rounded up; `u32::MAX` before any loss (RFC 4342 §8.5).
    LossEventRate(u32),
    /// The recent loss intervals (RFC 4342 §8.6).
    LossIntervals(LossIntervals<'a>),
    /// Bytes per second that arrived (RFC 4342 §8.3).
    ReceiveRate(u32),
}

impl<'a> Ccid3Option<'a> {
    const LOSS_EVENT_RATE: u8 = 192;
    const LOSS_INTERVALS: u8 = 193;
    const RECEIVE_RATE: u8 = 194;

    /// Reads a CCID-specific option; `None` if it is another one or invalid.
    pub fn parse(raw: RawOption<'a>) -> Option<Self> {
        let number = || raw.value.try_into().ok().map(u32::from_be_bytes);
        match raw.kind {
            Self::LOSS_EVENT_RATE => number().map(Self::LossEventRate),
            Self::LOSS_INTERVALS => LossIntervals::parse(raw.value).map(Self::LossIntervals),
            Self::RECEIVE_RATE => number().map(Self::ReceiveRate),
            _ => None,
        }
    }

    /// Appends the option.
    pub fn emit(&self, w: &mut Writer<'_>) {
        match self {
            Self::LossEventRate(n) => RawOption { kind: Self::LOSS_EVENT_RATE, value: &n.to_be_bytes() }.emit(w),
            Self::ReceiveRate(n) => RawOption { kind: Self::RECEIVE_RATE, value: &n.to_be_bytes() }.emit(w),
            Self::LossIntervals(intervals) => {
                w.u8(Self::LOSS_INTERVALS);
                w.u8(intervals.bytes.len() as u8 + 3);
                w.u8(intervals.skip);
                w.bytes(intervals.bytes);
            }
        }
    }
}

/// One loss interval: a lossless part, and the lossy part that precedes it in sequence (RFC 4342 §6.1).
///
/// ```text
/// | lossless length 24 | nonce 1 | loss length 23 | data length 24 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossInterval {
    /// Packets of the lossless part, 24 bits.
    pub lossless: u32,
    /// Parity of the nonces of the lossless part.
    pub nonce: bool,
    /// Packets of the lossy part, 23 bits.
    pub loss: u32,
    /// Data packets of both, 24 bits.
    pub data: u32,
}

impl LossInterval {
    /// Bytes on the wire.
    pub const SIZE: usize = 9;

    /// As it stands in the option.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let [_, a, b, c] = self.lossless.to_be_bytes();
        let [_, d, e, f] = (u32::from(self.nonce) << 23 | (self.loss & 0x7f_ffff)).to_be_bytes();
        let [_, g, h, i] = self.data.to_be_bytes();
        [a, b, c, d, e, f, g, h, i]
    }

    const fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let &[a, b, c, d, e, f, g, h, i] = bytes;
        Self {
            lossless: u32::from_be_bytes([0, a, b, c]),
            nonce: d & 0x80 != 0,
            loss: u32::from_be_bytes([0, d & 0x7f, e, f]),
            data: u32::from_be_bytes([0, g, h, i]),
        }
    }
}

/// Loss intervals, the most recent first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossIntervals<'a> {
    /// Packets up to and including the acknowledgement number that belong to no interval yet.
    pub skip: u8,
    bytes: &'a [u8],
}

impl<'a> LossIntervals<'a> {
    /// Most intervals of one option.
    pub const MAX: usize = 28;

    /// The option for intervals that [`LossInterval::to_bytes`] wrote; `None` if they are none, too many or cut.
    pub const fn new(skip: u8, bytes: &'a [u8]) -> Option<Self> {
        let count = bytes.len() / LossInterval::SIZE;
        if bytes.len().is_multiple_of(LossInterval::SIZE) && count >= 1 && count <= Self::MAX {
            Some(Self { skip, bytes })
        } else {
            None
        }
    }

    fn parse(value: &'a [u8]) -> Option<Self> {
        let (&skip, bytes) = value.split_first()?;
        Self::new(skip, bytes)
    }

    /// The intervals.
    pub fn iter(&self) -> impl Iterator<Item = LossInterval> + use<'a> {
        self.bytes.as_chunks().0.iter().map(LossInterval::parse)
    }
}
