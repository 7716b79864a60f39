//! `braidcast relay`: passes on between two ends what it cannot read.

mod clients;
mod figures;
mod threads;

use super::common;
use super::service::Service;
use super::watch::StatsFile;
use crate::args::values::StatsTarget;
use crate::args::{Common, RelayArgs};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::table::{Table, Tone};
use crate::out::{json, units};
use crate::process;
use braidcast_core::Instant;
use braidcast_driver::{Driver, Wake};
use braidcast_relay::{Admission, Relay, RelayOptions, RelayReport};
use clients::Clients;
use figures::{Figures, Page};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use threads::Threads;

/// Interval at which the dates in the list of keys are checked.
const LOOK: Duration = Duration::from_secs(60);
/// Interval at which the metrics are updated.
const EACH: Duration = Duration::from_secs(1);

/// Threads unless --threads says otherwise, at most. More of them would wait for each other more than for packets.
const THREADS: usize = 16;

/// Packets gather for this long: half of a slice of a live stream.
const GATHER: Duration = Duration::from_millis(2);

/// A relay at work.
struct Work {
    driver: Driver,
    live: Live,
    service: Service,
    relay: Relay,
    threads: Threads,
    clients: Option<Clients>,
    /// Rate of clients whose lines say none.
    max_rate: Option<u64>,
    look_at: Instant,
    stats: Option<(StatsFile, Duration, Instant)>,
    page: Option<(Arc<Page>, Instant)>,
    /// What was shown last, and when.
    before: (Instant, RelayReport),
}

pub(super) fn run(args: &RelayArgs, common: &Common) -> Outcome {
    let live = Live::new(common.quiet);
    if let (Some(stats), true) = (&args.stats, common.json)
        && stats.target == StatsTarget::Stdout
    {
        return Err(Failure::usage("--stats and --json cannot both go to stdout", "give it a file: --stats 1s,FILE"));
    }
    let mut driver = common::driver()?;
    driver.gather(GATHER);
    let (mut locals, mut sockets) = (Vec::new(), Vec::new());
    for place in &args.listen.0 {
        let socket = driver.bind(&place.bind()).map_err(|e| Failure::new(e.to_string(), "choose another LISTEN"))?;
        sockets.push(socket);
        locals.extend(driver.socket(socket).map(|socket| socket.local_addr().to_string()));
    }
    driver.expect_peers(args.members as usize);
    let cores = thread::available_parallelism().map_or(1, |it| it.get().min(THREADS));
    let more = 1..args.threads.map_or(cores, usize::from);
    let beside = more.map(|_| threads::driver_beside(&mut driver, &sockets, &args.listen)).collect::<Outcome<_>>()?;
    let page = args.metrics.map(|addr| figures::serve_at(addr, &live)).transpose()?;
    process::drop_privileges()?;
    let mut clients = args.authorized.as_deref().map(Clients::read).transpose()?;
    let admission = match &mut clients {
        Some(clients) => clients.admission(args.max_rate),
        None => Admission::Open(args.max_rate),
    };
    if clients.is_some() {
        driver.reload_on_hangup();
    }
    let options = RelayOptions { admission, members: args.members as usize };
    let relay = Relay::new(options, common::rng(None)?)?;
    let threads = Threads::start(beside, &mut driver, &relay)?;
    let open = |it: &crate::args::values::Stats| {
        StatsFile::open(&it.target, "statistics", "--stats").map(|file| (file, it.each, Instant::ZERO + it.each))
    };
    let stats = args.stats.as_ref().map(open).transpose()?;
    let mut work = Work {
        service: Service::ready(driver.now()),
        driver,
        live,
        relay,
        threads,
        clients,
        max_rate: args.max_rate,
        look_at: Instant::ZERO + LOOK,
        stats,
        page: page.map(|page| (page, Instant::ZERO)),
        before: (Instant::ZERO, RelayReport::default()),
    };
    locals.iter().for_each(|local| work.live.note(format!("relaying at {local}; Ctrl-C ends")));
    if args.open {
        work.live.warn("--open: whoever reaches this port can send through this machine, and it pays for the traffic");
    }
    work.work()?;
    work.live.close();
    if common.json {
        return json::print("relay", &work.figures());
    }
    Ok(())
}

impl Work {
    fn work(&mut self) -> Outcome {
        loop {
            let stats = self.stats.as_ref().map(|(.., next)| *next);
            let page = self.page.as_ref().map(|(_, next)| *next);
            let look = self.clients.is_some().then_some(self.look_at);
            let alive = self.service.goes_on(self.driver.now());
            let until = [stats, page, look, alive, self.live.next()].into_iter().flatten().min();
            match self.driver.drive(&mut self.relay, until).map_err(|e| common::broken(&e))? {
                Wake::Interrupt => {
                    self.service.ends();
                    return Ok(());
                }
                Wake::Reload => self.reload(),
                Wake::Called => self.threads.trouble()?,
                _ => {}
            }
            let now = self.driver.now();
            if now >= self.look_at {
                self.look_at = now + LOOK;
                if self.clients.as_ref().is_some_and(Clients::has_changed) {
                    self.admit();
                }
            }
            self.tell(now);
            self.show(now);
        }
    }

    fn admit(&mut self) {
        if let Some(clients) = &mut self.clients {
            self.relay.set_admission(clients.admission(self.max_rate));
        }
    }

    /// SIGHUP: the file may have changed. If it makes no sense, what it said before still holds.
    fn reload(&mut self) {
        let Some(path) = self.clients.as_ref().map(|it| it.path().to_owned()) else { return };
        match Clients::read(&path) {
            Ok(clients) => {
                self.clients = Some(clients);
                self.admit();
                self.live.note(format!("{} was read again", path.display()));
            }
            Err(failure) => self.live.warn(format!("{failure}; going on with what it said before")),
        }
    }

    fn figures(&self) -> Figures {
        Figures::new(self.driver.now(), self.relay.report())
    }

    fn tell(&mut self, now: Instant) {
        if self.stats.as_ref().is_some_and(|(.., next)| *next <= now) {
            let figures = self.figures();
            if let Some((file, each, next)) = &mut self.stats {
                *next = now + *each;
                file.tell(&figures);
                file.take_failure().into_iter().for_each(|words| self.live.warn(words));
            }
        }
        if self.page.as_ref().is_some_and(|(_, next)| *next <= now) {
            let figures = self.figures();
            if let Some((page, next)) = &mut self.page {
                *next = now + EACH;
                page.publish(figures);
            }
        }
    }

    fn show(&mut self, now: Instant) {
        if !self.live.due(now) {
            return;
        }
        let report = self.relay.report();
        let seconds = now.since(self.before.0).as_secs_f64().max(1e-3);
        let rate = |now: u64, before: u64| units::rate(now.saturating_sub(before) as f64 * 8.0 / seconds);
        let mut table = Table::new(&["", "circuits", "rate", "carried"], self.live.style());
        let old = |name: &str| self.before.1.clients.iter().find(|it| it.name == name).map_or(0, |it| it.bytes);
        for client in report.clients.iter().filter(|it| it.circuits > 0) {
            table.row([
                (client.name.clone(), Tone::Plain),
                (client.circuits.to_string(), Tone::Plain),
                (rate(client.bytes, old(&client.name)), Tone::Plain),
                (units::bytes(client.bytes), Tone::Plain),
            ]);
        }
        let RelayReport { circuits, members, bytes, .. } = &report;
        let line = format!("{circuits} circuits, {members} addresses, {}", rate(*bytes, self.before.1.bytes));
        self.live.show(&format!("{:.0} s: {line}", now.as_secs_f64()), &line, &table);
        self.before = (now, report);
    }
}
