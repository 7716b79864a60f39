//! GB of source in a second on one core, with 1400-byte symbols, for each kernel:
//! `cargo run --release -p braidcast-fec --example speed`. The cases are those of `isabench` (ISA-L).
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use braidcast_core::Rng;
use braidcast_fec::Kernel;
use std::time::{Duration, Instant};

const LEN: usize = 1400;

fn main() {
    println!("{:<10} {:>10} {:>10} {:>10} {:>10}", "GB/s", "multiply", "(10, 9)", "(24, 20)", "(110, 100)");
    for (name, kernel) in Kernel::ALL {
        if !kernel.is_available() {
            continue;
        }
        let mut rng = Rng::from_seed(1);
        let mut bytes = |len: usize| {
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            bytes
        };
        let (mut sum, source) = (bytes(LEN), bytes(LEN));
        print!("{name:<10} {:>10.2}", rate(LEN, || kernel.add_multiple(&mut sum, &source, 0x1d)));
        for (sources, sums) in [(9, 1), (20, 4), (100, 10)] {
            let coefficients = bytes(sources * sums);
            let sources: Vec<_> = (0..sources).map(|_| bytes(LEN)).collect();
            let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let mut sums: Vec<_> = (0..sums).map(|_| bytes(LEN)).collect();
            let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            let rate = rate(LEN * sources.len(), || kernel.add_combinations(&mut sums, &sources, &coefficients));
            print!(" {rate:>10.2}");
        }
        println!();
    }
}

/// Bytes in a nanosecond: the best of many short rounds, as others disturb.
fn rate(bytes: usize, mut work: impl FnMut()) -> f64 {
    let times = (1_000_000 / bytes).max(1);
    let mut best = f64::INFINITY;
    let until = Instant::now() + Duration::from_millis(400);
    while Instant::now() < until {
        let start = Instant::now();
        (0..times).for_each(|_| std::hint::black_box(&mut work)());
        best = best.min(start.elapsed().as_nanos() as f64 / times as f64);
    }
    bytes as f64 / best
}
