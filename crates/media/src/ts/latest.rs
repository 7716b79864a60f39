use super::psi::Tables;
use super::{PACKET, Packet};
use std::collections::BTreeMap;

/// The program tables that a stream showed last, as packets: what a recording that begins in the
/// middle of it needs first.
///
/// Holds at most [`Self::MOST`] packets for each of 257 PIDs.
#[derive(Debug)]
pub struct LatestTables {
    tables: Tables,
    shown: BTreeMap<u16, Shown>,
}

/// What one PID showed.
#[derive(Debug, Default)]
struct Shown {
    whole: Vec<[u8; PACKET]>,
    /// From the last packet that began a section on.
    coming: Vec<[u8; PACKET]>,
}

impl LatestTables {
    /// Packets that the longest section, of 1024 bytes, takes, and one more if it begins in the middle of a packet.
    pub const MOST: usize = 7;

    /// None was shown yet.
    pub fn new() -> Self {
        Self { tables: Tables::new(), shown: BTreeMap::new() }
    }

    /// The next packet of the stream.
    pub fn push(&mut self, bytes: &[u8; PACKET]) {
        let packet = Packet::new(bytes);
        let pid = packet.pid();
        if !self.tables.is_program_table(pid) {
            return;
        }
        self.tables.learn(&packet);
        let shown = self.shown.entry(pid).or_default();
        if packet.starts_unit() {
            shown.whole = core::mem::take(&mut shown.coming);
        } else if shown.coming.is_empty() || shown.coming.len() >= Self::MOST {
            return; // It belongs to a section whose beginning is not known, or to none.
        }
        shown.coming.push(*bytes);
    }

    /// The packets of the newest PAT, then those of each program's newest PMT.
    pub fn packets(&self) -> impl Iterator<Item = &[u8; PACKET]> {
        let known = self.shown.iter().filter(|&(&pid, _)| self.tables.is_program_table(pid));
        known.flat_map(|(_, shown)| if shown.whole.is_empty() { &shown.coming } else { &shown.whole })
    }
}

impl Default for LatestTables {
    fn default() -> Self {
        Self::new()
    }
}
