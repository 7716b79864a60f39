//! Erasure codes inside the association: what is lost comes back without a retransmission.

mod common;

use braidcast_sctp::wire::chunk::Redundancy;
use braidcast_sctp::{Artx, Code, FecWindow, Options, Stats};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss};
use common::{CLIENT, Pair, link, transfer};

const CODES: [&str; 3] = ["block:10,9", "convolutional:10,9,20", "tetrys:10,9,43"];

fn code(name: &str) -> Code {
    name.parse().unwrap()
}

/// The papers' network: two paths of 1 Mbit/s and 100 ms round trip that lose packets on the way there.
fn lossy(loss: f64) -> Vec<Duplex> {
    let there = LinkModel { loss: Loss::Uniform(loss), ..link(1, 50) };
    vec![Duplex::new(there.clone(), link(1, 50)), Duplex::new(there, link(1, 50))]
}

fn classic(fec: Option<&str>) -> Options {
    Options { fec: fec.map(code), ..Options::classic() }
}

/// Sends 2 MB over the papers' network; what client and server counted, and how long it took.
fn run(options: &Options, loss: f64) -> (Stats, Stats, u64) {
    let mut pair = Pair::connected(options, lossy(loss));
    let start = pair.now();
    transfer(&mut pair, 2_000_000, 1400);
    let took = (pair.now() - start).as_millis() as u64;
    (pair.on_client(|it, _| it.stats()), pair.on_server(|it, _| it.stats()), took)
}

#[test]
fn what_two_lossy_paths_lose_comes_back_without_a_retransmission() {
    let (plain, server, took) = run(&classic(None), 0.02);
    println!("plain {took} {plain:?} {server:?}");
    for name in CODES {
        for window in [FecWindow::Inside, FecWindow::Outside] {
            let (client, server, took) = run(&Options { fec_window: window, ..classic(Some(name)) }, 0.02);
            println!("{name} {window}: {took} ms; {client:?} {server:?}");
            assert!(client.redundancy_sent > 100);
            assert!(server.recovered_chunks > 15, "{name} {window}: {server:?}");
            assert_eq!(server.inconsistent_chunks + server.contradicting_chunks + server.redundancy_refused, 0);
        }
    }
}

#[test]
fn a_peer_that_knows_no_redundancy_gets_none() {
    for (client, server) in [(true, false), (false, true)] {
        let options = |fec: bool| classic(fec.then_some("tetrys:10,9,43"));
        let mut pair = Pair::with(options(client), options(server), lossy(0.0));
        pair.connect();
        let recording = pair.record();
        transfer(&mut pair, 200_000, 1400);
        assert_eq!(recording.count(&CLIENT, Redundancy::KIND), 0);
    }
}

#[test]
fn fewer_chunks_are_sent_twice_when_retransmissions_wait_for_the_code() {
    for name in CODES {
        for reading in [None, Some(Artx::Min), Some(Artx::Slowest)] {
            let (client, server, took) = run(&Options { artx: reading, ..classic(Some(name)) }, 0.02);
            println!(
                "{name} {reading:?}: {took} ms; again {} t3 {} spurious {} held {} recovered {} dup {}",
                client.retransmissions,
                client.t3_expiries,
                client.spurious_retransmissions,
                client.held_retransmissions,
                server.recovered_chunks,
                server.duplicate_chunks
            );
        }
    }
}

#[test]
#[ignore = "exploration"]
fn explore() {
    for loss in [0.0, 0.02, 0.05, 0.10] {
        for fec in
            [None, Some("block:10,9"), Some("convolutional:10,9,20"), Some("tetrys:10,9,43"), Some("tetrys:10,9,200")]
        {
            for (window, artx) in [
                (FecWindow::Inside, None),
                (FecWindow::Inside, Some(Artx::Slowest)),
                (FecWindow::Outside, None),
                (FecWindow::Outside, Some(Artx::Slowest)),
            ] {
                if fec.is_none() && (artx.is_some() || window == FecWindow::Outside) {
                    continue;
                }
                let mut options = Options { fec_window: window, artx, ..classic(fec) };
                if std::env::var("TIME").is_ok() {
                    options.loss_detection = braidcast_sctp::LossDetection::Time;
                }
                let (mut goodput, mut again, mut spurious, mut recovered, mut t3, mut evicted, mut useless) =
                    (0.0, 0, 0, 0, 0, 0, 0);
                for seed in 1..=3 {
                    let mut pair = Pair::seeded(seed, &options, lossy(loss));
                    pair.connect();
                    let start = pair.now();
                    transfer(&mut pair, 4_000_000, 1400);
                    goodput += 32_000.0 / (pair.now() - start).as_millis() as f64 / 3.0;
                    let (client, server) = (pair.on_client(|it, _| it.stats()), pair.on_server(|it, _| it.stats()));
                    again += client.retransmissions;
                    spurious += client.spurious_retransmissions;
                    recovered += server.recovered_chunks;
                    t3 += client.t3_expiries;
                    evicted += server.redundancy_evicted;
                    useless += server.redundancy_useless;
                }
                println!(
                    "{:3}% {:22} {window:8} {:9} {goodput:.3} Mbit/s again {again} spurious {spurious} recovered {recovered} t3 {t3} evicted {evicted} useless {useless}",
                    loss * 100.0,
                    fec.unwrap_or("-"),
                    artx.map_or("-".into(), |it| it.to_string())
                );
            }
        }
    }
}
