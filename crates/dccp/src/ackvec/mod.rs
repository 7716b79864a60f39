//! Acknowledgement state: what has arrived, at the receiver (RFC 4340 §11.4, appendix A), and what
//! a sender must remember to check what it is told.

mod nonce;
mod replay;
mod window;

pub(crate) use nonce::NonceHistory;
pub(crate) use replay::ReplayWindow;
pub(crate) use window::AckWindow;
