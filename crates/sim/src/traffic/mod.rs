//! Traffic: when an application has how many bytes to send. Sources know no protocol; whatever carries them asks for
//! the next [`Emission`] and sends it.
//!
#![doc = include_str!("words.md")]

mod agent;
mod bulk;
mod cbr;
mod conference;
mod datagram;
mod frames;
mod gop;
mod histogram;
mod meter;
mod msn;
mod on_off;
mod parse;
mod poisson;
mod series;
mod skype;
mod voice;

pub use agent::Agent;
pub use conference::Conference;
pub use datagram::{DatagramSender, DatagramSink, Greedy, HEADER_BYTES, Stamp, StreamId};
pub use frames::{FrameTrace, FrameTraceError};
pub use gop::{FrameSize, Gop};
pub use histogram::Histogram;
pub use meter::{FlowMeter, Losses, MAX_RUN};
pub use on_off::{OnOff, Periods};
pub use series::Series;
pub use voice::{Codec, Voice};

use braidcast_core::Rng;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// The words by which scenarios describe traffic, as a table in Markdown.
pub const WORDS: &str = include_str!("words.md");

/// What the bytes of an emission are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Kind {
    /// Nothing in particular.
    #[default]
    Data,
    /// Audio.
    Audio,
    /// What replaces audio during silence: comfort noise parameters.
    Silence,
    /// Video frames without types.
    Video,
    /// An intra-coded frame.
    I,
    /// A predicted frame.
    P,
    /// A bidirectionally predicted frame.
    B,
}

impl Kind {
    /// Every kind, by its name.
    pub const ALL: [(&'static str, Self); 7] = [
        ("data", Self::Data),
        ("audio", Self::Audio),
        ("silence", Self::Silence),
        ("video", Self::Video),
        ("I", Self::I),
        ("P", Self::P),
        ("B", Self::B),
    ];

    /// The number of this kind on the wire: its place in [`ALL`](Self::ALL).
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind of this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).map(|&(_, kind)| kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[usize::from(self.code())].0)
    }
}

/// An application hands over some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emission {
    /// When, counted from the start of the source.
    pub at: Duration,
    /// How many, without any header of what carries them; at least 1.
    pub bytes: usize,
    /// What they are.
    pub kind: Kind,
    /// Which of the source's flows they belong to: the call, in telephony of many; otherwise 0.
    pub flow: u16,
    /// Which frame of that kind and flow they belong to, from 0. Packets of the same video frame share it.
    pub frame: u64,
}

/// A source of traffic: emissions in the order of their times, without end or until it has nothing more to send.
///
/// Any iterator over [`Emission`] will do. The same seed gives the same emissions.
pub trait Source: Iterator<Item = Emission> + fmt::Debug + Send {}

impl<T: Iterator<Item = Emission> + fmt::Debug + Send> Source for T {}

/// Packets of one size at a mean rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Mean rate in bit/s of payload.
    pub rate: u64,
    /// Bytes of payload in a packet, at least 1.
    pub size: usize,
}

impl Stream {
    /// The mean time between packets, 1 ns at least.
    pub fn gap(&self) -> Duration {
        let nanos = self.size as u128 * 8 * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
    }
}

/// A description of traffic; the table above has its words ([`FromStr`](core::str::FromStr),
/// [`Display`](fmt::Display)).
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// Always something to send: without end, or this number of bytes.
    Bulk(Option<u64>),
    /// Constant bit rate.
    Cbr(Stream),
    /// The same with one silence, from a time after the start until another.
    Interrupted(Stream, Duration, Duration),
    /// A Poisson process.
    Poisson(Stream),
    /// Bursts and pauses.
    OnOff(OnOff),
    /// Telephone calls.
    Voice(Voice),
    /// MPEG frames drawn from distributions.
    Gop(Gop),
    /// Recorded MPEG frames.
    Frames(Arc<FrameTrace>),
    /// The film of PRCMT fig. 14.
    Prcmt,
    /// The video conference of SBPN §4.4.5.
    Conference(Conference),
    /// A call by MSN Messenger (SBPN §4.4.3).
    Msn,
    /// A call by Skype (SBPN §4.4.4).
    Skype,
}

impl Traffic {
    /// Starts a source; all its randomness follows from `rng`'s seed.
    pub fn source(&self, rng: Rng) -> Box<dyn Source> {
        match self {
            Self::Bulk(limit) => Box::new(bulk::Bulk::new(*limit)),
            Self::Cbr(stream) => Box::new(cbr::Cbr::new(*stream)),
            Self::Interrupted(stream, from, until) => Box::new(cbr::Cbr::interrupted(*stream, *from..*until)),
            Self::Poisson(stream) => Box::new(poisson::Poisson::new(*stream, rng)),
            Self::OnOff(on_off) => Box::new(on_off::OnOffSource::new(*on_off, rng)),
            Self::Voice(voice) => Box::new(voice::Calls::new(*voice, rng)),
            Self::Gop(gop) => Box::new(gop::GopSource::new(gop.clone(), rng)),
            Self::Frames(trace) => Box::new(frames::Frames::new(trace.clone())),
            Self::Prcmt => Box::new(gop::GopSource::new(Gop::prcmt(), rng)),
            Self::Conference(conference) => Box::new(conference::ConferenceSource::new(conference, rng)),
            Self::Msn => Box::new(msn::Msn::new(rng)),
            Self::Skype => Box::new(skype::Skype::new(rng)),
        }
    }
}

/// `mean` with a normal spread of standard deviation `sd`, in whole bytes, kept within `least..=most`.
fn normal_bytes(rng: &mut Rng, mean: f64, sd: f64, least: usize, most: usize) -> usize {
    ((mean + sd * rng.normal()).round().max(0.0) as usize).clamp(least, most)
}
