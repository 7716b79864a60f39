use crate::api::SendOptions;
use braidcast_core::Instant;
use std::collections::VecDeque;

/// A message that waits.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) coverage: u8,
    expires: Option<Instant>,
}

/// Messages that wait to be sent. Which one goes is decided only when congestion control lets one go.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    waiting: VecDeque<Message>,
    bytes: usize,
    /// Buffers of messages that have left.
    spare: Vec<Vec<u8>>,
}

impl SendQueue {
    /// Buffers that are kept.
    const SPARE: usize = 64;

    pub(super) fn push(&mut self, now: Instant, payload: &[u8], how: SendOptions) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(payload);
        self.bytes += payload.len();
        let expires = how.lifetime.map(|lifetime| now + lifetime);
        self.waiting.push_back(Message { bytes, coverage: how.coverage, expires });
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops the messages in front whose time is up; how many.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let mut count = 0;
        while self.waiting.front().is_some_and(|message| message.expires.is_some_and(|at| at <= now)) {
            if let Some(message) = self.pop() {
                self.recycle(message);
                count += 1;
            }
        }
        count
    }

    /// Bytes of the message that would go now.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.waiting.front().map(|message| message.bytes.len())
    }

    /// The message that goes now.
    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// Gives a buffer back.
    pub(super) fn recycle(&mut self, message: Message) {
        if self.spare.len() < Self::SPARE {
            let mut bytes = message.bytes;
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Drops the messages that are longer than `limit`; how many.
    pub(super) fn drop_longer(&mut self, limit: usize) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|message| message.bytes.len() <= limit);
        self.bytes = self.waiting.iter().map(|message| message.bytes.len()).sum();
        (before - self.waiting.len()) as u64
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
