//! `braidcast doctor` in network namespaces of the test's own: what is in the way is named, with what to do about it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real files and real networks")]

use crate::common::network::{There, has_nft, in_namespace, ip, runs};
use crate::common::{Ran, Running, Test, command, len, transport_stream, until};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command of `braidcast` in the other network, once it has said `word`.
fn there(there: &There, dir: &Path, args: &str, word: &str) -> Running {
    let mut command = there.command(env!("CARGO_BIN_EXE_braidcast"));
    command.args(args.split_whitespace()).current_dir(dir).env("XDG_CONFIG_HOME", dir.join("config"));
    Running::spawn(command, Stdio::null()).wait_for(word)
}

/// What `doctor` says with these arguments.
fn doctor(dir: &Path, args: &str) -> Ran {
    let output = command(dir).arg("doctor").args(args.split_whitespace()).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran { status: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr }
}

/// Returns `true` if one finding of this level has both words, in what it says and in what to do.
fn finds(said: &Value, level: &str, what: &str, fix: &str) -> bool {
    let has = |it: &Value, key: &str, word: &str| it[key].as_str().is_some_and(|text| text.contains(word));
    said["findings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|it| it["level"] == level && has(it, "what", what) && has(it, "fix", fix))
}

#[test]
fn a_receiver_answers_beside_its_stream_which_notices_nothing() {
    in_namespace("doctor::a_receiver_answers_beside_its_stream_which_notices_nothing", |dir| {
        let other = There::new();
        transport_stream(dir, 30);
        let receiver = there(&other, dir, "receive 9000 out.ts", "listening");
        let said = doctor(dir, "10.9.0.2:9000 --json");
        said.says(0, &[]);
        let said = said.json();
        let path = &said["paths"][0];
        assert_eq!((&path["state"], &path["other"]), (&"answers".into(), &"receiver".into()), "{said:#}");
        assert_eq!((&path["mtu"], &path["ecn"]), (&1500.into(), &"kept".into()), "{said:#}");
        assert!(path["seen_as"].as_str().unwrap().starts_with("10.9.0.1:"), "{said:#}");
        assert_eq!(said["nats"][0]["kind"], "none", "{said:#}");
        assert!(!dir.join("out.ts").exists(), "no stream began");

        let sender = Running::start(dir, "send clip.ts --to 10.9.0.2:9000").wait_for("connected");
        until("the stream to flow", || len(&dir.join("out.ts")) > 100_000);
        doctor(dir, "10.9.0.2:9000").says(0, &[]);
        let before = len(&dir.join("out.ts"));
        until("the stream to flow on", || len(&dir.join("out.ts")) > before + 100_000);
        sender.interrupt();
        let sent = sender.finish();
        let received = receiver.finish();
        sent.says(0, &[]);
        received.says(0, &[]);
        for word in ["turned away", "refused", "restart", "lost the"] {
            assert!(!received.stderr.contains(word), "{}", received.stderr);
        }
    });
}

#[test]
fn a_perf_server_says_what_a_small_path_carries_and_a_closed_port_that_it_is_closed() {
    in_namespace("doctor::a_perf_server_says_what_a_small_path_carries_and_a_closed_port_that_it_is_closed", |dir| {
        let other = There::new();
        ip("link set here mtu 1000");
        assert!(runs(other.command("ip").args("link set there mtu 1000".split(' '))));
        let _server = there(&other, dir, "perf server 9000 --keep", "listening");
        let said = doctor(dir, "10.9.0.2:9000,10.9.0.2:9001 --duration 1s --json");
        said.says(0, &[]);
        let said = said.json();
        let (open, closed) = (&said["paths"][0], &said["paths"][1]);
        assert_eq!(open["other"], "perf-server", "{said:#}");
        assert!((800..=1000).contains(&open["mtu"].as_u64().unwrap()), "{said:#}");
        assert!(open["carried"]["bits_per_second"].as_f64().unwrap() > 1e5, "{said:#}");
        assert!(open["clock_ahead_ms"].as_f64().unwrap().abs() < 500.0, "both ends have one clock: {said:#}");
        assert_eq!(closed["state"], "silent");
        assert!(finds(&said, "bad", "nobody listens on that port", "braidcast receive 9001"), "{said:#}");
        assert!(finds(&said, "doubtful", "the longest packets that get through", ""), "{said:#}");
        assert!(finds(&said, "good", "an encoder may make", ""), "{said:#}");

        let said = doctor(dir, "10.9.0.2:9001");
        said.says(1, &["no stream could go from here"]);
        assert!(said.out().contains("bad: 10.9.0.2:9001: refused"), "{}", said.out());
    });
}

#[test]
fn nats_dead_addresses_and_tables_that_nothing_leads_to_are_named() {
    in_namespace("doctor::nats_dead_addresses_and_tables_that_nothing_leads_to_are_named", |dir| {
        if !has_nft() {
            return;
        }
        let other = There::new();
        // Its packets leave from an address that a NAT takes away, with a port for each destination.
        ip("addr add 192.168.7.1/32 dev lo");
        ip("route change 10.9.0.0/24 dev here src 192.168.7.1");
        let rules = "table ip nat { chain post { type nat hook postrouting priority 100; ip saddr 192.168.7.1 masquerade fully-random; }; }";
        assert!(runs(Command::new("nft").arg(rules)), "no NAT");
        // Where no answer comes from.
        ip("addr add fd00::1/64 dev here nodad");
        assert!(runs(other.command("ip").args("addr add fd00::2/64 dev there nodad".split(' '))));
        assert!(runs(
            other
                .command("nft")
                .arg("table ip6 f { chain in { type filter hook input priority 0; udp dport 9001 drop; }; }")
        ));
        // A modem whose route is in a table of its own.
        for words in [
            "link add modem type veth peer name tower",
            "link set tower up",
            "addr add 10.7.0.1/24 dev modem",
            "link set modem up",
            "route add default via 10.7.0.2 dev modem table 17",
        ] {
            ip(words);
        }
        let _relay = there(&other, dir, "relay 9001,9002 --open", "relaying at");
        let said = doctor(dir, "10.9.0.2:9001,10.9.0.2:9002,[fd00::2]:9001 --json");
        said.says(0, &[]);
        let said = said.json();
        assert_eq!(
            (&said["paths"][0]["other"], &said["paths"][2]["state"]),
            (&"relay".into(), &"silent".into()),
            "{said:#}"
        );
        assert!(finds(&said, "doubtful", "IPv6 does not get through", "10.9.0.2:9001"), "{said:#}");
        assert_eq!(said["nats"][0]["kind"], "symmetric", "{said:#}");

        let said = doctor(dir, "10.9.0.2:9002 --via 192.168.7.1,modem");
        said.says(0, &[]);
        assert!(said.out().contains("ip rule add from 10.7.0.1 lookup 17"), "{}", said.out());
    });
}

#[test]
fn this_machine_alone_is_a_table_of_its_networks() {
    in_namespace("doctor::this_machine_alone_is_a_table_of_its_networks", |dir| {
        let _other = There::new();
        let said = doctor(dir, "");
        said.says(1, &["no stream could go"]);
        assert!(said.out().contains("there is no default route"), "{}", said.out());
        ip("route add default via 10.9.0.2");
        let said = doctor(dir, "--json");
        said.says(0, &[]);
        let here = &said.json()["interfaces"][0];
        assert_eq!((&here["name"], &here["defaults"][0]["gateway"]), (&"here".into(), &"10.9.0.2".into()));
        doctor(dir, "nowhere.invalid:9000").says(1, &[]);
    });
}

#[test]
fn wrong_use_is_told() {
    Test::new("doctor home.example").run().says(2, &["home.example"]);
    Test::new("doctor 127.0.0.1:9000 --duration 2min").run().says(2, &["1s to 60s"]);
    Test::new("doctor braid:abc").run().says(2, &["cut off"]);
}
