//! What programs that are compiled rely on: symbols, and the layout of structures, as they were when
//! `abi/libbraidcast.so.0.1.abi` was written.
//!
//! The header is turned into a library of functions that do nothing, which has the types and symbols
//! of the header and nothing of Rust's; libabigail describes that, and compares.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BASELINE: &str = "abi/libbraidcast.so.0.1.abi";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header without comments, in which each function has a body; and the names of the functions.
fn bodies(header: &str) -> (String, BTreeSet<String>) {
    let lines = header.lines().filter(|line| !line.trim_start().starts_with("//"));
    let (mut out, mut names, mut open) = (String::new(), BTreeSet::new(), false);
    for line in lines {
        let before = line.split_once('(').map(|(before, _)| before);
        let name = before.and_then(|before| before.rsplit([' ', '*']).next());
        if let Some(name) = name.filter(|name| !open && name.starts_with("braidcast_") && !line.starts_with("typedef"))
        {
            names.insert(name.to_owned());
            open = true;
        }
        match line.strip_suffix(");").filter(|_| open) {
            Some(declared) => {
                out += declared;
                out += ") { __builtin_trap(); }\n";
                open = false;
            }
            None => {
                out += line;
                out += "\n";
            }
        }
    }
    (out, names)
}

/// The library of the header.
fn library(test: &str) -> (PathBuf, BTreeSet<String>) {
    let header = std::fs::read_to_string(root().join("include/braidcast.h")).unwrap();
    let (text, names) = bodies(&header);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("abi-{test}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("braidcast.c"), text).unwrap();
    let mut cc = Command::new("cc");
    // By a relative name, so that the description has no folder of this machine.
    cc.current_dir(&folder).args(["-g", "-fPIC", "-shared", "-Wl,-soname,libbraidcast.so.0.1"]);
    let output = cc.args(["-o", "braidcast.so", "braidcast.c"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (folder.join("braidcast.so"), names)
}

/// Runs a program of libabigail; `None` if it is not installed and nobody says that it must be.
fn abigail(program: &mut Command) -> Option<Output> {
    match program.output() {
        Ok(output) => Some(output),
        Err(_) if std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none() => None,
        Err(error) => panic!("{program:?}: {error} (Debian: abigail-tools)"),
    }
}

/// The layout is that of a processor.
#[cfg(target_arch = "x86_64")]
#[test]
fn programs_that_are_compiled_find_what_they_rely_on() {
    let (library, _) = library("layout");
    let baseline = root().join(BASELINE);
    if std::env::var_os("UPDATE_ABI").is_some() {
        let mut abidw = Command::new("abidw");
        abidw.args(["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash"]);
        let output = abidw.arg("--out-file").args([&baseline, &library]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let Some(output) = abigail(Command::new("abidiff").args([&baseline, &library])) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "the ABI has changed:\n{said}{}\nFunctions that are new, and fields behind those of a structure with a size: \
         UPDATE_ABI=1 cargo test -p braidcast-c --test abi. Anything else breaks programs: raise the version first.",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_library_has_the_symbols_of_its_header_and_no_others() {
    let (_, declared) = library("symbols");
    let shared = std::env::current_exe().unwrap().parent().unwrap().join("libbraidcast.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&shared).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned);
    assert_eq!(exported.collect::<BTreeSet<_>>(), declared);
    assert!(declared.len() > 30, "{declared:?}");
}
