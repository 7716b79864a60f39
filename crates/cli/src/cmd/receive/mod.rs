//! `braidcast receive`: takes streams and writes them out on time.

mod border;
mod bursts;
mod cut;
mod entry;
mod gate;
mod guest;
mod log;
mod note;
mod outputs;
mod pipe;
mod place;
mod plan;
mod recording;
mod room;
mod senders;
mod serving;
mod sink;
mod summary;
mod viewers;
mod words;

use super::ends::{Ends, cannot_begin};
use super::security::Security;
use super::service::Service;
use super::ticket::{ENDED, Held, LOOK_AT_TICKET, Meeting};
use super::watch::{Carried, Stream, StreamFigures, Watch};
use super::{common, named, neighbour};
use crate::args::values::{Output, Remote};
use crate::args::{Common, ReceiveArgs};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::session::{self, End};
use crate::process;
use braidcast_core::{Instant, Machine, Rng};
use braidcast_driver::{Driver, Wake};
use braidcast_session::{ChannelId, Event, Farewell, Offer, PathReport, Receiver, ReceiverOptions};
use gate::Gate;
use log::Log;
use outputs::Ready;
use plan::Plan;
use room::Room;
use senders::Senders;
use serving::Serving;
use std::collections::BTreeMap;
use std::time::Duration;
use words::in_words;

/// What is handed to an output at once: as many datagrams of seven packets of transport stream as one
/// system call sends.
const OUTPUT: usize = 49 * 7 * 188;
/// Time to wait for a lost sender without `--keep`, unless --give-up sets another.
const GIVE_UP: Duration = Duration::from_secs(300);
/// Interval at which the dates in the list of keys are checked.
const LOOK: Duration = Duration::from_secs(60);
/// Time to wait, after Ctrl-C, for an output that takes nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// After Ctrl-C, what is to come out later than this comes out at once: the latency is the sender's
/// choice, and no sender keeps a receiver from ending.
const LONGEST: Duration = Duration::from_secs(5);

/// A receiver at work.
struct Session {
    driver: Driver,
    live: Live,
    watch: Watch,
    service: Service,
    receiver: Receiver,
    ends: Ends,
    plan: Plan,
    /// Where neighbours come in.
    gates: Vec<Gate>,
    rooms: BTreeMap<ChannelId, Room>,
    security: Security,
    authorized: Option<Senders>,
    serving: Option<Serving>,
    held: Option<Held>,
    /// When a line of it may have come to its last day.
    look_at: Instant,
    log: Option<Log>,
    keep: bool,
    /// How long a sender that is gone is waited for.
    give_up: Option<Duration>,
    plain: bool,
    rng: Rng,
    output: Vec<u8>,
    /// What a neighbour's packet brought.
    payload: Vec<u8>,
    interrupted: Option<Instant>,
    /// Ctrl-C came again: what waits for a slow reader is left.
    hurried: bool,
}

pub(super) fn run(args: &ReceiveArgs, common: &Common) -> Outcome {
    let (listen, outputs) = args.places()?;
    for output in outputs.iter().chain(args.accept.iter().map(|it| &it.output)) {
        if let Output::Neighbour(neighbour) = output {
            neighbour::check(neighbour, &args.shared)?;
        }
    }
    let to_stdout =
        outputs.iter().chain(args.accept.iter().map(|it| &it.output)).any(|output| *output == Output::Stdout);
    entry::check_stdout(to_stdout, common.json)?;
    let entrances = listen.as_ref().map_or(&[][..], |listen| &listen.gates);
    border::check(entrances, args)?;
    serving::check(args, !entrances.is_empty())?;
    let live = Live::new(common.quiet);
    let names: Vec<String> = args.from.iter().chain(&args.relay).map(Remote::to_string).collect();
    let meeting = Meeting::of_receiver(args)?;
    let mut held = Held::of(meeting)?;
    let security = match &held {
        Some(held) => held.security(&live),
        None if args.from.is_empty() || args.authorized.is_some() => Security::server(&args.shared, &live)?,
        None => Security::client(&args.shared, &names, &live)?,
    };
    let mut driver = common::driver()?;
    let mut plan = Plan::new(args, outputs.clone())?;
    // Before any output is touched: a port in use costs nothing then.
    let (ends, locals) = match (&listen, &held) {
        (Some(listen), _) => Ends::listen(&listen.own, "LISTEN", &mut driver)?,
        (None, Some(held)) => (held.meet(meeting, &mut driver, &live)?, Vec::new()),
        (None, None) => {
            let plans = named::unlimited(&args.via, &args.from, "the other end sends")?;
            (Ends::dial(plans, &mut driver, &live)?, Vec::new())
        }
    };
    let gates = plan.open_gates(entrances, args.slice, &mut driver)?;
    let (serving, served_at) = Serving::open(args, &mut driver, &live)?.unzip();
    let mut watch = Watch::open(&args.watch, "receive", &mut driver, Carried::Sctp)?;
    let all = || outputs.iter().chain(args.accept.iter().map(|it| &it.output));
    let stdout = [(common.json, "--json"), (to_stdout, "an OUTPUT")].into_iter().find(|(there, _)| *there);
    watch.open_figures(&args.figures, stdout.map(|(_, what)| what), &live)?;
    plan.show_in(args.thumbnail.then(|| watch.gallery()))?;
    process::drop_privileges()?;
    all().try_for_each(entry::check_folder)?;
    let mut authorized = None;
    if let Some(path) = &args.authorized {
        let list = authorized.insert(senders::read(path, plan.needs_outputs(), security.is_certified())?);
        plan.set_accepted(senders::outputs(list))?;
        driver.reload_on_hangup();
    }
    plan.check_gates(entrances, authorized.as_ref())?;
    for keys in gates.iter().filter_map(Gate::keys) {
        plan.check_keys(keys, authorized.as_ref())?;
        driver.reload_on_hangup();
    }
    authorized.iter_mut().for_each(|list| security.trust(&list.trusted()));
    let permits = authorized.as_mut().map(senders::permits).or_else(|| held.as_ref().map(Held::permits));
    if let Some(held) = &mut held {
        let taken = to_stdout || common.json || args.figures.to_stdout();
        let listen = listen.as_ref().map(|listen| &listen.own);
        held.print(meeting, listen, taken, ("sender", "braidcast send INPUT --to …"), &live)?;
    }
    let give_up = args.give_up.map_or((!args.keep).then_some(GIVE_UP), |patience| patience.0);
    let log = args.log.as_deref().map(Log::create).transpose()?;
    let options = ReceiverOptions::default().with(|it| {
        it.early = args.early;
        it.slice = args.slice;
        it.output_size = OUTPUT;
        it.keep = args.keep;
        it.log = log.is_some();
        it.give_up = give_up;
        it.security = security.options.clone();
        it.admission = plan.admission();
        it.permits = permits;
        it.hold = !args.keep;
        it.pieces = serving.is_some();
        it.name = args.name.clone().unwrap_or_default();
        it.latency = args.latency;
        it.events = watch.tracer();
    });
    let (now, port, rng) = (driver.now(), options.local_port, common::rng(args.seed)?);
    let own_rng = rng.stream("border");
    let receiver = if ends.is_called() {
        Receiver::new(options, rng)?
    } else {
        Receiver::call(now, options, rng, port, &ends.routes()).map_err(cannot_begin)?
    };
    let mut session = Session {
        driver,
        live,
        watch,
        service: Service::ready(now),
        receiver,
        ends,
        plan,
        gates,
        rooms: BTreeMap::new(),
        security,
        authorized,
        serving,
        held,
        look_at: Instant::ZERO,
        log,
        keep: args.keep,
        give_up,
        plain: args.shared.plain,
        rng: own_rng,
        output: Vec::new(),
        payload: Vec::new(),
        interrupted: None,
        hurried: false,
    };
    session.open_rooms()?;
    if !names.is_empty() {
        let how = if session.ends.is_called() { "waiting at" } else { "calling" };
        session.live.note(format!("{how} {}", names.join(", ")));
    }
    let titles = session.gates.iter().map(|gate| &gate.title);
    locals.iter().chain(titles).for_each(|local| session.live.note(format!("listening on {local}")));
    served_at.iter().flatten().for_each(|local| session.live.note(format!("serving at {local}")));
    let worked = session.work();
    if worked.is_err() {
        session.give_up();
    }
    worked?;
    session.finish(common)
}

impl Session {
    /// Opens the outputs of the streams that are known by now.
    fn open_rooms(&mut self) -> Outcome {
        let channels: Vec<_> = self.receiver.channels().map(|(id, name)| (id, name.to_owned())).collect();
        for (id, name) in channels {
            if !self.plan.is_named() || !name.is_empty() {
                self.rooms.insert(id, self.plan.open(&name, &mut self.driver)?);
            }
        }
        self.serve_streams(None);
        Ok(())
    }

    /// Runs until the streams have ended and everything is written.
    fn work(&mut self) -> Outcome {
        while !self.is_over() {
            let tries = self.rooms.values().filter_map(|room| room.outputs.next_try());
            let checking = self.rooms.values().any(|room| room.outputs.is_checking()).then_some(Instant::ZERO);
            let now = self.driver.now();
            // What is past is looked at in `is_over`; as a time to wake at it would only spin.
            let limits = self.interrupted.map(|at| [at + PATIENCE, at + LONGEST, at + LONGEST + PATIENCE]);
            let patience = limits.into_iter().flatten().find(|at| *at > now);
            let alive = self.service.goes_on(self.driver.now());
            let until =
                tries.chain(checking).chain(patience).chain(self.live.next()).chain(self.watch.next()).chain(alive);
            let until = until.chain(self.ends.next()).chain(self.next_crossing(now));
            let until = until.chain(self.serving.as_ref().and_then(Serving::next).filter(|at| *at > now));
            let dates = self.authorized.is_some() || self.held.is_some() || self.serving.is_some();
            let until = until.chain(dates.then_some(self.look_at)).min();
            match self.drive(until)? {
                Wake::Input(input) => {
                    self.gates.iter_mut().for_each(|gate| gate.on_ready(input));
                    let now = self.driver.now();
                    self.each_room(now, |session, _, room| {
                        room.outputs.on_ready(&mut session.driver, input, &session.live)
                    })?;
                }
                Wake::Interfaces(_) => self.refresh_links()?,
                Wake::Interrupt => self.interrupt()?,
                Wake::Reload => self.reload(),
                _ => {}
            }
            let now = self.driver.now();
            if self.interrupted.is_some_and(|at| now.since(at) >= LONGEST) {
                self.receiver.hurry(now);
            }
            self.check_dates(now);
            self.tend_links()?;
            self.take_events(now)?;
            self.hand_on(now);
            self.cross(now)?;
            self.take_events(now)?;
            self.write(now)?;
            self.take_events(now)?;
            self.hand_on(now);
            self.show(now);
        }
        self.say_goodbye();
        for room in self.rooms.values_mut().filter(|room| !room.failed) {
            if room.connected { room.outputs.end(false)? } else { room.outputs.flush()? }
        }
        self.log.as_mut().map_or(Ok(()), Log::finish)
    }

    /// SIGHUP: the file may have changed. If it makes no sense, what it said before still holds.
    fn reload(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.reload(self.driver.now(), &self.live);
        }
        self.reload_senders();
        self.reload_keys();
    }

    fn reload_senders(&mut self) {
        let Some(path) = self.authorized.as_ref().map(|it| it.path().to_owned()) else { return };
        let read = senders::read(&path, self.plan.needs_outputs(), self.security.is_certified());
        match read.and_then(|list| self.plan.set_accepted(senders::outputs(&list)).map(|()| list)) {
            Ok(list) => {
                self.authorized = Some(list);
                let (plan, rooms) = (&self.plan, &mut self.rooms);
                rooms.retain(|_, room| room.connected || room.to == plan.describe(&room.name));
                self.apply();
                self.live.note(format!("{} was read again", path.display()));
            }
            Err(failure) => self.live.warn(format!("{failure}; going on with what it said before")),
        }
    }

    /// Lets in whom the list of keys has today, and nobody else.
    fn apply(&mut self) {
        let Some(list) = &mut self.authorized else { return };
        self.security.trust(&list.trusted());
        self.receiver.set_permits(self.driver.now(), senders::permits(list));
    }

    fn check_dates(&mut self, now: Instant) {
        if now >= self.look_at {
            self.look_at = now + if self.held.is_some() { LOOK_AT_TICKET } else { LOOK };
            if let Some(held) = &mut self.held
                && held.has_ended()
            {
                self.receiver.set_permits(now, held.permits());
                self.live.warn(ENDED);
            }
            if self.authorized.as_ref().is_some_and(Senders::has_changed) {
                self.apply();
            }
            self.serving.iter_mut().for_each(|serving| serving.check_dates(now));
        }
    }

    /// Returns `true` if there is nothing more to do.
    fn is_over(&mut self) -> bool {
        let now = self.driver.now();
        self.is_done() && self.serving.as_mut().is_none_or(|serving| serving.is_over(now))
    }

    /// Returns `true` if there is nothing more to do for this end's own outputs.
    fn is_done(&self) -> bool {
        let drained = self.rooms.values().all(|room| room.outputs.is_drained());
        if let Some(at) = self.interrupted {
            // What is live still comes out when it is due; what is reliable may wait for a reader that takes nothing.
            let stuck = !drained || self.rooms.values().any(|room| room.reliable && room.connected);
            let waited = self.driver.now().since(at) >= if stuck { PATIENCE } else { LONGEST + PATIENCE };
            return self.hurried || waited || (self.receiver.is_idle() && drained);
        }
        let had = self.rooms.values().filter(|room| room.end.is_some()).count();
        let all = if self.plan.is_named() { had > 0 } else { had == self.rooms.len() };
        !self.keep && all && had > 0 && self.receiver.is_idle() && drained
    }

    /// Does something with each room whose outputs work.
    fn each_room(&mut self, now: Instant, act: impl Fn(&mut Self, ChannelId, &mut Room) -> Outcome) -> Outcome {
        let mut rooms = std::mem::take(&mut self.rooms);
        let mut failed = Vec::new();
        for (id, room) in rooms.iter_mut().filter(|(_, room)| !room.failed) {
            if let Err(failure) = act(self, *id, room) {
                failed.push((*id, failure));
            }
        }
        self.rooms = rooms;
        failed.into_iter().try_for_each(|(id, failure)| self.room_failed(now, id, failure))
    }

    /// An output failed. If others remain, they go on.
    fn room_failed(&mut self, now: Instant, id: ChannelId, failure: Failure) -> Outcome {
        if !self.plan.is_many() {
            return Err(failure);
        }
        if let Some(room) = self.rooms.get_mut(&id) {
            room.failed = true;
            // Its sender comes again, and is told again while nothing is better.
            self.live.warn_rarely(now, format!("{}{failure}; its sender was turned away", room.prefix()));
        }
        self.receiver.refuse(now, id, Farewell::OutputFailed);
        Ok(())
    }

    /// Writes what is due. What is reliable waits where it is while an output's reader is too slow.
    fn write(&mut self, now: Instant) -> Outcome {
        self.each_room(now, |session, id, room| {
            room.outputs.tend(now, &mut session.driver, &session.live)?;
            if let Some(content) = room.outputs.check()? {
                room.outputs.go_on(content.len());
                session.receiver.accept(now, id, content);
            }
            while room.outputs.has_room() && session.receiver.poll_output(now, id, &mut session.output) {
                let entry = session.receiver.is_at_entry(id);
                room.outputs.write(now, &mut session.driver, (&session.output, entry), &session.live)?;
            }
            session.receiver.pause_output(id, !room.outputs.has_room());
            if room.reliable {
                session.receiver.written(now, id, room.outputs.written());
            }
            if room.flush_asked && room.outputs.is_drained() {
                room.flush_asked = false;
                room.outputs.flush()?;
                session.receiver.flushed(now, id);
            }
            Ok(())
        })?;
        if let Some(log) = &mut self.log {
            for entry in self.receiver.take_log() {
                log.add(&entry)?;
            }
        }
        Ok(())
    }

    fn take_events(&mut self, now: Instant) -> Outcome {
        while let Some((channel, event)) = self.receiver.poll_event() {
            match (channel, event) {
                (None, Event::Refused { name, why }) => self.refused(now, &name, why),
                (Some(id), Event::Offered(offer)) => {
                    if let Err(failure) = self.offered(now, id, &offer) {
                        self.room_failed(now, id, failure)?;
                    }
                }
                (Some(id), event) => {
                    if let Err(failure) = self.take_event(id, event) {
                        self.room_failed(now, id, failure)?;
                    }
                }
                (None, Event::Insecure(reason)) => {
                    let over = self.authorized.as_ref().and_then(|list| list.is_over(reason.insecure()));
                    let why = over.unwrap_or_else(|| reason.to_string());
                    self.live.warn_rarely(now, format!("a sender was turned away: {why}"))
                }
                (None, Event::Lost(reason)) => self.unanswered(now, &reason),
                (None, Event::Ended { reason, .. }) => {
                    let hint = self.security.hint(reason.insecure());
                    return Err(Failure::new(format!("no connection: {reason}"), hint));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A stream has its turn: says what of it is there.
    fn offered(&mut self, now: Instant, id: ChannelId, offer: &Offer) -> Outcome {
        if !offer.reliable {
            self.plan.check_live(&offer.name)?;
        }
        // A neighbour's that was waited for is over.
        self.end_guest(now, id)?;
        self.room_for(id, &offer.name)?;
        self.serve_streams(Some((id, &offer.name)));
        if offer.reliable && self.serving.is_some() {
            self.live.warn("a stream that is sent with --reliable is not served: it has no time at which it is played");
        }
        let Some(room) = self.rooms.get_mut(&id) else { return Ok(()) };
        room.last_guest = None;
        (room.reliable, room.connected, room.flush_asked) = (offer.reliable, true, false);
        match room.outputs.begin(offer, &self.live)? {
            Ready::With(content) if offer.reliable => {
                room.outputs.go_on(content.len());
                self.receiver.accept(now, id, content);
            }
            Ready::With(_) | Ready::Later => {}
        }
        self.tell_other_names(id);
        Ok(())
    }

    /// Makes sure that a stream of this name has outputs that work.
    fn room_for(&mut self, id: ChannelId, name: &str) -> Outcome {
        if self.rooms.get(&id).is_none_or(|room| room.failed) {
            // Those that made room for others are forgotten.
            let known: Vec<_> = self.receiver.channels().map(|(id, _)| id).collect();
            self.rooms.retain(|id, _| known.contains(id));
            self.rooms.insert(id, self.plan.open(name, &mut self.driver)?);
        }
        Ok(())
    }

    fn tell_other_names(&self, id: ChannelId) {
        let Some(room) = self.rooms.get(&id) else { return };
        for other in room.outputs.other_names() {
            let prefix = room.prefix();
            self.live.warn(format!("{prefix}{} holds something else, which stays as it is; writing {other}", room.to));
        }
    }

    fn take_event(&mut self, id: ChannelId, event: Event) -> Outcome {
        let Some(room) = self.rooms.get_mut(&id) else { return Ok(()) };
        let prefix = room.prefix();
        if let Some((is_warning, text)) = in_words(&event, &self.ends) {
            self.live.say_paced(self.driver.now(), is_warning, &format!("{prefix}{text}"));
        }
        match event {
            Event::PathUp(_, route) => {
                let Self { ends, driver, live, receiver, .. } = self;
                ends.up(route, driver, live, receiver);
            }
            Event::PathDown(_, route) => self.ends.down(self.driver.now(), route),
            Event::Connected if !self.ends.is_called() => {
                let report = self.receiver.report(self.driver.now(), id);
                self.security.connected(report.security.as_ref(), &self.live);
            }
            Event::Anew => {
                self.live.note(format!("{prefix}the file is another one than what is there; beginning anew"));
                room.outputs.begin_anew()?;
            }
            Event::Flush => room.flush_asked = true,
            Event::Ended { complete, reason } => {
                if !room.failed {
                    room.outputs.end(complete)?;
                }
                *(if complete { &mut room.complete } else { &mut room.broken }) += 1;
                room.connected = false;
                room.flush_asked = false;
                if self.keep && self.interrupted.is_none() {
                    let how =
                        if complete { "the stream ended".into() } else { format!("the stream broke off: {reason}") };
                    self.live.note(format!("{prefix}{how}; waiting for the next sender"));
                }
                room.end = Some((complete, reason));
            }
            _ => {}
        }
        Ok(())
    }

    fn refresh_links(&mut self) -> Outcome {
        let Self { ends, driver, live, receiver, .. } = self;
        ends.refresh(driver, live, receiver)
    }

    /// Tries the next addresses of who is called.
    fn tend_links(&mut self) -> Outcome {
        let Self { ends, driver, live, receiver, .. } = self;
        ends.tell_troubles(driver, live);
        ends.tend(driver, live, receiver)
    }

    fn show(&mut self, now: Instant) {
        self.watch.check(&self.live);
        self.tell_figures(now);
        if !self.live.due(now) {
            return;
        }
        for (id, room) in self.rooms.iter_mut().filter(|(_, room)| room.connected) {
            let mut report = room.guest_report(now).unwrap_or_else(|| self.receiver.report(now, *id));
            session::leave_out_dead(&mut report);
            let ends = &self.ends;
            let path_name = |path: &PathReport| ends.path_name(path);
            let table = session::paths(&report, End::Receiver, path_name, self.live.style());
            let stream = Stream { name: "", connected: true, end: End::Receiver, ended: false };
            let (state, ..) = room.pulse.judge(now, stream, &report, None, path_name);
            let prefix = room.prefix() + state.note();
            let line = prefix.clone() + &session::line(&report, End::Receiver, path_name);
            let head = prefix + &session::headline(&report, End::Receiver);
            self.live.show(&line, &head, &table);
        }
    }

    fn tell_figures(&mut self, now: Instant) {
        let Self { watch, receiver, rooms, ends, serving, .. } = self;
        watch.tell(now, |stats| {
            let each = rooms.iter_mut().map(|(id, room)| {
                let report = room.guest_report(now).unwrap_or_else(|| receiver.report(now, *id));
                let neighbours = room.neighbours();
                let Room { name, connected, end, meters, outputs, .. } = room;
                let ended = !*connected && end.is_some();
                let stream = Stream { name, connected: *connected, end: End::Receiver, ended };
                let figures = meters[usize::from(stats)].take(now, stream, &report, |path| ends.path_name(path));
                let latency_ms = receiver.latency(*id).map(|it| it.as_secs_f64() * 1e3);
                let (outputs, thumbnail) = (outputs.figures(), outputs.thumbnail());
                StreamFigures { neighbours, outputs, latency_ms, thumbnail, ..figures }
            });
            let served = serving.as_mut().map(|serving| serving.figures(now, stats));
            each.chain(served.into_iter().flatten()).collect()
        });
    }

    /// Ctrl-C: the senders are told; what has arrived is still written. The second one leaves what nobody takes.
    fn interrupt(&mut self) -> Outcome {
        self.hurried = self.interrupted.is_some();
        let now = self.driver.now();
        self.interrupted.get_or_insert(now);
        // A service that is stopped is most likely started again, here or after a reboot.
        let why =
            if self.keep && self.driver.is_terminated() { Farewell::GoingDown } else { Farewell::ReceiverStopped };
        self.leave_gates(now)?;
        self.receiver.abort(now, why);
        let why = if why == Farewell::GoingDown { why } else { Farewell::SenderStopped };
        self.serving.iter_mut().for_each(|serving| serving.abort(now, why));
        Ok(())
    }

    /// The output failed: the senders are told before we go.
    fn give_up(&mut self) {
        self.live.close();
        let now = self.driver.now();
        self.receiver.abort(now, Farewell::OutputFailed);
        self.serving.iter_mut().for_each(|serving| serving.abort(now, Farewell::InputFailed));
        self.say_goodbye();
    }
}
