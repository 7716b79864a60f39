//! One socket for messages over several networks at once: SCTP with concurrent multipath transfer
//! over UDP, encrypted, without root.
//!
//! A [`Socket`] is like a one-to-many socket of SCTP (RFC 6458 §3): it listens, connects, and
//! carries the messages of all its connections. It puts together what can be used by itself too:
//! `braidcast_sctp::Endpoint`, the protocol without I/O, `braidcast_driver::Driver`, the event
//! loop, and the keys of `braidcast_secure`. The C and the Python library (`bindings/`) are made of
//! it.
//!
//! # A message over two paths
//!
//! ```
//! use braidcast_socket::{Event, Path, Protection, SendOptions, Socket};
//! use std::time::Duration;
//!
//! let key = Protection::Key("a passphrase that both ends know".into());
//! let mut server = Socket::new(&key)?;
//! let at = [server.bind("127.0.0.1:0".parse()?)?, server.bind("127.0.0.1:0".parse()?)?];
//! server.listen();
//! let server = std::thread::spawn(move || -> Result<Vec<u8>, braidcast_socket::Error> {
//!     let mut message = Vec::new();
//!     loop {
//!         match server.poll(None)? {
//!             Some((connection, Event::Readable)) => { server.recv(connection, &mut message)?; }
//!             Some((_, Event::Closed { .. })) => return Ok(message),
//!             _ => {}
//!         }
//!     }
//! });
//!
//! let mut client = Socket::new(&key)?;
//! let connection = client.connect(&at.map(Path::to))?;
//! let mut up = 0;
//! while let Some((_, event)) = client.poll(Some(Duration::from_secs(10)))? {
//!     match event {
//!         Event::PathUp { .. } => up += 1,
//!         Event::Closed { .. } => break,
//!         _ => {}
//!     }
//!     if up == 2 {
//!         client.send(connection, b"hello over two paths", &SendOptions::default())?;
//!         client.shutdown(connection)?;
//!         up = 0;
//!     }
//! }
//! assert_eq!(server.join().unwrap()?, b"hello over two paths");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Messages as large as the networks carry
//!
//! An encoder asks before each frame, and sends what comes out with a deadline:
//!
//! ```no_run
//! use braidcast_socket::{ConnectionId, Error, RateLimits, RateOptions, SendOptions, Socket};
//! use std::time::Duration;
//!
//! # fn encode(bits: u64) -> Vec<u8> { vec![0; bits as usize / 8] }
//! fn begin(socket: &mut Socket, connection: ConnectionId) -> Result<(), Error> {
//!     let limits = RateLimits::new(300_000, 8_000_000);
//!     socket.follow_rate(connection, &RateOptions::new(limits))
//! }
//!
//! fn next_picture(socket: &mut Socket, connection: ConnectionId) -> Result<(), Error> {
//!     let Some(report) = socket.rate_report(connection)?.filter(|it| it.next_frame_bits > 0) else { return Ok(()) };
//!     let how = SendOptions::new().deadline(RateOptions::default().latency);
//!     socket.send(connection, &encode(report.next_frame_bits), &how)
//! }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod error;
mod event;
mod hub;
mod identity;
mod message;
mod path;
mod protection;
mod reason;
mod shared;
mod socket;
#[cfg(feature = "tokio")]
mod tasks;

pub use builder::{Profile, SocketBuilder};
pub use error::Error;
pub use event::{Event, Refused};
pub use identity::{Identity, Peer, Trust, fingerprint};
pub use message::{ConnectionId, Received, SendOptions};
pub use path::{Path, PathReport, PathState};
pub use protection::{Protection, Secured};
pub use reason::CloseReason;
pub use shared::{Closing, SharedSocket};
pub use socket::Socket;
#[cfg(feature = "tokio")]
pub use tasks::{AsyncSocket, Connection, ConnectionEvents, Incoming, Message, Messages};

/// Types of the fields of [`Options`], for [`SocketBuilder::options`].
pub mod options {
    pub use braidcast_core::events::{EventSink, Tracer};
    pub use braidcast_sctp::{
        Abandonment, Algorithm, Artx, ArtxFrom, BufferSplit, Congestion, CongestionOptions, CwndUnit, CwndUpdate,
        FecLosses, FecWindow, LimitOptions, Limits, LossDetection, MarkResponse, PaperRules, PathOptions,
        PathSelection, Priority, QueueOptions, QueueScope, RedundancyOptions, RetransmissionPolicy, RtoBounds,
        RttSamples, SackOptions, SackPath, SecurityOptions, StreamOrder, TimerOptions,
    };
}

pub use braidcast_core::Instant;
pub use braidcast_driver::{Bind, BindError, Carrier, Interfaces, Link, LinksError, Target, Via, Waker};
pub use braidcast_sctp::{
    Code as FecCode, ConnectError, JoinError, Method as QueueMethod, Misuse, Options, RateLimits, RateOptions,
    RateReport, SchedulerKind, SendError, Timing,
};
pub use braidcast_secure::{Fingerprint, Insecurity, SecretError};
