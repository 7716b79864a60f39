//! How it went.

use super::Session;
use super::room::Room;
use super::serving::Summary;
use crate::args::Common;
use crate::cmd::common;
use crate::cmd::neighbour::Figures;
use crate::failure::{Failure, Outcome};
use crate::out::session::{self, End};
use crate::out::{json, security, units};
use braidcast_session::{Farewell, Report};
use serde::Serialize;
use std::time::Duration;

/// What `--json` prints; with several streams, of each.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    output: &'a str,
    /// Streams received to their end.
    complete_streams: u64,
    /// Streams that broke off.
    broken_streams: u64,
    interrupted: bool,
    output_bytes: u64,
    /// Bytes of live streams that an output did not take in time.
    dropped_bytes: u64,
    /// Datagrams that the system did not take (`udp://` outputs).
    unsent_datagrams: u64,
    /// The neighbour that sends, or sent last (LISTEN's `srt://`, `srtla://`, `rtp://`).
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbour: Option<Figures>,
    /// The neighbours that are outputs (`srt://`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    neighbours: Vec<Figures>,
    #[serde(flatten)]
    report: common::Named<'a>,
    /// With `--serve`: those whom it was served to.
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<Summary>,
}

#[derive(Serialize)]
struct Documents<'a> {
    complete_streams: u64,
    broken_streams: u64,
    interrupted: bool,
    streams: Vec<Document<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<Summary>,
}

impl Session {
    /// Prints the summary.
    pub(super) fn finish(mut self, common: &Common) -> Outcome {
        self.live.close();
        self.service.ends();
        let now = self.driver.now();
        let served = self.serving.as_mut().map(|serving| serving.summary(now));
        let reports: Vec<(&Room, Report)> = self
            .rooms
            .iter()
            .map(|(id, room)| (room, room.guest_report(now).unwrap_or_else(|| self.receiver.report(now, *id))))
            .collect();
        if common.json {
            self.print_json(&reports, served)?;
        } else if !common.quiet {
            reports.iter().for_each(|(room, report)| self.print_summary(room, report));
            served.iter().for_each(|served| say!("served to {}", served.words()));
        }
        if let Some(failure) = self.rooms.values_mut().find_map(|room| room.outputs.take_failure()) {
            return Err(failure);
        }
        if self.interrupted.is_some() {
            return Ok(());
        }
        // What was followed by a stream that ended well has been fixed.
        let broken = self.rooms.values().find_map(|room| match &room.end {
            Some((false, reason)) => Some((room, reason)),
            _ => None,
        });
        match broken {
            Some((room, reason)) => {
                let why = Farewell::of(reason).map_or_else(|| reason.to_string(), |farewell| farewell.to_string());
                let hint = if room.reliable {
                    "what came is kept: start both ends again, and it goes on from there"
                } else {
                    "what came is written; the sender's own messages say more"
                };
                Err(Failure::new(format!("{}the stream broke off: {why}", room.prefix()), hint))
            }
            None => Ok(()),
        }
    }

    fn print_json(&self, reports: &[(&Room, Report)], served: Option<Summary>) -> Outcome {
        let interrupted = self.interrupted.is_some();
        let complete_streams = reports.iter().map(|(room, _)| room.complete).sum();
        let broken_streams = reports.iter().map(|(room, _)| room.broken).sum();
        let mut streams: Vec<Document<'_>> = reports
            .iter()
            .map(|(room, report)| Document {
                name: &room.name,
                output: &room.to,
                complete_streams: room.complete,
                broken_streams: room.broken,
                interrupted,
                output_bytes: room.outputs.total,
                dropped_bytes: room.outputs.dropped,
                unsent_datagrams: room.outputs.unsent(),
                neighbour: room.source(),
                neighbours: room.outputs.neighbours(),
                report: common::Named {
                    report,
                    names: report.paths.iter().map(|path| self.ends.path_name(path)).collect(),
                },
                served: None,
            })
            .collect();
        if streams.len() == 1 && streams[0].name.is_empty() {
            let only = Document { served, ..streams.remove(0) };
            return json::print("receive", &only);
        }
        json::print("receive", &Documents { complete_streams, broken_streams, interrupted, streams, served })
    }

    fn print_summary(&self, room: &Room, report: &Report) {
        let written = units::bytes(room.outputs.total);
        match room.outputs.total {
            0 => say!("{}nothing was written", room.prefix()),
            _ => say!("{}{written} written in {}", room.prefix(), units::time(Duration::from_secs_f64(report.seconds))),
        }
        if room.outputs.dropped > 0 {
            say!("{} dropped where an output took nothing", units::bytes(room.outputs.dropped));
        }
        if !report.paths.is_empty() {
            say!("{}", session::paths(report, End::Receiver, |path| self.ends.path_name(path), self.live.style()));
        }
        if !report.kinds.is_empty() {
            say!("{}", session::kinds(report, self.live.style()));
        }
        if let Some(words) = room.guest_protection() {
            say!("{}{words}", room.prefix());
            return;
        }
        let connected = !report.paths.is_empty();
        let lines = security::lines(report.security.as_ref(), self.plain, connected);
        lines.iter().for_each(|line| say!("{}{line}", room.prefix()));
    }
}
