//! Random faults over three networks, for as long as one likes: `make chaos`, `CHAOS_MINUTES` and `BRAIDCAST_SEED`.

use crate::common::network::in_namespace;
use crate::live::Blow;
use crate::networks::{Fault, Networks};
use crate::run::{Run, Who};
use braidcast_core::Rng;
use std::time::{Duration, Instant};

const RATES: [&str; 3] = ["8mbit", "5mbit", "3mbit"];

/// The seed and the minutes that are asked for.
pub(crate) fn wanted() -> (u64, f64) {
    (from_env("BRAIDCAST_SEED", 1), from_env("CHAOS_MINUTES", 60.0))
}

pub(crate) fn from_env<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Returns a time of 50 ms to `most` seconds, short ones as often as long ones.
pub(crate) fn duration(rng: &mut Rng, most: f64) -> Duration {
    Duration::from_secs_f64(0.05 * (most / 0.05).powf(rng.f64()))
}

fn fault(rng: &mut Rng) -> Fault {
    match rng.below(9) {
        0 => Fault::Unplugged,
        1 => Fault::Off,
        2 => Fault::Gone,
        3 => Fault::Cut,
        4 => Fault::NoWayThere,
        5 => Fault::NoWayBack,
        6 => Fault::Loss(1 + rng.below(10) as u32),
        7 if rng.chance(0.5) => Fault::BlackHole(600 + rng.below(900) as u32),
        7 => Fault::SmallMtu(1280 + rng.below(220) as u32),
        _ => Fault::NewAddress,
    }
}

/// One random event: a fault of one network or, every fourth time, of all; or a blow to one of the four processes.
fn event(run: &mut Run, rng: &mut Rng) -> String {
    if rng.chance(0.15) {
        let who = Who::ALL[rng.below(4) as usize];
        let blow = if rng.chance(0.7) { Blow::Killed } else { Blow::Stopped };
        let lasts = duration(rng, 10.0);
        run.blow(who, blow, lasts);
        return format!("{who:?} {blow:?} for {lasts:.2?}");
    }
    let (fault, lasts, one) = (fault(rng), duration(rng, 40.0), rng.below(RATES.len() as u64) as usize);
    let all = rng.chance(0.25);
    (0..RATES.len()).filter(|&n| all || n == one).for_each(|n| run.begin(n, fault, lasts));
    let of = if all { "all networks".into() } else { format!("network {one}") };
    format!("{fault:?} of {of} for {lasts:.2?}")
}

fn chaos(seed: u64, minutes: f64) {
    in_namespace("random::chaos_of_networks_and_processes", |dir| {
        if !Networks::are_possible() {
            return;
        }
        let rng = Rng::from_seed(seed);
        let (mut faults, begun) = (rng.stream("faults"), Instant::now());
        let mut run = Run::new(dir, &RATES);
        run.send_files(rng.stream("files"));
        run.go_on(Duration::from_secs(5));
        let end = begun + Duration::from_secs_f64(minutes * 60.0);
        let mut reported = begun;
        while Instant::now() < end {
            let what = event(&mut run, &mut faults);
            eprintln!("{:9.2?} {what}", begun.elapsed());
            run.go_on(duration(&mut faults, 15.0));
            if reported.elapsed() > Duration::from_secs(300) {
                reported = Instant::now();
                eprintln!("{}", run.report());
            }
        }
        println!("{}", run.report());
    });
}

#[test]
#[ignore = "takes CHAOS_MINUTES: make chaos"]
fn chaos_of_networks_and_processes() {
    let (seed, minutes) = wanted();
    eprintln!(
        "again: CHAOS_MINUTES={minutes} BRAIDCAST_SEED={seed} cargo test -p braidcast-cli --test chaos -- --ignored --nocapture random"
    );
    chaos(seed, minutes);
}
