//! SCTP (RFC 9260) without I/O, multihomed from the first line, for data that is worth sending for a while only.
//!
//! An [`Endpoint`] is a [`Machine`](braidcast_core::Machine): datagrams and time go in, datagrams, timers and events come
//! out. A path is a pair of local socket and remote address ([`Route`](braidcast_core::Route)); RTT, congestion window,
//! MTU and errors belong to a path, never to the association. New data goes over all paths at once (concurrent multipath
//! transfer); a path joins or leaves by an authenticated ASCONF that is sent from it, so NATs do not matter.
//!
//! Beside RFC 9260: I-DATA (RFC 8260), deadlines, partial reliability by lifetime or number of retransmissions (RFC 3758, 7496) with
//! the delayed abandonment of PR-CMT, authentication (RFC 4895), dynamic addresses (RFC 5061), path MTU discovery
//! (RFC 8899), loss detection by time (after RFC 8985).

mod addresses;
mod api;
mod assoc;
mod auth;
mod capabilities;
mod cookie;
mod endpoint;
mod journal;
mod number;
mod path;
mod rx;
mod tx;
pub mod wire;

pub use api::{
    Abandonment, Artx, ArtxFrom, BlockingReport, BufferSplit, CloseReason, CongestionOptions, ConnectError, CwndUnit,
    CwndUpdate, Event, FecLosses, FecWindow, JoinError, LimitOptions, LossDetection, MarkResponse, Options, PaperRules,
    PathOptions, PathReport, PathState, PrVariant, Priority, QueueOptions, QueueScope, RedundancyOptions, Reliability,
    RttSamples, SackOptions, SackPath, SackPolicy, SecurityOptions, SendError, SendOptions, Stats, StreamOrder,
    TimerOptions, Waits,
};
pub use assoc::Association;
pub use braidcast_cc::{Algorithm, Congestion, RtoBounds};
pub use braidcast_core::Misuse;
pub use braidcast_fec::Code;
pub use braidcast_mpath::{RetransmissionPolicy, SchedulerKind};
pub use braidcast_queue::{Limits, Method, Priority as MessagePriority, Why};
pub use braidcast_secure::{Fingerprint, KeyKind, Standing};
pub use endpoint::{AssociationId, Endpoint};
pub use rx::Received;
