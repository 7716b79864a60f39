//! Streams that are to begin anew (RFC 6525 §5.1.2 A1): what they have goes, what comes waits.

use super::{MessageKey, SendQueue};
use std::collections::VecDeque;

/// A stream that is to begin anew.
#[derive(Debug, Default)]
pub(super) struct Paused {
    /// Messages that came since.
    pub(super) waiting: VecDeque<MessageKey>,
    /// Messages that go before all others, once the old numbers have ended.
    express: VecDeque<MessageKey>,
    /// The peer was told the last TSN with the old numbers.
    pub(super) ended: bool,
}

impl SendQueue {
    /// Messages of `stream` that come from now on wait until [`resume`](Self::resume).
    pub(crate) fn pause_stream(&mut self, stream: u16) {
        self.stream(stream);
        self.paused.entry(stream).or_default();
    }

    /// Returns `true` if messages of `stream` wait for it to begin anew.
    pub(crate) fn is_stream_paused(&self, stream: u16) -> bool {
        self.paused.contains_key(&stream)
    }

    /// Returns `true` if all that `stream` had before it was paused has got TSNs.
    pub(crate) fn is_drained(&self, stream: u16) -> bool {
        let is_cut_in_part = |&key: &MessageKey| self.get(key).stream == stream && !self.is_untouched(key);
        self.streams.get(usize::from(stream)).is_none_or(|it| it.waiting.is_empty())
            && !self.express.front().is_some_and(is_cut_in_part)
    }

    /// The peer is told the last TSN with the old numbers of `stream`, which is paused and
    /// [drained](Self::is_drained): from here on what goes before all others waits too.
    pub(crate) fn end_numbers(&mut self, stream: u16) {
        let Self { express, messages, paused, paused_bytes, waiting_bytes, .. } = self;
        let Some(paused) = paused.get_mut(&stream) else { return };
        paused.ended = true;
        express.retain(|&key| {
            let message = &messages[key.place()];
            let stays = message.stream != stream;
            if !stays {
                *waiting_bytes -= message.payload.len();
                *paused_bytes += message.payload.len();
                paused.express.push_back(key);
            }
            stays
        });
    }

    /// Returns `true` if the next message of `stream` is its first anyway.
    pub(crate) fn is_at_start(&self, stream: u16) -> bool {
        let unused = |it: &super::OutStream| it.waiting.is_empty() && it.next_ordered == 0 && it.next_unordered == 0;
        self.streams.get(usize::from(stream)).is_none_or(unused)
    }

    /// Lets the messages of `stream` go that waited; as its first ones, if it was `reset` (RFC 6525
    /// §5.2.7 H4, RFC 8260 §2.3.2).
    pub(crate) fn resume(&mut self, stream: u16, reset: bool) {
        let Some(Paused { waiting, express, .. }) = self.paused.remove(&stream) else { return };
        if reset {
            let it = self.stream(stream);
            (it.next_ordered, it.next_unordered) = (0, 0);
        }
        for &key in express.iter().chain(&waiting) {
            let len = self.get(key).payload.len();
            self.paused_bytes -= len;
            self.waiting_bytes += len;
        }
        self.express.extend(express);
        waiting.into_iter().for_each(|key| self.line_up(key));
    }

    /// The same for all streams, whose numbers begin anew for another reason.
    pub(super) fn resume_all(&mut self) {
        while let Some(&stream) = self.paused.keys().next() {
            self.resume(stream, true);
        }
    }

    /// Bytes of messages that wait for their stream to begin anew.
    pub(crate) const fn paused_bytes(&self) -> usize {
        self.paused_bytes
    }

    pub(super) fn is_paused(&self, key: MessageKey) -> bool {
        !self.paused.is_empty() && self.paused.contains_key(&self.get(key).stream)
    }

    /// A message comes to a stream that is paused.
    pub(super) fn pause(&mut self, key: MessageKey) {
        let (stream, len) = (self.get(key).stream, self.get(key).payload.len());
        self.waiting_bytes -= len;
        self.paused_bytes += len;
        self.paused.entry(stream).or_default().waiting.push_back(key);
    }
}
