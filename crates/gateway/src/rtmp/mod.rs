//! RTMP: what OBS, action cameras, drones and phones send, and what platforms take (Adobe, "RTMP specification 1.0";
//! enhanced RTMP for H.265).
//!
//! [`Connection`] is the machine of one TCP connection whose other end publishes; [`Remux`] makes MPEG-TS of what
//! comes. [`Publisher`] publishes to the other end what [`Pack`] makes of MPEG-TS. Not there: playing, AMF3, the
//! handshake with digests that only Flash needs, codecs other than H.264, H.265 and AAC.

pub mod amf;
mod chunk;
mod codec;
mod connection;
mod pack;
mod publisher;
mod remux;
mod tag;
mod wire;

pub use chunk::WrongChunk;
pub use connection::{Connection, Event, Wrong, is_path};
pub use pack::{Pack, PackCounts, Piece};
pub use publisher::{Publisher, Reply};
pub use remux::{Remux, RemuxCounts};
pub use tag::{Codec, Content, Tag};
