use crate::ts::{NULL_PACKET, PACKET};
use braidcast_core::Instant;
use core::fmt;

/// What a unit holds, in the terms of which loss hurts most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Program tables (PAT, PMT), without which nothing else is understood, and what else is small and must arrive:
    /// clock references, cues, metadata, captions, tables of stations.
    Tables,
    /// An audio packet.
    Audio,
    /// A frame that needs no other, or a recovery point: from there on a decoder sees whole frames some time later.
    I,
    /// A frame predicted from earlier ones.
    P,
    /// A frame predicted from both sides.
    B,
    /// Any other part of a transport stream that is bulky: unknown codecs, or with `reference` false what nobody
    /// misses: program guides, carousels, stuffing.
    Other,
    /// Bytes of an input that is no transport stream.
    Data,
}

impl Kind {
    /// Every kind, in the order in which reports list them.
    pub const ALL: [Self; 7] = [Self::Tables, Self::Audio, Self::I, Self::P, Self::B, Self::Other, Self::Data];

    /// The kind's place in [`Kind::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Audio => "audio",
            Self::I => "I",
            Self::P => "P",
            Self::B => "B",
            Self::Other => "other",
            Self::Data => "data",
        }
    }

    /// Returns `true` if this is a video frame.
    pub const fn is_video(self) -> bool {
        matches!(self, Self::I | Self::P | Self::B)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets that stood side by side in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Index of the first packet, counted over the whole input.
    pub first: u64,
    /// How many packets, at least 1.
    pub count: u32,
    /// The packets are [`NULL_PACKET`]s: the unit's bytes leave them out.
    pub null: bool,
}

impl Run {
    /// One packet.
    pub const fn one(index: u64, null: bool) -> Self {
        Self { first: index, count: 1, null }
    }

    /// The index after the last packet.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.count as u64)
    }

    /// Appends packet `index` to `runs`, as part of the last run if it fits.
    pub(crate) fn append(runs: &mut Vec<Self>, index: u64, null: bool) {
        match runs.last_mut() {
            Some(run) if run.null == null && run.end() == index && run.count < u32::MAX => run.count += 1,
            _ => runs.push(Self::one(index, null)),
        }
    }
}

/// Part of the input that is useful or lost as a whole: one access unit, one audio packet, a group of tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// What it holds.
    pub kind: Kind,
    /// `true` if other frames are predicted from this one (H.264 `nal_ref_idc`, H.265 sub-layer
    /// reference). True for what is no frame, but for the bulk of [`Kind::Other`] that nobody misses.
    pub reference: bool,
    /// The rest of a frame whose beginning is the unit of the same PID before it: a frame that was too
    /// large for one, that stopped growing for a while, that was long in coming, or that has several PES packets.
    pub continues: bool,
    /// The frame is not complete with this unit: a unit that [`continues`](Self::continues) it follows.
    pub more: bool,
    /// The PID, 0 for [`Kind::Data`], the first packet's PID for a group of tables.
    pub pid: u16,
    /// Places of the unit's packets in the input, in ascending order; never empty. For
    /// [`Kind::Data`] one run of one, its index counting units.
    pub runs: Vec<Run>,
    /// The packets one after the other, 188 bytes each, null packets left out; for [`Kind::Data`] the bytes.
    pub bytes: Vec<u8>,
    /// When the first packet arrived.
    pub first_captured: Instant,
    /// When the last packet arrived.
    pub last_captured: Instant,
    /// Presentation time, 90 kHz, 33 bits.
    pub pts: Option<u64>,
    /// Decoding time, 90 kHz, 33 bits; absent if it equals the presentation time.
    pub dts: Option<u64>,
}

impl Unit {
    /// Index of the first packet.
    pub fn first_index(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.first)
    }

    /// The packets and their indexes, in ascending order, null packets included.
    pub fn packets(&self) -> Packets<'_> {
        Packets::new(&self.runs, &self.bytes, self.kind == Kind::Data)
    }
}

/// Iterator over the packets of a unit and their indexes.
///
/// Ends early if the bytes do not reach for all runs.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    runs: &'a [Run],
    done_in_run: u32,
    bytes: &'a [u8],
    whole: bool,
}

impl<'a> Packets<'a> {
    /// The packets of `runs`, whose bytes are `bytes`; with `whole`, each run's packet is all that is left of the
    /// bytes.
    pub const fn new(runs: &'a [Run], bytes: &'a [u8], whole: bool) -> Self {
        Self { runs, done_in_run: 0, bytes, whole }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (run, later) = self.runs.split_first()?;
        let packet = if run.null {
            &NULL_PACKET[..]
        } else {
            let length = if self.whole { self.bytes.len() } else { PACKET };
            let (packet, rest) = self.bytes.split_at_checked(length)?;
            self.bytes = rest;
            packet
        };
        let index = run.first.saturating_add(u64::from(self.done_in_run));
        self.done_in_run += 1;
        if self.done_in_run >= run.count {
            (self.runs, self.done_in_run) = (later, 0);
        }
        Some((index, packet))
    }
}
