//! The option that CCID 4 has beyond those of CCID 3 (RFC 5622 §8.7).

use super::RawOption;
use braidcast_core::Writer;

/// How many packets of each loss interval were lost or marked, the most recent first.
///
/// ```text
/// | type 195 8 | length 8 | drop count 24 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DroppedPackets<'a> {
    bytes: &'a [u8],
}

impl<'a> DroppedPackets<'a> {
    const KIND: u8 = 195;
    /// Bytes of a count.
    pub const SIZE: usize = 3;
    /// Most intervals of one option.
    pub const MAX: usize = 84;

    /// A count as it stands in the option; what does not fit is the largest number.
    pub fn to_bytes(count: u64) -> [u8; 3] {
        let [_, a, b, c] = (count.min(0xff_ffff) as u32).to_be_bytes();
        [a, b, c]
    }

    /// The option for counts that [`to_bytes`](Self::to_bytes) wrote; `None` if they are none, too many or cut.
    pub const fn new(bytes: &'a [u8]) -> Option<Self> {
        let count = bytes.len() / Self::SIZE;
        if bytes.len().is_multiple_of(Self::SIZE) && count >= 1 && count <= Self::MAX {
            Some(Self { bytes })
        } else {
            None
        }
    }

    /// Reads a CCID-specific option; `None` if it is another one or invalid.
    pub fn parse(raw: RawOption<'a>) -> Option<Self> {
        if raw.kind == Self::KIND { Self::new(raw.value) } else { None }
    }

    /// The counts.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.bytes.as_chunks::<3>().0.iter().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// Appends the option.
    pub fn emit(&self, w: &mut Writer<'_>) {
        RawOption { kind: Self::KIND, value: self.bytes }.emit(w);
    }
}
