//! Tells encoders what they may make: lines of JSON for programs that follow each frame, a command for the others.

use crate::args::StreamArgs;
use crate::args::rates::ReportTarget;
use crate::args::values::StatsTarget;
use crate::cmd::watch::{Lines, Pages, StatsFile, serve};
use crate::failure::{Failure, Outcome};
use crate::out::json::round;
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_media::video::Screen;
use braidcast_media::voice::{Codec, Conditions, EModel, Form};
use braidcast_session::{RateReport, Report, Sender};
use serde::Serialize;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Members may be added under the same number; none is renamed or changes its meaning.
const VERSION: u32 = 1;
/// An encoder that follows each picture is told so often.
const EACH_PICTURE: Duration = Duration::from_millis(20);
/// A command is run again when the rate has changed by this share.
const CHANGE: f64 = 0.05;
/// No rate beyond this is looked for, bit/s.
const MOST_RATE: f64 = 100e6;
/// Audio is judged by what came in the last one or two of these.
const HEARD: Duration = Duration::from_secs(5);
/// One that has not ended after this time is worth a word.
const LONG: Duration = Duration::from_secs(10);

/// A line of `--rate-report`.
#[derive(Serialize)]
struct Line {
    version: u32,
    /// Since the command began.
    seconds: f64,
    connected: bool,
    #[serde(flatten)]
    report: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<Quality>,
}

/// `--target-quality`: mean opinion scores, 1 to 5, of pictures by ITU-T G.1070 for H.264 of 640x480 where nothing is missing, and of audio
/// by the E-model (SBPN §8.4.2).
#[derive(Serialize)]
struct Quality {
    /// What the rate of pictures buys.
    mos: f64,
    target_mos: f64,
    /// What the target takes; `None` if no rate does.
    #[serde(rename = "target_bits_per_second")]
    target_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioQuality>,
}

/// What is heard, by the E-model as SBPN has it (eq. 4.1 to 4.5) for G.711: what is late or lost, and how late all is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct AudioQuality {
    /// Of a call.
    mos: f64,
    /// Of who only listens: delay takes nothing off.
    listening_mos: f64,
    r: f64,
    /// Packets of audio that were not on time, of those of the last ten seconds, 0 to 1.
    loss_share: f64,
}

impl AudioQuality {
    fn of(latency: Duration, loss: f64) -> Self {
        let rate = |delay| EModel::new(Form::Sbpn, Codec::G711).rate(&Conditions { delay, loss, burst_ratio: 1.0 });
        let (call, listening) = (rate(latency), rate(Duration::ZERO));
        let rounded = |mos: f64| (mos * 100.0).round() / 100.0;
        Self {
            mos: rounded(call.mos),
            listening_mos: rounded(listening.mos),
            r: rounded(call.r),
            loss_share: round(loss),
        }
    }
}

/// How much of the audio is on time, of late.
#[derive(Debug)]
struct Heard {
    latency: Duration,
    /// When, packets that the receiver knows of, and those of them on time; twice, [`HEARD`] apart.
    before: (Instant, f64, f64),
    last: (Instant, f64, f64),
}

impl Heard {
    const fn new(now: Instant, latency: Duration) -> Self {
        Self { latency, before: (now, 0.0, 0.0), last: (now, 0.0, 0.0) }
    }

    /// `None` before any audio came.
    fn look(&mut self, now: Instant, report: &Report) -> Option<AudioQuality> {
        let audio = report.kinds.iter().find(|kind| kind.kind == Kind::Audio.name())?;
        let on_time = audio.on_time as f64;
        let known =
            audio.on_time_share.filter(|share| *share > 0.0).map_or(audio.captured as f64, |share| on_time / share);
        if now.since(self.last.0) >= HEARD {
            self.before = std::mem::replace(&mut self.last, (now, known, on_time));
        }
        let (came, in_time) = (known - self.before.1, on_time - self.before.2);
        (came >= 1.0).then(|| AudioQuality::of(self.latency, (1.0 - in_time / came).clamp(0.0, 1.0)))
    }
}

impl Quality {
    fn of(report: &RateReport, target: f64, audio: Option<AudioQuality>) -> Self {
        let fps = 1000.0 / report.frame_interval_ms.max(1.0);
        let mos = |rate: f64| Screen::H264Vga.mos(rate / 1e3, fps, 0.0);
        // More is better at the same frame rate, up to what the model ends at.
        let (mut low, mut high) = (0.0, MOST_RATE);
        let target_rate = (mos(high) >= target).then(|| {
            for _ in 0..30 {
                let middle = f64::midpoint(low, high);
                *(if mos(middle) < target { &mut low } else { &mut high }) = middle;
            }
            high.round()
        });
        Self { mos: (mos(report.video_rate) * 100.0).round() / 100.0, target_mos: target, target_rate, audio }
    }
}

/// Who is told.
pub(super) struct Rates {
    files: Vec<StatsFile>,
    /// An encoder of ours.
    encoder: Option<StatsFile>,
    events: Option<Arc<Lines>>,
    hook: Option<Hook>,
    /// The target of quality, and what there is of audio.
    target: Option<(f64, Heard)>,
    each: Duration,
    began: Instant,
    told_at: Option<Instant>,
}

/// `--on-rate`.
struct Hook {
    command: String,
    running: Option<(Child, Instant)>,
    told: f64,
    warned: bool,
}

impl Rates {
    /// Opens what the flags ask for. `stdout`: what else goes there.
    pub(super) fn open(now: Instant, args: &StreamArgs, stdout: Option<&str>) -> Outcome<Self> {
        let mut files = Vec::new();
        let mut events = None;
        if let Some(ReportTarget::Events(at)) = args.rate_report {
            let lines = Arc::new(Lines::default());
            serve(at, Pages::Lines(Arc::clone(&lines)), "--rate-report")?;
            events = Some(lines);
        }
        if let Some(ReportTarget::Lines(target)) = &args.rate_report {
            if let (StatsTarget::Stdout, Some(other)) = (target, stdout) {
                return Err(Failure::usage(
                    format!("--rate-report and {other} cannot both go to stdout"),
                    "give it a file: --rate-report FILE",
                ));
            }
            files.push(StatsFile::open(target, "rate reports", "--rate-report")?);
        }
        let hook = args.on_rate.clone();
        let hook = hook.map(|command| Hook { command, running: None, told: 0.0, warned: false });
        let target = args.target_quality.map(|mos| (mos, Heard::new(now, args.latency)));
        if target.is_some() && args.rate_report.is_none() {
            return Err(Failure::usage(
                "--target-quality needs --rate-report",
                "say where the report goes: --rate-report FILE, - or sse:PORT",
            ));
        }
        Ok(Self { files, encoder: None, events, hook, target, each: args.rate_interval, began: now, told_at: None })
    }

    /// Tells an encoder of ours, too, as often as it makes pictures.
    pub(super) fn add_encoder(&mut self, pipe: impl Write + Send + 'static) {
        self.encoder = Some(StatsFile::into_pipe(pipe, "the rate reports for the encoder"));
        self.each = EACH_PICTURE;
    }

    /// When somebody is to be told next.
    pub(super) fn next(&self) -> Option<Instant> {
        let anybody = !self.files.is_empty() || self.encoder.is_some() || self.events.is_some() || self.hook.is_some();
        anybody.then(|| self.told_at.map_or(self.began, |at| at + self.each))
    }

    /// Tells who asked, if that is due.
    pub(super) fn tell(&mut self, now: Instant, connected: bool, live: &Live, sender: &Sender) {
        if self.next().is_none_or(|at| now < at) {
            return;
        }
        self.told_at = Some(now);
        let Some(report) = sender.rate_report(now) else { return };
        let quality = self.target.as_mut().map(|(target, heard)| {
            let audio = heard.look(now, &sender.report(now));
            Quality::of(&report, *target, audio)
        });
        let seconds = round(now.since(self.began).as_secs_f64());
        let line = Line { version: VERSION, seconds, connected, report, quality };
        if let Some(events) = &self.events {
            events.publish(&line);
        }
        self.files.iter_mut().chain(&mut self.encoder).for_each(|file| file.tell(&line));
        if let Some(hook) = &mut self.hook {
            hook.tell(now, &line, live);
        }
    }

    /// Says what has failed, once. That an encoder of ours takes no more lines is not news: it says why it ends.
    pub(super) fn check(&self, live: &Live) {
        self.files.iter().filter_map(StatsFile::take_failure).for_each(|words| live.warn(words));
    }

    /// Writes what waits. A command that still runs is left to itself.
    pub(super) fn finish(&mut self, live: &Live) {
        self.files.iter_mut().chain(&mut self.encoder).for_each(StatsFile::finish);
        self.check(live);
    }
}

impl Hook {
    fn tell(&mut self, now: Instant, line: &Line, live: &Live) {
        if let Some((child, since)) = &mut self.running {
            match child.try_wait() {
                Ok(None) => {
                    if now.since(*since) >= LONG && !std::mem::replace(&mut self.warned, true) {
                        live.warn("the command of --on-rate has not ended for 10 s; it is not run again before it has");
                    }
                    return;
                }
                Ok(Some(status)) if !status.success() && !std::mem::replace(&mut self.warned, true) => {
                    live.warn(format!(
                        "the command of --on-rate failed ({status}); it is run again when the rate changes"
                    ));
                }
                _ => {}
            }
            self.running = None;
        }
        let rate = line.report.smoothed_rate;
        if !line.connected || (rate - self.told).abs() < CHANGE * self.told.max(1.0) {
            return;
        }
        self.told = rate;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("BRAIDCAST_RATE", format!("{rate:.0}"));
        command.env("BRAIDCAST_VIDEO_RATE", format!("{:.0}", line.report.video_rate.min(rate)));
        match command.spawn() {
            Ok(child) => self.running = Some((child, now)),
            Err(error) if !std::mem::replace(&mut self.warned, true) => {
                live.warn(format!("cannot run the command of --on-rate: {error}"));
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_session::KindReport;

    fn audio(captured: u64, on_time: u64) -> Report {
        let share = (captured > 0).then(|| on_time as f64 / captured as f64);
        let kind = KindReport {
            kind: Kind::Audio.name(),
            captured,
            on_time,
            missing: captured - on_time,
            on_time_share: share,
            ..KindReport::default()
        };
        Report { kinds: vec![kind], ..Report::default() }
    }

    #[test]
    fn audio_is_judged_by_what_came_of_late_and_how_late_all_is() {
        let at = Instant::from_millis;
        let mut heard = Heard::new(at(0), Duration::from_millis(150));
        assert_eq!(heard.look(at(0), &Report::default()), None);
        let good = heard.look(at(1000), &audio(50, 50)).unwrap();
        // SBPN eq. 4.3: 94.2 less 0.024 for each ms of 150.
        assert_eq!((good.r, good.loss_share), (90.6, 0.0));
        assert!(good.listening_mos > good.mos && good.mos > 4.3);
        // A tenth of the last ten seconds: 30 ln(1 + 1.5).
        heard.look(at(5000), &audio(250, 250));
        heard.look(at(10_000), &audio(500, 500));
        heard.look(at(15_000), &audio(750, 750));
        let bad = heard.look(at(19_900), &audio(1000, 950)).unwrap();
        assert!((bad.loss_share - 0.1).abs() < 1e-3 && (bad.r - (90.6 - 27.49)).abs() < 0.02, "{bad:?}");
    }
}
