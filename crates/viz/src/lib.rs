//! PacketViz: traces as one page that a browser shows without anything else, with four views: the
//! exchange of packets, what paths did over time, frames and what became of them, and sequence
//! numbers.
//!
//! [`Exchange`] takes records of one or both ends and joins what both tell of the same packet;
//! [`Exchange::page`] is the page. The data goes into it as columns of numbers, which a canvas
//! draws; nothing that stands in a trace becomes a part of the page's script.

mod capture;
mod clocks;
mod columns;
mod exchange;
mod frames;
mod gaps;
mod page;
mod passages;
mod perfetto;
mod rows;

pub use capture::Listener;
pub use exchange::{EndId, Exchange};
