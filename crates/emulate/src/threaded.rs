#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the driver, which has sockets and the clock, is not there"
)]
#![cfg_attr(target_os = "linux", allow(dead_code, unreachable_pub, reason = "on Linux the tests alone use it"))]

use crate::relay::{Relay, Request};
use crate::{EmulatorReport, Stopped};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_sim::link::LinkModel;
use signal_hook::consts::signal::{SIGINT, SIGTERM};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Datagrams that were read and wait for the relay, at most; more are dropped, as a kernel drops
/// what its buffer does not hold.
const MAX_WAITING: usize = 4096;
/// Datagrams that go into the links before what comes out is sent.
const BATCH: usize = 64;
/// How often an interrupt is looked for, and a reader looks whether its socket was closed.
const PATIENCE: Duration = Duration::from_millis(50);
/// No UDP payload is longer.
const MAX_DATAGRAM: usize = 1 << 16;

/// A datagram as a reader passes it on.
#[derive(Debug)]
struct Arrived {
    socket: SocketId,
    from: SocketAddr,
    payload: Vec<u8>,
}

/// A socket; its reader ends when this is dropped.
#[derive(Debug)]
struct Port {
    socket: Arc<UdpSocket>,
    open: Arc<AtomicBool>,
}

impl Port {
    fn open(socket: UdpSocket, id: SocketId, arrivals: SyncSender<Arrived>) -> io::Result<Self> {
        socket.set_read_timeout(Some(PATIENCE))?;
        let (socket, open) = (Arc::new(socket), Arc::new(AtomicBool::new(true)));
        let (reads, goes_on) = (Arc::clone(&socket), Arc::clone(&open));
        std::thread::Builder::new().spawn(move || {
            let mut buffer = vec![0; MAX_DATAGRAM];
            while goes_on.load(Ordering::Relaxed) {
                match reads.recv_from(&mut buffer) {
                    Ok((len, from)) => {
                        let _ = arrivals.try_send(Arrived { socket: id, from, payload: buffer[..len].to_vec() });
                    }
                    Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                    // ICMP messages turned into errors, as Windows reports them. What lasts must not keep a core busy.
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        })?;
        Ok(Self { socket, open })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Relaxed);
    }
}

/// Forwards datagrams between clients and one address, each direction through a link of its own that all clients
/// share.
///
/// It works like a NAT: clients send to one port, and each is given a socket of its own towards the address, by which
/// the answers find back. At most 256 clients are served at once, 65535 in all; one that was silent for five minutes
/// is forgotten.
/// Packets inside the links take at most 256 MiB; what comes on top is dropped and counted.
#[derive(Debug)]
pub struct Emulator {
    started: std::time::Instant,
    relay: Relay,
    listen: SocketAddr,
    forward: SocketAddr,
    /// By [`SocketId`]; `None` once closed.
    ports: Vec<Option<Port>>,
    arrived: Receiver<Arrived>,
    /// For the readers to come.
    arrivals: SyncSender<Arrived>,
    interrupted: Arc<AtomicBool>,
    buffer: Vec<u8>,
}

impl Emulator {
    /// An emulator for clients that send to `listen` (port 0: any) and are forwarded to `forward`.
    ///
    /// `to_forward` treats what clients send, `to_clients` the answers. The same `rng` seed and the same packets at
    /// the same times give the same losses. Fails if `listen` cannot be bound; the error says why.
    pub fn new(
        listen: SocketAddr,
        forward: SocketAddr,
        to_forward: LinkModel,
        to_clients: LinkModel,
        rng: &Rng,
    ) -> io::Result<Self> {
        let socket = bind(listen)?;
        let listen = socket.local_addr()?;
        let (arrivals, arrived) = sync_channel(MAX_WAITING);
        let port = Port::open(socket, SocketId(0), arrivals.clone())?;
        Ok(Self {
            started: std::time::Instant::now(),
            relay: Relay::new(SocketId(0), forward, [to_forward, to_clients], rng),
            listen,
            forward,
            ports: vec![Some(port)],
            arrived,
            arrivals,
            interrupted: Arc::default(),
            buffer: Vec::new(),
        })
    }

    /// Ctrl-C and SIGTERM end [`run`](Self::run) from now on; the second one ends the process.
    pub fn catch_interrupts(&mut self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that the first one does not meet the flag that it sets itself.
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&self.interrupted))?;
            signal_hook::flag::register(signal, Arc::clone(&self.interrupted))?;
        }
        Ok(())
    }

    /// Forwards until `until`, or until an interrupt.
    pub fn run(&mut self, until: Option<Instant>) -> io::Result<Stopped> {
        loop {
            let now = self.now();
            if self.relay.poll_timeout().is_some_and(|at| at <= now) {
                self.relay.handle_timeout(now);
            }
            self.serve();
            self.send(now);
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(Stopped::Interrupt);
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(Stopped::Until);
            }
            let next = [until, self.relay.poll_timeout()].into_iter().flatten().fold(now + PATIENCE, Instant::min);
            let Ok(first) = self.arrived.recv_timeout(next - now) else { continue };
            self.take(first);
            for _ in 1..BATCH {
                let Ok(more) = self.arrived.try_recv() else { break };
                self.take(more);
            }
        }
    }

    /// The address that clients send to.
    pub fn listen_addr(&self) -> SocketAddr {
        self.listen
    }

    /// Time since the emulator was made.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// What happened so far.
    pub fn report(&self) -> EmulatorReport {
        self.relay.report(self.now(), self.listen)
    }

    fn take(&mut self, arrived: Arrived) {
        let route = Route::new(arrived.socket, arrived.from);
        self.relay.handle_datagram(self.now(), Datagram { route, ecn: Ecn::NotEct, payload: &arrived.payload });
    }

    /// Opens and closes what the relay asks for.
    fn serve(&mut self) {
        while let Some(request) = self.relay.poll_event() {
            match request {
                Request::Open(client) => {
                    let socket = self.open().ok();
                    self.relay.opened(client, socket);
                }
                Request::Close(SocketId(socket)) => self.ports[usize::from(socket)] = None,
            }
        }
    }

    fn open(&mut self) -> io::Result<SocketId> {
        let number = u16::try_from(self.ports.len()).map_err(io::Error::other)?;
        let any = match self.forward {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let port = Port::open(bind(any)?, SocketId(number), self.arrivals.clone())?;
        self.ports.push(Some(port));
        Ok(SocketId(number))
    }

    /// Sends what has come out of the links.
    fn send(&mut self, now: Instant) {
        while let Some(transmit) = self.relay.poll_transmit(now, &mut self.buffer) {
            let Some(port) = &self.ports[usize::from(transmit.route.socket.0)] else { continue };
            let len = transmit.segment_size.unwrap_or(self.buffer.len()).max(1);
            if self.buffer.is_empty() {
                let _ = port.socket.send_to(&[], transmit.route.remote);
            }
            for datagram in self.buffer.chunks(len) {
                // What cannot leave is lost, as on any network.
                let _ = port.socket.send_to(datagram, transmit.route.remote);
            }
        }
    }
}

/// A UDP socket; one for any address of IPv6 serves IPv4, too.
fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Returns `true` if `ip` is an address of this machine.
pub fn is_local(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_carry_datagrams_there_and_back_for_each_client_and_no_longer_than_the_emulator_lives() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let echo = UdpSocket::bind(here).unwrap();
        let delay = LinkModel { delay: Duration::from_millis(30), ..LinkModel::default() };
        let models = (delay.clone(), delay);
        let echo_at = echo.local_addr().unwrap();
        let mut emulator = Emulator::new(here, echo_at, models.0, models.1, &Rng::from_seed(1)).unwrap();
        let at = emulator.listen_addr();
        let echoing = std::thread::spawn(move || {
            echo.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let (mut buffer, mut from) = ([0; 2048], Vec::new());
            for _ in 0..200 {
                let (len, who) = echo.recv_from(&mut buffer).unwrap();
                echo.send_to(&buffer[..len], who).unwrap();
                from.push(who);
            }
            from.sort_unstable();
            from.dedup();
            from.len()
        });
        let clients = std::thread::spawn(move || {
            let clients = [here; 2].map(|addr| UdpSocket::bind(addr).unwrap());
            let began = std::time::Instant::now();
            for (number, client) in clients.iter().enumerate() {
                client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                (0..100_u8).for_each(|n| assert_eq!(client.send_to(&[number as u8, n], at).unwrap(), 2));
            }
            for (number, client) in clients.iter().enumerate() {
                let mut buffer = [0; 2048];
                let mut got: Vec<u8> = (0..100)
                    .map(|_| {
                        let (len, from) = client.recv_from(&mut buffer).unwrap();
                        assert_eq!((len, from, buffer[0]), (2, at, number as u8));
                        buffer[1]
                    })
                    .collect();
                got.sort_unstable();
                assert!(got.into_iter().eq(0..100));
            }
            began.elapsed()
        });
        while !clients.is_finished() {
            let until = emulator.now() + Duration::from_millis(20);
            assert_eq!(emulator.run(Some(until)).unwrap(), Stopped::Until);
        }
        assert!(clients.join().unwrap() >= Duration::from_millis(60), "30 ms in each direction");
        assert_eq!(echoing.join().unwrap(), 2, "a socket for each client");
        let report = emulator.report();
        let [there, back] = [&report.to_forward, &report.to_clients].map(|it| it.delivered_packets);
        assert_eq!((report.clients, there, back), (2, 200, 200));
        drop(emulator);
        // Its readers end, and with them its sockets.
        let free_again = |_: &u32| {
            std::thread::sleep(Duration::from_millis(50));
            UdpSocket::bind(at).is_ok()
        };
        assert!((0..100).find(free_again).is_some());
    }
}
