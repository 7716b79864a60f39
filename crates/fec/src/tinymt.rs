//! TinyMT32, the generator of coding coefficients that RFC 8682 specifies.

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct TinyMt32 {
    state: [u32; 4],
}

// RFC 8682 §2.1.
const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;

impl TinyMt32 {
    pub(crate) fn new(seed: u32) -> Self {
        let mut state = [seed, MAT1, MAT2, TMAT];
        for i in 1..8 {
            let before = state[(i - 1) & 3];
            state[i & 3] ^= (i as u32).wrapping_add(1_812_433_253u32.wrapping_mul(before ^ (before >> 30)));
        }
        let mut it = Self { state };
        (0..8).for_each(|_| it.step());
        it
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.state;
        let mut x = (s0 & 0x7fff_ffff) ^ s1 ^ s2;
        x ^= x << 1;
        let y = s3 ^ (s3 >> 1) ^ x;
        let odd = if y & 1 == 1 { u32::MAX } else { 0 };
        self.state = [s1, s2 ^ (MAT1 & odd), x ^ (y << 10) ^ (MAT2 & odd), y];
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        self.step();
        let [s0, _, s2, s3] = self.state;
        let sum = s0.wrapping_add(s2 >> 8);
        s3 ^ sum ^ if sum & 1 == 1 { TMAT } else { 0 }
    }

    /// A byte that is not 0 (RFC 8681 §3.6, density 15).
    pub(crate) fn next_nonzero(&mut self) -> u8 {
        loop {
            let byte = self.next_u32() as u8;
            if byte != 0 {
                return byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_rfc_8682_figure_2() {
        let mut it = TinyMt32::new(1);
        let expected = [2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566, 2196103051];
        assert_eq!(expected.map(|_| it.next_u32()), expected);
    }
}
