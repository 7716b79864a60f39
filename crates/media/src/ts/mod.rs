//! MPEG transport streams (ISO/IEC 13818-1): packets, tables, PES packets, and the way from a byte stream to units.

mod assembly;
mod demux;
mod latest;
mod packet;
mod pes;
mod psi;
mod sync;

pub use demux::{Demux, DemuxStats};
pub use latest::LatestTables;
pub use packet::{NULL_PACKET, NULL_PID, PACKET, Packet, Pcr, SYNC, sham_packet};
pub use psi::Codec;
pub use sync::PacketSync;
pub(crate) use sync::looks_like_ts;
