//! SRT in live mode, as libsrt 1.3 and later speak it: caller and listener, encrypted or not (draft-sharabayko-srt).
//!
//! [`Endpoint`] is the machine. Not there: file mode, two callers that call each other (rendezvous), groups, packet
//! filters, authenticated encryption (AES-GCM), and handshakes of version 4; all are refused with their own code.

mod caller;
#[cfg(test)]
mod captured;
mod cipher;
mod endpoint;
mod event;
mod link;
mod listener;
mod options;
mod refusal;
mod secret;
mod send;
mod stream_id;
pub mod wire;

pub use crate::reception::Received;
pub use endpoint::{Delivered, Endpoint};
pub use event::{ConnectionId, Event};
pub use link::{Ended, Report};
pub use options::{Direction, Options};
pub use refusal::Refusal;
pub use secret::{KeyLength, Passphrase, WrongLength};
pub use send::Sent;
pub use stream_id::StreamId;

use braidcast_core::Rng;
use wire::HelloFlags;

/// The version that we say we are: the first of which all is there that live mode needs.
const VERSION: u32 = 0x01_05_00;
/// Longest IP packet.
const MTU: u32 = 1500;
/// Packets that may be out, as libsrt's default has it.
const WINDOW: u32 = 25_600;
/// What we do: all but a byte stream and packet filters.
const FLAGS: HelloFlags = HelloFlags(
    HelloFlags::TIMED_SENDING.0
        | HelloFlags::TIMED_DELIVERY.0
        | HelloFlags::KEYS.0
        | HelloFlags::DROPS_LATE.0
        | HelloFlags::REPEATS_NAKS.0
        | HelloFlags::MARKS_REPEATS.0,
);

/// The number of a first packet: any, but not so near to the end that it looks like the one before 0.
fn first_number(rng: &mut Rng) -> u32 {
    rng.u32() >> 2
}
