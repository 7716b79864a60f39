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
pub(crate) enum Nat {
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

    /// What makes one of a router, before the host at `inside`.
    fn rules(self, inside: &str) -> String {
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
                    iifname wan {whom}udp dport 1024-65535 dnat to {inside}
                }}
                chain input {{ type filter hook input priority 0; policy drop; }}
            }}"
        )
    }
}

/// A host in a private network, and the router before it.
pub(crate) struct Site {
    pub(crate) host: Namespace,
    pub(crate) router: Namespace,
}

impl Site {
    /// The router is 203.0.113.`last`; the host 192.168.1.2 behind it.
    pub(crate) fn new(last: u8, nat: Nat) -> Self {
        let router = Namespace::new();
        ip(&format!("link add o{last} type veth peer name wan netns {}", router.pid()));
        ip(&format!("link set o{last} master internet up"));
        router.ip(&format!("addr add 203.0.113.{last}/24 dev wan"));
        router.ip("link set wan up");
        Self::behind(router, nat)
    }

    /// The router is 100.64.0.`last` behind `carrier`.
    fn of(carrier: &Carrier, last: u8, nat: Nat) -> Self {
        let router = Namespace::new();
        let Carrier(above) = carrier;
        above.ip(&format!("link add c{last} type veth peer name wan netns {}", router.pid()));
        above.ip(&format!("link set c{last} master lan up"));
        router.ip(&format!("addr add 100.64.0.{last}/24 dev wan"));
        router.ip("link set wan up");
        router.ip("route add default via 100.64.0.1");
        Self::behind(router, nat)
    }

    fn behind(router: Namespace, nat: Nat) -> Self {
        let host = Namespace::new();
        host.ip(&format!("link add eth0 type veth peer name lan netns {}", router.pid()));
        host.ip("addr add 192.168.1.2/24 dev eth0");
        host.ip("link set eth0 up");
        host.ip("route add default via 192.168.1.1");
        router.ip("addr add 192.168.1.1/24 dev lan");
        router.ip("link set lan up");
        forward(&router, &nat.rules("192.168.1.2"));
        Self { host, router }
    }

    pub(crate) fn run(&self, dir: &Path, args: &str) -> Running {
        let mut command = self.host.command(env!("CARGO_BIN_EXE_braidcast"));
        command.args(args.split_whitespace()).current_dir(dir).env("XDG_CONFIG_HOME", dir.join("config"));
        Running::spawn(command, Stdio::null())
    }
}

/// A router for which others are the hosts: carrier-grade NAT.
struct Carrier(Namespace);

impl Carrier {
    /// It is 203.0.113.`last`; its customers are in 100.64.0.0/24, the first one 100.64.0.2.
    fn new(last: u8, rules: &str) -> Self {
        let it = Namespace::new();
        ip(&format!("link add o{last} type veth peer name wan netns {}", it.pid()));
        ip(&format!("link set o{last} master internet up"));
        it.ip(&format!("addr add 203.0.113.{last}/24 dev wan"));
        it.ip("link set wan up");
        it.ip("link add lan type bridge");
        it.ip("addr add 100.64.0.1/24 dev lan");
        it.ip("link set lan up");
        forward(&it, rules);
        Self(it)
    }

    /// One that brings customers together who send to each other's outer addresses (RFC 4787 §6), if it does.
    fn of_both(last: u8, hairpin: bool) -> Self {
        if !hairpin {
            return Self::new(last, &Nat::PortRestricted.rules("100.64.0.2"));
        }
        Self::new(
            last,
            &format!(
                "table ip router {{
                    map ports {{ type inet_service : ipv4_addr; flags dynamic,timeout; timeout 5m; }}
                    chain post {{
                        type nat hook postrouting priority 100;
                        oifname wan update @ports {{ udp sport : ip saddr }}
                        oifname wan masquerade
                        ip saddr 100.64.0.0/24 oifname lan ct status dnat snat to 203.0.113.{last}
                    }}
                    chain pre {{
                        type nat hook prerouting priority -100;
                        ip daddr 203.0.113.{last} dnat to udp dport map @ports
                    }}
                }}"
            ),
        )
    }
}

fn forward(router: &Namespace, rules: &str) {
    let words = format!("echo 1 > /proc/sys/net/ipv4/ip_forward && nft '{rules}'");
    assert!(runs(router.command("sh").args(["-c", &words])), "{rules}");
}

/// The network between the routers, in which the test itself is: 203.0.113.1.
pub(crate) fn internet() -> bool {
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
pub(crate) fn flow(out: &Path, bytes: u64, mut act: impl FnMut(Duration)) -> Duration {
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
    play_between(dir, [&home, &field], pair[0].opens_for(pair[1]))
}

/// The same between these sites; `opens`: a path past the relay is expected.
fn play_between(dir: &Path, [home, field]: [&Site; 2], opens: bool) -> (Duration, bool) {
    let receiver = receive(home, dir, "");
    let (out, began) = (dir.join("out.ts"), Instant::now());
    let sender = field.run(dir, "send clip.ts --to @ticket").wait_for("connected");
    until("the stream", || len(&out) > 20_000);
    let took = began.elapsed();
    // Addresses are tried for two seconds.
    let sender = if opens { sender.wait_for("straight is up") } else { sender };
    flow(&out, if opens { 50_000 } else { 350_000 }, |_| {});
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

/// A home behind its own NAT and its carrier's, and a field unit behind one.
fn play_double(dir: &Path, number: u8, [own, carriers, other]: [Nat; 3]) {
    let carrier = Carrier::new(10 + 2 * number, &carriers.rules("100.64.0.2"));
    let (home, field) = (Site::of(&carrier, 2, own), Site::new(11 + 2 * number, other));
    let opens = own.opens_for(other) && carriers.opens_for(other);
    let (took, straight) = play_between(dir, [&home, &field], opens);
    println!("{own:?} behind {carriers:?}, and {other:?}: playing after {took:?}, straight: {straight}");
    assert_eq!(straight, opens, "{own:?} behind {carriers:?}, and {other:?}");
}

/// Two customers of one carrier.
fn play_hairpin(dir: &Path, number: u8, hairpin: bool) {
    let carrier = Carrier::of_both(10 + 2 * number, hairpin);
    let [home, field] = [2, 3].map(|last| Site::of(&carrier, last, Nat::PortRestricted));
    let (took, straight) = play_between(dir, [&home, &field], hairpin);
    println!("one carrier, hairpin: {hairpin}: playing after {took:?}, straight: {straight}");
    assert_eq!(straight, hairpin, "hairpin: {hairpin}");
}

#[test]
fn two_nats_before_one_end_or_one_before_both() {
    in_namespace("nats::two_nats_before_one_end_or_one_before_both", |dir| {
        if !internet() {
            return;
        }
        transport_stream(dir, 20);
        let _relay = relay(dir);
        play_double(dir, 0, [Nat::PortRestricted; 3]);
        play_hairpin(dir, 1, true);
    });
}

#[test]
#[ignore = "a minute: makes the second table of docs/start/relay.md"]
fn each_pair_with_a_carriers_nat() {
    in_namespace("nats::each_pair_with_a_carriers_nat", |dir| {
        if !internet() {
            return;
        }
        transport_stream(dir, 20);
        let _relay = relay(dir);
        let doubles = [
            [Nat::FullCone, Nat::FullCone],
            [Nat::FullCone, Nat::Symmetric],
            [Nat::PortRestricted, Nat::PortRestricted],
            [Nat::Symmetric, Nat::PortRestricted],
        ];
        let all = doubles.into_iter().flat_map(|[own, carriers]| Nat::ALL.map(|other| [own, carriers, other]));
        for (number, three) in (0..).zip(all) {
            play_double(dir, number, three);
        }
        for (number, hairpin) in [(16, true), (17, false)] {
            play_hairpin(dir, number, hairpin);
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
