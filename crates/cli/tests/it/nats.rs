//! Two ends behind NATs of their own, both with the same private network, and a relay between them.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real files and real networks")]

use crate::common::network::{Namespace, has_nft, in_namespace, ip, runs};
use crate::common::{Running, len, transport_stream, until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Whom a NAT lets in. All but the symmetric one keep a port for all destinations.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Nat {
    /// Anybody.
    FullCone,
    /// From addresses that something was sent to.
    AddressRestricted,
    /// From addresses and ports that something was sent to.
    PortRestricted,
    /// The same, with another port for each destination.
    Symmetric,
}

impl Nat {
    const ALL: [Self; 4] = [Self::FullCone, Self::AddressRestricted, Self::PortRestricted, Self::Symmetric];

    /// Returns `true` if two ends behind such NATs can open them for each other.
    fn opens_for(self, other: Self) -> bool {
        let symmetric = [self, other].contains(&Self::Symmetric);
        !(symmetric && [self, other].iter().all(|it| matches!(it, Self::PortRestricted | Self::Symmetric)))
    }

    /// What makes one of a router.
    fn rules(self) -> String {
        let masquerade = if self == Self::Symmetric { "masquerade fully-random" } else { "masquerade" };
        let whom = match self {
            Self::FullCone => "",
            Self::AddressRestricted => "ip saddr @seen ",
            Self::PortRestricted | Self::Symmetric => "ip saddr 192.0.2.255 ",
        };
        format!(
            "table ip router {{
                set seen {{ type ipv4_addr; flags dynamic,timeout; timeout 5m; }}
                chain post {{
                    type nat hook postrouting priority 100;
                    oifname wan add @seen {{ ip daddr }}
                    oifname wan {masquerade}
                }}
                chain pre {{
                    type nat hook prerouting priority -100;
                    iifname wan {whom}udp dport 1024-65535 dnat to 192.168.1.2
                }}
                chain input {{ type filter hook input priority 0; policy drop; }}
            }}"
        )
    }
}

/// A host in a private network, and the router before it.
struct Site {
    host: Namespace,
    router: Namespace,
}

impl Site {
    /// The router is 203.0.113.`last`; the host 192.168.1.2 behind it.
    fn new(last: u8, nat: Nat) -> Self {
        let (host, router) = (Namespace::new(), Namespace::new());
        ip(&format!("link add o{last} type veth peer name wan netns {}", router.pid()));
        ip(&format!("link set o{last} master internet up"));
        router.ip(&format!("addr add 203.0.113.{last}/24 dev wan"));
        router.ip("link set wan up");
        host.ip(&format!("link add eth0 type veth peer name lan netns {}", router.pid()));
        host.ip("addr add 192.168.1.2/24 dev eth0");
        host.ip("link set eth0 up");
        host.ip("route add default via 192.168.1.1");
        router.ip("addr add 192.168.1.1/24 dev lan");
        router.ip("link set lan up");
        let rules = format!("echo 1 > /proc/sys/net/ipv4/ip_forward && nft '{}'", nat.rules());
        assert!(runs(router.command("sh").args(["-c", &rules])), "{nat:?}");
        Self { host, router }
    }

    fn run(&self, dir: &Path, args: &str) -> Running {
        let mut command = self.host.command(env!("CARGO_BIN_EXE_braidcast"));
        command.args(args.split_whitespace()).current_dir(dir).env("XDG_CONFIG_HOME", dir.join("config"));
        Running::spawn(command, Stdio::null())
    }
}

/// The network between the routers, in which the test itself is: 203.0.113.1.
fn internet() -> bool {
    if !has_nft() {
        return false;
    }
    for words in [
        "link set lo up",
        "link add internet type bridge",
        "addr add 203.0.113.1/24 dev internet",
        "link set internet up",
    ] {
        ip(words);
    }
    true
}

fn relay(dir: &Path) -> Running {
    Running::start(dir, "relay 203.0.113.1:9000 --open").wait_for("relaying at")
}

/// A ticket by the relay, and the receiver behind its NAT.
fn receive(home: &Site, dir: &Path, more: &str) -> Running {
    let made = Command::new(env!("CARGO_BIN_EXE_braidcast"))
        .args("key ticket home --relay 203.0.113.1:9000".split(' '))
        .env("XDG_CONFIG_HOME", dir.join("config"))
        .output()
        .unwrap();
    fs::write(dir.join("ticket"), made.stdout).unwrap();
    home.run(dir, &format!("receive --relay 203.0.113.1:9000 --ticket=home out.ts --keep {more}"))
        .wait_for("which sees it as 203.0.113.")
}

/// Waits until the file has grown by `bytes`; the longest time in which it got none. `act` is called again and again
/// with the time since the beginning.
fn flow(out: &Path, bytes: u64, mut act: impl FnMut(Duration)) -> Duration {
    let (began, mut grew, mut longest, mut had) = (Instant::now(), Instant::now(), Duration::ZERO, len(out));
    let end = had + bytes;
    until("the stream to go on", || {
        act(began.elapsed());
        if len(out) > had {
            (longest, grew, had) = (longest.max(grew.elapsed()), Instant::now(), len(out));
        }
        had > end
    });
    longest
}

/// Has a stream go between two ends behind these NATs; returns how long it took to play, and `true` if it went past
/// the relay in the end.
fn play(dir: &Path, number: u8, pair: [Nat; 2]) -> (Duration, bool) {
    let [home, field] = [0, 1].map(|end| Site::new(10 + 2 * number + end, pair[usize::from(end)]));
    let receiver = receive(&home, dir, "");
    let (out, began) = (dir.join("out.ts"), Instant::now());
    let sender = field.run(dir, "send clip.ts --to @ticket").wait_for("connected");
    until("the stream", || len(&out) > 20_000);
    let took = began.elapsed();
    // Addresses are tried for two seconds.
    let sender = if pair[0].opens_for(pair[1]) { sender.wait_for("straight is up") } else { sender };
    flow(&out, if pair[0].opens_for(pair[1]) { 50_000 } else { 350_000 }, |_| {});
    sender.interrupt();
    let said = sender.finish().stderr;
    receiver.kill();
    fs::remove_file(out).unwrap();
    (took, said.contains("straight is up"))
}

#[test]
fn ends_behind_nats_meet_at_the_relay_and_go_past_it_where_the_nats_allow_it() {
    in_namespace("nats::ends_behind_nats_meet_at_the_relay_and_go_past_it_where_the_nats_allow_it", |dir| {
        if !internet() {
            return;
        }
        transport_stream(dir, 20);
        let _relay = relay(dir);
        let pairs = [
            [Nat::PortRestricted, Nat::PortRestricted],
            [Nat::FullCone, Nat::Symmetric],
            [Nat::Symmetric, Nat::AddressRestricted],
            [Nat::Symmetric, Nat::PortRestricted],
        ];
        for (number, pair) in (0..).zip(pairs) {
            let (took, straight) = play(dir, number, pair);
            println!("{pair:?}: playing after {took:?}, straight: {straight}");
            assert_eq!(straight, pair[0].opens_for(pair[1]), "{pair:?}");
        }
    });
}

#[test]
#[ignore = "a minute: makes the table of docs/start/relay.md"]
fn each_pair_of_nats() {
    in_namespace("nats::each_pair_of_nats", |dir| {
        if !internet() {
            return;
        }
        transport_stream(dir, 20);
        let _relay = relay(dir);
        let pairs = Nat::ALL.into_iter().flat_map(|home| Nat::ALL.map(|field| [home, field]));
        for (number, pair) in (0..).zip(pairs) {
            let (took, straight) = play(dir, number, pair);
            println!("{pair:?}: playing after {took:?}, straight: {straight}");
            assert_eq!(straight, pair[0].opens_for(pair[1]), "{pair:?}");
        }
    });
}

#[test]
fn the_relay_is_started_again_and_nats_get_other_addresses_and_one_association_goes_on() {
    in_namespace("nats::the_relay_is_started_again_and_nats_get_other_addresses_and_one_association_goes_on", |dir| {
        if !internet() {
            return;
        }
        transport_stream(dir, 60);
        let first = relay(dir);
        let [home, field] = [10, 11].map(|last| Site::new(last, Nat::PortRestricted));
        let receiver = receive(&home, dir, "--relay-only");
        let sender = field.run(dir, "send clip.ts --to @ticket").wait_for("connected");
        let out = dir.join("out.ts");
        until("the stream", || len(&out) > 300_000);
        first.kill();
        let mut second = None;
        let longest = flow(&out, 400_000, |since| {
            if second.is_none() && since > Duration::from_millis(500) {
                second = Some(relay(dir));
            }
        });
        println!("the relay was away for 0.5 s and more; the longest pause of the output was {longest:?}");
        let (sender, receiver) = (sender.wait_for("again"), receiver.wait_for("again"));
        // Both NATs get another address, and forget what they had.
        for (site, last) in [(&home, 10), (&field, 11)] {
            site.router.ip(&format!("addr add 203.0.113.{}/24 dev wan", last + 100));
            site.router.ip(&format!("addr del 203.0.113.{last}/24 dev wan"));
            _ = site.router.tries("ip", &format!("addr add 203.0.113.{}/24 dev wan", last + 100));
            println!("with another address the longest pause was {:?}", flow(&out, 300_000, |_| {}));
        }
        let said = format!("{}{}", sender.said(), receiver.said());
        assert!(!said.contains("reconnecting") && !said.contains("broke off"), "one association: {said}");
    });
}

/// Both NATs let in answers alone, so the ends can open them for each other.
#[test]
fn past_the_relay_where_the_nats_allow_it_and_back_if_that_ends() {
    in_namespace("nats::past_the_relay_where_the_nats_allow_it_and_back_if_that_ends", |dir| {
        if !internet() {
            return;
        }
        transport_stream(dir, 60);
        let first = relay(dir);
        let [home, field] = [10, 11].map(|last| Site::new(last, Nat::PortRestricted));
        let _receiver = receive(&home, dir, "");
        let sender = field.run(dir, "send clip.ts --to @ticket").wait_for("straight is up");
        let out = dir.join("out.ts");
        first.kill();
        println!("without the relay the longest pause was {:?}", flow(&out, 300_000, |_| {}));
        assert!(!sender.said().contains("reconnecting"), "{}", sender.said());
        // The way past the relay ends, and there is one again.
        let _second = relay(dir);
        let sender = sender.wait_for("again");
        assert!(runs(field.router.command("ip").args("route add blackhole 203.0.113.10".split(' '))));
        println!("back to the relay the longest pause was {:?}", flow(&out, 300_000, |_| {}));
        assert!(!sender.said().contains("reconnecting"), "{}", sender.said());
    });
}
