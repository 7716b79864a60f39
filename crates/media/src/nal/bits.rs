/// Reads bits of a NAL unit, leaving out the emulation prevention bytes (H.264 §7.4.1, H.265 §7.4.2): the 3 in 00 00
/// 03.
#[derive(Clone, Debug)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    zeros: u8,
    current: u8,
    left: u8,
    /// There are no emulation prevention bytes.
    plain: bool,
}

impl<'a> Bits<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, zeros: 0, current: 0, left: 0, plain: false }
    }

    /// Reads `bytes` as they are: emulation was not prevented.
    pub(crate) const fn plain(bytes: &'a [u8]) -> Self {
        Self { plain: true, ..Self::new(bytes) }
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if self.zeros >= 2 && byte == 3 && !self.plain {
            byte = *self.bytes.get(self.at)?;
            self.at += 1;
            self.zeros = 0;
        }
        self.zeros = if byte == 0 { self.zeros.saturating_add(1) } else { 0 };
        Some(byte)
    }

    /// One bit; `None` past the end.
    pub(crate) fn bit(&mut self) -> Option<bool> {
        if self.left == 0 {
            self.current = self.byte()?;
            self.left = 8;
        }
        self.left -= 1;
        Some(self.current >> self.left & 1 == 1)
    }

    /// `count` bits, at most 32, first bit highest.
    pub(crate) fn bits(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0_u32, |value, _| Some(value << 1 | u32::from(self.bit()?)))
    }

    /// An unsigned Exp-Golomb code, `ue(v)` (H.264 §9.1); `None` if it needs more than 32 bits.
    pub(crate) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.bits(zeros)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_golomb_codes_are_those_of_h264_table_9_2() {
        // 1 | 010 | 011 | 00100 | 00111 | 0001000
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0011, 0b1000_1000]);
        assert_eq!([0; 6].map(|_| bits.ue().unwrap()), [0, 1, 2, 3, 6, 7]);
        assert_eq!(bits.ue(), None);
        assert_eq!(Bits::new(&[0; 8]).ue(), None);
    }

    #[test]
    fn emulation_prevention_bytes_are_left_out() {
        let mut bits = Bits::new(&[0, 0, 3, 1, 0, 0, 3]);
        assert_eq!(bits.bits(24), Some(1));
        assert_eq!(bits.bits(16), Some(0));
        assert_eq!(bits.bit(), None);
    }
}
