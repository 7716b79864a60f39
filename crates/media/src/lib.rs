//! Media without I/O: bytes and the time they arrived go in, [`Unit`]s come out, one for each access unit,
//! audio packet or group of tables, every one knowing which packets of the input it is made of.
//!
//! - [`Input`] takes a byte stream or datagrams, finds out whether they are MPEG-TS, and cuts them into units.
//! - [`Pacer`] releases a recorded transport stream at the speed of its own clock.
//! - [`playable`] says which frames a viewer sees, given those that came on time.
//! - [`voice`] says how good a telephone call is, from the arrival times of its packets; [`video`]
//!   how good a video call.
//!
//! Units carry the original packets untouched, so whoever puts the packets of all units back into the order
//! of their indexes has the input again, byte for byte (garbage between packets apart, which is counted).

mod container;
mod input;
mod nal;
mod pcr;
mod playable;
mod rtp;
pub mod ts;
mod unit;
pub mod video;
pub mod voice;

pub use container::Container;
pub use input::{Format, Framing, Input, InputStats};
pub use pcr::{Pacer, PcrClock, Timing};
pub use playable::{Frame, Playback, playable};
pub use rtp::RtpStats;
pub use unit::{Kind, Packets, Run, Unit};
