use braidcast_core::Writer;

/// The lost packets that a NAK names, as ranges of sequence numbers, both ends included
/// (draft-sharabayko-srt, appendix A).
///
/// A range of which the end is missing, or comes before its beginning, ends the list: what follows cannot be told
/// apart.
#[derive(Clone, Debug)]
pub struct LossList<'a>(&'a [u8]);

impl<'a> LossList<'a> {
    /// The list in the body of a NAK.
    pub const fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }
}

impl Iterator for LossList<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let first = self.word()?;
        if first & 0x8000_0000 == 0 {
            return Some((first, first));
        }
        let first = first & 0x7fff_ffff;
        let last = self.word()? & 0x7fff_ffff;
        let forward = last.wrapping_sub(first) & 0x7fff_ffff < 0x4000_0000;
        if !forward {
            self.0 = &[];
        }
        forward.then_some((first, last))
    }
}

/// Appends the packets from `first` to `last`, both included.
pub fn write_loss(buf: &mut Vec<u8>, first: u32, last: u32) {
    let mut w = Writer::new(buf);
    if first == last {
        return w.u32(first & 0x7fff_ffff);
    }
    w.u32(first | 0x8000_0000);
    w.u32(last & 0x7fff_ffff);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_packets_and_ranges_come_back_across_the_end_of_the_numbers() {
        let all = [(5, 5), (7, 8), (0x7fff_fffe, 3)];
        let mut body = Vec::new();
        all.iter().for_each(|(first, last)| write_loss(&mut body, *first, *last));
        assert_eq!(body.len(), 4 + 8 + 8);
        assert!(LossList::new(&body).eq(all));
    }

    #[test]
    fn a_range_that_goes_backwards_or_has_no_end_ends_the_list() {
        let mut body = Vec::new();
        write_loss(&mut body, 9, 9);
        write_loss(&mut body, 8, 3);
        write_loss(&mut body, 1, 1);
        assert!(LossList::new(&body).eq([(9, 9)]));
        assert!(LossList::new(&[0x80, 0, 0, 1, 0, 0]).eq([]));
    }
}
