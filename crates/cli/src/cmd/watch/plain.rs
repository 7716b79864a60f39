//! What encrypted packets hold, for a capture that shows it in their place.

use braidcast_sctp::wire::{Header, PROTECTION, seal};
use braidcast_trace::Protocol;
use std::collections::VecDeque;

/// Packets that wait to be heard as they leave; a turn of the driver makes fewer.
const MOST_WAITING: usize = 4096;
/// Bytes that a packet of DCCP has more when it is encrypted.
const DCCP_PROTECTION: usize = braidcast_secure::OVERHEAD;

/// What packets hold that are on their way to the socket.
pub(super) struct Plain {
    protocol: Protocol,
    waiting: VecDeque<Vec<u8>>,
}

impl Plain {
    pub(super) const fn new(protocol: Protocol) -> Self {
        Self { protocol, waiting: VecDeque::new() }
    }

    /// A packet is about to be encrypted.
    pub(super) fn leaves(&mut self, parts: [&[u8]; 2]) {
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(parts.concat());
    }

    /// The packet `encrypted` came, and holds this.
    pub(super) fn came(&self, parts: [&[u8]; 2], encrypted: &mut Vec<u8>) {
        let plain = parts.concat();
        if self.is_of(&plain, encrypted) {
            *encrypted = self.complete(plain);
        }
    }

    /// What the packet holds that leaves; `None` if it is not encrypted. Packets leave in the order
    /// in which they were made.
    pub(super) fn of_sent(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let place = self.waiting.iter().position(|plain| self.is_of(plain, payload))?;
        self.waiting.drain(..place);
        self.waiting.pop_front().map(|plain| self.complete(plain))
    }

    /// Returns `true` if `encrypted` is what became of `plain`: by what can be read of both, and by their lengths.
    fn is_of(&self, plain: &[u8], encrypted: &[u8]) -> bool {
        let (more, alike) = match self.protocol {
            // Ports and tag.
            Protocol::Sctp => (PROTECTION, [0..8, 0..0]),
            // All but the checksum, up to where the short form of the header ends (RFC 4340 §5.1).
            Protocol::Dccp => (DCCP_PROTECTION, [0..6, 8..12]),
        };
        plain.len() + more == encrypted.len()
            && alike
                .into_iter()
                .all(|range| plain.get(range.clone()).is_some_and(|it| Some(it) == encrypted.get(range)))
    }

    fn complete(&self, mut plain: Vec<u8>) -> Vec<u8> {
        // DCCP's checksum covers addresses, and is made with them.
        if self.protocol == Protocol::Sctp && plain.len() >= Header::LEN {
            seal(&mut plain);
        }
        plain
    }
}
