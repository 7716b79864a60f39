//! A phone that changes networks while it sends a stream and holds a call: Wi-Fi, LTE, both, new
//! addresses. No audio is late.

use crate::common::network::in_namespace;
use crate::common::{Running, command, transport_stream};
use crate::networks::{Fault, Networks};
use crate::process::{Process, Stalls};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const WIFI: usize = 0;
const LTE: usize = 1;
/// Seconds of the stream, and of the call.
const SECONDS: u32 = 20;
/// A packet of G.711, and the pause between two.
const VOICE: usize = 160;
const GAP: Duration = Duration::from_millis(20);
/// One-way delay after which a packet is too late for a call (ITU-T G.114; SBPN §4.6.1).
const ON_TIME: Duration = Duration::from_millis(200);

/// One way of a call: when each packet left, and when it came.
struct Direction {
    left: Vec<Instant>,
    came: Vec<Option<Instant>>,
}

impl Direction {
    /// The longest that a packet took, and all that were late or did not come at all, by number:
    /// time in which the machine stood still does not count.
    fn judge(&self, stalls: &Stalls) -> (Duration, Vec<usize>) {
        let took = |n: usize| {
            let until = self.came[n].unwrap_or(self.left[n] + ON_TIME * 2);
            let stood = 2 * stalls.during(self.left[n], until);
            until.saturating_duration_since(self.left[n]).saturating_sub(stood)
        };
        let all = 0..self.left.len();
        let late = all.clone().filter(|&n| took(n) > ON_TIME).collect();
        (all.map(took).max().unwrap_or_default(), late)
    }
}

/// Says something each 20 ms, `say` how, until it is over.
fn speak(over: Arc<AtomicBool>, mut say: impl FnMut(&[u8]) + Send + 'static) -> JoinHandle<Vec<Instant>> {
    std::thread::spawn(move || {
        let (mut left, begun) = (Vec::new(), Instant::now());
        while !over.load(Ordering::Relaxed) {
            let mut packet = [0x55; VOICE];
            packet[..4].copy_from_slice(&(left.len() as u32).to_be_bytes());
            left.push(Instant::now());
            say(&packet);
            std::thread::sleep((begun + GAP * left.len() as u32).saturating_duration_since(Instant::now()));
        }
        left
    })
}

/// Notes when each packet that `hear` returns came; `None` ends it.
fn listen(
    mut hear: impl FnMut(&mut [u8; VOICE]) -> Option<usize> + Send + 'static,
) -> JoinHandle<Vec<Option<Instant>>> {
    std::thread::spawn(move || {
        let (mut came, mut packet) = (Vec::new(), [0; VOICE]);
        while let Some(len) = hear(&mut packet) {
            if len == VOICE {
                let number = u32::from_be_bytes(packet[..4].try_into().unwrap()) as usize;
                came.resize((number + 1).max(came.len()), None);
                came[number].get_or_insert_with(Instant::now);
            }
        }
        came
    })
}

/// A call through a tunnel over all networks, in both directions.
struct Call {
    over: Arc<AtomicBool>,
    speakers: [JoinHandle<Vec<Instant>>; 2],
    listeners: [JoinHandle<Vec<Option<Instant>>>; 2],
    field: Process,
    client: Process,
    server: Process,
}

impl Call {
    /// Telephone in the field: it has a port of its own there, sends its stdin and writes what
    /// comes to stdout.
    const TELEPHONE: &str =
        "exec 3<>/dev/udp/127.0.0.1/5004 4<&0; dd bs=160 iflag=fullblock status=none <&4 >&3 & exec cat <&3";

    fn begin(networks: &Networks, dir: &Path) -> Self {
        let home = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut server = command(dir);
        let forward = home.local_addr().unwrap();
        server.args(format!("tunnel server 9001 --over sctp --forward {forward}/audio/200ms").split(' '));
        let mut server = Process::start(server, &dir.join("server.said"));
        server.wait_for("waiting");
        let args = format!("tunnel client --over sctp --listen 5004/audio/200ms{} -v", networks.paths(9001));
        let mut client = Process::start(networks.in_the_field(dir, &args), &dir.join("client.said"));
        client.wait_for("connected");

        let mut bash = networks.field.command("bash");
        bash.args(["-c", Self::TELEPHONE]);
        let mut field = Process::start(bash, &dir.join("telephone.said"));
        let (mut mouth, mut ear) = (field.stdin(), field.stdout());
        let over = Arc::<AtomicBool>::default();
        let from_field = speak(over.clone(), move |packet| mouth.write_all(packet).unwrap());
        home.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let (_, telephone) = home.peek_from(&mut [0; VOICE]).unwrap();
        home.connect(telephone).unwrap();
        home.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let socket = home.try_clone().unwrap();
        let from_home = speak(over.clone(), move |packet| drop(socket.send(packet)));
        let stop = over.clone();
        let at_home = listen(move |packet| match home.recv(packet) {
            Ok(len) => Some(len),
            Err(_) => (!stop.load(Ordering::Relaxed)).then_some(0),
        });
        let in_field = listen(move |packet| ear.read_exact(packet).ok().map(|()| VOICE));
        Self { over, speakers: [from_field, from_home], listeners: [at_home, in_field], field, client, server }
    }

    /// Ends the call. Returns both directions: from the field and from home.
    fn end(mut self) -> [Direction; 2] {
        self.over.store(true, Ordering::Relaxed);
        let left = self.speakers.map(|it| it.join().unwrap());
        std::thread::sleep(2 * ON_TIME);
        self.field.kill();
        self.client.kill();
        self.server.kill();
        let mut left = left.into_iter();
        self.listeners.map(|it| {
            let (left, mut came) = (left.next().unwrap(), it.join().unwrap());
            came.resize(left.len(), None);
            Direction { left, came }
        })
    }
}

/// A stream whose audio frames stand by themselves, a PES packet each; ffmpeg puts 17 of them into one otherwise.
fn clip(dir: &Path) {
    transport_stream(dir, SECONDS);
    let args = "-y -nostdin -v error -i clip.ts -c copy -pes_payload_size 1 -f mpegts stream.ts";
    let status = std::process::Command::new("ffmpeg").args(args.split(' ')).current_dir(dir).status().unwrap();
    assert!(status.success());
}

/// Returns the frames of audio that were late or did not come, from the receiver's summary.
fn audio_missed(received: &serde_json::Value) -> (u64, u64) {
    let kinds = received["kinds"].as_array().unwrap();
    let audio = kinds.iter().find(|it| it["kind"] == "audio").expect("the stream has audio");
    let count = |field: &str| audio[field].as_u64().unwrap();
    (count("captured"), count("captured") - count("on_time"))
}

#[test]
fn a_stream_and_a_call_change_networks_and_no_audio_is_late() {
    in_namespace("handover::a_stream_and_a_call_change_networks_and_no_audio_is_late", |dir| {
        if !Networks::are_possible() {
            return;
        }
        clip(dir);
        let mut networks = Networks::new(&["6mbit", "4mbit"]);
        networks.begin(LTE, Fault::Gone);
        let stalls = Stalls::watch();
        let receiver = Running::start(dir, "receive 9000 out.ts --json --log log.csv").wait_for("listening");
        let send = networks.in_the_field(dir, &format!("send stream.ts --json -v{}", networks.paths(9000)));
        let sender = Running::spawn(send, Stdio::null()).wait_for("connected");
        let call = Call::begin(&networks, dir);
        let begun = Instant::now();
        let mut story = Vec::new();
        let mut at = |seconds: f64, what: &str, networks: &mut Networks, change: &dyn Fn(&mut Networks)| {
            std::thread::sleep((begun + Duration::from_secs_f64(seconds)).saturating_duration_since(Instant::now()));
            story.push((Instant::now(), what.to_owned()));
            change(networks);
        };
        at(3.0, "LTE comes", &mut networks, &|it| it.end(LTE, Fault::Gone));
        at(4.5, "Wi-Fi goes", &mut networks, &|it| it.begin(WIFI, Fault::Off));
        at(8.0, "Wi-Fi is back", &mut networks, &|it| it.end(WIFI, Fault::Off));
        at(11.0, "Wi-Fi has a new address", &mut networks, &|it| it.begin(WIFI, Fault::NewAddress));
        at(14.0, "LTE has a new address", &mut networks, &|it| it.begin(LTE, Fault::NewAddress));
        at(17.0, "over", &mut networks, &|_| {});
        let ways = call.end();
        let sent = sender.finish();
        let received = receiver.finish();
        sent.says(0, &[]);
        received.says(0, &[]);

        let (captured, missed) = audio_missed(&received.json());
        // What cannot be on time as nobody could send or play it: the latency covers the short ones.
        let stood = stalls.longer_than(Duration::from_millis(100));
        println!(
            "{captured} audio frames of the stream, {missed} late or missing; the machine stood still for {stood:.1?}"
        );
        assert!(captured >= 46 * u64::from(SECONDS), "{captured} frames of audio in {SECONDS} s");
        for (way, name) in ways.iter().zip(["from the field", "from home"]) {
            let (longest, late) = way.judge(&stalls);
            let when = |n: &usize| {
                let before = story.iter().rev().find(|(at, _)| *at <= way.left[*n]);
                before.map(|(at, what)| format!("{n}: {:.0?} after {what}", way.left[*n] - *at))
            };
            let when: Vec<_> = late.iter().filter_map(when).collect();
            println!("{} packets {name}, the slowest took {longest:.0?}", way.left.len());
            assert!(way.left.len() > 700 && late.is_empty(), "{name}: {} late: {when:?}", late.len());
        }
        let excused = 2 * stood.as_millis() as u64 / 20;
        assert!(missed <= excused, "{missed} frames of audio missed\n{}\n{}", sent.stderr, received.stderr);
        // All that was to be tried was: data went over both networks, and over addresses that were new.
        let paths = sent.json()["paths"].as_array().unwrap().clone();
        let carried = paths.iter().filter(|it| it["sent_chunks"].as_u64() > Some(50)).count();
        assert!(carried >= 4, "{paths:#?}");
    });
}
