use super::source::Source;
use crate::out::units;
use braidcast_core::Instant;
use braidcast_media::{Format, Kind, Unit};
use std::time::Duration;

/// What is known of an input is said after this time, and of a group as soon as one was whole.
const SOON: Duration = Duration::from_secs(2);
const LATEST: Duration = Duration::from_secs(6);

/// What a latency should leave for variations, and to what it is rounded.
const MARGIN: Duration = Duration::from_millis(50);
/// It is said again if it takes longer than before by this factor.
const WORSE: f64 = 1.5;

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
    /// What took longest to come in, from its first byte to the time when it could go, and how long.
    slowest: Option<(Kind, Duration)>,
    said_slowest: Duration,
    asked: Duration,
}

impl Intake {
    /// Takes a unit that goes to the sender `now`.
    pub(super) fn see(&mut self, now: Instant, unit: &Unit) {
        let took = now.since(unit.first_captured);
        // What nobody misses may wait.
        if (unit.reference || unit.kind != Kind::Other) && self.slowest.is_none_or(|(_, most)| took > most) {
            self.slowest = Some((unit.kind, took));
        }
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

    /// Returns `true` if there may be something new to say of it: more than half of `latency` is gone.
    pub(super) fn is_slow(&self, latency: Duration) -> bool {
        self.slowest.is_some_and(|(_, took)| took > latency / 2 && took > self.asked)
    }

    /// What is to be said if the input itself takes longer than `latency` leaves, with the least latency that would do.
    /// `one_way`: how long the fastest path takes.
    pub(super) fn too_slow(&mut self, latency: Duration, one_way: Duration) -> Option<String> {
        let (kind, took) = self.slowest?;
        self.asked = took;
        if took + one_way <= latency || took < self.said_slowest.mul_f64(WORSE) {
            return None;
        }
        self.said_slowest = took;
        let steps = (took + one_way + MARGIN).as_millis().div_ceil(MARGIN.as_millis());
        let least = MARGIN * u32::try_from(steps).unwrap_or(u32::MAX);
        let what = match kind {
            Kind::I | Kind::P | Kind::B => format!("an {kind} frame").replace("an P", "a P").replace("an B", "a B"),
            Kind::Audio => "a packet of audio".into(),
            Kind::Tables | Kind::Other | Kind::Data => "a part of the input".into(),
        };
        Some(format!(
            "{what} took {} to come in, too long for a latency of {}: use --latency {}ms or more",
            units::time(took),
            units::time(latency),
            least.as_millis()
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_slower_than_the_latency_is_told_with_the_least_that_would_do() {
        let ms = Duration::from_millis;
        let mut intake = Intake::default();
        let mut see = |kind: Kind, began, now| {
            let unit = Unit {
                kind,
                reference: kind != Kind::Other,
                continues: false,
                more: false,
                pid: 256,
                runs: Vec::new(),
                bytes: Vec::new(),
                first_captured: Instant::from_millis(began),
                last_captured: Instant::from_millis(now),
                pts: None,
                dts: None,
            };
            intake.see(Instant::from_millis(now), &unit);
            intake.too_slow(ms(150), ms(20))
        };
        assert_eq!(see(Kind::P, 0, 120), None);
        assert_eq!(see(Kind::Other, 0, 900), None, "nobody misses it");
        let words = see(Kind::I, 1000, 1310).unwrap();
        assert_eq!(
            words,
            "an I frame took 310 ms to come in, too long for a latency of 150 ms: use --latency 400ms or more"
        );
        assert_eq!(see(Kind::I, 2000, 2400), None, "said already");
        assert!(see(Kind::Audio, 3000, 3500).unwrap().contains("a packet of audio took 500 ms"));
    }
}
