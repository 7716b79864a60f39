//! What streams carry: bytes that follow from their place in the stream, so that the receiver can tell whether it got
//! the right ones.

/// Prime, so that no shift by whole segments goes unnoticed.
const PERIOD: usize = 251;

/// Longest payload that is written at once.
const LONGEST: usize = 65_536;

static PATTERN: [u8; LONGEST + PERIOD] = {
    let mut bytes = [0; LONGEST + PERIOD];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i % PERIOD) as u8;
        i += 1;
    }
    bytes
};

/// The `len` bytes of a stream from `offset` on, at most 64 KiB.
pub(super) fn at(offset: u64, len: usize) -> &'static [u8] {
    let start = (offset % PERIOD as u64) as usize;
    &PATTERN[start..start + len.min(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_the_stream_is_the_same_whichever_way_it_is_cut() {
        let whole = at(0, 5000);
        assert_eq!(at(1460, 1460), &whole[1460..2920]);
        assert_ne!(at(1460, 1460), at(2920, 1460));
    }
}
