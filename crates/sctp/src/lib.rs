//! SCTP (RFC 9260) without I/O, multihomed from the first line, for data that is worth sending for a while only.
//!
//! An [`Endpoint`] is a [`Machine`](braidcast_core::Machine): datagrams and time go in, datagrams,
//! timers and events come out. A path is a pair of local socket and remote address
//! ([`Route`](braidcast_core::Route)); RTT, congestion window, MTU and errors belong to a path,
//! never to the association. New data goes over all paths at once (concurrent multipath transfer);
//! a path joins or leaves by an authenticated ASCONF that is sent from it, so NATs do not matter.
//!
//! Beside RFC 9260: I-DATA (RFC 8260), deadlines, partial reliability by lifetime or number of
//! retransmissions (RFC 3758, 7496) with the delayed abandonment of PR-CMT, authentication (RFC
//! 4895), dynamic addresses (RFC 5061), path MTU discovery (RFC 8899), loss detection by time
//! (after RFC 8985).
//!
//! # A message over two paths
//!
//! Here over simulated links; `braidcast_driver::Driver` moves the same machines' datagrams over real sockets.
//!
//! ```
//! use braidcast_core::{Rng, Route, SocketId};
//! use braidcast_sctp::{Endpoint, Options, SendOptions};
//! use braidcast_sim::{Duplex, Network, link::LinkModel};
//! use core::time::Duration;
//!
//! let (mut net, options, rng) = (Network::new(1), Options::live(), Rng::from_seed(1));
//! let port = options.local_port;
//! let ends = ["client", "server"].map(|name| Endpoint::new(options.clone(), rng.stream(name)).unwrap());
//! let [client, server] = ends;
//! let client = net.add(client, ["10.1.0.1:9000", "10.2.0.1:9000"]);
//! let server = net.add(server, ["10.1.0.2:9000", "10.2.0.2:9000"]);
//! let link = LinkModel::wire(2_000_000, Duration::from_millis(20));
//! let routes = [0, 1].map(|i| {
//!     net.connect((client, i), (server, i), Duplex::new(link.clone(), link.clone()));
//!     Route::new(SocketId(i), net.address((server, i)))
//! });
//!
//! net.with(server, |endpoint, _| endpoint.listen());
//! let id = net.with(client, |endpoint, now| endpoint.connect(now, port, &routes)).unwrap();
//! net.run_for(Duration::from_secs(1));
//! net.with(client, |endpoint, now| {
//!     let association = endpoint.association_mut(id).unwrap();
//!     assert_eq!(association.paths().count(), 2);
//!     association.send(now, b"hello", SendOptions::default()).unwrap();
//! });
//! net.run_for(Duration::from_secs(1));
//!
//! let mut message = Vec::new();
//! let id = net.node(server).associations().next().unwrap();
//! net.with(server, |endpoint, now| endpoint.association_mut(id).unwrap().recv(now, &mut message)).unwrap();
//! assert_eq!(message, b"hello");
//! ```

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
    Abandoned, Abandonment, AbandonmentPolicy, Artx, ArtxFrom, BlockingReport, BufferSplit, CloseReason,
    CongestionOptions, ConnectError, CwndUnit, CwndUpdate, Event, FecLosses, FecWindow, JoinError, LimitOptions,
    LossDetection, MarkResponse, Options, PaperRules, PathOptions, PathReport, PathState, PeerCause, PrVariant,
    Priority, QueueOptions, QueueScope, ReconfigurationResult, ReconfigureError, RedundancyOptions, Reliability,
    RttSamples, SackOptions, SackPath, SackPolicy, SecurityOptions, SendError, SendOptions, Stats, StreamChange,
    StreamOrder, StreamRequest, TimerOptions, Timing, Waits,
};
pub use assoc::Association;
pub use braidcast_cc::{Algorithm, Congestion, RtoBounds};
pub use braidcast_core::{Misuse, Reason};
pub use braidcast_fec::Code;
pub use braidcast_mpath::{PathSelection, RetransmissionPolicy, SchedulerKind};
pub use braidcast_queue::{Frame, Limits, Method, NeededBy, Priority as MessagePriority, Why};
pub use braidcast_rate::{RateLimits, RateOptions, RateReport};
pub use braidcast_secure::{Fingerprint, Insecure, Insecurity, KeyKind, Standing};
pub use endpoint::{AssociationId, Endpoint};
pub use rx::Received;
