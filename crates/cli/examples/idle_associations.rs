//! Memory that encrypted associations take while they rest, with TLS and the cipher's library as in the programs.
//!
//! `cargo run --release -p braidcast-cli --example idle_associations [COUNT]`

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_sctp::{Endpoint, Options, SecurityOptions, SendOptions};
use braidcast_secure::Suite;
use braidcast_secure::identity::Identity;
use braidcast_secure::tls::{Tls, Trust};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Two endpoints in one process, whose packets are carried by hand in no time.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    packet: Vec<u8>,
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

fn security() -> Result<SecurityOptions, Box<dyn std::error::Error>> {
    let method = Arc::new(Tls::new(Identity::generate()?.0, Trust::Anyone, &Suite::ALL));
    Ok(SecurityOptions::new(method))
}

/// The client's n-th socket is known to the server by the port 10,000 + n.
fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Instant, packet: &mut Vec<u8>, by_client: bool) -> bool {
    let mut any = false;
    while let Some(transmit) = from.poll_transmit(now, packet) {
        let route = if by_client {
            Route::new(SocketId(0), address(1, 10_000 + transmit.route.socket.0))
        } else {
            Route::new(SocketId(transmit.route.remote.port() - 10_000), address(2, 9899))
        };
        for payload in transmit.datagrams(packet) {
            any = true;
            to.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload });
        }
    }
    while from.poll_event().is_some() {}
    any
}

impl Pair {
    fn advance(&mut self, by: Duration) {
        self.now += by;
        for endpoint in [&mut self.client, &mut self.server] {
            if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                endpoint.handle_timeout(self.now);
            }
        }
        let Self { client, server, now, packet } = self;
        while carry(client, server, *now, packet, true) | carry(server, client, *now, packet, false) {}
    }
}

/// Bytes of memory that this process has.
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u16 = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let rng = Rng::from_seed(1);
    let end = |name| -> Result<Endpoint, Box<dyn std::error::Error>> {
        let mut options = Options::live();
        options.security = Some(security()?);
        Ok(Endpoint::new(options.with(|it| it.limits.max_associations = 20_000), rng.stream(name))?)
    };
    let (client, mut server) = (end("client")?, end("server")?);
    server.listen();
    let mut pair = Pair { client, server, now: Instant::from_millis(1), packet: Vec::new() };
    let before = resident()?;
    for socket in 0..count {
        let id = pair.client.connect(pair.now, 9899, &[Route::new(SocketId(socket), address(2, 9899))])?;
        pair.advance(Duration::from_millis(1));
        let association = pair.client.association_mut(id).ok_or("an association that is gone")?;
        association.send(pair.now, &[1; 1000], SendOptions::default())?;
        pair.advance(Duration::from_millis(1));
        let mut message = Vec::new();
        let at = pair.server.associations().last().and_then(|id| pair.server.association_mut(id));
        at.and_then(|it| it.recv(pair.now, &mut message)).ok_or("nothing came")?;
    }
    for _ in 0..60 {
        pair.advance(Duration::from_secs(1));
    }
    let protected = |end: &Endpoint| {
        end.associations().filter(|&id| end.association(id).is_some_and(|it| it.standing().is_some())).count()
    };
    assert_eq!((protected(&pair.client), protected(&pair.server)), (count.into(), count.into()));
    let grown = resident()? - before;
    println!(
        "{count} idle associations, encrypted: {:.0} MB at both ends together, {:.1} kB for each of them at one end",
        grown as f64 / 1e6,
        grown as f64 / 2e3 / f64::from(count)
    );
    Ok(())
}
