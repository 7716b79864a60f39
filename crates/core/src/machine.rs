use crate::Instant;
use core::fmt;
use core::time::Duration;
use std::net::SocketAddr;

/// One of the sockets that the driver opened, by the order in which it opened them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SocketId(pub u16);

/// Where a datagram goes or came from: one of our sockets and a remote address.
///
/// This pair is what makes a path, however the addresses look from the other side of a NAT. With native
/// IP the port is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Route {
    /// The socket at our end.
    pub socket: SocketId,
    /// The address at the other end, as our socket sees it.
    pub remote: SocketAddr,
}

impl Route {
    /// The route from `socket` to `remote`.
    pub const fn new(socket: SocketId, remote: SocketAddr) -> Self {
        Self { socket, remote }
    }

    /// Bytes of the headers below a datagram over it: IP, and UDP where there are ports.
    pub const fn headers(&self) -> usize {
        let ip = if self.remote.is_ipv4() { 20 } else { 40 };
        if self.remote.port() == 0 { ip } else { ip + 8 }
    }

    /// How long an answer to a datagram of `len` bytes may be while it is not known whether the
    /// remote address is that of who sent it: in IP packets three times as many bytes at most, as
    /// in QUIC (RFC 9000 section 8).
    pub const fn longest_answer(&self, len: usize) -> usize {
        self.merit(len) - self.headers()
    }

    /// Bytes of IP packets that may go to the remote address for a datagram of `len` bytes from it, while it is not
    /// known whether it is that of who sent it: three times as many (RFC 9000 §8).
    pub const fn merit(&self, len: usize) -> usize {
        3 * (len + self.headers())
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "socket {} to {}", self.socket.0, self.remote)
    }
}

/// A path of one connection or association, numbered in the order in which it joined. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PathId(pub u16);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The two ECN bits of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 1.
    Ect1,
    /// ECN-capable, codepoint 0.
    Ect0,
    /// Congestion experienced.
    Ce,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Where it came from and which of our sockets it reached.
    pub route: Route,
    /// How its IP header was marked.
    pub ecn: Ecn,
    /// The bytes above UDP, or above IP where the protocol runs natively.
    pub payload: &'a [u8],
}

/// What [`Machine::poll_transmit`] put into the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Where it goes.
    pub route: Route,
    /// How to mark it.
    pub ecn: Ecn,
    /// `Some(n)`: the buffer holds several datagrams of `n` bytes each, the last one perhaps shorter, to be
    /// handed to the kernel at once (UDP generic segmentation offload). `None`: it holds one.
    pub segment_size: Option<usize>,
}

impl Transmit {
    /// The datagrams in `buf`, one by one.
    pub fn datagrams<'a>(&self, buf: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        buf.chunks(self.segment_size.unwrap_or(buf.len()).max(1))
    }
}

/// What a datagram turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Heard {
    /// Nothing that is answered.
    Nothing,
    /// From somebody who asks for a connection; anybody may say that from any address.
    Stranger,
    /// From who we are connected to, as numbers in it say that others do not know.
    Peer,
}

/// If a timer is heard later than this, the process did not run meanwhile, and what came waits to be
/// read.
pub const LATE_WAKE: Duration = Duration::from_millis(100);

/// A protocol without I/O: bytes and time go in; bytes, a timer and events come out.
///
/// After each `handle_*` call, and after each call to a method of the machine's own, drain
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event) until both give `None`, then wait
/// for a datagram or until [`poll_timeout`](Self::poll_timeout), whichever is first.
pub trait Machine {
    /// What the machine reports to the layer above it.
    type Event;

    /// A datagram arrived at `now`.
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>);

    /// What the last datagram was: whether anything may be learnt from where it came from and where
    /// it went. Machines that tell nobody from others take all for their peer's.
    fn heard(&self) -> Heard {
        Heard::Peer
    }

    /// The clock reached `now`; call it at or after [`poll_timeout`](Self::poll_timeout). Early or
    /// spurious calls do no harm.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes what is to be sent next into `buf`, which is cleared first.
    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit>;

    /// When to call [`handle_timeout`](Self::handle_timeout) next; `None` if no timer runs.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
