//! What is said at the end.

use super::Session;
use crate::args::{Common, StreamArgs};
use crate::cmd::common;
use crate::cmd::neighbour::Figures;
use crate::cmd::security::SAME_VERSION;
use crate::failure::{Failure, Outcome};
use crate::out::session::{self, End};
use crate::out::{json, security, units};
use braidcast_media::Format;
use braidcast_sctp::CloseReason;
use braidcast_session::{Farewell, Report};
use serde::Serialize;
use std::time::Duration;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    input: String,
    format: &'static str,
    reliable: bool,
    latency_ms: f64,
    /// Everything that was promised was delivered.
    complete: bool,
    /// Ended by Ctrl-C.
    interrupted: bool,
    input_bytes: u64,
    /// The neighbour that the input comes from (`srt://`).
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbour: Option<Figures>,
    #[serde(flatten)]
    report: common::Named<'a>,
}

impl Session {
    /// Prints the summary.
    pub(super) fn finish(mut self, command: &'static str, args: &StreamArgs, common: &Common) -> Outcome {
        self.live.close();
        self.service.ends();
        let now = self.driver.now();
        // One more turn sends the last packets.
        self.ends.say_goodbye(&mut self.driver, &mut self.sender);
        self.watch.finish(&self.live);
        self.rates.finish(&self.live);
        let reliable = self.reliable;
        let report = self.sender.report(now);
        let (complete, reason) = self.end.clone().unwrap_or((false, CloseReason::Aborted));
        let stats = self.source.stats();
        let outcome = self.outcome(complete, &reason);
        if common.json {
            let document = Document {
                input: self.source.name().to_owned(),
                format: if stats.format == Format::Ts { "mpeg-ts" } else { "plain" },
                reliable,
                latency_ms: args.latency.as_secs_f64() * 1e3,
                complete,
                interrupted: self.interrupted,
                input_bytes: stats.bytes,
                neighbour: self.source.neighbour(),
                report: common::Named {
                    report: &report,
                    names: report.paths.iter().map(|path| self.path_name(path)).collect(),
                },
            };
            json::print(command, &document)?;
        } else if !common.quiet && (self.began.is_some() || outcome.is_ok()) {
            self.print_summary(&report, stats.bytes, args.shared.plain);
        }
        outcome
    }

    fn print_summary(&self, report: &Report, input_bytes: u64, plain: bool) {
        let input = units::bytes(input_bytes);
        match self.began {
            Some(_) => say!("{input} of input in {}", units::time(Duration::from_secs_f64(report.seconds))),
            None => say!("{input} of input, none of it sent"),
        }
        say!("{}", session::paths(report, End::Sender, |path| self.path_name(path), self.live.style()));
        if !report.kinds.is_empty() && !self.reliable {
            say!("{}", session::kinds(report, self.live.style()));
        }
        self.load.summary().iter().for_each(|words| say!("{words}"));
        security::lines(report.security.as_ref(), plain, self.began.is_some()).iter().for_each(|line| say!("{line}"));
    }

    fn outcome(&mut self, complete: bool, reason: &CloseReason) -> Outcome {
        if complete || (self.interrupted && self.began.is_none() && !self.resumable) {
            return Ok(());
        }
        let farewell = Farewell::of(reason);
        let about_keys = self.security.hint(reason.insecure());
        let hint = match (farewell, reason) {
            // Whoever stopped it knows why it ended.
            _ if self.interrupted && !(self.resumable && self.began.is_some()) => "",
            (Some(Farewell::Busy), _) => {
                "wait for its end; or start the receiver with --keep (the next one waits), or with --accept NAME=OUTPUT and give each sender a --name"
            }
            (Some(Farewell::UnknownName), _) => "give --name as one of the receiver's --accept has it, or add it there",
            (Some(Farewell::Full), _) => "wait for one to end",
            (Some(Farewell::NotPermitted), _) => {
                "the receiver's --authorized file needs a line with the fingerprint of this end's --identity"
            }
            (Some(Farewell::TooMuch), _) => "send less, or have max-rate raised in the receiver's --authorized file",
            (Some(Farewell::Version), _) => SAME_VERSION,
            (Some(Farewell::Measures), _) => {
                "start `braidcast receive` there; a `perf server` takes `perf client` only"
            }
            _ if self.reliable && self.resumable && self.began.is_some() => {
                "what is written there stays: start both ends again, and it goes on from there"
            }
            (_, CloseReason::NoAnswer) if !self.ends.is_called() => {
                "start `braidcast receive` there first, and check that UDP reaches it on every --to"
            }
            (_, CloseReason::PathsFailed) => "no network answered any more; start again when one does",
            (_, CloseReason::Insecure(_)) if self.began.is_none() => &about_keys,
            _ if self.ends.is_called() && self.began.is_none() => {
                "start `braidcast receive --from` there, and check that UDP reaches the port of --at"
            }
            _ if self.began.is_none() => "check that `braidcast receive` runs there, with the same --key",
            _ => "the receiver's own messages say more",
        };
        let why = match (farewell, reason) {
            (Some(farewell), _) => farewell.to_string(),
            (None, CloseReason::Aborted) => "stopped".into(),
            (None, CloseReason::NoAnswer) => self.ends.refusal(&self.driver).unwrap_or_else(|| reason.to_string()),
            (None, reason) => reason.to_string(),
        };
        let never_heard = self.sender.report(self.driver.now()).unheard_seconds.is_none();
        let never_taken = farewell.is_some_and(Farewell::is_mismatch) && never_heard;
        let what = match (self.began, self.reliable) {
            (None, _) if self.interrupted => {
                return Err(Failure::new("stopped before a receiver answered", ""));
            }
            (None, _) => "no connection".into(),
            (_, false) if never_taken => "no connection".into(),
            (_, false) => "the stream was not delivered to its end".into(),
            (_, true) => format!(
                "not all was written: the receiver has confirmed {} of {}",
                units::bytes(self.sender.written_bytes()),
                self.source.size().map_or_else(|| units::bytes(self.source.stats().bytes), units::bytes)
            ),
        };
        Err(Failure::new(format!("{what}: {why}"), hint))
    }
}
