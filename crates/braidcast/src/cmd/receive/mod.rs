//! `braidcast receive`: takes a stream and writes it out on time.

mod log;
mod sink;

use super::common;
use crate::args::{Common, ReceiveArgs};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::session::{self, End};
use crate::out::{json, units};
use braidcast_core::{Instant, Machine};
use braidcast_driver::{Bind, Driver, Wake};
use braidcast_sctp::CloseReason;
use braidcast_session::{Event, PathReport, Receiver, ReceiverOptions, Report};
use log::Log;
use serde::Serialize;
use sink::Sink;
use std::time::Duration;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    output: String,
    /// Streams received to their end.
    complete_streams: u64,
    /// Streams that broke off.
    broken_streams: u64,
    interrupted: bool,
    output_bytes: u64,
    /// Datagrams that the system did not take (`udp://` outputs).
    unsent_datagrams: u64,
    #[serde(flatten)]
    report: common::Named<'a>,
}

/// A receiver at work.
struct Session {
    driver: Driver,
    live: Live,
    share: session::Share,
    receiver: Receiver,
    sink: Sink,
    log: Option<Log>,
    keep: bool,
    output: Vec<u8>,
    output_bytes: u64,
    connected: bool,
    complete: u64,
    broken: u64,
    /// How the last stream ended, if nothing comes after it.
    end: Option<(bool, CloseReason)>,
    interrupted: bool,
}

/// How long a receiver that serves one stream waits for a sender that does not answer, unless it is told.
const GIVE_UP: Duration = Duration::from_secs(5 * 60);

pub(super) fn run(args: &ReceiveArgs, common: &Common) -> Outcome {
    let live = Live::new(common.quiet);
    let security = super::key::security(&args.shared, &live)?;
    let mut driver = common::driver()?;
    let sink = Sink::open(&args.output, &mut driver)?;
    let log = args.log.as_deref().map(Log::create).transpose()?;
    for (addr, port) in &args.listen.0 {
        let bind = Bind { addr: *addr, port: *port, ..Bind::default() };
        let socket = driver.bind(&bind).map_err(|e| Failure::new(e.to_string(), "choose another LISTEN"))?;
        let local = driver.socket(socket).map_or_else(String::new, |socket| socket.local_addr().to_string());
        live.note(format!("listening on {local}"));
    }
    let options = ReceiverOptions {
        early: args.early,
        keep: args.keep,
        log: log.is_some(),
        give_up: args.give_up.map_or((!args.keep).then_some(GIVE_UP), |patience| patience.0),
        security,
        ..ReceiverOptions::default()
    };
    let receiver = Receiver::new(options, common::rng(args.seed)?)?;
    let mut session = Session {
        driver,
        live,
        share: session::Share::default(),
        receiver,
        sink,
        log,
        keep: args.keep,
        output: Vec::new(),
        output_bytes: 0,
        connected: false,
        complete: 0,
        broken: 0,
        end: None,
        interrupted: false,
    };
    let worked = session.work();
    if worked.is_err() {
        session.give_up();
    }
    worked?;
    session.finish(args, common)
}

impl Session {
    /// Runs until the stream has ended and everything is written.
    fn work(&mut self) -> Outcome {
        while self.end.is_none() || !self.sink.is_drained() {
            let until = self.live.next();
            match self.driver.drive(&mut self.receiver, until).map_err(|e| common::broken(&e))? {
                Wake::Input(id) => self.sink.on_ready(&mut self.driver, id)?,
                Wake::Interrupt => self.interrupt(),
                Wake::Machine | Wake::Until | Wake::Interfaces(_) => {}
            }
            let now = self.driver.now();
            self.write(now)?;
            self.take_events();
            self.show(now);
        }
        self.say_goodbye();
        self.sink.finish()?;
        self.log.as_mut().map_or(Ok(()), Log::finish)
    }

    /// Writes what is due, unless the output's reader is too slow; then it waits where it is.
    fn write(&mut self, now: Instant) -> Outcome {
        while self.sink.has_room() && self.receiver.poll_output(now, &mut self.output) {
            self.output_bytes += self.output.len() as u64;
            self.sink.write(&mut self.driver, &self.output)?;
        }
        self.receiver.pause_output(!self.sink.has_room());
        if let Some(log) = &mut self.log {
            for entry in self.receiver.take_log() {
                log.add(&entry)?;
            }
        }
        Ok(())
    }

    fn take_events(&mut self) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.live.note("a sender is there");
                }
                Event::PathUp(_, route) => self.live.note(format!("path from {} is up", route.remote)),
                Event::PathDown(_, route) => self.live.warn(format!("path from {} does not answer", route.remote)),
                Event::PathRemoved(_, route) => self.live.note(format!("path from {} has left", route.remote)),
                Event::Restarted => self.live.warn("the sender restarted; its stream begins anew"),
                Event::ClockJumped => self.live.warn("the sender's clock jumped; following it"),
                Event::Refused => self.live.warn("a second sender was turned away; start with --keep to let it wait"),
                Event::Insecure(reason) => self.live.warn(format!("a sender was turned away: {reason}")),
                Event::Ended { complete, reason } => self.ended(complete, reason),
                _ => {}
            }
        }
    }

    fn ended(&mut self, complete: bool, reason: CloseReason) {
        *(if complete { &mut self.complete } else { &mut self.broken }) += 1;
        self.connected = false;
        if self.keep && !self.interrupted {
            let how = if complete { "the stream ended".into() } else { format!("the stream broke off: {reason}") };
            self.live.note(format!("{how}; waiting for the next sender"));
        } else {
            self.end = Some((complete, reason));
        }
    }

    fn show(&mut self, now: Instant) {
        if !self.live.due(now) || !self.connected {
            return;
        }
        let report = self.receiver.report(now);
        let table = session::paths(&report, End::Receiver, path_name, self.live.style());
        let share = self.share.update(now, &report);
        let line = session::line(&report, End::Receiver, share, path_name);
        self.live.show(&line, &session::headline(&report, End::Receiver, share), &table);
    }

    /// Ctrl-C: the sender is told; what has arrived is still written.
    fn interrupt(&mut self) {
        self.interrupted = true;
        if self.connected {
            self.receiver.abort(self.driver.now(), "the receiver was stopped");
        } else {
            self.end = Some((true, CloseReason::Aborted));
        }
    }

    /// The output failed: the sender is told before we go.
    fn give_up(&mut self) {
        self.live.close();
        self.receiver.abort(self.driver.now(), "the receiver cannot write its output");
        self.say_goodbye();
    }

    /// One more turn sends the last packets. If that fails, the sender finds out by itself.
    fn say_goodbye(&mut self) {
        let now = self.driver.now();
        let _ = self.driver.drive(&mut self.receiver, Some(now));
    }

    /// Tells how it went.
    fn finish(mut self, args: &ReceiveArgs, common: &Common) -> Outcome {
        self.live.close();
        let report = self.receiver.report(self.driver.now());
        if common.json {
            let document = Document {
                output: args.output.to_string(),
                complete_streams: self.complete,
                broken_streams: self.broken,
                interrupted: self.interrupted,
                output_bytes: self.output_bytes,
                unsent_datagrams: self.sink.unsent(),
                report: common::Named { report: &report, names: report.paths.iter().map(path_name).collect() },
            };
            json::print("receive", &document)?;
        } else if !common.quiet {
            self.print_summary(&report);
        }
        match self.end {
            Some((false, reason)) if !self.interrupted => Err(Failure::new(
                format!("the stream broke off: {reason}"),
                "what came is written; the sender's own messages say more",
            )),
            _ => Ok(()),
        }
    }

    fn print_summary(&self, report: &Report) {
        let span = units::time(Duration::from_secs_f64(report.seconds));
        eprintln!("{} written in {span}", units::bytes(self.output_bytes));
        if !report.paths.is_empty() {
            eprintln!("{}", session::paths(report, End::Receiver, path_name, self.live.style()));
        }
        if !report.kinds.is_empty() {
            eprintln!("{}", session::kinds(report, self.live.style()));
        }
    }
}

/// The receiver knows its paths by where they come from.
fn path_name(path: &PathReport) -> String {
    path.remote.clone()
}
