//! One stream as it is served: what came of it, in numbers of its own.

use super::pieces::Piece;
use crate::identity::Identity;
use crate::mapping::{Frames, Shape};
use crate::wire::{self, Bytes, KINDS, Message, UnitHeader};
use braidcast_core::{Instant, Rng};
use braidcast_media::ts::{LatestTables, PACKET, Packet};
use braidcast_media::{Kind, Run};
use braidcast_sctp::{Frame, NeededBy};
use core::time::Duration;
use std::collections::VecDeque;

/// Bytes of messages that are kept for who comes or comes back.
const RECENT_BYTES: usize = 4 << 20;
/// Buffers kept for reuse; larger ones are not.
const MAX_SPARE: usize = 32;
const MAX_SPARE_BYTES: usize = 64 << 10;
/// What a stream's numbers, and those of its packets, are ahead of all before it: what comes of it
/// late has room below its first.
const GAP: u64 = 1 << 16;
/// Packets that a sender may leave out at once. One that leaves out more would use up the numbers of
/// whoever sends after it.
const LEAP: u64 = 1 << 32;
/// A stream that has shown no video by now has none.
const NO_VIDEO: Duration = Duration::from_secs(1);
/// What captures are behind the times of messages: none is before the beginning of time. No latency
/// is longer, 2³² µs.
const BEHIND: u64 = 1 << 32;

/// A unit or a part of one, ready to go.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) header: UnitHeader,
    pub(super) sequence: u64,
    /// Index of its first packet.
    pub(super) first: u64,
    /// When its first packet comes out of the server's own receiver.
    pub(super) due: Instant,
    /// [`Frame::due`] is that of the server's own receiver too.
    pub(super) frame: Frame,
    pub(super) message: Vec<u8>,
}

impl Sent {
    /// Returns `true` if a decoder can begin with it.
    pub(super) fn is_entry(&self) -> bool {
        self.header.kind == Kind::I && self.header.part == 0
    }

    /// Returns `true` if it is the first message of its unit.
    pub(super) const fn begins_unit(&self) -> bool {
        self.header.part == 0
    }
}

/// One stream, whoever sends it: a sender that takes the place of another goes on in the same numbers.
///
/// Memory: 4 MiB of messages, and 2 MiB for reuse; the program tables; about 100 bytes for each PID with video.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) name: String,
    /// What the present sender calls it, where the receiver takes any.
    pub(super) title: String,
    pub(super) identity: Identity,
    pub(super) incarnation: u64,
    source: Option<Source>,
    /// One more than the largest so far.
    next_sequence: u64,
    next_index: u64,
    tables: LatestTables,
    frames: Frames,
    /// Units that came so far, by [`Kind::index`].
    pub(super) captured: [u64; KINDS],
    /// Oldest first, as they came.
    pub(super) recent: VecDeque<Sent>,
    recent_bytes: usize,
    spare: Vec<Vec<u8>>,
    packets: Vec<u8>,
}

/// The stream that comes in.
#[derive(Debug)]
struct Source {
    id: (Identity, u64),
    since: Instant,
    /// The newest number, of 32 bits, and what it is here.
    newest: (u32, u64),
    /// What is added to the indexes of packets: here less there.
    shift: i64,
    has_video: bool,
    is_data: bool,
}

impl Feed {
    pub(super) fn new(name: &str, rng: &mut Rng) -> Self {
        Self {
            name: name.into(),
            title: String::new(),
            identity: Identity::random(rng),
            incarnation: rng.u64(),
            source: None,
            next_sequence: 0,
            next_index: 0,
            tables: LatestTables::new(),
            frames: Frames::default(),
            captured: [0; KINDS],
            recent: VecDeque::new(),
            recent_bytes: 0,
            spare: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Takes what came at `now`, which is then the newest of [`recent`](Self::recent). Returns `false` if it made no
    /// sense.
    pub(super) fn take(&mut self, now: Instant, piece: &Piece, message: &[u8]) -> bool {
        let Ok(Message::Unit { header, runs, bytes }) = Message::parse(message) else { return false };
        let first = runs.clone().next().map_or(0, |run| run.first);
        if self.source.as_ref().is_none_or(|source| source.id != piece.source) {
            self.begin(now, piece, &header, first);
        }
        self.look_into(bytes);
        let pid = self.packets.first_chunk().map_or(0, |packet: &[u8; PACKET]| Packet::new(packet).pid());
        if header.kind == Kind::Tables {
            let (packets, _) = self.packets.as_chunks::<PACKET>();
            packets.iter().for_each(|packet| self.tables.push(packet));
        }
        let Some(source) = &mut self.source else { return false };
        let ahead = header.sequence.wrapping_sub(source.newest.0).cast_signed();
        let sequence = source.newest.1.saturating_add_signed(i64::from(ahead));
        if ahead > 0 {
            source.newest = (header.sequence, sequence);
        }
        source.has_video |= header.kind.is_video();
        source.is_data |= header.kind == Kind::Data;
        let Some(first) = first.checked_add_signed(source.shift) else { return false };
        let last = runs.last().map_or(0, |run| run.end()).saturating_add_signed(source.shift);
        if last > self.next_index + LEAP {
            return false;
        }
        self.next_sequence = self.next_sequence.max(sequence + 1);
        self.next_index = self.next_index.max(last);
        let frame = self.place(&header, sequence, pid, piece.due);
        self.captured[header.kind.index()] += u64::from(header.part == 0);
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(message);
        let captured = (piece.due.as_micros() + BEHIND).saturating_sub(u64::from(header.latency));
        wire::renumber(&mut copy, sequence as u32, first, captured);
        self.recent_bytes += copy.len();
        self.recent.push_back(Sent { header, sequence, first, due: piece.due, frame, message: copy });
        true
    }

    /// Another sender, or the same one started anew: it goes on behind what there was.
    fn begin(&mut self, now: Instant, piece: &Piece, header: &UnitHeader, first: u64) {
        let (sequence, index) = match self.source {
            None => (0, 0),
            Some(_) => (self.next_sequence, self.next_index),
        };
        let shift = (index + GAP).cast_signed().saturating_sub_unsigned(first);
        let newest = (header.sequence, sequence + GAP);
        self.source = Some(Source { id: piece.source, since: now, newest, shift, has_video: false, is_data: false });
        self.tables = LatestTables::new();
        self.frames = Frames::default();
    }

    /// The packets of a message, one after the other.
    fn look_into(&mut self, bytes: Bytes<'_>) {
        self.packets.clear();
        bytes.append_to(&mut self.packets);
    }

    /// What the transport is to know of a frame. What comes behind later frames of its elementary stream,
    /// as it was repeated before it came here, is needed by them as much as its kind says.
    fn place(&mut self, header: &UnitHeader, sequence: u64, pid: u16, due: Instant) -> Frame {
        let bytes = u32::try_from(self.packets.len()).unwrap_or(u32::MAX);
        let latest = self.frames.latest(pid);
        if header.kind.is_video() && latest.is_some_and(|latest| latest > sequence) {
            let needed_by = if header.reference { NeededBy::Rest } else { NeededBy::Nothing };
            return Frame { needed_by, ..Frame::alone(sequence, pid, bytes, Some(due)) };
        }
        let shape = Shape {
            kind: header.kind,
            reference: header.reference,
            continues: latest == Some(sequence),
            more: header.more || header.part + 1 < header.parts,
            pid,
            bytes,
        };
        self.frames.next(sequence, shape, 1, Some(due)).frame
    }

    /// Lets go of what nobody can use any more: what was due `longest` ago, and the oldest beyond 4 MiB.
    pub(super) fn forget(&mut self, now: Instant, longest: Duration) {
        while self.recent.front().is_some_and(|it| it.due + longest <= now || self.recent_bytes > RECENT_BYTES) {
            let Some(Sent { mut message, .. }) = self.recent.pop_front() else { return };
            self.recent_bytes -= message.len();
            if self.spare.len() < MAX_SPARE && message.capacity() <= MAX_SPARE_BYTES {
                message.clear();
                self.spare.push(message);
            }
        }
    }

    /// Returns `true` if there is a stream, and was none, or another one, at `time`.
    pub(super) fn began_after(&self, time: Instant) -> bool {
        self.source.as_ref().is_some_and(|source| source.since >= time)
    }

    /// Returns `true` if who comes now need not wait for a frame to begin with, as there are none.
    pub(super) fn begins_anywhere(&self, now: Instant) -> bool {
        self.source.as_ref().is_some_and(|it| it.is_data || (!it.has_video && now.since(it.since) >= NO_VIDEO))
    }

    /// Writes the program tables that were shown last into `message`, as packets right before the frame `entry`.
    /// Returns `false` if there are none.
    pub(super) fn write_tables(&mut self, entry: usize, message: &mut Vec<u8>) -> bool {
        let Some(entry) = self.recent.get(entry) else { return false };
        self.packets.clear();
        self.tables.packets().for_each(|packet| self.packets.extend_from_slice(packet));
        let count = self.packets.len() / PACKET;
        if count == 0 || entry.first < count as u64 {
            return false;
        }
        let captured = (entry.due.as_micros() + BEHIND).saturating_sub(u64::from(entry.header.latency));
        let header = UnitHeader {
            kind: Kind::Tables,
            reference: true,
            reliable: false,
            again: false,
            sequence: entry.sequence.wrapping_sub(1) as u32,
            part: 0,
            parts: 1,
            more: false,
            captured,
            span: 0,
            latency: entry.header.latency,
            pts: None,
        };
        let run = Run { first: entry.first - count as u64, count: count as u32, null: false };
        wire::write_unit(message, &header, &[run], &self.packets, false);
        true
    }

    /// The time of messages about the clock, µs.
    pub(super) fn clock(now: Instant) -> u64 {
        now.as_micros() + BEHIND
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pieces;
    use super::*;
    use crate::receiver::ChannelId;

    #[test]
    fn a_sender_that_leaps_does_not_use_up_the_numbers_of_the_next() {
        let mut feed = Feed::new("", &mut Rng::from_seed(1));
        let mut take = |source: u64, first: u64| {
            let header = UnitHeader {
                kind: Kind::P,
                reference: true,
                reliable: false,
                again: false,
                sequence: 7,
                part: 0,
                parts: 1,
                more: false,
                captured: 0,
                span: 0,
                latency: 500_000,
                pts: None,
            };
            let (mut message, mut pieces) = (Vec::new(), Pieces::default());
            wire::write_unit(&mut message, &header, &[Run::one(first, false)], &[0x47; PACKET], false);
            pieces.push(ChannelId(0), (Identity([1; 16]), source), Instant::from_millis(500), &message);
            let (piece, message) = pieces.iter().next().unwrap();
            feed.take(Instant::ZERO, piece, message).then(|| feed.recent.back().unwrap().first)
        };
        assert_eq!(take(1, 5_000_000), Some(GAP));
        assert_eq!(take(1, 5_000_001), Some(GAP + 1));
        assert_eq!(take(1, 1 << 50), None);
        assert_eq!(take(2, 1 << 52), Some(2 * GAP + 2), "another sender goes on behind it");
    }
}
