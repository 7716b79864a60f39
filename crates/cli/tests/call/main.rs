//! A call with audio and video through `braidcast tunnel`, over a bottleneck that it shares with
//! TCP (iperf3): two network namespaces, a cable between them that `tc` makes slow, and
//! `braidcast emulate` for the distance.
//!
//! Recordings stay in `target/call`. `make call` is the longer version, with more queues.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this test is about real processes and sockets"
)]

#[path = "../it/common/mod.rs"]
mod common;
mod listener;
mod media;

use common::network::{Killed, There, in_namespace, runs};
use common::{Running, free_ports};
use listener::Arrivals;
use media::{Call, STREAMS};
use std::fmt::Write;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The bottleneck, bits per second, and the bytes that wait before it: 120 ms.
const RATE: u32 = 1_200_000;
const BUFFER: u32 = 15_000;
/// One way.
const DISTANCE: &str = "10ms";
/// TCP connections beside the call.
const TCP_FLOWS: u32 = 1;

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Bytes that left through the bottleneck so far.
fn passed() -> u64 {
    let text = run(Command::new("tc").args(["-s", "qdisc", "show", "dev", "here"]));
    let sent = text.split_once("Sent ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    sent.unwrap_or_else(|| panic!("no bytes in {text}"))
}

/// What a method made of the call.
struct Outcome {
    queue: String,
    streams: [Arrivals; 2],
    /// Datagrams that the tunnel discarded, by stream.
    discarded: [u64; 2],
    /// What TCP got meanwhile, bits per second.
    tcp: f64,
}

/// Holds the call through a tunnel with this queue, beside TCP, and keeps what was heard and seen
/// in a folder of its name.
fn hold(there: &There, call: &Call, queue: &str, seconds: u64, results: &Path) -> Outcome {
    let dir = results.join(queue);
    let _old = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let exits = [(); 2].map(|()| UdpSocket::bind("10.9.0.1:0").unwrap());
    let to = exits.each_ref().map(|exit| exit.local_addr().unwrap().to_string()).join(",");
    let mut server = there.command(env!("CARGO_BIN_EXE_braidcast"));
    server.current_dir(&dir).args(format!("tunnel server 10.9.0.2:9000 --forward {to} --json").split(' '));
    let server = Running::spawn(server, Stdio::null()).wait_for("waiting");
    let [link, audio, video] = free_ports();
    let emulate = format!("emulate 127.0.0.1:{link} 10.9.0.2:9000 --delay {DISTANCE}");
    let _emulate = Running::start(&dir, &emulate).wait_for("listening");
    let listen = format!("--listen {audio}/audio,{video}/video --queue {queue} --queue-length 32");
    let client = Running::start(&dir, &format!("tunnel client --to 127.0.0.1:{link} {listen} --json"));
    let client = client.wait_for("connected with");
    let before = passed();
    let tcp = {
        let mut iperf = Command::new("iperf3");
        iperf.args(["-c", "10.9.0.2", "-J", "-P", &TCP_FLOWS.to_string(), "-t", &(seconds + 2).to_string()]);
        iperf.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    // The call meets TCP that flows: one whose first packets the call's crowd out may stand still for seconds.
    let flows = || passed() > before + u64::from(RATE) / 8;
    for _ in 0..100 {
        if flows() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(flows(), "TCP carries nothing");
    let (streams, on_time) = listener::hold(call, [audio, video], &exits);
    let tcp = tcp.wait_with_output().unwrap();
    let tcp: serde_json::Value = serde_json::from_slice(&tcp.stdout).expect("iperf3 -J prints JSON");
    client.interrupt();
    let client = client.finish();
    client.says(0, &[]);
    server.interrupt();
    server.finish().says(0, &[]);
    std::fs::write(dir.join("tunnel.json"), &client.stdout).unwrap();
    let flows = client.json()["ends"][0]["flows"].as_array().unwrap().clone();
    let discarded = [0, 1].map(|port| {
        let flow = flows.iter().find(|flow| flow["port"] == port).unwrap();
        let reasons = flow["discarded_datagrams"].as_object().unwrap();
        reasons.values().map(|count| count.as_u64().unwrap()).sum::<u64>() + flow["refused_datagrams"].as_u64().unwrap()
    });
    call.record(&dir, &on_time);
    let tcp = tcp["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_default();
    Outcome { queue: queue.to_owned(), streams, discarded, tcp }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| queue | audio on time | came at all | median, 95 % of what came | MOS | video on time | came at all | not sent: audio, video | TCP beside it |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for Outcome { queue, streams: [audio, video], discarded, tcp } in outcomes {
        let delay = |share| {
            audio.delay(share).map_or_else(|| "–".into(), |delay| format!("{:.0} ms", delay.as_secs_f64() * 1e3))
        };
        let _ = writeln!(
            text,
            "| {queue} | {} | {} | {}, {} | {:.2} | {} | {} | {}, {} | {:.0} kbit/s |",
            percent(audio.share_on_time()),
            percent(audio.share_that_came()),
            delay(0.5),
            delay(0.95),
            audio.mos(),
            percent(video.share_on_time()),
            percent(video.share_that_came()),
            discarded[0],
            discarded[1],
            tcp / 1e3
        );
    }
    text
}

/// A cable with a slow end, and iperf3 at the other one.
fn network() -> (There, Killed) {
    let there = There::new();
    let shape = format!("qdisc add dev here root tbf rate {RATE} burst 3000 limit {BUFFER}");
    assert!(runs(Command::new("tc").args(shape.split(' '))), "tc {shape}");
    let mut iperf = there.command("iperf3");
    iperf.args(["-s", "-B", "10.9.0.2"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let iperf = Killed(iperf.spawn().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    (there, iperf)
}

/// Holds the same call once with each of these queues.
fn calls(dir: &Path, queues: &[&str], seconds: u64) -> Vec<Outcome> {
    let (there, _iperf) = network();
    let call = Call::make(dir, seconds);
    let rates = [0, 1].map(|stream| format!("{} {:.0} kbit/s", STREAMS[stream], call.rate(stream) / 1e3));
    let outcomes: Vec<Outcome> = queues.iter().map(|queue| hold(&there, &call, queue, seconds, dir)).collect();
    let headline = format!(
        "A call of {seconds} s ({}) over {} kbit/s, {DISTANCE} in each direction, shared with {TCP_FLOWS} TCP; on time is within {} ms.\n",
        rates.join(", "),
        RATE / 1000,
        listener::ON_TIME.as_millis()
    );
    let text = format!("{headline}\n{}", table(&outcomes));
    eprintln!("{text}\nin {}: said.wav, and for each queue heard.wav and call.mkv", dir.display());
    std::fs::write(dir.join("table.md"), text).unwrap();
    outcomes
}

/// Says what is missing.
fn tools_are_there() -> bool {
    let tools = [
        ("espeak-ng", "espeak-ng"),
        ("ffmpeg", "ffmpeg"),
        ("iperf3", "iperf3"),
        ("ip", "iproute2"),
        ("tc", "iproute2"),
    ];
    for (tool, package) in tools {
        if !runs(Command::new("which").arg(tool)) {
            assert!(
                std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(),
                "{tool} is not installed (Debian: {package})"
            );
            eprintln!("skipped: a call beside TCP needs {tool} (Debian: {package}; tools/setup.sh test installs it)");
            return false;
        }
    }
    // If the kernel has no such queue, there can be no bottleneck.
    let shape = "ip link set lo up && tc qdisc add dev lo root tbf rate 1mbit burst 3000 limit 15000";
    let possible = |flags| runs(Command::new("unshare").args([flags, "sh", "-c", shape]));
    if !["-n", "-rn"].into_iter().any(possible) {
        eprintln!("skipped: a call beside TCP needs root or user namespaces, and a kernel with the queue tbf");
        return false;
    }
    true
}

/// Folder for recordings.
fn results(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/call").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir.canonicalize().unwrap()
}

#[test]
fn sound_is_on_time_beside_pictures_and_tcp() {
    if !tools_are_there() {
        return;
    }
    in_namespace("sound_is_on_time_beside_pictures_and_tcp", |_| {
        let dir = results("short");
        let outcomes = calls(&dir, &["fifo", "in-time"], 8);
        let [fifo, in_time] = [0, 1].map(|n| outcomes[n].streams[0].share_on_time());
        assert!(in_time > 0.75, "{in_time}");
        assert!(fifo < in_time - 0.3, "{fifo} and {in_time}");
        let mos = [0, 1].map(|n| outcomes[n].streams[0].mos());
        assert!(mos[1] > mos[0] + 0.5, "{mos:?}");
        let video = outcomes[1].streams[1].share_on_time();
        assert!(video > 0.05, "video gets what is left: {video}");
        assert!(outcomes.iter().all(|it| it.tcp > 50e3), "TCP lives on");
        let heard = std::fs::metadata(dir.join("in-time/heard.wav")).unwrap().len();
        assert!(heard > 6 * 48_000 * 2, "a recording of {heard} bytes");
    });
}

/// The source's queues, or those that `BRAIDCAST_QUEUES` names; one that it names twice has two calls and one folder.
#[test]
#[ignore = "takes minutes: `make call`"]
fn all_queues_side_by_side() {
    if !tools_are_there() {
        return;
    }
    in_namespace("all_queues_side_by_side", |_| {
        let queues = std::env::var("BRAIDCAST_QUEUES");
        let queues = queues.as_deref().unwrap_or("fifo fifo-timed sbpn2 ring ring-sbpn2 in-time");
        calls(&results("long"), &queues.split_whitespace().collect::<Vec<_>>(), 30);
    });
}
