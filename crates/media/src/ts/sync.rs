use super::{PACKET, SYNC};

/// Sync bytes in a row that prove a packet boundary.
const PROOF: usize = 3;

/// Finds the packet boundaries of a transport stream that comes in pieces of any size.
///
/// Holds less than three packets plus one piece.
#[derive(Debug, Default)]
pub struct PacketSync {
    held: Vec<u8>,
    /// How much of `held` has been handed out or skipped.
    at: usize,
    locked: bool,
    garbage: u64,
}

impl PacketSync {
    /// A finder that has seen nothing.
    pub fn new() -> Self {
        Self::default()
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
            let rest = &self.held[self.at..];
            if self.locked && rest.first().is_some_and(|byte| *byte != SYNC) {
                self.locked = false;
            }
            if !self.locked {
                let (skip, found) = find_boundary(rest, ended);
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
            return self.held[start..].first_chunk();
        }
    }

    /// Bytes that belonged to no packet.
    pub const fn garbage(&self) -> u64 {
        self.garbage
    }
}

/// How many bytes stand before the first boundary, or before the first place that could still become one, and
/// whether it is proven.
fn find_boundary(bytes: &[u8], ended: bool) -> (usize, bool) {
    for (start, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == SYNC) {
        let mut marks = (1..PROOF).map(|n| bytes.get(start + n * PACKET));
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

/// Returns `true` if `bytes`, the beginning of an input, look like a transport stream; `None` if
/// more are needed to tell.
pub(crate) fn looks_like_ts(bytes: &[u8]) -> Option<bool> {
    let (start, proven) = find_boundary(bytes, false);
    if proven && start < PACKET {
        return Some(true);
    }
    if start < PACKET && bytes.len() < PACKET * PROOF { None } else { Some(false) }
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
