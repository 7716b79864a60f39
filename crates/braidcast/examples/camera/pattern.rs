//! Test frames in H.264 of 128 × 96 pixels without an encoder: each macroblock that changed stands there as it is
//! (I_PCM, ITU-T H.264 §7.3.5), and the others are skipped.

const WIDTH: u32 = 8;
const HEIGHT: u32 = 6;
/// Bits of a frame number.
const FRAME_NUMBER_BITS: u32 = 4;
/// Frames from one that needs no other to the next.
const GROUP: u32 = 25;

/// Makes one frame after another, 25 for a second.
#[derive(Default)]
pub(crate) struct Pattern {
    next: u32,
    frame_number: u32,
    /// The frame that the next one is predicted from.
    reference: Vec<[u8; 3]>,
}

/// A frame of the pattern.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) key: bool,
    /// 1: no other frame is predicted from it.
    pub(crate) layer: u8,
}

/// Colour of a macroblock, Y, Cb and Cr: bars, a square that moves, and the number in binary.
fn colour(number: u32, x: u32, y: u32) -> [u8; 3] {
    let place = number / 2 % (WIDTH * (HEIGHT - 1));
    match (x, y) {
        (x, y) if y + 1 == HEIGHT => [if number >> x & 1 == 1 { 235 } else { 16 }, 128, 128],
        (x, y) if (x, y) == (place % WIDTH, place / WIDTH) => [235, 40, 220],
        (x, _) => [200 - 20 * x as u8, 90 + 20 * (x % 4) as u8, 160 - 15 * (x / 2) as u8],
    }
}

impl Pattern {
    pub(crate) fn next(&mut self) -> Frame {
        let number = self.next;
        self.next += 1;
        let (key, layer) = (number.is_multiple_of(GROUP), (number % GROUP % 2) as u8);
        let blocks = (0..WIDTH * HEIGHT).map(|n| colour(number, n % WIDTH, n / WIDTH)).collect::<Vec<_>>();
        let mut bytes = Vec::new();
        if key {
            self.frame_number = 0;
            nal(0x67, &sequence(), &mut bytes);
            nal(0x68, &parameters(), &mut bytes);
        }
        let mut bits = Bits::default();
        for value in [0, if key { 7 } else { 5 }, 0] {
            bits.golomb(value); // First macroblock, slice type, parameter set.
        }
        bits.put(self.frame_number % (1 << FRAME_NUMBER_BITS), FRAME_NUMBER_BITS);
        match (key, layer) {
            (true, _) => {
                bits.golomb(0); // Which of two such frames in a row.
                bits.put(0, 2);
            }
            (false, 0) => bits.put(0, 3),
            (false, _) => bits.put(0, 2),
        }
        bits.golomb(0); // Quantiser: as in the parameters.
        bits.golomb(1); // No deblocking.
        let mut skipped = 0;
        for (n, block) in blocks.iter().enumerate() {
            if !key && self.reference.get(n) == Some(block) {
                skipped += 1;
                continue;
            }
            if !key {
                bits.golomb(std::mem::take(&mut skipped));
            }
            bits.golomb(if key { 25 } else { 30 });
            bits.align(0);
            for (samples, value) in [(256, block[0]), (64, block[1]), (64, block[2])] {
                bits.bytes.resize(bits.bytes.len() + samples, value);
            }
        }
        if skipped > 0 {
            bits.golomb(skipped);
        }
        let kind = if key { 0x65 } else { 0x41 & !(u8::from(layer > 0) << 6) };
        nal(kind, &bits.end(), &mut bytes);
        if layer == 0 {
            self.frame_number += 1;
            self.reference = blocks;
        }
        Frame { bytes, key, layer }
    }
}

/// Sequence parameter set: baseline profile, level 3, output in the order of decoding.
fn sequence() -> Vec<u8> {
    let mut bits = Bits::default();
    [66, 0xc0, 30].into_iter().for_each(|byte| bits.put(byte, 8));
    [0, FRAME_NUMBER_BITS - 4, 2, 1].into_iter().for_each(|value| bits.golomb(value));
    bits.put(0, 1);
    bits.golomb(WIDTH - 1);
    bits.golomb(HEIGHT - 1);
    bits.put(0b1100, 4);
    bits.end()
}

/// What frames have in common: CAVLC, one slice group, deblocking under the slice's control.
fn parameters() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.golomb(0);
    bits.golomb(0);
    bits.put(0, 2);
    (0..3).for_each(|_| bits.golomb(0));
    bits.put(0, 3);
    (0..3).for_each(|_| bits.golomb(0));
    bits.put(0b100, 3);
    bits.end()
}

/// Appends a NAL unit with its start code; what looks like another one inside is broken up (§7.4.1).
fn nal(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend([0, 0, 0, 1, kind]);
    let mut zeros = 0;
    for byte in payload {
        if zeros >= 2 && *byte <= 3 {
            out.push(3);
            zeros = 0;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        out.push(*byte);
    }
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Of the last byte.
    used: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                (self.used, _) = (0, self.bytes.push(0));
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((value >> bit & 1) as u8) << (7 - self.used);
            self.used += 1;
        }
    }

    /// Exp-Golomb code (§9.1).
    fn golomb(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    fn align(&mut self, bit: u32) {
        while !self.used.is_multiple_of(8) {
            self.put(bit, 1);
        }
        self.used = 0;
    }

    fn end(mut self) -> Vec<u8> {
        self.put(1, 1);
        self.align(0);
        self.bytes
    }
}
