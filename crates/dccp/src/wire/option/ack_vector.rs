use super::{RawOption, kind};
use braidcast_core::Writer;

/// What became of a packet (RFC 4340 §11.4 table 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketState {
    /// Received.
    Received,
    /// Received with an ECN mark.
    Marked,
    /// State 2, which means nothing yet.
    Reserved,
    /// Not yet received.
    Missing,
}

impl PacketState {
    const fn code(self) -> u8 {
        match self {
            Self::Received => 0,
            Self::Marked => 1,
            Self::Reserved => 2,
            Self::Missing => 3,
        }
    }

    /// Returns `true` if the packet has arrived.
    pub const fn arrived(self) -> bool {
        matches!(self, Self::Received | Self::Marked)
    }
}

/// Packets of consecutive numbers in the same state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Their state.
    pub state: PacketState,
    /// How many, 1 to 64.
    pub len: u8,
}

impl Run {
    /// Most packets of one run.
    pub const MAX: u8 = 64;

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        self.state.code() << 6 | (self.len.saturating_sub(1) & 63)
    }

    const fn parse(byte: u8) -> Self {
        let state = match byte >> 6 {
            0 => PacketState::Received,
            1 => PacketState::Marked,
            2 => PacketState::Reserved,
            _ => PacketState::Missing,
        };
        Self { state, len: (byte & 63) + 1 }
    }
}

/// One Ack Vector option: runs, the newest first, beginning at the acknowledgement number or where
/// the one before ended.
///
/// ```text
/// | type 38 / 39 8 | length 8 | state 2, run length − 1 6 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckVector<'a> {
    /// Parity of the ECN nonces of all packets in it that arrived unmarked (§12.2).
    pub nonce: bool,
    bytes: &'a [u8],
}

impl<'a> AckVector<'a> {
    /// A vector of these bytes, [`RawOption::MAX_VALUE`] at most.
    pub const fn new(nonce: bool, bytes: &'a [u8]) -> Self {
        Self { nonce, bytes }
    }

    /// The runs.
    pub fn runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        self.bytes.iter().map(|&byte| Run::parse(byte))
    }

    /// Appends the option.
    pub fn emit(&self, w: &mut Writer<'_>) {
        RawOption { kind: kind::ACK_VECTOR_0 + u8::from(self.nonce), value: self.bytes }.emit(w);
    }
}
