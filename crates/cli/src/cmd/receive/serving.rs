//! `receive --serve`: what comes goes on to other receivers.

use super::Session;
use super::viewers::{self, Viewers};
use crate::args::ReceiveArgs;
use crate::args::values::Listen;
use crate::cmd::common;
use crate::cmd::security::Security;
use crate::cmd::watch::{Meter, Stream, StreamFigures};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::session::End;
use crate::out::units;
use braidcast_core::{Instant, Machine, SocketId};
use braidcast_driver::{Driver, Wake};
use braidcast_session::{
    Beside, ChannelId, ClientId, Farewell, Pieces, Receiver, Report, Server, ServerEvent, ServerOptions,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time to wait, when all has ended, until receivers have what is under way.
const PATIENCE: Duration = Duration::from_secs(5);
/// Receivers that are gone and of which the summary says how it went.
const MOST_KNOWN: usize = 64;

/// Serves at work.
pub(super) struct Serving {
    server: Server,
    sockets: Vec<SocketId>,
    pieces: Pieces,
    security: Security,
    list: Option<Viewers>,
    meters: BTreeMap<ClientId, [Meter; 2]>,
    /// Receivers that were served, those included that still are.
    count: u64,
    gone: Vec<Served>,
    ended_at: Option<Instant>,
}

/// How it went for one receiver, in `--json`.
#[derive(Serialize)]
pub(super) struct Served {
    /// The stream; empty if it has no name.
    stream: String,
    /// What the list calls the receiver; empty without a list.
    receiver: String,
    remote: String,
    seconds: f64,
    sent_bytes: u64,
    /// Of frames whose outcome is known, 0 to 1.
    on_time_share: Option<f64>,
}

/// What `--json` says of all of them.
#[derive(Serialize)]
pub(super) struct Summary {
    /// Receivers that were served.
    receivers: u64,
    /// How it went for the last of them, 64 at most.
    last: Vec<Served>,
}

impl Summary {
    /// How many receivers there were, for people.
    pub(super) fn words(&self) -> String {
        match self.receivers {
            1 => "1 receiver".into(),
            n => format!("{n} receivers"),
        }
    }
}

/// What is wrong with the flags, if something is.
pub(super) fn check(args: &ReceiveArgs, has_gates: bool) -> Outcome {
    let Some(listen) = &args.serve.serve else { return Ok(()) };
    if has_gates {
        return Err(Failure::usage(
            "--serve serves what `braidcast send` sends, and a LISTEN is srt://, srtla://, rtp:// or rtmp://",
            format!("send that on here: braidcast receive 9000 --serve {} beside braidcast send srt://…", text(listen)),
        ));
    }
    let limited = args.authorized.is_some() || !args.shared.peer_key.is_empty();
    if limited && args.serve.serve_authorized.is_none() {
        return Err(Failure::usage(
            "who may send is limited, and who may have the stream is not said",
            "add --serve-authorized FILE with the fingerprints of the receivers",
        ));
    }
    Ok(())
}

fn text(listen: &Listen) -> String {
    listen.0.first().map_or_else(String::new, |place| place.port.to_string())
}

impl Serving {
    /// Opens the ports, and returns their addresses too; `None` without `--serve`.
    pub(super) fn open(args: &ReceiveArgs, driver: &mut Driver, live: &Live) -> Outcome<Option<(Self, Vec<String>)>> {
        let Some(listen) = &args.serve.serve else { return Ok(None) };
        // What there is to say of the keys is said of the receiver's.
        let security = Security::server(&args.shared, &Live::new(true))?;
        let (mut sockets, mut locals) = (Vec::new(), Vec::new());
        for place in &listen.0 {
            let socket =
                driver.bind(&place.bind()).map_err(|e| Failure::new(e.to_string(), "choose another --serve"))?;
            locals.extend(driver.socket(socket).map(|it| it.local_addr().to_string()));
            sockets.push(socket);
        }
        let mut list = None;
        if let Some(path) = &args.serve.serve_authorized {
            let read = list.insert(Viewers::read(path, security.is_certified())?);
            security.trust(&read.trusted());
            driver.reload_on_hangup();
        } else if args.shared.key.is_none() && args.shared.key_file.is_none() && args.shared.cert.is_none() {
            live.warn(format!(
                "--serve {}: whoever reaches it gets the stream; --key or --serve-authorized says who may",
                text(listen)
            ));
        }
        let options = ServerOptions {
            sending: ServerOptions::default().sending.with(|it| {
                it.latency = args.serve.serve_latency;
                it.security = security.options.clone();
            }),
            clients: args.serve.serve_max,
            permits: list.as_mut().map(viewers::permits),
            ..ServerOptions::default()
        };
        let server = Server::new(options, common::rng(args.seed)?.stream("serve"))?;
        let serving = Self {
            server,
            sockets,
            pieces: Pieces::default(),
            security,
            list,
            meters: BTreeMap::new(),
            count: 0,
            gone: Vec::new(),
            ended_at: None,
        };
        Ok(Some((serving, locals)))
    }

    /// The receiver and this end as one machine.
    pub(super) fn beside<'a>(&'a mut self, receiver: &'a mut Receiver) -> impl Machine + 'a {
        Beside::new(receiver, &mut self.server, &self.sockets)
    }

    /// Hands on what came.
    pub(super) fn hand_on(&mut self, now: Instant, receiver: &mut Receiver) {
        receiver.take_pieces(&mut self.pieces);
        if !self.pieces.is_empty() {
            self.server.push(now, &self.pieces);
        }
    }

    /// There are other streams now, or one is called `title` by its sender.
    pub(super) fn follow(&mut self, now: Instant, receiver: &Receiver, title: Option<(ChannelId, &str)>) {
        self.server.set_streams(now, receiver.channels());
        if let Some((id, title)) = title {
            self.server.set_title(id, title);
        }
    }

    /// SIGHUP: the list is read again. If it makes no sense, what it said before still holds.
    pub(super) fn reload(&mut self, now: Instant, live: &Live) {
        let Some(path) = self.list.as_ref().map(|list| list.path().to_owned()) else { return };
        match Viewers::read(&path, self.security.is_certified()) {
            Ok(list) => {
                self.list = Some(list);
                self.apply(now);
                live.note(format!("{} was read again", path.display()));
            }
            Err(failure) => live.warn(format!("{failure}; going on with what it said before")),
        }
    }

    /// Looks whether the last day of a line is over.
    pub(super) fn check_dates(&mut self, now: Instant) {
        if self.list.as_ref().is_some_and(Viewers::has_changed) {
            self.apply(now);
        }
    }

    fn apply(&mut self, now: Instant) {
        let Some(list) = &mut self.list else { return };
        self.security.trust(&list.trusted());
        self.server.set_permits(now, viewers::permits(list));
    }

    /// Says who came and who left.
    pub(super) fn tell(&mut self, now: Instant, live: &mut Live) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Joined(id) => {
                    self.count += 1;
                    let (who, what) = (self.who(id), stream(self.server.name(id)));
                    live.say_paced(now, false, &format!("serving {what} to {who}"));
                }
                ServerEvent::Left { client, name, remote, reason, report } => {
                    self.meters.remove(&client);
                    let what = stream(&name);
                    let why = Farewell::of(&reason).map_or_else(|| reason.to_string(), |it| it.to_string());
                    let (share, sent) = (on_time(&report), units::bytes(report.input_bytes));
                    let share = share.map_or_else(String::new, |share| format!(", {} on time", units::share(share)));
                    live.say_paced(now, false, &format!("{remote} has left {what}: {why}; {sent} sent{share}"));
                    if self.gone.len() == MOST_KNOWN {
                        self.gone.remove(0);
                    }
                    self.gone.push(served(name, self.name_in(&report), remote, &report));
                }
                ServerEvent::Refused { remote, name, why } => {
                    let asked = if name.is_empty() { String::new() } else { format!(" asked for '{name}' and") };
                    live.warn_rarely(now, format!("{remote}{asked} was turned away: {why}"));
                }
                ServerEvent::Insecure(reason) => {
                    let over = self.list.as_ref().and_then(|list| list.is_over(reason.insecure()));
                    let why = over.unwrap_or_else(|| reason.to_string());
                    live.warn_rarely(now, format!("a receiver was turned away: {why}"));
                }
                ServerEvent::PathDown(id, _, route) => {
                    let what = self.who(id);
                    live.say_paced(now, true, &format!("{what} does not answer at {}", route.remote));
                }
                _ => {}
            }
        }
    }

    /// What a receiver is called: as the list has it, and where it is.
    fn who(&self, id: ClientId) -> String {
        let remote = self.server.remote(id);
        let name = self.list.as_ref().zip(self.server.key(id)).and_then(|(list, key)| viewers::name_of(list, key));
        name.map_or_else(|| remote.clone(), |name| format!("{name} at {remote}"))
    }

    /// What the list calls the receiver of a report.
    fn name_in(&self, report: &Report) -> String {
        let key = report.security.as_ref().and_then(|it| it.peer_fingerprint.as_ref()?.parse().ok());
        let name = self.list.as_ref().zip(key).and_then(|(list, key)| viewers::name_of(list, key));
        name.unwrap_or_default().to_owned()
    }

    /// Live figures of each receiver, as of a stream that is sent.
    pub(super) fn figures(&mut self, now: Instant, stats: bool) -> Vec<StreamFigures> {
        let ids: Vec<ClientId> = self.server.clients().collect();
        let mut all = Vec::new();
        for id in ids {
            let report = self.server.report(now, id);
            let name = self.server.name(id);
            let name = format!("{name}{}to {}", if name.is_empty() { "" } else { " " }, self.who(id));
            let stream = Stream { name: &name, connected: true, end: End::Sender, ended: false };
            let meter = &mut self.meters.entry(id).or_default()[usize::from(stats)];
            all.push(meter.take(now, stream, &report, |path| path.remote.clone()));
        }
        all
    }

    /// When [`is_over`](Self::is_over) is to be asked again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ended_at.map(|at| at + PATIENCE)
    }

    /// The streams have ended: returns `true` once the receivers have what was under way.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        self.server.finish(now);
        let since = *self.ended_at.get_or_insert(now);
        self.server.is_idle() || now.since(since) >= PATIENCE
    }

    /// Ends all at once.
    pub(super) fn abort(&mut self, now: Instant, why: Farewell) {
        self.server.abort(now, why);
    }

    /// How it went, for `--json`.
    pub(super) fn summary(&mut self, now: Instant) -> Summary {
        let ids: Vec<ClientId> = self.server.clients().collect();
        for id in ids {
            let report = self.server.report(now, id);
            let name = self.server.name(id).to_owned();
            self.gone.push(served(name, self.name_in(&report), self.server.remote(id), &report));
        }
        let surplus = self.gone.len().saturating_sub(MOST_KNOWN);
        Summary { receivers: self.count, last: self.gone.drain(..).skip(surplus).collect() }
    }
}

impl Session {
    /// There are other streams to serve now, or one has another name.
    pub(super) fn serve_streams(&mut self, title: Option<(ChannelId, &str)>) {
        if let Some(serving) = &mut self.serving {
            serving.follow(self.driver.now(), &self.receiver, title);
        }
    }

    /// What came goes on to those whom it is served to.
    pub(super) fn hand_on(&mut self, now: Instant) {
        if let Some(serving) = &mut self.serving {
            serving.hand_on(now, &mut self.receiver);
            serving.tell(now, &mut self.live);
        }
    }

    /// Waits until something happens.
    pub(super) fn drive(&mut self, until: Option<Instant>) -> Outcome<Wake> {
        let Self { ends, driver, receiver, .. } = self;
        let woke = match &mut self.serving {
            Some(serving) => ends.drive(driver, &mut serving.beside(receiver), until),
            None => ends.drive(driver, receiver, until),
        };
        woke.map_err(|e| common::broken(&e))
    }

    /// One more turn sends the last packets. If that fails, the senders find out by themselves.
    pub(super) fn say_goodbye(&mut self) {
        let Self { ends, driver, receiver, .. } = self;
        match &mut self.serving {
            Some(serving) => ends.say_goodbye(driver, &mut serving.beside(receiver)),
            None => ends.say_goodbye(driver, receiver),
        }
        self.watch.finish(&self.live);
    }
}

fn served(stream: String, receiver: String, remote: String, report: &Report) -> Served {
    let sent_bytes = report.paths.iter().map(|path| path.sent_bytes).sum();
    Served { stream, receiver, remote, seconds: report.seconds, sent_bytes, on_time_share: on_time(report) }
}

/// The share of the frames on time, of all whose outcome is known.
fn on_time(report: &Report) -> Option<f64> {
    let (good, known) = report.kinds.iter().fold((0, 0), |(good, known), kind| {
        (good + kind.on_time, known + kind.captured.saturating_sub(kind.not_known_yet))
    });
    (known > 0).then(|| good as f64 / known as f64)
}

/// What a stream is called, in sentences.
fn stream(name: &str) -> String {
    if name.is_empty() { "the stream".into() } else { format!("'{name}'") }
}
