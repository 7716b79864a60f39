//! Seeds and numbers of cases that tests take from outside.

/// The environment variable that tests take their seed from.
pub const SEED_VARIABLE: &str = "BRAIDCAST_SEED";

/// A seed that says how to use it again if the test that holds it panics.
#[derive(Debug)]
pub struct Seed(u64);

impl Seed {
    /// The number.
    pub const fn get(&self) -> u64 {
        self.0
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("rerun with {SEED_VARIABLE}={}", self.0);
        }
    }
}

/// The seed in `BRAIDCAST_SEED`, or `default`. Keep it until the end of the test.
///
/// # Panics
/// If the variable is set to something that is not a number.
pub fn seed_from_env(default: u64) -> Seed {
    match std::env::var(SEED_VARIABLE).map(|text| (text.trim().parse(), text)) {
        Ok((Ok(seed), _)) => Seed(seed),
        Ok((Err(_), text)) => panic!("{SEED_VARIABLE}={text} is not a whole number"),
        Err(_) => Seed(default),
    }
}

/// How many cases a property test tries: `PROPTEST_CASES`, or `default`. proptest heeds the
/// variable only if a test does not say a number; `make soak` sets it.
///
/// # Panics
/// If the variable is set to something that is not a number.
pub fn cases(default: u32) -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("PROPTEST_CASES={text} is not a whole number")))
}
