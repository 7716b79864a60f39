//! MPEG transport streams (ISO/IEC 13818-1): packets, tables, PES packets, and the way from a byte stream to units.

mod assembly;
mod codec;
mod coding;
mod demux;
mod elementary;
mod gather;
mod latest;
mod mux;
mod packet;
mod pes;
mod psi;
mod small;
mod stream;
mod sync;

pub use codec::Codec;
pub use coding::Coding;
pub use demux::{Demux, DemuxStats};
pub use elementary::{Elementary, ElementaryUnit};
pub use latest::LatestTables;
pub use mux::{Mux, MuxUnit};
pub use packet::{NULL_PACKET, NULL_PID, PACKET, Packet, Pcr, SYNC, sham_packet};
pub(crate) use pes::PesHeader;
pub use sync::PacketSync;
pub(crate) use sync::{TURN, could_be_ts, size_of_ts, turns_into_ts};
