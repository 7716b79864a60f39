//! `true` if more comes in than the paths carry, and what to do about it, in words.

use crate::out::units;
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_session::{KindReport, Report};
use std::collections::VecDeque;
use std::time::Duration;

/// Period over which the input rate is averaged: a key frame is many times as large as the next
/// frames.
const INPUT: Duration = Duration::from_secs(5);
/// What the paths carry may have fallen within this time.
const FALLEN: Duration = Duration::from_secs(2);
/// Counts are kept for this long.
const KEPT: Duration = Duration::from_secs(10);
/// Moments that are kept; they come twenty times a second at most.
const MOST: usize = 256;
/// Share of what the paths carry that an encoder should leave for variations.
const RESERVE: f64 = 0.1;
/// It is an overload from this share of dropped frames on, and over below the other.
const BEGINS: f64 = 0.02;
const ENDS: f64 = 0.005;
/// As long as it lasts, it is said again after this.
const AGAIN: Duration = Duration::from_secs(30);

/// Counts of a session at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    input_bytes: u64,
    /// Of those, audio and tables.
    audio_bytes: u64,
    /// From here to the receiver over the quickest path, without any queue.
    one_way: Option<Duration>,
    /// All of it, and that of single paths.
    acked_bytes: u64,
    delivered_bytes: u64,
    captured: u64,
    dropped: u64,
    /// Bit/s that the paths carry that answer, as far as known.
    capacity: Option<f64>,
    capacity_is_floor: bool,
    /// No path was full of late.
    all_floors: bool,
}

/// What the paths carry together, bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Carried {
    pub(crate) rate: f64,
    pub(crate) is_floor: bool,
}

/// What is to be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    Overload(String),
    Over(String),
}

/// Follows what comes in and what is carried.
#[derive(Debug, Default)]
pub(crate) struct Load {
    moments: VecDeque<(Instant, Moment)>,
    overload: bool,
    /// When this one began.
    began: Option<Instant>,
    said: Option<Instant>,
    /// What the paths carried then, bit/s.
    said_rate: f64,
    said_overload: bool,
    /// Of all overloads: how long they took, and bits that came in and could be carried meanwhile.
    whole: (Duration, f64, f64),
    /// How long after its capture a frame is due, if it is.
    latency: Option<Duration>,
    /// It was said that the way takes longer.
    said_far: bool,
}

/// Returns `true` for what is heard, and for what a decoder needs before it hears anything.
fn is_audio(kind: &str) -> bool {
    [Kind::Audio, Kind::Tables].iter().any(|it| it.name() == kind)
}

impl From<&Report> for Moment {
    fn from(report: &Report) -> Self {
        let sum = |count: fn(&KindReport) -> u64| report.kinds.iter().map(count).sum::<u64>();
        let active = || report.paths.iter().filter(|path| path.state == "active");
        let known = active().any(|path| path.capacity.is_some());
        Self {
            input_bytes: report.input_bytes,
            one_way: active()
                .filter_map(|path| path.min_rtt_ms)
                .min_by(f64::total_cmp)
                .map(|rtt| Duration::from_secs_f64(rtt / 2000.0)),
            audio_bytes: report.kinds.iter().filter(|it| is_audio(it.kind)).map(|it| it.bytes).sum(),
            acked_bytes: report.acked_bytes,
            delivered_bytes: report.paths.iter().map(|path| path.delivered_bytes).sum(),
            captured: sum(|kind| kind.captured),
            dropped: sum(|kind| kind.unsent + kind.abandoned),
            capacity: known.then(|| active().filter_map(|path| path.capacity).sum()),
            capacity_is_floor: active().any(|path| path.capacity_is_floor),
            all_floors: active().all(|path| path.capacity_is_floor),
        }
    }
}

impl Load {
    /// Of a stream whose frames are due so long after their capture.
    pub(crate) fn within(latency: Duration) -> Self {
        Self { latency: Some(latency), ..Self::default() }
    }

    /// Takes the report of `now`.
    pub(crate) fn follow(&mut self, now: Instant, report: &Report) {
        self.add(now, &report.into());
    }

    fn add(&mut self, now: Instant, moment: &Moment) {
        let since = self.moments.back().map_or(Duration::ZERO, |(at, _)| now.since(*at));
        while self.moments.len() >= MOST || self.moments.get(1).is_some_and(|(at, _)| now.since(*at) >= KEPT) {
            self.moments.pop_front();
        }
        self.moments.push_back((now, *moment));
        let (Some(input), Some(capacity)) = (self.input(), self.capacity()) else {
            (self.overload, self.began) = (false, None);
            return;
        };
        let (dropped, of) = self.since(now, INPUT, |it| it.dropped);
        let share = dropped as f64 / of.max(1) as f64;
        // Windows that still open say nothing.
        let settled = self.moments.front().is_some_and(|(at, _)| now.since(*at) >= INPUT);
        // What is late for the distance is not late for the rate.
        self.overload = settled
            && self.distance().is_none()
            // Once the paths carry all again, what was dropped before counts no more.
            && input > capacity.rate.max(self.mean(FALLEN))
            && if self.overload { share > ENDS } else { share > BEGINS && !moment.all_floors };
        if !self.overload {
            self.began = None;
            return;
        }
        self.began.get_or_insert(now);
        let seconds = since.as_secs_f64();
        let rate = moment.capacity.map_or(capacity.rate, |at_the_moment| capacity.rate.min(at_the_moment));
        self.whole = (self.whole.0 + since, self.whole.1 + input * seconds, self.whole.2 + rate * seconds);
    }

    /// How much a count grew over `span`, and the captured frames of the same time.
    fn since(&self, now: Instant, span: Duration, count: fn(&Moment) -> u64) -> (u64, u64) {
        let Some((_, last)) = self.moments.back() else { return (0, 0) };
        let first = self.moments.iter().rev().find(|(at, _)| now.since(*at) >= span).or(self.moments.front());
        let Some((_, first)) = first else { return (0, 0) };
        (count(last).saturating_sub(count(first)), last.captured.saturating_sub(first.captured))
    }

    /// Bit/s that come in.
    pub(crate) fn input(&self) -> Option<f64> {
        self.rate(|it| it.input_bytes)
    }

    /// Bit/s that were acknowledged.
    pub(crate) fn delivered(&self) -> Option<f64> {
        self.rate(|it| it.acked_bytes)
    }

    /// By how many bit/s a count of bytes grew.
    fn rate(&self, bytes: fn(&Moment) -> u64) -> Option<f64> {
        let (last_at, last) = self.moments.back()?;
        let first = self.moments.iter().rev().find(|(at, _)| last_at.since(*at) >= INPUT).or(self.moments.front());
        let (first_at, first) = first?;
        let seconds = last_at.since(*first_at).as_secs_f64();
        (seconds >= 0.9).then(|| bytes(last).saturating_sub(bytes(first)) as f64 * 8.0 / seconds)
    }

    /// What the paths carry together, on average over the last five seconds, or over the last two if that is less: a
    /// network that has become slow is slow now.
    pub(crate) fn capacity(&self) -> Option<Carried> {
        let (_, last) = self.moments.back()?;
        last.capacity?;
        let mean = self.mean(INPUT).min(self.mean(FALLEN));
        // What is copied over several paths, or made up for, is carried as well.
        let single = self.rate(|it| it.delivered_bytes).unwrap_or_default();
        let shared = (self.delivered().unwrap_or_default() - single).max(0.0);
        Some(Carried { rate: mean + shared, is_floor: last.capacity_is_floor })
    }

    /// The mean of what was known over `span`, bit/s; 0 if nothing was.
    fn mean(&self, span: Duration) -> f64 {
        let Some((now, _)) = self.moments.back() else { return 0.0 };
        let recent = self.moments.iter().rev().take_while(|(at, _)| now.since(*at) <= span);
        let rates = recent.filter_map(|(_, it)| it.capacity);
        let (sum, count) = rates.fold((0.0, 0.0_f64), |(sum, count), rate| (sum + rate, count + 1.0));
        sum / count.max(1.0)
    }

    /// What an encoder should make in all, bit/s, two digits of it; `None` while no path was full,
    /// so that nothing limits it.
    pub(crate) fn suggestion(&self) -> Option<f64> {
        let (_, last) = self.moments.back()?;
        let capacity = self.capacity().filter(|_| !last.all_floors)?;
        Some(two_digits(capacity.rate * (1.0 - RESERVE)))
    }

    /// The time that packets take over the quickest path without any queue, and that in which frames are due, if that
    /// is less.
    fn distance(&self) -> Option<(Duration, Duration)> {
        let (_, last) = self.moments.back()?;
        last.one_way.zip(self.latency).filter(|(one_way, latency)| one_way >= latency)
    }

    /// What is wrong now, if there is an overload, or no path that is quick enough.
    pub(crate) fn words(&self) -> Option<String> {
        if let Some((one_way, latency)) = self.distance() {
            // Two round trips: what is lost is sent again in time.
            let enough = (4 * one_way).as_millis().div_ceil(100) * 100;
            return Some(format!(
                "packets take {} to the receiver, and frames are due {} after their capture: all are late; use \
                 --latency {enough}ms",
                units::time(one_way),
                units::time(latency)
            ));
        }
        let (input, capacity) = (self.input()?, self.capacity()?);
        self.overload.then(|| {
            let audio = self.rate(|it| it.audio_bytes).filter(|audio| *audio > capacity.rate);
            in_words("comes in is", "carry", input, capacity.rate, audio)
        })
    }

    /// What was wrong, for the summary.
    pub(crate) fn summary(&self) -> Option<String> {
        let (time, input, carried) = self.whole;
        let seconds = time.as_secs_f64();
        let words = || in_words("came in was", "carried", input / seconds, carried / seconds, None);
        (seconds >= 1.0).then(|| format!("for {} {}", units::time(time), words()))
    }

    /// What is to be said now, each time once.
    pub(crate) fn advise(&mut self, now: Instant) -> Option<Advice> {
        if self.distance().is_some() && !std::mem::replace(&mut self.said_far, true) {
            return self.words().map(Advice::Overload);
        }
        if !self.overload {
            let over = self.said_overload && self.said.is_some_and(|at| now.since(at) >= INPUT);
            self.said_overload &= !over;
            return over.then(|| Advice::Over("the paths carry what comes in again".into()));
        }
        // Before, the mean is still that of before.
        if self.began.is_none_or(|at| now.since(at) < FALLEN) {
            return None;
        }
        let rate = self.capacity()?.rate;
        // Who was told what is twice too much by now is told again.
        let worse = self.said_overload && rate * 2.0 < self.said_rate;
        if self.said.is_some_and(|at| now.since(at) < if worse { INPUT } else { AGAIN }) {
            return None;
        }
        let words = self.words()?;
        (self.said, self.said_rate, self.said_overload) = (Some(now), rate, true);
        Some(Advice::Overload(words))
    }
}

/// What a user can do about it, too. `audio`: bit/s of audio and tables, if not even these fit.
fn in_words(comes: &str, carry: &str, input: f64, capacity: f64, audio: Option<f64>) -> String {
    let encoder = units::rate(two_digits(capacity * (1.0 - RESERVE)));
    let words =
        format!("what {comes} {}, the paths {carry} about {}", units::rate(input), units::rate(two_digits(capacity)));
    match audio {
        None => format!("{words}: lower the encoder to {encoder}"),
        Some(audio) => format!(
            "{words}: not even the audio fits, {} with its tables, and part of it is left out: send no video, and \
             lower the audio to {encoder} in all",
            units::rate(audio)
        ),
    }
}

/// `rate` to two digits, the rest left out.
fn two_digits(rate: f64) -> f64 {
    if rate < 1.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    ((rate / unit + 1e-9).floor() * unit).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second after another: bit/s that come in, that are carried, and frames of 50 that are dropped.
    fn run(load: &mut Load, from: u64, seconds: u64, input: u64, carried: f64, dropped: u64) -> Vec<Advice> {
        let mut said = Vec::new();
        for second in from..from + seconds {
            let mut moment = load.moments.back().map_or_else(Moment::default, |(_, it)| *it);
            moment.input_bytes += input / 8;
            moment.captured += 50;
            moment.dropped += dropped;
            (moment.capacity, moment.capacity_is_floor, moment.all_floors) =
                (Some(carried), dropped == 0, dropped == 0);
            let now = Instant::from_millis(second * 1000);
            load.add(now, &moment);
            said.extend(load.advise(now));
        }
        said
    }

    #[test]
    fn too_much_is_said_with_what_to_do_and_said_again_when_it_is_over() {
        let mut load = Load::default();
        assert_eq!(run(&mut load, 0, 10, 3_000_000, 3_900_000.0, 0), []);
        assert_eq!(load.suggestion(), None, "nothing says how much the paths carry");
        let words = "what comes in is 6.40 Mbit/s, the paths carry about 3.90 Mbit/s: lower the encoder to 3.50 Mbit/s";
        // The mean of the last five seconds has to rise first.
        let said = run(&mut load, 10, 40, 6_400_000, 3_900_000.0, 12);
        assert_eq!(said.len(), 2, "at once and after half a minute: {said:?}");
        assert_eq!(said[1], Advice::Overload(words.into()));
        assert_eq!(load.suggestion(), Some(3_500_000.0));
        let said = run(&mut load, 50, 30, 3_000_000, 3_900_000.0, 0);
        assert_eq!(said, [Advice::Over("the paths carry what comes in again".into())]);
        let summary = load.summary().unwrap();
        assert!(summary.starts_with("for ") && summary.contains("the paths carried about 3.90 Mbit/s"), "{summary}");
    }

    #[test]
    fn after_a_dip_the_advice_is_what_the_paths_carry_now() {
        let mut load = Load::default();
        run(&mut load, 0, 10, 1_250_000, 3_000_000.0, 0);
        let said = run(&mut load, 10, 6, 1_250_000, 140_000.0, 30);
        let words = "what comes in is 1.25 Mbit/s, the paths carry about 140 kbit/s: lower the encoder to 120 kbit/s";
        assert_eq!(said, [Advice::Overload(words.into())]);
        // Frames of before still count as dropped when the paths carry all again.
        run(&mut load, 16, 3, 1_250_000, 3_000_000.0, 5);
        run(&mut load, 19, 10, 1_250_000, 3_000_000.0, 0);
        let summary = load.summary().unwrap();
        assert!(summary.contains("the paths carried about 2") && summary.contains("kbit/s: lower"), "{summary}");
    }

    #[test]
    fn a_latency_that_no_path_keeps_is_said_once_with_one_that_does() {
        let mut load = Load::within(Duration::from_millis(500));
        let mut said = Vec::new();
        for second in 0..60 {
            let moment = Moment {
                input_bytes: 275_000 * second,
                captured: 50 * second,
                dropped: 50 * second,
                capacity: Some(7_400.0),
                one_way: Some(Duration::from_millis(606)),
                ..Moment::default()
            };
            load.add(Instant::from_millis(1000 * second), &moment);
            said.extend(load.advise(Instant::from_millis(1000 * second)));
        }
        let words = "packets take 606 ms to the receiver, and frames are due 500 ms after their capture: all are late; use \
                     --latency 2500ms";
        assert!(matches!(&said[..], [Advice::Overload(it)] if it == words), "{said:?}");
        assert!(load.summary().is_none(), "no encoder is to be lowered");
    }

    #[test]
    fn where_not_even_audio_fits_that_is_said_too() {
        let mut load = Load::default();
        for second in 0..10 {
            let moment = Moment {
                input_bytes: 275_000 * second,
                audio_bytes: 16_000 * second,
                captured: 50 * second,
                dropped: 40 * second,
                capacity: Some(83_000.0),
                ..Moment::default()
            };
            load.add(Instant::from_millis(1000 * second), &moment);
        }
        let words = "what comes in is 2.20 Mbit/s, the paths carry about 83.0 kbit/s: not even the audio fits, 128 kbit/s \
                     with its tables, and part of it is left out: send no video, and lower the audio to 74.0 kbit/s in all";
        assert_eq!(load.words().as_deref(), Some(words));
    }

    #[test]
    fn a_few_losses_on_paths_with_room_are_no_overload() {
        let mut load = Load::default();
        assert_eq!(run(&mut load, 0, 60, 2_000_000, 3_900_000.0, 5), []);
        assert_eq!((load.words(), load.summary()), (None, None));
    }

    #[test]
    fn two_digits_are_left() {
        for (rate, left) in
            [(3_510_000.0, 3_500_000.0), (999_999.0, 990_000.0), (87_600.0, 87_000.0), (0.5, 0.0), (7.0, 7.0)]
        {
            assert_eq!(two_digits(rate), left);
        }
    }
}
