//! Each row prepares, then counts its work with [`counted`](crate::counted).

mod codes;
mod media;
mod paths;
mod records;
mod session;
mod sockets;

use crate::Row;
use session::Protection::{Keys, Plain};

/// Bytes of payload in a datagram: seven packets of a transport stream.
const PAYLOAD: usize = 1316;

pub(crate) const ALL: [Row; 18] = [
    ("seal", "packet", records::seal),
    ("open", "packet", records::open),
    ("send", "packet", || session::send(Plain)),
    ("receive", "packet", || session::receive(Plain)),
    ("send-keys", "packet", || session::send(Keys)),
    ("receive-keys", "packet", || session::receive(Keys)),
    ("playout", "frame", session::playout),
    ("demux", "MB", media::demux),
    ("schedule-2", "decision", paths::two),
    ("schedule-8", "decision", paths::eight),
    ("encode-block", "source symbol", || codes::encode("block:10,9")),
    ("decode-block", "source symbol", || codes::decode("block:10,9")),
    ("encode-convolutional", "source symbol", || codes::encode("convolutional:10,9,20")),
    ("decode-convolutional", "source symbol", || codes::decode("convolutional:10,9,20")),
    ("encode-tetrys", "source symbol", || codes::encode("tetrys:10,9,50")),
    ("decode-tetrys", "source symbol", || codes::decode("tetrys:10,9,50")),
    ("encode-raptorq", "source symbol", codes::encode_raptorq),
    ("decode-raptorq", "source symbol", codes::decode_raptorq),
];

/// Rows over real sockets, of which allocations and system calls are compared.
pub(crate) const OVER_SOCKETS: [Row; 2] =
    [("drive", "datagram", sockets::drive), ("message", "message", sockets::message)];

/// Bytes that look like media: no run of them is the same.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    braidcast_core::Rng::from_seed(seed).fill(&mut bytes);
    bytes
}
