//! Options: framing here, values one file for each group (RFC 4340 §5.8).

mod ack_vector;
mod ccid3;
mod ccid4;
mod data_dropped;
mod feature;
mod ndp;
mod simple;
mod timing;

pub use ack_vector::{AckVector, PacketState, Run};
pub use ccid3::{Ccid3Option, LossInterval, LossIntervals};
pub use ccid4::DroppedPackets;
pub use data_dropped::{DataDropped, DropCode, DropRun};
pub use feature::{FeatureOption, Side};
pub use ndp::emit_ndp_count;
pub use simple::{emit_data_checksum, emit_init_cookies, emit_mandatory, emit_protection, emit_slow_receiver};
pub use timing::{emit_elapsed, emit_timestamp, emit_timestamp_echo, from_units, to_units};

use super::Kind;
use braidcast_core::Writer;

/// Option types (RFC 4340 §5.8 table 3).
pub mod kind {
    /// Filling.
    pub const PADDING: u8 = 0;
    /// The next option must be understood.
    pub const MANDATORY: u8 = 1;
    /// Do not go faster.
    pub const SLOW_RECEIVER: u8 = 2;
    /// Options up to this have no length and no value.
    pub const LAST_SINGLE: u8 = 31;
    /// The feature location asks for a value.
    pub const CHANGE_L: u8 = 32;
    /// The feature location confirms.
    pub const CONFIRM_L: u8 = 33;
    /// The feature remote asks for a value.
    pub const CHANGE_R: u8 = 34;
    /// The feature remote confirms.
    pub const CONFIRM_R: u8 = 35;
    /// What a server would have to remember.
    pub const INIT_COOKIE: u8 = 36;
    /// Packets without data just before this one.
    pub const NDP_COUNT: u8 = 37;
    /// What has arrived, nonce echo 0.
    pub const ACK_VECTOR_0: u8 = 38;
    /// What has arrived, nonce echo 1.
    pub const ACK_VECTOR_1: u8 = 39;
    /// Data that did not reach the application.
    pub const DATA_DROPPED: u8 = 40;
    /// When the packet was sent.
    pub const TIMESTAMP: u8 = 41;
    /// A timestamp that came.
    pub const TIMESTAMP_ECHO: u8 = 42;
    /// Time since the packet that is acknowledged came.
    pub const ELAPSED_TIME: u8 = 43;
    /// CRC-32c of the data.
    pub const DATA_CHECKSUM: u8 = 44;
    /// What protection the sender offers; of the types for experiments (§19.3).
    pub const PROTECTION: u8 = 120;
    /// The first type from a data sender to its receiver that belongs to the CCID.
    pub const CCID_FIRST: u8 = 128;
    /// The first type from a data receiver to its sender that belongs to the CCID.
    pub const CCID_RECEIVER_FIRST: u8 = 192;
}

/// An option as framed: type and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawOption<'a> {
    /// The type.
    pub kind: u8,
    /// What follows type and length.
    pub value: &'a [u8],
}

impl RawOption<'_> {
    /// Longest value.
    pub const MAX_VALUE: usize = 253;

    /// Appends the option. A value beyond [`MAX_VALUE`](Self::MAX_VALUE) bytes is cut.
    pub fn emit(&self, w: &mut Writer<'_>) {
        w.u8(self.kind);
        if self.kind > kind::LAST_SINGLE {
            let value = &self.value[..self.value.len().min(Self::MAX_VALUE)];
            w.u8(value.len() as u8 + 2);
            w.bytes(value);
        }
    }
}

/// The options of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    on: Kind,
}

/// An option, and whether Mandatory stood before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed<'a> {
    /// It must be understood, or the connection ends.
    pub mandatory: bool,
    /// The option.
    pub raw: RawOption<'a>,
    on: Kind,
}

/// Mandatory with nothing after it, or twice: an option error (RFC 4340 §5.8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DanglingMandatory;

impl<'a> Options<'a> {
    /// The options in `bytes` on a packet of this type.
    pub const fn new(bytes: &'a [u8], on: Kind) -> Self {
        Self { bytes, on }
    }

    /// The bytes, padding included.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Option by option, without padding. On Data packets the options that could do harm there are
    /// left out (RFC 4340 §5.8).
    pub const fn iter(&self) -> Iter<'a> {
        Iter { rest: self.bytes, on: self.on }
    }

    /// The options that can be read, mandatory or not.
    pub fn known(&self) -> impl Iterator<Item = Opt<'a>> + use<'a> {
        self.iter().filter_map(|listed| listed.ok().and_then(|listed| listed.parse()))
    }

    /// The runs of all Ack Vector options in order, newest packet first (RFC 4340 §11.4).
    pub fn ack_vector_runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        self.ack_vectors().flat_map(|vector| vector.runs())
    }

    /// The Ack Vector options in order.
    pub fn ack_vectors(&self) -> impl Iterator<Item = AckVector<'a>> + use<'a> {
        let is_vector = |raw: RawOption<'_>| matches!(raw.kind, kind::ACK_VECTOR_0 | kind::ACK_VECTOR_1);
        let listed = self.iter().filter_map(Result::ok).filter(move |listed| is_vector(listed.raw));
        listed.filter_map(|listed| match listed.parse()? {
            Opt::AckVector(vector) => Some(vector),
            _ => None,
        })
    }

    /// The blocks of all Data Dropped options in order, newest packet first (RFC 4340 §11.7).
    pub fn dropped_runs(&self) -> impl Iterator<Item = DropRun> + use<'a> {
        let dropped = self.known().filter_map(|option| match option {
            Opt::DataDropped(dropped) => Some(dropped),
            _ => None,
        });
        dropped.flat_map(|dropped| dropped.runs())
    }
}

/// Walks through options; ends for good where a length makes no sense (RFC 4340 §5.8).
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
    on: Kind,
}

impl<'a> Iter<'a> {
    /// The next option of any type, Padding included.
    fn frame(&mut self) -> Option<RawOption<'a>> {
        let (&kind, rest) = self.rest.split_first()?;
        let (value, rest) = if kind <= kind::LAST_SINGLE {
            (&[][..], rest)
        } else {
            let (&len, rest) = rest.split_first()?;
            rest.split_at_checked(usize::from(len).checked_sub(2)?)?
        };
        self.rest = rest;
        Some(RawOption { kind, value })
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Listed<'a>, DanglingMandatory>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut mandatory = false;
        loop {
            let Some(raw) = self.frame() else {
                self.rest = &[];
                return mandatory.then_some(Err(DanglingMandatory));
            };
            match raw.kind {
                kind::PADDING => mandatory = false,
                kind::MANDATORY if self.on == Kind::Data => {}
                kind::MANDATORY if mandatory => {
                    self.rest = &[];
                    return Some(Err(DanglingMandatory));
                }
                kind::MANDATORY => mandatory = true,
                _ if self.on == Kind::Data && !allowed(raw.kind, self.on) => {}
                _ => return Some(Ok(Listed { mandatory, raw, on: self.on })),
            }
        }
    }
}

/// Returns `true` if an option has a meaning on packets of this type (RFC 4340 table 3, §6.6.1, §8.1.4, §11).
const fn allowed(option: u8, on: Kind) -> bool {
    match option {
        kind::CHANGE_L | kind::CHANGE_R => !matches!(on, Kind::Data),
        kind::CONFIRM_L | kind::CONFIRM_R => on.ack().is_some(),
        kind::INIT_COOKIE | kind::ELAPSED_TIME => on.ack().is_some(),
        kind::ACK_VECTOR_0 | kind::ACK_VECTOR_1 | kind::DATA_DROPPED => on.ack().is_some(),
        kind::PROTECTION => matches!(on, Kind::Request { .. } | Kind::Response { .. }),
        _ => true,
    }
}

/// An option that is understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opt<'a> {
    /// The receiver has trouble keeping up (§11.6).
    SlowReceiver,
    /// Change or Confirm (§6).
    Feature(FeatureOption<'a>),
    /// Part of an Init Cookie (§8.1.4).
    InitCookie(&'a [u8]),
    /// Packets without data just before this one (§7.7).
    NdpCount(u64),
    /// What has arrived (§11.4).
    AckVector(AckVector<'a>),
    /// Data that did not reach the application (§11.7).
    DataDropped(DataDropped<'a>),
    /// When the packet was sent, in units of 10 µs (§13.1).
    Timestamp(u32),
    /// A timestamp that came, and for how long it was held, in units of 10 µs (§13.3).
    TimestampEcho {
        /// The timestamp.
        echo: u32,
        /// For how long it was held.
        elapsed: u32,
    },
    /// Time since the packet that is acknowledged came, in units of 10 µs (§13.2).
    ElapsedTime(u32),
    /// CRC-32c of the data (§9.3).
    DataChecksum(u32),
    /// What protection the sender offers: the value of the key management parameter of
    /// draft-ietf-tsvwg-sctp-dtls-chunk. On Requests and Responses.
    Protection(&'a [u8]),
    /// An option that belongs to the CCID of one of the half-connections (§10.3).
    Ccid(RawOption<'a>),
}

impl<'a> Listed<'a> {
    /// The option, or `None` where its type is unknown, has no meaning on this type of packet, or its value is invalid:
    /// all of them are ignored unless mandatory.
    pub fn parse(&self) -> Option<Opt<'a>> {
        let RawOption { kind, value } = self.raw;
        if !allowed(kind, self.on) {
            return None;
        }
        match kind {
            kind::SLOW_RECEIVER => Some(Opt::SlowReceiver),
            kind::CHANGE_L..=kind::CONFIRM_R => FeatureOption::parse(kind, value).map(Opt::Feature),
            kind::INIT_COOKIE => Some(Opt::InitCookie(value)),
            kind::NDP_COUNT => ndp::parse(value).map(Opt::NdpCount),
            kind::ACK_VECTOR_0 | kind::ACK_VECTOR_1 => {
                Some(Opt::AckVector(AckVector::new(kind == kind::ACK_VECTOR_1, value)))
            }
            kind::DATA_DROPPED => Some(Opt::DataDropped(DataDropped::new(value))),
            kind::TIMESTAMP => timing::parse_timestamp(value).map(Opt::Timestamp),
            kind::TIMESTAMP_ECHO => {
                timing::parse_echo(value).map(|(echo, elapsed)| Opt::TimestampEcho { echo, elapsed })
            }
            kind::ELAPSED_TIME => timing::parse_elapsed(value).map(Opt::ElapsedTime),
            kind::DATA_CHECKSUM => simple::parse_checksum(value).map(Opt::DataChecksum),
            kind::PROTECTION => Some(Opt::Protection(value)),
            kind::CCID_FIRST.. => Some(Opt::Ccid(self.raw)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
