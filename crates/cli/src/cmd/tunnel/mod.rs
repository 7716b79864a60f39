//! `braidcast tunnel`: any application's UDP over DCCP, or over SCTP and several networks.

mod clients;
mod figures;
mod options;
mod relays;
mod report;

use super::common;
use super::dccp::PORT_IN_UDP;
use super::ends::Ends;
use super::probe::Probe;
use super::rates::{Rates, Told};
use super::resolve::resolve;
use super::security::Security;
use super::ticket::{Held, Meeting, Towards};
use super::watch::{Carried, Watch};
use crate::args::dccp;
use crate::args::values::{Entrance, Exit, Listen, Over};
use crate::args::via::Via;
use crate::args::{Common, TunnelArgs, TunnelClientArgs, TunnelCommand, TunnelEndArgs, TunnelServerArgs};
use crate::failure::{Failure, Outcome};
use crate::out::json;
use crate::out::live::Live;
use crate::out::units;
use crate::process;
use braidcast_core::{Dials, Instant, Machine, NotJoined, Route, SocketId};
use braidcast_dccp::{Options, Wanted};
use braidcast_driver::{Bind, Driver, SocketPool, Wake};
use braidcast_session::tunnel::{Farewell, LinkId, SctpOptions, Settings, Tunnel, TunnelEvent};
use clients::Clients;
use figures::Meter;
use options::{check_deadlines, options, with_deadline};
use report::{LinkLine, Sight};
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// How long the other end has to agree to the end.
const FAREWELL: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Document {
    seconds: f64,
    ends: Vec<LinkLine>,
}

/// A tunnel at work.
struct Work {
    side: Side,
    driver: Driver,
    live: Live,
    watch: Watch,
    tunnel: Tunnel,
    probe: Option<Probe>,
    rates: Rates,
    sight: Sight,
    /// For the figures of pages, and for the statistics.
    meters: [Meter; 2],
    over: Over,
    plain: bool,
    security: Security,
    /// Who is let in, and what each may reach; `None`: who has the key, or anybody.
    clients: Option<Clients>,
    /// When a line of it may have come to its last day.
    look_at: Instant,
    /// The path, or paths, of the end that calls, or places at relays.
    ends: Option<Ends>,
    /// The ticket of a server at a relay.
    held: Option<Held>,
    /// Sockets at relays by which clients come.
    served: BTreeSet<SocketId>,
    /// There was a path.
    dialed: bool,
    /// Sockets towards applications.
    pool: SocketPool,
    /// The reason why there is no connection, if it was said.
    said: Option<Farewell>,
    said_no_socket: bool,
    /// When to end at the latest.
    end: Option<Instant>,
}

/// Which end this is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Side {
    /// The command, for its document.
    const fn command(self) -> &'static str {
        match self {
            Self::Client => "tunnel client",
            Self::Server => "tunnel server",
        }
    }

    /// The command at the other end, if that one waits to be called.
    const fn other(self) -> &'static str {
        match self {
            Self::Client => "tunnel server",
            Self::Server => "tunnel client --at PORT",
        }
    }

    /// Who comes, if it waits.
    const fn newcomer(self) -> &'static str {
        match self {
            Self::Client => "a server",
            Self::Server => "a client",
        }
    }

    /// Whom it waits for, if it does.
    const fn awaited(self) -> &'static str {
        match self {
            Self::Client => "a server",
            Self::Server => "clients",
        }
    }
}

pub(super) fn run(args: &TunnelArgs, common: &Common) -> Outcome {
    match &args.command {
        TunnelCommand::Server(TunnelServerArgs { at, from, via, meet, ends, authorized }) => {
            let meeting = Meeting::of_server(meet, via)?;
            match (at, Held::of(meeting)?) {
                (_, Some(held)) => relays::meet_clients(held, meeting, ends, common),
                (Some(at), None) => wait(Side::Server, at, ends, authorized.as_deref(), common),
                (None, None) => call(Side::Server, &Towards::Remotes(from.clone()), (via, false), ends, common),
            }
        }
        TunnelCommand::Client(TunnelClientArgs { to, at, via, relay_only, ends }) => match at {
            Some(at) => wait(Side::Client, at, ends, None, common),
            None => call(Side::Client, &Towards::of(to)?, (via, *relay_only), ends, common),
        },
    }
}

/// The end that listens.
fn wait(side: Side, at: &Listen, ends: &TunnelEndArgs, authorized: Option<&Path>, common: &Common) -> Outcome {
    let mut options = options(ends, authorized.is_some())?;
    options.ccids = ends.ccid.unwrap_or_else(dccp::congestion_by_default).preferred().ccids;
    // More than clients at once, so that each newcomer gets in, and who was silent longest goes.
    options.max_connections = 2 * Settings::default().clients;
    let mut work = Work::new(side, ends, options, |live| Security::server(&ends.shared, live), common)?;
    if let Some(path) = authorized {
        work.clients = Some(Clients::read(path, work.security.is_certified())?);
        work.admit_clients()?;
        work.driver.reload_on_hangup();
    }
    let fix = if side == Side::Server { "choose another LISTEN" } else { "choose another --at" };
    for place in &at.0 {
        let socket = work.bind(&place.bind(), fix)?;
        work.tunnel.serve(socket, work.port()).map_err(|e| {
            Failure::new(format!("cannot listen at DCCP port {PORT_IN_UDP}: {e}"), "please report this as a bug")
        })?;
        work.live.note(format!("waiting for {} at {}", side.awaited(), work.name(socket)));
    }
    work.open_entrances(ends)?;
    process::drop_privileges()?;
    work.run(common)
}

/// The end that dials.
fn call(
    side: Side,
    towards: &Towards,
    (via, relay_only): (&[Via], bool),
    ends: &TunnelEndArgs,
    common: &Common,
) -> Outcome {
    if matches!(towards, Towards::Ticket(_)) {
        relays::refuse_dccp(ends)?;
    }
    let plans = towards.unlimited_plans(via, "a tunnel has no limit by path")?;
    if ends.over == Over::Dccp && plans.len() > 1 {
        let flag = if side == Side::Client { "--to" } else { "--from" };
        return Err(Failure::usage(
            format!("DCCP uses one path, and {} were given", plans.len()),
            format!("give --over sctp at both ends, or one {flag} and one --via"),
        ));
    }
    let mut work = Work::new(side, ends, options(ends, false)?, |live| towards.security(&ends.shared, live), common)?;
    work.open_entrances(ends)?;
    let mut dialed = towards.dial(plans, relay_only, &mut work.driver, &work.live)?;
    if ends.over == Over::Dccp {
        dialed.try_one_by_one();
    }
    let routes = dialed.routes();
    let what = if side == Side::Client { "connecting to" } else { "calling" };
    work.live.note(format!("{what} {}", towards.names().join(", ")));
    work.ends = Some(dialed);
    let (now, port) = (work.driver.now(), work.port());
    for route in routes {
        let Work { tunnel, over, dialed, .. } = &mut work;
        // It takes every path.
        let _ = Dialling { tunnel, over: *over, dialed, port }.join(now, route);
    }
    process::drop_privileges()?;
    work.run(common)
}

impl Work {
    fn new(
        side: Side,
        args: &TunnelEndArgs,
        options: Options,
        security: impl FnOnce(&Live) -> Outcome<Security>,
        common: &Common,
    ) -> Outcome<Self> {
        let mut driver = common::driver()?;
        let live = Live::new(common.quiet);
        let protocol = if args.over == Over::Dccp { Carried::Dccp } else { Carried::Sctp };
        let mut watch = Watch::open(&args.watch, "tunnel", &mut driver, protocol)?;
        watch.open_figures(&args.figures, common.json.then_some("--json"), &live)?;
        let stdout = common.json.then_some("--json").or_else(|| args.figures.to_stdout().then_some("--stats"));
        let rates = Rates::open(driver.now(), &args.rates, None, stdout)?;
        let probe = args.probe.as_deref().map(Probe::create).transpose()?;
        let bytes = |bits: Option<u64>| bits.map(|bits| bits as f64 / 8.0);
        let sight = Sight { codec: args.calls, max_loss: args.max_loss };
        let settings = Settings {
            lifetime: args.lifetime,
            queue: args.queue,
            queue_length: args.queue_length as usize,
            one_way_delay: args.one_way_delay,
            wanted: Wanted { min: bytes(args.min_rate), max: bytes(args.max_rate) },
            admission: args.max_loss.and_then(|_| sight.call()),
            jitter_buffer: args.jitter_buffer,
            encoder: args.rates.range(),
            events: probe.iter().fold(watch.tracer(), |events, probe| events.with(probe.sink())),
            ..Settings::default()
        };
        check_deadlines(args)?;
        let exit = |Exit { to, class }: &Exit| Ok((resolve(to, |_| true)?, with_deadline(args, to.port, *class)));
        let forwards = args.forward.iter().map(exit).collect::<Outcome<_>>()?;
        let rng = common::rng(None)?;
        let security = security(&live)?;
        let tunnel = match args.over {
            Over::Dccp => {
                let options = Options { security: security.options.clone(), ..options };
                Tunnel::new(options, rng, settings, forwards)?
            }
            Over::Sctp => {
                let sctp = SctpOptions { security: security.options.clone(), ..options::over_sctp(args) };
                Tunnel::over_sctp(&sctp, rng, settings, forwards)?
            }
        };
        Ok(Self {
            side,
            driver,
            live,
            watch,
            tunnel,
            over: args.over,
            plain: args.shared.plain,
            security,
            probe,
            rates,
            sight,
            meters: Default::default(),
            clients: None,
            look_at: Instant::ZERO,
            ends: None,
            held: None,
            served: BTreeSet::new(),
            dialed: false,
            pool: SocketPool::default(),
            said: None,
            said_no_socket: false,
            end: None,
        })
    }

    fn bind(&mut self, bind: &Bind, fix: &str) -> Outcome<SocketId> {
        self.driver.bind(bind).map_err(|e| Failure::new(e.to_string(), fix))
    }

    /// The port of the protocol itself, at both ends.
    fn port(&self) -> u16 {
        match self.over {
            Over::Dccp => PORT_IN_UDP,
            Over::Sctp => SctpOptions::PORT,
        }
    }

    /// What a path is called.
    fn path(&self, route: Route) -> String {
        self.ends.as_ref().map_or_else(|| route.remote.to_string(), |ends| ends.path_label(route))
    }

    /// The address of a socket.
    fn name(&self, socket: SocketId) -> String {
        self.driver.socket(socket).map_or_else(String::new, |socket| socket.local_addr().to_string())
    }

    fn open_entrances(&mut self, args: &TunnelEndArgs) -> Outcome {
        for (at, &Entrance { addr, port, class }) in args.listen.iter().enumerate() {
            let place =
                u8::try_from(at).map_err(|_| Failure::usage("--listen has more than 256 ports", "run two tunnels"))?;
            let address = SocketAddr::new(addr.unwrap_or(Ipv4Addr::LOCALHOST.into()), port);
            let socket = self.bind(&Bind::to_addr(address), "choose another --listen")?;
            self.watch.leave_out(socket);
            self.tunnel.add_entrance(socket, place, with_deadline(args, port, class));
            self.live.note(format!("{}: carrying what comes to {}", at + 1, self.name(socket)));
        }
        Ok(())
    }

    /// Runs until Ctrl-C, and then until the other ends know.
    fn run(mut self, common: &Common) -> Outcome {
        while self.end.is_none_or(|end| self.driver.now() < end && !self.tunnel.is_closed()) {
            self.look_at_days();
            let look = (self.clients.is_some() || self.held.is_some()).then_some(self.look_at);
            let tries = self.ends.as_ref().and_then(Ends::next);
            let until = [self.live.next(), self.watch.next(), self.rates.next(), self.end, look, tries];
            let until = until.into_iter().flatten().min();
            let wake = match &mut self.ends {
                Some(ends) => ends.drive(&mut self.driver, &mut self.tunnel, until),
                None => self.driver.drive(&mut self.tunnel, until),
            };
            let wake = wake.map_err(|e| common::broken(&e))?;
            let now = self.driver.now();
            self.watch.check(&self.live);
            self.rates.check(&self.live);
            self.probe.as_ref().map_or(Ok(()), Probe::check)?;
            while let Some(event) = self.tunnel.poll_event() {
                self.take(event);
            }
            self.tend_ends()?;
            match wake {
                Wake::Interrupt => {
                    self.end = Some(now + FAREWELL);
                    self.tunnel.close(now);
                }
                Wake::Interfaces(_) => self.refresh_ends()?,
                Wake::Reload => self.reload(),
                _ => {}
            }
            self.tell_figures(now);
            self.tell_rates(now);
            self.show(now);
        }
        // The last packets leave: the other end waits for them.
        let now = self.driver.now();
        match &mut self.ends {
            Some(ends) => ends.say_goodbye(&mut self.driver, &mut self.tunnel),
            None => self.driver.drive(&mut self.tunnel, Some(now)).map(|_| ()).map_err(|e| common::broken(&e))?,
        }
        self.watch.finish(&self.live);
        self.rates.finish(&self.live);
        self.finish(common)
    }

    fn tell_figures(&mut self, now: Instant) {
        let Self { watch, meters, sight, tunnel, ends, .. } = self;
        let name = |route: Route| ends.as_ref().map_or_else(|| route.remote.to_string(), |ends| ends.path_label(route));
        watch.tell(now, |stats| meters[usize::from(stats)].take(now, *sight, tunnel, name));
    }

    /// What may be sent to each other end, for who asked.
    fn tell_rates(&mut self, now: Instant) {
        if !self.rates.take_due(now) {
            return;
        }
        let Self { tunnel, rates, live, .. } = self;
        for (_, link) in tunnel.links() {
            let report = tunnel.rate_report(now, link).unwrap_or_else(|| tunnel.no_rate());
            let end = Some(link.route.remote.to_string());
            rates.tell(now, live, &Told::<()> { end, connected: link.connected, report, quality: None });
        }
    }

    fn take(&mut self, event: TunnelEvent) {
        match event {
            TunnelEvent::Connected(link) => {
                self.said = None;
                self.live.note(format!("connected with {}", self.peer(link)));
                let found = self.tunnel.links().find(|(id, _)| *id == link).map(|(_, it)| (it.route, it.security.clone()));
                if let Some((route, report)) = found {
                    self.security.connected(report.as_ref(), &self.live);
                    self.is_up(route);
                }
            }
            TunnelEvent::TurnedAway(reason) => {
                let now = self.driver.now();
                let over = self.clients.as_ref().and_then(|list| list.is_over(reason.insecure.as_ref()));
                let why = over.unwrap_or_else(|| reason.to_string());
                self.live.warn_rarely(now, format!("{} was turned away: {why}", self.side.newcomer()));
            }
            TunnelEvent::Disconnected(link, reason) => {
                let now = self.driver.now();
                self.ends.iter_mut().for_each(|ends| ends.all_down(now));
                self.say_disconnected(link, reason);
            }
            TunnelEvent::WantSocket(link, flow, target) => match self.pool.take(&mut self.driver, target) {
                Ok(socket) => {
                    self.watch.leave_out(socket);
                    self.tunnel.give_socket(link, flow, socket);
                }
                // The flow's next datagram asks again, and finds the socket that becomes free.
                Err(_) if self.tunnel.give_way() => self.tunnel.refuse_flow(link, flow),
                Err(error) => {
                    self.tunnel.refuse_flow(link, flow);
                    if !std::mem::replace(&mut self.said_no_socket, true) {
                        self.live.warn(format!(
                            "no socket for another flow towards {target}: {error}; raise the limit on open files (`ulimit -n`)"
                        ));
                    }
                }
            },
            TunnelEvent::FreeSocket(socket) => self.pool.give_back(&self.driver, socket),
            TunnelEvent::TooLong(len, limit) => self.live.warn(format!(
                "a datagram of {len} bytes was discarded, as all above {limit} bytes will be: DCCP does not fragment (SCTP does). \
                 Make the application's packets smaller (ffmpeg: rtp://…?pkt_size={limit})"
            )),
            TunnelEvent::NoForward(port) => self.live.warn(format!(
                "the other end has more --listen ports than this end has --forward: datagrams for the {}. are discarded",
                usize::from(port) + 1
            )),
            TunnelEvent::TooFar(link, delay, lifetime) => self.live.warn(format!(
                "the one-way delay to {} is {}, and datagrams are late after {}: nearly all of them are discarded. \
                 Allow more time: --lifetime, or --listen PORT/TIME",
                self.peer(link),
                units::time(delay),
                units::time(lifetime)
            )),
            TunnelEvent::CallRefused(link, from) => {
                let (now, peer) = (self.driver.now(), self.peer(link));
                let text = format!("no more calls fit to {peer}: that of {from} is refused, and carried once there is room");
                self.live.warn_rarely(now, text);
            }
            TunnelEvent::Path(_, route, true) => {
                self.live.note(format!("{} is up", self.path(route)));
                self.is_up(route);
            }
            TunnelEvent::Path(_, route, false) => {
                let others = self.ends.as_ref().is_some_and(|ends| ends.routes().len() > 1);
                let how = if others { "going on without it" } else { "going on trying" };
                self.live.warn(format!("{} does not answer; {how}", self.path(route)));
                let now = self.driver.now();
                self.ends.iter_mut().for_each(|ends| ends.down(now, route));
            }
            TunnelEvent::BelowMinimum(_, true) => self.live.warn("the network allows less than --min-rate now"),
            TunnelEvent::BelowMinimum(_, false) => self.live.note("--min-rate is allowed again"),
            _ => {}
        }
    }

    fn peer(&self, link: LinkId) -> String {
        let found = self.tunnel.links().find(|(id, _)| *id == link);
        found.map_or_else(String::new, |(_, link)| match &link.permit {
            Some(permit) => format!("{} ({})", permit.name, link.route.remote),
            None => link.route.remote.to_string(),
        })
    }

    /// Says it once for each reason: a client tries on and on.
    fn say_disconnected(&mut self, link: LinkId, reason: Farewell) {
        let peer = self.peer(link);
        let same = self.said.as_ref() == Some(&reason);
        let hint = match (&reason.insecure, reason.agreed) {
            (Some(why), _) => format!(" ({})", self.security.hint(Some(why))),
            (None, true) => String::new(),
            (None, false) => {
                let other = self.side.other();
                format!(" (does `braidcast {other} --over {}` run there, and does UDP reach it?)", self.over)
            }
        };
        match (self.ends.as_ref().filter(|ends| !ends.is_called()), self.end) {
            (_, Some(_)) => {}
            (None, None) => self.live.note(format!("{peer} has gone: {reason}")),
            (Some(_), None) if same => {}
            (Some(_), None) => self.live.warn(format!("no connection with {peer}: {reason}{hint}; trying again")),
        }
        self.said = Some(reason);
    }

    fn refresh_ends(&mut self) -> Outcome {
        let port = self.port();
        let Self { ends: Some(ends), driver, live, tunnel, over, dialed, .. } = self else { return Ok(()) };
        ends.refresh(driver, live, &mut Dialling { tunnel, over: *over, dialed, port })?;
        self.serve_at_relays()
    }

    /// Tries the next addresses of the other end, and takes what relays say.
    fn tend_ends(&mut self) -> Outcome {
        let port = self.port();
        let Self { ends: Some(ends), driver, live, tunnel, over, dialed, .. } = self else { return Ok(()) };
        ends.tell_troubles(driver, live);
        ends.tend(driver, live, &mut Dialling { tunnel, over: *over, dialed, port })?;
        self.serve_at_relays()
    }

    /// The other end answers over `route`.
    fn is_up(&mut self, route: Route) {
        let port = self.port();
        let Self { ends: Some(ends), driver, live, tunnel, over, dialed, .. } = self else { return };
        ends.up(route, driver, live, &mut Dialling { tunnel, over: *over, dialed, port });
    }

    fn show(&mut self, now: Instant) {
        if !self.live.due(now) || self.tunnel.links().next().is_none() {
            return;
        }
        let mut ends = self.sight.ends(now, &self.tunnel, self.live.style()).to_string();
        if let Some(paths) = Sight::paths(&self.tunnel, |route| self.path(route), self.live.style()) {
            ends = format!("{ends}\n\n{paths}");
        }
        let flows = self.sight.flows(now, &self.tunnel, true, self.live.style());
        let headline = "Ctrl-C ends. Figures of flows are of the last seconds.";
        let alone = self.ends.as_ref().is_some_and(|ends| !ends.is_called())
            && self.tunnel.links().all(|(_, link)| !link.connected);
        let line = match alone {
            true => format!("not connected: no `braidcast {} --over {}` answers", self.side.other(), self.over),
            false => self.sight.line(now, &self.tunnel),
        };
        self.live.show(&line, headline, &format!("{ends}\n\n{flows}"));
    }

    fn finish(mut self, common: &Common) -> Outcome {
        self.live.close();
        self.probe.as_ref().map_or(Ok(()), Probe::finish)?;
        let now = self.driver.now();
        if common.json {
            let ends = self.sight.document(now, &self.tunnel);
            return json::print(self.side.command(), &Document { seconds: json::round(now.as_secs_f64()), ends });
        }
        if !common.quiet {
            say!("{}", self.sight.ends(now, &self.tunnel, self.live.style()));
            if let Some(paths) = Sight::paths(&self.tunnel, |route| self.path(route), self.live.style()) {
                say!("\n{paths}");
            }
            say!("\n{}", self.sight.flows(now, &self.tunnel, false, self.live.style()));
            Sight::security(&self.tunnel, self.plain).iter().for_each(|line| say!("{line}"));
            let discards = Sight::discards(now, &self.tunnel);
            if !discards.is_empty() {
                say!("\n{}", discards.join("\n"));
            }
        }
        Ok(())
    }
}

/// The tunnel of an end that calls, whose first path begins it.
struct Dialling<'a> {
    tunnel: &'a mut Tunnel,
    over: Over,
    dialed: &'a mut bool,
    port: u16,
}

impl Dials for Dialling<'_> {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        match self.over {
            _ if !std::mem::replace(self.dialed, true) => self.tunnel.dial(now, route, self.port),
            Over::Dccp => self.tunnel.reroute(now, Some(route)),
            Over::Sctp => self.tunnel.join(now, route),
        }
        Ok(())
    }

    fn leave(&mut self, now: Instant, route: Route) {
        match self.over {
            Over::Dccp => self.tunnel.reroute(now, None),
            Over::Sctp => self.tunnel.leave(now, route),
        }
    }
}
