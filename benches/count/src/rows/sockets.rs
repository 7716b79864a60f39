//! Datagrams and messages over sockets of the loopback. How much of that the kernel has ready at once depends on the
//! time, and so do instructions; how often memory is allocated and the kernel is called hardly does.

use super::{PAYLOAD, noise};
use crate::counted;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Route, Transmit};
use braidcast_driver::{Bind, Clock, Driver};
use braidcast_socket::{Event, Path, Protection, SendOptions, Socket};
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const DATAGRAMS: u64 = 10_000;
/// Every receive buffer has room for these.
const AT_ONCE: u64 = 20;
const MESSAGES: u64 = 10_000;
/// Messages that are not counted: the path is probed, and tables grow.
const WARM_UP: u64 = 500;
/// Something is lost if a row takes longer. The loopback loses nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends datagrams over its routes in turn, so that the driver joins none with the next, and counts what comes.
struct End {
    routes: Vec<Route>,
    payload: Vec<u8>,
    left: u64,
    received: u64,
}

impl End {
    fn new(routes: Vec<Route>) -> Self {
        Self { routes, payload: noise(PAYLOAD, 1), left: 0, received: 0 }
    }
}

impl Machine for End {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        assert_eq!(datagram.payload.len(), PAYLOAD);
        self.received += 1;
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        buf.clear();
        buf.extend_from_slice(&self.payload);
        let route = self.routes[self.left as usize % self.routes.len()];
        Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

fn is_in_time(clock: Clock) {
    assert!(clock.now() < Instant::ZERO + PATIENCE, "something was lost on the loopback");
}

/// What the driver does for a datagram at both ends.
pub(super) fn drive() -> u64 {
    let [mut there, mut here] = [(); 2].map(|()| Driver::new().expect("file descriptors"));
    let from = here.bind(&Bind::to_addr(LOOPBACK)).expect("a free port");
    let mut bind = || there.bind(&Bind::to_addr(LOOPBACK)).expect("a free port");
    let to = [bind(), bind()].map(|id| there.socket(id).expect("just bound").local_addr());
    let mut source = End::new(to.map(|remote| Route::new(from, remote)).to_vec());
    let mut sink = End::new(Vec::new());
    let mut turn = || {
        source.left = AT_ONCE;
        sink.received = 0;
        while source.left > 0 {
            here.try_drive(&mut source, None).expect("sockets can be polled");
        }
        while sink.received < AT_ONCE {
            there.try_drive(&mut sink, None).expect("sockets can be polled");
            is_in_time(there.clock());
        }
    };
    turn();
    for _ in 0..DATAGRAMS / AT_ONCE {
        counted(&mut turn);
    }
    DATAGRAMS
}

/// Does what there is to do now. Returns `true` if there is a message to read.
fn polled(socket: &mut Socket) -> bool {
    let mut readable = false;
    while let Some((_, event)) = socket.poll(Some(Duration::ZERO)).expect("sockets can be polled") {
        assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
        readable |= event == Event::Readable;
    }
    readable
}

/// What the library does for a message of one packet at both ends.
pub(super) fn message() -> u64 {
    let clock = Driver::new().expect("file descriptors").clock();
    let [mut client, mut server] = [(); 2].map(|()| Socket::new(&Protection::Plain).expect("the defaults work"));
    let at = server.bind(LOOPBACK).expect("a free port");
    server.listen();
    let connection = client.connect(&[Path::to(at)]).expect("the loopback is there");
    let (payload, mut buffer, mut accepted) = (noise(1000, 1), Vec::new(), None);
    while accepted.is_none() {
        _ = polled(&mut client);
        _ = polled(&mut server);
        accepted = server.connections().next();
        is_in_time(clock);
    }
    let accepted = accepted.expect("just seen");
    let mut turn = || {
        client.send(connection, &payload, &SendOptions::new()).expect("all before has come");
        loop {
            _ = polled(&mut client);
            if polled(&mut server) && server.recv(accepted, &mut buffer).expect("it is connected").is_some() {
                break;
            }
            is_in_time(clock);
        }
        assert_eq!(buffer, payload);
    };
    for _ in 0..WARM_UP {
        turn();
    }
    for _ in 0..MESSAGES {
        counted(&mut turn);
    }
    MESSAGES
}
