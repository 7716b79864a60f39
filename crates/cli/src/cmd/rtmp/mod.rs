//! Encoders that publish by RTMP: their TCP connections, one of which has the stream.
#![allow(clippy::disallowed_types, reason = "the media's own sockets belong to the command line, not to a protocol")]

mod push;

pub(crate) use push::Push;

use super::common;
use crate::args::rtmp::{Key, Rtmp};
use crate::failure::{Failure, Outcome};
use braidcast_core::{Instant, Rng, Strangers};
use braidcast_gateway::rtmp::{Connection, Event, Remux, is_path};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

const LISTENER: Token = Token(0);
/// Connections at a time that do not have the stream.
const MOST: usize = 64;
/// What is read of one connection before the next one has its turn, in reads.
const TURN: usize = 16;
const READ: usize = 64 << 10;
/// Who has not begun to publish by then is cut off, and who is silent for as long.
const PATIENCE: Duration = Duration::from_secs(10);
/// A publisher that is silent for this long makes room for the next one: it is most likely the same one.
const SILENT: Duration = Duration::from_secs(1);
/// Answers that the other end does not take, in bytes.
const UNSENT: usize = 64 << 10;

/// What happened.
pub(crate) enum Happened {
    /// Somebody publishes.
    Came(SocketAddr),
    /// It is gone; `true` if it said so.
    Went(bool),
    /// Somebody was cut off, and why.
    CutOff(String),
}

struct Peer {
    socket: TcpStream,
    machine: Connection,
    addr: SocketAddr,
    heard: Instant,
    readable: bool,
    unsent: Vec<u8>,
}

/// A port where one stream can be published.
pub(crate) struct RtmpInput {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    callers: bool,
    path: String,
    rng: Rng,
    peers: BTreeMap<usize, Peer>,
    /// Those who do not publish.
    strangers: Strangers<usize>,
    count: usize,
    publisher: Option<usize>,
    remux: Remux,
    media: VecDeque<(Instant, Vec<u8>)>,
    happened: VecDeque<Happened>,
    buf: Vec<u8>,
}

impl RtmpInput {
    /// Listens.
    pub(crate) fn open(rtmp: &Rtmp) -> Outcome<Self> {
        let path = format!("{}/{}", rtmp.app, key(&rtmp.key)?);
        let bind = || match rtmp.addr {
            Some(addr) => TcpListener::bind((addr, rtmp.port).into()),
            None => TcpListener::bind((Ipv6Addr::UNSPECIFIED, rtmp.port).into())
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, rtmp.port).into())),
        };
        let mut listener = bind().map_err(|e| {
            Failure::new(
                format!("cannot listen on {rtmp}: {e}"),
                "the address must be one of this machine and the port free",
            )
        })?;
        let poll = Poll::new().map_err(|e| common::broken(&e))?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).map_err(|e| common::broken(&e))?;
        Ok(Self {
            poll,
            events: Events::with_capacity(64),
            listener,
            callers: true,
            path,
            rng: common::rng(None)?,
            peers: BTreeMap::new(),
            strangers: Strangers::bounded(MOST, Duration::ZERO),
            count: 0,
            publisher: None,
            remux: Remux::new(),
            media: VecDeque::new(),
            happened: VecDeque::new(),
            buf: vec![0; READ],
        })
    }

    /// Reads what is there, and answers. Returns `true` if there is more to read.
    pub(crate) fn tend(&mut self, now: Instant) -> bool {
        // An interrupted call reports nothing, and is made again.
        if self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_ok() {
            for event in &self.events {
                match event.token() {
                    LISTENER => self.callers = true,
                    Token(id) => self.peers.get_mut(&id).into_iter().for_each(|peer| peer.readable = true),
                }
            }
        }
        self.take_callers(now);
        let ids: Vec<usize> = self.peers.keys().copied().collect();
        for id in ids {
            let Some(mut peer) = self.peers.remove(&id) else { continue };
            if self.serve(now, id, &mut peer) {
                self.peers.insert(id, peer);
                continue;
            }
            self.strangers.leave(id);
            if self.publisher.take_if(|it| *it == id).is_some() {
                self.happened.push_back(Happened::Went(false));
            }
        }
        self.callers || self.peers.values().any(|peer| peer.readable)
    }

    fn take_callers(&mut self, now: Instant) {
        while self.callers {
            let Ok((mut socket, addr)) = self.listener.accept() else {
                // There is none, or it is gone again; the next one is reported.
                self.callers = false;
                return;
            };
            let addr = SocketAddr::new(addr.ip().to_canonical(), addr.port());
            // Without room, it may call again.
            let Ok(goes) = self.strangers.make_room(now, addr.ip()) else { continue };
            goes.into_iter().for_each(|id| _ = self.peers.remove(&id));
            self.count += 1;
            let id = self.count;
            if self.poll.registry().register(&mut socket, Token(id), Interest::READABLE | Interest::WRITABLE).is_err() {
                continue;
            }
            self.strangers.enter(now, addr.ip(), id);
            let machine = Connection::new(self.rng.fork());
            self.peers.insert(id, Peer { socket, machine, addr, heard: now, readable: true, unsent: Vec::new() });
        }
    }

    /// Returns `false` if the connection is over.
    fn serve(&mut self, now: Instant, id: usize, peer: &mut Peer) -> bool {
        let mut open = true;
        for _ in 0..TURN {
            if !peer.readable || !open {
                break;
            }
            match peer.socket.read(&mut self.buf) {
                Ok(0) => open = false,
                Ok(len) => {
                    // A stranger has until its first time is over, however much it says.
                    if self.publisher == Some(id) {
                        peer.heard = now;
                    }
                    peer.machine.receive(&self.buf[..len]);
                    open = self.take_events(now, id, peer);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => peer.readable = false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => open = false,
            }
        }
        peer.unsent.extend(peer.machine.take_output());
        while !peer.unsent.is_empty() {
            match peer.socket.write(&peer.unsent) {
                Ok(len) if len > 0 => drop(peer.unsent.drain(..len)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        open && peer.unsent.len() <= UNSENT && now.since(peer.heard) < PATIENCE
    }

    fn take_events(&mut self, now: Instant, id: usize, peer: &mut Peer) -> bool {
        while let Some(event) = peer.machine.poll_event() {
            match event {
                Event::Asks(path) => {
                    if !is_path(&path, &self.path, &mut self.rng) {
                        peer.machine.refuse("this stream is not expected here");
                    } else if self.is_taken(now) {
                        peer.machine.refuse("another encoder publishes it");
                    } else {
                        peer.machine.accept();
                        peer.heard = now;
                        self.strangers.leave(id);
                        self.remux.restart();
                        if let Some(silent) = self.publisher.replace(id) {
                            self.peers.remove(&silent);
                            self.happened.push_back(Happened::Went(false));
                        }
                        self.happened.push_back(Happened::Came(peer.addr));
                    }
                }
                Event::Tag(tag) if self.publisher == Some(id) => {
                    let mut packets = Vec::new();
                    self.remux.push(now, &tag, &mut packets);
                    if !packets.is_empty() {
                        self.media.push_back((now, packets));
                    }
                }
                Event::Tag(_) => return false,
                Event::Ended => {
                    if self.publisher.take_if(|it| *it == id).is_some() {
                        self.happened.push_back(Happened::Went(true));
                    }
                    return false;
                }
                Event::Failed(wrong) => {
                    self.happened.push_back(Happened::CutOff(format!("{}: {wrong}", peer.addr.ip())));
                    return false;
                }
            }
        }
        true
    }

    /// Returns `true` if somebody publishes who is not silent.
    fn is_taken(&self, now: Instant) -> bool {
        // The one that asks is not among them while it is served.
        let publisher = self.publisher.and_then(|id| self.peers.get(&id));
        publisher.is_some_and(|peer| now.since(peer.heard) < SILENT)
    }

    /// The next packets, and when they came.
    pub(crate) fn deliver(&mut self) -> Option<(Instant, Vec<u8>)> {
        self.media.pop_front()
    }

    /// The next thing that happened; nobody is gone before all that came is [delivered](Self::deliver).
    pub(crate) fn poll(&mut self) -> Option<Happened> {
        let waits = !self.media.is_empty() && matches!(self.happened.front(), Some(Happened::Went(_)));
        if waits { None } else { self.happened.pop_front() }
    }

    /// When to [`tend`](Self::tend) it although nothing came.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.peers.values().map(|peer| peer.heard + PATIENCE).min()
    }

    /// Pieces of codecs that are not taken, and pieces that make no sense.
    pub(crate) const fn unusable(&self) -> u64 {
        let counts = self.remux.counts();
        counts.foreign + counts.unusable
    }

    /// Cuts off who publishes.
    pub(crate) fn disconnect(&mut self) {
        if let Some(id) = self.publisher.take() {
            self.peers.remove(&id);
        }
    }
}

impl AsRawFd for RtmpInput {
    fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }
}

fn key(key: &Key) -> Outcome<String> {
    match key {
        Key::Typed(key) => Ok(key.clone()),
        Key::File(path) => {
            let fail = |why: &str| {
                Failure::new(
                    format!("cannot read the stream's key from {}: {why}", path.display()),
                    "its first line must have 1 to 255 characters",
                )
            };
            let text = fs::read_to_string(path).map_err(|e| fail(&e.to_string()))?;
            let line = text.lines().next().unwrap_or_default();
            if (1..256).contains(&line.len()) { Ok(line.to_owned()) } else { Err(fail("it is too short or too long")) }
        }
    }
}
