use super::{PACKET, SYNC};

/// Sync bytes in a row that prove a packet boundary.
const PROOF: usize = 3;

/// The same of packets that are not at the very beginning, or have bytes between them.
const SURE: usize = 5;
/// The same of an input that was taken for something else.
const VERY_SURE: usize = 8;
/// From one sync byte to the next: bare packets; with four bytes in front (M2TS); with 16 for error correction behind.
const SIZES: [usize; 3] = [PACKET, 192, 204];

/// Finds the packet boundaries of a transport stream that comes in pieces of any size.
///
/// Holds less than three packets plus one piece.
#[derive(Debug)]
pub struct PacketSync {
    /// From one packet's first byte to the next one's.
    size: usize,
    /// Bytes behind the last packet that are still to be skipped.
    between: usize,
    held: Vec<u8>,
    /// How much of `held` has been handed out or skipped.
    at: usize,
    locked: bool,
    garbage: u64,
}

impl Default for PacketSync {
    fn default() -> Self {
        Self::new()
    }
}

impl PacketSync {
    /// A finder of packets that follow each other closely.
    pub const fn new() -> Self {
        Self::of_size(PACKET)
    }

    /// A finder of packets each of which begins `size` bytes after the one before, at least 188: 192 of M2TS, 204 with
    /// error correction. What stands between them is skipped.
    pub const fn of_size(size: usize) -> Self {
        let size = if size < PACKET { PACKET } else { size };
        Self { size, between: 0, held: Vec::new(), at: 0, locked: false, garbage: 0 }
    }

    /// Takes the next piece of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next packet; `None` until more bytes have come.
    ///
    /// With `ended`, no more bytes will come, and fewer sync bytes are proof enough.
    pub fn next(&mut self, ended: bool) -> Option<&[u8; PACKET]> {
        loop {
            let skipped = self.between.min(self.held.len() - self.at);
            self.at += skipped;
            self.between -= skipped;
            let rest = &self.held[self.at..];
            if self.locked && rest.first().is_some_and(|byte| *byte != SYNC) {
                self.locked = false;
            }
            if !self.locked {
                let (skip, found) = find_boundary(rest, self.size, PROOF, ended);
                self.at += skip;
                self.garbage += skip as u64;
                if !found {
                    return None;
                }
                self.locked = true;
                continue;
            }
            if rest.len() < PACKET {
                if ended {
                    self.garbage += rest.len() as u64;
                    self.at = self.held.len();
                }
                return None;
            }
            let start = self.at;
            self.at += PACKET;
            self.between = self.size - PACKET;
            return self.held[start..].first_chunk();
        }
    }

    /// Bytes that belonged to no packet.
    pub const fn garbage(&self) -> u64 {
        self.garbage
    }
}

/// How many bytes stand before the first boundary, or before the first place that could still become one, and `true` if
/// it is proven by `marks` sync bytes `size` bytes apart.
fn find_boundary(bytes: &[u8], size: usize, marks: usize, ended: bool) -> (usize, bool) {
    for start in memchr::memchr_iter(SYNC, bytes) {
        let mut marks = (1..marks).map(|n| bytes.get(start + n * size));
        if marks.clone().flatten().any(|byte| *byte != SYNC) {
            continue;
        }
        if ended {
            let whole = bytes.len() - start >= PACKET;
            return if whole { (start, true) } else { (bytes.len(), false) };
        }
        return (start, marks.all(|byte| byte.is_some()));
    }
    (bytes.len(), false)
}

/// Returns the size of the packets, from one to the next, if `bytes`, the beginning of an input, look like a transport
/// stream.
pub(crate) fn size_of_ts(bytes: &[u8]) -> Option<usize> {
    let (start, proven) = find_boundary(bytes, PACKET, PROOF, false);
    if proven && start < PACKET {
        return Some(PACKET);
    }
    SIZES.into_iter().find(|size| find_boundary(bytes, *size, SURE, false).1)
}

/// The same of `bytes` somewhere in an input that was taken for something else.
pub(crate) fn turns_into_ts(bytes: &[u8]) -> Option<usize> {
    SIZES.into_iter().find(|size| find_boundary(bytes, *size, VERY_SURE, false).1)
}

/// Bytes within which [`turns_into_ts`] finds packets, if there are any.
pub(crate) const TURN: usize = VERY_SURE * 204;

/// Returns `true` if more bytes behind `bytes` could make them a transport stream.
pub(crate) fn could_be_ts(bytes: &[u8]) -> bool {
    SIZES.into_iter().any(|size| find_boundary(bytes, size, SURE, false).0 < bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(fill: u8) -> Vec<u8> {
        let mut packet = vec![fill; PACKET];
        packet[0] = SYNC;
        packet
    }

    fn split(pieces: &[&[u8]]) -> (Vec<u8>, u64) {
        let (mut sync, mut out) = (PacketSync::new(), Vec::new());
        for piece in pieces {
            sync.push(piece);
            while let Some(packet) = sync.next(false) {
                out.extend_from_slice(packet);
            }
        }
        while let Some(packet) = sync.next(true) {
            out.extend_from_slice(packet);
        }
        (out, sync.garbage())
    }

    #[test]
    fn garbage_before_between_and_after_packets_is_skipped_and_counted() {
        let good: Vec<u8> = (0..8).flat_map(packet).collect();
        let mut bad = vec![SYNC, 1, 2];
        bad.extend_from_slice(&good[..4 * PACKET]);
        bad.extend_from_slice(&[SYNC; 100]);
        bad.extend_from_slice(&good[4 * PACKET..]);
        bad.extend_from_slice(&[SYNC, 9]);
        // The garbage itself is full of sync bytes, so one packet may be cut from it, but lock returns at once.
        let (out, garbage) = split(&[&bad]);
        assert_eq!(out.len() as u64 + garbage, bad.len() as u64);
        assert!(out.ends_with(&good[5 * PACKET..]) && out.starts_with(&good[..4 * PACKET]));
    }

    #[test]
    fn packets_with_bytes_between_them_are_found_and_the_bytes_are_no_garbage() {
        for (size, front) in [(192, 4), (204, 0)] {
            let wrapped = |fill: u8| [vec![0x11; front], packet(fill), vec![0x22; size - PACKET - front]].concat();
            let stream: Vec<u8> = (0..12).flat_map(wrapped).collect();
            assert_eq!(size_of_ts(&stream), Some(size));
            let (mut sync, mut out) = (PacketSync::of_size(size), Vec::new());
            for piece in stream.chunks(100) {
                sync.push(piece);
                while let Some(packet) = sync.next(false) {
                    out.extend_from_slice(packet);
                }
            }
            assert_eq!((out, sync.garbage()), ((0..12).flat_map(packet).collect::<Vec<_>>(), front as u64));
        }
    }

    #[test]
    fn a_stream_behind_a_header_of_text_is_found_and_noise_is_not() {
        let stream = [b"HTTP/1.1 200 OK Got it".repeat(14), (0..6).flat_map(packet).collect()].concat();
        assert_eq!(size_of_ts(&stream), Some(PACKET));
        let noise: Vec<u8> = (0_u32..60_000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert_eq!((size_of_ts(&noise), turns_into_ts(&noise)), (None, None));
        assert!(!could_be_ts(b"hello"));
        assert!(could_be_ts(b"Gabcdef"));
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_packets(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            cuts in prop::collection::vec(1_usize..400, 1..20),
        ) {
            let mut stream = noise;
            stream.extend((0..6).flat_map(packet));
            let (whole, mut pieces, mut rest) = (split(&[&stream]), Vec::new(), &stream[..]);
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            pieces.push(rest);
            prop_assert_eq!(split(&pieces), whole);
        }
    }
}
