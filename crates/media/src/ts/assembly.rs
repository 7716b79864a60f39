use super::pes::PesHeader;
use super::{Codec, PACKET, Packet};
use crate::unit::{Kind, Run, Unit};
use braidcast_core::Instant;

/// What a unit is of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) kind: Kind,
    pub(crate) reference: bool,
    /// The frame began before it.
    pub(crate) continues: bool,
    /// The frame goes on behind it.
    pub(crate) more: bool,
}

impl Share {
    /// All of a frame, or what is none.
    pub(crate) const fn whole(kind: Kind) -> Self {
        Self { kind, reference: true, continues: false, more: false }
    }
}

/// A unit that is still growing: packets of one PID.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) pid: u16,
    pub(crate) codec: Codec,
    pub(crate) scrambled: bool,
    pub(crate) random_access: bool,
    pub(crate) first_captured: Instant,
    pub(crate) last_captured: Instant,
    /// The last packet's continuity counter.
    pub(crate) counter: u8,
    /// `true` if a packet had a payload: those that only carry a clock reference have none.
    pub(crate) has_payload: bool,
    /// Of the PES packet that begins with the first packet, if one does.
    pub(crate) pes: Option<PesHeader>,
    /// The last packet ends a PES packet that told no length.
    stuffed: bool,
    runs: Vec<Run>,
    bytes: Vec<u8>,
    /// Bytes of PES packet still to come, if its header told its length.
    left: Option<usize>,
}

impl Assembly {
    /// An empty unit of `packet`'s PID; the caller adds the packet.
    pub(crate) fn new(now: Instant, packet: &Packet<'_>, codec: Codec) -> Self {
        let pes = if packet.starts_unit() { PesHeader::parse(packet.payload()) } else { None };
        Self {
            pid: packet.pid(),
            codec,
            scrambled: false,
            random_access: false,
            first_captured: now,
            last_captured: now,
            counter: packet.counter(),
            has_payload: false,
            pes,
            stuffed: false,
            runs: Vec::new(),
            bytes: Vec::new(),
            left: pes.and_then(|pes| pes.length),
        }
    }

    /// Adds packet number `index` of the input, whose bytes are `bytes`.
    pub(crate) fn add(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET]) {
        let packet = Packet::new(bytes);
        self.scrambled |= packet.scrambled();
        self.random_access |= packet.random_access();
        self.last_captured = now;
        self.counter = packet.counter();
        self.has_payload |= !packet.payload().is_empty();
        self.stuffed = self.pes.is_some() && self.codec.is_video() && self.left.is_none() && packet.is_stuffed();
        self.left = self.left.map(|left| left.saturating_sub(packet.payload().len()));
        Run::append(&mut self.runs, index, false);
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns `true` if the PES packet has come to the end that its header announced.
    pub(crate) fn is_whole(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns `true` if stuffing says that the PES packet ends here. Few multiplexers stuff in the middle of one.
    pub(crate) fn is_stuffed(&self) -> bool {
        self.stuffed
    }

    /// Returns `true` if the last packet ends with what fills it up behind a section, or has nothing else.
    pub(crate) fn ends_stuffed(&self) -> bool {
        !self.has_payload || self.bytes.last() == Some(&0xff)
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn first_index(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.first)
    }

    /// Puts the payloads of its first `packets` packets one behind the other into `stream`, as far as they are the
    /// elementary stream.
    pub(crate) fn elementary_stream(&self, packets: usize, stream: &mut Vec<u8>) {
        stream.clear();
        for packet in self.bytes.as_chunks::<PACKET>().0.iter().take(packets) {
            stream.extend_from_slice(Packet::new(packet).payload());
        }
        stream.drain(..self.pes.map_or(0, |pes| pes.header).min(stream.len()));
    }

    /// The unit, with `nulls` (ascending runs of null packets) sorted in.
    pub(crate) fn finish(mut self, share: Share, nulls: &mut Vec<Run>) -> Unit {
        let Share { kind, reference, continues, more } = share;
        if !nulls.is_empty() {
            self.runs.append(nulls);
            self.runs.sort_unstable_by_key(|run| run.first);
        }
        Unit {
            kind,
            reference,
            continues: continues && kind.is_video(),
            more: more && kind.is_video(),
            pid: self.pid,
            runs: self.runs,
            bytes: self.bytes,
            first_captured: self.first_captured,
            last_captured: self.last_captured,
            pts: self.pes.and_then(|pes| pes.pts),
            dts: self.pes.and_then(|pes| pes.dts),
        }
    }
}
