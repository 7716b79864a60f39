//! The example `telemetry`, over two lossy networks to a server that is killed and started again.

mod build;
#[path = "../../../crates/braidcast/tests/programs/mod.rs"]
mod programs;

use braidcast_socket::{Event, Identity, SendOptions, Socket, Trust};
use programs::{Folder, Networks, Program};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const SERVER: &str = "BRAIDCAST_TEST_SERVER";
const FILE: u32 = 2;
const ACK: u32 = 3;
const COMMAND: u32 = 4;
const BEGIN: u32 = 5;

/// A process of its own, so that it can be killed: the same binary with this one test.
#[test]
#[ignore = "the other test starts it"]
fn server() {
    let Ok(args) = std::env::var(SERVER) else { return };
    let args: Vec<&str> = args.split_whitespace().collect();
    let [own, client, path, addresses @ ..] = &args[..] else { panic!("{args:?}") };
    let (own, trust) = (Identity::load(own).unwrap(), Trust::only([client]).unwrap());
    let mut socket = Socket::builder().identity(own, trust).build().unwrap();
    for address in addresses {
        println!("\nlistening at {}", socket.bind(address.parse().unwrap()).unwrap());
    }
    socket.listen();
    let (mut file, mut message) = (std::fs::File::options().create(true).append(true).open(path).unwrap(), Vec::new());
    let mut there = file.metadata().unwrap().len();
    let how = |ppid| SendOptions::new().stream(2).ppid(ppid);
    loop {
        let Some((id, event)) = socket.poll(Some(Duration::from_secs(60))).unwrap() else { return };
        match event {
            Event::Connected => socket.send(id, b"turn left", &how(COMMAND)).unwrap(),
            Event::Readable => {
                let Some(received) = socket.recv(id, &mut message).unwrap() else { continue };
                if received.ppid == FILE && message[..8] == there.to_be_bytes() {
                    file.write_all(&message[8..]).unwrap();
                    there += message.len() as u64 - 8;
                }
                if received.ppid == FILE || received.ppid == BEGIN {
                    _ = socket.send(id, &there.to_be_bytes(), &how(ACK));
                }
                if there == 700_000 {
                    socket.abort(id, 5, "it is all there").unwrap();
                }
            }
            _ => {}
        }
    }
}

#[test]
fn a_vehicle_goes_on_whatever_happens_to_its_server_and_networks() {
    let folder = Folder::new("telemetry-c");
    let [home, car] = ["home", "car"].map(|name| Identity::load_or_create(folder.path(name)).unwrap().fingerprint());
    let data: Vec<u8> = (0..700_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.path("data"), &data).unwrap();
    let start = |at: [&str; 2]| {
        let args = [&folder.path("home"), &car.to_string(), &folder.path("came"), at[0], at[1]].join(" ");
        let mut command = Command::new(std::env::current_exe().unwrap());
        Program::start(command.args(["--exact", "server", "--ignored", "--nocapture"]).env(SERVER, args))
    };
    let mut server = start(["127.0.0.1:0"; 2]);
    let Networks { ports, alive, through } = Networks::to(&server);
    let program = build::build("examples/telemetry.c", "telemetry");
    let (own, home, file) = (folder.path("car"), home.to_string(), folder.path("data"));
    let client = Program::start(Command::new(program).args([&own, &home, "120", &file]).args(&through));

    client.wait_for("command: turn left");
    let there = |line: &String| line.strip_prefix("the server has ")?.split(' ').next()?.parse::<usize>().ok();
    client.wait("a part of the file", |lines| lines.iter().filter_map(there).find(|it| *it > 100_000));
    server.signal("-KILL");
    server.process.wait().unwrap();
    let _server = start([&ports[0], &ports[1]]);
    client.wait_for("closed: reason ");
    alive[0].store(false, Relaxed);
    client.wait_for(&format!("{} is down", through[0]));
    client.wait_for("closed: reason 3, code 5: it is all there");
    assert!(std::fs::read(folder.path("came")).unwrap() == data, "the file is another one");
    client.wait_for(" sent, ");
}
