//! Finds places at which a transport stream can be cut: before a video frame that needs no other. What follows the cut
//! needs the program tables again.

use braidcast_core::Instant;
use braidcast_media::ts::{LatestTables, NULL_PACKET, PACKET, Packet};
use std::time::Duration;

/// Delay after which a stream without such a frame is cut anywhere: without video, or without the frame's mark because
/// the sender is an older one.
const PATIENCE: Duration = Duration::from_secs(10);

/// When to begin another file.
pub(super) struct Cutter {
    every: Duration,
    due: Option<Instant>,
    tables: LatestTables,
}

/// A cut in what is written.
pub(super) struct Cut {
    /// Position at which the next file begins.
    pub(super) at: usize,
    /// What is to stand there first.
    pub(super) tables: Vec<u8>,
}

impl Cutter {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, due: None, tables: LatestTables::new() }
    }

    /// A stream begins.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.every);
    }

    /// Returns the position in `bytes`, written at `now`, at which the next file begins, if one
    /// does. `entry`: they begin with a frame that needs no other.
    pub(super) fn cut(&mut self, now: Instant, bytes: &[u8], entry: bool) -> Option<Cut> {
        let due = *self.due.get_or_insert(now + self.every);
        let (packets, rest) = bytes.as_chunks::<PACKET>();
        let mut cut = None;
        if now >= due {
            let anywhere = now >= due + PATIENCE || !rest.is_empty();
            // The rest of a frame that came in parts is no beginning.
            let begins = |packet: &[u8; PACKET]| Packet::new(packet).starts_unit();
            let entry = entry && packets.iter().find(|packet| *packet != &NULL_PACKET).is_some_and(begins);
            cut = (anywhere || entry).then_some(0);
        }
        let (before, behind) = packets.split_at(cut.unwrap_or_default());
        before.iter().for_each(|packet| self.tables.push(packet));
        let cut = cut.map(|at| {
            self.due = Some(now + self.every);
            Cut { at: at * PACKET, tables: self.tables.packets().flatten().copied().collect() }
        });
        behind.iter().for_each(|packet| self.tables.push(packet));
        cut
    }
}

/// Returns the position at which a video frame begins that needs no other, by the mark of its muxer
/// (random_access_indicator, ISO/IEC 13818-1 §2.4.3.5). For streams of neighbours, whose frames are not looked into.
pub(super) fn marked_entry(bytes: &[u8]) -> Option<usize> {
    let (packets, _) = bytes.as_chunks::<PACKET>();
    let is_entry = |packet: &[u8; PACKET]| {
        let packet = Packet::new(packet);
        let is_video = matches!(packet.payload(), [0, 0, 1, 0xe0..=0xef, ..]);
        packet.starts_unit() && packet.random_access() && is_video
    };
    packets.iter().position(is_entry).map(|at| at * PACKET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_frame_is_found_within_a_datagram() {
        let clip = include_bytes!("../../../../media/tests/clips/h264.ts");
        let datagrams = clip.chunks(7 * PACKET);
        let marked: Vec<u64> = datagrams
            .zip(0..)
            .filter_map(|(bytes, n)| marked_entry(bytes).map(|at| n * 7 + (at / PACKET) as u64))
            .collect();
        let (packets, _) = clip.as_chunks::<PACKET>();
        assert!(!marked.is_empty());
        for at in marked {
            let packet = Packet::new(&packets[at as usize]);
            assert!((packet.pid(), packet.starts_unit(), packet.random_access()) == (256, true, true), "{at}");
        }
        assert_eq!(marked_entry(&[0x47; 100]), None);
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn the_cut_waits_for_a_frame_to_begin_with() {
        let mut rest = [0; PACKET];
        (rest[0], rest[2]) = (0x47, 0x80);
        let mut begins = rest;
        begins[1] = 0x40;
        let mut cutter = Cutter::new(Duration::from_secs(60));
        let mut cut = |seconds, bytes: &[u8], entry| cutter.cut(at(seconds), bytes, entry).map(|cut| cut.at);
        assert_eq!(cut(0, &begins, true), None);
        assert_eq!(cut(61, &begins, false), None, "an audio packet");
        assert_eq!(cut(62, &rest, true), None, "the rest of a frame");
        assert_eq!(cut(63, &[NULL_PACKET, begins, rest].concat(), true), Some(0));
        assert_eq!(cut(100, &begins, true), None);
        assert_eq!(cut(134, &rest, false), Some(0));
    }

    #[test]
    fn each_file_begins_with_the_tables_that_were_shown_last() {
        let clip = include_bytes!("../../../../media/tests/clips/h264.ts");
        let (packets, _) = clip.as_chunks::<PACKET>();
        let tables = |packets: &[[u8; PACKET]]| {
            let mut latest = LatestTables::new();
            packets.iter().for_each(|packet| latest.push(packet));
            latest.packets().copied().collect::<Vec<_>>()
        };
        let begins =
            |packet: &[u8; PACKET]| (Packet::new(packet).pid(), Packet::new(packet).starts_unit()) == (256, true);
        let last = packets.iter().rposition(begins).expect("a frame begins");
        let mut cutter = Cutter::new(Duration::from_secs(60));
        assert!(cutter.cut(at(0), packets[..last].as_flattened(), true).is_none());
        let cut = cutter.cut(at(61), packets[last..].as_flattened(), true).expect("an entry comes");
        assert_eq!((cut.at, cut.tables), (0, tables(&packets[..last]).concat()));
        let pids: Vec<u16> = tables(&packets[..last]).iter().map(|packet| Packet::new(packet).pid()).collect();
        assert_eq!(pids, [0, 0x1000], "PAT, PMT");
    }
}
