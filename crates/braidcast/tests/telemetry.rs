//! The examples `telemetry` and `telemetry_server`, as processes of their own, over two lossy
//! networks: the server is killed and started again, a network goes, and a list changes.

mod programs;

use braidcast::Identity;
use programs::{Folder, Networks, Program};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;

/// Starts an example. Tests stand in target/PROFILE/deps.
fn example(name: &str, args: &[&str]) -> Program {
    let program = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "{program:?} is missing: cargo build -p braidcast --features tokio --examples");
    Program::start(Command::new(program).args(args))
}

#[test]
fn a_vehicle_goes_on_whatever_happens_to_its_server_and_networks() {
    let folder = Folder::new("telemetry");
    std::fs::create_dir(folder.path("files")).unwrap();
    let [home, car] = ["home", "car"].map(|name| Identity::load_or_create(folder.path(name)).unwrap().fingerprint());
    let list = folder.path("authorized");
    std::fs::write(&list, format!("{car} car file commands\n")).unwrap();
    let data: Vec<u8> = (0..700_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.path("data"), &data).unwrap();

    let (own, files) = (folder.path("home"), folder.path("files"));
    let start = |at: [&str; 2]| example("telemetry_server", &[&own, &list, &files, at[0], at[1]]);
    let mut server = start(["127.0.0.1:0"; 2]);
    let Networks { ports, alive, through } = Networks::to(&server);
    let home = home.to_string();
    let client =
        example("telemetry", &[&folder.path("car"), &home, "120", &folder.path("data"), &through[0], &through[1]]);

    server.wait_for("car is here");
    server.process.stdin.as_mut().unwrap().write_all(b"car turn left\n").unwrap();
    client.wait_for("command: turn left");
    let there = |line: &String| line.strip_prefix("the server has ")?.split(' ').next()?.parse::<usize>().ok();
    client.wait("a part of the file", |lines| lines.iter().filter_map(there).find(|it| *it > 100_000));
    // Killed: nobody is told.
    server.signal("-KILL");
    server.process.wait().unwrap();
    server = start([&ports[0], &ports[1]]);
    server.wait_for("car is here");
    client.wait_for("closed: ");

    alive[0].store(false, Relaxed);
    client.wait_for(&format!("{} is down", through[0]));
    client.wait("the whole file", |lines| lines.iter().filter_map(there).find(|it| *it == data.len()));
    assert!(std::fs::read(Path::new(&files).join("car")).unwrap() == data, "the file is another one");

    std::fs::write(&list, "").unwrap();
    server.signal("-HUP");
    client.wait_for("closed: aborted by the other end: no longer authorised (code 2)");
    client.wait_for("closed: no secure connection: the other end does not accept our key");
    server.signal("-TERM");
    server.wait_for("ended in good order: true");
    assert!(server.process.wait().unwrap().success());
    let received = |line: &String| line.strip_prefix("car: received ")?.split(',').next()?.parse::<u32>().ok();
    server.wait("what came", |lines| lines.iter().filter_map(received).find(|it| *it > 20));
}
