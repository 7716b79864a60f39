//! Both ends of SRT over the simulator's networks.

mod bonded;
mod common;
mod handshake;
mod media;
mod published;
mod rist;
mod rtmp;
mod strangers;
