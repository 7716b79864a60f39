//! CCID 2, TCP-like congestion control (RFC 4341). What lives on Ack Vectors as it does shares its halves, and brings a
//! [`Window`] of its own.

mod ack_ratio;
mod receiver;
mod reno;
mod sender;
mod window;

pub(super) use receiver::Receiver;
pub(super) use reno::Reno;
pub(super) use sender::Sender;
pub(super) use window::{Acked, Window};

/// Later packets that must have come before one counts as lost (RFC 4341 §5).
const NUMDUPACK: usize = 3;
