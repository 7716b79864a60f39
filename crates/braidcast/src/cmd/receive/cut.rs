//! Finds places at which a transport stream can be cut: before a packet that marks a random access
//! point. What follows the cut needs the program tables again.

use braidcast_core::Instant;
use braidcast_media::ts::{LatestTables, PACKET, Packet};
use std::time::Duration;

/// Delay after which a stream without such a packet is cut anywhere.
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
    /// does.
    pub(super) fn cut(&mut self, now: Instant, bytes: &[u8]) -> Option<Cut> {
        let due = *self.due.get_or_insert(now + self.every);
        let (packets, rest) = bytes.as_chunks::<PACKET>();
        let mut cut = None;
        if now >= due {
            let anywhere = now >= due + PATIENCE || !rest.is_empty();
            cut = if anywhere { Some(0) } else { packets.iter().position(is_entry) };
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

/// Returns `true` if the packet begins a video frame that needs no other (random access indicator, H.222.0 §2.4.3.5).
fn is_entry(bytes: &[u8; PACKET]) -> bool {
    let packet = Packet::new(bytes);
    packet.starts_unit() && packet.random_access()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn the_cut_waits_for_a_frame_to_begin_with() {
        let mut plain = [0; PACKET];
        (plain[0], plain[2]) = (0x47, 0x80);
        let mut entry = plain;
        entry[1] = 0x40;
        entry[3] = 0x30;
        (entry[4], entry[5]) = (7, 0x50);
        let mut cutter = Cutter::new(Duration::from_secs(60));
        let mut cut = |seconds, bytes: &[u8]| cutter.cut(at(seconds), bytes).map(|cut| cut.at);
        assert_eq!(cut(0, &entry), None);
        assert_eq!(cut(61, &plain), None);
        assert_eq!(cut(62, &[plain, plain, entry].concat()), Some(2 * PACKET));
        assert_eq!(cut(100, &entry), None);
        assert_eq!(cut(133, &plain), Some(0));
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
        let entries: Vec<usize> = (0..packets.len()).filter(|&n| is_entry(&packets[n])).collect();
        let &[_, .., last] = entries.as_slice() else { panic!("two entries") };
        let mut cutter = Cutter::new(Duration::from_secs(60));
        assert!(cutter.cut(at(0), packets[..last].as_flattened()).is_none());
        let cut = cutter.cut(at(61), packets[last - 1..].as_flattened()).expect("an entry comes");
        assert_eq!((cut.at, cut.tables), (PACKET, tables(&packets[..last]).concat()));
        let pids: Vec<u16> = tables(&packets[..last]).iter().map(|packet| Packet::new(packet).pid()).collect();
        assert_eq!(pids, [0, 0x1000], "PAT, PMT");
    }
}
