use super::assembly::{Assembly, Share};
use super::gather::Gather;
use super::psi::Tables;
use super::stream::{MAX_SMALL, Shared, Stream};
use super::{Codec, Coding, NULL_PACKET, NULL_PID, PACKET, Packet, PacketSync};
use crate::nal::Found;
use crate::unit::{Kind, Unit};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::BTreeMap;

/// Bytes of all growing units together; beyond this all are closed.
const MAX_OPEN: usize = 8 << 20;
/// A unit that has not grown for this long is closed: its sender pauses, or its end cannot be seen.
const IDLE: Duration = Duration::from_millis(100);

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
/// A unit of video is one access unit, wherever PES packets begin and end: a PES packet with several is cut, and one
/// that goes on in the next PES packet is one frame in several units. The packet in which one ends
/// and the next begins goes with the one that the other needs.
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
/// Memory: at most 8 MiB of growing units, two packets of unsynchronised bytes, 512 null packets as runs,
/// some 300 bytes for each PID, and the units that wait to be polled.
#[derive(Debug)]
pub struct Demux {
    sync: PacketSync,
    next_index: u64,
    first_index: u64,
    tables: Tables,
    streams: BTreeMap<u16, Stream>,
    /// Bytes of units since the last time that all were closed, at most.
    open_bytes: usize,
    /// All tables grow as one, under the PID of their first packet.
    open_tables: Option<Assembly>,
    gather: Gather,
    found: Vec<Found>,
    stream: Vec<u8>,
    patience: Option<Duration>,
    /// Before this, no unit has been idle for long.
    idle_at: Instant,
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
            first_index: 0,
            tables: Tables::new(),
            streams: BTreeMap::new(),
            open_bytes: 0,
            open_tables: None,
            gather: Gather::default(),
            found: Vec::new(),
            stream: Vec::new(),
            patience: None,
            idle_at: Instant::ZERO,
        }
    }

    /// Packets come `size` bytes apart, at least 188, and what stands between them is skipped.
    pub fn set_packet_size(&mut self, size: usize) {
        self.sync = PacketSync::of_size(size);
    }

    /// Indexes of packets begin with `index`: something came before the stream.
    pub(crate) const fn begin_at(&mut self, index: u64) {
        (self.next_index, self.first_index) = (index, index);
    }

    /// What a table says that a PID is coded as; `None` if no table names it.
    pub fn coding(&self, pid: u16) -> Option<Coding> {
        self.tables.coding(pid)
    }

    /// How many programs have told what they have, and what their PIDs carry.
    pub fn programs(&self) -> (usize, Vec<Codec>) {
        let (count, codecs) = self.tables.programs();
        (count, codecs.collect())
    }

    /// A frame that takes longer than `patience` to come in goes in parts, each of which is told to continue the one
    /// before it. Otherwise frames go when they are complete.
    pub const fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
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
        self.gather.flush_nulls();
    }

    /// The next unit, in the order in which they were completed.
    pub fn poll(&mut self) -> Option<Unit> {
        self.gather.ready.pop_front()
    }

    /// When to push again at the latest, so that a unit which has stopped growing is closed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let units = self.streams.values().filter_map(Stream::growing);
        let growing = units.chain(&self.open_tables).map(|unit| unit.last_captured);
        growing.chain(self.gather.waiting_since()).min().map(|at| at + IDLE)
    }

    /// What has been seen so far.
    pub const fn stats(&self) -> DemuxStats {
        DemuxStats {
            packets: self.next_index - self.first_index,
            nulls: self.gather.nulls_total,
            garbage_bytes: self.sync.garbage(),
        }
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
        let pid = packet.pid();
        if pid == NULL_PID {
            if *bytes == NULL_PACKET {
                self.gather.null(now, index)
            } else {
                self.grow(now, index, bytes, Codec::Stuffing)
            }
            return;
        }
        let mut codec = self.tables.codec(pid);
        if codec == Codec::Tables && pid != 0 && packet.starts_unit() && packet.payload().starts_with(&[0, 0, 1]) {
            // A section with a pointer of 0 and the table id of a PAT cannot be here: it is a PES packet.
            self.tables.refute(pid);
            codec = self.tables.codec(pid);
        }
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
        if codec == Codec::Unknown && packet.starts_unit() && !packet.scrambled() {
            self.tables.guess(pid, Codec::of_pes(packet.payload()));
            codec = self.tables.codec(pid);
        }
        self.grow(now, index, bytes, codec);
    }

    fn grow(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET], codec: Codec) {
        let pid = Packet::new(bytes).pid();
        let Self { streams, gather, found, stream, patience, .. } = self;
        let with = &mut Shared { gather, found, bytes: stream, patience: *patience };
        streams.entry(pid).or_insert_with(|| Stream::new(pid, codec)).take(now, index, bytes, codec, with);
        self.open_bytes += PACKET;
        if self.open_bytes >= MAX_OPEN {
            self.open_bytes = self.streams.values().filter_map(Stream::growing).map(Assembly::len).sum();
            if self.open_bytes >= MAX_OPEN / 2 {
                self.close_all();
            }
        }
    }

    fn close_tables(&mut self) {
        if let Some(group) = self.open_tables.take() {
            let unit = group.finish(Share::whole(Kind::Tables), &mut self.gather.nulls);
            self.gather.unit(unit);
        }
    }

    fn close(&mut self, pid: u16) {
        let Self { streams, gather, found, stream, patience, .. } = self;
        if let Some(of_pid) = streams.get_mut(&pid) {
            of_pid.close(false, &mut Shared { gather, found, bytes: stream, patience: *patience });
        }
    }

    fn close_idle(&mut self, now: Instant) {
        if now < self.idle_at {
            return;
        }
        let idle = |unit: &Assembly| now.since(unit.last_captured) >= IDLE;
        if self.open_tables.as_ref().is_some_and(idle) {
            self.close_tables();
        }
        while let Some(pid) = self.streams.values().find(|it| it.growing().is_some_and(idle)).map(Stream::pid) {
            self.close(pid);
        }
        if self.gather.waiting_since().is_some_and(|at| now.since(at) >= IDLE) {
            self.gather.flush_nulls();
        }
        // What begins to grow from now on is not idle earlier than that.
        self.idle_at = self.poll_timeout().map_or(now + IDLE, |at| at.min(now + IDLE));
    }

    fn close_all(&mut self) {
        self.close_tables();
        let growing = |it: &Stream| it.growing().map(|unit| (unit.first_index(), it.pid()));
        let mut pids: Vec<(u64, u16)> = self.streams.values().filter_map(growing).collect();
        pids.sort_unstable();
        for (_, pid) in pids {
            self.close(pid);
        }
        self.open_bytes = 0;
    }
}
