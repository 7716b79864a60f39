use super::source::Source;
use crate::out::units;
use braidcast_core::Instant;
use braidcast_media::{Format, Kind, Unit};
use std::time::Duration;

/// What is known of an input is said after this time, and of a group as soon as one was whole.
const SOON: Duration = Duration::from_secs(2);
const LATEST: Duration = Duration::from_secs(6);

/// What comes in, to be said once: format, programs, codecs, rate, groups.
#[derive(Debug, Default)]
pub(super) struct Intake {
    said: Option<Format>,
    began: Option<Instant>,
    /// When the newest unit was captured.
    newest: Instant,
    bytes: u64,
    /// The PID of the first video, its first two frames that need no other, and its frames.
    video: Option<u16>,
    groups: Vec<Instant>,
    frames: u32,
}

impl Intake {
    /// Takes a unit on its way to the sender.
    pub(super) fn see(&mut self, unit: &Unit) {
        self.began.get_or_insert(unit.first_captured);
        self.newest = self.newest.max(unit.first_captured);
        self.bytes += unit.bytes.len() as u64;
        if !unit.kind.is_video() || unit.continues || *self.video.get_or_insert(unit.pid) != unit.pid {
            return;
        }
        self.frames += 1;
        if unit.kind == Kind::I && self.groups.len() < 2 {
            self.groups.push(unit.first_captured);
        }
    }

    /// What is to be said of it now, once for each format.
    pub(super) fn words(&mut self, source: &Source) -> Option<String> {
        let stats = source.stats();
        let passed = self.began.map_or(Duration::ZERO, |at| self.newest.since(at));
        let known = passed >= LATEST || passed >= SOON && (self.groups.len() > 1 || self.video.is_none());
        if self.said == Some(stats.format) || stats.format == Format::Auto || !(known || source.ended()) {
            return None;
        }
        let turned = self.said.replace(stats.format) == Some(Format::Plain);
        let rate = self.bytes as f64 * 8.0 / passed.as_secs_f64().max(1e-3);
        let rate = if passed >= SOON / 2 { format!("; {}", units::rate(rate)) } else { String::new() };
        if stats.format != Format::Ts {
            return Some(format!("the input is not MPEG-TS: its messages are carried as they are{rate}"));
        }
        let how = match (stats.rtp, stats.packet_bytes) {
            (Some(_), _) => " behind RTP, which is taken away",
            (None, 192 | 204) => " in longer packets, which are cut to 188 bytes",
            _ => "",
        };
        let (programs, mut codecs) = source.programs();
        codecs.sort_unstable_by_key(|codec| !codec.is_video());
        let names: Vec<&str> = codecs.iter().filter_map(|codec| codec.name()).collect();
        let what = match (programs, names.is_empty()) {
            (0, _) => "without tables".into(),
            (1, true) => "1 program".into(),
            (1, false) => format!("1 program with {}", names.join(", ")),
            (n, true) => format!("{n} programs"),
            (n, false) => format!("{n} programs with {}", names.join(", ")),
        };
        let every = |from: &Instant, to: &Instant| units::time(to.since(*from));
        let groups = match self.groups.as_slice() {
            [first, second] => format!("; an I frame every {}", every(first, second)),
            _ if self.video.is_some() => "; no two I frames yet".into(),
            _ => String::new(),
        };
        let turned = if turned { "has become" } else { "is" };
        Some(format!("the input {turned} MPEG-TS{how}: {what}{rate}{groups}{}", source.clock()))
    }
}
