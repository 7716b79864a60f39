//! What a receiver hands on before it is due.

use crate::identity::Identity;
use crate::receiver::ChannelId;
use braidcast_core::Instant;
use core::ops::Range;

/// Bytes that are kept for who takes them: beyond that the newest are dropped. Who drives a receiver
/// takes them after each datagram.
const MOST: usize = 8 << 20;

/// Units of live streams, or parts of them, in the order in which they came: whole messages, some time
/// before they are due ([`Receiver::take_pieces`](crate::Receiver::take_pieces)).
#[derive(Debug, Default)]
pub struct Pieces {
    bytes: Vec<u8>,
    list: Vec<Piece>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) channel: ChannelId,
    /// The stream that it is of, and the start of its sender.
    pub(crate) source: (Identity, u64),
    /// When its first packet is due at the receiver.
    pub(crate) due: Instant,
    message: Range<usize>,
}

impl Pieces {
    /// Returns `true` if there are none.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets them; the memory stays for the next ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }

    pub(crate) fn push(&mut self, channel: ChannelId, source: (Identity, u64), due: Instant, message: &[u8]) {
        let at = self.bytes.len();
        if at + message.len() <= MOST {
            self.bytes.extend_from_slice(message);
            self.list.push(Piece { channel, source, due, message: at..self.bytes.len() });
        }
    }

    /// Each, and its message.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Piece, &[u8])> {
        self.list.iter().map(|piece| (piece, &self.bytes[piece.message.clone()]))
    }
}
