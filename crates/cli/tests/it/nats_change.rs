//! Two ends behind NATs and a relay, of which one changes while a stream runs: NATs forget and rebind, the relay
//! moves or cannot be reached from one end. The ends keep one association.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real files and real networks")]

use crate::common::network::{Namespace, in_namespace, ip, runs};
use crate::common::{Running, len, transport_stream, until};
use crate::nats::{Nat, Site, flow, internet};
use crate::reach::hosts;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// What a stream may pause if a NAT rebinds.
const SOON: Duration = Duration::from_secs(1);
/// The relay, where nothing is said of another place.
const RELAY: &str = "203.0.113.1:9000";

/// The stream's two ends, and the file that it is written to.
struct Stream {
    receiver: Running,
    sender: Running,
    out: PathBuf,
}

impl Stream {
    /// `clip.ts` of the test's folder, from `field` to `home`.
    fn start(dir: &Path, [home, field]: [&Site; 2], relay: &str, more: &str) -> Self {
        let receiver = receive(dir, home, relay, more);
        let sender = field.run(dir, &format!("send clip.ts --to @ticket {more}")).wait_for("connected");
        let it = Self { receiver, sender, out: dir.join("out.ts") };
        until("the stream", || len(&it.out) > 100_000);
        it
    }

    /// Both ends have said this; one that went past the relay is there.
    fn wait_for(self, word: &str) -> Self {
        let Self { receiver, sender, out } = self;
        Self { receiver: receiver.wait_for(word), sender: sender.wait_for(word), out }
    }

    /// It has gone on all the time.
    fn is_one_association(&self) {
        let said = format!("{}{}", self.sender.said(), self.receiver.said());
        assert!(!said.contains("reconnecting") && !said.contains("broke off"), "one association: {said}");
    }
}

fn relay(dir: &Path) -> Running {
    Running::start(dir, &format!("relay {RELAY} --open")).wait_for("relaying at")
}

/// A ticket by this relay in the file `ticket`, and the receiver at home.
fn receive(dir: &Path, home: &Site, relay: &str, more: &str) -> Running {
    let made = Command::new(env!("CARGO_BIN_EXE_braidcast"))
        .args(["key", "ticket", "home", "--relay", relay])
        .env("XDG_CONFIG_HOME", dir.join("config"))
        .output()
        .unwrap();
    fs::write(dir.join("ticket"), made.stdout).unwrap();
    home.run(dir, &format!("receive --relay {relay} --ticket=home out.ts --keep {more}"))
        .wait_for("which sees it as 203.0.113.")
}

/// Kernels forget the bindings of an interface that goes down. The next ones have other ports.
fn rebind(site: &Site) {
    site.router.ip("link set wan down");
    site.router.ip("link set wan up");
}

/// Has what the relay and the router at this address send each other dropped, or not any more.
fn part(address: &str, apart: bool) {
    let rules = format!(
        "table ip apart {{
            chain in {{ type filter hook input priority 0; ip saddr {address} drop; }}
            chain out {{ type filter hook output priority 0; ip daddr {address} drop; }}
        }}"
    );
    let words = if apart { rules } else { "delete table ip apart".into() };
    assert!(runs(Command::new("nft").arg(&words)), "{words}");
}

/// From `address` the relay cannot be reached for `time`: the longest pause of the stream after it.
fn part_for(stream: &Stream, address: &str, time: Duration) -> Duration {
    part(address, true);
    sleep(time);
    part(address, false);
    flow(&stream.out, 250_000, |_| {})
}

/// A test of this file by its name, on an internet of its own, with a clip of `seconds`.
fn on_an_internet(name: &str, seconds: u32, inside: impl FnOnce(&Path)) {
    in_namespace(&format!("nats_change::{name}"), |dir| {
        if internet() {
            transport_stream(dir, seconds);
            inside(dir);
        }
    });
}

/// Both ends' sites, each behind a NAT of this kind.
fn sites(nat: Nat) -> [Site; 2] {
    [10, 11].map(|last| Site::new(last, nat))
}

#[test]
fn nats_that_rebind_and_a_relay_that_is_away_for_three_seconds_end_no_association() {
    on_an_internet("nats_that_rebind_and_a_relay_that_is_away_for_three_seconds_end_no_association", 40, |dir| {
        let _relay = relay(dir);
        let [home, field] = sites(Nat::Symmetric);
        let stream = Stream::start(dir, [&home, &field], RELAY, "--relay-only");
        for site in [&home, &field] {
            rebind(site);
            let longest = flow(&stream.out, 200_000, |_| {});
            println!("a NAT rebinds: the longest pause is {longest:?}");
            assert!(longest < 2 * SOON, "{longest:?}");
        }
        let longest = part_for(&stream, "203.0.113.10", Duration::from_secs(3));
        println!("home and relay were apart for 3 s: the longest pause after it is {longest:?}");
        assert!(longest < 3 * SOON, "{longest:?}");
        stream.wait_for("again").is_one_association();
    });
}

#[test]
#[ignore = "ten seconds: NATs that rebind, of either end, again and again"]
fn each_nat_rebinds_three_times() {
    on_an_internet("each_nat_rebinds_three_times", 60, |dir| {
        let _relay = relay(dir);
        let [home, field] = sites(Nat::Symmetric);
        let stream = Stream::start(dir, [&home, &field], RELAY, "--relay-only");
        for time in 0..3 {
            for (site, name) in [(&home, "home"), (&field, "the field")] {
                rebind(site);
                let longest = flow(&stream.out, 250_000, |_| {});
                println!("the NAT before {name} rebinds, time {time}: the longest pause is {longest:?}");
                assert!(longest < SOON, "{longest:?}");
            }
        }
        stream.wait_for("again").is_one_association();
    });
}

#[test]
#[ignore = "half a minute: the relay cannot be reached from either end, by the relay and past it"]
fn a_relay_that_one_end_cannot_reach_for_some_seconds_ends_no_association() {
    on_an_internet("a_relay_that_one_end_cannot_reach_for_some_seconds_ends_no_association", 90, |dir| {
        let _relay = relay(dir);
        let ends = sites(Nat::PortRestricted);
        let stream = Stream::start(dir, [&ends[0], &ends[1]], RELAY, "--relay-only");
        for (name, address) in [("home", "203.0.113.10"), ("the field", "203.0.113.11")] {
            for seconds in [2, 5, 8] {
                let longest = part_for(&stream, address, Duration::from_secs(seconds));
                println!("{name} and relay were apart for {seconds} s: the longest pause after it is {longest:?}");
                assert!(longest < 3 * SOON, "{longest:?}");
            }
        }
        stream.is_one_association();
        drop(stream);
        // Past the relay nobody notices.
        fs::remove_file(dir.join("out.ts")).unwrap();
        let receiver = receive(dir, &ends[0], RELAY, "");
        let sender = ends[1].run(dir, "send clip.ts --to @ticket").wait_for("straight is up");
        let stream = Stream { receiver, sender, out: dir.join("out.ts") };
        flow(&stream.out, 100_000, |_| {});
        for address in ["203.0.113.10", "203.0.113.11"] {
            part(address, true);
            let longest = flow(&stream.out, 800_000, |_| {});
            part(address, false);
            println!("{address} and relay are apart, and the stream goes past it: the longest pause is {longest:?}");
            assert!(longest < SOON, "{longest:?}");
        }
        stream.is_one_association();
    });
}

/// Writes the file at this rate, as a camera that goes on while nobody hears it: what belongs into a pause is left out.
fn feed(mut stdin: ChildStdin, clip: &[u8], bytes_per_second: usize, [begin, end]: [Duration; 2]) {
    let (began, mut at) = (Instant::now(), 0);
    while at < clip.len() {
        sleep(Duration::from_millis(40));
        let since = began.elapsed();
        let to = (since.as_millis() as usize * bytes_per_second / 1000 / 188 * 188).min(clip.len());
        // Who reads may have ended.
        if !(begin..end).contains(&since) && stdin.write_all(&clip[at..to]).is_err() {
            return;
        }
        at = to;
    }
}

/// A stream that pauses for longer than the NATs before both ends remember what is silent.
fn pause(dir: &Path, [home, field]: [&Site; 2], more: &str) {
    let _ = fs::remove_file(dir.join("out.ts"));
    for site in [home, field] {
        for name in ["udp_timeout", "udp_timeout_stream"] {
            let words = format!("echo 30 > /proc/sys/net/netfilter/nf_conntrack_{name}");
            assert!(runs(site.router.command("sh").args(["-c", &words])), "{words}");
        }
    }
    let clip = fs::read(dir.join("clip.ts")).unwrap();
    let rate = clip.len() / CLIP as usize;
    let receiver = receive(dir, home, RELAY, more);
    let mut command = field.host.command(env!("CARGO_BIN_EXE_braidcast"));
    command.args(format!("send - --to @ticket {more}").split_whitespace()).current_dir(dir);
    let mut sender = Running::spawn(command, Stdio::piped());
    let (stdin, times) = (sender.stdin(), [5, 50].map(Duration::from_secs));
    let began = Instant::now();
    let feeder = thread::spawn(move || feed(stdin, &clip, rate, times));
    let sender = sender.wait_for(if more.is_empty() { "straight is up" } else { "connected" });
    let stream = Stream { receiver, sender, out: dir.join("out.ts") };
    sleep((times[1] - Duration::from_secs(1)).saturating_sub(began.elapsed()));
    let had = len(&stream.out);
    assert!(had > 200_000, "it has gone until the pause: {had}");
    until("the stream after the pause", || len(&stream.out) > had);
    let late = began.elapsed().saturating_sub(times[1]);
    println!("{more} a pause of 45 s, NATs that remember 30 s: {late:?} after it the stream goes on");
    assert!(late < 2 * SOON, "{late:?}");
    flow(&stream.out, 300_000, |_| {});
    stream.is_one_association();
    stream.sender.kill();
    feeder.join().unwrap();
}

/// Seconds of the clip that pauses.
const CLIP: u32 = 70;

#[test]
#[ignore = "three minutes: streams that pause for longer than NATs remember"]
fn a_stream_pauses_for_longer_than_nats_remember_and_goes_on() {
    on_an_internet("a_stream_pauses_for_longer_than_nats_remember_and_goes_on", CLIP, |dir| {
        let _relay = relay(dir);
        let ends = sites(Nat::PortRestricted);
        for more in ["--relay-only", ""] {
            pause(dir, [&ends[0], &ends[1]], more);
        }
    });
}

/// Another machine at 203.0.113.`last`.
fn machine(last: u8) -> Namespace {
    let machine = Namespace::new();
    ip(&format!("link add m{last} type veth peer name eth0 netns {}", machine.pid()));
    ip(&format!("link set m{last} master internet up"));
    machine.ip(&format!("addr add 203.0.113.{last}/24 dev eth0"));
    machine.ip("link set eth0 up");
    machine
}

#[test]
#[ignore = "half a minute: the relay moves to another machine behind the same name"]
fn a_relay_that_moves_is_followed_by_its_name() {
    on_an_internet("a_relay_that_moves_is_followed_by_its_name", 90, |dir| {
        hosts(dir, "203.0.113.1 relay.example");
        let first = relay(dir);
        let [home, field] = sites(Nat::Symmetric);
        let mut stream = Stream::start(dir, [&home, &field], "relay.example:9000", "--relay-only");
        let elsewhere = machine(5);
        let mut command = elsewhere.command(env!("CARGO_BIN_EXE_braidcast"));
        command.args("relay 203.0.113.5:9000 --open".split(' ')).current_dir(dir);
        let _second = Running::spawn(command, Stdio::null()).wait_for("relaying at");
        hosts(dir, "203.0.113.5 relay.example");
        first.kill();
        let longest = flow(&stream.out, 400_000, |_| {});
        println!("the relay has moved to another machine: the longest pause is {longest:?}");
        stream = stream.wait_for("relay.example is at 203.0.113.5 now");
        stream.is_one_association();
        assert!(longest < 10 * SOON, "{longest:?}");
    });
}

/// Another host behind the router of a site, in a network of its own.
fn second_host(site: &Site) -> Site {
    let (host, router) = (Namespace::new(), Namespace::new());
    host.ip(&format!("link add eth0 type veth peer name lan2 netns {}", site.router.pid()));
    host.ip("addr add 192.168.2.2/24 dev eth0");
    host.ip("link set eth0 up");
    host.ip("route add default via 192.168.2.1");
    site.router.ip("addr add 192.168.2.1/24 dev lan2");
    site.router.ip("link set lan2 up");
    // Its own router is one that nothing goes through.
    Site { host, router }
}

#[test]
#[ignore = "half a minute: several ends behind one NAT"]
fn several_members_are_behind_one_nat() {
    on_an_internet("several_members_are_behind_one_nat", 60, |dir| {
        let _relay = relay(dir);
        for nat in [Nat::PortRestricted, Nat::Symmetric] {
            let [home, field] = sites(nat);
            let both = [second_host(&home), second_host(&field)];
            let folders = ["one", "two", "three"].map(|name| dir.join(format!("{name}-{nat:?}")));
            for folder in &folders {
                fs::create_dir(folder).unwrap();
                fs::copy(dir.join("clip.ts"), folder.join("clip.ts")).unwrap();
            }
            // Two receivers behind one and two senders behind the other; and two ends behind the same.
            let pairs = [[&home, &field], [&both[0], &both[1]], [&home, &both[0]]];
            let streams = pairs.iter().zip(&folders).map(|(pair, folder)| Stream::start(folder, *pair, RELAY, ""));
            let streams: Vec<_> = streams.collect();
            for (number, stream) in streams.iter().enumerate() {
                let longest = flow(&stream.out, 300_000, |_| {});
                println!("{nat:?}, stream {number}: the longest pause is {longest:?}");
                assert!(longest < SOON, "{longest:?}");
                stream.is_one_association();
            }
            for (stream, straight) in streams.into_iter().zip([true, true, false]) {
                let straight = straight && nat == Nat::PortRestricted;
                let sender = if straight { stream.sender.wait_for("straight is up") } else { stream.sender };
                sender.interrupt();
                let said = sender.finish().stderr;
                assert_eq!(said.contains("straight is up"), straight, "{said}");
            }
            ip("link del o10");
            ip("link del o11");
        }
    });
}
