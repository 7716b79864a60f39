use crate::ts::{Demux, DemuxStats, PACKET, looks_like_ts};
use crate::unit::{Kind, Run, Unit};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// How long the beginning of an undecided stream waits for more.
const UNDECIDED: Duration = Duration::from_millis(200);

/// What the input is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Found out from the first bytes.
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
    /// What the transport stream consisted of, if it is one.
    pub ts: DemuxStats,
}

/// Cuts an input of either format into units.
///
/// Call [`push`](Self::push) with each datagram or piece, then [`poll`](Self::poll) until it gives `None`; at the end
/// [`finish`](Self::finish) and poll again. Pushing no bytes is allowed at any time and lets units that wait for
/// more go once they have waited long enough.
///
/// Memory: that of [`Demux`], or less than three packets and one push while undecided.
#[derive(Debug)]
pub struct Input {
    format: Format,
    framing: Framing,
    demux: Demux,
    undecided: Vec<u8>,
    undecided_since: Option<Instant>,
    next_index: u64,
    plain: VecDeque<Unit>,
    bytes: u64,
}

impl Input {
    /// An input of `format`, whose plain messages are bounded by `framing`.
    pub fn new(format: Format, framing: Framing) -> Self {
        Self {
            format,
            framing,
            demux: Demux::new(),
            undecided: Vec::new(),
            undecided_since: None,
            next_index: 0,
            plain: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Takes the next datagram or piece, which arrived at `now`.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        match self.format {
            Format::Ts => self.demux.push(now, bytes),
            Format::Plain => self.plain(now, bytes),
            Format::Auto => self.decide(now, bytes),
        }
    }

    /// The input has ended: every unit that waited for more goes.
    pub fn finish(&mut self, now: Instant) {
        if self.format == Format::Auto {
            self.settle(now, Format::Plain);
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
        [undecided, self.demux.poll_timeout()].into_iter().flatten().min()
    }

    /// What has been seen so far.
    pub const fn stats(&self) -> InputStats {
        InputStats { format: self.format, bytes: self.bytes, ts: self.demux.stats() }
    }

    fn decide(&mut self, now: Instant, bytes: &[u8]) {
        if self.framing == Framing::Datagrams {
            if !bytes.is_empty() {
                let packets =
                    bytes.len().is_multiple_of(PACKET) && bytes.iter().step_by(PACKET).all(|byte| *byte == 0x47);
                self.undecided.extend_from_slice(bytes);
                self.settle(now, if packets { Format::Ts } else { Format::Plain });
            }
            return;
        }
        self.undecided.extend_from_slice(bytes);
        if self.undecided.is_empty() {
            return;
        }
        let since = *self.undecided_since.get_or_insert(now);
        match looks_like_ts(&self.undecided) {
            Some(true) => self.settle(now, Format::Ts),
            Some(false) => self.settle(now, Format::Plain),
            None if now.since(since) >= UNDECIDED => self.settle(now, Format::Plain),
            None => {}
        }
    }

    fn settle(&mut self, now: Instant, format: Format) {
        self.format = format;
        let held = core::mem::take(&mut self.undecided);
        match format {
            Format::Ts => self.demux.push(now, &held),
            Format::Plain | Format::Auto => self.plain(now, &held),
        }
    }

    fn plain(&mut self, now: Instant, bytes: &[u8]) {
        let block = match self.framing {
            Framing::Datagrams => bytes.len(),
            Framing::Stream(block) => block,
        };
        for block in bytes.chunks(block.max(1)) {
            self.plain.push_back(Unit {
                kind: Kind::Data,
                reference: true,
                continues: false,
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

    #[test]
    fn a_short_plain_input_comes_out_when_it_ends() {
        let mut input = Input::new(Format::Auto, Framing::Stream(100));
        input.push(Instant::ZERO, b"G");
        input.finish(Instant::ZERO);
        assert_eq!(drain(&mut input), [(0, b"G".to_vec())]);
    }
}
