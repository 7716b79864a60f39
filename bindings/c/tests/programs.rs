//! C programs, compiled as a user would compile them, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What the shared library calls itself; see `build.rs`.
const SONAME: &str = "libbraidcast.so.0.1";

/// Compiles `source` against the shared library of this build and runs it.
fn run(source: &str, name: &str) -> Output {
    Command::new(build(source, name)).output().unwrap()
}

/// Compiles `source` against the shared library of this build. Returns the program.
fn build(source: &str, name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Tests stand in target/PROFILE/deps, and so does the library that was built for them.
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let program: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // A program looks for the library by its SONAME, as it is installed.
    let libraries = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.libraries"));
    std::fs::create_dir_all(&libraries).unwrap();
    let link = libraries.join(SONAME);
    _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(deps.join("libbraidcast.so"), link).unwrap();
    // tools/sanitize.sh names one for these programs alone.
    let named = std::env::var_os("BRAIDCAST_TEST_CC").or_else(|| std::env::var_os("CC"));
    let compiler = named.unwrap_or_else(|| "cc".into());
    let compiled = Command::new(compiler)
        .args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(root.join("include"))
        .arg(root.join(source))
        .arg("-pthread")
        .arg("-L")
        .arg(&deps)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(["-lbraidcast", "-o"])
        .arg(&program)
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

#[test]
fn ten_messages_go_over_two_paths_and_back() {
    let output = run("examples/two_paths.c", "two_paths");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(out.matches("is up").count(), 2, "{out}");
    for number in 1..=10 {
        assert!(out.contains(&format!("answer: message {number}\n")), "{out}");
    }
    assert!(out.ends_with("closed: shut down after everything was delivered\n"), "{out}");
}

#[test]
fn a_program_is_told_what_it_may_send() {
    let output = run("tests/rate.c", "rate");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_uses_get_an_error_with_words() {
    let output = run("tests/wrong_use.c", "wrong_use");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn connections_end_and_threads_share_a_socket() {
    let output = run("tests/ends.c", "ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Valgrind knows no vDSO, and finds what is not freed.
#[test]
fn a_program_runs_under_valgrind_without_errors_or_leaks() {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    let output = match valgrind.arg(build("examples/two_paths.c", "two_paths_valgrind")).output() {
        Ok(output) => output,
        Err(_) if std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none() => return,
        Err(error) => panic!("valgrind: {error}"),
    };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.ends_with("closed: shut down after everything was delivered\n"), "{out}");
}
