//! Streams that share the capacity: evenly, by weight (RFC 8260 §3.5, §3.6), or packet by packet (§3.3).

use super::SendQueue;
use crate::api::StreamOrder;
use core::num::NonZeroU16;

/// What a byte costs a stream of weight 1.
const BYTE: u64 = 1 << 16;

/// What each stream was given, in bytes by weight: the one that has least is next. Start-time fair
/// queueing (Goyal, Vin and Cheng 1996) by chunk: who begins to wait has what the one had that was
/// served last, so that nobody saves up.
#[derive(Debug, Default)]
pub(super) struct Shares {
    streams: Vec<Share>,
    /// What the stream had that was served last, before it was.
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    given: u64,
    weight: NonZeroU16,
}

impl Shares {
    fn of(&mut self, id: u16) -> &mut Share {
        let needed = usize::from(id) + 1;
        if self.streams.len() < needed {
            self.streams.resize(needed, Share { given: 0, weight: NonZeroU16::MIN });
        }
        &mut self.streams[usize::from(id)]
    }

    /// What `id` was given.
    pub(super) fn given(&self, id: u16) -> u64 {
        self.streams.get(usize::from(id)).map_or(0, |share| share.given)
    }

    /// `id` waits from now on.
    pub(super) fn on_waiting(&mut self, id: u16) {
        if self.now > 0 || !self.streams.is_empty() {
            let now = self.now;
            let share = self.of(id);
            share.given = share.given.max(now);
        }
    }

    /// `id` is served `len` bytes, by its weight or not.
    pub(super) fn give(&mut self, id: u16, len: usize, weighted: bool) {
        let share = self.of(id);
        let weight = if weighted { u64::from(share.weight.get()) } else { 1 };
        let before = share.given;
        share.given = before.saturating_add((len as u64).max(1) * BYTE / weight);
        self.now = self.now.max(before);
    }
}

impl SendQueue {
    /// `stream` is to have `weight` times what one of weight 1 has, with [`StreamOrder::WeightedFair`].
    pub(crate) fn set_weight(&mut self, stream: u16, weight: NonZeroU16) {
        self.shares.of(stream).weight = weight;
    }

    /// A packet is full: the next one may be for another stream.
    pub(crate) fn end_packet(&mut self) {
        if self.order == StreamOrder::RoundRobinPacket
            && let Some(id) = self.packet_of.take()
            && self.under_way.is_none()
        {
            self.pass_turn(id);
        }
    }
}
