//! A stream that is published to a server, by a thread of its own: names, TLS and TCP wait there, and hold up nothing.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "its thread waits for TCP, not for the driver")]

use super::key;
use crate::args::rtmp::Publish;
use crate::cmd::neighbour::shown;
use crate::failure::Outcome;
use crate::out::live::Live;
use crate::process;
use braidcast_core::{Instant, Rng};
use braidcast_gateway::rtmp::{Pack, Publisher, Reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pieces of the stream that wait for the thread at most: seconds. What comes beyond is left out.
const MOST_WAITING: usize = 1024;
/// Bytes that the server does not take yet, at most: then frames are left out, up to one that needs no other.
const MOST_UNSENT: usize = 4 << 20;
/// For a connection, for TLS, and for the server's word that the stream can come.
const PATIENCE: Duration = Duration::from_secs(10);
/// A server that takes nothing for this long is gone.
const STUCK: Duration = Duration::from_secs(10);
/// Pauses between attempts, the first and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(16));
/// The server's answers are looked for this often, and what it does not take is offered again.
const LOOK: Duration = Duration::from_millis(20);
/// That frames are left out is said this often at most.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// How long the end of the stream may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is to be said of it.
enum News {
    Publishing,
    Broken(String),
    LeftOut,
}

#[derive(Default)]
struct Shared {
    news: Mutex<VecDeque<News>>,
    /// The server takes the stream: before, and between two connections, nothing is missed.
    carries: AtomicBool,
    sent_bytes: AtomicU64,
}

impl Shared {
    fn news(&self) -> MutexGuard<'_, VecDeque<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody may be there who takes it, so that little is kept.
    fn tell(&self, news: News) {
        let mut waiting = self.news();
        if waiting.len() < 16 {
            waiting.push_back(news);
        }
    }
}

/// A server that a stream is published to.
pub(crate) struct Push {
    name: String,
    stream: Option<SyncSender<Vec<u8>>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Why it does not work, if that was said.
    said: Option<String>,
    /// When it was said last that frames are left out.
    left_out: Option<Instant>,
    look_at: Instant,
}

impl Push {
    /// Begins to publish as soon as there is a stream.
    pub(crate) fn open(to: &Publish, rng: Rng) -> Outcome<Self> {
        let (to, key) = (to.clone(), key(&to.key)?);
        let (stream, waiting) = sync_channel(MOST_WAITING);
        let shared = Arc::new(Shared::default());
        let (name, told) = (to.to_string(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("publish".into()).spawn(move || {
            // Capabilities belong to a thread, and this one needs none.
            match process::drop_privileges() {
                Ok(()) => Publishing { to, key, rng, shared: told, waiting, pack: Pack::new(), since: None }.run(),
                Err(failure) => told.tell(News::Broken(failure.to_string())),
            }
        });
        let thread = thread.map_err(|e| crate::cmd::common::broken(&e))?;
        let (thread, look_at) = (Some(thread), Instant::ZERO);
        Ok(Self { name, stream: Some(stream), shared, thread, said: None, left_out: None, look_at })
    }

    /// What it is called, without its key.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Hands on a piece of the stream, if the server keeps up.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if let Some(stream) = &self.stream
            && matches!(stream.try_send(bytes.to_vec()), Err(TrySendError::Full(_)))
            && self.shared.carries.load(Ordering::Relaxed)
        {
            self.shared.tell(News::LeftOut);
        }
    }

    /// Says what has happened.
    pub(crate) fn tend(&mut self, now: Instant, live: &Live) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + Duration::from_secs(1);
        let news = core::mem::take(&mut *self.shared.news());
        for news in news {
            let name = &self.name;
            match news {
                News::Publishing => {
                    self.said = None;
                    live.note(format!("{name}: the stream is published there"));
                }
                News::Broken(why) if self.said.as_ref() == Some(&why) => {}
                News::Broken(why) => {
                    live.warn(format!("{name}: {why}; trying again"));
                    self.said = Some(why);
                }
                News::LeftOut if self.left_out.is_some_and(|at| now - at < SAY_AGAIN) => {}
                News::LeftOut => {
                    self.left_out = Some(now);
                    live.warn(format!("{name}: it takes less than comes; frames are left out"));
                }
            }
        }
    }

    /// When to [`tend`](Self::tend) it.
    pub(crate) const fn next(&self) -> Instant {
        self.look_at
    }

    /// Bytes that the server took.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.shared.sent_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Push {
    /// The server is told that the stream is over, if that is quick.
    fn drop(&mut self) {
        self.stream = None;
        let Some(thread) = self.thread.take() else { return };
        let end = std::time::Instant::now() + FAREWELL;
        while !thread.is_finished() && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            // One that panicked has said so.
            let _panicked = thread.join();
        }
    }
}

/// TCP, in TLS or not.
enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    const fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Bytes that TLS keeps, as the network has not taken them.
    fn holds(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.conn.wants_write())
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buf),
            Self::Tls(stream) => stream.read(buf),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buf),
            // TLS that is full takes no byte.
            Self::Tls(stream) => stream.write(buf).and_then(|len| if len > 0 { Ok(len) } else { Err(would_block()) }),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

fn would_block() -> io::Error {
    ErrorKind::WouldBlock.into()
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// How it goes on after a connection.
enum After {
    /// The stream is over.
    Over,
    /// It is to be made again, for this reason.
    Again(String),
}

/// The thread's own.
struct Publishing {
    to: Publish,
    key: String,
    rng: Rng,
    shared: Arc<Shared>,
    waiting: Receiver<Vec<u8>>,
    pack: Pack,
    /// When a connection was ready, the last time.
    since: Option<std::time::Instant>,
}

impl Publishing {
    fn run(mut self) {
        let mut pause = PAUSE.0;
        // A server that is called before there is a stream would take it for a bad one.
        while self.waiting.recv().is_ok() {
            self.since = None;
            let after = self.publish();
            self.shared.carries.store(false, Ordering::Relaxed);
            let After::Again(why) = after.unwrap_or_else(|e| After::Again(e.to_string())) else { return };
            self.shared.tell(News::Broken(why));
            // One that worked for a while is tried soon.
            let worked = self.since.is_some_and(|since| since.elapsed() > PAUSE.1);
            pause = if worked { PAUSE.0 } else { pause };
            let end = std::time::Instant::now() + pause;
            loop {
                match self.waiting.recv_timeout(end.saturating_duration_since(std::time::Instant::now())) {
                    Ok(_) => {}
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    fn publish(&mut self) -> io::Result<After> {
        let mut wire = self.connect()?;
        let Publish { app, .. } = &self.to;
        let mut publisher = Publisher::new(self.rng.fork(), app, &self.to.to_string(), &self.key);
        if let Some(why) = agree(&mut wire, &mut publisher)? {
            return Ok(After::Again(why));
        }
        self.shared.tell(News::Publishing);
        self.since = Some(std::time::Instant::now());
        wire.socket().set_nonblocking(true)?;
        // What has waited is late.
        while self.waiting.try_recv().is_ok() {}
        self.pack.restart();
        self.shared.carries.store(true, Ordering::Relaxed);
        self.carry(&mut wire, &mut publisher)
    }

    fn connect(&self) -> io::Result<Wire> {
        let Publish { secure, server, .. } = &self.to;
        let mut failed = io::Error::new(ErrorKind::NotFound, format!("the name {} leads nowhere", server.host));
        for addr in (server.host.as_str(), server.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&addr, PATIENCE) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_read_timeout(Some(PATIENCE))?;
                    socket.set_write_timeout(Some(PATIENCE))?;
                    return if *secure { tls(socket, &server.host) } else { Ok(Wire::Plain(socket)) };
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Carries the stream, until either end is over.
    fn carry(&mut self, wire: &mut Wire, publisher: &mut Publisher) -> io::Result<After> {
        let (mut unsent, mut begin) = (Vec::new(), std::time::Instant::now());
        let (mut buf, clock) = (vec![0; 16 << 10], std::time::Instant::now());
        let mut over = None;
        loop {
            match self.waiting.recv_timeout(if over.is_some() { Duration::ZERO } else { LOOK }) {
                Ok(bytes) => self.pack.push(Instant::ZERO + clock.elapsed(), &bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if over.is_none() => {
                    publisher.finish();
                    over = Some(std::time::Instant::now());
                }
                Err(RecvTimeoutError::Disconnected) => {}
            }
            if unsent.len() > MOST_UNSENT {
                self.pack.skip();
                self.shared.tell(News::LeftOut);
            }
            while let Some(piece) = self.pack.poll() {
                publisher.send(&piece);
            }
            unsent.extend(publisher.take_output());
            let taken = offer(wire, &mut unsent)?;
            self.shared.sent_bytes.fetch_add(taken, Ordering::Relaxed);
            let waits = !unsent.is_empty() || wire.holds();
            if taken > 0 || !waits {
                begin = std::time::Instant::now();
            } else if begin.elapsed() > STUCK {
                return Ok(After::Again("it takes nothing any more".into()));
            }
            match over {
                Some(since) if !waits || since.elapsed() > FAREWELL => return Ok(After::Over),
                Some(_) => writable(wire, LOOK),
                None => {}
            }
            match wire.read(&mut buf) {
                Ok(0) => return Ok(After::Again("it has closed the connection".into())),
                Ok(len) => publisher.receive(&buf[..len]),
                Err(error) if is_nothing(&error) => {}
                Err(error) => return Err(error),
            }
            if let Some(why) = refusal(publisher) {
                return Ok(After::Again(why));
            }
        }
    }
}

/// Talks until the stream can come; else returns why it cannot.
fn agree(wire: &mut Wire, publisher: &mut Publisher) -> io::Result<Option<String>> {
    let (begin, mut buf) = (std::time::Instant::now(), vec![0; 16 << 10]);
    while begin.elapsed() < PATIENCE {
        wire.write_all(&publisher.take_output())?;
        wire.flush()?;
        match wire.read(&mut buf) {
            Ok(0) => return Ok(Some("it has closed the connection".into())),
            Ok(len) => publisher.receive(&buf[..len]),
            Err(error) if is_nothing(&error) => {}
            Err(error) => return Err(error),
        }
        match publisher.poll_reply() {
            Some(Reply::Ready) => {
                wire.write_all(&publisher.take_output())?;
                return Ok(None);
            }
            Some(reply) => return Ok(Some(words(&reply))),
            None => {}
        }
    }
    Ok(Some(format!("it does not answer for {} s", PATIENCE.as_secs())))
}

fn refusal(publisher: &mut Publisher) -> Option<String> {
    std::iter::from_fn(|| publisher.poll_reply()).find(|reply| *reply != Reply::Ready).map(|reply| words(&reply))
}

fn words(reply: &Reply) -> String {
    match reply {
        Reply::Refused(code) if code.is_empty() => "it does not take the stream: is the key right?".into(),
        Reply::Refused(code) => format!("it does not take the stream ({}): is the key right?", shown(code)),
        Reply::Failed(wrong) => wrong.to_string(),
        Reply::Ready => String::new(),
    }
}

/// Writes what is taken at once, and returns how much that was.
fn offer(wire: &mut Wire, unsent: &mut Vec<u8>) -> io::Result<u64> {
    let mut taken = 0;
    while taken < unsent.len() {
        match wire.write(&unsent[taken..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(len) => taken += len,
            Err(error) if is_nothing(&error) => break,
            Err(error) => return Err(error),
        }
    }
    unsent.drain(..taken);
    match wire.flush() {
        Err(error) if !is_nothing(&error) => Err(error),
        _ => Ok(taken as u64),
    }
}

/// Waits until it takes more, or for `patience`.
fn writable(wire: &Wire, patience: Duration) {
    let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    // Interrupted, it is looked at early.
    let _early = poll(&mut [PollFd::new(wire, PollFlags::OUT)], Some(&patience));
}

/// TLS, with the authorities that this system trusts (SSL_CERT_FILE and SSL_CERT_DIR name others).
fn tls(mut socket: TcpStream, host: &str) -> io::Result<Wire> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other("this system trusts no authority: install ca-certificates, or set SSL_CERT_FILE"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(Wire::Tls(Box::new(StreamOwned::new(connection, socket))))
}
