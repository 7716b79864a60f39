use super::codec::{Audio, Video};
use super::tag::{Codec, Content, Tag};
use braidcast_core::{Instant, Unwrapper};
use braidcast_media::ts::{Coding, Mux, MuxUnit};

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
/// A time that is so far from the one before, in ms, is of another clock.
const JUMP: u64 = 10_000;
/// Units of 1/90,000 s in a millisecond.
const TICKS: u64 = 90;

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemuxCounts {
    /// Frames of video.
    pub video: u64,
    /// Units of audio.
    pub audio: u64,
    /// Pieces of codecs that are not taken.
    pub foreign: u64,
    /// Pieces that make no sense, or came before what a decoder needs to know.
    pub unusable: u64,
}

/// Makes MPEG-TS of the pieces that a connection carries. It goes on over the next connection, with the same counters
/// and a clock that does not go back.
///
/// Memory: a frame, and parameter sets.
#[derive(Debug, Default)]
pub struct Remux {
    mux: Mux,
    video: Option<Video>,
    audio: Option<Audio>,
    times: Option<Times>,
    scratch: Vec<u8>,
    counts: RemuxCounts,
}

/// From the other end's milliseconds to the program's clock.
#[derive(Debug)]
struct Times {
    numbers: Unwrapper<32>,
    /// The other end's first, and what it is here.
    from: u64,
    to: u64,
    last: u64,
}

impl Remux {
    /// Nothing has come.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was counted.
    pub const fn counts(&self) -> RemuxCounts {
        self.counts
    }

    /// Another connection: its times begin anywhere, and its codecs may be others.
    pub fn restart(&mut self) {
        (self.video, self.audio, self.times) = (None, None, None);
        self.mux.repeat_tables();
    }

    /// Takes a piece that came at `now`, and appends packets to `out`.
    pub fn push(&mut self, now: Instant, tag: &Tag, out: &mut Vec<u8>) {
        let video = match tag.codec {
            Codec::H264 | Codec::H265 => true,
            Codec::Aac => false,
            Codec::Other => {
                self.counts.foreign += 1;
                return;
            }
        };
        let usable = match &tag.content {
            Content::Config(config) => self.configure(tag.codec, config),
            Content::Unit { bytes, key, offset } => {
                let dts = self.time(now, tag.time);
                self.unit(now, video, (bytes, *key), (dts, u64::from(*offset) * TICKS), out)
            }
        };
        if usable.is_none() {
            self.counts.unusable += 1;
        }
    }

    fn configure(&mut self, codec: Codec, config: &[u8]) -> Option<()> {
        if codec == Codec::Aac {
            self.audio = Some(Audio::read(config)?);
        } else {
            self.video = Some(Video::read(codec, config)?);
        }
        let coding = |video: &Video| if video.codec == Codec::H264 { Coding::H264 } else { Coding::H265 };
        let video = self.video.as_ref().map(|it| (VIDEO, coding(it)));
        let audio = self.audio.as_ref().map(|_| (AUDIO, Coding::Aac));
        self.mux.set_streams(&video.into_iter().chain(audio).collect::<Vec<_>>());
        Some(())
    }

    fn unit(
        &mut self,
        now: Instant,
        video: bool,
        (bytes, key): (&[u8], bool),
        (dts, offset): (u64, u64),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        self.scratch.clear();
        if video {
            self.video.as_ref()?.unit(bytes, key, &mut self.scratch)?;
        } else {
            self.audio.as_ref()?.unit(bytes, &mut self.scratch)?;
        }
        let unit = MuxUnit { bytes: &self.scratch, pts: dts + offset, dts, key, layer: None };
        self.mux.push(now, if video { VIDEO } else { AUDIO }, &unit, out)?;
        *(if video { &mut self.counts.video } else { &mut self.counts.audio }) += 1;
        Some(())
    }

    /// The program's clock for the other end's `time`. After a jump it goes on from our clock.
    fn time(&mut self, now: Instant, time: u32) -> u64 {
        let fresh = || {
            let numbers = Unwrapper::new(time.into());
            let from = numbers.highest();
            Times { from, last: from, to: ticks(now), numbers }
        };
        let first = self.times.is_none();
        let times = self.times.get_or_insert_with(fresh);
        let mut at = times.numbers.unwrap(time.into());
        if first || at.abs_diff(times.last) > JUMP {
            if !first {
                *times = fresh();
                at = times.from;
            }
            self.mux.jump();
        }
        times.last = at;
        // What comes before the first, as audio may, is before it.
        (times.to + at * TICKS).saturating_sub(times.from * TICKS)
    }
}

/// The program's clock, which is a second ahead of ours, so that what comes before the first has a time too.
fn ticks(now: Instant) -> u64 {
    90_000 + (u128::from(now.as_nanos()) * 90_000 / 1_000_000_000) as u64
}
