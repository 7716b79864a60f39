//! The receiving half: what arrived, what is acknowledged, messages put together again.
//!
//! A DATA or I-DATA chunk takes this way: [`Tracker::unwrap`] and [`Tracker::observe`] decide whether it is new;
//! [`Reassembly::insert`] takes it in; after the last chunk of the packet [`AckTimer::on_data_packet`] decides when
//! to answer, where any arrival but `New { in_order: true, .. }` is a gap or a duplicate. A FORWARD-TSN goes to
//! [`Reassembly::skip_ssn`] (I-FORWARD-TSN: `skip_mid`) for each stream in it, then to
//! [`Reassembly::forward_tsn`] and [`Tracker::forward`].

mod ack;
mod echo;
mod fragment;
mod peer_clock;
mod pool;
mod reassembly;
mod runs;
mod slices;
mod streams;
mod timestamps;
mod tracker;
mod tsn_ring;

pub(crate) use ack::{AckPolicy, AckTimer};
pub(crate) use echo::Echoes;
pub(crate) use fragment::{Fragment, Key, ReassemblyError};
pub use reassembly::Received;
pub(crate) use reassembly::{Limits, Reassembly};
pub(crate) use slices::Slices;
pub(crate) use timestamps::{Timestamps, micros};
pub(crate) use tracker::{Arrival, Tracker};
pub(crate) use tsn_ring::TsnRing;
