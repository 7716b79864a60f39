//! Traces: what machines told ([`braidcast_core::events`]) as text, in the main schema of qlog
//! (draft-ietf-quic-qlog-main-schema) with namespaces of our own, one JSON text for each event
//! (JSON-SEQ, RFC 7464). `docs/traces.md` describes every event.

mod digits;
mod fields;
mod names;
mod reader;
mod writer;

pub use reader::{QlogReader, ReadError, Record};
pub use writer::{QlogHeader, QlogWriter};

/// The record separator of RFC 7464.
const SEPARATOR: u8 = 0x1e;
/// What the first record says of the file.
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";
/// What it says of a simulator's clock, which all of its hosts share.
const SIMULATED: &str = "simulated";
/// What the first record says of the events.
const EVENT_SCHEMAS: [&str; 3] =
    ["urn:braidcast:qlog:sctp-1", "urn:braidcast:qlog:dccp-1", "urn:braidcast:qlog:media-1"];
