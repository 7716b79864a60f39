use core::fmt;

use braidcast_core::Writer;

use super::kind;
use crate::wire::{Entries, Entry, ParseError, RawTlv};

/// A parameter of a RE-CONFIG chunk (RFC 6525 §4). Requests have numbers, which count up from the
/// initial TSN of who makes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reconfiguration<'a> {
    /// The sender numbers messages of these streams from 0 again; of all, if none is listed (§4.1).
    OutgoingReset {
        /// The number of the request.
        request: u32,
        /// The number of the peer's request that this does, or of its last one.
        response: u32,
        /// The last TSN with the old numbers.
        last_tsn: u32,
        /// Which streams.
        streams: Entries<'a, u16>,
    },
    /// The receiver is to do that with its own streams (§4.2).
    IncomingReset {
        /// The number of the request.
        request: u32,
        /// Which streams of the receiver's.
        streams: Entries<'a, u16>,
    },
    /// All numbers of both directions are to begin anew, TSNs too (§4.3).
    TsnReset {
        /// The number of the request.
        request: u32,
    },
    /// What became of a request (§4.4).
    Response {
        /// The number of the request.
        response: u32,
        /// See [`ReconfigurationResult`](crate::ReconfigurationResult).
        result: u32,
        /// The sender's next TSN and the receiver's, in answers to [`TsnReset`](Self::TsnReset).
        next_tsns: Option<(u32, u32)>,
    },
    /// The number of streams that the sender wants to add (§4.5).
    AddOutgoing {
        /// The number of the request.
        request: u32,
        /// How many more.
        count: u16,
    },
    /// The number of streams that the receiver is to add (§4.6).
    AddIncoming {
        /// The number of the request.
        request: u32,
        /// How many more.
        count: u16,
    },
}

impl<'a> Reconfiguration<'a> {
    /// Reads the value of `raw`, whose type is one of RFC 6525's.
    pub(super) fn parse(raw: RawTlv<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.parameter_fields();
        let number = fields.u32()?;
        let parsed = match raw.kind {
            kind::OUTGOING_RESET => {
                let (response, last_tsn) = (fields.u32()?, fields.u32()?);
                let streams = fields.rest_of(u16::SIZE).map(Entries::new)?;
                return Ok(Self::OutgoingReset { request: number, response, last_tsn, streams });
            }
            kind::INCOMING_RESET => {
                let streams = fields.rest_of(u16::SIZE).map(Entries::new)?;
                return Ok(Self::IncomingReset { request: number, streams });
            }
            kind::RECONFIGURATION_RESPONSE => {
                let result = fields.u32()?;
                let next_tsns = if raw.value.len() > 8 { Some((fields.u32()?, fields.u32()?)) } else { None };
                Self::Response { response: number, result, next_tsns }
            }
            kind::ADD_OUTGOING => Self::AddOutgoing { request: number, count: added(&mut fields)? },
            kind::ADD_INCOMING => Self::AddIncoming { request: number, count: added(&mut fields)? },
            _ => Self::TsnReset { request: number },
        };
        fields.end().map(|()| parsed)
    }

    /// The parameter type.
    pub const fn kind(&self) -> u16 {
        match self {
            Self::OutgoingReset { .. } => kind::OUTGOING_RESET,
            Self::IncomingReset { .. } => kind::INCOMING_RESET,
            Self::TsnReset { .. } => kind::TSN_RESET,
            Self::Response { .. } => kind::RECONFIGURATION_RESPONSE,
            Self::AddOutgoing { .. } => kind::ADD_OUTGOING,
            Self::AddIncoming { .. } => kind::ADD_INCOMING,
        }
    }

    /// The number of this request; `None` if it is a response.
    pub const fn request(&self) -> Option<u32> {
        match *self {
            Self::OutgoingReset { request, .. }
            | Self::IncomingReset { request, .. }
            | Self::TsnReset { request }
            | Self::AddOutgoing { request, .. }
            | Self::AddIncoming { request, .. } => Some(request),
            Self::Response { .. } => None,
        }
    }

    /// Appends all but type and length.
    pub(super) fn emit_value(&self, w: &mut Writer<'_>) {
        match *self {
            Self::OutgoingReset { request, response, last_tsn, streams } => {
                [request, response, last_tsn].into_iter().for_each(|it| w.u32(it));
                w.bytes(streams.as_bytes());
            }
            Self::IncomingReset { request, streams } => {
                w.u32(request);
                w.bytes(streams.as_bytes());
            }
            Self::TsnReset { request } => w.u32(request),
            Self::Response { response, result, next_tsns } => {
                w.u32(response);
                w.u32(result);
                next_tsns.into_iter().flat_map(|(sender, receiver)| [sender, receiver]).for_each(|it| w.u32(it));
            }
            Self::AddOutgoing { request, count } | Self::AddIncoming { request, count } => {
                w.u32(request);
                w.u16(count);
                w.u16(0);
            }
        }
    }
}

/// A number of streams and 16 reserved bits.
fn added(fields: &mut crate::wire::fields::Fields<'_>) -> Result<u16, ParseError> {
    let count = fields.u16()?;
    fields.u16().map(|_| count)
}

impl fmt::Display for Reconfiguration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutgoingReset { request, response, last_tsn, streams } => {
                write!(f, "out-reset={request} response={response} last_tsn={last_tsn} streams={}", streams.len())
            }
            Self::IncomingReset { request, streams } => write!(f, "in-reset={request} streams={}", streams.len()),
            Self::TsnReset { request } => write!(f, "tsn-reset={request}"),
            Self::Response { response, result, .. } => write!(f, "response={response} result={result}"),
            Self::AddOutgoing { request, count } => write!(f, "add-out={request} count={count}"),
            Self::AddIncoming { request, count } => write!(f, "add-in={request} count={count}"),
        }
    }
}
