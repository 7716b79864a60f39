//! Tells encoders what they may make: lines of JSON for programs that follow each frame, a command for the others.

use crate::args::StreamArgs;
use crate::args::values::StatsTarget;
use crate::cmd::watch::StatsFile;
use crate::failure::{Failure, Outcome};
use crate::out::json::round;
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_session::RateReport;
use serde::Serialize;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Members may be added under the same number; none is renamed or changes its meaning.
const VERSION: u32 = 1;
/// An encoder that follows each picture is told so often.
const EACH_PICTURE: Duration = Duration::from_millis(20);
/// A command is run again when the rate has changed by this share.
const CHANGE: f64 = 0.05;
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
}

/// Who is told.
pub(super) struct Rates {
    files: Vec<StatsFile>,
    hook: Option<Hook>,
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
        if let Some(target) = &args.rate_report {
            if let (StatsTarget::Stdout, Some(other)) = (target, stdout) {
                return Err(Failure::usage(
                    format!("--rate-report would go to stdout, where {other} goes"),
                    "give it a file: --rate-report FILE",
                ));
            }
            files.push(StatsFile::open(target, "rate reports", "--rate-report")?);
        }
        let hook = args.on_rate.clone();
        let hook = hook.map(|command| Hook { command, running: None, told: 0.0, warned: false });
        Ok(Self { files, hook, each: args.rate_interval, began: now, told_at: None })
    }

    /// Tells an encoder of ours, too, as often as it makes pictures.
    pub(super) fn add_encoder(&mut self, pipe: impl Write + Send + 'static) {
        self.files.push(StatsFile::into_pipe(pipe, "the rate reports for the encoder"));
        self.each = EACH_PICTURE;
    }

    /// When somebody is to be told next.
    pub(super) fn next(&self) -> Option<Instant> {
        let anybody = !self.files.is_empty() || self.hook.is_some();
        anybody.then(|| self.told_at.map_or(self.began, |at| at + self.each))
    }

    /// Tells who asked, if that is due.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        connected: bool,
        live: &Live,
        report: impl FnOnce() -> Option<RateReport>,
    ) {
        if self.next().is_none_or(|at| now < at) {
            return;
        }
        self.told_at = Some(now);
        let Some(report) = report() else { return };
        let line = Line { version: VERSION, seconds: round(now.since(self.began).as_secs_f64()), connected, report };
        self.files.iter_mut().for_each(|file| file.tell(&line));
        if let Some(hook) = &mut self.hook {
            hook.tell(now, &line, live);
        }
    }

    /// Says what has failed, once.
    pub(super) fn check(&self, live: &Live) {
        self.files.iter().filter_map(StatsFile::take_failure).for_each(|words| live.warn(words));
    }

    /// Writes what waits. A command that still runs is left to itself.
    pub(super) fn finish(&mut self, live: &Live) {
        self.files.iter_mut().for_each(StatsFile::finish);
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
