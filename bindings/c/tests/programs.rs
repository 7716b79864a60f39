//! C programs, compiled as a user would compile them, and run.

mod build;

use braidcast_socket::{CloseReason, Event, Protection, Socket};
use build::build;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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
fn limits_are_kept_and_sockets_of_ones_own_are_used() {
    let output = run("tests/limits.c", "limits");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn access_units_go_over_and_wrong_uses_of_media_get_words() {
    let output = run("tests/media.c", "media_units");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_media_example_takes_a_transport_stream_apart() {
    let clips = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/media/tests/clips");
    let clip = std::fs::File::open(format!("{clips}/h264.ts")).unwrap();
    let output = Command::new(build("examples/media.c", "media")).stdin(clip).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let frames = std::fs::read_to_string(format!("{clips}/h264.frames")).unwrap().lines().count();
    assert!(out.contains("camera is there\n") && out.contains("all arrived: yes"), "{out}{err}");
    assert!(out.contains(&format!("\n{frames} frames, ")), "{out}{err}");
}

#[test]
fn connections_end_and_threads_share_a_socket() {
    let output = run("tests/ends.c", "ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn objects_of_cpp_free_themselves_and_throw() {
    let output = run("tests/objects.cpp", "objects");
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

/// A program that uses another library; `None` if that is not there and need not be.
fn of_others(source: &str, library: &str, package: &str) -> Option<PathBuf> {
    let name = Path::new(source).file_stem().unwrap().to_str().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("others-{name}"));
    let mut cc = Command::new("cc");
    cc.current_dir(env!("CARGO_MANIFEST_DIR")).args([source, &format!("-l{library}"), "-o"]).arg(&program);
    let compiled = cc.output().unwrap();
    if !compiled.status.success() && std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none() {
        return None;
    }
    assert!(compiled.status.success(), "{package}: {}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

/// libsrt's of docs/start/compare.md, to a server of its own.
#[test]
fn the_program_of_libsrt_sends_its_message() {
    let of_srt = |source| of_others(source, "srt-gnutls", "libsrt-gnutls-dev");
    let (Some(server), Some(client)) = (of_srt("tests/srt_server.c"), of_srt("../../docs/examples/compare/srt.c"))
    else {
        return;
    };
    let mut server = Command::new(server).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = said.next().unwrap().unwrap();
    let output = Command::new(client).args(["127.0.0.1", &port]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.next().unwrap().unwrap(), "hello");
    assert!(server.wait().unwrap().success());
}

/// What docs/start/compare.md shows. usrsctp speaks to the same library, without encryption.
#[test]
fn the_programs_of_the_comparison_send_their_message() {
    let server = |protection: &Protection| {
        let mut socket = Socket::new(protection).unwrap();
        let at = [(); 2].map(|()| socket.bind("127.0.0.1:0".parse().unwrap()).unwrap());
        socket.listen();
        let received = std::thread::spawn(move || {
            let mut message = Vec::new();
            while let Some((id, event)) = socket.poll(Some(Duration::from_secs(20))).unwrap() {
                match event {
                    Event::Readable => {
                        let received = socket.recv(id, &mut message).unwrap().unwrap();
                        assert!(received.unordered && received.stream == 1);
                    }
                    Event::Closed { reason, .. } => {
                        assert_eq!(reason, CloseReason::Shutdown);
                        break;
                    }
                    _ => {}
                }
            }
            message
        });
        (at, received)
    };
    let key = Protection::Key("a passphrase that both ends know".into());
    let (at, received) = server(&key);
    let program = build("../../docs/examples/compare/braidcast.c", "compare");
    let output = Command::new(program).args(at.map(|at| format!("{at}@127.0.0.1"))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(received.join().unwrap(), b"hello");

    let Some(program) = of_others("../../docs/examples/compare/usrsctp.c", "usrsctp", "libusrsctp-dev") else { return };
    let (at, received) = server(&Protection::Plain);
    let output = Command::new(program).args(["127.0.0.1", &at[0].port().to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(received.join().unwrap(), b"hello");
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
