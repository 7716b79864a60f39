//! Chunks, one file each (RFC 9260 §3.3).

use core::fmt;

use braidcast_core::Writer;

use super::{ParseError, RawChunk, tlv};

mod abort;
mod asconf;
mod asconf_ack;
mod auth;
mod cookie_ack;
mod cookie_echo;
mod cwr;
mod data;
mod ecne;
mod error;
mod forward_tsn;
mod heartbeat;
mod i_data;
mod i_forward_tsn;
mod init;
pub mod kind;
mod nr_sack;
mod pad;
mod re_config;
mod redundancy;
mod sack;
mod shutdown;
mod shutdown_ack;
mod shutdown_complete;
mod slice;
mod timestamp;
mod timestamp_echo;

pub use abort::Abort;
pub use asconf::Asconf;
pub use asconf_ack::AsconfAck;
pub use auth::Auth;
pub use cookie_ack::CookieAck;
pub use cookie_echo::CookieEcho;
pub use cwr::Cwr;
pub use data::Data;
pub use ecne::Ecne;
pub use error::ErrorChunk;
pub use forward_tsn::{ForwardTsn, Skip, Skips};
pub use heartbeat::{Heartbeat, HeartbeatAck};
pub use i_data::IData;
pub use i_forward_tsn::{IForwardTsn, ISkip, ISkips};
pub use init::Init;
pub use nr_sack::NrSack;
pub use pad::Pad;
pub use re_config::ReConfig;
pub use redundancy::Redundancy;
pub use sack::{Duplicates, GapBlock, GapBlocks, Sack};
pub use shutdown::Shutdown;
pub use shutdown_ack::ShutdownAck;
pub use shutdown_complete::ShutdownComplete;
pub use slice::Slice;
pub use timestamp::Timestamp;
pub use timestamp_echo::{StampArrival, TimestampEcho};

/// A chunk of any type. `Display` is one line, for traces and test failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chunk<'a> {
    /// User data.
    Data(Data<'a>),
    /// User data that can be interleaved.
    IData(IData<'a>),
    /// First message of the handshake.
    Init(Init<'a>),
    /// Second message of the handshake.
    InitAck(Init<'a>),
    /// What has arrived.
    Sack(Sack<'a>),
    /// What has arrived and will not be dropped again.
    NrSack(NrSack<'a>),
    /// Is this path alive?
    Heartbeat(Heartbeat<'a>),
    /// It is.
    HeartbeatAck(HeartbeatAck<'a>),
    /// The association is over at once.
    Abort(Abort<'a>),
    /// Something was wrong, the association goes on.
    Error(ErrorChunk<'a>),
    /// No more data from here.
    Shutdown(Shutdown),
    /// Nor from here.
    ShutdownAck(ShutdownAck),
    /// Done.
    ShutdownComplete(ShutdownComplete),
    /// Third message of the handshake.
    CookieEcho(CookieEcho<'a>),
    /// Fourth message of the handshake.
    CookieAck(CookieAck),
    /// Data abandoned.
    ForwardTsn(ForwardTsn<'a>),
    /// Data abandoned, with I-DATA in use.
    IForwardTsn(IForwardTsn<'a>),
    /// Vouches for all chunks after it.
    Auth(Auth<'a>),
    /// Changes of addresses.
    Asconf(Asconf<'a>),
    /// Answer to changes of addresses.
    AsconfAck(AsconfAck<'a>),
    /// Streams numbered anew, and more of them.
    ReConfig(ReConfig<'a>),
    /// Filling.
    Pad(Pad),
    /// Packets came marked.
    Ecne(Ecne),
    /// That was heard.
    Cwr(Cwr),
    /// What makes up for lost data.
    Redundancy(Redundancy<'a>),
    /// Bytes of a chunk that is too large for its path.
    Slice(Slice<'a>),
    /// When its packet left.
    Timestamp(Timestamp),
    /// When such packets came.
    TimestampEcho(TimestampEcho<'a>),
    /// A type that is not known here; see [`UnknownAction`](super::UnknownAction).
    Unknown(RawChunk<'a>),
}

impl<'a> Chunk<'a> {
    /// Reads the value of `raw` as its type says.
    ///
    /// # Errors
    /// [`ParseError`] where the value is shorter or longer than the type's fields. Parameters and causes inside are
    /// looked at only when they are iterated.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(match raw.kind {
            kind::DATA => Self::Data(Data::parse(raw)?),
            kind::I_DATA => Self::IData(IData::parse(raw)?),
            kind::INIT => Self::Init(Init::parse(raw)?),
            kind::INIT_ACK => Self::InitAck(Init::parse(raw)?),
            kind::SACK => Self::Sack(Sack::parse(raw)?),
            kind::NR_SACK => Self::NrSack(NrSack::parse(raw)?),
            kind::HEARTBEAT => Self::Heartbeat(Heartbeat::parse(raw)?),
            kind::HEARTBEAT_ACK => Self::HeartbeatAck(HeartbeatAck::parse(raw)?),
            kind::ABORT => Self::Abort(Abort::parse(raw)?),
            kind::ERROR => Self::Error(ErrorChunk::parse(raw)?),
            kind::SHUTDOWN => Self::Shutdown(Shutdown::parse(raw)?),
            kind::SHUTDOWN_ACK => Self::ShutdownAck(ShutdownAck::parse(raw)?),
            kind::SHUTDOWN_COMPLETE => Self::ShutdownComplete(ShutdownComplete::parse(raw)?),
            kind::COOKIE_ECHO => Self::CookieEcho(CookieEcho::parse(raw)?),
            kind::COOKIE_ACK => Self::CookieAck(CookieAck::parse(raw)?),
            kind::FORWARD_TSN => Self::ForwardTsn(ForwardTsn::parse(raw)?),
            kind::I_FORWARD_TSN => Self::IForwardTsn(IForwardTsn::parse(raw)?),
            kind::AUTH => Self::Auth(Auth::parse(raw)?),
            kind::ASCONF => Self::Asconf(Asconf::parse(raw)?),
            kind::ASCONF_ACK => Self::AsconfAck(AsconfAck::parse(raw)?),
            kind::RE_CONFIG => Self::ReConfig(ReConfig::parse(raw)?),
            kind::PAD => Self::Pad(Pad::parse(raw)?),
            kind::ECNE => Self::Ecne(Ecne::parse(raw)?),
            kind::CWR => Self::Cwr(Cwr::parse(raw)?),
            kind::REDUNDANCY => Self::Redundancy(Redundancy::parse(raw)?),
            kind::SLICE => Self::Slice(Slice::parse(raw)?),
            kind::TIMESTAMP => Self::Timestamp(Timestamp::parse(raw)?),
            kind::TIMESTAMP_ECHO => Self::TimestampEcho(TimestampEcho::parse(raw)?),
            _ => Self::Unknown(raw),
        })
    }

    /// Appends the chunk, padded to four bytes from its own start.
    pub fn emit(&self, w: &mut Writer<'_>) {
        match self {
            Self::Data(c) => c.emit(w),
            Self::IData(c) => c.emit(w),
            Self::Init(c) => c.emit(w),
            Self::InitAck(c) => c.emit_ack(w),
            Self::Sack(c) => c.emit(w),
            Self::NrSack(c) => c.emit(w),
            Self::Heartbeat(c) => c.emit(w),
            Self::HeartbeatAck(c) => c.emit(w),
            Self::Abort(c) => c.emit(w),
            Self::Error(c) => c.emit(w),
            Self::Shutdown(c) => c.emit(w),
            Self::ShutdownAck(c) => c.emit(w),
            Self::ShutdownComplete(c) => c.emit(w),
            Self::CookieEcho(c) => c.emit(w),
            Self::CookieAck(c) => c.emit(w),
            Self::ForwardTsn(c) => c.emit(w),
            Self::IForwardTsn(c) => c.emit(w),
            Self::Auth(c) => c.emit(w),
            Self::Asconf(c) => c.emit(w),
            Self::AsconfAck(c) => c.emit(w),
            Self::ReConfig(c) => c.emit(w),
            Self::Pad(c) => c.emit(w),
            Self::Ecne(c) => c.emit(w),
            Self::Cwr(c) => c.emit(w),
            Self::Redundancy(c) => c.emit(w),
            Self::Slice(c) => c.emit(w),
            Self::Timestamp(c) => c.emit(w),
            Self::TimestampEcho(c) => c.emit(w),
            Self::Unknown(raw) => emit(w, raw.kind, raw.flags, |w| w.bytes(raw.value)),
        }
    }
}

impl fmt::Display for Chunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(c) => c.fmt(f),
            Self::IData(c) => c.fmt(f),
            Self::Init(c) => write!(f, "INIT {c}"),
            Self::InitAck(c) => write!(f, "INIT-ACK {c}"),
            Self::Sack(c) => c.fmt(f),
            Self::NrSack(c) => c.fmt(f),
            Self::Heartbeat(c) => c.fmt(f),
            Self::HeartbeatAck(c) => c.fmt(f),
            Self::Abort(c) => c.fmt(f),
            Self::Error(c) => c.fmt(f),
            Self::Shutdown(c) => c.fmt(f),
            Self::ShutdownAck(c) => c.fmt(f),
            Self::ShutdownComplete(c) => c.fmt(f),
            Self::CookieEcho(c) => c.fmt(f),
            Self::CookieAck(c) => c.fmt(f),
            Self::ForwardTsn(c) => c.fmt(f),
            Self::IForwardTsn(c) => c.fmt(f),
            Self::Auth(c) => c.fmt(f),
            Self::Asconf(c) => c.fmt(f),
            Self::AsconfAck(c) => c.fmt(f),
            Self::ReConfig(c) => c.fmt(f),
            Self::Pad(c) => c.fmt(f),
            Self::Ecne(c) => c.fmt(f),
            Self::Cwr(c) => c.fmt(f),
            Self::Redundancy(c) => c.fmt(f),
            Self::Slice(c) => c.fmt(f),
            Self::Timestamp(c) => c.fmt(f),
            Self::TimestampEcho(c) => c.fmt(f),
            Self::Unknown(raw) => match kind::name(raw.kind) {
                Some(name) => write!(f, "{name} flags={:#04x} len={}", raw.flags, raw.value.len()),
                None => write!(f, "type={:#04x} flags={:#04x} len={}", raw.kind, raw.flags, raw.value.len()),
            },
        }
    }
}

/// Appends a chunk: header, what `value` writes, length, padding.
fn emit(w: &mut Writer<'_>, kind: u8, flags: u8, value: impl FnOnce(&mut Writer<'_>)) {
    let start = w.position();
    w.u8(kind);
    w.u8(flags);
    w.u16(0);
    value(w);
    tlv::close(w, start);
}

/// Asserts that `bytes`, written out by hand, are what `chunk` looks like on the wire, in both
/// directions, and how it prints.
#[cfg(test)]
#[track_caller]
fn check(bytes: &[u8], chunk: Chunk<'_>, line: &str) {
    let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    let raw =
        RawChunk { kind: bytes[0], flags: bytes[1], value: &bytes[4..length], bytes: &bytes[..length], offset: 12 };
    assert_eq!(Chunk::parse(raw), Ok(chunk));
    // The buffer starts odd, so that padding cannot need the absolute position.
    let mut buf = vec![0xee];
    chunk.emit(&mut Writer::new(&mut buf));
    assert_eq!(&buf[1..], bytes);
    assert_eq!(chunk.to_string(), line);
}
