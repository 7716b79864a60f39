//! Both ends of SRT over the simulator's networks.

mod bonded;
mod common;
mod handshake;
mod media;
mod published;
mod rtmp;
mod strangers;
