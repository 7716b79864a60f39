//! The sending half: messages that wait, chunks that are out, what is given up.

mod cumack;
mod front;
mod outstanding;
mod queue;
mod repeats;
mod sent_again;

pub(crate) use cumack::PseudoCumack;
pub(crate) use front::{Front, Way};
pub(crate) use outstanding::{Chunk, ChunkState, LossCause, Outstanding};
pub(crate) use queue::{Message, Piece, SendQueue};
pub(crate) use repeats::{Origin, Repeats};
pub(crate) use sent_again::SentAgain;
