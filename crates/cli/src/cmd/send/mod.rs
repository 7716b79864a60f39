//! `braidcast send`: a stream over one or several networks.

mod asked;
mod intake;
mod past;
mod quality;
mod reader;
mod recording;
mod source;
mod summary;
mod throttle;

use super::common;
use super::encode::Encoder;
use super::ends::{Ends, cannot_begin};
use super::neighbour;
use super::rates::{Rates, Told};
use super::security::Security;
use super::service::Service;
use super::ticket::Towards;
use super::watch::{Advice, Carried, Load, Meter, Pulse, Stream, StreamFigures, Thumbnail, Watch};
use crate::args::one_path::OnePath;
use crate::args::{Common, SendArgs, StreamArgs, values};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::session::{self, End};
use crate::out::units;
use crate::process;
use asked::asked;
use braidcast_core::{Instant, Machine, Route};
use braidcast_driver::{Driver, Wake};
use braidcast_media::Kind;
use braidcast_sctp::CloseReason;
use braidcast_session::{Event, Farewell, PathReport, Sender};
use intake::Intake;
use past::Past;
use quality::Target;
use source::Source;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Silence of a live input after which a warning is due.
const SILENCE: Duration = Duration::from_secs(2);
/// Longest time that a recording waits for the other paths once one has brought the receiver's
/// answer: the first frame is often the largest, and a stream's first windows are small.
const OTHER_PATHS: Duration = Duration::from_secs(1);

/// Interval of checks that the paths carry what comes in.
const LOOK: Duration = Duration::from_secs(1);
/// Interval at which a sender that finds no receiver says so.
const NO_ANSWER: Duration = Duration::from_secs(10);
/// And for the first time after this.
const FIRST_ANSWER: Duration = Duration::from_secs(3);

/// A sender at work.
struct Session {
    driver: Driver,
    live: Live,
    watch: Watch,
    service: Service,
    /// For the figures of pages, and for the statistics.
    meters: [Meter; 2],
    load: Load,
    pulse: Pulse,
    rates: Rates,
    /// Of quality, for the rate's reports.
    target: Option<Target>,
    /// When the load was looked at last.
    looked_at: Instant,
    ends: Ends,
    security: Security,
    source: Source,
    intake: Intake,
    thumbnail: Option<Thumbnail>,
    /// The program that makes the stream, if it is one of ours.
    encoder: Option<Encoder>,
    sender: Sender,
    connected: bool,
    /// Since when there has been this association, or was the last one.
    connected_at: Instant,
    /// The receiver turned this end away; attempts to come back are not told one by one.
    refused: bool,
    /// When there was a receiver for the first time.
    began: Option<Instant>,
    /// Paths that answer.
    up: usize,
    /// Those that answered before there was a receiver, which may be of an attempt that was refused.
    early: Vec<String>,
    /// When a recording begins, even if not all paths answer; `None` once it has.
    begin_by: Option<Instant>,
    finishing: bool,
    interrupted: bool,
    /// `true` if it is a file that both ends can find again.
    resumable: bool,
    /// What the receiver has of the file is being compared.
    past: Option<Past>,
    reliable: bool,
    /// From capture to playout, of a live stream.
    latency: Duration,
    silent: bool,
    /// When it is said next that no receiver answers.
    say_by: Instant,
    end: Option<(bool, CloseReason)>,
}

/// What is sent.
pub(super) enum Feed<'a> {
    Input(&'a values::Input),
    /// What an encoder of ours writes, and where it is told what it may make.
    Encoder {
        name: String,
        stream: File,
        told: Box<dyn Write + Send>,
        encoder: Encoder,
    },
}

pub(super) fn run(args: &SendArgs, common: &Common) -> Outcome {
    stream("send", Feed::Input(&args.input), &args.how, common)
}

/// Sends `feed`. `command`: what it is called.
pub(super) fn stream(command: &'static str, feed: Feed<'_>, args: &StreamArgs, common: &Common) -> Outcome {
    let towards = Towards::of(&args.to)?;
    let plans = if args.at.is_none() { towards.plans(&args.via)? } else { Vec::new() };
    if args.switchover.0.is_some() && args.path != Some(OnePath::Primary) {
        return Err(Failure::usage(
            "--switchover needs --path primary, which prefers the first path",
            "add --path primary, or leave --switchover out",
        ));
    }
    if let Feed::Input(values::Input::Stdin) = feed
        && io::stdin().is_terminal()
    {
        return Err(Failure::usage(
            "the INPUT - is this terminal, and nothing is piped into it",
            "write for example: ffmpeg -i … -f mpegts - | braidcast send - --to HOST:PORT",
        ));
    }
    if let Feed::Input(values::Input::Neighbour(it)) = feed {
        neighbour::check(it, &args.shared)?;
    }
    let live = Live::new(common.quiet);
    let security = match args.at {
        Some(_) => Security::server(&args.shared, &live)?,
        None => towards.security(&args.shared, &live)?,
    };
    let mut driver = common::driver()?;
    let (source, told, encoder) = match feed {
        Feed::Input(input) => (Source::open(input, &mut driver, args.reliable, args.latency, args.slice)?, None, None),
        Feed::Encoder { name, stream, told, encoder } => {
            (Source::live(name, stream, &mut driver, args.latency, args.slice)?, Some(told), Some(encoder))
        }
    };
    let reliable = args.reliable || source.goes_freely();
    if reliable && !args.reliable {
        live.note(format!(
            "{} is not MPEG-TS, so it has no clock to be paced by: sending it as with --reliable",
            source.name()
        ));
    }
    let rates = &args.rates;
    let asks = rates.rate_report.is_some() || rates.rate_interval.is_some() || rates.rate_range.is_some();
    if reliable && (asks || args.on_rate.is_some()) {
        return Err(Failure::usage(
            "--rate-report and --on-rate need a live stream: a reliable one has no deadlines",
            "leave them out, or send a live stream",
        ));
    }
    let (ends, locals) = match &args.at {
        Some(at) => Ends::listen(at, "--at", &mut driver)?,
        None => (towards.dial(plans, args.relay_only, &mut driver, &live)?, Vec::new()),
    };
    let mut watch = Watch::open(&args.watch, command, &mut driver, Carried::Sctp)?;
    watch.open_figures(&args.figures, common.json.then_some("--json"), &live)?;
    let thumbnail = if args.thumbnail { Thumbnail::begin(watch.gallery())? } else { None };
    let stdout = common.json.then_some("--json").or_else(|| args.figures.to_stdout().then_some("--stats"));
    let target = Target::of(driver.now(), args)?;
    let mut rates = Rates::open(driver.now(), &args.rates, args.on_rate.as_deref(), stdout)?;
    if let Some(told) = told {
        rates.add_encoder(told);
    }
    process::drop_privileges()?;
    let options = asked(args, reliable).with(|it| {
        it.security = security.options.clone();
        it.identity = source.identity().filter(|_| reliable);
        it.size = source.size().filter(|_| reliable);
        it.events = watch.tracer();
    });
    let resumable = options.identity.is_some();
    let (now, port) = (driver.now(), options.local_port);
    let rng = common::rng(args.seed)?;
    let mut sender = if ends.is_called() {
        Sender::listen(now, options, rng)?
    } else {
        Sender::new(now, options, rng, port, &ends.routes()).map_err(cannot_begin)?
    };
    ends.routes().into_iter().for_each(|route| sender.set_limit(route, ends.limit(route)));
    let mut session = Session {
        driver,
        live,
        watch,
        service: Service::ready(now),
        meters: Default::default(),
        load: Load::within(args.latency),
        pulse: Pulse::default(),
        rates,
        target,
        looked_at: now,
        ends,
        security,
        source,
        intake: Intake::default(),
        thumbnail,
        encoder,
        sender,
        connected: false,
        connected_at: now,
        refused: false,
        began: None,
        up: 0,
        early: Vec::new(),
        begin_by: None,
        finishing: false,
        interrupted: false,
        resumable,
        latency: args.latency,
        past: None,
        reliable,
        silent: false,
        say_by: now + FIRST_ANSWER,
        end: None,
    };
    if locals.is_empty() {
        session.live.note(format!("connecting to {}", towards.names().join(", ")));
    }
    locals.iter().for_each(|local| session.live.note(format!("listening on {local}")));
    let worked = session.work();
    if worked.is_err() {
        session.say_goodbye(Farewell::InputFailed);
    }
    worked?;
    session.finish(command, args, common)
}

impl Session {
    /// Runs until the association has ended.
    fn work(&mut self) -> Outcome {
        while self.end.is_none() {
            let now = self.driver.now();
            if self.past.is_some() {
                self.compare(now)?
            } else {
                self.feed(now)?
            }
            if self.take_events(now)? {
                // A recording may begin now, or a unit that was given back may find room.
                continue;
            }
            if self.begin_by.is_some_and(|at| at <= now || self.are_all_up()) {
                self.begin_by = None;
                self.source.start(now);
                continue;
            }
            self.show(now);
            let Self { ends, driver, live, sender, .. } = self;
            ends.tend(driver, live, sender)?;
            ends.tell_troubles(driver, live);
            let alive = self.service.goes_on(now);
            let until = [
                self.source.next_due(now),
                self.begin_by,
                self.ends.next(),
                self.live.next(),
                self.watch.next(),
                self.rates.next(),
                self.past.as_ref().map(|_| now),
                (!self.connected && self.past.is_none()).then_some(self.say_by),
                alive,
            ]
            .into_iter()
            .flatten()
            .min();
            match self.ends.drive(&mut self.driver, &mut self.sender, until).map_err(|e| common::broken(&e))? {
                Wake::Input(id) => self.source.on_ready(self.driver.now(), id)?,
                Wake::Interfaces(_) => self.refresh_links()?,
                Wake::Interrupt => self.interrupt(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves what the input has, or what is due of it, into the sender.
    fn feed(&mut self, now: Instant) -> Outcome {
        let Self { sender, intake, thumbnail, .. } = self;
        self.source.pump(now, |unit| {
            intake.see(now, &unit);
            if let Some(thumbnail) = thumbnail.as_ref().filter(|_| unit.kind.is_video() || unit.kind == Kind::Tables) {
                thumbnail.see(&unit.bytes);
            }
            sender.push(now, unit)
        })?;
        if let Some(words) = self.intake.words(&self.source).filter(|_| !self.reliable) {
            self.live.note(words);
        }
        self.warn_if_slow(now);
        self.source.watch(now, &mut self.driver)?;
        self.source.tell(now, &self.live);
        if self.source.ended() && !self.finishing {
            self.finishing = true;
            // Ctrl-C ends the encoder too.
            self.encoder.as_mut().filter(|_| !self.interrupted).map_or(Ok(()), Encoder::end)?;
            self.sender.finish(now);
        }
        Ok(())
    }

    /// Says so if the input of a live stream takes longer than the latency.
    fn warn_if_slow(&mut self, now: Instant) {
        // A recording is read ahead, and what waited for a receiver says nothing.
        if self.reliable || !self.connected || self.source.is_recording() || !self.intake.is_slow(self.latency) {
            return;
        }
        let rtts = self.sender.report(now).paths.into_iter().filter_map(|path| path.min_rtt_ms);
        let one_way = rtts.fold(f64::INFINITY, f64::min) / 2e3;
        let one_way = Duration::try_from_secs_f64(one_way).unwrap_or_default();
        if let Some(words) = self.intake.too_slow(self.latency, one_way) {
            self.live.warn(words);
        }
    }

    /// Returns `true` if there were any.
    fn take_events(&mut self, now: Instant) -> Outcome<bool> {
        let (mut any, mut asked, mut up) = (false, None, Vec::new());
        while let Some(event) = self.sender.poll_event() {
            any = true;
            let name = |route: Route| self.ends.name(route);
            match event {
                Event::Connected => {
                    (self.connected, self.connected_at) = (true, now);
                    self.began.get_or_insert(now);
                    if self.begin_by.is_none() && self.source.is_recording() {
                        self.begin_by = Some(now + OTHER_PATHS);
                    }
                    let early = std::mem::take(&mut self.early);
                    self.up = early.len();
                    if !self.refused {
                        self.live.note("connected");
                        early.iter().for_each(|name| self.live.note(format!("{name} is up")));
                    }
                    self.security.connected(self.sender.report(now).security.as_ref(), &self.live);
                }
                Event::PathUp(_, route) if !self.connected => {
                    up.push(route);
                    let name = name(route);
                    if !self.early.contains(&name) {
                        self.early.push(name);
                    }
                }
                Event::PathUp(_, route) => {
                    up.push(route);
                    self.up += 1;
                    if !self.refused {
                        self.live.note(format!("{} is up", name(route)));
                    }
                }
                Event::PathDown(_, route) => {
                    self.up = self.up.saturating_sub(1);
                    let how = if self.up > 0 { "going on without it" } else { "going on trying" };
                    self.live.warn(format!("{} does not answer; {how}", name(route)));
                    self.ends.down(now, route);
                }
                Event::PathNarrow(_, route) => self.live.warn(format!(
                    "{} loses packets of 1200 bytes, which any network should carry; sending smaller ones, which costs some of its rate",
                    name(route)
                )),
                Event::PathSelected(_, route) => self.live.note(format!("data goes over {} now", name(route))),
                Event::PathRemoved(_, route) if self.ends.has_another(route) => {}
                Event::PathRemoved(_, route) => self.live.note(format!("{} has left", name(route))),
                Event::Lost(reason) => {
                    self.connected = false;
                    self.say_by = now + NO_ANSWER;
                    self.ends.all_down(now);
                    (self.up, self.early) = (0, Vec::new());
                    self.refused = Farewell::of(&reason).is_some();
                    let why = match (Farewell::of(&reason), &reason) {
                        (Some(farewell), _) => farewell.to_string(),
                        // What a receiver that was started anew says of packets it knows nothing of.
                        (None, CloseReason::AbortedByPeer(_) | CloseReason::PeerRestarted) => "the receiver was started anew".into(),
                        (None, reason) => reason.to_string(),
                    };
                    // One that turns this end away does so at each attempt.
                    self.live.warn_rarely(now, format!("{why}; reconnecting"));
                }
                Event::Insecure(reason) => {
                    self.live.warn_rarely(now, format!("a receiver was turned away: {reason}"));
                }
                Event::Refused { name: asked, why } => {
                    let asked = if asked.is_empty() { asked } else { format!(" asked for '{asked}' and") };
                    self.live.warn_rarely(now, format!("a receiver{asked} was turned away: {why}"));
                }
                Event::InLine => self.live.warn("another sender is being received; waiting for its end"),
                Event::Resume { offset, digest } => asked = Some((offset, digest)),
                Event::Ended { complete, reason } => self.end = Some((complete, reason)),
                _ => {}
            }
        }
        let Self { ends, driver, live, sender, .. } = self;
        for route in up {
            ends.up(route, driver, live, sender);
        }
        if let Some((offset, digest)) = asked {
            match self.source.file() {
                Some(path) => self.past = Some(Past::begin(path, offset, digest)?),
                // What comes from a pipe is gone.
                None => self.sender.abort(now, Farewell::CannotResume),
            }
        }
        Ok(any)
    }

    fn show(&mut self, now: Instant) {
        self.watch.check(&self.live);
        self.rates.check(&self.live);
        self.tell_figures(now);
        if !self.connected && now >= self.say_by && self.past.is_none() {
            self.say_by = now + NO_ANSWER;
            self.say_nobody_answers();
        }
        if !self.live.due(now) {
            return;
        }
        let quiet_input =
            self.connected && !self.source.is_recording() && !self.source.goes_freely() && !self.source.ended();
        let silent = quiet_input && now.since(self.source.last_read()) >= SILENCE;
        if silent && !self.silent {
            self.live.warn("the input is silent; waiting for it");
        }
        self.silent = silent;
        let report = self.sender.report(now);
        let since = now.since(self.connected_at).as_secs_f64();
        if self.refused && self.connected && report.unheard_seconds.is_some_and(|it| it < since) {
            self.refused = false;
            self.live.note("the receiver takes the stream again");
        }
        // Once there was a receiver, the line goes on: it says that the stream is dark, and since when.
        if !self.connected && report.seconds == 0.0 {
            return;
        }
        let table = session::paths(&report, End::Sender, |path| self.path_name(path), self.live.style());
        let size = self.source.size().filter(|_| self.reliable);
        let progress =
            size.map_or_else(String::new, |size| session::progress(&report, self.sender.written_bytes(), size));
        let stream = Stream { name: "", connected: self.connected, end: End::Sender, ended: false };
        let overload = self.load.words();
        let ends = &self.ends;
        let (state, ..) = self.pulse.judge(now, stream, &report, overload, |path| ends.path_name(path));
        let progress = state.note().to_owned() + &progress;
        let line = progress.clone() + &session::line(&report, End::Sender, |path| self.path_name(path));
        self.live.show(&line, &(progress + &session::headline(&report, End::Sender)), &table);
    }

    fn say_nobody_answers(&mut self) {
        if self.ends.is_called() {
            return self.live.note(
                "no receiver has called yet; going on waiting (is `braidcast receive --from` running there, and does UDP reach this port?)",
            );
        }
        self.live.note(
            "no receiver answers yet; going on trying (is `braidcast receive` running there, and does UDP reach it?)",
        );
    }

    /// Figures for who asked for them, and whether more comes in than the paths carry.
    fn tell_figures(&mut self, now: Instant) {
        let latency = (!self.reliable).then_some(self.latency);
        let Self { watch, meters, sender, ends, connected, rates, target, live, source, thumbnail, .. } = self;
        if rates.take_due(now)
            && let Some(report) = sender.rate_report(now)
        {
            let quality = target.as_mut().map(|it| it.judge(now, &report, sender));
            rates.tell(now, live, &Told { end: None, connected: *connected, report, quality });
        }
        source.tell_rate(now, || sender.rate_report(now).map(|report| report.smoothed_rate));
        let stream = Stream { name: "", connected: *connected, end: End::Sender, ended: false };
        watch.tell(now, |stats| {
            let name = |path: &PathReport| ends.path_name(path);
            let figures = meters[usize::from(stats)].take(now, stream, &sender.report(now), name);
            let neighbours = source.neighbour().into_iter().collect();
            let latency_ms = latency.map(|it| it.as_secs_f64() * 1e3);
            let thumbnail = thumbnail.as_ref().and_then(Thumbnail::address);
            vec![StreamFigures { neighbours, latency_ms, thumbnail, ..figures }]
        });
        if self.reliable || now.since(self.looked_at) < LOOK {
            return;
        }
        self.looked_at = now;
        self.load.follow(now, &self.sender.report(now));
        match self.load.advise(now) {
            Some(Advice::Overload(words)) => self.live.warn(words),
            Some(Advice::Over(words)) => self.live.note(words),
            None => {}
        }
    }

    fn path_name(&self, path: &PathReport) -> String {
        self.ends.path_name(path)
    }

    /// Returns `true` if every path answers, as far as is known here.
    fn are_all_up(&self) -> bool {
        self.ends.are_up()
    }

    fn refresh_links(&mut self) -> Outcome {
        let Self { ends, driver, live, sender, .. } = self;
        ends.refresh(driver, live, sender)
    }

    /// The receiver has bytes of an earlier run: goes on behind them if they are ours, or begins anew.
    fn compare(&mut self, now: Instant) -> Outcome {
        let Some(past) = &mut self.past else { return Ok(()) };
        let Some(content) = past.step()? else { return Ok(()) };
        let had = past.offset();
        self.past = None;
        self.source.seek(content.len())?;
        if had == 0 {
            self.live.note("the receiver has nothing of it any more; beginning anew");
        } else if content.is_empty() {
            self.live.note("what the receiver has is something else; beginning anew");
        } else {
            self.live.note(format!("{} are there already; going on from there", units::bytes(content.len())));
        }
        self.finishing = false;
        self.sender.resume(now, content);
        Ok(())
    }

    /// Ctrl-C: what was captured so far is still delivered, if anybody is there to take it. The
    /// second one ends at once.
    fn interrupt(&mut self) {
        let now = self.driver.now();
        if self.interrupted || !self.connected || self.resumable {
            self.interrupted = true;
            self.sender.abort(now, Farewell::SenderStopped);
            return;
        }
        self.interrupted = true;
        self.live.note("stopping: delivering what is already queued; press Ctrl-C again to quit now");
        let sender = &mut self.sender;
        self.source.stop(now, |unit| sender.push(now, unit));
        self.sender.stop(now);
    }

    /// The receiver is told before we go. If that fails, it finds out by itself.
    fn say_goodbye(&mut self, why: Farewell) {
        let now = self.driver.now();
        self.live.close();
        self.sender.abort(now, why);
        self.ends.say_goodbye(&mut self.driver, &mut self.sender);
    }
}
