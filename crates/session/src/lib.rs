//! Live media over several bad networks at once, without I/O: [`Unit`](braidcast_media::Unit)s go into a
//! [`Sender`], and bytes come out of a [`Receiver`] on time. Both are [`Machine`](braidcast_core::Machine)s around an
//! SCTP endpoint.
//!
//! Every unit is one message with a priority by its kind and a lifetime that ends when it could no longer be
//! shown. The receiver puts the packets back into the order of the input and hands each out a fixed latency
//! after its capture; what has not come by then is skipped and counted, never waited for.
//!
//! Drive either end as [`Machine`](braidcast_core::Machine) says. On top of that:
//!
//! - at the sender, call [`Sender::push`] for each unit; in a reliable session it may give the unit back, to be
//!   pushed again after [`Event::Room`]. [`Sender::finish`] ends the session once everything promised is delivered.
//! - at the receiver, after each call and at each timeout call [`Receiver::poll_output`] until it says `false`.
//!   [`Event::Ended`] comes when the stream is over and everything has been handed out.
//!
//! [`tunnel`] carries what is no stream of ours: datagrams of any application, over DCCP.

mod clock;
mod event;
mod mapping;
mod playout;
mod receiver;
mod redundancy;
mod report;
mod sender;
mod start_error;
mod stream;
pub mod tunnel;
pub mod wire;

pub use event::Event;
pub use receiver::{LogEntry, Receiver, ReceiverOptions};
pub use redundancy::Redundancy;
pub use report::{KindReport, PathReport, Report};
pub use sender::{Sender, SenderOptions};
pub use start_error::StartError;
