//! Live media over several bad networks at once, without I/O: [`Unit`](braidcast_media::Unit)s go into a
//! [`Sender`], and bytes come out of a [`Receiver`] on time. Both are [`Machine`](braidcast_core::Machine)s around an
//! SCTP endpoint.
//!
//! Every unit is one message with a priority by its kind and a deadline, after which it could no
//! longer be shown; the transport decides what goes next, over which path, and what is too late.
//! The receiver puts the packets back into the order of the input and hands each out a fixed
//! latency after its capture; what has not come by then is skipped and counted, never waited for.
//!
//! Drive either end as [`Machine`](braidcast_core::Machine) says. On top of that:
//!
//! - at the sender, call [`Sender::push`] for each unit; in a reliable session it may give the unit back, to be
//!   pushed again after [`Event::Room`]. [`Sender::finish`] ends the session once everything promised is delivered.
//! - at the receiver, after each call and at each timeout call [`Receiver::poll_output`] for each
//!   channel until it says `false`. [`Event::Ended`] comes when a stream is over and everything has
//!   been handed out.
//!
//! Either end may dial: a sender that [listens](Sender::listen) is called by a receiver that
//! [calls](Receiver::call).
//!
//! A session is more than an association: the sender says in its first message whose stream it
//! carries ([`wire::Hello`]), makes another association when one breaks, and the stream goes on. In
//! a reliable session the receiver says what it has of it ([`Receiver::accept`]), the sender goes
//! on from there, and is done when that is written and flushed ([`Receiver::written`],
//! [`Receiver::flushed`]).
//!
//! A [`Server`] hands what a receiver takes on to many: each is a receiver that dials, with its own
//! paths, latency and repairs.
//!
//! [`tunnel`] carries what is no stream of ours: datagrams of any application, over DCCP.

mod account;
mod attempts;
mod clock;
mod dials;
mod event;
mod farewell;
mod identity;
mod log;
mod mapping;
mod options;
mod playout;
mod receiver;
mod redundancy;
mod report;
mod sender;
mod serve;
mod start_error;
mod tell;
pub mod tunnel;
pub mod wire;

pub use account::{KindReport, RecentKind};
pub use braidcast_rate::{RateLimits, RateReport};
pub use event::{Event, Offer};
pub use farewell::Farewell;
pub use identity::{Content, Digest, Identity};
pub use log::LogEntry;
pub use options::{Admission, ReceiverOptions, SLICE, SLICE_BYTES, SenderOptions, slice_of};
pub use receiver::{ChannelId, Permit, Receiver};
pub use redundancy::Redundancy;
pub use report::{PathReport, Report, SecurityReport};
pub use sender::Sender;
pub use serve::{Beside, ClientId, Entitled, Pieces, Server, ServerEvent, ServerOptions};
pub use start_error::StartError;
