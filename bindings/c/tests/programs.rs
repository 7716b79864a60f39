//! C programs, compiled as a user would compile them, and run.

mod build;

use build::build;
use std::process::{Command, Output};

/// Compiles `source` and runs it.
fn run(source: &str, name: &str) -> Output {
    Command::new(build(source, name)).output().unwrap()
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

#[test]
fn ends_with_identities_know_each_other() {
    let folder = std::env::temp_dir().join(format!("braidcast-c-identities-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files = ["home", "one", "other"].map(|name| folder.join(name));
    let output = Command::new(build("tests/identities.c", "identities")).args(files).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
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
