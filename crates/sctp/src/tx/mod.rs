//! The sending half: messages that wait, chunks that are out, what is given up.

mod outstanding;
mod queue;

pub(crate) use outstanding::{Chunk, ChunkState, Outstanding};
pub(crate) use queue::{Message, Piece, SendQueue};
