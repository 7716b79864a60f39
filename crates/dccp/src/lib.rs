//! DCCP (RFC 4340) without I/O: datagrams that may be lost, but are sent at a fair rate.
//!
//! An [`Endpoint`] is a [`Machine`](braidcast_core::Machine): datagrams and time go in, datagrams,
//! timers and events come out. It speaks straight over IP or in UDP (RFC 6773). Each direction of a
//! [`Connection`] has a congestion control of its own, the [`Ccid`]; when that lets a packet out,
//! and not before, the message that goes is chosen.
//!
//! With [`Options::security`] all packets are protected, and keys agreed on first.
//!
//! All of RFC 4340 but mobility; service codes (RFC 5595); CCIDs 2, 3 and 4 (RFC 4341, 4342, 5622),
//! of which 4 comes in three variants; CUBIC as an experiment.

mod ackvec;
mod api;
mod ccid;
mod conn;
mod endpoint;
mod feature;
mod rate_limit;
mod seq;
pub mod wire;

pub use api::{
    Admission, Call, CloseReason, ConnectError, Event, ListenError, OneWayDelay, Options, ReorderOptions,
    ReorderReport, Report, SecurityOptions, SendError, SendOptions, State, Stats, TfrcOptions, Verdict, Wanted,
};
pub use braidcast_cc::Algorithm;
pub use braidcast_cc::tfrc::{FeedbackRate, Rules, Variant};
pub use braidcast_core::Misuse;
pub use braidcast_queue::{Limits, Method, Priority, Why};
pub use braidcast_secure::{Fingerprint, KeyKind, Standing};
pub use ccid::{Ccid, CcidReport};
pub use conn::Connection;
pub use endpoint::{ConnectionId, Endpoint};
pub use seq::Seq;
pub use wire::ServiceCode;
