//! A neighbour that speaks SRT or RIST: its machine, and the sockets under it.
#![allow(clippy::disallowed_types, reason = "the media's own sockets belong to the command line, not to a protocol")]

mod figures;
mod keys;
mod spoken;

pub(crate) use figures::{Figures, LinkFigures, Seen};
pub(crate) use keys::Keys;
pub(crate) use spoken::Event;

use super::common;
use super::resolve::resolve;
use crate::args::SharedArgs;
use crate::args::media::UdpMedia;
use crate::args::neighbour::{self, Scheme, Secret, Whereabouts};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::units;
use braidcast_core::{Datagram, Ecn, Instant, Rng, Route, SocketId};
use braidcast_driver::{Batch, DatagramReader, Outbox};
use braidcast_gateway::rist;
use braidcast_gateway::srt::{ConnectionId, Delivered, Direction, Ended, Endpoint, Options, Passphrase, Report};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::net::sockopt;
use spoken::Spoken;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// What the kernel may hold in each direction, in bytes, if it lets us: a second of 30 Mbit/s.
const BUFFER: usize = 4 << 20;
/// Datagrams that are read, or a few more, before what is due is looked at again.
const BURST: usize = 256;
/// Interval at which its report is kept, for when its connection is over.
const KEEP: Duration = Duration::from_millis(20);
/// How much later than agreed on what was sent last may be played before the connection ends: a goodbye ends libsrt's
/// playing at once, and its programs take what is due when a busy machine lets them.
const LINGER: Duration = Duration::from_millis(300);
/// How long packets of several links may be overtaken before they are asked for, until it is known better.
const BONDED_REORDERING: Duration = Duration::from_millis(40);
/// How long a passphrase's file may be.
const FILE: u64 = 4096;

/// A neighbour.
pub(crate) struct Neighbour {
    name: String,
    /// The one, or RIST's two, and what waits to leave over each.
    sockets: Vec<(DatagramReader, Outbox)>,
    /// What waits for two of them at once.
    both: Option<(Poll, Events)>,
    machine: Spoken,
    buf: Vec<u8>,
    /// When the machine was last looked at.
    now: Instant,
    /// When something was last pushed.
    pushed: Instant,
    /// Datagrams that the system did not take.
    unsent: u64,
    scheme: Scheme,
    /// The passphrase of each stream, if each has its own.
    keys: Option<Keys>,
    /// The socket is IPv6's, and may serve both families.
    v6: bool,
    /// The latency of our own stream behind it, if it is a source of one.
    behind: Option<Duration>,
    /// When its report is kept next.
    keep_at: Instant,
    /// Of the present connection, or the last one.
    last: Option<Seen>,
}

/// What a neighbour is to us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It is the one input.
    Source,
    /// It takes what comes out.
    Sink,
    /// Callers, at most as many, are inputs, and each has a stream of its own; of these names only, if there are any.
    Sources(usize, Option<Vec<String>>),
}

impl Neighbour {
    /// Opens the socket, and calls or waits for callers.
    pub(crate) fn open(neighbour: &neighbour::Neighbour, role: Role, now: Instant) -> Outcome<Self> {
        let rng = common::rng(None)?;
        let keys = neighbour.keys.as_deref().map(Keys::read).transpose()?;
        let (sockets, machine) = if neighbour.scheme == Scheme::Rist {
            rist_endpoint(neighbour, role == Role::Sink, now, rng)?
        } else {
            srt_endpoint(neighbour, role, keys.as_ref(), now, rng)?
        };
        for socket in &sockets {
            socket.set_nonblocking(true).map_err(|e| common::broken(&e))?;
            // Beyond rmem_max for those who may; less than is asked for does no harm.
            if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER).is_err() {
                let _ = sockopt::set_socket_recv_buffer_size(socket, BUFFER);
            }
            let _ = sockopt::set_socket_send_buffer_size(socket, BUFFER);
        }
        let v6 = sockets[0].local_addr().is_ok_and(|addr| addr.is_ipv6());
        let with_outbox = |socket: UdpSocket| Ok((DatagramReader::untimed(socket.into())?, Outbox::default()));
        let sockets = sockets.into_iter().map(with_outbox).collect::<io::Result<Vec<_>>>();
        let sockets = sockets.map_err(|e| common::broken(&e))?;
        let both = if sockets.len() > 1 { Some(both(&sockets).map_err(|e| common::broken(&e))?) } else { None };
        Ok(Self {
            name: neighbour.to_string(),
            sockets,
            both,
            machine,
            buf: Vec::new(),
            now,
            pushed: now,
            unsent: 0,
            scheme: neighbour.scheme,
            keys,
            v6,
            behind: None,
            keep_at: now,
            last: None,
        })
    }

    /// What comes from it goes on in a stream of ours with this latency.
    pub(crate) const fn goes_on_for(&mut self, latency: Duration) {
        self.behind = Some(latency);
    }

    /// Reads what is there, and sends what is to be sent.
    pub(crate) fn tend(&mut self, now: Instant) -> Batch {
        self.now = now;
        if let Some((poll, events)) = &mut self.both {
            // What it reports is found by reading; an interrupted call is made again.
            let _ = poll.poll(events, Some(Duration::ZERO));
        }
        let mut all = Batch { datagrams: 0, more: false };
        for (id, (reader, _)) in (0..).map(SocketId).zip(&mut self.sockets) {
            let batch = read(now, id, reader, &mut self.machine);
            all = Batch { datagrams: all.datagrams + batch.datagrams, more: all.more | batch.more };
        }
        self.tend_timers(now);
        all
    }

    /// The same if there is nothing to read.
    pub(crate) fn tend_timers(&mut self, now: Instant) {
        self.now = now;
        if self.machine.timeout().is_some_and(|at| at <= now) {
            self.machine.tick(now);
        }
        self.transmit(now);
        if now >= self.keep_at {
            self.keep_at = now + KEEP;
            let first = self.machine.first_report().map(|report| self.seen(report));
            self.last = first.or(self.last.take());
        }
    }

    fn transmit(&mut self, now: Instant) {
        while let Some(transmit) = self.machine.transmit(now, &mut self.buf) {
            let mut remote = transmit.route.remote;
            // Our socket for both families has IPv6's addresses for all.
            if let IpAddr::V4(ip) = remote.ip()
                && self.v6
            {
                remote.set_ip(ip.to_ipv6_mapped().into());
            }
            let Some((socket, outbox)) = self.sockets.get_mut(usize::from(transmit.route.socket.0)) else { continue };
            outbox.push(remote, &self.buf);
            if outbox.is_full() {
                self.unsent += socket.send(outbox);
            }
        }
        self.unsent += self.sockets.iter_mut().map(|(socket, outbox)| socket.send(outbox)).sum::<u64>();
    }

    fn seen(&self, report: Report) -> Seen {
        Seen { links: self.machine.bonded(report.peer), report }
    }

    /// How a connection goes, while it lasts.
    pub(crate) fn look(&self, connection: ConnectionId) -> Option<Seen> {
        self.machine.report(connection).map(|report| self.seen(report))
    }

    /// The next payload that is due, into `buf`; returns whose it is, and when it was due.
    pub(crate) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Delivered> {
        self.machine.deliver(now, buf)
    }

    /// Ends a connection.
    pub(crate) fn disconnect(&mut self, now: Instant, connection: ConnectionId) {
        self.machine.disconnect(now, connection);
        self.transmit(now);
    }

    /// The passphrase of each stream, if each has its own.
    pub(crate) const fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    /// Takes other passphrases. Whoever came by one that is no longer its stream's is sent away.
    pub(crate) fn set_keys(&mut self, now: Instant, keys: Keys) {
        self.machine.set_keys(now, keys.list.clone());
        self.keys = Some(keys);
        self.transmit(now);
    }

    /// Has it hear how much the path behind us carries, bit/s.
    pub(crate) fn tell_capacity(&mut self, bits_per_second: u64) {
        self.machine.tell_capacity(bits_per_second);
    }

    /// Returns `true` if its descriptor stands for two sockets, which are to be read whether it can be or not: it says
    /// so of the first one that can, and once.
    pub(crate) const fn is_of_two_sockets(&self) -> bool {
        self.both.is_some()
    }

    /// What it speaks, as it stands in URLs.
    pub(crate) const fn protocol(&self) -> &'static str {
        self.scheme.name()
    }

    /// Sends `bytes` to whoever is connected.
    pub(crate) fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.pushed = now;
        self.machine.push(now, bytes);
        self.transmit(now);
    }

    /// When to [`tend`](Self::tend) it next without being told that there is something to read.
    pub(crate) fn next(&self) -> Option<Instant> {
        let played = (self.machine.is_drained() && !self.is_drained()).then(|| self.played_by());
        self.machine.timeout().into_iter().chain(played).min()
    }

    /// When all that was pushed is played at the other end.
    fn played_by(&self) -> Instant {
        let latency = self.machine.reports().iter().map(|(_, report)| report.peer_latency + report.rtt + LINGER).max();
        self.pushed + latency.unwrap_or_default()
    }

    /// Returns `true` if all that was pushed has come and is played, so that the connection may end.
    pub(crate) fn is_drained(&self) -> bool {
        !self.machine.is_connected() || (self.machine.is_drained() && self.now >= self.played_by())
    }

    /// Datagrams that the system did not take.
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Says what happened since.
    pub(crate) fn tell(&mut self, live: &Live) {
        while let Some(event) = self.poll_event() {
            self.tell_of(&event, live);
        }
    }

    /// What happened since, to be [told of](Self::tell_of).
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.machine.event()
    }

    /// Says that it happened.
    pub(crate) fn tell_of(&self, event: &Event, live: &Live) {
        let name = &self.name;
        match event {
            Event::Connected(id) => {
                let Some((_, report)) = self.machine.reports().into_iter().find(|(it, _)| it == id) else { return };
                let total = self.behind.map_or_else(String::new, |behind| {
                    format!("; {} in total until it is played", units::time(report.latency + behind))
                });
                if self.scheme == Scheme::Rist {
                    return live.note(self.connected_by_rist(&report) + &total);
                }
                let stream = if report.stream_id.is_empty() {
                    String::new()
                } else {
                    format!(", stream '{}'", shown(&report.stream_id))
                };
                let keys = encryption(&report);
                let [ours, theirs] = [report.latency, report.peer_latency].map(units::time);
                let remote = self.remote(&report);
                live.note(format!(
                    "{name}: connected to {remote}{stream}, {keys}; SRT latency {ours} towards here, {theirs} from here{total}"
                ));
            }
            Event::Ended(_, why) => {
                let why = match why {
                    Ended::ByUs => return,
                    Ended::ByPeer => "the neighbour ended the connection",
                    Ended::Silent => "the neighbour has been silent for 5 s",
                    Ended::Replaced => "a new caller took the place of a silent one",
                };
                live.warn(format!("{name}: {why}; waiting for it"));
            }
            Event::Refused { .. } => self.refused(event).into_iter().for_each(|words| live.warn(words)),
            Event::RefusedByPeer(why) => live.warn(format!("{name}: the neighbour refuses us: {why}; trying again")),
            Event::NoAnswer => live.note(format!("{name}: nobody answers yet; trying on")),
        }
    }

    fn connected_by_rist(&self, report: &Report) -> String {
        let profile = match self.machine.profile() {
            Some(rist::Profile::Main) => "main",
            _ => "simple",
        };
        let (keys, buffer) = (encryption(report), units::time(report.latency.max(report.peer_latency)));
        let (name, remote) = (&self.name, report.peer);
        format!("{name}: connected to {remote}, RIST's {profile} profile, {keys}; buffer {buffer}")
    }

    /// What is said of a caller that was refused.
    pub(crate) fn refused(&self, event: &Event) -> Option<String> {
        let Event::Refused { peer, why, stream_id } = event else { return None };
        let peer = if self.scheme == Scheme::Srtla { "a group of links".into() } else { peer.ip().to_string() };
        let stream = stream_id.as_ref().map_or_else(String::new, |id| format!(", stream '{}'", shown(id)));
        Some(format!("{}: refused {peer}{stream}: {why}", self.name))
    }

    /// The other end's address, for people.
    fn remote(&self, report: &Report) -> String {
        if self.scheme != Scheme::Srtla {
            return report.peer.to_string();
        }
        let links: Vec<String> = self.machine.bonded(report.peer).iter().map(|link| link.remote.to_string()).collect();
        links.join(" and ")
    }

    /// How it goes.
    pub(crate) fn figures(&self) -> Figures {
        let figures = Seen::figures(self.last.as_ref(), self.scheme.name(), self.machine.is_connected());
        let latency = self.last.as_ref().map(|seen| seen.report.latency);
        let total_latency_ms = self.behind.zip(latency).map(|(behind, latency)| (behind + latency).as_secs_f64() * 1e3);
        Figures { total_latency_ms, ..figures }
    }
}

impl Drop for Neighbour {
    /// The neighbour is told.
    fn drop(&mut self) {
        self.machine.close(self.now);
        self.transmit(self.now);
    }
}

impl AsRawFd for Neighbour {
    fn as_raw_fd(&self) -> RawFd {
        self.both.as_ref().map_or_else(|| self.sockets[0].0.as_raw_fd(), |(poll, _)| poll.as_raw_fd())
    }
}

/// If a key is asked for, a neighbour that anybody may be is a mistake, unless its URL says that it is meant.
pub(crate) fn check(neighbour: &neighbour::Neighbour, shared: &SharedArgs) -> Outcome {
    let by_secret = neighbour.passphrase.is_some() || neighbour.secret.is_some();
    let known = neighbour.open || by_secret || neighbour.keys.is_some() || neighbour.stream_id.is_some();
    if known || !is_keyed(shared) {
        return Ok(());
    }
    let (has, add) = match neighbour.scheme {
        Scheme::Rist => ("no secret=", "add secret=…, or open if it is meant to be so: rist://:PORT?open"),
        Scheme::Srt | Scheme::Srtla => (
            "neither passphrase= nor streamid=",
            "add passphrase=… or streamid=…, or open if it is meant to be so: srt://:PORT?open",
        ),
    };
    Err(Failure::usage(
        format!("{neighbour} has {has}, so anybody may be that neighbour, although a key is asked for elsewhere"),
        add,
    ))
}

/// The same for what comes by RTP, which has nothing to know a sender by.
pub(crate) fn check_rtp(media: &UdpMedia, shared: &SharedArgs) -> Outcome {
    if media.open || !is_keyed(shared) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("anybody may send to {media}, although a key is asked for elsewhere"),
        "add open if it is meant to be so: rtp://:PORT?open",
    ))
}

fn is_keyed(shared: &SharedArgs) -> bool {
    shared.key.is_some()
        || shared.key_file.is_some()
        || shared.identity.is_some()
        || shared.cert.is_some()
        || !shared.peer_key.is_empty()
}

/// What a stranger wrote, fit for a terminal.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn encryption(report: &Report) -> String {
    match report.key_bytes {
        0 => "not encrypted".into(),
        bytes => format!("AES-{}", bytes * 8),
    }
}

/// What `secret` is, made by `new`; out of its file, if it has one.
fn secret<T: Clone, E: fmt::Display>(secret: &Secret<T>, new: fn(String) -> Result<T, E>) -> Outcome<T> {
    match secret {
        Secret::Typed(secret) => Ok(secret.clone()),
        Secret::File(path) => {
            let fail = |why: String| {
                Failure::new(
                    format!("cannot read the passphrase from {}: {why}", path.display()),
                    "its first line must be the passphrase, 10 to 79 characters of SRT's and 1 to 127 of RIST's",
                )
            };
            let size = fs::metadata(path).map_err(|e| fail(e.to_string()))?.len();
            if size > FILE {
                return Err(fail(format!("it has {size} bytes")));
            }
            let text = fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
            let line = text.lines().next().unwrap_or_default().to_owned();
            new(line).map_err(|wrong| fail(wrong.to_string()))
        }
    }
}

fn srt_endpoint(
    neighbour: &neighbour::Neighbour,
    role: Role,
    keys: Option<&Keys>,
    now: Instant,
    rng: Rng,
) -> Outcome<(Vec<UdpSocket>, Spoken)> {
    let defaults = Options::default();
    let (direction, connections, names) = match role {
        Role::Source => (Direction::Receive, 1, None),
        Role::Sink => (Direction::Send, defaults.connections, None),
        Role::Sources(most, names) => (Direction::Receive, most, names),
    };
    let passphrase = neighbour.passphrase.as_ref().map(|it| secret(it, Passphrase::new)).transpose()?;
    let bonded = neighbour.scheme == Scheme::Srtla;
    let options = Options {
        latency: neighbour.latency.unwrap_or(defaults.latency),
        peer_latency: neighbour.peer_latency.unwrap_or(defaults.peer_latency),
        passphrase,
        keys: keys.map(|keys| keys.list.clone()),
        key_length: neighbour.key_length,
        stream_id: neighbour.stream_id.clone(),
        reordering: if bonded { BONDED_REORDERING } else { defaults.reordering },
        names,
        connections,
        ..defaults
    };
    let (socket, machine) = match &neighbour.at {
        Whereabouts::Listen(addr, port) => {
            let machine = match bonded {
                true => Endpoint::bonded_listener(now, options, rng),
                false => Endpoint::listener(now, direction, options, rng),
            };
            (listen(neighbour, *addr, *port)?, machine)
        }
        Whereabouts::Call(remote) => {
            let peer = resolve(remote, |_| true)?;
            (bind_towards(peer)?, Endpoint::caller(now, peer, options, rng))
        }
    };
    Ok((vec![socket], Spoken::Srt(Box::new(machine))))
}

fn rist_endpoint(
    neighbour: &neighbour::Neighbour,
    is_sink: bool,
    now: Instant,
    rng: Rng,
) -> Outcome<(Vec<UdpSocket>, Spoken)> {
    let defaults = rist::Options::default();
    let options = rist::Options {
        latency: neighbour.latency.unwrap_or(defaults.latency),
        secret: neighbour.secret.as_ref().map(|it| secret(it, rist::Secret::new)).transpose()?,
        key_length: neighbour.key_length,
        profile: neighbour.profile.unwrap_or_default(),
        ..defaults
    };
    let is_simple = neighbour.is_simple_rist();
    let (sockets, machine) = match &neighbour.at {
        Whereabouts::Listen(addr, port) => {
            let mut sockets = vec![listen(neighbour, *addr, *port)?];
            if is_simple {
                sockets.push(listen(neighbour, *addr, port.saturating_add(1))?);
            }
            (sockets, rist::Endpoint::receiver(now, options, rng))
        }
        Whereabouts::Call(remote) => {
            let peer = resolve(remote, |_| true)?;
            let mut sockets = vec![bind_towards(peer)?];
            if is_simple {
                sockets.push(bind_towards(peer)?);
            }
            (sockets, rist::Endpoint::sender(now, peer, options, rng))
        }
    };
    Ok((sockets, Spoken::Rist { machine: Box::new(machine), is_sink }))
}

/// Reads a burst of what has come.
fn read(now: Instant, id: SocketId, reader: &mut DatagramReader, machine: &mut Spoken) -> Batch {
    let mut all = Batch { datagrams: 0, more: true };
    for _ in 0..BURST {
        let batch = reader.receive_from(|remote, payload| {
            let route = Route::new(id, SocketAddr::new(remote.ip().to_canonical(), remote.port()));
            machine.handle(now, Datagram { route, ecn: Ecn::NotEct, payload });
        });
        // ICMP errors of what was sent: a neighbour that is not there is told by its silence.
        let Ok(batch) = batch else { continue };
        all = Batch { datagrams: all.datagrams + batch.datagrams, more: batch.more };
        if !all.more || all.datagrams >= BURST {
            break;
        }
    }
    all
}

/// What can be read when one of several sockets can be.
fn both(sockets: &[(DatagramReader, Outbox)]) -> io::Result<(Poll, Events)> {
    let poll = Poll::new()?;
    for (n, (socket, _)) in sockets.iter().enumerate() {
        poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), Token(n), Interest::READABLE)?;
    }
    Ok((poll, Events::with_capacity(2)))
}

fn bind_towards(peer: SocketAddr) -> Outcome<UdpSocket> {
    let any = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).map_err(|e| common::broken(&e))
}

/// Both families if no address is given and the machine has both.
fn listen(neighbour: &neighbour::Neighbour, addr: Option<IpAddr>, port: u16) -> Outcome<UdpSocket> {
    let bound = match addr {
        Some(addr) => UdpSocket::bind((addr, port)),
        None => {
            UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))
        }
    };
    bound.map_err(|e| {
        Failure::new(
            format!("cannot listen on port {port} for {neighbour}: {e}"),
            "the address must be one of this machine and the port free",
        )
    })
}
