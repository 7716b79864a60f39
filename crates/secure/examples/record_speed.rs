//! Nanoseconds to seal and to open a record of 1,300 bytes, by each suite and both kinds of ciphers.
//!
//! `cargo run --release -p braidcast-secure --example record_speed`
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use braidcast_secure::{Ciphers, HEADER, Keys, Opener, Sealer, Suite, aws::AwsLc, pure::Pure};
use std::time::Instant;

const LEN: usize = 1300;
const ROUNDS: u32 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<20} {:>10} {:>8} {:>8}", "ns for 1300 bytes", "", "seal", "open");
    for suite in Suite::ALL {
        for (name, ciphers) in [("aws-lc-rs", &AwsLc as &dyn Ciphers), ("pure", &Pure)] {
            let (seal, open) = measure(ciphers, suite)?;
            println!("{:<20} {name:>10} {seal:>8.0} {open:>8.0}", suite.to_string());
        }
    }
    Ok(())
}

fn measure(ciphers: &dyn Ciphers, suite: Suite) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let key = vec![7; suite.key_len()];
    let keys = Keys::new(suite, &key, &key, [1; 12]).ok_or("keys of the wrong length")?;
    let (mut sealer, mut opener) = (Sealer::new(ciphers, &keys, 3)?, Opener::new(ciphers, &keys, 3)?);
    let (mut record, mut text) = (Vec::with_capacity(2 * LEN), Vec::with_capacity(2 * LEN));
    let (mut seal, mut open) = (0, 0);
    for _ in 0..ROUNDS {
        record.clear();
        record.resize(HEADER + LEN, 0x5A);
        let begun = Instant::now();
        sealer.seal(&mut record, 0)?;
        let sealed = Instant::now();
        opener.open(&record, &mut text)?;
        seal += (sealed - begun).as_nanos();
        open += sealed.elapsed().as_nanos();
    }
    Ok((seal as f64 / f64::from(ROUNDS), open as f64 / f64::from(ROUNDS)))
}
