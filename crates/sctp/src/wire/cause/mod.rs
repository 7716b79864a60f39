//! Error causes of ERROR, ABORT and ASCONF-ACK (RFC 9260 §3.3.10, RFC 5061 §4.3, RFC 4895 §4.1).

use core::fmt;

use braidcast_core::{Writer, words};

use super::{Entries, Entry, Parameters, ParseError, RawTlv, tlv};

pub mod kind;
mod list;

pub use list::Causes;

/// An error cause of any code, framed as [`RawTlv`] draws. `Display` starts with the RFC's name, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause<'a> {
    /// DATA came on a stream that does not exist (RFC 9260 §3.3.10.1).
    InvalidStream {
        /// Which stream.
        stream: u16,
    },
    /// INIT or INIT-ACK lacks parameters of these types (RFC 9260 §3.3.10.2).
    MissingParameters(Entries<'a, u16>),
    /// The State Cookie is good but too old (RFC 9260 §3.3.10.3).
    StaleCookie {
        /// By how many microseconds; 0 if not said.
        staleness: u32,
    },
    /// The sender is out of resource (RFC 9260 §3.3.10.4).
    OutOfResource,
    /// An address parameter, here whole, that the sender cannot use (RFC 9260 §3.3.10.5).
    UnresolvableAddress(&'a [u8]),
    /// A chunk, here whole, that the sender does not know (RFC 9260 §3.3.10.6).
    UnrecognizedChunk(&'a [u8]),
    /// A mandatory parameter of INIT or INIT-ACK has an invalid value (RFC 9260 §3.3.10.7).
    InvalidMandatoryParameter,
    /// Parameters that the sender does not know (RFC 9260 §3.3.10.8).
    UnrecognizedParameters(Parameters<'a>),
    /// A DATA chunk had no payload (RFC 9260 §3.3.10.9).
    NoUserData {
        /// Its TSN.
        tsn: u32,
    },
    /// A COOKIE-ECHO came in SHUTDOWN-ACK-SENT (RFC 9260 §3.3.10.10).
    CookieWhileShuttingDown,
    /// An INIT for an association that stands brought these new addresses (RFC 9260 §3.3.10.11).
    RestartWithNewAddresses(Parameters<'a>),
    /// The application aborted; its reason, UTF-8 by custom (RFC 9260 §3.3.10.12).
    UserInitiatedAbort(&'a [u8]),
    /// The peer broke the protocol; details, UTF-8 by custom (RFC 9260 §3.3.10.13).
    ProtocolViolation(&'a [u8]),
    /// Delete IP would leave no address; the request (RFC 5061 §4.3.1).
    DeleteLastAddress(&'a [u8]),
    /// No resources for the request (RFC 5061 §4.3.2).
    ResourceShortage(&'a [u8]),
    /// Delete IP for the packet's own source; the request (RFC 5061 §4.3.3).
    DeleteSourceAddress(&'a [u8]),
    /// ASCONF-ACK with a serial number not yet used (RFC 5061 §4.3.4).
    IllegalAsconfAck,
    /// The request is not allowed (RFC 5061 §4.3.5).
    NoAuthorization(&'a [u8]),
    /// AUTH with an HMAC that the sender did not offer (RFC 4895 §4.1).
    UnsupportedHmac {
        /// The HMAC identifier.
        hmac_id: u16,
    },
    /// No keys can be agreed on (draft-ietf-tsvwg-sctp-dtls-chunk).
    NoProtection {
        /// Which of the four causes says why.
        kind: u16,
    },
    /// A code that is not known here.
    Unknown {
        /// The cause code.
        kind: u16,
        /// The cause-specific information without padding.
        value: &'a [u8],
    },
}

impl<'a> Cause<'a> {
    /// Reads the information of `raw` as its code says.
    ///
    /// # Errors
    /// [`ParseError::Length`] where the information is shorter or longer than the code's fields.
    pub fn parse(raw: RawTlv<'a>) -> Result<Self, ParseError> {
        let RawTlv { kind, value, .. } = raw;
        let mut fields = raw.cause_fields();
        let cause = match kind {
            kind::INVALID_STREAM => {
                let stream = fields.u16()?;
                let _reserved = fields.u16()?;
                Self::InvalidStream { stream }
            }
            kind::MISSING_PARAMETERS => {
                // A count beyond what a length can say is beyond what is left, too.
                let count = usize::try_from(fields.u32()?).unwrap_or(usize::MAX);
                Self::MissingParameters(Entries::new(fields.take(count.saturating_mul(u16::SIZE))?))
            }
            kind::STALE_COOKIE => Self::StaleCookie { staleness: fields.u32()? },
            kind::OUT_OF_RESOURCE => Self::OutOfResource,
            kind::INVALID_MANDATORY_PARAMETER => Self::InvalidMandatoryParameter,
            kind::NO_USER_DATA => Self::NoUserData { tsn: fields.u32()? },
            kind::COOKIE_WHILE_SHUTTING_DOWN => Self::CookieWhileShuttingDown,
            kind::ILLEGAL_ASCONF_ACK => Self::IllegalAsconfAck,
            kind::UNSUPPORTED_HMAC => Self::UnsupportedHmac { hmac_id: fields.u16()? },
            kind::NO_PROTECTION..=kind::LAST_NO_PROTECTION => Self::NoProtection { kind },
            _ => return Ok(Self::of_any_length(kind, value)),
        };
        fields.end().map(|()| cause)
    }

    const fn of_any_length(kind: u16, value: &'a [u8]) -> Self {
        match kind {
            kind::UNRESOLVABLE_ADDRESS => Self::UnresolvableAddress(value),
            kind::UNRECOGNIZED_CHUNK => Self::UnrecognizedChunk(value),
            kind::UNRECOGNIZED_PARAMETERS => Self::UnrecognizedParameters(Parameters::new(value)),
            kind::RESTART_WITH_NEW_ADDRESSES => Self::RestartWithNewAddresses(Parameters::new(value)),
            kind::USER_INITIATED_ABORT => Self::UserInitiatedAbort(value),
            kind::PROTOCOL_VIOLATION => Self::ProtocolViolation(value),
            kind::DELETE_LAST_ADDRESS => Self::DeleteLastAddress(value),
            kind::RESOURCE_SHORTAGE => Self::ResourceShortage(value),
            kind::DELETE_SOURCE_ADDRESS => Self::DeleteSourceAddress(value),
            kind::NO_AUTHORIZATION => Self::NoAuthorization(value),
            _ => Self::Unknown { kind, value },
        }
    }

    /// The cause code.
    pub const fn kind(&self) -> u16 {
        match *self {
            Self::InvalidStream { .. } => kind::INVALID_STREAM,
            Self::MissingParameters(_) => kind::MISSING_PARAMETERS,
            Self::StaleCookie { .. } => kind::STALE_COOKIE,
            Self::OutOfResource => kind::OUT_OF_RESOURCE,
            Self::UnresolvableAddress(_) => kind::UNRESOLVABLE_ADDRESS,
            Self::UnrecognizedChunk(_) => kind::UNRECOGNIZED_CHUNK,
            Self::InvalidMandatoryParameter => kind::INVALID_MANDATORY_PARAMETER,
            Self::UnrecognizedParameters(_) => kind::UNRECOGNIZED_PARAMETERS,
            Self::NoUserData { .. } => kind::NO_USER_DATA,
            Self::CookieWhileShuttingDown => kind::COOKIE_WHILE_SHUTTING_DOWN,
            Self::RestartWithNewAddresses(_) => kind::RESTART_WITH_NEW_ADDRESSES,
            Self::UserInitiatedAbort(_) => kind::USER_INITIATED_ABORT,
            Self::ProtocolViolation(_) => kind::PROTOCOL_VIOLATION,
            Self::DeleteLastAddress(_) => kind::DELETE_LAST_ADDRESS,
            Self::ResourceShortage(_) => kind::RESOURCE_SHORTAGE,
            Self::DeleteSourceAddress(_) => kind::DELETE_SOURCE_ADDRESS,
            Self::IllegalAsconfAck => kind::ILLEGAL_ASCONF_ACK,
            Self::NoAuthorization(_) => kind::NO_AUTHORIZATION,
            Self::UnsupportedHmac { .. } => kind::UNSUPPORTED_HMAC,
            Self::NoProtection { kind } | Self::Unknown { kind, .. } => kind,
        }
    }

    /// Appends the cause, padded to four bytes from its own start; [`Causes::new`] over several of them takes care of
    /// the last one's padding.
    pub fn emit(&self, w: &mut Writer<'_>) {
        tlv::emit(w, self.kind(), |w| match *self {
            Self::InvalidStream { stream } => {
                w.u16(stream);
                w.u16(0);
            }
            Self::MissingParameters(list) => {
                // No list is longer than a 16-bit length allows.
                w.u32(list.len() as u32);
                w.bytes(list.as_bytes());
            }
            Self::StaleCookie { staleness: n } | Self::NoUserData { tsn: n } => w.u32(n),
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieWhileShuttingDown
            | Self::NoProtection { .. }
            | Self::IllegalAsconfAck => {}
            Self::UnrecognizedParameters(list) | Self::RestartWithNewAddresses(list) => w.bytes(list.as_bytes()),
            Self::UnsupportedHmac { hmac_id } => w.u16(hmac_id),
            Self::UnresolvableAddress(value)
            | Self::UnrecognizedChunk(value)
            | Self::UserInitiatedAbort(value)
            | Self::ProtocolViolation(value)
            | Self::DeleteLastAddress(value)
            | Self::ResourceShortage(value)
            | Self::DeleteSourceAddress(value)
            | Self::NoAuthorization(value)
            | Self::Unknown { value, .. } => w.bytes(value),
        });
    }

    /// The RFC's name of the cause.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InvalidStream { .. } => "Invalid Stream Identifier",
            Self::MissingParameters(_) => "Missing Mandatory Parameter",
            Self::StaleCookie { .. } => "Stale Cookie",
            Self::OutOfResource => "Out of Resource",
            Self::UnresolvableAddress(_) => "Unresolvable Address",
            Self::UnrecognizedChunk(_) => "Unrecognized Chunk Type",
            Self::InvalidMandatoryParameter => "Invalid Mandatory Parameter",
            Self::UnrecognizedParameters(_) => "Unrecognized Parameters",
            Self::NoUserData { .. } => "No User Data",
            Self::CookieWhileShuttingDown => "Cookie Received While Shutting Down",
            Self::RestartWithNewAddresses(_) => "Restart of an Association with New Addresses",
            Self::UserInitiatedAbort(_) => "User-Initiated Abort",
            Self::ProtocolViolation(_) => "Protocol Violation",
            Self::DeleteLastAddress(_) => "Request to Delete Last Remaining IP Address",
            Self::ResourceShortage(_) => "Operation Refused Due to Resource Shortage",
            Self::DeleteSourceAddress(_) => "Request to Delete Source IP Address",
            Self::IllegalAsconfAck => "Association Aborted Due to Illegal ASCONF-ACK",
            Self::NoAuthorization(_) => "Request Refused - No Authorization",
            Self::UnsupportedHmac { .. } => "Unsupported HMAC Identifier",
            Self::NoProtection { kind: kind::NO_PROTECTION } => "Missing DTLS Chunk Support",
            Self::NoProtection { kind: 101 } => "No Common DTLS Key Management Method",
            Self::NoProtection { kind: 102 } => "DTLS Key Management Tie Breaker Collision",
            Self::NoProtection { .. } => "Incompatible DTLS Key Management Roles",
            Self::Unknown { .. } => "Unknown error cause",
        }
    }
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::InvalidStream { stream } => write!(f, " {stream}"),
            Self::MissingParameters(list) => write!(f, " {list}"),
            Self::StaleCookie { staleness } if staleness > 0 => write!(f, ", {staleness} µs too old"),
            Self::UnrecognizedChunk(&[kind, ..]) => write!(f, " {kind:#04x}"),
            Self::UnrecognizedParameters(list) | Self::RestartWithNewAddresses(list) => write!(f, " {list}"),
            Self::NoUserData { tsn } => write!(f, " in TSN {tsn}"),
            Self::UserInitiatedAbort(text) | Self::ProtocolViolation(text) if !text.is_empty() => {
                write!(f, ": \"{}\"", words(text))
            }
            Self::UnsupportedHmac { hmac_id } => write!(f, " {hmac_id}"),
            Self::Unknown { kind, value } => write!(f, " {kind:#06x} with {} bytes", value.len()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
