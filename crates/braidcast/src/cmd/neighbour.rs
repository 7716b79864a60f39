//! A neighbour that speaks SRT: its machine, and the socket under it.
#![allow(clippy::disallowed_types, reason = "the media's own sockets belong to the command line, not to a protocol")]

use super::common;
use super::resolve::resolve;
use crate::args::SharedArgs;
use crate::args::neighbour::{self, Secret, Whereabouts};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::units;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Route, SocketId};
use braidcast_gateway::srt::{Direction, Ended, Endpoint, Event, Options, Passphrase, Report};
use braidcast_gateway::srtla::LinkReport;
use rustix::net::sockopt;
use serde::Serialize;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Longest datagram; SRT's are at most 1500 bytes.
const DATAGRAM: usize = 2048;
/// What the kernel may hold in each direction, in bytes, if it lets us: a second of 30 Mbit/s.
const BUFFER: usize = 4 << 20;
/// Datagrams that are read before what is due is looked at again.
const BURST: usize = 256;
/// Interval at which its report is kept, for when its connection is over.
const KEEP: Duration = Duration::from_millis(20);
/// How long packets of several links may be overtaken before they are asked for, until it is known better.
const BONDED_REORDERING: Duration = Duration::from_millis(40);
/// How long a passphrase's file may be.
const FILE: u64 = 4096;

/// A neighbour.
pub(crate) struct Neighbour {
    name: String,
    socket: UdpSocket,
    machine: Endpoint,
    buf: Vec<u8>,
    /// When the machine was last looked at.
    now: Instant,
    /// When something was last pushed.
    pushed: Instant,
    /// Datagrams that the system did not take.
    unsent: u64,
    bonded: bool,
    /// The socket is IPv6's, and may serve both families.
    v6: bool,
    /// When its report is kept next.
    keep_at: Instant,
    /// Of the present connection, or the last one.
    last: Option<Report>,
    links: Vec<LinkReport>,
}

/// What `--json` and `--stats` print of a neighbour.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct Figures {
    protocol: &'static str,
    remote: Option<String>,
    /// Of a sender over several links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkFigures>,
    connected: bool,
    stream_id: String,
    /// 0: not encrypted.
    key_bytes: usize,
    latency_ms: f64,
    peer_latency_ms: f64,
    rtt_ms: f64,
    received_packets: u64,
    received_bytes: u64,
    missing_packets: u64,
    recovered_packets: u64,
    skipped_packets: u64,
    undecrypted_packets: u64,
    sent_packets: u64,
    sent_bytes: u64,
    repeated_packets: u64,
    dropped_packets: u64,
}

/// Of one link of several.
#[derive(Clone, Serialize, Debug)]
struct LinkFigures {
    remote: String,
    received_packets: u64,
    received_bytes: u64,
}

impl LinkFigures {
    fn of(link: &LinkReport) -> Self {
        Self { remote: link.remote.to_string(), received_packets: link.packets, received_bytes: link.bytes }
    }
}

impl Neighbour {
    /// Opens the socket, and calls or waits for callers. `direction`: the way that media goes.
    pub(crate) fn open(neighbour: &neighbour::Neighbour, direction: Direction, now: Instant) -> Outcome<Self> {
        let defaults = Options::default();
        let passphrase = neighbour.passphrase.as_ref().map(passphrase).transpose()?;
        let options = Options {
            latency: neighbour.latency.unwrap_or(defaults.latency),
            peer_latency: neighbour.peer_latency.unwrap_or(defaults.peer_latency),
            passphrase,
            key_length: neighbour.key_length,
            stream_id: neighbour.stream_id.clone(),
            reordering: if neighbour.bonded { BONDED_REORDERING } else { defaults.reordering },
            connections: if direction == Direction::Receive { 1 } else { defaults.connections },
            ..defaults
        };
        let rng = common::rng(None)?;
        let (socket, machine) = match &neighbour.at {
            Whereabouts::Listen(addr, port) => {
                let socket = listen(*addr, *port).map_err(|e| {
                    Failure::new(
                        format!("cannot listen on {neighbour}: {e}"),
                        "the address must be one of this machine and the port free",
                    )
                })?;
                let machine = match neighbour.bonded {
                    true => Endpoint::bonded_listener(now, options, rng),
                    false => Endpoint::listener(now, direction, options, rng),
                };
                (socket, machine)
            }
            Whereabouts::Call(remote) => {
                let peer = resolve(remote, |_| true)?;
                let any = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
                let socket = UdpSocket::bind((any, 0)).map_err(|e| common::broken(&e))?;
                (socket, Endpoint::caller(now, peer, options, rng))
            }
        };
        socket.set_nonblocking(true).map_err(|e| common::broken(&e))?;
        // Less than is asked for does no harm.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        let v6 = socket.local_addr().is_ok_and(|addr| addr.is_ipv6());
        let name = neighbour.to_string();
        Ok(Self {
            name,
            socket,
            machine,
            buf: vec![0; DATAGRAM],
            now,
            pushed: now,
            unsent: 0,
            bonded: neighbour.bonded,
            v6,
            keep_at: now,
            last: None,
            links: Vec::new(),
        })
    }

    /// Reads what is there, and sends what is to be sent. Returns `true` if there is more to read.
    pub(crate) fn tend(&mut self, now: Instant) -> bool {
        self.now = now;
        let mut more = true;
        for _ in 0..BURST {
            match self.socket.recv_from(&mut self.buf) {
                Ok((len, remote)) => {
                    let route = Route::new(SocketId(0), SocketAddr::new(remote.ip().to_canonical(), remote.port()));
                    let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &self.buf[..len] };
                    self.machine.handle_datagram(now, datagram);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    more = false;
                    break;
                }
                // ICMP errors of what was sent: a neighbour that is not there is told by its silence.
                Err(_) => {}
            }
        }
        if self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        self.transmit(now);
        if now >= self.keep_at
            && let Some((_, report)) = self.machine.reports().next()
        {
            self.keep_at = now + KEEP;
            self.links = self.machine.bonded(report.peer);
            self.last = Some(report);
        }
        more
    }

    fn transmit(&mut self, now: Instant) {
        while let Some(transmit) = self.machine.poll_transmit(now, &mut self.buf) {
            let mut remote = transmit.route.remote;
            // Our socket for both families has IPv6's addresses for all.
            if let IpAddr::V4(ip) = remote.ip()
                && self.v6
            {
                remote.set_ip(ip.to_ipv6_mapped().into());
            }
            // An ICMP error that came meanwhile is reported once in place of sending.
            if self.socket.send_to(&self.buf, remote).is_err() && self.socket.send_to(&self.buf, remote).is_err() {
                self.unsent += 1;
            }
        }
        self.buf.resize(DATAGRAM, 0);
    }

    /// The next payload that is due, into `buf`; returns when it was.
    pub(crate) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Instant> {
        self.machine.deliver(now, buf).map(|delivered| delivered.due)
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
        self.machine.poll_timeout().into_iter().chain(played).min()
    }

    /// When all that was pushed is played at the other end.
    fn played_by(&self) -> Instant {
        let latency = self.machine.reports().map(|(_, report)| report.peer_latency + report.rtt).max();
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
        while let Some(event) = self.machine.poll_event() {
            let name = &self.name;
            match event {
                Event::Connected(id) => {
                    let Some((_, report)) = self.machine.reports().find(|(it, _)| *it == id) else { continue };
                    let stream = if report.stream_id.is_empty() {
                        String::new()
                    } else {
                        format!(", stream '{}'", shown(&report.stream_id))
                    };
                    let keys = match report.key_bytes {
                        0 => "not encrypted".into(),
                        bytes => format!("AES-{}", bytes * 8),
                    };
                    let [ours, theirs] = [report.latency, report.peer_latency].map(units::time);
                    let remote = self.remote(&report);
                    live.note(format!(
                        "{name}: connected to {remote}{stream}, {keys}; SRT latency {ours} towards here, {theirs} from here"
                    ));
                }
                Event::Ended(_, why) => {
                    let why = match why {
                        Ended::ByUs => continue,
                        Ended::ByPeer => "the neighbour ended the connection",
                        Ended::Silent => "the neighbour has been silent for 5 s",
                        Ended::Replaced => "a new caller took the place of a silent one",
                    };
                    live.warn(format!("{name}: {why}; waiting for it"));
                }
                Event::Refused { peer, why, stream_id } => {
                    let peer = if self.bonded { "a group of links".into() } else { peer.to_string() };
                    live.warn(format!("{name}: refused {peer}, stream '{}': {why}", shown(&stream_id)));
                }
                Event::RefusedByPeer(why) => {
                    live.warn(format!("{name}: the neighbour refuses us: {why}; trying again"))
                }
                Event::NoAnswer => live.note(format!("{name}: nobody answers yet; trying on")),
            }
        }
    }

    /// The other end's address, for people.
    fn remote(&self, report: &Report) -> String {
        if !self.bonded {
            return report.peer.to_string();
        }
        let links: Vec<String> = self.machine.bonded(report.peer).iter().map(|link| link.remote.to_string()).collect();
        links.join(" and ")
    }

    /// How it goes.
    pub(crate) fn figures(&self) -> Figures {
        let report = self.last.as_ref();
        let ms = |of: fn(&Report) -> Duration| report.map_or(0.0, |report| of(report).as_secs_f64() * 1e3);
        let received = report.map(|report| report.received).unwrap_or_default();
        let sent = report.map(|report| report.sent).unwrap_or_default();
        Figures {
            protocol: if self.bonded { "srtla" } else { "srt" },
            remote: report.filter(|_| !self.bonded).map(|report| report.peer.to_string()),
            links: self.links.iter().map(LinkFigures::of).collect(),
            connected: self.machine.is_connected(),
            stream_id: report.map(|report| shown(&report.stream_id)).unwrap_or_default(),
            key_bytes: report.map_or(0, |report| report.key_bytes),
            latency_ms: ms(|report| report.latency),
            peer_latency_ms: ms(|report| report.peer_latency),
            rtt_ms: ms(|report| report.rtt),
            received_packets: received.packets,
            received_bytes: received.bytes,
            missing_packets: received.missing,
            recovered_packets: received.recovered,
            skipped_packets: received.skipped,
            undecrypted_packets: received.undecrypted,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            repeated_packets: sent.repeated,
            dropped_packets: sent.dropped,
        }
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
        self.socket.as_raw_fd()
    }
}

/// If a key is asked for, a neighbour that anybody may be is a mistake, unless its URL says that it is meant.
pub(crate) fn check(neighbour: &neighbour::Neighbour, shared: &SharedArgs) -> Outcome {
    let keyed = shared.key.is_some()
        || shared.key_file.is_some()
        || shared.identity.is_some()
        || shared.cert.is_some()
        || !shared.peer_key.is_empty();
    if !keyed || neighbour.open || neighbour.passphrase.is_some() || neighbour.stream_id.is_some() {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "{neighbour} has neither passphrase= nor streamid=, so anybody may be that neighbour, although a key is asked for elsewhere"
        ),
        "add passphrase=… or streamid=…, or open if it is meant to be so: srt://:PORT?open",
    ))
}

/// What a stranger wrote, fit for a terminal.
fn shown(text: &str) -> String {
    text.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn passphrase(secret: &Secret) -> Outcome<Passphrase> {
    match secret {
        Secret::Typed(passphrase) => Ok(passphrase.clone()),
        Secret::File(path) => {
            let fail = |why: String| {
                Failure::new(
                    format!("cannot read the passphrase from {}: {why}", path.display()),
                    "its first line must have 10 to 79 characters",
                )
            };
            let size = fs::metadata(path).map_err(|e| fail(e.to_string()))?.len();
            if size > FILE {
                return Err(fail(format!("it has {size} bytes")));
            }
            let text = fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
            let line = text.lines().next().unwrap_or_default().to_owned();
            Passphrase::new(line).map_err(|wrong| fail(wrong.to_string()))
        }
    }
}

/// Both families if no address is given and the machine has both.
fn listen(addr: Option<IpAddr>, port: u16) -> io::Result<UdpSocket> {
    match addr {
        Some(addr) => UdpSocket::bind((addr, port)),
        None => {
            UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))
        }
    }
}
