//! CCID 2, TCP-like congestion control (RFC 4341). What lives on Ack Vectors as it does shares its
//! halves, and differs in the [`Controller`](braidcast_cc::Controller) of the window.

mod ack_ratio;
mod receiver;
mod sender;
mod window;

pub(super) use receiver::Receiver;
pub(super) use sender::Sender;

/// Later packets that must have come before one counts as lost (RFC 4341 §5).
const NUMDUPACK: usize = 3;
