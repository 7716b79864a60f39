use crate::seq::Seq;
use crate::wire::{Kind, Packet};
use braidcast_core::Ecn;

/// A packet with its numbers in full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    pub(super) packet: &'a Packet<'a>,
    pub(super) kind: Kind,
    pub(super) seq: Seq,
    pub(super) ack: Option<Seq>,
    pub(super) ecn: Ecn,
    /// Its data are key messages.
    pub(super) keys: bool,
}
