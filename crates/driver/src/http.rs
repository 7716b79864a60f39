//! A small HTTP server for what is read by people's browsers and by collectors of metrics: a few
//! pages and one stream of events.
//!
//! It answers GET only, a request for each connection, and has threads of its own: whoever reads
//! slowly holds up nobody else. What strangers can cost is bounded: connections, bytes of a
//! request, the time that it may take and that a reader may take nothing. Nor do they hold places
//! that others ask for (`places.rs`).
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "this is where sockets live")]

mod places;

use base64ct::{Base64, Encoding};
pub use places::MOST_CONNECTIONS;
use places::{Place, Places};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Bytes of a request at most.
const MOST_REQUEST: usize = 8 * 1024;
/// A request has to be there after this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a reader that takes nothing is cut off.
const STUCK: Duration = Duration::from_secs(10);
/// A wrong password is answered after this time: eight guesses a second, as so many may wait.
const PENANCE: Duration = Duration::from_secs(1);
/// Interval of a message that finds readers that have gone, if nothing else is sent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// What answers requests.
pub trait Site: Send + Sync + 'static {
    /// The answer to a request for `path`, which begins with a slash. `accept`: what the reader says that it takes.
    fn answer(&self, path: &str, accept: &str) -> Answer;
}

/// What a request is answered with.
#[derive(Debug)]
pub enum Answer {
    /// A document: its media type and bytes.
    Document(&'static str, Vec<u8>),
    /// Server-sent events (HTML Living Standard, §9.2): each message is one event's data, without
    /// line breaks. The stream ends with the channel.
    Events(Receiver<Arc<str>>),
    /// There is nothing of that name.
    Nothing,
}

/// Whom a server answers: what stands in a request's Host header. Else any web page could have a
/// browser read a server that only this machine reaches, by a name that leads here (DNS rebinding).
#[derive(Clone, Debug)]
pub struct Hosts {
    loopback: bool,
    names: Vec<String>,
}

impl Hosts {
    /// For a server at `addr`: at a loopback address only names of that, else addresses,
    /// "localhost" and the machine's own `names`.
    pub fn new(addr: IpAddr, names: Vec<String>) -> Self {
        Self { loopback: addr.is_loopback(), names }
    }

    /// Returns `true` if a request with this header is meant for the server.
    pub fn has(&self, header: &str) -> bool {
        let host = match header.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => header,
        };
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = address.parse::<IpAddr>() {
            return !self.loopback || address.is_loopback();
        }
        !self.loopback && self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// What readers have to know (RFC 7617). Whoever listens in between learns it, as there is no TLS here.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Whatever user name comes with it.
    pub const fn new(password: String) -> Self {
        Self(password)
    }

    /// Returns `true` if a request with this `Authorization` header knows it.
    fn is_in(&self, header: &str) -> bool {
        let Some((scheme, credentials)) = header.split_once(' ') else { return false };
        let decoded = Base64::decode_vec(credentials.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"));
        let Some(decoded) = decoded else { return false };
        let given = decoded.iter().position(|&byte| byte == b':').map(|colon| &decoded[colon + 1..]);
        given.is_some_and(|given| given.ct_eq(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// A server at work. It goes on until the process ends.
#[derive(Debug)]
pub struct Server {
    local: SocketAddr,
}

struct Shared {
    site: Box<dyn Site>,
    hosts: Hosts,
    password: Option<Password>,
    places: Arc<Places>,
}

impl Server {
    /// Listens at `addr` and answers by `site`: whoever asks, or those who know `password`. `begin` runs
    /// first in the server's thread; if it fails the server does not begin.
    ///
    /// # Errors
    /// The address cannot be had, or there is no thread.
    pub fn start(
        addr: SocketAddr,
        hosts: Hosts,
        password: Option<Password>,
        site: impl Site,
        begin: impl FnOnce() -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let local = listener.local_addr()?;
        let shared = Arc::new(Shared { site: Box::new(site), hosts, password, places: Arc::new(Places::new()) });
        std::thread::Builder::new().name("http".into()).spawn(move || {
            if begin() {
                listener.incoming().for_each(|stream| take(&shared, stream));
            }
        })?;
        Ok(Self { local })
    }

    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

/// Serves one connection in a thread of its own, if there are not too many.
fn take(shared: &Arc<Shared>, stream: io::Result<TcpStream>) {
    let Ok(stream) = stream else {
        // Without descriptors there is nothing to do but to wait for some.
        return std::thread::sleep(Duration::from_millis(50));
    };
    let Ok(place) = shared.places.enter(&stream) else { return };
    let shared = Arc::clone(shared);
    // Without a thread the place is free again, and the connection ends.
    let _thread = std::thread::Builder::new().name("http-reader".into()).spawn(move || {
        // A reader that went away is no failure of ours.
        let _gone = serve(&shared, place, stream);
    });
}

fn serve(shared: &Shared, mut place: Place, mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(STUCK))?;
    let asked = match read_request(&mut stream)? {
        Ok(asked) => asked,
        Err(status) => return refuse(&mut stream, status),
    };
    if !shared.hosts.has(&asked.host) {
        return refuse(&mut stream, "421 Misdirected Request");
    }
    if let Some(password) = &shared.password
        && !password.is_in(&asked.authorization)
    {
        // A browser asks first without.
        if !asked.authorization.is_empty() && !place.repent(PENANCE) {
            return Ok(());
        }
        return challenge(&mut stream);
    }
    if !place.read(shared.password.is_some()) {
        return refuse(&mut stream, "503 Service Unavailable");
    }
    match shared.site.answer(asked.path.split('?').next().unwrap_or("/"), &asked.accept) {
        Answer::Document(kind, body) => {
            write!(stream, "HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n", headers(kind), body.len())?;
            stream.write_all(&body)
        }
        Answer::Events(events) => {
            write!(stream, "HTTP/1.1 200 OK\r\n{}\r\n", headers("text/event-stream"))?;
            send_events(&mut stream, &events)
        }
        Answer::Nothing => refuse(&mut stream, "404 Not Found"),
    }
}

fn send_events(stream: &mut TcpStream, events: &Receiver<Arc<str>>) -> io::Result<()> {
    loop {
        match events.recv_timeout(SIGN_OF_LIFE) {
            Ok(data) => write!(stream, "data: {data}\n\n")?,
            Err(mpsc::RecvTimeoutError::Timeout) => stream.write_all(b":\n\n")?,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// A page may show and read what is its own and nothing else, and no other page may show it.
fn headers(kind: &str) -> String {
    format!(
        "Content-Type: {kind}\r\nCache-Control: no-store\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'self'; frame-ancestors 'none'\r\n"
    )
}

fn refuse(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    let kind = headers("text/plain; charset=utf-8");
    write!(stream, "HTTP/1.1 {status}\r\n{kind}Content-Length: {}\r\n\r\n{status}\n", status.len() + 1)
}

/// Has a browser ask its user for the password (RFC 7617 §2).
fn challenge(stream: &mut TcpStream) -> io::Result<()> {
    const WORDS: &str = "the password is missing or wrong\n";
    let kind = headers("text/plain; charset=utf-8");
    write!(
        stream,
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"braidcast\", charset=\"UTF-8\"\r\n{kind}\
         Content-Length: {}\r\n\r\n{WORDS}",
        WORDS.len()
    )
}

struct Asked {
    path: String,
    host: String,
    accept: String,
    authorization: String,
}

/// What is asked for, or the status that says what is wrong with it.
fn read_request(stream: &mut TcpStream) -> io::Result<Result<Asked, &'static str>> {
    let end = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err("408 Request Timeout"));
        }
        stream.set_read_timeout(Some(left))?;
        let len = stream.read(&mut piece)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..len]);
        if let Some(asked) = parse(&bytes) {
            return Ok(asked);
        }
        if bytes.len() > MOST_REQUEST {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
    }
}

/// `None`: the request is not yet whole.
fn parse(bytes: &[u8]) -> Option<Result<Asked, &'static str>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(Err("400 Bad Request")),
    }
    if request.method != Some("GET") {
        return Some(Err("405 Method Not Allowed"));
    }
    let of = |name: &str| {
        let mut found = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let first = found.next().map(|header| String::from_utf8_lossy(header.value).into_owned());
        first.filter(|_| found.next().is_none())
    };
    let accept = of("accept").unwrap_or_default();
    let authorization = of("authorization").unwrap_or_default();
    let host = of("host");
    // RFC 9112 §3.2: exactly one Host.
    let Some(host) = host else { return Some(Err("400 Bad Request")) };
    let path = request.path.filter(|path| path.starts_with('/'));
    Some(path.map(|path| Asked { path: path.into(), host, accept, authorization }).ok_or("400 Bad Request"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    struct Two;

    impl Site for Two {
        fn answer(&self, path: &str, accept: &str) -> Answer {
            match path {
                "/" => Answer::Document("text/plain", format!("takes {accept}").into_bytes()),
                "/events" => {
                    let (sender, events) = sync_channel(2);
                    ["one", "two"].iter().for_each(|&word| sender.send(word.into()).unwrap());
                    Answer::Events(events)
                }
                _ => Answer::Nothing,
            }
        }
    }

    fn ask(at: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        // One that is turned away may be gone already.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn it_answers_what_is_meant_for_it_and_nothing_else() {
        let hosts = Hosts::new(IpAddr::from([127, 0, 0, 1]), Vec::new());
        let at = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), hosts, None, Two, || true).unwrap().local_addr();
        let get =
            |path: &str, host: &str| ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: all\r\n\r\n"));
        let page = get("/?x", &at.to_string());
        assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("\r\n\r\ntakes all"), "{page}");
        let events = get("/events", "localhost");
        assert!(events.contains("text/event-stream") && events.ends_with("data: one\n\ndata: two\n\n"), "{events}");
        for (answer, status) in [
            (get("/no", "localhost"), "404"),
            (get("/", "evil.example"), "421"),
            (get("/", "192.0.2.1"), "421"),
            (ask(at, "GET / HTTP/1.1\r\n\r\n"), "400"),
            (ask(at, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"), "400"),
            (ask(at, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "405"),
            (ask(at, "\u{1}\r\n\r\n"), "400"),
            (ask(at, &format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(MOST_REQUEST))), "431"),
        ] {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
        }
    }

    #[test]
    fn a_page_with_a_password_is_for_who_knows_it() {
        let hosts = Hosts::new(IpAddr::from([127, 0, 0, 1]), Vec::new());
        let password = Some(Password::new("open: sesame".into()));
        let start = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), hosts, password, Two, || true);
        let at = start.unwrap().local_addr();
        let get = |header: &str| ask(at, &format!("GET / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"));
        let known = |user: &str, word: &str| {
            get(&format!("Authorization: Basic {}\r\n", Base64::encode_string(format!("{user}:{word}").as_bytes())))
        };
        assert!(known("", "open: sesame").starts_with("HTTP/1.1 200"));
        assert!(known("anybody", "open: sesame").starts_with("HTTP/1.1 200"));
        assert!(get("").contains("\r\nWWW-Authenticate: Basic realm="));
        for answer in [
            get(""),
            known("", "open"),
            known("", ""),
            known("open", "sesame"),
            get("Authorization: Basic =\r\n"),
            get("Authorization: open: sesame\r\n"),
            get("Authorization: Basic b3Blbg==\r\nAuthorization: Basic b3Blbg==\r\n"),
        ] {
            assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        }
    }

    fn server(password: Option<&str>) -> SocketAddr {
        let hosts = Hosts::new(IpAddr::from([127, 0, 0, 1]), Vec::new());
        let password = password.map(|it| Password::new(it.into()));
        let start = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), hosts, password, Forever, || true);
        start.unwrap().local_addr()
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const EVENTS: &str = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// A site with events of which none comes.
    struct Forever;

    impl Site for Forever {
        fn answer(&self, path: &str, _: &str) -> Answer {
            if path == "/" {
                return Answer::Document("text/plain", Vec::new());
            }
            let (sender, events) = sync_channel(1);
            // It goes on until the process ends.
            std::mem::forget(sender);
            Answer::Events(events)
        }
    }

    /// Connects and sends `request`.
    fn begin(at: SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Returns `true` if the other end has closed `stream`, which is waited for a while.
    fn is_cut(stream: &mut TcpStream) -> bool {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        !matches!(stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    #[test]
    fn connections_that_say_nothing_are_bounded_and_hold_no_place_from_anybody() {
        let at = server(None);
        let mut silent: Vec<_> = (0..MOST_CONNECTIONS).map(|_| begin(at, "GET / HT")).collect();
        for n in 0..200 {
            let answer = ask(at, GET);
            assert!(answer.starts_with("HTTP/1.1 200"), "{n}: {answer}");
            silent.push(begin(at, "G"));
        }
        let newest = silent.len() - MOST_CONNECTIONS;
        assert!(silent[..newest].iter_mut().all(is_cut), "the oldest go");
        let youngest = silent.last_mut().unwrap();
        youngest.write_all(&GET.as_bytes()[1..]).unwrap();
        let mut answer = String::new();
        youngest.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[test]
    fn those_who_read_without_end_make_room_and_none_of_them_for_who_is_refused() {
        let at = server(None);
        let mut readers: Vec<_> = (0..MOST_CONNECTIONS).map(|_| begin(at, EVENTS)).collect();
        // Their headers are there, so that all of them have their places.
        readers.iter_mut().for_each(|it| assert_eq!(it.read(&mut [0]).unwrap(), 1));
        let end = Instant::now() + Duration::from_secs(20);
        while !ask(at, GET).starts_with("HTTP/1.1 200") {
            assert!(Instant::now() < end, "the oldest of one network has its time, and goes then");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn who_knows_the_password_waits_for_nobody_who_does_not() {
        let at = server(Some("sesame"));
        let with = |word: &str, path: &str| {
            let word = Base64::encode_string(format!(":{word}").as_bytes());
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {word}\r\n\r\n")
        };
        let mut member = begin(at, &with("sesame", "/events"));
        assert_eq!(member.read(&mut [0]).unwrap(), 1);
        let guesses: Vec<_> = (0..2 * MOST_CONNECTIONS).map(|_| begin(at, &with("open", "/"))).collect();
        assert!(ask(at, &with("sesame", "/")).starts_with("HTTP/1.1 200"));
        let answers = guesses.into_iter().map(|mut it| {
            let mut answer = String::new();
            let _cut = it.read_to_string(&mut answer);
            answer
        });
        let heard = answers.filter(|answer| answer.starts_with("HTTP/1.1 401")).count();
        assert!(heard <= 16, "{heard} guesses in a second or two");
        member.write_all(b"x").unwrap();
        member.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut rest = Vec::new();
        let still = member.read_to_end(&mut rest).unwrap_err();
        assert_eq!(still.kind(), io::ErrorKind::WouldBlock, "it goes on");
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_ours() {
        let here = Hosts::new(IpAddr::from([127, 0, 0, 1]), vec!["studio".into()]);
        let all = Hosts::new(IpAddr::from([0, 0, 0, 0]), vec!["studio".into()]);
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:80", "[::1]:80"] {
            assert!(here.has(host) && all.has(host), "{host}");
        }
        for host in ["192.0.2.1:80", "[2001:db8::1]", "Studio:8080"] {
            assert!(!here.has(host) && all.has(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "", ":80", "studio.evil.example:80"] {
            assert!(!here.has(host) && !all.has(host), "{host}");
        }
    }
}
