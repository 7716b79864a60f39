//! Records of what a protocol did, for people and their tools.
//!
//! [`PcapWriter`] writes datagrams as a capture that Wireshark and tshark open.

mod block;
mod headers;
mod pcapng;

pub use headers::{Ports, Protocol};
pub use pcapng::{Captured, Direction, InterfaceId, PcapWriter};
