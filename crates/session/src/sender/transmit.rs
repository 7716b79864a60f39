use super::Sender;
use super::given_up::context;
use crate::mapping::{self, CONTROL, Part, Place, control, micros};
use crate::playout::GRACE;
use crate::wire::{self, Clock, Hello, PPID, SESSION_VERSION, Start, UnitHeader};
use braidcast_core::Instant;
use braidcast_media::ts::PACKET;
use braidcast_media::{Kind, Run, Unit};
use braidcast_sctp::{MessagePriority, SendError, SendOptions};
use core::time::Duration;

/// A unit's number, and its place among the frames, which a reliable session does not know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) sequence: u64,
    pub(super) place: Option<Place>,
}

impl Named {
    /// The number of the frame that the unit is of: that of its first unit.
    pub(super) fn frame(&self) -> u64 {
        self.place.map_or(self.sequence, |place| place.frame.id)
    }
}

/// What the messages of one unit share, and which of them this is.
#[derive(Clone, Copy, Debug)]
struct Envelope {
    named: Named,
    part: u16,
    parts: u16,
    again: bool,
}

impl Sender {
    /// Sends the clock and the counts, or with `end` says that nothing comes after; `false` if
    /// there was no room.
    pub(super) fn send_clock(&mut self, now: Instant, end: bool) -> bool {
        let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) else { return false };
        let rtt = association.paths().filter_map(|path| path.min_rtt.or(path.srtt)).min().unwrap_or_default();
        let clock = Clock { sent: now.as_micros(), rtt: micros(rtt), captured: self.account.counts.captured };
        wire::write_clock(&mut self.message, &clock, end);
        // The end of a reliable stream comes after all of it.
        let how = SendOptions { unordered: !(end && self.options.reliable), ..mapping::clock(end) };
        association.send(now, &self.message, how).is_ok()
    }

    /// Says whose stream the association carries.
    pub(super) fn send_hello(&mut self, now: Instant) {
        let mut before = [0; wire::KINDS];
        if !self.options.reliable {
            let newest = self.newest.count();
            let counts = self.account.counts.captured.iter().zip(newest);
            before.iter_mut().zip(counts).for_each(|(to, (captured, kept))| *to = captured.saturating_sub(kept));
        }
        let hello = Hello {
            session: SESSION_VERSION,
            identity: self.identity,
            incarnation: self.incarnation,
            reliable: self.options.reliable,
            size: self.options.size,
            before,
            name: self.options.name.clone(),
        };
        wire::write_hello(&mut self.message, &hello);
        self.send_control(now, true);
    }

    /// Says from where on a reliable stream goes over this association.
    pub(super) fn begin_transfer(&mut self, now: Instant) {
        // What comes next is either kept here, or the application's next unit, which counts from 0
        // if it was asked.
        let offset = self.transfer.end() - self.transfer.unsent_bytes();
        let start = Start { offset, index: self.transfer.next_index() };
        wire::write_start(&mut self.message, &start);
        self.send_control(now, false);
    }

    /// Sends what was written into `message`; there is always room for it at the beginning of an
    /// association.
    fn send_control(&mut self, now: Instant, unordered: bool) {
        let how = SendOptions { unordered, ..control() };
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            let _sent = association.send(now, &self.message, how);
        }
    }

    /// Hands the messages of a unit to the association: one, or one for each of the `parts`.
    /// `again`: an earlier association had it. Returns as how many bytes it is carried.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        unit: &Unit,
        parts: Option<&[Part]>,
        named: Named,
        again: bool,
    ) -> Result<usize, SendError> {
        let first = named.place.map_or(0, |place| place.first_part);
        let Some(parts) = parts else {
            let envelope = Envelope { named, part: first, parts: first.saturating_add(1), again };
            return self.transmit_part(now, &envelope, unit, &unit.runs, &unit.bytes);
        };
        let count = first.saturating_add(u16::try_from(parts.len()).unwrap_or(u16::MAX));
        let mut carried = 0;
        for (part, piece) in (first..count).zip(parts) {
            let envelope = Envelope { named, part, parts: count, again };
            carried += self.transmit_part(now, &envelope, unit, &piece.runs, &unit.bytes[piece.bytes.clone()])?;
        }
        Ok(carried)
    }

    fn transmit_part(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        unit: &Unit,
        runs: &[Run],
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        let (captured, span) = capture_times(unit, runs);
        let header = UnitHeader {
            kind: unit.kind,
            reference: unit.reference,
            reliable: self.options.reliable,
            again: envelope.again,
            sequence: envelope.named.frame() as u32,
            part: envelope.part,
            parts: envelope.parts,
            more: unit.more && envelope.named.place.is_some(),
            captured: captured.as_micros(),
            span: micros(span),
            latency: if self.options.reliable { 0 } else { micros(self.options.latency) },
            pts: unit.pts,
        };
        let carried = wire::write_unit(&mut self.message, &header, runs, bytes, self.packs);
        let stream = if self.options.reliable {
            CONTROL
        } else {
            self.turns.stream(unit.kind, unit.reference, envelope.named.frame())
        };
        // So late the receiver still hands it out, if it knows its elementary stream.
        let grace = if unit.reference && unit.kind != Kind::Data { GRACE } else { Duration::ZERO };
        let how = SendOptions {
            stream,
            ppid: PPID,
            unordered: !self.options.reliable,
            deadline: (!self.options.reliable).then(|| unit.first_captured + self.options.latency + grace),
            context: context(envelope.named, unit.kind),
            priority: MessagePriority::new(mapping::priority(stream).index() as u8).unwrap_or(MessagePriority::LAST),
            frame: envelope.named.place.map(|place| place.frame).filter(|_| !self.options.reliable),
            ..SendOptions::default()
        };
        let association = self.id.and_then(|id| self.endpoint.association_mut(id)).ok_or(SendError::Closing)?;
        association.send(now, &self.message, how)?;
        Ok(carried)
    }
}

/// When the part of `unit` that holds `runs` began, and how long it took, by the places of its
/// packets in the whole.
fn capture_times(unit: &Unit, runs: &[Run]) -> (Instant, Duration) {
    let ends = |runs: &[Run]| (runs.first().map_or(0, |run| run.first), runs.last().map_or(0, |run| run.end() - 1));
    let ((from, to), (first, last)) = (ends(&unit.runs), ends(runs));
    let span = unit.last_captured.since(unit.first_captured);
    let place = |index: u64| span.mul_f64((index - from) as f64 / (to - from).max(1) as f64);
    (unit.first_captured + place(first), place(last).saturating_sub(place(first)))
}

/// Bytes of the messages that make up a unit, or these parts of it, at most.
pub(super) fn most_bytes(unit: &Unit, parts: Option<&[Part]>) -> usize {
    let nulls = match parts {
        None => wire::literal_nulls(&unit.runs),
        Some(parts) => parts.iter().map(|part| wire::literal_nulls(&part.runs)).sum(),
    };
    let parts = parts.map_or(1, <[Part]>::len);
    unit.bytes.len() + nulls as usize * PACKET + parts * wire::UNIT_HEADER + (unit.runs.len() + 2 * parts) * wire::RUN
}
