//! TCP as competing traffic: data one way, from a [`Source`](crate::traffic::Source) to a receiver that counts it.
//!
//! Reno's window (RFC 5681), or that of another [`Controller`](braidcast_cc::Controller), with
//! SACK-based recovery (RFC 2018, 6675), which keeps NewReno's rule of one reduction for all losses
//! of a window (RFC 6582 §3.2, recovery point), or NewReno itself without SACK; delayed
//! acknowledgements (RFC 5681 §4.2); RTO after RFC 6298 with a limit of choice; ECN on demand (RFC
//! 3168). Segments have TCP's own layout ([`Segment`]); with port 0 the simulator adds 20 bytes of
//! IPv4, so a full segment is 1500 bytes on the wire, and a capture can be read as IP protocol 6.
//!
//! Left out, as competing flows do not need it: data in both directions, FIN, urgent data,
//! timestamps, persist timer (the receiving application takes everything at once, so the window
//! never closes), rescue retransmissions and rule 3 of RFC 6675's NextSeg: a loss at the very end
//! costs a timeout.
//!
//! Reno follows [`Standard::RFC_5681`](braidcast_cc::Standard::RFC_5681): as in ns-2 and in the
//! response functions it falls to two segments and grows by the acknowledgement, so that delayed
//! acknowledgements halve its growth. SCTP's never falls below four packets and counts bytes; at 1
//! % loss and more this is the difference.

mod config;
mod host;
mod payload;
mod receiver;
mod scoreboard;
mod segment;
mod sender;

pub use config::Config;
pub use host::{FlowId, Host};
pub use receiver::Receiver;
pub use segment::{Flags, MAX_SACK_BLOCKS, Malformed, Options, SackBlocks, Segment};
pub use sender::{Sample, Sender, SenderStats};
