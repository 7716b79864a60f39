use super::pes::PesHeader;
use super::{Codec, PACKET, Packet};
use crate::unit::{Kind, Run, Unit};
use braidcast_core::Instant;

/// A unit that is still growing: the packets of one PID since the last start of a PES packet.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) pid: u16,
    pub(crate) codec: Codec,
    /// `true` if the first packet starts a PES packet; otherwise this continues a unit that was cut.
    pub(crate) starts: bool,
    pub(crate) scrambled: bool,
    pub(crate) random_access: bool,
    pub(crate) last_captured: Instant,
    /// The last packet's continuity counter.
    pub(crate) counter: u8,
    /// `true` if a packet had a payload: those that only carry a clock reference have none.
    pub(crate) has_payload: bool,
    /// The last packet ends a PES packet that told no length.
    stuffed: bool,
    first_captured: Instant,
    runs: Vec<Run>,
    bytes: Vec<u8>,
    /// Bytes of PES packet still to come, if its header told its length.
    left: Option<usize>,
}

impl Assembly {
    /// An empty unit of `packet`'s PID; the caller adds the packet.
    pub(crate) fn new(now: Instant, packet: &Packet<'_>, codec: Codec) -> Self {
        let starts = packet.starts_unit();
        Self {
            pid: packet.pid(),
            codec,
            starts,
            scrambled: false,
            random_access: false,
            last_captured: now,
            counter: packet.counter(),
            has_payload: false,
            stuffed: false,
            first_captured: now,
            runs: Vec::new(),
            bytes: Vec::new(),
            left: if starts { PesHeader::parse(packet.payload()).and_then(|pes| pes.length) } else { None },
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
        self.stuffed = self.starts && self.codec.is_video() && self.left.is_none() && packet.is_stuffed();
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

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn first_index(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.first)
    }

    /// Puts the payloads of all packets one behind the other into `stream`, as far as they are the elementary
    /// stream, and gives the PES header before them.
    pub(crate) fn elementary_stream(&self, stream: &mut Vec<u8>) -> Option<PesHeader> {
        stream.clear();
        for packet in self.bytes.as_chunks::<PACKET>().0 {
            stream.extend_from_slice(Packet::new(packet).payload());
        }
        let pes = if self.starts { PesHeader::parse(stream) } else { None };
        stream.drain(..pes.map_or(0, |pes| pes.header).min(stream.len()));
        pes
    }

    /// The unit, with `nulls` (ascending runs of null packets) sorted in.
    pub(crate) fn finish(mut self, kind: Kind, reference: bool, pes: Option<PesHeader>, nulls: &mut Vec<Run>) -> Unit {
        if !nulls.is_empty() {
            self.runs.append(nulls);
            self.runs.sort_unstable_by_key(|run| run.first);
        }
        Unit {
            kind,
            reference,
            continues: !self.starts && kind.is_video(),
            pid: self.pid,
            runs: self.runs,
            bytes: self.bytes,
            first_captured: self.first_captured,
            last_captured: self.last_captured,
            pts: pes.and_then(|pes| pes.pts),
            dts: pes.and_then(|pes| pes.dts),
        }
    }
}
