//! The sending half: messages that wait, and the ledger of the chunks that are out.

mod front;
mod ledger;
mod prospect;
mod queue;

pub(crate) use front::{Front, PathView};
pub(crate) use ledger::{
    Ack, AckReport, Acked, Books, Chunk, Departure, Leave, Ledger, LossCause, Origin, Repeat, Was,
};
pub(crate) use prospect::Prospect;
pub(crate) use queue::{Message, MessageKey, Part, Piece, SendQueue};
