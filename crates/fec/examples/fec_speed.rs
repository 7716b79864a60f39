//! GB of source in a second on one core, with 1400-byte symbols: the kernels; decoding of blocks
//! that lost as many as they can, with and without keeping what comes, which ISA-L leaves to its
//! caller; Tetrys with a window of 200 at 10 % redundancy and 5 % loss.
//!
//! `cargo run --release -p braidcast-fec --example fec_speed`; with `-- --rates` as
//! `benches/run.py` reads it, the best kernel only. The first cases are those of ISA-L's
//! `ec_encode_data` and `gf_vect_mad`.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use braidcast_core::Rng;
use braidcast_fec::{Code, Coefficients, Combination, DecoderLimits, Kernel, LinearDecoder};
use std::time::{Duration, Instant};

const LEN: usize = 1400;

/// Sources and repairs of a block.
const BLOCKS: [(u16, u16); 3] = [(9, 1), (20, 4), (100, 10)];

fn main() {
    let symbols: Vec<Vec<u8>> = (0..400).map(|n| random(n, LEN)).collect();
    let decoded = BLOCKS.map(|(k, r)| decode(&symbols[..2 * usize::from(k)], k, r));
    if std::env::args().any(|arg| arg == "--rates") {
        let (multiply, encoded) = kernel(Kernel::best());
        println!("RATE multiply-add,1400 {multiply:.4}");
        for (((k, r), encode), [whole, solving]) in BLOCKS.into_iter().zip(encoded).zip(decoded) {
            println!("RATE encode,k={k},r={r} {encode:.4}");
            println!("RATE decode,k={k},r={r} {solving:.4}");
            println!("RATE decode with keeping sources,k={k},r={r} {whole:.4}");
        }
        println!("RATE sliding window encode and decode,m=200 {:.4}", tetrys(&symbols));
        return;
    }
    println!("{:<10} {:>10} {:>10} {:>10} {:>10}", "GB/s", "multiply", "(10, 9)", "(24, 20)", "(110, 100)");
    for (name, it) in Kernel::ALL.into_iter().filter(|(_, kernel)| kernel.is_available()) {
        let (multiply, encoded) = kernel(it);
        println!("{name:<10} {multiply:>10.2}{}", encoded.map(|rate| format!(" {rate:>10.2}")).concat());
    }
    for (what, at) in [("decode", 0), ("solve", 1)] {
        println!("{what:<21}{}", decoded.map(|rates| format!(" {:>10.2}", rates[at])).concat());
    }
    println!("tetrys     {:>10.2}  (1 Gbit/s is 0.125)", tetrys(&symbols));
    let [first, parts] = keep(&symbols);
    println!("keep       {parts:>10.2}  with the flags apart; {first:.2} copied once more for them");
}

/// Multiply-add, and the encoding of [`BLOCKS`].
fn kernel(kernel: Kernel) -> (f64, [f64; 3]) {
    let mut rng = Rng::from_seed(1);
    let mut bytes = |len: usize| {
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        bytes
    };
    // At multiples of 64, as ISA-L is measured: elsewhere each access of 64 bytes touches two lines of the cache.
    let (mut sum, source) = (bytes(LEN + 64), bytes(LEN + 64));
    let [to, from] = [sum.as_ptr(), source.as_ptr()].map(|start| start.align_offset(64));
    let (sum, source) = (&mut sum[to..to + LEN], &source[from..from + LEN]);
    let multiply = rate(LEN, || kernel.add_multiple(sum, source, 0x1d));
    let encoded = BLOCKS.map(|(k, r)| {
        let (sources, sums) = (usize::from(k), usize::from(r));
        let coefficients = bytes(sources * sums);
        let sources: Vec<_> = (0..sources).map(|_| bytes(LEN)).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut sums: Vec<_> = (0..sums).map(|_| bytes(LEN)).collect();
        let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
        rate(LEN * sources.len(), || kernel.add_combinations(&mut sums, &sources, &coefficients))
    });
    (multiply, encoded)
}

fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::from_seed(seed).fill(&mut bytes);
    bytes
}

fn encode(combination: &Combination, symbols: &[Vec<u8>]) -> Vec<u8> {
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    let ids = combination.first..combination.end();
    let sources: Vec<&[u8]> = ids.map(|id| symbols[id as usize % symbols.len()].as_slice()).collect();
    combination.encode(&sources, &mut scratch, &mut out).expect("a small code");
    out
}

/// Blocks of `k` of which the first `r` were lost, one after the other. First with all that the
/// decoder does, which keeps copies of what comes, of two blocks; then without the time that takes.
fn decode(symbols: &[Vec<u8>], k: u16, r: u16) -> [f64; 2] {
    let block = |first, key| Combination { coefficients: Coefficients::Cauchy, first, count: k, key };
    let repairs: Vec<Vec<Vec<u8>>> = (0..symbols.len() as u64 / u64::from(k))
        .map(|n| (0..r).map(|key| encode(&block(n * u64::from(k), key), symbols)).collect())
        .collect();
    let run = |solving: bool| {
        let limits = DecoderLimits { window: symbols.len(), ..DecoderLimits::default() };
        let (mut decoder, mut n, mut base, mut symbol) = (LinearDecoder::new(limits, 0), 0, 0, Vec::new());
        rate(LEN * usize::from(k), || {
            if n == repairs.len() {
                (n, base) = (0, base + (symbols.len() - symbols.len() % usize::from(k)) as u64);
            }
            let place = n * usize::from(k);
            let first = base + place as u64;
            for i in usize::from(r)..usize::from(k) {
                decoder.on_source(first + i as u64, &symbols[place + i]);
            }
            if solving {
                for (key, repair) in repairs[n].iter().enumerate() {
                    decoder.on_repair(&block(first, key as u16), repair).expect("all are needed");
                }
                (0..r).for_each(|_| assert!(decoder.poll_recovered(&mut symbol).is_some(), "all are found"));
            }
            n += 1;
        })
    };
    let (whole, keeping) = (run(true), run(false));
    [whole, 1.0 / (1.0 / whole - 1.0 / keeping)]
}

/// Encoding and decoding are both counted.
fn tetrys(symbols: &[Vec<u8>]) -> f64 {
    let mut encoder = Code::Tetrys { n: 10, k: 9, m: 200 }.encoder();
    let mut decoder = LinearDecoder::new(DecoderLimits { window: 400, ..DecoderLimits::default() }, 0);
    let (mut rng, mut id, mut back, mut lost, mut symbol) = (Rng::from_seed(1), 0u64, 0u64, 0u64, Vec::new());
    let rate = rate(LEN, || {
        encoder.on_source(id);
        if rng.chance(0.05) {
            lost += 1;
        } else {
            decoder.on_source(id, &symbols[id as usize % symbols.len()]);
        }
        id += 1;
        while let Some(combination) = encoder.poll_repair() {
            if !rng.chance(0.05) {
                let _ = decoder.on_repair(&combination, &encode(&combination, symbols));
            }
        }
        while decoder.poll_recovered(&mut symbol).is_some() {
            back += 1;
        }
    });
    assert!(back * 100 > lost * 99, "{back} of {lost} came back");
    rate
}

/// Keeping what comes, as SCTP's receiver does: 1024 symbols behind the newest, whose second byte
/// has a flag that is no part of them. First with a copy of all for that, then with the first two
/// bytes apart.
fn keep(symbols: &[Vec<u8>]) -> [f64; 2] {
    let come = |take: &mut dyn FnMut(&mut LinearDecoder, u64, &[u8])| {
        let (mut decoder, mut id) = (LinearDecoder::new(DecoderLimits::default(), 0), 0);
        rate(LEN, || {
            take(&mut decoder, id, &symbols[id as usize % symbols.len()]);
            id += 1;
        })
    };
    let mut copy = Vec::new();
    let first = come(&mut |decoder, id, symbol| {
        copy.clear();
        copy.extend_from_slice(symbol);
        copy[1] &= 7;
        decoder.on_source(id, &copy);
    });
    [first, come(&mut |decoder, id, symbol| decoder.on_source_of(id, &[symbol[0], symbol[1] & 7], &symbol[2..]))]
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
