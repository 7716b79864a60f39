//! Makes `crates/lab/traces/lte-drive.up`: a mobile uplink of our own making, so that it has our licence.
//!
//! ```text
//! cargo run -p braidcast-lab --example fading_link > crates/lab/traces/lte-drive.up
//! ```
//!
//! The mean rate follows a drive that is written down here: through a town, along the edge of a
//! cell, over a hill, a handover without service, into a tunnel. Around it, shadowing and fast
//! fading multiply the rate by log-normal processes of first order with the time constants below.
//! Each transport block of the scheduler, 8 ms apart, carries what the rate allows, in packets of
//! 1500 bytes.

use braidcast_core::Rng;

/// Mean rate of the drive, Mbit/s, at a second; straight lines between.
const DRIVE: &[(f64, f64)] = &[
    (0.0, 4.5),
    (9.0, 3.2),
    (15.0, 1.4),
    (18.0, 0.9),
    (20.0, 0.0),
    (22.5, 0.0),
    (24.0, 1.3),
    (34.0, 1.6),
    (46.0, 1.5),
    (58.0, 2.3),
    (69.0, 2.7),
    (76.0, 3.0),
    (80.0, 1.2),
    (82.0, 0.0),
    (83.5, 0.0),
    (86.0, 1.1),
    (97.0, 1.8),
    (105.0, 3.6),
    (111.0, 1.3),
    (120.0, 1.7),
];
/// Standard deviation of a logarithm and time constant in seconds: shadowing, fast fading.
const FADING: [(f64, f64); 2] = [(0.25, 3.0), (0.3, 0.25)];
/// Milliseconds between transport blocks.
const BLOCK: u32 = 8;
/// Bits of an opportunity.
const PACKET: f64 = 12_000.0;

fn main() {
    let rng = Rng::from_seed(2026);
    let mut draws = rng.stream("fading");
    let mut levels = [0.0; 2];
    let (mut credit, end) = (0.0, DRIVE.last().map_or(0.0, |(at, _)| *at));
    let mut at = 0;
    while f64::from(at) < end * 1e3 {
        at += BLOCK;
        for (level, (deviation, constant)) in levels.iter_mut().zip(FADING) {
            let keep = 1.0 - f64::from(BLOCK) / 1e3 / constant;
            *level = keep * *level + deviation * (1.0 - keep * keep).sqrt() * draws.normal();
        }
        let mean: f64 = FADING.iter().map(|(deviation, _)| deviation * deviation / 2.0).sum();
        let rate = drive(f64::from(at) / 1e3) * libm::exp(levels.iter().sum::<f64>() - mean);
        credit += rate * 1e3 * f64::from(BLOCK);
        while credit >= PACKET {
            credit -= PACKET;
            println!("{at}");
        }
    }
    println!("{at}");
}

fn drive(second: f64) -> f64 {
    let after = DRIVE.iter().position(|(at, _)| *at >= second).unwrap_or(DRIVE.len() - 1).max(1);
    let ((t0, r0), (t1, r1)) = (DRIVE[after - 1], DRIVE[after]);
    r0 + (r1 - r0) * (second - t0) / (t1 - t0)
}
