//! The rows of `make count`: deterministic pieces of work, run under Valgrind's callgrind by
//! `tools/count.py`, which counts the instructions between entering and leaving [`counted`].
//!
//! Without arguments all rows run once, uncounted, so that `cargo test` shows that they work.
//! With names, those. Each prints its name, how many there were of what it counts, what that is,
//! how often memory was allocated, and if its instructions are the same each time.

mod rows;

use braidcast_testing::Counting;
use std::cell::Cell;
use std::hint::black_box;
use std::io::Write;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// What is done in here is counted. It is called as often as a row wants; what it does in between is not counted.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    let before = Counting::calls();
    work();
    ALLOCATIONS.set(ALLOCATIONS.get() + Counting::calls() - before);
}

/// Callgrind writes down what was counted since the last time when this returns.
#[inline(never)]
fn row_ends(row: &str) {
    black_box(row);
}

/// A row: its name, what one of the returned number is, and its work.
type Row = (&'static str, &'static str, fn() -> u64);

/// What this processor has of what the kernels of our codes, of AES and of the C library are chosen by.
fn features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("ssse3", is_x86_feature_detected!("ssse3")),
            ("aes", is_x86_feature_detected!("aes")),
            ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("bmi2", is_x86_feature_detected!("bmi2")),
            ("gfni", is_x86_feature_detected!("gfni")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ];
        let there: Vec<&str> = known.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect();
        format!("x86_64 {}", there.join(" "))
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH.to_owned()
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("--features") {
        let _ = writeln!(std::io::stdout(), "{}", features());
        return;
    }
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let exact = rows::ALL.map(|row| (row, "exact"));
    let varying = rows::OVER_SOCKETS.map(|row| (row, "varying"));
    for ((name, unit, work), instructions) in exact.into_iter().chain(varying) {
        // `cargo test FILTER` runs this binary too, with names of other tests.
        if named.is_empty() || named.iter().any(|it| it == name) {
            let number = work();
            row_ends(name);
            let allocations = ALLOCATIONS.take();
            let _ = writeln!(std::io::stdout(), "{name}\t{number}\t{unit}\t{allocations}\t{instructions}");
        }
    }
}
