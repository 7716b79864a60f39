//! Reports to encoders the rate that they may use: lines of JSON for programs that follow each
//! frame, a command for the others.

use crate::args::rates::{RateArgs, ReportTarget};
use crate::args::values::StatsTarget;
use crate::cmd::watch::{Lines, Pages, StatsFile, serve};
use crate::failure::{Failure, Outcome};
use crate::out::json::round;
use crate::out::live::Live;
use crate::process;
use braidcast_core::Instant;
use braidcast_session::RateReport;
use serde::Serialize;
use std::io::Write;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Members may be added under the same number; none is renamed or changes its meaning.
const VERSION: u32 = 1;
/// Interval of reports to an encoder that follows each frame.
const EACH_PICTURE: Duration = Duration::from_millis(20);
/// A command is run again when the rate has changed by this share.
const CHANGE: f64 = 0.05;
/// One that has not ended after this time is worth a word.
const LONG: Duration = Duration::from_secs(10);

/// A line of `--rate-report`.
#[derive(Serialize)]
struct Line<'a, Q> {
    version: u32,
    /// Since the command began.
    seconds: f64,
    #[serde(flatten)]
    told: &'a Told<Q>,
}

/// What is told of one other end. `Q`: what is said of quality.
#[derive(Serialize)]
pub(super) struct Told<Q> {
    /// Of a tunnel, which may have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<String>,
    pub(super) connected: bool,
    #[serde(flatten)]
    pub(super) report: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quality: Option<Q>,
}

/// Who is told.
pub(super) struct Rates {
    files: Vec<StatsFile>,
    /// An encoder of ours.
    encoder: Option<StatsFile>,
    events: Option<Arc<Lines>>,
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
    pub(super) fn open(now: Instant, args: &RateArgs, on_rate: Option<&str>, stdout: Option<&str>) -> Outcome<Self> {
        args.check(on_rate.is_some())?;
        let mut files = Vec::new();
        let mut events = None;
        if let Some(&ReportTarget::Events(at)) = args.rate_report.as_ref().map(|it| &it.target) {
            let lines = Arc::new(Lines::default());
            serve(at, None, Pages::Lines(Arc::clone(&lines)), "--rate-report")?;
            events = Some(lines);
        }
        if let Some(ReportTarget::Lines(target)) = args.rate_report.as_ref().map(|it| &it.target) {
            if let (StatsTarget::Stdout, Some(other)) = (target, stdout) {
                return Err(Failure::usage(
                    format!("--rate-report and {other} cannot both go to stdout"),
                    "give it a file: --rate-report FILE",
                ));
            }
            files.push(StatsFile::open(target, "rate reports", "--rate-report")?);
        }
        let hook = on_rate.map(|it| Hook { command: it.to_owned(), running: None, told: 0.0, warned: false });
        Ok(Self { files, encoder: None, events, hook, each: args.interval(), began: now, told_at: None })
    }

    /// Adds an encoder of ours, which gets a report every [`EACH_PICTURE`].
    pub(super) fn add_encoder(&mut self, pipe: impl Write + Send + 'static) {
        self.encoder = Some(StatsFile::into_pipe(pipe, "the rate reports for the encoder"));
        self.each = EACH_PICTURE;
    }

    /// When somebody is to be told next.
    pub(super) fn next(&self) -> Option<Instant> {
        let anybody = !self.files.is_empty() || self.encoder.is_some() || self.events.is_some() || self.hook.is_some();
        anybody.then(|| self.told_at.map_or(self.began, |at| at + self.each))
    }

    /// Returns `true` if somebody is to be told now. If so, [`tell`](Self::tell) of each other end.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = self.next().is_some_and(|at| now >= at);
        if due {
            self.told_at = Some(now);
        }
        due
    }

    /// Sends the report to everyone who asked for it.
    pub(super) fn tell(&mut self, now: Instant, live: &Live, told: &Told<impl Serialize>) {
        let line = Line { version: VERSION, seconds: round(now.since(self.began).as_secs_f64()), told };
        if let Some(events) = &self.events {
            events.publish(&line);
        }
        self.files.iter_mut().chain(&mut self.encoder).for_each(|file| file.tell(&line));
        if let Some(hook) = &mut self.hook {
            hook.tell(now, told.connected, &told.report, live);
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

/// The video's share of the smoothed rate, bit/s.
fn smoothed_video(report: &RateReport) -> f64 {
    report.smoothed_rate * (report.video_rate / report.rate.max(1.0)).clamp(0.0, 1.0)
}

impl Hook {
    fn tell(&mut self, now: Instant, connected: bool, report: &RateReport, live: &Live) {
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
        let rate = report.smoothed_rate;
        if !connected || (rate - self.told).abs() < CHANGE * self.told.max(1.0) {
            return;
        }
        self.told = rate;
        let mut command = process::command("sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("BRAIDCAST_RATE", format!("{rate:.0}"));
        command.env("BRAIDCAST_VIDEO_RATE", format!("{:.0}", smoothed_video(report)));
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
    use braidcast_session::RateLimits;

    #[test]
    fn the_videos_share_is_smoothed_as_the_rate_is() {
        let nothing = RateReport::nothing(RateLimits::default(), EACH_PICTURE);
        let mut report = nothing;
        (report.rate, report.video_rate, report.smoothed_rate) = (400_000.0, 300_000.0, 900_000.0);
        assert_eq!(smoothed_video(&report).round(), 675_000.0);
    }
}
