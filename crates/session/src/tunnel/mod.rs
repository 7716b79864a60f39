//! A tunnel without I/O: any application's datagrams over DCCP, or over SCTP and several paths, by
//! the framing of decision 9.
//!
//! A [`Tunnel`] is a [`Machine`](braidcast_core::Machine) around DCCP's. Its sockets are those
//! towards other ends ([`Tunnel::serve`], [`Tunnel::dial`]), those that applications send to
//! ([`Tunnel::add_entrance`]), and one for each flow that leaves here, for which it asks with
//! [`TunnelEvent::WantSocket`].

mod calls;
mod carrier;
mod class;
mod event;
mod flow;
mod header;
mod link;
mod machine;
mod permit;
mod room;
mod settings;
mod tend;

pub use carrier::Farewell;
pub use class::Class;
pub use event::TunnelEvent;
pub use flow::{Count, Discards, Figures, Flow};
pub use header::{FlowId, Header, LEN as HEADER_LEN, Malformed};
pub use link::{Dropped, Link, MAX_FLOWS};
pub use machine::{LinkId, Tunnel};
pub use permit::Permit;
pub use room::{CLIENTS_PER_HOST, FLOWS_PER_HOST};
pub use settings::{SctpOptions, Settings};
