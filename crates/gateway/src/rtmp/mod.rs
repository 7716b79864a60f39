//! RTMP, the end that is published to: what OBS, action cameras, drones and phones send (Adobe, "RTMP specification
//! 1.0"; enhanced RTMP for H.265).
//!
//! [`Connection`] is the machine of one TCP connection; [`Remux`] makes MPEG-TS of what comes. Not there: playing,
//! RTMPS, AMF3, the handshake with digests that only Flash needs, codecs other than H.264, H.265 and AAC.

pub mod amf;
mod chunk;
mod codec;
mod connection;
mod remux;
mod tag;

pub use chunk::WrongChunk;
pub use connection::{Connection, Event, Wrong, is_path};
pub use remux::{Remux, RemuxCounts};
pub use tag::{Codec, Content, Tag};
