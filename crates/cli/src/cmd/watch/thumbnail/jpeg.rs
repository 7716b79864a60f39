//! Images out of a row of JPEGs.

/// Bytes of a image at most: one of 480 pixels' width has some 30 kB.
const MOST: usize = 256 * 1024;
/// Its first and last marker (ITU-T T.81, table B.1).
const START: [u8; 2] = [0xff, 0xd8];
const END: [u8; 2] = [0xff, 0xd9];

/// Cuts a row of images. In coded data 0xff is followed by 0, so that the last marker is found in
/// what ffmpeg writes, which embeds no second image.
#[derive(Debug, Default)]
pub(super) struct Images {
    present: Vec<u8>,
}

impl Images {
    /// Takes `bytes`, and hands out each image that they complete.
    pub(super) fn push(&mut self, bytes: &[u8], mut done: impl FnMut(&[u8])) {
        for &byte in bytes {
            self.present.push(byte);
            if self.present.len() == 2 && self.present != START {
                // Between images there is nothing; whatever it is, the next one may begin with its last byte.
                self.present.remove(0);
            }
            if self.present.ends_with(&END) && self.present.starts_with(&START) {
                done(&self.present);
                self.present.clear();
            }
            if self.present.len() >= MOST {
                self.present.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut images, mut found) = (Images::default(), Vec::new());
        pieces.iter().for_each(|piece| images.push(piece, |jpeg| found.push(jpeg.to_vec())));
        found
    }

    #[test]
    fn images_are_cut_wherever_the_pieces_end() {
        let first = [0xff, 0xd8, 1, 0xff, 0, 2, 0xff, 0xd9];
        let second = [0xff, 0xd8, 3, 0xff, 0xd9];
        let row = [&first[..], &[7, 0xff][..], &second[..]].concat();
        for at in 0..row.len() {
            assert_eq!(cut(&[&row[..at], &row[at..]]), [first.to_vec(), second.to_vec()], "{at}");
        }
    }

    #[test]
    fn what_never_ends_takes_no_more_room_than_a_image() {
        let endless = vec![0xff_u8, 0xd8].into_iter().chain(std::iter::repeat_n(5, 3 * MOST)).collect::<Vec<_>>();
        let mut images = Images::default();
        images.push(&endless, |_| panic!("there is none"));
        assert!(images.present.len() < MOST && images.present.capacity() <= 2 * MOST);
    }
}
