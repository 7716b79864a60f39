//! Which stream a unit travels on, how urgent it is, and how one that is too large is cut.

use braidcast_media::ts::PACKET;
use braidcast_media::{Kind, Run, Unit};
use braidcast_sctp::Priority;
use core::ops::Range;

/// Streams that a session uses.
pub(crate) const STREAMS: u16 = 6;
/// The stream of clock, end and feedback messages, and of tables. In a reliable session, of everything.
pub(crate) const CONTROL: u16 = 0;
/// Packets with bytes in one part: 192 kB, so that a part is small against the send buffer.
const PART_PACKETS: u32 = 1024;
/// Null packets in one part.
const PART_NULLS: u32 = 16_384;
/// Runs in one part.
const PART_RUNS: usize = 4096;

/// The stream of a unit.
///
/// Tables and audio come first: they are small, and both cost more than any frame when they lack. Then I, P, B
/// frames that others need, and other B frames. What is unknown goes with P: it may be subtitles, which deserve
/// better than B, or a codec as bulky as video, which must never hold up the audio. Plain data has its session to
/// itself.
pub(crate) const fn stream(kind: Kind, reference: bool) -> u16 {
    match kind {
        Kind::Tables => CONTROL,
        Kind::Audio => 1,
        Kind::I | Kind::Data => 2,
        Kind::P | Kind::Other => 3,
        Kind::B if reference => 4,
        Kind::B => 5,
    }
}

/// The priority of a stream, 0 first.
pub(crate) const fn priority(stream: u16) -> Priority {
    match stream {
        CONTROL | 1 => Priority::new(0),
        2 => Priority::new(1),
        3 => Priority::new(2),
        4 => Priority::new(3),
        _ => Priority::new(4),
    }
}

/// Returns `true` if each chunk of a live stream goes over a second path too: tables and audio, a twentieth
/// of the bytes, must not wait until a loss or a stall is noticed. In overload they go once where a
/// repeat would be in time.
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

/// Cuts a unit into parts between packets; `None` if one message holds it all. Plain data is never cut: its
/// messages are as large as the application made them.
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
    use braidcast_core::Instant;

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
