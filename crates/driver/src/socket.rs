use crate::bind::{self, Bind, BindError, Carrier};
use crate::sources::Sources;
use crate::trouble::{self, Trouble};
use braidcast_core::{Datagram, Ecn, Heard, Route, SocketId, Transmit};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::io::Errno;
use serde::Serialize;
use socket2::{Socket as RawSocket, Type};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// What is asked of the kernel for each socket; it grants at most `net.core.{r,w}mem_max` to ordinary users. Half a
/// second of 64 Mbit/s may arrive while we do something else.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Less than for receiving: what waits here is already in flight and gets old.
const SEND_BUFFER: usize = 1 << 20;
/// Payload that waits in our own memory while a socket takes no more, at most, per socket.
const BACKLOG: usize = 1 << 20;
/// No UDP payload is longer (IPv4: 65535 - 20 - 8), so no batch handed to the kernel at once is either.
const MAX_BATCH: usize = 65_507;
/// Errors on receiving, one right after the other, after which the socket is left alone until something new comes.
const MAX_ERROR_RUN: u8 = 16;
/// Room for whatever the kernel may join into one receive buffer.
const RECEIVE_SLOT: usize = 1 << 16;

/// What a socket has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SocketStats {
    /// Datagrams that the kernel took.
    pub sent_datagrams: u64,
    /// Their payload, in bytes.
    pub sent_bytes: u64,
    /// System calls that sent something; fewer than datagrams thanks to segmentation offload.
    pub send_calls: u64,
    /// Datagrams that came.
    pub received_datagrams: u64,
    /// Their payload, in bytes.
    pub received_bytes: u64,
    /// System calls that received something.
    pub receive_calls: u64,
    /// Times that the kernel's send buffer was full.
    pub blocked: u64,
    /// Datagrams dropped here because the socket was blocked and 1 MiB waited already.
    pub dropped_backlog: u64,
    /// Datagrams longer than the path or interface allows (path MTU probes, for one).
    pub too_big: u64,
    /// Datagrams that could not leave: no route, interface gone, refused by a firewall, kernel queue full.
    pub unsendable: u64,
    /// Errors on receiving, for example ICMP messages turned into errors. None of them ends
    /// anything.
    pub receive_errors: u64,
}

/// A bound socket, UDP or native IP: batched, never fragmenting (the DF bit is set), with ECN.
///
/// quinn-udp serves raw sockets as well: destination and source addresses, TOS and traffic class
/// are the same there, and it sees for itself that they have no segmentation offload.
#[derive(Debug)]
pub struct Socket {
    raw: RawSocket,
    carrier: Carrier,
    state: UdpSocketState,
    local: SocketAddr,
    warning: Option<String>,
    stats: SocketStats,
    backlog: VecDeque<(Transmit, Vec<u8>)>,
    backlog_bytes: usize,
    spare: Vec<Vec<u8>>,
    /// The kernel said that its buffer is full and has not taken it back.
    blocked: bool,
    /// There may be datagrams to read.
    readable: bool,
    /// Which of our addresses each remote sends to, if the socket is bound to all of them.
    sources: Sources,
    /// It dials: its packets leave from the address that the routing table has for them now.
    follows_routes: bool,
    /// What the kernel said last, if nothing was received since.
    trouble: Option<Trouble>,
    /// Errors on receiving since something was received.
    error_run: u8,
}

impl Socket {
    pub(crate) fn open(bind: &Bind) -> Result<Self, BindError> {
        let (raw, warning) = bind::open(bind)?;
        Self::configure(raw, bind.carrier, warning).map_err(|source| BindError::Os { bind: bind.clone(), source })
    }

    /// Takes over a UDP socket that is bound.
    pub(crate) fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let raw = RawSocket::from(fd);
        if raw.r#type()? != Type::DGRAM || raw.local_addr()?.as_socket().is_none_or(|at| at.port() == 0) {
            return Err(io::Error::other("this is not a UDP socket that is bound to a port"));
        }
        raw.set_nonblocking(true)?;
        Self::configure(raw, Carrier::Udp, None)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }

    fn configure(raw: RawSocket, carrier: Carrier, warning: Option<String>) -> io::Result<Self> {
        let state = offload_state(&raw)?;
        // Beyond rmem_max for those who may; the others get what the limit allows.
        if rustix::net::sockopt::set_socket_recv_buffer_size_force(&raw, RECEIVE_BUFFER).is_err() {
            raw.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        raw.set_send_buffer_size(SEND_BUFFER)?;
        let mut local = raw.local_addr()?.as_socket().ok_or_else(|| io::Error::other("a socket without address"))?;
        if carrier != Carrier::Udp {
            local.set_port(0); // Linux gives the protocol number.
        }
        Ok(Self {
            raw,
            carrier,
            state,
            local,
            warning,
            stats: SocketStats::default(),
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            spare: Vec::new(),
            blocked: false,
            readable: false,
            sources: Sources::default(),
            follows_routes: false,
            trouble: None,
            error_run: 0,
        })
    }

    /// What carries its datagrams.
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// The address that it is bound to, with the port that the kernel picked; 0 with native IP.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What was done in place of what was asked for; to be shown to the user.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Its counters.
    pub fn stats(&self) -> SocketStats {
        self.stats
    }

    /// How many datagrams one [`Transmit`] should hold at most; 1 if the kernel or the network card cannot
    /// split a batch, which may turn out only when it was tried. More do no harm: the driver splits them.
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// The kernel's receive buffer in bytes, as granted (Linux counts its own overhead in).
    pub fn receive_buffer(&self) -> io::Result<usize> {
        self.raw.recv_buffer_size()
    }

    /// The kernel's send buffer in bytes, as granted.
    pub fn send_buffer(&self) -> io::Result<usize> {
        self.raw.send_buffer_size()
    }

    /// Returns `true` if packets may be fragmented in flight, which makes path MTU discovery
    /// meaningless.
    pub fn may_fragment(&self) -> bool {
        // Of raw IPv6 sockets quinn-udp says so because they know no IPv4 options; they carry no IPv4 either.
        let raw_v6 = self.carrier != Carrier::Udp && self.local.is_ipv6();
        self.state.may_fragment() && !raw_v6
    }

    /// It dials: its packets leave from the address that the routing table has for them, and not from
    /// the one where the remote was heard; and the kernel's reasons why nothing gets through are
    /// [noted](Self::trouble).
    pub(crate) fn dial(&mut self) {
        self.follows_routes = true;
        // Without it there are no reasons to be told, and all else works.
        let _v4 = set_option(&self.raw, libc::IPPROTO_IP, libc::IP_RECVERR, 1);
        if self.local.is_ipv6() {
            let _v6 = set_option(&self.raw, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1);
        }
    }

    /// Why nothing gets through, if the kernel has said so since something last came.
    pub const fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Lets sockets of other drivers be opened at the same address and port; returns what they are to know of remotes.
    pub(crate) fn share(&mut self) -> io::Result<Sources> {
        self.raw.set_reuse_port(true)?;
        Ok(self.sources.share())
    }

    /// Knows of remotes what another socket at the same address and port knows.
    pub(crate) fn use_sources(&mut self, sources: Sources) {
        self.sources = sources;
    }

    pub(crate) fn expect_peers(&mut self, peers: usize) {
        self.sources.expect(peers);
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.raw.as_raw_fd()
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    pub(crate) fn set_readable(&mut self) {
        self.readable = true;
    }

    /// Sends what `payload` holds, or as much as the kernel takes; the rest waits, or is dropped if too much waits.
    ///
    /// Dropping, not refusing, is what keeps a stalled interface from holding up the paths over the others; to the
    /// protocol it looks like the full queue that it is.
    pub(crate) fn send(&mut self, transmit: &Transmit, payload: &[u8]) {
        let sent = if self.blocked { 0 } else { self.send_now(transmit, payload) };
        let rest = &payload[sent..];
        if rest.is_empty() {
            return;
        }
        if self.backlog_bytes + rest.len() > BACKLOG {
            self.stats.dropped_backlog += transmit.datagrams(rest).count() as u64;
            return;
        }
        let mut buf = self.spare.pop().unwrap_or_default();
        buf.extend_from_slice(rest);
        self.backlog_bytes += buf.len();
        self.backlog.push_back((*transmit, buf));
    }

    /// The kernel takes datagrams again: sends what waits, oldest first, until it does not.
    pub(crate) fn send_backlog(&mut self) {
        self.blocked = false;
        while let Some((transmit, mut buf)) = self.backlog.pop_front() {
            self.backlog_bytes -= buf.len();
            let sent = self.send_now(&transmit, &buf);
            buf.drain(..sent);
            if buf.is_empty() {
                self.spare.push(buf);
            } else {
                self.backlog_bytes += buf.len();
                self.backlog.push_front((transmit, buf));
                return;
            }
        }
        // The socket keeps up again: no reason to hold the memory of the jam.
        self.spare.truncate(4);
    }

    /// How many bytes of `payload` are dealt with; fewer than all only if the socket is blocked now.
    fn send_now(&mut self, transmit: &Transmit, payload: &[u8]) -> usize {
        let remote = transmit.route.remote;
        if (remote.port() == 0) == (self.carrier == Carrier::Udp) {
            // Not an address of this carrier: EINVAL, which quinn-udp takes for an old kernel, so
            // it would switch off segmentation and ECN for all.
            self.stats.unsendable += transmit.datagrams(payload).count() as u64;
            return payload.len();
        }
        let destination = self.reachable_form(remote);
        let mut src_ip = self.sources.of(remote);
        let segment = transmit.segment_size.unwrap_or(payload.len()).clamp(1, payload.len().max(1));
        let (mut done, mut tried_again) = (0, false);
        // At least once, so that an empty datagram goes out too.
        loop {
            let batch = segment * self.state.max_gso_segments().min(MAX_BATCH / segment).max(1);
            let contents = &payload[done..payload.len().min(done + batch)];
            let datagrams = contents.len().div_ceil(segment).max(1) as u64;
            let message = quinn_udp::Transmit {
                destination,
                ecn: to_codepoint(transmit.ecn),
                contents,
                segment_size: (datagrams > 1).then_some(segment),
                src_ip,
            };
            match self.state.try_send(UdpSockRef::from(&self.raw), &message) {
                Ok(()) => {
                    self.stats.send_calls += 1;
                    self.stats.sent_datagrams += datagrams;
                    self.stats.sent_bytes += contents.len() as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stats.blocked += 1;
                    self.blocked = true;
                    return done;
                }
                Err(error) => match Errno::from_io_error(&error) {
                    // Perhaps the address that the remote knows is ours no more: the same without it.
                    Some(error @ (Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::INVAL)) if src_ip.is_some() => {
                        self.sources.forget(remote);
                        src_ip = None;
                        // The answer of older kernels. It made quinn-udp switch off segmentation
                        // and ECN: undo that.
                        if error == Errno::INVAL
                            && let Ok(state) = offload_state(&self.raw)
                        {
                            self.state = state;
                        }
                        continue;
                    }
                    // The card or driver cannot segment. quinn-udp has taken note: the same again, one by one.
                    Some(Errno::IO | Errno::INVAL) if datagrams > 1 && self.state.max_gso_segments() == 1 => continue,
                    // An ICMP message that came since the last packet: it says nothing about this one.
                    Some(Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::MSGSIZE)
                        if self.follows_routes && !std::mem::replace(&mut tried_again, true) =>
                    {
                        self.trouble = trouble::errno(&error).and_then(Trouble::of_receiving).or(self.trouble);
                        continue;
                    }
                    Some(Errno::MSGSIZE) => self.stats.too_big += datagrams,
                    // NOBUFS too: Linux gives it for a full queue of a socket that is itself writable, so there is
                    // nothing that could be waited for.
                    other => {
                        self.stats.unsendable += datagrams;
                        self.trouble = other.and_then(Trouble::of_sending).or(self.trouble);
                    }
                },
            }
            done += contents.len();
            if done == payload.len() {
                return done;
            }
        }
    }

    /// IPv4 addresses in the form that an IPv6 socket takes them.
    fn reachable_form(&self, remote: SocketAddr) -> SocketAddr {
        match (self.local, remote.ip()) {
            (SocketAddr::V6(_), IpAddr::V4(v4)) => SocketAddr::new(v4.to_ipv6_mapped().into(), remote.port()),
            _ => remote,
        }
    }

    /// Reads one batch and hands its datagrams to `feed`, which says what each was. Returns how
    /// many there were.
    pub(crate) fn receive(
        &mut self,
        id: SocketId,
        slots: &mut Slots,
        mut feed: impl FnMut(Datagram<'_>) -> Heard,
    ) -> usize {
        let received = slots.receive(|bufs, meta| self.state.recv(UdpSockRef::from(&self.raw), bufs, meta));
        match received {
            Ok(count) => {
                self.stats.receive_calls += 1;
                // A batch that is not full has emptied the socket, and a datagram that comes now makes a new edge.
                self.readable = count == BATCH_SIZE;
                self.error_run = 0;
                self.trouble = None;
                let mut datagrams = 0;
                let any_address = self.local.ip().is_unspecified() && !self.follows_routes;
                for (meta, buf) in slots.filled(count) {
                    let remote = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
                    let remote = if remote.is_ipv6() { meta.addr } else { remote };
                    let (route, ecn) = (Route::new(id, remote), from_codepoint(meta.ecn));
                    // Raw sockets of IPv4, and only they, deliver the IP header too (raw(7)).
                    let raw_v4 = self.carrier != Carrier::Udp && self.local.is_ipv4();
                    let headers = if raw_v4 { v4_header_len(buf) } else { 0 };
                    let mut rest = buf.get(headers..).unwrap_or_default();
                    self.stats.received_bytes += rest.len() as u64;
                    // At least once: an empty datagram is one too.
                    let mut heard = Heard::Nothing;
                    loop {
                        let (payload, tail) = rest.split_at(rest.len().min(meta.stride.max(1)));
                        heard = heard.max(feed(Datagram { route, ecn, payload }));
                        datagrams += 1;
                        rest = tail;
                        if rest.is_empty() {
                            break;
                        }
                    }
                    if let Some(ip) = meta.dst_ip.filter(|_| any_address) {
                        self.sources.learn(remote, ip, heard);
                    }
                }
                self.stats.received_datagrams += datagrams as u64;
                datagrams
            }
            Err(error) => {
                // An error is reported once and then gone (ECONNREFUSED and the like): what lies behind it is read
                // in the next turn. One that stays must not make us spin.
                self.readable = error.kind() != io::ErrorKind::WouldBlock && self.error_run < MAX_ERROR_RUN;
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.stats.receive_errors += 1;
                    self.error_run = self.error_run.saturating_add(1);
                    self.trouble = trouble::errno(&error).and_then(Trouble::of_receiving).or(self.trouble);
                    if self.follows_routes {
                        trouble::drain(&self.raw);
                    }
                }
                0
            }
        }
    }
}

/// The memory that one batch is received into: 2 MiB of address space, of which only what is used becomes real.
#[derive(Debug)]
pub(crate) struct Slots {
    bytes: Vec<u8>,
    meta: [RecvMeta; BATCH_SIZE],
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; RECEIVE_SLOT * BATCH_SIZE], meta: [RecvMeta::default(); BATCH_SIZE] }
    }

    pub(crate) fn receive(
        &mut self,
        read: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut chunks = self.bytes.chunks_exact_mut(RECEIVE_SLOT);
        let mut bufs: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        read(&mut bufs, &mut self.meta)
    }

    pub(crate) fn filled(&self, count: usize) -> impl Iterator<Item = (&RecvMeta, &[u8])> {
        let slots = self.bytes.chunks_exact(RECEIVE_SLOT);
        self.meta.iter().zip(slots).take(count).map(|(meta, slot)| (meta, &slot[..meta.len.min(slot.len())]))
    }
}

/// Length of the IPv4 header that `packet` begins with, options included. The kernel has checked it (RFC 791 §3.1).
fn v4_header_len(packet: &[u8]) -> usize {
    packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4)
}

/// Prepares the socket for batches, ECN and path MTU discovery.
pub(crate) fn offload_state(socket: &RawSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    without_timestamps(socket)?;
    Ok(state)
}

/// Switches off the receive timestamps that quinn-udp 0.6.3 switched on and nobody reads.
///
/// Together with the other control messages of a batch that GRO joined (segment size, destination, TOS) they need 112
/// to 120 bytes where quinn-udp has room for 96, so that the kernel leaves out the last one: the ECN bits.
fn without_timestamps(socket: &RawSocket) -> io::Result<()> {
    match set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0) {
        // A system without the option, for example qemu's user-mode emulation, has not switched it
        // on either.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOPROTOOPT) => Ok(()),
        done => done,
    }
}

/// Sets an option whose value is a number.
pub(crate) fn set_option(
    socket: &RawSocket,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is a live c_int and `len` its size, which is all that setsockopt reads through
    // the pointer, and it keeps neither. The descriptor is open for as long as `socket` is borrowed.
    // A wrong option is an error, no harm.
    #[allow(unsafe_code, reason = "no safe wrapper among our dependencies has this option")]
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn to_codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

fn from_codepoint(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}
