//! Tickets and `braidcast relay`, on one machine.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::network::{in_namespace, ip};
use crate::common::{Ran, Running, Test, command, free_port, len, transport_stream, until};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs `braidcast` in `dir` to its end.
fn run(dir: &Path, args: &str) -> Ran {
    let mut command = command(dir);
    command.args(args.split_whitespace());
    Running::spawn(command, Stdio::null()).finish()
}

/// `receive` with these arguments, and its ticket in the file `ticket`.
fn receive(dir: &Path, args: &str) -> Running {
    prints_ticket(dir, &format!("receive {args}"), "sender")
}

/// A command that prints its ticket, which is for `user`, and the ticket in the file `ticket`.
fn prints_ticket(dir: &Path, args: &str, user: &str) -> Running {
    let own = command(dir);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {} {args} > ticket", env!("CARGO_BIN_EXE_braidcast"))]);
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(dir);
    let running = Running::spawn(command, Stdio::null()).wait_for(&format!("the ticket for the {user}"));
    until("the ticket", || len(&dir.join("ticket")) > 100);
    running
}

fn relay(dir: &Path, port: u16, args: &str) -> Running {
    Running::start(dir, &format!("relay 127.0.0.1:{port} {args}")).wait_for("relaying at")
}

#[test]
fn a_ticket_by_a_relay_is_all_that_a_sender_needs_and_both_ends_are_known() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    let clip = transport_stream(dir, 3);
    let relay = relay(dir, port, "--open --json");
    let receive = receive(dir, &format!("--relay 127.0.0.1:{port} out.ts --relay-only"));
    let receiver = receive.wait_for("which sees it as 127.0.0.1:");
    let sent = run(dir, "send clip.ts --to @ticket --latency 2s --json");
    sent.says(0, &["connecting to 127.0.0.1:", "connected", "is at the relay"]);
    assert_eq!(sent.json()["security"]["authenticated"], true, "{}", sent.json());
    receiver.finish().says(0, &["path ", " by 127.0.0.1:"]);
    assert!(fs::read(dir.join("out.ts")).unwrap() == fs::read(clip).unwrap(), "not the same bytes");
    relay.interrupt();
    let carried = relay.finish().json();
    let client = &carried["clients"][0];
    assert_eq!((&client["name"], &client["over_rate"]), (&"127.0.0.1".into(), &0.into()), "{carried}");
    assert!(client["bytes"].as_u64().unwrap() > len(&dir.join("clip.ts")), "{carried}");
}

#[test]
fn a_measurement_goes_by_a_relay_and_by_two_of_them() {
    let (dir, ports) = (tempfile::tempdir().unwrap(), [free_port(), free_port()]);
    let dir = dir.path();
    let _relays = ports.map(|port| relay(dir, port, "--open --threads 2"));
    let relays = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let server = prints_ticket(dir, &format!("perf server --relay {relays} --relay-only"), "client");
    let sent = run(dir, "perf client @ticket --duration 6s --scheduler round-robin --json");
    sent.says(0, &["connecting to 127.0.0.1:", "is at the relay", "connected"]);
    assert_eq!(sent.json()["security"]["authenticated"], true, "{}", sent.json());
    let paths = sent.json()["paths"].as_array().unwrap().clone();
    assert!(paths.len() == 2 && paths.iter().all(|it| it["sent_bytes"].as_u64() > Some(100_000)), "{paths:?}");
    server.finish().says(0, &[]);
    let said = fs::read_to_string(dir.join("ticket")).unwrap();
    assert!(said.contains(&format!("RESULT bytes={}", sent.json()["bytes"])), "{said}");
}

#[test]
fn a_tunnel_goes_by_a_relay_until_its_ticket_is_revoked() {
    let (dir, [port, entrance]) = (tempfile::tempdir().unwrap(), crate::common::free_ports());
    let dir = dir.path();
    let _relay = relay(dir, port, "--open");
    let (application, answer) = (UdpSocket::bind("127.0.0.1:0").unwrap(), &mut [0; 100]);
    let forward = application.local_addr().unwrap();
    let made = run(dir, &format!("key ticket office --relay 127.0.0.1:{port}"));
    fs::write(dir.join("ticket"), &made.stdout).unwrap();
    let server = format!("tunnel server --over sctp --relay 127.0.0.1:{port} --ticket office --forward {forward}");
    let server = Running::start(dir, &server).wait_for("which sees it as 127.0.0.1:");
    let client = format!("tunnel client --over sctp --to @ticket --listen {entrance} --relay-only");
    let client = Running::start(dir, &client).wait_for("connected with");
    let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
    asking.connect(("127.0.0.1", entrance)).unwrap();
    for socket in [&asking, &application] {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    asking.send(b"question").unwrap();
    let (len, from) = application.recv_from(answer).unwrap();
    application.send_to(&answer[..len], from).unwrap();
    assert_eq!(asking.recv(answer).unwrap(), 8);
    run(dir, "key revoke office").says(0, &[]);
    drop(server.wait_for("the ticket was revoked"));
    drop(client.wait_for("no connection with"));
}

#[test]
fn a_server_of_measurements_ends_with_its_ticket() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    let _relay = relay(dir, port, "--open");
    run(dir, &format!("key ticket lab --relay 127.0.0.1:{port}")).says(0, &[]);
    let server = Running::start(dir, &format!("perf server --relay 127.0.0.1:{port} --ticket lab --keep"));
    let server = server.wait_for("is at the relay");
    run(dir, "key revoke lab").says(0, &[]);
    server.finish().says(0, &["the ticket was revoked"]);
}

/// A program that asks again and again takes the processor from those that it measures.
#[test]
fn who_waits_at_a_relay_sleeps() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    let is_asleep = |program: &Running| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S'))
    };
    let relay = relay(dir, port, "--open --threads 1");
    until("the relay to sleep", || is_asleep(&relay));
    for server in ["perf server", "tunnel server --over sctp --forward 127.0.0.1:9", "receive out.ts"] {
        let server = Running::start(dir, &format!("{server} --relay 127.0.0.1:{port}"));
        let server = server.wait_for("is at the relay");
        until("a server to sleep", || is_asleep(&server));
    }
}

#[test]
fn what_does_not_go_with_a_relay_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (args, said) in [
        ("tunnel server --relay 127.0.0.1:1 --forward 127.0.0.1:9", "a tunnel by a relay goes over SCTP"),
        ("tunnel client --to @ticket --listen 0", "cannot read the ticket"),
        ("tunnel server 9000 --relay 127.0.0.1:1 --forward 127.0.0.1:9", "cannot be used with"),
        ("tunnel server 9000 --ticket office --forward 127.0.0.1:9", "--ticket is for --relay"),
        ("tunnel server --from 127.0.0.1:1 --relay-only --forward 127.0.0.1:9", "--relay-only is for --relay"),
        ("perf server 9000 --relay-key file", "--relay-key is for --relay"),
        ("receive --from 127.0.0.1:1 --relay-only out.ts", "--relay-only is for --relay"),
        ("tunnel server --relay 127.0.0.1:1 --over sctp --key open-sesame-2026 --forward 127.0.0.1:9", "--key"),
        ("perf server --relay 127.0.0.1:1 --dccp ccid3", "--dccp does not go with --relay"),
        ("perf server --relay 127.0.0.1:1 --via lo,127.0.0.1", "one network is enough"),
        ("perf client @ticket --to 127.0.0.1:1", "cannot read the ticket"),
        ("perf client 127.0.0.1:1 --relay-only", "--relay-only needs a ticket by a relay"),
    ] {
        run(dir, args).says(2, &[said]);
    }
}

#[test]
fn a_second_relay_at_a_port_is_refused_however_many_threads_the_first_has() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    let _relay = relay(dir, port, "--open --threads 3");
    run(dir, &format!("relay 127.0.0.1:{port} --open --threads 3")).says(1, &["is in use by another program"]);
}

/// Privileges are dropped once every thread has its socket.
#[test]
fn a_relay_on_several_threads_may_have_a_port_that_needs_privileges() {
    in_namespace("tickets::a_relay_on_several_threads_may_have_a_port_that_needs_privileges", |dir| {
        ip("link set lo up");
        drop(relay(dir, 443, "--open --threads 3"));
    });
}

#[test]
fn each_of_two_relays_is_a_path_for_each_network_and_one_may_go() {
    let (dir, ports) = (tempfile::tempdir().unwrap(), [free_port(), free_port()]);
    let dir = dir.path();
    transport_stream(dir, 30);
    let [first, _second] = ports.map(|port| relay(dir, port, "--open"));
    let relays = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let _receiver = receive(dir, &format!("--relay {relays} out.ts"));
    let mut sender = Running::start(dir, "send clip.ts --to @ticket --via lo,127.0.0.1 --relay-only");
    for port in ports {
        for network in ["lo", "127.0.0.1"] {
            sender = sender.wait_for(&format!("{network} to 127.0.0.1:{port} is up"));
        }
    }
    first.kill();
    let sender = sender.wait_for("does not answer; going on without it");
    let had = len(&dir.join("out.ts"));
    until("the stream over the other one", || len(&dir.join("out.ts")) > had + 200_000);
    assert!(!sender.said().contains("reconnecting"), "{}", sender.said());
}

#[test]
fn a_ticket_without_a_relay_leads_to_the_port_and_nobody_else_is_let_in() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    let clip = transport_stream(dir, 2);
    let receiver = receive(dir, &format!("127.0.0.1:{port} out.ts --ticket"));
    let stranger = Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{port} --give-up 20s"));
    let receiver = receiver.wait_for("a sender was turned away");
    stranger.kill();
    run(dir, "send clip.ts --to @ticket --latency 2s").says(0, &["authenticated"]);
    let received = receiver.finish();
    received.says(0, &[]);
    let came = fs::read(dir.join("out.ts")).unwrap();
    assert!(came == fs::read(clip).unwrap(), "not the same bytes: {} came; {}", came.len(), received.stderr);
}

#[test]
fn a_ticket_that_lasts_is_the_same_after_a_restart_until_it_is_revoked() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    transport_stream(dir, 30);
    let _relay = relay(dir, port, "--open");
    let made = run(dir, &format!("key ticket cam1 --relay 127.0.0.1:{port} --until 2099-12-31"));
    made.says(0, &[]);
    let ticket = made.out().trim().to_owned();
    assert!(ticket.starts_with("braid:"), "{ticket}");
    let start = || receive(dir, &format!("--relay 127.0.0.1:{port} out.ts --ticket=cam1 --keep --overwrite"));
    let receiver = start();
    assert_eq!(fs::read_to_string(dir.join("ticket")).unwrap().trim(), ticket);
    let sender = Running::start(dir, &format!("send clip.ts --to {ticket} --end-with-receiver")).wait_for("connected");
    until("the stream", || len(&dir.join("out.ts")) > 100_000);
    receiver.kill();
    let receiver = start().wait_for("a sender is there");
    let sender = sender.wait_for("reconnecting");
    let all = run(dir, "key tickets");
    assert!(all.out().contains(&format!("cam1: relay 127.0.0.1:{port}, good until 2100-01-01")), "{}", all.out());
    assert!(!all.out().contains("braid:"), "the list shows no secret");
    run(dir, "key revoke cam1").says(0, &[]);
    let _receiver = receiver.wait_for("the ticket was revoked");
    sender.finish().says(1, &[]);
    run(dir, "key ticket cam1").says(2, &["there is no ticket called cam1", "--relay HOST:PORT"]);
}

#[test]
fn a_relay_with_a_list_takes_who_is_in_it_and_sighup_reads_it_again() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    transport_stream(dir, 2);
    let fingerprint = run(dir, "key identity relay.key").out().trim().to_owned();
    fs::write(dir.join("list"), "# nobody yet\n").unwrap();
    let relay = relay(dir, port, "--authorized list");
    let receive = |args: &str| receive(dir, &format!("--relay 127.0.0.1:{port} out.ts {args}"));
    receive("").wait_for("the relay does not know this end's key").kill();
    let receiver = receive("--relay-key relay.key").wait_for("its --authorized file needs the fingerprint");
    fs::write(dir.join("list"), format!("{fingerprint} studio max-rate=50mbit circuits=1\n")).unwrap();
    relay.signal("HUP");
    let relay = relay.wait_for("was read again");
    let receiver = receiver.wait_for("which sees it as");
    run(dir, "send clip.ts --to @ticket").says(0, &[]);
    receiver.finish().says(0, &[]);
    relay.kill();
}

#[test]
fn on_a_terminal_a_ticket_is_a_qr_code_too() {
    let dir = tempfile::tempdir().unwrap();
    let line = format!("{} key ticket cam1 --to home.example:9000", env!("CARGO_BIN_EXE_braidcast"));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("XDG_CONFIG_HOME", dir.path().join("config"));
    let shown = String::from_utf8(script.output().unwrap().stdout).unwrap();
    assert!(
        shown.starts_with("braid:") && shown.lines().filter(|line| line.contains('\u{2588}')).count() > 15,
        "{shown}"
    );
    let again = run(dir.path(), "key ticket cam1");
    assert_eq!(again.out().lines().collect::<Vec<_>>(), [shown.lines().next().unwrap()], "a line alone for programs");
}

#[test]
fn wrong_old_and_cut_tickets_and_wrong_uses_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("clip.ts"), [0x47; 188]).unwrap();
    let old = run(dir, "key ticket old --to home.example:9000 --until 2020-01-01").out().trim().to_owned();
    run(dir, &format!("send clip.ts --to {old}")).says(2, &["was good until 2020-01-02", "a new one"]);
    run(dir, "receive 9000 out.ts --ticket=old").says(2, &["last day of this ticket is over"]);
    let cut = &old[..old.len() - 7];
    run(dir, &format!("send clip.ts --to {cut}")).says(2, &["cut off or a character is wrong"]);
    fs::write(dir.join("cut"), cut).unwrap();
    run(dir, "send clip.ts --to @cut").says(2, &["cut: the ticket is cut off"]);
    run(dir, "send clip.ts --to @none").says(2, &["cannot read the ticket in none"]);
    let new = run(dir, "key ticket new --to home.example:9000").out().trim().to_owned();
    run(dir, &format!("send clip.ts --to {new},other.example:9000")).says(2, &["give the ticket alone"]);
    run(dir, &format!("send clip.ts --to {new} --key open-sesame-2026")).says(2, &["does not go with a ticket"]);
    run(dir, "key revoke nobody").says(2, &["there is no ticket called nobody"]);
    for (args, words) in [
        ("send - --to a:1 --relay-only", &["--relay-only needs a ticket"] as &[&str]),
        ("relay 9000", &["--authorized", "--open"]),
        ("relay 9000 --open --members 1", &["2..=65536"]),
        ("receive --relay a:1", &["no <OUTPUT>"]),
        ("receive --relay a:1 --from b:1 out.ts", &["--relay", "--from"]),
        ("receive --relay a:1 out.ts --key open-sesame-2026", &["--relay", "--key"]),
        ("receive --relay a:1 out.ts --via x,y", &["one network is enough"]),
        ("receive 0 out.ts --ticket", &["a ticket needs a certain port"]),
        ("receive 9000 out.ts --ticket=../x", &["letters, digits"]),
        ("receive 9000 out.ts --ticket --plain", &["--ticket", "--plain"]),
    ] {
        Test::new(args).run().says(2, words);
    }
}
