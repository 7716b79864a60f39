//! What a packet costs: a client and a server in one process, packets carried by hand in no time.
//!
//! ```text
//! cargo build -p braidcast-dccp --example dccp_speed
//! valgrind --tool=callgrind target/debug/examples/dccp_speed ccid3 100000
//! ```
//! The difference between two runs with different counts is what the packets cost, without the
//! start. A third argument of 1 has each packet handed out alone, and so answered alone by CCID 3.

use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::{Ccid, Endpoint, Options, SendOptions, ServiceCode};
use core::time::Duration;
use std::net::SocketAddr;

const SERVICE: ServiceCode = ServiceCode(42);
const PORT: u16 = 5001;
const LEN: usize = 1200;

/// The route to host `to`.
fn route(to: u8) -> Route {
    Route::new(SocketId(0), SocketAddr::from(([10, 0, 0, to], 6511)))
}

/// Returns the number of packets of `from` that it moved to the other end, which sees them come from
/// `host`.
fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Instant, packet: &mut Vec<u8>, host: u8) -> u64 {
    let Some(transmit) = from.poll_transmit(now, packet) else { return 0 };
    let mut packets = 0;
    for payload in transmit.datagrams(packet) {
        to.handle_datagram(now, Datagram { route: route(host), ecn: transmit.ecn, payload });
        packets += 1;
    }
    packets
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let ccid: Ccid = args.next().unwrap_or_else(|| "ccid3".into()).parse()?;
    let count: u64 = args.next().unwrap_or_else(|| "100000".into()).parse()?;
    let max_segments = args.next().map_or(Ok(Options::default().max_segments), |it| it.parse())?;
    let options = Options { ccids: vec![ccid], max_segments, ..Options::default() };
    let rng = Rng::from_seed(1);
    let mut now = Instant::from_millis(1);
    let mut server = Endpoint::new(options.clone(), rng.stream("server")).unwrap();
    let mut client = Endpoint::new(options, rng.stream("client")).unwrap();
    server.listen(PORT, SERVICE)?;
    let id = client.connect(now, route(2), 0, PORT, SERVICE)?;
    let (mut packet, mut message, payload) = (Vec::new(), Vec::new(), [7; LEN]);
    let (mut received, mut packets, mut rounds) = (0, 0, 0_u64);
    while received < count {
        now += Duration::from_micros(100);
        rounds += 1;
        for endpoint in [&mut client, &mut server] {
            if endpoint.poll_timeout().is_some_and(|at| at <= now) {
                endpoint.handle_timeout(now);
            }
        }
        let connection = client.connection_mut(id).ok_or("the connection is gone")?;
        while connection.send(now, &payload, SendOptions::default()).is_ok() {}
        // What is handed out at once, up to `Options::max_segments` packets, is answered before more leaves.
        loop {
            let mut moved = carry(&mut client, &mut server, now, &mut packet, 1);
            moved += carry(&mut server, &mut client, now, &mut packet, 2);
            packets += moved;
            if moved == 0 {
                break;
            }
        }
        while client.poll_event().is_some() || server.poll_event().is_some() {}
        let accepted = server.connections().next();
        if let Some(connection) = accepted.and_then(|id| server.connection_mut(id)) {
            while connection.recv(&mut message) {
                received += 1;
            }
        }
    }
    println!("{ccid}: {received} messages in {packets} packets and {rounds} rounds, {now:?}");
    Ok(())
}
