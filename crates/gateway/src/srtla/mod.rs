//! SRTLA, the receiving half: one SRT connection whose packets come over several links (as Moblin, IRL Pro, BELABOX
//! and others send them).
//!
//! Nobody has written the protocol down but in code; this is after the packets of irlserver/srtla_send (MIT). A
//! sender registers a group in two steps, and then each of its links:
//!
//! 1. REG1 brings 128 bytes of the sender's choice and 128 that are ignored. REG2 comes back with the identifier: its
//!    first half is the sender's, its second ours.
//! 2. REG2 with the whole identifier, over each link. REG3 comes back.
//!
//! From then on SRT's packets go as they are. Each link is told which data packets came over it, ten at a time, and
//! keep-alives are sent back as they came. SRT's acknowledgements go over all links, everything else over the one
//! that was heard last.
//!
//! Nothing is kept of who only sent REG1, but for the 300 ms after which it is answered once more: our half of the
//! identifier is a code over the sender's.

mod bonds;
mod wire;

pub use bonds::{Bonds, LinkReport};
pub use wire::{Acknowledged, Packet, REGISTRATION};
