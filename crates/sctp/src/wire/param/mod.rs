//! Parameters of INIT, INIT-ACK, ASCONF, ASCONF-ACK and RE-CONFIG (RFC 9260 §3.3.2.1, RFC 3758, RFC
//! 4895, RFC 5061, RFC 6525, RFC 9653).

use core::net::{Ipv4Addr, Ipv6Addr};

use braidcast_core::Writer;

use super::{Causes, Entries, Entry, ParseError, RawTlv, tlv};

mod address;
pub mod kind;
mod list;
mod reconfiguration;

pub use address::Address;
pub(crate) use address::{emit_address, split_address};
pub use list::Parameters;
pub use reconfiguration::Reconfiguration;

/// A parameter of any type. All of them are framed as [`RawTlv`] draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter<'a> {
    /// State Cookie (RFC 9260 §3.3.3.1.1): whatever its sender put in.
    StateCookie(&'a [u8]),
    /// An address of the sender (RFC 9260 §3.3.2.1.1).
    Ipv4(Ipv4Addr),
    /// An address of the sender (RFC 9260 §3.3.2.1.2).
    Ipv6(Ipv6Addr),
    /// A parameter of the INIT that was not understood, whole (RFC 9260 §3.3.3.1.2).
    UnrecognizedParameter(&'a [u8]),
    /// The cookie should live this many milliseconds longer (RFC 9260 §3.3.2.1.3).
    CookiePreservative(u32),
    /// Host Name Address, deprecated: whoever gets it must abort, best with an Unresolvable Address
    /// cause that holds the whole parameter (RFC 9260 §3.3.2.1.4).
    HostName(&'a [u8]),
    /// Types of address parameters that the sender can use (RFC 9260 §3.3.2.1.5).
    SupportedAddressTypes(Entries<'a, u16>),
    /// The sender knows FORWARD-TSN (RFC 3758 §3.1).
    ForwardTsnSupported,
    /// Chunk types of extensions that the sender knows (RFC 5061 §4.2.7).
    SupportedExtensions(&'a [u8]),
    /// Random number for keys, 32 bytes from those who obey (RFC 4895 §3.1).
    Random(&'a [u8]),
    /// Chunk types that the sender wants authenticated (RFC 4895 §3.2).
    ChunkList(&'a [u8]),
    /// Who can agree on keys how (draft-ietf-tsvwg-sctp-dtls-chunk).
    KeyManagement(&'a [u8]),
    /// HMAC identifiers that the sender accepts, best first (RFC 4895 §3.3).
    HmacAlgorithms(Entries<'a, u16>),
    /// Add an address (RFC 5061 §4.2.1).
    AddIp {
        /// Names this request in the answer.
        correlation: u32,
        /// The address, or the wildcard.
        address: Address,
    },
    /// Remove an address (RFC 5061 §4.2.2).
    DeleteIp {
        /// Names this request in the answer.
        correlation: u32,
        /// The address; the wildcard stands for all but the packet's source.
        address: Address,
    },
    /// Please send to this address (RFC 5061 §4.2.4).
    SetPrimary {
        /// Names this request in the answer.
        correlation: u32,
        /// The address, or the wildcard.
        address: Address,
    },
    /// A request was refused (RFC 5061 §4.2.3).
    ErrorCauseIndication {
        /// Which request.
        correlation: u32,
        /// Why.
        causes: Causes<'a>,
    },
    /// A request was granted (RFC 5061 §4.2.5).
    SuccessIndication {
        /// Which request.
        correlation: u32,
    },
    /// Adaptation Layer Indication (RFC 5061 §4.2.6), for the application.
    AdaptationLayer(u32),
    /// The sender takes packets with a checksum of zero if this error detection method is in use (RFC 9653 §4).
    ZeroChecksumAcceptable(u32),
    /// A request or response about streams (RFC 6525 §4).
    Reconfiguration(Reconfiguration<'a>),
    /// The sender understands ECN (RFC 4960 appendix A).
    EcnCapable,
    /// The sender reads and writes the times of messages with a deadline (decision 39).
    TimedMessages,
    /// A type that is not known here; see [`UnknownAction`](super::UnknownAction).
    Unknown {
        /// The parameter type.
        kind: u16,
        /// The value without padding.
        value: &'a [u8],
    },
}

impl<'a> Parameter<'a> {
    /// What names this request of an ASCONF in the answer (RFC 5061 §4.2); `None` for what is no request.
    pub(crate) const fn correlation(&self) -> Option<u32> {
        match *self {
            Self::AddIp { correlation, .. }
            | Self::DeleteIp { correlation, .. }
            | Self::SetPrimary { correlation, .. } => Some(correlation),
            _ => None,
        }
    }

    /// Reads the value of `raw` as its type says.
    ///
    /// # Errors
    /// [`ParseError`] where the value is shorter or longer than the type's fields, or an address is none.
    pub fn parse(raw: RawTlv<'a>) -> Result<Self, ParseError> {
        let RawTlv { kind, value, .. } = raw;
        Ok(match kind {
            kind::STATE_COOKIE => Self::StateCookie(value),
            kind::IPV4 => Self::Ipv4(address::ipv4(raw)?),
            kind::IPV6 => Self::Ipv6(address::ipv6(raw)?),
            kind::UNRECOGNIZED => Self::UnrecognizedParameter(value),
            kind::COOKIE_PRESERVATIVE => Self::CookiePreservative(number(raw)?),
            kind::HOST_NAME => Self::HostName(value),
            kind::SUPPORTED_ADDRESS_TYPES => Self::SupportedAddressTypes(numbers(raw)?),
            kind::FORWARD_TSN_SUPPORTED => {
                raw.parameter_fields().end()?;
                Self::ForwardTsnSupported
            }
            kind::SUPPORTED_EXTENSIONS => Self::SupportedExtensions(value),
            kind::RANDOM => Self::Random(value),
            kind::CHUNK_LIST => Self::ChunkList(value),
            kind::KEY_MANAGEMENT => Self::KeyManagement(value),
            kind::HMAC_ALGORITHMS => Self::HmacAlgorithms(numbers(raw)?),
            kind::ADD_IP => {
                let (correlation, address) = address::request(raw)?;
                Self::AddIp { correlation, address }
            }
            kind::DELETE_IP => {
                let (correlation, address) = address::request(raw)?;
                Self::DeleteIp { correlation, address }
            }
            kind::SET_PRIMARY => {
                let (correlation, address) = address::request(raw)?;
                Self::SetPrimary { correlation, address }
            }
            kind::ERROR_CAUSE_INDICATION => {
                let mut fields = raw.parameter_fields();
                Self::ErrorCauseIndication { correlation: fields.u32()?, causes: Causes::new(fields.rest()) }
            }
            kind::SUCCESS_INDICATION => Self::SuccessIndication { correlation: number(raw)? },
            kind::ADAPTATION_LAYER => Self::AdaptationLayer(number(raw)?),
            kind::ECN_CAPABLE => {
                raw.parameter_fields().end()?;
                Self::EcnCapable
            }
            kind::TIMED_MESSAGES => {
                raw.parameter_fields().end()?;
                Self::TimedMessages
            }
            kind::ZERO_CHECKSUM_ACCEPTABLE => Self::ZeroChecksumAcceptable(number(raw)?),
            kind::OUTGOING_RESET..=kind::ADD_INCOMING => Self::Reconfiguration(Reconfiguration::parse(raw)?),
            kind => Self::Unknown { kind, value },
        })
    }

    /// The parameter type.
    pub const fn kind(&self) -> u16 {
        match *self {
            Self::StateCookie(_) => kind::STATE_COOKIE,
            Self::Ipv4(_) => kind::IPV4,
            Self::Ipv6(_) => kind::IPV6,
            Self::UnrecognizedParameter(_) => kind::UNRECOGNIZED,
            Self::CookiePreservative(_) => kind::COOKIE_PRESERVATIVE,
            Self::HostName(_) => kind::HOST_NAME,
            Self::SupportedAddressTypes(_) => kind::SUPPORTED_ADDRESS_TYPES,
            Self::ForwardTsnSupported => kind::FORWARD_TSN_SUPPORTED,
            Self::SupportedExtensions(_) => kind::SUPPORTED_EXTENSIONS,
            Self::Random(_) => kind::RANDOM,
            Self::ChunkList(_) => kind::CHUNK_LIST,
            Self::KeyManagement(_) => kind::KEY_MANAGEMENT,
            Self::HmacAlgorithms(_) => kind::HMAC_ALGORITHMS,
            Self::AddIp { .. } => kind::ADD_IP,
            Self::DeleteIp { .. } => kind::DELETE_IP,
            Self::SetPrimary { .. } => kind::SET_PRIMARY,
            Self::ErrorCauseIndication { .. } => kind::ERROR_CAUSE_INDICATION,
            Self::SuccessIndication { .. } => kind::SUCCESS_INDICATION,
            Self::AdaptationLayer(_) => kind::ADAPTATION_LAYER,
            Self::Reconfiguration(it) => it.kind(),
            Self::EcnCapable => kind::ECN_CAPABLE,
            Self::TimedMessages => kind::TIMED_MESSAGES,
            Self::ZeroChecksumAcceptable(_) => kind::ZERO_CHECKSUM_ACCEPTABLE,
            Self::Unknown { kind, .. } => kind,
        }
    }

    /// Appends the parameter, padded to four bytes from its own start; [`Parameters::new`] over several of them takes
    /// care of the last one's padding.
    pub fn emit(&self, w: &mut Writer<'_>) {
        let kind = self.kind();
        match *self {
            Self::StateCookie(bytes)
            | Self::UnrecognizedParameter(bytes)
            | Self::HostName(bytes)
            | Self::SupportedExtensions(bytes)
            | Self::Random(bytes)
            | Self::ChunkList(bytes)
            | Self::KeyManagement(bytes)
            | Self::Unknown { value: bytes, .. } => tlv::emit(w, kind, |w| w.bytes(bytes)),
            Self::Ipv4(v4) => emit_address(w, v4.into()),
            Self::Ipv6(v6) => emit_address(w, v6.into()),
            Self::SupportedAddressTypes(list) | Self::HmacAlgorithms(list) => {
                tlv::emit(w, kind, |w| w.bytes(list.as_bytes()));
            }
            Self::ForwardTsnSupported | Self::EcnCapable | Self::TimedMessages => tlv::emit(w, kind, |_| {}),
            Self::AddIp { correlation, address }
            | Self::DeleteIp { correlation, address }
            | Self::SetPrimary { correlation, address } => address::emit_request(w, kind, correlation, address),
            Self::ErrorCauseIndication { correlation, causes } => tlv::emit(w, kind, |w| {
                w.u32(correlation);
                w.bytes(causes.as_bytes());
            }),
            Self::Reconfiguration(it) => tlv::emit(w, kind, |w| it.emit_value(w)),
            Self::CookiePreservative(n)
            | Self::SuccessIndication { correlation: n }
            | Self::AdaptationLayer(n)
            | Self::ZeroChecksumAcceptable(n) => tlv::emit(w, kind, |w| w.u32(n)),
        }
    }
}

/// A value that is one 32-bit number.
fn number(raw: RawTlv<'_>) -> Result<u32, ParseError> {
    let mut fields = raw.parameter_fields();
    let n = fields.u32()?;
    fields.end().map(|()| n)
}

/// A value that is a list of 16-bit numbers.
fn numbers(raw: RawTlv<'_>) -> Result<Entries<'_, u16>, ParseError> {
    raw.parameter_fields().rest_of(u16::SIZE).map(Entries::new)
}

#[cfg(test)]
mod tests;
