//! What comes in for an association that is to be protected.

use super::Open;
use super::protect::KEY_MESSAGE;
use super::receive::Inbound;
use crate::wire::chunk::kind;
use crate::wire::{Chunks, Header, padded};
use braidcast_core::Instant;
use braidcast_secure::State;
use core::mem;

impl Open {
    /// A packet of an association that is to be protected.
    pub(super) fn handle_guarded(&mut self, now: Instant, inbound: Inbound<'_>) {
        let first = inbound.chunks.clone().next().and_then(Result::ok);
        let was_protected = self.is_protected();
        if let Some(chunk) = first.filter(|chunk| chunk.kind == kind::DTLS) {
            let Some(protection) = &mut self.protection else { return };
            let mut text = mem::take(&mut protection.text);
            let alone = chunk.offset == Header::LEN && Header::LEN + padded(chunk.bytes.len()) >= inbound.bytes.len();
            let record = chunk.value.get(1..).filter(|_| alone).unwrap_or_default();
            let opened = protection.guard.open(now, record, &mut text).is_ok();
            if opened {
                self.heard_record();
                if !was_protected && self.is_protected() {
                    // What somebody else may have put here in clear.
                    self.reassembly.forget_all();
                }
                let header = inbound.bytes.get(..Header::LEN).unwrap_or_default();
                self.journal.trace.tell_plain(false, || [header, &text]);
                self.handle_chunks(now, Inbound { chunks: Chunks::new(&text), authenticated: true, ..inbound });
            } else {
                self.journal.stats.dropped_packets += 1;
            }
            if let Some(protection) = &mut self.protection {
                protection.text = text;
            }
        } else if was_protected {
            self.journal.stats.dropped_packets += 1;
        } else {
            self.handle_chunks(now, inbound);
        }
        self.take_key_messages(now);
    }

    fn take_key_messages(&mut self, now: Instant) {
        while let Some(message) = self.reassembly.take(KEY_MESSAGE) {
            let Some(protection) = self.protection.as_mut().filter(|_| !self.state.is_closed()) else { return };
            let agreeing = protection.guard.state() == State::Agreeing;
            if let Err(error) = protection.guard.handle_message(now, &message) {
                return self.refuse(&error);
            }
            if agreeing && protection.guard.state() == State::Protected {
                self.reassembly.forget_all();
            }
            self.tend_keys(now);
        }
        if self.protection.as_ref().is_some_and(|it| it.guard.state() == State::Agreeing) {
            // No other message counts that comes in clear.
            while self.reassembly.recv(&mut Vec::new()).is_some() {}
        }
        self.tend_keys(now);
    }
}
