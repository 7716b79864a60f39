//! Access units of elementary streams, out of a transport stream.

use super::mux::ABOUT;
use super::{Coding, Demux, PACKET, Packet, PesHeader};
use crate::unit::{Kind, Unit};
use braidcast_core::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of an access unit that comes in parts; what is longer is cut.
const LONGEST: usize = 8 << 20;

/// An access unit of an elementary stream, as it is decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ElementaryUnit {
    /// The PID that carried it.
    pub pid: u16,
    /// What it is coded as.
    pub coding: Coding,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Presentation time, 90 kHz, 33 bits.
    pub pts: Option<u64>,
    /// Decoding time; absent if it equals the presentation time.
    pub dts: Option<u64>,
    /// A decoder can begin here.
    pub key: bool,
    /// The layer, as [`MuxUnit::layer`](super::MuxUnit::layer) has it. Of other multiplexers 1 for frames that no other
    /// needs.
    pub layer: u8,
    /// Nothing of it is missing, as far as can be seen.
    pub whole: bool,
}

/// Takes a transport stream to access units, those of PIDs that a program table names.
///
/// Call [`push`](Self::push) and [`poll`](Self::poll) as of [`Demux`], whose memory it has, and of each
/// PID one unit at most.
#[derive(Debug, Default)]
pub struct Elementary {
    demux: Demux,
    open: BTreeMap<u16, Open>,
    ready: VecDeque<ElementaryUnit>,
    payload: Vec<u8>,
}

/// The state of a PID.
#[derive(Debug, Default)]
struct Open {
    /// The counter that comes next.
    next: Option<u8>,
    /// A unit that goes on.
    unit: Option<ElementaryUnit>,
    /// What it says its length is.
    length: Option<usize>,
}

impl Elementary {
    /// Has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the stream, which came at `now`.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.demux.push(now, bytes);
        self.take();
    }

    /// The stream has ended.
    pub fn finish(&mut self, now: Instant) {
        self.demux.finish(now);
        self.take();
        let pids: Vec<u16> = self.open.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.close(pid));
    }

    /// The next access unit.
    pub fn poll(&mut self) -> Option<ElementaryUnit> {
        self.ready.pop_front()
    }

    /// When to push again at the latest, of no bytes if need be.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.demux.poll_timeout()
    }

    fn take(&mut self) {
        while let Some(unit) = self.demux.poll() {
            if let Some(coding) = self.demux.coding(unit.pid) {
                self.take_unit(coding, &unit);
            }
        }
    }

    fn take_unit(&mut self, coding: Coding, unit: &Unit) {
        let open = self.open.entry(unit.pid).or_default();
        let (packets, _) = unit.bytes.as_chunks::<PACKET>();
        let Some(first) = packets.first().map(Packet::new) else { return };
        let continues = unit.continues && open.unit.is_some();
        if !continues {
            self.close(unit.pid);
        }
        let open = self.open.entry(unit.pid).or_default();
        let mut whole = unit.continues == continues;
        self.payload.clear();
        for (place, packet) in packets.iter().map(Packet::new).enumerate() {
            let payload = packet.payload();
            if payload.is_empty() {
                continue;
            }
            // Counters may jump where it is said, and what lacks before the unit begins is none of it.
            let jumps = packet.discontinuity() || (place == 0 && !continues);
            whole &= jumps || open.next.is_none_or(|next| next == packet.counter());
            open.next = Some((packet.counter() + 1) & 0x0f);
            let header = if packet.starts_unit() { PesHeader::parse(payload).map_or(0, |it| it.header) } else { 0 };
            self.payload.extend_from_slice(payload.get(header..).unwrap_or_default());
        }
        let begun = open.unit.get_or_insert_with(|| {
            let said = about(&first);
            open.length = said.map(|(_, length)| length);
            let layer = said.map_or(u8::from(!unit.reference), |(layer, _)| layer);
            let key = first.random_access() || unit.kind == Kind::I || !coding.is_video();
            let (pid, pts, dts) = (unit.pid, unit.pts, unit.dts);
            // A PES packet that does not begin here lost its beginning.
            let whole = first.starts_unit();
            ElementaryUnit { pid, coding, bytes: Vec::new(), pts, dts, key, layer, whole }
        });
        begun.whole &= whole;
        if begun.bytes.len() < LONGEST {
            begun.bytes.extend_from_slice(&self.payload);
        }
        if !unit.more {
            self.close(unit.pid);
        }
    }

    /// Hands out the unit of a PID that is open.
    fn close(&mut self, pid: u16) {
        let Some(open) = self.open.get_mut(&pid) else { return };
        let (Some(unit), length) = (open.unit.take(), open.length.take()) else { return };
        for bytes in unit.coding.units(&unit.bytes) {
            let whole = unit.whole && length.is_none_or(|length| length == bytes.len());
            self.ready.push_back(ElementaryUnit { bytes: bytes.to_vec(), whole, ..unit.clone() });
        }
    }
}

/// Layer and length of the unit that begins with `packet`, if it says them.
fn about(packet: &Packet<'_>) -> Option<(u8, usize)> {
    match *packet.private_data()? {
        [ABOUT, 5, layer, a, b, c, d] => Some((layer, u32::from_be_bytes([a, b, c, d]) as usize)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mux, MuxUnit};
    use super::*;
    use proptest::prelude::*;

    const STREAMS: [(u16, Coding); 3] =
        [(0x100, Coding::H264), (0x101, Coding::Opus { channels: 2 }), (0x102, Coding::Aac)];

    /// A slice of H.264 behind a delimiter, of `length` bytes at least.
    fn frame(length: usize, key: bool) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, if key { 0x65 } else { 0x41 }, 0x9a];
        bytes.resize(length.max(bytes.len()), 0x5a);
        bytes
    }

    /// What comes out of `units` without packets of these numbers, each unit's counted from a thousand times its own.
    fn through(units: &[(u16, Vec<u8>, bool, u8)], lost: &[usize]) -> Vec<ElementaryUnit> {
        let (mut mux, mut out) = (Mux::default(), Vec::new());
        mux.set_streams(&STREAMS);
        let (mut elementary, mut received) = (Elementary::new(), Vec::new());
        for (n, (pid, bytes, key, layer)) in units.iter().enumerate() {
            let now = Instant::from_millis(40 * n as u64);
            out.clear();
            let time = 90_000 + 3600 * n as u64;
            let unit = MuxUnit { bytes, pts: time + 3600, dts: time, key: *key, layer: Some(*layer) };
            mux.push(now, *pid, &unit, &mut out).unwrap();
            for (packet, bytes) in out.chunks(PACKET).enumerate() {
                if !lost.contains(&(1000 * n + packet)) {
                    elementary.push(now, bytes);
                }
            }
            received.extend(core::iter::from_fn(|| elementary.poll()));
            // Each comes out with its last packet, and waits for none of the next unit.
            assert!(received.len() == n + 1 || !lost.is_empty(), "{} bytes wait", units[n].1.len());
        }
        elementary.finish(Instant::from_millis(10_000));
        received.extend(core::iter::from_fn(|| elementary.poll()));
        received
    }

    proptest! {
        #[test]
        fn access_units_come_out_as_they_went_in(
            sizes in proptest::collection::vec((0..3_usize, 1..3000_usize, any::<bool>(), 0..4_u8), 1..40),
        ) {
            let unit = |&(which, length, key, layer): &(usize, usize, bool, u8)| {
                let bytes = if which == 0 { frame(length, key) } else { vec![0xff; length] };
                (STREAMS[which].0, bytes, key, layer)
            };
            let units: Vec<_> = sizes.iter().map(unit).collect();
            for (n, (sent, came)) in units.iter().zip(through(&units, &[])).enumerate() {
                prop_assert!(came.whole && came.bytes == sent.1, "{n}: {} bytes", sent.1.len());
                prop_assert_eq!((came.pid, came.layer), (sent.0, sent.3));
                prop_assert_eq!(came.pts, Some(93_600 + 3600 * n as u64));
                prop_assert_eq!(came.dts, Some(90_000 + 3600 * n as u64));
                prop_assert_eq!(came.key, sent.2 || sent.0 != 0x100);
            }
        }
    }

    #[test]
    fn long_frames_end_with_their_last_packet_whatever_their_length() {
        let units: Vec<_> = (65_400..65_800).map(|length| (0x100, frame(length, false), false, 0)).collect();
        let came = through(&units, &[]);
        assert!(units.iter().zip(&came).all(|(sent, came)| came.whole && came.bytes == sent.1));
    }

    #[test]
    fn a_unit_that_lacks_a_packet_says_so() {
        let units: Vec<_> = (0..6).map(|n| (0x100, frame(2000 + n, n == 0), n == 0, 0)).collect();
        // One in the middle of the second, and the last of the fourth but one.
        let came = through(&units, &[1004, 3009]);
        let whole: Vec<bool> = came.iter().map(|unit| unit.whole).collect();
        assert_eq!(whole, [true, false, true, false, true, true]);
    }
}
