//! Faults one after the other.

use crate::common::network::in_namespace;
use crate::live::Blow;
use crate::networks::{Fault, Networks};
use crate::run::{Run, Who};
use braidcast_core::Rng;
use std::path::Path;
use std::time::Duration;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// What may happen to a network, and seconds that it lasts in the short run.
const FAULTS: [(Fault, f64); 11] = [
    (Fault::Unplugged, 1.0),
    (Fault::Off, 1.0),
    (Fault::Gone, 1.0),
    (Fault::Cut, 3.0),
    (Fault::NoWayThere, 1.5),
    (Fault::NoWayBack, 1.5),
    (Fault::Loss(10), 2.0),
    (Fault::SmallMtu(1280), 3.0),
    (Fault::BlackHole(1300), 3.0),
    (Fault::BlackHole(1000), 4.0),
    (Fault::NewAddress, 0.1),
];

/// Runs each fault `longer` times as long as in [`FAULTS`], on the first `hit` networks.
fn faults(dir: &Path, rates: &[&'static str], hit: usize, longer: f64) {
    if !Networks::are_possible() {
        return;
    }
    let mut run = Run::new(dir, rates);
    run.go_on(seconds(2.0));
    for (fault, lasts) in FAULTS.map(|(fault, lasts)| (fault, lasts * longer)) {
        run.pause = Duration::ZERO;
        (0..hit).for_each(|n| run.begin(n, fault, seconds(lasts)));
        run.go_on(seconds(lasts + 2.0));
        eprintln!("{fault:?} for {lasts} s of {hit} of {}: {:.2?} without a frame", rates.len(), run.pause);
    }
    println!("{}", run.report());
}

#[test]
fn a_stream_comes_back_with_its_networks() {
    in_namespace("scripts::a_stream_comes_back_with_its_networks", |dir| faults(dir, &["6mbit", "4mbit"], 2, 1.0));
}

/// An hour's worth of what [`a_stream_comes_back_with_its_networks`] does in less than a minute.
#[test]
#[ignore = "takes minutes: make chaos"]
fn a_stream_comes_back_with_its_networks_after_long() {
    let name = "scripts::a_stream_comes_back_with_its_networks_after_long";
    in_namespace(name, |dir| {
        faults(dir, &["6mbit"], 1, 1.0);
        faults(dir, &["6mbit", "4mbit"], 1, 4.0);
        faults(dir, &["6mbit", "4mbit", "3mbit", "2mbit"], 4, 10.0);
    });
}

#[test]
fn a_stream_outlives_what_happens_to_its_ends() {
    in_namespace("scripts::a_stream_outlives_what_happens_to_its_ends", |dir| {
        if !Networks::are_possible() {
            return;
        }
        let mut run = Run::new(dir, &["6mbit", "4mbit"]);
        run.go_on(seconds(3.0));
        for (who, blow, lasts) in [
            (Who::LiveSender, Blow::Killed, 0.2),
            (Who::LiveReceiver, Blow::Killed, 0.5),
            (Who::LiveSender, Blow::Stopped, 2.0),
            (Who::LiveReceiver, Blow::Stopped, 2.0),
            (Who::LiveSender, Blow::Killed, 2.0),
            (Who::LiveReceiver, Blow::Killed, 2.0),
        ] {
            run.pause = Duration::ZERO;
            run.blow(who, blow, seconds(lasts));
            run.go_on(seconds(lasts + 3.0));
            eprintln!("{who:?} {blow:?} for {lasts} s: {:.2?}", run.pause);
        }
        println!("{}", run.report());
    });
}

#[test]
fn files_outlive_what_happens_to_networks_and_ends() {
    in_namespace("scripts::files_outlive_what_happens_to_networks_and_ends", |dir| {
        if !Networks::are_possible() {
            return;
        }
        let mut run = Run::new(dir, &["12mbit", "8mbit"]);
        run.send_files(Rng::from_seed(1));
        for (fault, lasts) in [(Fault::Cut, 3.0), (Fault::SmallMtu(1280), 4.0), (Fault::BlackHole(1000), 4.0)] {
            (0..2).for_each(|n| run.begin(n, fault, seconds(lasts)));
            run.go_on(seconds(lasts + 2.0));
        }
        for (who, blow) in [
            (Who::FileSender, Blow::Killed),
            (Who::FileReceiver, Blow::Killed),
            (Who::FileSender, Blow::Stopped),
            (Who::FileReceiver, Blow::Stopped),
        ] {
            run.blow(who, blow, seconds(1.0));
            run.go_on(seconds(3.0));
        }
        println!("{}", run.report());
    });
}
