//! CCID 2, TCP-like congestion control (RFC 4341).

mod ack_ratio;
mod receiver;
mod sender;

pub(super) use receiver::Receiver;
pub(super) use sender::Sender;

/// Later packets that must have come before one counts as lost (RFC 4341 §5).
const NUMDUPACK: usize = 3;
