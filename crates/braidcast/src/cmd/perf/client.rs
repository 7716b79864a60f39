//! `braidcast perf client`: sends as fast as the network takes it, or measures how long messages take.

use super::latency::{self, Latencies, Percentiles};
use super::{BULK, ECHO, TIMED};
use crate::args::{Common, PerfClientArgs};
use crate::cmd::links::{Change, Links};
use crate::cmd::{common, paths};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::table::{Table, Tone};
use crate::out::{json, units};
use braidcast_core::{Instant, Machine, Reader};
use braidcast_driver::{Driver, Wake};
use braidcast_sctp::{AssociationId, CloseReason, Endpoint, Event, PathReport, SendOptions};
use serde::Serialize;
use std::time::Duration;

/// How long a test lasts if nothing says otherwise.
const DURATION: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Document {
    bytes: u64,
    messages: u64,
    /// From the first message to the last acknowledgement.
    seconds: f64,
    bits_per_second: f64,
    interrupted: bool,
    /// There and back, of the latency test.
    round_trip_us: Option<Percentiles>,
    paths: Vec<PathLine>,
}

#[derive(Serialize)]
struct PathLine {
    name: String,
    sent_packets: u64,
    sent_bytes: u64,
    lost_chunks: u64,
    retransmitted_chunks: u64,
    rtt_ms: Option<f64>,
    mtu: usize,
}

/// A test under way.
struct Test {
    driver: Driver,
    live: Live,
    links: Links,
    endpoint: Endpoint,
    id: AssociationId,
    /// The message, its stamp at the front.
    payload: Vec<u8>,
    /// Bytes to send; `None`: until the time is over.
    goal: Option<u64>,
    duration: Duration,
    /// Time between two messages of the latency test.
    spacing: Option<Duration>,
    started: Option<Instant>,
    next_message: Instant,
    closing: bool,
    interrupted: bool,
    bytes: u64,
    messages: u64,
    round_trips: Latencies,
    received: Vec<u8>,
    /// The paths as they were last, since nothing is left of them in the end.
    paths: Vec<PathReport>,
    end: Option<CloseReason>,
}

pub(super) fn run(args: &PerfClientArgs, common: &Common) -> Outcome {
    let to = std::iter::once(&args.server).chain(&args.to).cloned().collect::<Vec<_>>();
    let plans = paths::pair(&args.via, &to)?;
    let live = Live::new(common.quiet);
    let mut driver = common::driver()?;
    let links = Links::open(plans, &mut driver, &live)?;
    let mut options = common::sctp_options(args.key.as_deref());
    options.scheduler = args.scheduler;
    let port = options.local_port;
    let mut endpoint = Endpoint::new(options, common::rng(None)?);
    let now = driver.now();
    let id = endpoint
        .connect(now, port, &links.routes())
        .map_err(|e| Failure::new(format!("cannot connect: {e}"), "give fewer paths"))?;
    let mut payload = vec![0x55; args.size as usize];
    payload[8..16].copy_from_slice(&latency::machine().to_be_bytes());
    let spacing = Duration::from_nanos((u64::from(args.size) * 8).saturating_mul(1_000_000_000) / args.rate.max(1));
    let mut test = Test {
        driver,
        live,
        links,
        endpoint,
        id,
        payload,
        goal: args.bytes,
        duration: args.duration.unwrap_or(DURATION),
        spacing: args.latency_test.then_some(spacing),
        started: None,
        next_message: now,
        closing: false,
        interrupted: false,
        bytes: 0,
        messages: 0,
        round_trips: Latencies::new(),
        received: Vec::new(),
        paths: Vec::new(),
        end: None,
    };
    test.work()?;
    test.finish(common)
}

impl Test {
    fn work(&mut self) -> Outcome {
        while self.end.is_none() {
            let now = self.driver.now();
            self.send(now);
            self.show(now);
            let paced = self.spacing.filter(|_| self.started.is_some() && !self.closing).map(|_| self.next_message);
            let until = [paced, self.live.next()].into_iter().flatten().min();
            let wake = self.driver.drive(&mut self.endpoint, until).map_err(|e| common::broken(&e))?;
            let now = self.driver.now();
            while let Some((_, event)) = self.endpoint.poll_event() {
                self.take_event(now, event);
            }
            match wake {
                Wake::Interrupt => self.interrupt(now),
                Wake::Interfaces(_) => self.refresh_links()?,
                Wake::Machine | Wake::Until | Wake::Input(_) => {}
            }
        }
        Ok(())
    }

    /// Sends what there is room for, or what is due, and shuts down when it is enough.
    fn send(&mut self, now: Instant) {
        let (Some(started), Some(association)) = (self.started, self.endpoint.association_mut(self.id)) else { return };
        let how = SendOptions {
            ppid: if self.spacing.is_some() { TIMED } else { BULK },
            unordered: self.spacing.is_some(),
            ..SendOptions::default()
        };
        while !self.closing {
            let left = self.goal.map_or(u64::MAX, |goal| goal - self.bytes);
            if left == 0 || (self.goal.is_none() && now.since(started) >= self.duration) {
                self.closing = true;
                self.paths = association.paths().collect();
                association.shutdown(now);
                return;
            }
            if let Some(spacing) = self.spacing {
                if self.next_message > now {
                    return;
                }
                self.next_message += spacing;
                self.payload[..8].copy_from_slice(&latency::clock().to_be_bytes());
            }
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(self.payload.len());
            if association.send(now, &self.payload[..len], how).is_err() {
                // No room: the next turn tries again.
                return;
            }
            self.bytes += len as u64;
            self.messages += 1;
        }
    }

    fn take_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Connected => {
                self.live.note("connected");
                self.started = Some(now);
                self.next_message = now;
            }
            Event::Readable => self.read_echoes(now),
            Event::PathDown(_, route) => self.live.warn(format!("{} does not answer", self.links.name(route.socket))),
            Event::Closed(reason) => self.end = Some(reason),
            _ => {}
        }
    }

    fn read_echoes(&mut self, now: Instant) {
        let Some(association) = self.endpoint.association_mut(self.id) else { return };
        while let Some(received) = association.recv(now, &mut self.received) {
            if received.ppid == ECHO
                && let Ok(stamp) = Reader::new(&self.received).u64()
            {
                self.round_trips.add(latency::clock().saturating_sub(stamp));
            }
        }
    }

    fn show(&mut self, now: Instant) {
        let (true, Some(started)) = (self.live.due(now), self.started) else { return };
        if let Some(association) = self.endpoint.association(self.id)
            && !self.closing
        {
            self.paths = association.paths().collect();
        }
        let seconds = now.since(started).as_secs_f64();
        let line = format!(
            "{seconds:.0} s, {} sent, {} on average",
            units::bytes(self.bytes),
            units::rate(self.bytes as f64 * 8.0 / seconds.max(1e-3))
        );
        self.live.show(&line, &line, &self.table());
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["path", "RTT", "window", "sent", "lost"], self.live.style());
        for path in &self.paths {
            let rtt = path.srtt.map_or_else(|| "–".into(), units::time);
            let cells = [
                self.links.name(path.route.socket).to_owned(),
                rtt,
                units::bytes(path.cwnd as u64),
                units::bytes(path.sent_bytes),
                path.lost_chunks.to_string(),
            ];
            table.row(cells.map(|cell| (cell, Tone::Plain)));
        }
        table
    }

    fn refresh_links(&mut self) -> Outcome {
        for change in self.links.refresh(&mut self.driver, &self.live)? {
            let now = self.driver.now();
            let Some(association) = self.endpoint.association_mut(self.id) else { continue };
            match change {
                Change::Join(route) => {
                    if let Err(refused) = association.join(now, route) {
                        self.live.warn(format!("{} cannot join: {refused}", self.links.name(route.socket)));
                    }
                }
                Change::Leave(route) => {
                    association.leave(now, route);
                    self.driver.unbind(route.socket);
                }
            }
        }
        Ok(())
    }

    /// Ctrl-C: what was sent is still delivered and counted.
    fn interrupt(&mut self, now: Instant) {
        self.interrupted = true;
        self.closing = true;
        let Some(association) = self.endpoint.association_mut(self.id) else { return };
        if self.started.is_some() { association.shutdown(now) } else { association.abort(now, "interrupted") }
    }

    fn finish(mut self, common: &Common) -> Outcome {
        self.live.close();
        let end = self.end.take().unwrap_or(CloseReason::Aborted);
        if end != CloseReason::Shutdown && !(self.interrupted && self.started.is_none()) {
            let hint = if self.started.is_some() {
                "the server's own messages say more"
            } else {
                "start `braidcast perf server` there first"
            };
            return Err(Failure::new(format!("the test broke off: {end}"), hint));
        }
        let seconds = self.started.map_or(0.0, |started| self.driver.now().since(started).as_secs_f64());
        let document = Document {
            bytes: self.bytes,
            messages: self.messages,
            seconds: json::round(seconds),
            bits_per_second: (self.bytes as f64 * 8.0 / seconds.max(1e-9)).round(),
            interrupted: self.interrupted,
            round_trip_us: self.round_trips.percentiles(),
            paths: self.paths.iter().map(|path| path_line(path, self.links.name(path.route.socket))).collect(),
        };
        if common.json {
            return json::print("perf client", &document);
        }
        if !common.quiet {
            eprintln!(
                "{} in {} messages in {:.2} s: {}",
                units::bytes(document.bytes),
                document.messages,
                document.seconds,
                units::rate(document.bits_per_second)
            );
            if let Some(p) = document.round_trip_us {
                eprintln!(
                    "round trip: median {} µs, 99 % {} µs, 99.9 % {} µs, longest {} µs",
                    p.p50, p.p99, p.p999, p.max
                );
            }
            eprintln!("{}", self.table());
        }
        Ok(())
    }
}

fn path_line(path: &PathReport, name: &str) -> PathLine {
    PathLine {
        name: name.to_owned(),
        sent_packets: path.sent_packets,
        sent_bytes: path.sent_bytes,
        lost_chunks: path.lost_chunks,
        retransmitted_chunks: path.retransmitted_chunks,
        rtt_ms: path.srtt.map(|srtt| json::round(srtt.as_secs_f64() * 1e3)),
        mtu: path.mtu,
    }
}
