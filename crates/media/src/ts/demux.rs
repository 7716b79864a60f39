use super::assembly::Assembly;
use super::psi::Tables;
use super::{Codec, NULL_PACKET, NULL_PID, PACKET, Packet, PacketSync};
use crate::nal::{H265, Picture, h264_picture, mpeg2_picture};
use crate::unit::{Kind, Run, Unit};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of the largest unit; a longer access unit is cut into several.
const MAX_UNIT: usize = 11_000 * PACKET;
/// Bytes of all growing units together; beyond this all are closed.
const MAX_OPEN: usize = 8 << 20;
/// Packets of one unit of [`Kind::Tables`] or [`Kind::Other`].
const MAX_SMALL: usize = 64 * PACKET;
/// Null packets that wait for a unit to travel with.
const MAX_NULLS: u64 = 512;
/// A unit that has not grown for this long is closed: its sender pauses, or its end cannot be seen.
const IDLE: Duration = Duration::from_millis(100);

/// What stuffing says in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stuffing {
    /// A video frame was closed by a packet with this counter.
    Closed(u8),
    /// Nothing: frames went on behind it.
    Meaningless,
}

/// What a transport stream consisted of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DemuxStats {
    /// Packets found, null packets included.
    pub packets: u64,
    /// Null packets that are recreated rather than carried.
    pub nulls: u64,
    /// Bytes that belonged to no packet; they are dropped.
    pub garbage_bytes: u64,
}

/// Cuts a transport stream into units.
///
/// A video frame whose PES packet has no length is closed by the packet that stuffing makes shorter
/// (§2.4.3.5), which nearly all end with, else when the next one starts, or 100 ms after its last
/// packet. If a stream goes on behind stuffing, its stuffing is ignored from then on.
///
/// Call [`push`](Self::push) with each piece of the stream, then [`poll`](Self::poll) until it
/// returns `None`; at the end [`finish`](Self::finish) and poll again.
/// [`poll_timeout`](Self::poll_timeout) says when to push, no bytes if need be, so that what
/// stopped growing is closed.
///
/// Memory: at most 8 MiB of growing units, two packets of unsynchronised bytes, 512 null packets as runs, and the units
/// that wait to be polled.
#[derive(Debug)]
pub struct Demux {
    sync: PacketSync,
    next_index: u64,
    tables: Tables,
    /// Growing units by PID; all tables grow as one, under the PID of their first packet.
    open: BTreeMap<u16, Assembly>,
    open_bytes: usize,
    open_tables: Option<Assembly>,
    nulls: Vec<Run>,
    null_count: u64,
    nulls_captured: Instant,
    pictures: BTreeMap<u16, Picture>,
    h265: BTreeMap<u16, H265>,
    /// By PID, what stuffing last said.
    stuffing: BTreeMap<u16, Stuffing>,
    stream: Vec<u8>,
    ready: VecDeque<Unit>,
    nulls_total: u64,
}

impl Default for Demux {
    fn default() -> Self {
        Self::new()
    }
}

impl Demux {
    /// A demultiplexer that has seen nothing.
    pub fn new() -> Self {
        Self {
            sync: PacketSync::new(),
            next_index: 0,
            tables: Tables::new(),
            open: BTreeMap::new(),
            open_bytes: 0,
            open_tables: None,
            nulls: Vec::new(),
            null_count: 0,
            nulls_captured: Instant::ZERO,
            pictures: BTreeMap::new(),
            h265: BTreeMap::new(),
            stuffing: BTreeMap::new(),
            stream: Vec::new(),
            ready: VecDeque::new(),
            nulls_total: 0,
        }
    }

    /// Takes the next piece of the stream, which arrived at `now`.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.sync.push(bytes);
        self.walk(now, false);
        self.close_idle(now);
    }

    /// The stream has ended: closes every unit.
    pub fn finish(&mut self, now: Instant) {
        self.walk(now, true);
        self.close_all();
        self.flush_nulls();
    }

    /// The next unit, in the order in which they were completed.
    pub fn poll(&mut self) -> Option<Unit> {
        self.ready.pop_front()
    }

    /// When to push again at the latest, so that a unit which has stopped growing is closed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let growing = self.open.values().chain(&self.open_tables).map(|unit| unit.last_captured);
        let nulls = (self.null_count > 0).then_some(self.nulls_captured);
        growing.chain(nulls).min().map(|at| at + IDLE)
    }

    /// What has been seen so far.
    pub const fn stats(&self) -> DemuxStats {
        DemuxStats { packets: self.next_index, nulls: self.nulls_total, garbage_bytes: self.sync.garbage() }
    }

    fn walk(&mut self, now: Instant, ended: bool) {
        while let Some(packet) = self.sync.next(ended).copied() {
            let index = self.next_index;
            self.next_index += 1;
            self.take(now, index, &packet);
        }
    }

    fn take(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET]) {
        let packet = Packet::new(bytes);
        if packet.pid() == NULL_PID && *bytes == NULL_PACKET {
            return self.take_null(now, index);
        }
        let codec = self.tables.codec(packet.pid());
        if codec == Codec::Tables {
            self.tables.learn(&packet);
            let group = self.open_tables.get_or_insert_with(|| Assembly::new(now, &packet, codec));
            group.add(now, index, bytes);
            if group.len() >= MAX_SMALL {
                self.close_tables();
            }
            return;
        }
        self.close_tables();
        self.grow(now, index, &packet, bytes, codec);
    }

    fn take_null(&mut self, now: Instant, index: u64) {
        Run::append(&mut self.nulls, index, true);
        self.null_count += 1;
        self.nulls_total += 1;
        self.nulls_captured = now;
        if self.null_count >= MAX_NULLS {
            self.flush_nulls();
        }
    }

    fn grow(&mut self, now: Instant, index: u64, packet: &Packet<'_>, bytes: &[u8; PACKET], codec: Codec) {
        let pid = packet.pid();
        if packet.starts_unit() {
            self.close(pid);
        } else if let Some(Stuffing::Closed(counter)) = self.stuffing.get(&pid)
            && !self.open.contains_key(&pid)
            && !packet.payload().is_empty()
            && packet.counter() == (counter + 1) & 0x0f
        {
            self.stuffing.insert(pid, Stuffing::Meaningless);
        }
        let unit = self.open.entry(pid).or_insert_with(|| Assembly::new(now, packet, codec));
        unit.add(now, index, bytes);
        self.open_bytes += PACKET;
        let limit = if unit.codec == Codec::Other { MAX_SMALL } else { MAX_UNIT };
        let (is_stuffed, counter) = (unit.is_stuffed(), unit.counter);
        // A clock reference alone waits for no frame.
        if unit.is_whole() || unit.len() >= limit || !unit.has_payload {
            self.close(pid);
        } else if is_stuffed && self.stuffing.get(&pid) != Some(&Stuffing::Meaningless) {
            self.stuffing.insert(pid, Stuffing::Closed(counter));
            self.close(pid);
        }
        if self.open_bytes >= MAX_OPEN {
            self.close_all();
        }
    }

    fn close_tables(&mut self) {
        if let Some(group) = self.open_tables.take() {
            self.ready.push_back(group.finish(Kind::Tables, true, None, &mut self.nulls));
            self.null_count = 0;
        }
    }

    fn close(&mut self, pid: u16) {
        let Some(unit) = self.open.remove(&pid) else { return };
        self.open_bytes -= unit.len();
        let pes = unit.elementary_stream(&mut self.stream);
        let (kind, reference) = match unit.codec {
            Codec::Audio => (Kind::Audio, true),
            Codec::Tables => (Kind::Tables, true),
            Codec::Other => (Kind::Other, true),
            _ if !unit.has_payload => (Kind::Other, true),
            Codec::H264 | Codec::H265 | Codec::Mpeg2 => {
                self.picture(&unit).map_or((Kind::Other, true), |p| (p.kind, p.reference))
            }
        };
        self.ready.push_back(unit.finish(kind, reference, pes, &mut self.nulls));
        self.null_count = 0;
    }

    /// Returns the kind of the coded picture in `unit`, whose elementary stream stands in
    /// `self.stream`.
    fn picture(&mut self, unit: &Assembly) -> Option<Picture> {
        let found = if unit.scrambled {
            // Only the packet headers can be read: random access means I, and P is the safe guess for the rest.
            let kind = if unit.random_access { Kind::I } else { Kind::P };
            Some(Picture { kind, reference: true })
        } else {
            match unit.codec {
                Codec::H264 => h264_picture(&self.stream),
                Codec::H265 => self.h265.entry(unit.pid).or_insert_with(H265::new).picture(&self.stream),
                _ => mpeg2_picture(&self.stream),
            }
        };
        if unit.starts {
            match found {
                Some(picture) => self.pictures.insert(unit.pid, picture),
                None => self.pictures.remove(&unit.pid),
            };
            return found;
        }
        // The rest of a frame that was cut is worth as much as its beginning.
        self.pictures.get(&unit.pid).copied().or(found)
    }

    fn close_idle(&mut self, now: Instant) {
        let idle = |unit: &Assembly| now.since(unit.last_captured) >= IDLE;
        if self.open_tables.as_ref().is_some_and(idle) {
            self.close_tables();
        }
        while let Some(pid) = self.open.iter().find(|(_, unit)| idle(unit)).map(|(pid, _)| *pid) {
            self.close(pid);
        }
        if self.null_count > 0 && now.since(self.nulls_captured) >= IDLE {
            self.flush_nulls();
        }
    }

    fn close_all(&mut self) {
        self.close_tables();
        let mut pids: Vec<(u64, u16)> = self.open.iter().map(|(pid, unit)| (unit.first_index(), *pid)).collect();
        pids.sort_unstable();
        for (_, pid) in pids {
            self.close(pid);
        }
    }

    /// Sends off null packets that found no unit to travel with.
    fn flush_nulls(&mut self) {
        if self.nulls.is_empty() {
            return;
        }
        self.null_count = 0;
        self.ready.push_back(Unit {
            kind: Kind::Other,
            reference: false,
            continues: false,
            pid: NULL_PID,
            runs: core::mem::take(&mut self.nulls),
            bytes: Vec::new(),
            first_captured: self.nulls_captured,
            last_captured: self.nulls_captured,
            pts: None,
            dts: None,
        });
    }
}
