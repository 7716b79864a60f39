//! The tests of the Python package with the library of this build, by the Python that is there and
//! without pip. `make python-test` runs them with the wheel, as users have it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The package's sources, and the library beside them under the name that they import.
fn package(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{test}"));
    let package = folder.join("braidcast");
    std::fs::create_dir_all(&package).unwrap();
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/python/braidcast")).unwrap();
    for source in sources.map(|it| it.unwrap()).filter(|it| it.file_type().unwrap().is_file()) {
        std::fs::copy(source.path(), package.join(source.file_name())).unwrap();
    }
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libbraidcast_native.so");
    std::fs::copy(library, package.join("_native.abi3.so")).unwrap();
    folder
}

/// Runs the tests of a module. None may leave a file or socket open.
fn run(module: &str) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut python = Command::new("python3");
    python.args(["-B", "-W", "default", "-m", "unittest", "--verbose", module]).current_dir(tests);
    let output = python.env("PYTHONPATH", package(module)).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(!said.contains("ResourceWarning"), "{said}");
    assert!(said.contains(" ... ok\n"), "nothing was tested: {said}");
}

#[test]
fn sockets_and_the_lab() {
    run("test_braidcast");
}

#[test]
fn sockets_on_asyncios_loop() {
    run("test_aio");
}

#[test]
fn live_media() {
    run("test_media");
}
