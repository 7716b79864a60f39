//! Records of what a protocol did, for people and their tools.
//!
//! [`PcapWriter`] writes datagrams as a capture that Wireshark and tshark open; [`QlogWriter`] and
//! [`QlogReader`] write and read traces of what machines tell of their inside.

mod block;
mod capture;
mod headers;
mod ns2;
mod pcapng;
mod qlog;

pub use capture::{CaptureReader, Carrier, Heard};
pub use headers::{Ports, Protocol};
pub use ns2::{Cargo, FlowName, Ns2Reader, Passage};
pub use pcapng::{Captured, Direction, InterfaceId, PcapWriter};
pub use qlog::{QlogHeader, QlogReader, QlogWriter, ReadError, Record};
