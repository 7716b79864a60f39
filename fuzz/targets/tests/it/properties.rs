//! Inputs that differ in a few places from one that is kept break nothing. Unlike libFuzzer this does not look for new
//! ways through the code, but needs nothing built anew: `make test` does it with the seeds of its commit.

use crate::inputs::{kept, run};
use braidcast_sim::testing::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// How a byte is changed, or what comes beside it.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Flip(u8),
    Set(u8),
    Insert(u8),
    Remove,
    /// The input ends here.
    Cut,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => (0_u8..8).prop_map(|bit| Edit::Flip(1 << bit)),
        3 => any::<u8>().prop_map(Edit::Set),
        2 => any::<u8>().prop_map(Edit::Insert),
        2 => Just(Edit::Remove),
        1 => Just(Edit::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, edits: &[(Index, Edit)]) {
    for (at, edit) in edits {
        let at = at.index(bytes.len() + 1);
        match *edit {
            Edit::Insert(byte) => bytes.insert(at, byte),
            Edit::Cut => bytes.truncate(at),
            _ if at == bytes.len() => {}
            Edit::Flip(bits) => bytes[at] ^= bits,
            Edit::Set(byte) => bytes[at] = byte,
            Edit::Remove => _ = bytes.remove(at),
        }
    }
}

fn alike(target: &str, fuzz: fn(&[u8])) {
    let kept = kept(target);
    let config = ProptestConfig {
        cases: cases(400),
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(which: Index, any in vec(any::<u8>(), 0..400), edits in vec((any::<Index>(), edit()), 1..6))| {
        // Any bytes, if nothing is kept.
        let (name, mut bytes) = if kept.is_empty() { ("any".to_owned(), any) } else { which.get(&kept).clone() };
        apply(&mut bytes, &edits);
        run(target, fuzz, &(format!("like-{name}"), bytes)).map_err(TestCaseError::fail)?;
    });
}

macro_rules! tests {
    ($($target:ident),*) => {
        $(
            #[test]
            fn $target() {
                alike(stringify!($target), braidcast_fuzz_targets::$target::fuzz);
            }
        )*
    };
}
braidcast_fuzz_targets::each_target!(tests);
