//! Names and routes that change while a stream runs, in network namespaces of the test's own.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real files and real networks")]

use crate::common::network::{There, in_namespace, ip, runs};
use crate::common::{Running, len, transport_stream, until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What /etc/hosts of this process and its children says from now on; written in place.
pub(crate) fn hosts(dir: &Path, lines: &str) {
    let file = dir.join("hosts");
    let is_new = !file.exists();
    fs::write(&file, format!("127.0.0.1 localhost\n{lines}\n")).unwrap();
    if is_new {
        assert!(runs(Command::new("mount").arg("--bind").arg(&file).arg("/etc/hosts")), "no mount");
    }
}

/// A receiver in the other network.
fn receive(there: &There, dir: &Path) -> Running {
    let mut command = there.command(env!("CARGO_BIN_EXE_braidcast"));
    command.args(["receive", "9000", "out.ts", "--keep"]).current_dir(dir);
    Running::spawn(command, Stdio::null()).wait_for("listening")
}

/// The receiver writes more than it has.
fn until_it_flows(dir: &Path) {
    let out = dir.join("out.ts");
    let before = len(&out);
    until("the stream to flow", || len(&out) > before + 100_000);
}

#[test]
fn a_name_is_waited_for_its_dead_address_passed_by_and_its_new_one_followed() {
    in_namespace("reach::a_name_is_waited_for_its_dead_address_passed_by_and_its_new_one_followed", |dir| {
        let there = There::new();
        transport_stream(dir, 30);
        let _receiver = receive(&there, dir);
        hosts(dir, "");
        let sender = Running::start(dir, "send clip.ts --to home.example:9000").wait_for("not known yet");
        hosts(dir, "10.9.0.3 home.example\n10.9.0.2 home.example");
        let sender = sender.wait_for("connected");
        until_it_flows(dir);
        for change in ["addr add 10.9.0.4/24 dev there", "addr del 10.9.0.2/24 dev there"] {
            assert!(runs(there.command("ip").args(change.split(' '))), "{change}");
        }
        // Without its first address the kernel may take those of the same network away, too.
        _ = runs(there.command("ip").args("addr add 10.9.0.4/24 dev there".split(' ')));
        hosts(dir, "10.9.0.4 home.example");
        let sender = sender.wait_for("home.example is at 10.9.0.4 now");
        until_it_flows(dir);
        sender.kill();
    });
}

#[test]
fn the_stream_follows_the_routing_table_to_another_network() {
    in_namespace("reach::the_stream_follows_the_routing_table_to_another_network", |dir| {
        let there = There::new();
        for command in ["addr add 10.9.9.9/32 dev lo", "addr add 10.8.0.2/24 dev there"] {
            assert!(runs(there.command("ip").args(command.split(' '))), "{command}");
        }
        // Another address of the same cable: what comes from the first one is not answered below.
        ip("addr add 10.8.0.1/24 dev here");
        ip("route add 10.9.9.9 via 10.9.0.2 src 10.9.0.1");
        transport_stream(dir, 30);
        let _receiver = receive(&there, dir);
        let sender = Running::start(dir, "send clip.ts --to 10.9.9.9:9000").wait_for("connected");
        until_it_flows(dir);
        assert!(runs(there.command("ip").args("route add blackhole 10.9.0.1/32".split(' '))));
        sleep(Duration::from_millis(300));
        ip("route replace 10.9.9.9 via 10.8.0.2 src 10.8.0.1");
        until_it_flows(dir);
        sender.kill();
    });
}

#[test]
fn who_refuses_and_who_cannot_be_reached_is_named() {
    in_namespace("reach::who_refuses_and_who_cannot_be_reached_is_named", |dir| {
        let _there = There::new();
        transport_stream(dir, 1);
        let to = |to: &str, word: &str| Running::start(dir, &format!("send clip.ts --to {to}")).wait_for(word).kill();
        to("10.9.0.2:9000", "nobody listens on that port");
        to("192.0.2.1:9000", "has no route there");
        ip("link add plain type veth peer name other");
        ip("link set other up");
        ip("addr add 10.7.0.1/24 dev plain");
        ip("link set plain up");
        // The kernel says so a moment later; until then there is no such network.
        let link = || Command::new("ip").args(["-oneline", "link", "show", "plain"]).output().unwrap().stdout;
        until("plain to be up", || String::from_utf8_lossy(&link()).contains("state UP"));
        let sender = Running::start(dir, "send clip.ts --to [2001:db8::1]:9000 --via plain");
        sender.wait_for("plain has no IPv6 address").kill();
    });
}
