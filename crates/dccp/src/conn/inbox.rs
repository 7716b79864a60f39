use std::collections::VecDeque;

/// Messages that wait for the application.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Buffers of messages that were taken.
    spare: Vec<Vec<u8>>,
}

impl Inbox {
    /// Buffers that are kept.
    const SPARE: usize = 64;
    /// What a message counts besides its bytes, so that empty ones are bounded too.
    const OVERHEAD: usize = 64;

    /// Keeps `payload`, if no more than `limit` bytes wait then.
    pub(super) fn push(&mut self, payload: &[u8], limit: usize) -> bool {
        let cost = payload.len() + Self::OVERHEAD;
        if self.bytes + cost > limit {
            return false;
        }
        self.bytes += cost;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(payload);
        self.waiting.push_back(buffer);
        true
    }

    /// Moves the oldest message into `out`, whose buffer is kept for another.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut message) = self.waiting.pop_front() else { return false };
        self.bytes -= message.len() + Self::OVERHEAD;
        core::mem::swap(out, &mut message);
        message.clear();
        if self.spare.len() < Self::SPARE {
            self.spare.push(message);
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
