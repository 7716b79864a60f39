//! What earlier fuzzing kept breaks nothing.

use crate::inputs::{kept, run};

fn all(target: &str, fuzz: fn(&[u8])) {
    let broken: Vec<_> = kept(target).iter().filter_map(|input| run(target, fuzz, input).err()).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

macro_rules! tests {
    ($($target:ident),*) => {
        $(
            #[test]
            fn $target() {
                all(stringify!($target), braidcast_fuzz_targets::$target::fuzz);
            }
        )*

        #[test]
        fn each_archive_and_folder_is_that_of_a_target() {
            let targets = [$(stringify!($target)),*];
            for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../seeds")).expect("fuzz/seeds") {
                let name = entry.expect("a name").file_name().to_string_lossy().into_owned();
                let target = name.trim_end_matches(".tar.gz");
                assert!(targets.contains(&target), "fuzz/seeds/{name}: there is no such target");
            }
        }

        #[test]
        fn each_target_is_a_program_for_libfuzzer() {
            for target in [$(stringify!($target)),*] {
                let program = format!("{}/../src/bin/{target}.rs", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(&program).unwrap_or_else(|error| panic!("{program}: {error}"));
                assert!(text.contains(&format!("braidcast_fuzz_targets::{target}::fuzz(bytes)")), "{program}");
            }
        }
    };
}
braidcast_fuzz_targets::each_target!(tests);
