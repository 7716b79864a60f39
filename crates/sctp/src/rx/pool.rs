use core::mem;

/// Where a buffer's storage came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Storage {
    /// Allocated for this message: its capacity follows its length.
    Fresh,
    /// Reused, small.
    Small,
    /// Reused, large.
    Large,
}

/// Bytes that grow at both ends, in amortised constant time a byte.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Where the content starts; what lies before is room to grow down.
    start: usize,
    storage: Storage,
}

impl Buffer {
    /// How many bytes it holds.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// What it holds.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Adds `tail` at the end.
    pub(super) fn append(&mut self, tail: &[u8]) {
        self.bytes.extend_from_slice(tail);
    }

    /// Adds `head` before the start.
    pub(super) fn prepend(&mut self, head: &[u8]) {
        if self.start < head.len() {
            // As much room again as there is content, so that a message that arrives backwards moves each
            // byte a bounded number of times on average.
            let more = head.len() - self.start + self.len();
            let old_end = self.bytes.len();
            self.bytes.resize(old_end + more, 0);
            self.bytes.copy_within(self.start..old_end, self.start + more);
            self.start += more;
        }
        let at = self.start - head.len();
        self.bytes[at..self.start].copy_from_slice(head);
        self.start = at;
    }

    /// Adds all of `tail` at the end, copying the shorter of the two; returns storage to release.
    pub(super) fn join(&mut self, mut tail: Self) -> Self {
        if self.len() >= tail.len() {
            self.append(&tail.bytes[tail.start..]);
        } else {
            tail.prepend(&self.bytes[self.start..]);
            mem::swap(self, &mut tail);
        }
        tail
    }
}

/// Storage of delivered messages, kept for messages to come.
///
/// It keeps at most 256 buffers of up to 2 KiB and 32 of up to 256 KiB, 8.5 MiB. A tiny message in a large reused
/// buffer holds more memory than the receive window is charged for, so the reused buffers in use are bounded too,
/// to 1024 and 32 (10 MiB); beyond that, messages get storage of their own size.
#[derive(Debug, Default)]
pub(super) struct Pool {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    small_lent: usize,
    large_lent: usize,
}

impl Pool {
    const SMALL: usize = 2048;
    const SMALL_KEPT: usize = 256;
    const SMALL_LENT: usize = 1024;
    const TOO_LARGE: usize = (256 << 10) + 1;
    const LARGE_KEPT: usize = 32;
    const LARGE_LENT: usize = 32;

    /// A buffer that holds `content`; `grows` if more is to come than that.
    pub(super) fn fill(&mut self, content: &[u8], grows: bool) -> Buffer {
        let mut buffer = self.take(grows || content.len() > Self::SMALL);
        buffer.append(content);
        buffer
    }

    fn take(&mut self, large: bool) -> Buffer {
        let (kept, lent, limit, storage) = if large {
            (&mut self.large, &mut self.large_lent, Self::LARGE_LENT, Storage::Large)
        } else {
            (&mut self.small, &mut self.small_lent, Self::SMALL_LENT, Storage::Small)
        };
        match kept.pop_if(|_| *lent < limit) {
            Some(bytes) => {
                *lent += 1;
                Buffer { bytes, start: 0, storage }
            }
            None => Buffer { bytes: Vec::new(), start: 0, storage: Storage::Fresh },
        }
    }

    /// Takes the bytes out of `buffer`.
    pub(super) fn detach(&mut self, mut buffer: Buffer) -> Vec<u8> {
        match buffer.storage {
            Storage::Fresh => {}
            Storage::Small => self.small_lent -= 1,
            Storage::Large => self.large_lent -= 1,
        }
        if buffer.start > 0 {
            buffer.bytes.drain(..buffer.start);
        }
        buffer.bytes
    }

    /// Takes back the storage of `buffer`.
    pub(super) fn release(&mut self, mut buffer: Buffer) {
        buffer.start = 0;
        let bytes = self.detach(buffer);
        self.keep(bytes);
    }

    /// Keeps `bytes` for later if there is room.
    pub(super) fn keep(&mut self, mut bytes: Vec<u8>) {
        let (kept, limit) = match bytes.capacity() {
            1..=Self::SMALL => (&mut self.small, Self::SMALL_KEPT),
            0 | Self::TOO_LARGE.. => return,
            _ => (&mut self.large, Self::LARGE_KEPT),
        };
        if kept.len() < limit {
            bytes.clear();
            kept.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_buffer_holds_what_was_added_at_both_ends(
            pieces in prop::collection::vec((0..3, prop::collection::vec(any::<u8>(), 0..40)), 0..40),
        ) {
            let mut pool = Pool::default();
            let mut buffer = pool.fill(&[], true);
            let mut model = Vec::new();
            for (how, piece) in pieces {
                match how {
                    0 => {
                        buffer.append(&piece);
                        model.extend(piece);
                    }
                    1 => {
                        buffer.prepend(&piece);
                        model.splice(0..0, piece);
                    }
                    _ => {
                        let tail = pool.fill(&piece, false);
                        pool.release(buffer.join(tail));
                        model.extend(piece);
                    }
                }
                prop_assert_eq!(buffer.len(), model.len());
            }
            prop_assert_eq!(pool.detach(buffer), model);
            prop_assert_eq!((pool.small_lent, pool.large_lent), (0, 0));
        }
    }

    #[test]
    fn small_messages_do_not_sit_in_large_buffers_and_few_reused_ones_are_out() {
        let mut pool = Pool::default();
        for _ in 0..100 {
            pool.keep(Vec::with_capacity(100_000));
            pool.keep(Vec::with_capacity(1_000_000));
        }
        assert_eq!(pool.large.len(), Pool::LARGE_KEPT);
        assert!(pool.fill(&[1], false).bytes.capacity() < 100);
        let held: Vec<Buffer> = (0..100)
            .map(|_| {
                pool.keep(Vec::with_capacity(100_000));
                pool.fill(&[1], true)
            })
            .collect();
        assert_eq!(held.iter().filter(|buffer| buffer.bytes.capacity() >= 100_000).count(), Pool::LARGE_LENT);
    }
}
