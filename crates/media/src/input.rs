use crate::container::Container;
use crate::rtp::{Rtp, RtpStats, carries_ts};
use crate::ts::{Codec, Demux, DemuxStats, PACKET, TURN, could_be_ts, size_of_ts, turns_into_ts};
use crate::unit::{Kind, Run, Unit};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// How long the beginning of an undecided input waits for more.
const UNDECIDED: Duration = Duration::from_millis(100);
/// Bytes that an undecided input waits for at most.
const MAX_UNDECIDED: usize = 128 * 1024;

/// What the input is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Found out from the first tenth of a second, and from then on if it turns into a transport stream.
    #[default]
    Auto,
    /// An MPEG transport stream.
    Ts,
    /// Bytes without a known structure, carried exactly as they are.
    Plain,
}

/// Where the boundaries between plain messages come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Each push is a datagram and becomes one unit.
    Datagrams,
    /// Each push is a piece of a byte stream and becomes units of at most this many bytes (at least 1).
    Stream(usize),
}

/// What an input consisted of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InputStats {
    /// What it is; [`Format::Auto`] while undecided.
    pub format: Format,
    /// Bytes taken.
    pub bytes: u64,
    /// From one packet of a transport stream to the next: 188 bytes, 192 or 204; 0 if it is none.
    pub packet_bytes: usize,
    /// What RTP in front of the packets said; `None` if there is none.
    pub rtp: Option<RtpStats>,
    /// What the transport stream consisted of, if it is one.
    pub ts: DemuxStats,
}

/// Cuts an input of either format into units.
///
/// A transport stream is known by its sync bytes, wherever it begins, in datagrams of any size, with bytes between its
/// packets, and behind RTP, which is taken away. What is something else at first may turn into one later: the
/// packet in which it does may be lost.
///
/// Call [`push`](Self::push) with each datagram or piece, then [`poll`](Self::poll) until it gives `None`; at the end
/// [`finish`](Self::finish) and poll again. Pushing no bytes is allowed at any time and lets units that wait for
/// more go once they have waited long enough.
///
/// Memory: that of [`Demux`], and 128 kB and one push while undecided.
#[derive(Debug)]
pub struct Input {
    format: Format,
    /// It may still turn into a transport stream.
    looking: bool,
    framing: Framing,
    demux: Demux,
    packet_bytes: usize,
    rtp: Option<Rtp>,
    /// What waits for a decision: where each datagram ends, and the bytes; once it is plain, the last bytes.
    undecided: (Vec<usize>, Vec<u8>),
    undecided_since: Option<Instant>,
    container: Option<Container>,
    next_index: u64,
    plain: VecDeque<Unit>,
    bytes: u64,
}

impl Input {
    /// An input of `format`, whose plain messages are bounded by `framing`.
    pub fn new(format: Format, framing: Framing) -> Self {
        Self {
            format,
            looking: format == Format::Auto,
            framing,
            demux: Demux::new(),
            packet_bytes: if format == Format::Ts { PACKET } else { 0 },
            rtp: None,
            undecided: (Vec::new(), Vec::new()),
            undecided_since: None,
            container: None,
            next_index: 0,
            plain: VecDeque::new(),
            bytes: 0,
        }
    }

    /// An input like one that was looked at: a transport stream with as many bytes from packet to packet, or plain.
    pub fn like(stats: &InputStats, framing: Framing) -> Self {
        let mut input = Self::new(if stats.format == Format::Ts { Format::Ts } else { Format::Plain }, framing);
        if stats.format == Format::Ts {
            input.packet_bytes = stats.packet_bytes;
            input.demux.set_packet_size(stats.packet_bytes);
        }
        input
    }

    /// A frame of a transport stream that takes longer than `patience` to come in goes in parts, as
    /// [`Demux::set_patience`] has it.
    pub const fn set_patience(&mut self, patience: Duration) {
        self.demux.set_patience(patience);
    }

    /// Takes the next datagram or piece, which arrived at `now`.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.format == Format::Plain && self.looking {
            self.look(bytes);
        }
        match self.format {
            Format::Ts => self.ts(now, bytes),
            Format::Plain => self.plain(now, bytes),
            Format::Auto => self.decide(now, bytes),
        }
    }

    /// The input has ended: every unit that waited for more goes.
    pub fn finish(&mut self, now: Instant) {
        if self.format == Format::Auto {
            self.settle(now, Format::Plain);
        }
        if let Some(rtp) = &mut self.rtp {
            rtp.finish(|payload| self.demux.push(now, payload));
        }
        if self.format == Format::Ts {
            self.demux.finish(now);
        }
    }

    /// The next unit, in the order in which they were completed.
    pub fn poll(&mut self) -> Option<Unit> {
        self.plain.pop_front().or_else(|| self.demux.poll())
    }

    /// When to push again at the latest, of no bytes if need be, so that what waits for more can go.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let undecided = self.undecided_since.filter(|_| self.format == Format::Auto).map(|since| since + UNDECIDED);
        let rtp = self.rtp.as_ref().and_then(Rtp::timeout);
        [undecided, rtp, self.demux.poll_timeout()].into_iter().flatten().min()
    }

    /// What has been seen so far.
    pub fn stats(&self) -> InputStats {
        InputStats {
            format: self.format,
            bytes: self.bytes,
            packet_bytes: self.packet_bytes,
            rtp: self.rtp.as_ref().map(|rtp| rtp.stats),
            ts: self.demux.stats(),
        }
    }

    /// The file format that a plain byte stream began with, if it is a known one.
    pub const fn container(&self) -> Option<Container> {
        self.container
    }

    /// How many programs of a transport stream have told what they have, and what their PIDs carry.
    pub fn programs(&self) -> (usize, Vec<Codec>) {
        self.demux.programs()
    }

    fn ts(&mut self, now: Instant, bytes: &[u8]) {
        let Some(rtp) = &mut self.rtp else { return self.demux.push(now, bytes) };
        rtp.release(now, |payload| self.demux.push(now, payload));
        // What is no RTP on the same port, for example RTCP, is no part of the stream.
        rtp.push(now, bytes, |payload| self.demux.push(now, payload));
        self.demux.push(now, &[]);
    }

    fn decide(&mut self, now: Instant, bytes: &[u8]) {
        let datagrams = self.framing == Framing::Datagrams;
        self.undecided.1.extend_from_slice(bytes);
        if !bytes.is_empty() {
            self.undecided.0.push(self.undecided.1.len());
        }
        if self.undecided.1.is_empty() {
            return;
        }
        let since = *self.undecided_since.get_or_insert(now);
        if datagrams && carries_ts(bytes) {
            self.rtp = Some(Rtp::default());
            self.packet_bytes = PACKET;
            return self.settle(now, Format::Ts);
        }
        let held = &self.undecided.1;
        let whole = datagrams
            && held.len().is_multiple_of(PACKET)
            && held.iter().step_by(PACKET).all(|byte| *byte == crate::ts::SYNC);
        if let Some(size) = if whole { Some(PACKET) } else { size_of_ts(held) } {
            self.packet_bytes = size;
            self.demux.set_packet_size(size);
            return self.settle(now, Format::Ts);
        }
        let waits = now.since(since) < UNDECIDED && held.len() < MAX_UNDECIDED;
        if !waits || !could_be_ts(held) {
            self.settle(now, Format::Plain);
        }
    }

    fn settle(&mut self, now: Instant, format: Format) {
        self.format = format;
        let (ends, held) = core::mem::take(&mut self.undecided);
        let mut from = 0;
        let pieces = ends.iter().map(|end| {
            let piece = &held[from..*end];
            from = *end;
            piece
        });
        match format {
            Format::Ts if self.rtp.is_none() => self.ts(now, &held),
            Format::Ts => pieces.for_each(|piece| self.ts(now, piece)),
            Format::Plain | Format::Auto => {
                if self.framing != Framing::Datagrams {
                    self.container = Container::of(&held);
                    self.plain(now, &held);
                } else {
                    pieces.for_each(|piece| self.plain(now, piece));
                }
                let last = held.len().saturating_sub(TURN);
                self.undecided.1.extend_from_slice(&held[last..]);
            }
        }
    }

    /// Notices if plain data turns into a transport stream in `bytes`, which were not taken yet.
    fn look(&mut self, bytes: &[u8]) {
        let last = &mut self.undecided.1;
        last.extend_from_slice(bytes);
        let rtp = self.framing == Framing::Datagrams && carries_ts(bytes) && bytes.len() > 2 * PACKET;
        let size = if rtp { Some(PACKET) } else { turns_into_ts(last) };
        let Some(size) = size else {
            last.drain(..last.len().saturating_sub(TURN));
            return;
        };
        (self.format, self.packet_bytes) = (Format::Ts, size);
        self.rtp = rtp.then(Rtp::default);
        self.demux.set_packet_size(size);
        self.demux.begin_at(self.next_index);
        self.undecided.1 = Vec::new();
    }

    fn plain(&mut self, now: Instant, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let block = match self.framing {
            Framing::Datagrams => bytes.len(),
            Framing::Stream(block) => block,
        };
        for block in bytes.chunks(block.max(1)) {
            self.plain.push_back(Unit {
                kind: Kind::Data,
                reference: true,
                continues: false,
                more: false,
                pid: 0,
                runs: vec![Run::one(self.next_index, false)],
                bytes: block.to_vec(),
                first_captured: now,
                last_captured: now,
                pts: None,
                dts: None,
            });
            self.next_index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(input: &mut Input) -> Vec<(u64, Vec<u8>)> {
        core::iter::from_fn(|| input.poll()).map(|unit| (unit.first_index(), unit.bytes)).collect()
    }

    #[test]
    fn datagrams_that_are_no_transport_stream_are_one_unit_each() {
        let mut input = Input::new(Format::Auto, Framing::Datagrams);
        input.push(Instant::ZERO, b"hello");
        input.push(Instant::ZERO, b"world");
        assert_eq!(drain(&mut input), [(0, b"hello".to_vec()), (1, b"world".to_vec())]);
        assert_eq!(input.stats().format, Format::Plain);
    }

    #[test]
    fn a_plain_stream_is_cut_into_blocks_and_nothing_of_it_is_lost() {
        let mut input = Input::new(Format::Auto, Framing::Stream(4));
        input.push(Instant::ZERO, b"Gabcdef");
        assert!(drain(&mut input).is_empty(), "the first letter is the sync byte, so it is too early to tell");
        input.push(Instant::from_millis(250), b"");
        assert_eq!(drain(&mut input), [(0, b"Gabc".to_vec()), (1, b"def".to_vec())]);
        input.push(Instant::from_millis(251), b"g");
        input.finish(Instant::from_millis(252));
        assert_eq!(drain(&mut input), [(2, b"g".to_vec())]);
    }

    fn packets(count: u8) -> Vec<u8> {
        (0..count)
            .flat_map(|n| {
                let mut packet = [n; PACKET];
                packet[..4].copy_from_slice(&[0x47, 1, 0, 0x10 | n & 15]);
                packet
            })
            .collect()
    }

    /// Format, and the packets that come out.
    fn through(framing: Framing, pieces: &[&[u8]]) -> (InputStats, Vec<u8>) {
        let mut input = Input::new(Format::Auto, framing);
        for (ms, piece) in (0..).zip(pieces) {
            input.push(Instant::from_millis(ms), piece);
        }
        input.finish(Instant::from_millis(100));
        let bytes = drain(&mut input).into_iter().flat_map(|(_, bytes)| bytes).collect();
        (input.stats(), bytes)
    }

    #[test]
    fn a_transport_stream_in_datagrams_of_any_size_is_known() {
        let stream = packets(40);
        for size in [1316, 1472, 188, 100, 1000, 4096] {
            let (stats, out) = through(Framing::Datagrams, &stream.chunks(size).collect::<Vec<_>>());
            assert_eq!((stats.format, stats.packet_bytes, out == stream), (Format::Ts, PACKET, true), "{size}");
        }
    }

    #[test]
    fn rtp_is_taken_away_and_its_numbers_count_what_is_missing() {
        let stream = packets(40);
        let mut datagrams: Vec<Vec<u8>> = stream
            .chunks(7 * PACKET)
            .enumerate()
            .map(|(n, piece)| [&[0x80, 33, 0, n as u8, 0, 0, 0, 0, 0, 0, 0, 1], piece].concat())
            .collect();
        datagrams.swap(2, 3);
        datagrams.remove(1);
        let pieces: Vec<&[u8]> = datagrams.iter().map(Vec::as_slice).collect();
        let (stats, out) = through(Framing::Datagrams, &pieces);
        assert_eq!((stats.format, stats.rtp), (Format::Ts, Some(RtpStats { lost: 1, reordered: 1 })));
        assert_eq!(out, [&stream[..7 * PACKET], &stream[14 * PACKET..]].concat());
    }

    #[test]
    fn plain_data_that_turns_into_a_transport_stream_is_noticed() {
        let stream = packets(60);
        let mut pieces: Vec<&[u8]> = vec![b"hello", b"a stray one"];
        pieces.extend(stream.chunks(1316));
        let mut input = Input::new(Format::Auto, Framing::Datagrams);
        pieces.iter().for_each(|piece| input.push(Instant::ZERO, piece));
        input.finish(Instant::ZERO);
        assert_eq!(input.stats().format, Format::Ts);
        let mut next = 0;
        while let Some(unit) = input.poll() {
            assert_eq!(unit.first_index(), next, "indexes go on");
            next += unit.packets().count() as u64;
        }
        assert!(next >= 2 + 52, "{next}");
    }

    #[test]
    fn a_file_format_in_a_pipe_is_named() {
        let mut input = Input::new(Format::Auto, Framing::Stream(1000));
        input.push(Instant::ZERO, &[0x1a, 0x45, 0xdf, 0xa3, 1, 2, 3]);
        assert_eq!((input.container(), input.stats().format), (Some(Container::Matroska), Format::Plain));
    }

    #[test]
    fn a_short_plain_input_comes_out_when_it_ends() {
        let mut input = Input::new(Format::Auto, Framing::Stream(100));
        input.push(Instant::ZERO, b"G");
        input.finish(Instant::ZERO);
        assert_eq!(drain(&mut input), [(0, b"G".to_vec())]);
    }
}
