//! `braidcast perf client`: sends as fast as the network takes it, or measures how long messages take.

use super::dccp::Dccp;
use super::latency::{self, Latencies, Percentiles};
use super::pace::Pace;
use super::protocol::{ConnectionEvent, Dialled, Ending, PathState, Protocol, Purpose, State};
use crate::args::destination::To;
use crate::args::{Common, PerfClientArgs};
use crate::cmd::common;
use crate::cmd::dccp::{ConnectionLine, IP_PROTOCOL, PORT_IN_UDP};
use crate::cmd::ends::Ends;
use crate::cmd::security::Security;
use crate::cmd::ticket::Towards;
use crate::cmd::watch::{Carried, Watch};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::table::{Table, Tone};
use crate::out::{json, security, units};
use crate::process;
use braidcast_core::{Instant, Reader};
use braidcast_driver::{Carrier, Driver, Wake};
use braidcast_sctp::Endpoint;
use braidcast_session::{Redundancy, SecurityReport};
use serde::Serialize;
use std::time::Duration;

/// Rate of a latency test if nothing says otherwise, bits per second.
const RATE: u64 = 20_000_000;
/// What goes at a rate without being timed goes in bursts of this length.
const BURST: Duration = Duration::from_millis(1);
/// How long a test lasts if nothing says otherwise.
const DURATION: Duration = Duration::from_secs(10);
/// How long the system may take to hear that nobody listens at the server's port.
const REFUSED: Duration = Duration::from_millis(300);
/// When it is said that no server answers, and then at each of these again.
const NO_ANSWER: Duration = Duration::from_secs(5);
/// Time without anything from the server after which an end that it should confirm counts as
/// confirmed. A server of DCCP says goodbye once and may be gone when that gets lost.
const FAREWELL: Duration = Duration::from_secs(10);

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
    /// Null with SCTP.
    dccp: Option<ConnectionLine>,
    /// Null if nothing is encrypted.
    security: Option<SecurityReport>,
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
struct Test<P: Protocol> {
    driver: Driver,
    live: Live,
    watch: Watch,
    ends: Ends,
    /// Several addresses of the server are tried: DCCP has one path.
    tries: bool,
    security: Security,
    endpoint: P,
    /// `None` until a server has called.
    id: Option<P::Id>,
    /// The message, its stamp at the front.
    payload: Vec<u8>,
    purpose: Purpose,
    /// Bytes to send; `None`: until the time is over.
    goal: Option<u64>,
    duration: Duration,
    /// `None`: as the network takes them.
    pace: Option<Pace>,
    started: Option<Instant>,
    /// When to look if the kernel says that nobody can be there.
    look_at: Instant,
    /// When it is said next that no server answers.
    say_by: Instant,
    closing: bool,
    plain: bool,
    interrupted: bool,
    /// While closing: when packets had last come in, and how many.
    heard: (Instant, u64),
    bytes: u64,
    messages: u64,
    round_trips: Latencies,
    received: Vec<u8>,
    /// The connection as it was last, since nothing is left of it in the end.
    state: State,
    end: Option<Ending>,
}

pub(super) fn run(args: &PerfClientArgs, common: &Common) -> Outcome {
    let to: Vec<To> = args.server.iter().cloned().chain(args.to.iter().cloned().map(To::Remote)).collect();
    let towards = Towards::of(&to)?;
    let plans = match args.at {
        Some(_) => Vec::new(),
        None => towards.unlimited_plans(&args.via, "it measures what the paths carry")?,
    };
    if args.dccp.dccp.is_some() && matches!(towards, Towards::Ticket(_)) {
        return Err(Failure::usage("--dccp does not go with a ticket", "leave it out, or give the server's address"));
    }
    if args.dccp.dccp.is_some() && plans.len() > 1 {
        return Err(Failure::usage("a DCCP connection has one path", "give one --via, or measure SCTP"));
    }
    let live = Live::new(common.quiet);
    let mut driver = common::driver()?;
    let carrier = if args.dccp.native { Carrier::Ip(IP_PROTOCOL) } else { Carrier::Udp };
    let (ends, locals) = match &args.at {
        Some(at) => Ends::listen(at, "--at", &mut driver)?,
        None if args.dccp.native => (Ends::dial_now(plans, carrier, &mut driver, &live)?, Vec::new()),
        None => (towards.dial_now(plans, args.relay_only, &mut driver, &live)?, Vec::new()),
    };
    let protocol = if args.dccp.dccp.is_some() { Carried::Dccp } else { Carried::Sctp };
    let watch = Watch::open(&args.watch, "perf client", &mut driver, protocol)?;
    if !args.dccp.native {
        // An interface that comes back needs another raw socket.
        process::drop_privileges()?;
    }
    let (now, rng) = (driver.now(), common::rng(None)?);
    let purpose = if args.latency_test { Purpose::Timed } else { Purpose::Bulk };
    let security = match &args.at {
        Some(_) => Security::server(&args.shared, &live)?,
        None => towards.security(&args.shared, &live)?,
    };
    locals.iter().for_each(|local| live.note(format!("waiting for a server at {local}")));
    if let Some(server) = towards.names().first() {
        live.note(format!("connecting to {server}"));
    }
    if let Some(choice) = args.dccp.dccp {
        let mut dccp = Dccp::new(&args.dccp, choice, false, rng, (&security, watch.tracer()))?;
        let Some(&route) = ends.routes().first() else {
            return Err(Failure::new("the path vanished before it could be used", "try again"));
        };
        if let Some(socket) = driver.socket(route.socket).filter(|_| args.dccp.native) {
            dccp.set_local_address(route.socket, socket.local_addr().ip());
        }
        let native = to.first().filter(|_| args.dccp.native);
        let port = native.map_or(PORT_IN_UDP, |to| if let To::Remote(it) = to { it.port } else { PORT_IN_UDP });
        let id = dccp.connect(now, route, port, purpose, args.size as usize)?;
        return Test::new(args, driver, (live, watch), ends, dccp, Some(id), security).run(common);
    }
    let mut options = common::sctp_options(&security);
    options.paths.scheduler = args.scheduler;
    options.congestion.algorithm = args.cc;
    if let Redundancy::Code(code) = args.fec {
        options.redundancy.fec = Some(code);
    }
    options.events = watch.tracer();
    let port = options.local_port;
    let mut sctp = Endpoint::new(options, rng)?;
    let id = if ends.is_called() {
        sctp.listen();
        None
    } else {
        let id = sctp.connect(now, port, &ends.routes());
        Some(id.map_err(|e| Failure::new(format!("cannot connect: {e}"), "give fewer paths"))?)
    };
    Test::new(args, driver, (live, watch), ends, sctp, id, security).run(common)
}

impl<P: Protocol> Test<P> {
    fn new(
        args: &PerfClientArgs,
        driver: Driver,
        (live, watch): (Live, Watch),
        ends: Ends,
        endpoint: P,
        id: Option<P::Id>,
        security: Security,
    ) -> Self {
        let mut payload = vec![0x55; args.size as usize];
        payload[8..16].copy_from_slice(&latency::machine().to_be_bytes());
        let rate = args.rate.or(args.latency_test.then_some(RATE));
        let spacing = |rate: u64| (u64::from(args.size) * 8).saturating_mul(1_000_000_000) / rate.max(1);
        let burst = if args.latency_test { Duration::ZERO } else { BURST };
        let now = driver.now();
        Self {
            look_at: now + REFUSED,
            say_by: now + NO_ANSWER,
            driver,
            live,
            watch,
            ends,
            tries: args.dccp.dccp.is_none(),
            security,
            endpoint,
            id,
            payload,
            purpose: if args.latency_test { Purpose::Timed } else { Purpose::Bulk },
            goal: args.bytes,
            duration: args.duration.unwrap_or(DURATION),
            pace: rate.map(|rate| Pace::new(Duration::from_nanos(spacing(rate)), burst)),
            started: None,
            closing: false,
            plain: args.shared.plain,
            interrupted: false,
            heard: (Instant::ZERO, 0),
            bytes: 0,
            messages: 0,
            round_trips: Latencies::new(),
            received: Vec::new(),
            state: State::default(),
            end: None,
        }
    }

    fn run(mut self, common: &Common) -> Outcome {
        while self.end.is_none() {
            let now = self.driver.now();
            self.send(now);
            self.show(now);
            let goes_on = self.started.is_some() && !self.closing;
            let paced = self.pace.as_ref().filter(|_| goes_on).map(Pace::next);
            let farewell = self.farewell(now);
            let tries = self.tries.then(|| self.ends.next()).flatten();
            let answer = (self.started.is_none()).then_some(self.say_by.min(self.look_at));
            let until = [paced, self.live.next(), farewell, tries, answer].into_iter().flatten().min();
            let wake = self.ends.drive(&mut self.driver, &mut self.endpoint, until).map_err(|e| common::broken(&e))?;
            let now = self.driver.now();
            self.watch.check(&self.live);
            self.endpoint.probe()?;
            self.wait_for_server(now)?;
            self.follow_the_end(now);
            if self.tries {
                let Self { ends, driver, live, endpoint, id, .. } = &mut self;
                ends.tend(driver, live, &mut Dialled { endpoint, id: *id })?;
            }
            while let Some((id, event)) = self.endpoint.poll() {
                self.take_of(now, id, event);
            }
            while let Some(why) = self.endpoint.poll_turned_away() {
                self.live.warn_rarely(now, format!("a server was turned away: {why}"));
            }
            match wake {
                Wake::Interrupt => self.interrupt(now),
                Wake::Interfaces(_) => self.refresh_links()?,
                _ => {}
            }
        }
        self.ends.say_goodbye(&mut self.driver, &mut self.endpoint);
        self.endpoint.end_probe()?;
        self.watch.finish(&self.live);
        self.finish(common)
    }

    /// Before there is a server: says that it is waited for, or ends if nobody can be there.
    fn wait_for_server(&mut self, now: Instant) -> Outcome {
        if self.started.is_some() || self.end.is_some() || self.interrupted {
            return Ok(());
        }
        if now >= self.look_at {
            self.look_at = now + REFUSED;
            if let Some(why) = self.ends.refusal(&self.driver) {
                return Err(Failure::new(why, "start `braidcast perf server` there first"));
            }
        }
        if now >= self.say_by {
            self.say_by = now + NO_ANSWER;
            self.live.note(if self.ends.is_called() {
                "no server has called yet (is `braidcast perf server --from` running there?)"
            } else {
                "no server answers yet (is `braidcast perf server` running there, and does UDP reach it?)"
            });
        }
        Ok(())
    }

    /// While closing: keeps the newest figures of what still drains, for the summary. An
    /// association that has ended has none.
    fn follow_the_end(&mut self, now: Instant) {
        if self.closing
            && let Some(state) = self.state_at(now)
            && state.paths.len() >= self.state.paths.len()
        {
            self.state = state;
        }
    }

    /// While closing: when to wait for the server no longer. Ends the test if that time has come.
    fn farewell(&mut self, now: Instant) -> Option<Instant> {
        if !self.closing {
            return None;
        }
        let socket = self.state.paths.first().and_then(|path| self.driver.socket(path.route.socket));
        let count = socket.map_or(0, |socket| socket.stats().received_datagrams);
        if count != self.heard.1 || self.heard.0 == Instant::ZERO {
            self.heard = (now, count);
        }
        let end = self.heard.0 + FAREWELL;
        if end <= now {
            self.end =
                Some(Ending { orderly: false, insecure: None, reason: "the server did not confirm the end".into() });
        }
        Some(end)
    }

    /// Sends what there is room for, or what is due, and closes when it is enough.
    fn send(&mut self, now: Instant) {
        let (Some(started), Some(id)) = (self.started, self.id) else { return };
        if self.pace.as_ref().is_some_and(|pace| !pace.may_begin(now)) {
            return;
        }
        while !self.closing {
            let left = self.goal.map_or(u64::MAX, |goal| goal - self.bytes);
            if left == 0 || (self.goal.is_none() && now.since(started) >= self.duration) {
                self.closing = true;
                self.state = self.endpoint.state(now, id).unwrap_or_default();
                self.endpoint.close(now, id);
                return;
            }
            if self.pace.as_mut().is_some_and(|pace| !pace.take(now)) {
                return;
            }
            // What was taken has to be delivered: a test of some seconds would last until all of the send buffer is.
            if self.goal.is_none() && self.pace.is_none() && self.endpoint.has_enough(id) {
                return;
            }
            if self.purpose == Purpose::Timed {
                self.payload[..8].copy_from_slice(&latency::clock().to_be_bytes());
            }
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(self.payload.len());
            if !self.endpoint.send(now, id, &self.payload[..len], self.purpose) {
                // No room: the next turn tries again.
                self.pace.iter_mut().for_each(|pace| pace.skip(now));
                return;
            }
            self.bytes += len as u64;
            self.messages += 1;
        }
    }

    /// How the connection does; `None` if there is none.
    fn state_at(&self, now: Instant) -> Option<State> {
        self.endpoint.state(now, self.id?)
    }

    /// Something happened to the connection `id`: that of the test, or one by which another server calls.
    fn take_of(&mut self, now: Instant, id: P::Id, event: ConnectionEvent) {
        if self.id.is_none() && event == ConnectionEvent::Connected {
            self.id = Some(id);
        }
        match event {
            event if self.id == Some(id) => self.take(now, event),
            ConnectionEvent::Connected => self.endpoint.abort(now, id),
            ConnectionEvent::Closed(Ending { insecure: Some(_), reason, .. }) => {
                self.live.warn_rarely(now, format!("a server was turned away: {reason}"));
            }
            _ => {}
        }
    }

    fn take(&mut self, now: Instant, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected => {
                self.live.note("connected");
                let report = self.state_at(now).and_then(|state| state.security);
                self.security.connected(report.as_ref(), &self.live);
                self.started = Some(now);
                self.pace.iter_mut().for_each(|pace| pace.begin(now));
            }
            ConnectionEvent::Readable => self.read_echoes(now),
            ConnectionEvent::Answers(route) => {
                let Self { ends, driver, live, endpoint, id, .. } = self;
                ends.up(route, driver, live, &mut Dialled { endpoint, id: *id });
            }
            ConnectionEvent::Silent(route) => {
                self.live.warn(format!("{} does not answer", self.ends.name(route)));
                self.ends.down(now, route);
            }
            ConnectionEvent::Closed(ending) => self.end = Some(ending),
            ConnectionEvent::Other => {}
        }
    }

    fn read_echoes(&mut self, now: Instant) {
        while let Some(purpose) = self.id.and_then(|id| self.endpoint.recv(now, id, &mut self.received)) {
            if purpose == Purpose::Timed
                && let Ok(stamp) = Reader::new(&self.received).u64()
            {
                self.round_trips.add(latency::clock().saturating_sub(stamp));
            }
        }
    }

    fn show(&mut self, now: Instant) {
        let (true, Some(started)) = (self.live.due(now), self.started) else { return };
        if let Some(state) = self.state_at(now).filter(|_| !self.closing) {
            self.state = state;
        }
        let seconds = now.since(started).as_secs_f64();
        // What left, not what waits in the send buffer.
        let sent: u64 = self.state.paths.iter().map(|path| path.sent_bytes).sum();
        let line = format!(
            "{seconds:.0} s, {} sent, {} on average",
            units::bytes(sent),
            units::rate(sent as f64 * 8.0 / seconds.max(1e-3))
        );
        self.live.show(&line, &line, &self.table());
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["path", "RTT", "allowed", "sent", "lost"], self.live.style());
        for path in &self.state.paths {
            let rtt = path.rtt.map_or_else(|| "–".into(), units::time);
            let cells = [
                self.ends.name(path.route),
                rtt,
                path.allowed.clone(),
                units::bytes(path.sent_bytes),
                path.lost.to_string(),
            ];
            table.row(cells.map(|cell| (cell, Tone::Plain)));
        }
        table
    }

    fn refresh_links(&mut self) -> Outcome {
        let Self { ends, driver, live, endpoint, id, .. } = self;
        ends.refresh(driver, live, &mut Dialled { endpoint, id: *id })
    }

    /// Ctrl-C: what was sent is still delivered and counted.
    fn interrupt(&mut self, now: Instant) {
        self.interrupted = true;
        self.closing = true;
        self.state = self.state_at(now).unwrap_or_default();
        match self.id {
            Some(id) if self.started.is_some() => self.endpoint.close(now, id),
            Some(id) => self.endpoint.abort(now, id),
            None => {
                let reason = "no server called".into();
                self.end = Some(Ending { orderly: false, insecure: None, reason });
            }
        }
    }

    fn finish(mut self, common: &Common) -> Outcome {
        self.live.close();
        let end = self.end.take().unwrap_or(Ending { orderly: false, insecure: None, reason: "it broke off".into() });
        let never_began = self.interrupted && self.started.is_none();
        if !end.orderly && !never_began {
            let hint = if let Some(why) = &end.insecure {
                self.security.hint(Some(why))
            } else if self.started.is_some() {
                "check that `braidcast perf server` of the same version runs there; its own messages say more".into()
            } else {
                "start `braidcast perf server` there first, with the same --key or --plain as here".into()
            };
            return Err(Failure::new(format!("the test broke off: {}", end.reason), hint));
        }
        let seconds = self.started.map_or(0.0, |started| self.driver.now().since(started).as_secs_f64());
        let document = Document {
            bytes: self.bytes,
            messages: self.messages,
            seconds: json::round(seconds),
            bits_per_second: (self.bytes as f64 * 8.0 / seconds.max(1e-9)).round(),
            interrupted: self.interrupted,
            round_trip_us: self.round_trips.percentiles(),
            paths: self.state.paths.iter().map(|path| path_line(path, &self.ends.name(path.route))).collect(),
            dccp: self.state.dccp.clone(),
            security: self.state.security.clone(),
        };
        if common.json {
            return json::print("perf client", &document);
        }
        if !common.quiet {
            say!(
                "{} in {} messages in {:.2} s: {}",
                units::bytes(document.bytes),
                document.messages,
                document.seconds,
                units::rate(document.bits_per_second)
            );
            if let Some(p) = document.round_trip_us {
                let [p50, p99, p999, max] =
                    [p.p50, p.p99, p.p999, p.max].map(|micros| units::time(Duration::from_secs_f64(micros / 1e6)));
                say!("round trip: median {p50}, 99 % {p99}, 99.9 % {p999}, longest {max}");
            }
            say!("{}", self.table());
            let lines = security::lines(document.security.as_ref(), self.plain, self.started.is_some());
            lines.iter().for_each(|line| say!("{line}"));
        }
        Ok(())
    }
}

fn path_line(path: &PathState, name: &str) -> PathLine {
    PathLine {
        name: name.to_owned(),
        sent_packets: path.sent_packets,
        sent_bytes: path.sent_bytes,
        lost_chunks: path.lost,
        retransmitted_chunks: path.retransmitted,
        rtt_ms: path.rtt.map(|rtt| json::round(rtt.as_secs_f64() * 1e3)),
        mtu: path.mtu,
    }
}
