//! A small, true, deterministic discrete-event network simulator.
//!
//! It knows protocols only as [`Machine`](braidcast_core::Machine)s. Add machines as nodes of a [`Network`],
//! connect their interfaces by [`link`]s, and run:
//!
//! ```
//! use braidcast_sim::testing::Pinger;
//! use braidcast_sim::{Duplex, LinkModel, Network};
//! use core::time::Duration;
//!
//! let mut net = Network::new(1);
//! let a = net.add(Pinger::to(["10.0.1.1:9899"], Duration::from_millis(100)), ["10.0.0.1:9899"]);
//! let b = net.add(Pinger::answering(), ["10.0.1.1:9899"]);
//! net.connect((a, 0), (b, 0), Duplex::both(LinkModel::wire(8_000_000, Duration::from_millis(15))));
//! net.run_for(Duration::from_secs(1));
//! assert_eq!(net.node(a).received(), 10);
//! ```
//!
//! A [`Topology`] builds larger ones by name. The same seed and the same calls give the same bytes at the same
//! nanoseconds. The links alone ([`link::Link`]) serve the real-time emulator too. [`traffic`] has models of what
//! applications send and agents that send and measure it as datagrams; [`tcp`] is the traffic that they compete with.

mod event;
mod graph;
pub mod link;
mod net;
mod seed;
mod tap;
pub mod tcp;
pub mod testing;
mod topology;
pub mod traffic;

pub use graph::{Topology, TopologyError};
pub use link::{DropReason, Link, LinkModel, LinkStats};
pub use net::{Network, Packet};
pub use tap::{LinkTapEvent, TapAction, TapEvent};
pub use topology::{Duplex, Interface, LinkId, NodeId};
