//! Which stream a unit travels on, how urgent it is, and how one that is too large is cut.

use crate::wire::PPID;
use braidcast_core::Instant;
use braidcast_media::ts::PACKET;
use braidcast_media::{Kind, Run, Unit};
use braidcast_sctp::{Frame, NeededBy, Priority, Reliability, SendOptions};
use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeMap;

/// Streams of the first priority, and how many there are of each of the others.
const FIRST: u16 = 2;
const RANKS: u16 = 4;
/// Frames take this many streams of their rank in turn: of a stream the transport begins one message at most before its
/// turn (decision 41). All streams fit in the 64 that an association has by default.
const TURNS: u16 = 15;
/// Streams that a session uses.
pub(crate) const STREAMS: u16 = FIRST + RANKS * TURNS;
/// The stream of clock, end and feedback messages, and of tables. In a reliable session, of
/// everything.
pub(crate) const CONTROL: u16 = 0;
/// A clock message older than this would tell nothing new.
const CLOCK_LIFETIME: Duration = Duration::from_millis(500);
/// Packets with bytes in one part: 192 kB, so that a part is small against the send buffer.
const PART_PACKETS: u32 = 1024;
/// Null packets in one part.
const PART_NULLS: u32 = 16_384;
/// Runs in one part.
const PART_RUNS: usize = 4096;

/// How messages about the session go.
pub(crate) fn control() -> SendOptions {
    SendOptions { stream: CONTROL, ppid: PPID, unordered: true, context: u64::MAX, ..SendOptions::default() }
}

/// How a clock message goes, or with `end` the last one, which says that nothing comes after.
pub(crate) fn clock(end: bool) -> SendOptions {
    let reliability = if end { Reliability::Reliable } else { Reliability::Lifetime(CLOCK_LIFETIME) };
    SendOptions { reliability, ..control() }
}

/// µs of `d`, at most 71 minutes, as headers have them.
pub(crate) fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}

/// Numbers frames and says what each needs, for each elementary stream by itself. Units come in the
/// order of decoding.
///
/// The model is that of all encoders for live video: a P frame references the I or P frame before
/// it, so that all that follows it in its group needs it; a B frame references the latest frame
/// before it that is a reference, and so does a P frame that is none (temporal layers). What stands
/// first of an elementary stream begins a group whatever it is, since some streams have no I frames.
///
/// Memory: about 100 bytes for each PID with video.
#[derive(Debug, Default)]
pub(crate) struct Frames(BTreeMap<u16, Video>);

/// What came last of an elementary stream.
#[derive(Clone, Copy, Debug)]
struct Video {
    group: u64,
    /// The latest I or P frame.
    chain: Option<u64>,
    /// The latest frame that others reference.
    reference: Option<u64>,
    latest: Frame,
    /// As its first unit said.
    kind: Kind,
    is_reference: bool,
    /// Bytes and messages of it that have come.
    bytes: u32,
    parts: u16,
}

/// What the place of a unit among the frames depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    pub(crate) reference: bool,
    pub(crate) continues: bool,
    pub(crate) more: bool,
    pub(crate) pid: u16,
    pub(crate) bytes: u32,
}

impl From<&Unit> for Shape {
    fn from(unit: &Unit) -> Self {
        let Unit { kind, reference, continues, more, pid, ref bytes, .. } = *unit;
        let bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self { kind, reference, continues, more, pid, bytes }
    }
}

/// A unit's place among the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// What the transport is to know of the frame.
    pub(crate) frame: Frame,
    /// Messages of the frame before this unit's.
    pub(crate) first_part: u16,
}

impl Frames {
    /// A unit that continues a frame is what the frame's first unit was; if that is not known, it stands for itself.
    pub(crate) fn adopt(&self, unit: &mut Unit) {
        if !unit.continues {
            return;
        }
        match self.0.get(&unit.pid) {
            Some(video) => (unit.kind, unit.reference) = (video.kind, video.is_reference),
            None => unit.continues = false,
        }
    }

    /// The number of the frame that came last of an elementary stream.
    pub(crate) fn latest(&self, pid: u16) -> Option<u64> {
        self.0.get(&pid).map(|video| video.latest.id)
    }

    /// Returns the place of the unit with this number, which was [adopted](Self::adopt), goes in `parts` messages, and
    /// is to be shown at `due`.
    pub(crate) fn next(&mut self, sequence: u64, unit: impl Into<Shape>, parts: u16, due: Option<Instant>) -> Place {
        let unit = unit.into();
        let bytes = unit.bytes;
        // At least a packet of what is still to come.
        let more = if unit.more { PACKET as u32 } else { 0 };
        let alone = Frame::alone(sequence, unit.pid, bytes.saturating_add(more), due);
        if !unit.kind.is_video() {
            return Place { frame: alone, first_part: 0 };
        }
        let before = self.0.get(&unit.pid).copied();
        if let Some(video) = self.0.get_mut(&unit.pid).filter(|_| unit.continues) {
            let first_part = video.parts;
            video.parts = video.parts.saturating_add(parts);
            video.bytes = video.bytes.saturating_add(bytes);
            video.latest.bytes = video.bytes.saturating_add(more);
            // It is played as it came in.
            video.latest.due = due;
            return Place { frame: video.latest, first_part };
        }
        let before = before.filter(|_| unit.kind != Kind::I);
        let (chain, reference) = before.map_or((None, None), |video| (video.chain, video.reference));
        let (needs, needed_by) = match unit.kind {
            Kind::B if unit.reference => (chain, NeededBy::Some),
            Kind::B | Kind::P if !unit.reference => (reference, NeededBy::Nothing),
            _ => (chain, NeededBy::Rest),
        };
        let group = before.map_or(sequence, |video| video.group);
        let latest = Frame { group, needs, needed_by, ..alone };
        let own = |replaces: bool, before| if replaces { Some(sequence) } else { before };
        let video = Video {
            group,
            chain: own(needed_by == NeededBy::Rest, chain),
            reference: own(needed_by != NeededBy::Nothing, reference),
            latest,
            kind: unit.kind,
            is_reference: unit.reference,
            bytes,
            parts,
        };
        self.0.insert(unit.pid, video);
        Place { frame: latest, first_part: 0 }
    }
}

/// Which stream of its rank each frame takes.
#[derive(Clone, Debug)]
pub(crate) struct Turns([(u64, u16); RANKS as usize]);

impl Default for Turns {
    fn default() -> Self {
        Self([(u64::MAX, TURNS - 1); RANKS as usize])
    }
}

impl Turns {
    /// The stream of a unit of the frame `number`, the same for all units of that frame.
    ///
    /// Tables, with what else is small, and audio come first: both cost more than any frame when they
    /// lack. Then I, P, B frames that others need, and frames of which none is predicted. What is bulky and unknown
    /// goes with P: it may be a codec as bulky as video, which must never hold up
    /// the audio. What nobody misses goes last. Plain data has its session to itself.
    pub(crate) const fn stream(&mut self, kind: Kind, reference: bool, number: u64) -> u16 {
        let rank = match kind {
            Kind::Tables => return CONTROL,
            Kind::Audio => return 1,
            Kind::I | Kind::Data => 0,
            Kind::P | Kind::Other if reference => 1,
            Kind::B if reference => 2,
            Kind::P | Kind::B | Kind::Other => 3,
        };
        let (latest, turn) = &mut self.0[rank as usize];
        if *latest != number {
            (*latest, *turn) = (number, (*turn + 1) % TURNS);
        }
        FIRST + *turn * RANKS + rank
    }
}

/// Returns `true` for what is bulky and missed by none: program guides, carousels, stuffing.
pub(crate) const fn is_missed_by_none(kind: Kind, reference: bool) -> bool {
    matches!(kind, Kind::Other) && !reference
}

/// The priority of a stream, 0 first.
pub(crate) const fn priority(stream: u16) -> Priority {
    match stream {
        0..FIRST => Priority::new(0),
        _ => Priority::new(((stream - FIRST) % RANKS) as u8 + 1),
    }
}

/// Returns `true` if each chunk of a live stream goes over a second path too: tables and audio, a
/// twentieth of the bytes, must not wait until a loss or a stall is noticed. In overload they go
/// once where a repeat would be in time.
pub(crate) const fn copied(stream: u16) -> bool {
    priority(stream).index() == 0
}

/// A part of a unit that makes one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) runs: Vec<Run>,
    /// Its bytes within the unit's.
    pub(crate) bytes: Range<usize>,
}

/// Cuts a unit into parts between packets; `None` if one message holds it all. Plain data is never
/// cut: its messages are as large as the application made them.
pub(crate) fn parts(unit: &Unit) -> Option<Vec<Part>> {
    let nulls: u64 = unit.runs.iter().filter(|run| run.null).map(|run| u64::from(run.count)).sum();
    let small = unit.bytes.len() <= PART_PACKETS as usize * PACKET
        && nulls <= u64::from(PART_NULLS)
        && unit.runs.len() <= PART_RUNS;
    if unit.kind == Kind::Data || small {
        return None;
    }
    let mut parts = Vec::new();
    let mut part = Part { runs: Vec::new(), bytes: 0..0 };
    let (mut packets, mut nulls) = (0, 0);
    for run in &unit.runs {
        let mut rest = *run;
        while rest.count > 0 {
            let room = if rest.null { PART_NULLS - nulls } else { PART_PACKETS - packets };
            if room == 0 || part.runs.len() == PART_RUNS {
                let end = part.bytes.end;
                parts.push(core::mem::replace(&mut part, Part { runs: Vec::new(), bytes: end..end }));
                (packets, nulls) = (0, 0);
                continue;
            }
            let count = rest.count.min(room);
            part.runs.push(Run { count, ..rest });
            if rest.null {
                nulls += count;
            } else {
                packets += count;
                part.bytes.end += count as usize * PACKET;
            }
            rest = Run { first: rest.first + u64::from(count), count: rest.count - count, null: rest.null };
        }
    }
    parts.push(part);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each unit needs, by their numbers, and what of its group needs it.
    fn frames(units: &[(u16, Kind, bool)]) -> Vec<(Option<u64>, u64, NeededBy)> {
        let mut frames = Frames::default();
        let unit = |&(pid, kind, reference): &(u16, Kind, bool)| Unit {
            kind,
            reference,
            continues: false,
            more: false,
            pid,
            runs: vec![Run::one(0, false)],
            bytes: vec![0; PACKET],
            first_captured: Instant::ZERO,
            last_captured: Instant::ZERO,
            pts: None,
            dts: None,
        };
        let told = (0..).zip(units).map(|(n, it)| frames.next(n, &unit(it), 1, None).frame);
        told.map(|frame| (frame.needs, frame.group, frame.needed_by)).collect()
    }

    #[test]
    fn frames_of_a_rank_take_its_streams_in_turn_and_units_of_a_frame_the_same() {
        let mut turns = Turns::default();
        let taken = [7, 7, 9, 12].map(|number| turns.stream(Kind::P, true, number));
        assert_eq!(taken, [3, 3, 7, 11]);
        assert_eq!(turns.stream(Kind::I, true, 13), 2, "each rank has its own");
        let last = (0..14).map(|number| turns.stream(Kind::P, true, 20 + number)).max();
        assert_eq!(last, Some(STREAMS - 3));
        assert!((0..STREAMS).all(|stream| priority(stream).index() == 0 || stream >= FIRST));
    }

    #[test]
    fn frames_need_those_before_them_in_their_elementary_stream_and_others_need_none() {
        use NeededBy::{Nothing, Rest, Some as Few};
        let told = frames(&[
            (256, Kind::I, true),
            (300, Kind::Other, true),
            (256, Kind::P, true),
            (512, Kind::I, true),
            (256, Kind::B, true),
            (257, Kind::Audio, true),
            (256, Kind::B, false),
            (512, Kind::P, true),
            (0, Kind::Tables, true),
            (256, Kind::P, true),
            (0x1fff, Kind::Other, false),
            (256, Kind::B, false),
            (256, Kind::I, true),
            (512, Kind::P, true),
            (256, Kind::B, false),
        ]);
        let expected = [
            (None, 0, Rest),
            (None, 1, Nothing),
            (Some(0), 0, Rest),
            (None, 3, Rest),
            (Some(2), 0, Few),
            (None, 5, Nothing),
            (Some(4), 0, Nothing),
            (Some(3), 3, Rest),
            (None, 8, Nothing),
            (Some(2), 0, Rest),
            (None, 10, Nothing),
            (Some(9), 0, Nothing),
            (None, 12, Rest),
            (Some(7), 3, Rest),
            (Some(12), 12, Nothing),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_p_frame_of_a_higher_temporal_layer_is_needed_by_none() {
        use NeededBy::{Nothing, Rest};
        let told = frames(&[(256, Kind::I, true), (256, Kind::P, false), (256, Kind::P, true), (256, Kind::P, false)]);
        let expected = [(None, 0, Rest), (Some(0), 0, Nothing), (Some(0), 0, Rest), (Some(2), 0, Nothing)];
        assert_eq!(told, expected);
        for kind in [Kind::P, Kind::Other] {
            assert_eq!([true, false].map(|reference| Turns::default().stream(kind, reference, 0)), [3, 5]);
        }
    }

    #[test]
    fn a_stream_without_i_frames_begins_a_group_with_its_first_frame() {
        let told = frames(&[(256, Kind::P, true), (256, Kind::P, true), (256, Kind::B, false)]);
        assert_eq!(told.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(), [(None, 0), (Some(0), 0), (Some(1), 0)]);
    }

    #[test]
    fn the_rest_of_a_frame_that_was_cut_is_of_the_same_frame() {
        let mut frames = Frames::default();
        let mut unit = Unit {
            kind: Kind::I,
            reference: true,
            continues: false,
            more: false,
            pid: 256,
            runs: vec![Run::one(0, false)],
            bytes: vec![0; 4 * PACKET],
            first_captured: Instant::ZERO,
            last_captured: Instant::ZERO,
            pts: None,
            dts: None,
        };
        unit.more = true;
        let first = frames.next(0, &unit, 2, None).frame;
        assert_eq!(first.bytes as usize, 5 * PACKET, "at least a packet is still to come");
        // What its later slices say is not what it is.
        (unit.continues, unit.more, unit.kind, unit.reference) = (true, false, Kind::P, false);
        frames.adopt(&mut unit);
        assert_eq!((unit.kind, unit.reference), (Kind::I, true));
        let Place { frame: rest, first_part } = frames.next(1, &unit, 1, None);
        assert_eq!((rest.id, rest.group, rest.needs, first_part), (first.id, 0, None, 2));
        assert_eq!(rest.bytes as usize, 8 * PACKET);
        (unit.continues, unit.kind) = (false, Kind::P);
        assert_eq!(frames.next(2, &unit, 1, None).frame.needs, Some(0));
        (unit.continues, unit.pid) = (true, 257);
        frames.adopt(&mut unit);
        assert!(!unit.continues, "its beginning is not known");
    }

    #[test]
    fn the_parts_of_a_large_unit_are_the_unit() {
        let runs = vec![
            Run { first: 5, count: 1500, null: false },
            Run { first: 1505, count: 40_000, null: true },
            Run::one(50_000, false),
        ];
        let unit = Unit {
            kind: Kind::I,
            reference: true,
            continues: false,
            more: false,
            pid: 256,
            bytes: (0..1501 * PACKET).map(|n| n as u8).collect(),
            runs,
            first_captured: Instant::ZERO,
            last_captured: Instant::ZERO,
            pts: None,
            dts: None,
        };
        let parts = parts(&unit).unwrap();
        assert_eq!(parts.len(), 4);
        let put_together: Vec<(u64, Vec<u8>)> = parts
            .iter()
            .flat_map(|part| braidcast_media::Packets::new(&part.runs, &unit.bytes[part.bytes.clone()], false))
            .map(|(index, packet)| (index, packet.to_vec()))
            .collect();
        assert_eq!(put_together, unit.packets().map(|(index, packet)| (index, packet.to_vec())).collect::<Vec<_>>());
    }
}
