//! Experiment D of the ns-2 reference, for timing: a bulk transfer with CMT over two links of 1
//! Mbit/s, 100 ms and 1 % loss, 320 simulated seconds.
//!
//! `cargo build --release -p braidcast-sctp --example experiment_d`, then time
//! `target/release/examples/experiment_d [LOSS% [SEED]]`.

use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_sctp::{Endpoint, LossDetection, Options, SackPolicy, SchedulerKind, SendOptions};
use braidcast_sim::link::{LinkModel, QueueLimit};
use braidcast_sim::{Duplex, Network};
use core::time::Duration;

const SECONDS: u64 = 320;
const MESSAGE: usize = 1400;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let loss = arguments.next().unwrap_or_else(|| "1".into());
    let seed = arguments.next().map_or(1, |text| text.parse().expect("a seed"));
    let options = Options::default().with(|it| {
        it.paths.scheduler = SchedulerKind::RoundRobin;
        it.papers.loss_detection = LossDetection::Count;
        it.sack = SackPolicy::Dac.into();
        it.limits.receive_buffer = 65_536;
        it.limits.send_buffer = 1 << 18;
        it.limits.max_message = 1 << 14;
        // As ns-2: DATA chunks, windows sent as they open, no probes of a silent path.
        it.interleaving = false;
        it.congestion.pacing = false;
        it.paths.probe = false;
    });
    let data = LinkModel {
        queue: QueueLimit::Packets(50).into(),
        loss: format!("{loss}%").parse().expect("a share in per cent"),
        ..LinkModel::wire(1_000_000, Duration::from_millis(50))
    };
    let back = LinkModel { loss: braidcast_sim::link::Loss::default(), ..data.clone() };
    let mut net = Network::new(seed);
    let rng = Rng::from_seed(seed);
    let client =
        net.add(Endpoint::new(options.clone(), rng.stream("client")).unwrap(), ["10.1.0.1:9899", "10.2.0.1:9899"]);
    let server =
        net.add(Endpoint::new(options.clone(), rng.stream("server")).unwrap(), ["10.1.0.2:9899", "10.2.0.2:9899"]);
    let routes = [0, 1].map(|i| {
        net.connect((client, i), (server, i), Duplex::new(data.clone(), back.clone()));
        Route::new(SocketId(i), net.address((server, i)))
    });
    net.with(server, |endpoint, _| endpoint.listen());
    let id = net.with(client, |endpoint, now| endpoint.connect(now, options.local_port, &routes).expect("routes"));
    let (end, mut received, mut buf) = (Instant::ZERO + Duration::from_secs(SECONDS), 0, Vec::new());
    while net.now() < end {
        net.with(client, |endpoint, now| {
            let Some(association) = endpoint.association_mut(id) else { return };
            while association.send_room() >= MESSAGE
                && association.send(now, &[7; MESSAGE], SendOptions::default()).is_ok()
            {}
        });
        net.run_for(Duration::from_millis(50));
        let Some(id) = net.node(server).associations().next() else { continue };
        net.with(server, |endpoint, now| {
            while let Some(_message) = endpoint.association_mut(id).and_then(|it| it.recv(now, &mut buf)) {
                received += buf.len();
            }
        });
    }
    println!("{:.1} kbit/s at {loss} % loss, seed {seed}", received as f64 * 8e-3 / SECONDS as f64);
    for path in net.node(client).association(id).into_iter().flat_map(|it| it.paths()) {
        println!(
            "path {}: {} packets, {} chunks lost, {} timeouts",
            path.id, path.sent_packets, path.lost_chunks, path.timeouts
        );
    }
}
