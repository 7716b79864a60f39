//! Against libsrt's own tool, `srt-live-transmit`, over real sockets: both directions, each end calling,
//! plain and encrypted, over clean and over lossy links.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "another program takes real time, and speaks through real sockets"
)]

use braidcast_core::{Instant, Rng};
use braidcast_driver::{Bind, Driver};
use braidcast_emulate::Emulator;
use braidcast_gateway::srt::{Direction, Ended, Endpoint, Event, KeyLength, Options, Passphrase, Refusal, Report};
use braidcast_sim::link::{LinkModel, Loss};
use braidcast_testing::peers;
use core::time::Duration;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};

const TOOL: &str = "srt-live-transmit";
const PAYLOAD: usize = 1316;
/// Payloads of one run, one each 1.5 ms: 7 Mbit/s for 3 s.
const PAYLOADS: u64 = 2000;
const INTERVAL: Duration = Duration::from_micros(1500);
/// How long a run may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A child that does not outlive its test.
struct Tool(Child);

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Tool {
    /// Ends it; returns the statistics that it wrote, a line of JSON each.
    fn statistics(mut self) -> Vec<String> {
        let _ = self.0.kill();
        let mut text = String::new();
        let _ = self.0.stdout.take().expect("a pipe").read_to_string(&mut text);
        text.lines().filter(|line| line.starts_with('{')).map(str::to_owned).collect()
    }
}

/// Starts the tool, which writes statistics each 200 packets; `None` if it is not installed and need not be.
fn tool(from: &str, to: &str) -> Option<Tool> {
    let how = ["-loglevel:fatal", "-chunk:1316", "-autoreconnect:no", "-s:200", "-pf:json"];
    start(Command::new(TOOL).args(how).args([from, to]))
}

/// Starts a tool of the same package.
fn start(tool: &mut Command) -> Option<Tool> {
    let child = tool.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    match child {
        Ok(child) => {
            peers::met(TOOL);
            Some(Tool(child))
        }
        Err(error) => {
            assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "{TOOL} is not installed: {error}");
            peers::lacks(TOOL, "not installed");
            None
        }
    }
}

fn free_port() -> u16 {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Who calls.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Calls {
    We,
    They,
}

/// What is tried.
#[derive(Clone)]
struct Case {
    direction: Direction,
    calls: Calls,
    options: Options,
    /// What the tool's URL says behind the port.
    url: String,
    loss: f64,
    /// What the tool is told that the path behind us carries, bit/s.
    told: Option<u64>,
}

impl Case {
    fn new(direction: Direction, calls: Calls) -> Self {
        let options = Options { latency: ms(200), peer_latency: ms(200), ..Options::default() };
        Self { direction, calls, options, url: "latency=200".into(), loss: 0.0, told: None }
    }

    fn encrypted(mut self, key_length: KeyLength) -> Self {
        self.options.passphrase = Some(Passphrase::new("correct horse".into()).unwrap());
        self.options.key_length = key_length;
        self.url += &format!("&passphrase=correct horse&pbkeylen={}", key_length.bytes());
        self
    }

    fn lossy(mut self, loss: f64) -> Self {
        self.loss = loss;
        self.url = self.url.replace("latency=200", "latency=400");
        (self.options.latency, self.options.peer_latency) = (ms(400), ms(400));
        self
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What came of a run.
struct Outcome {
    numbers: Vec<u64>,
    report: Report,
    events: Vec<Event>,
    /// The tool's.
    statistics: Vec<String>,
}

/// Runs a case: numbered payloads go in at one end and come out at the other.
fn run(case: &Case) -> Option<Outcome> {
    let mut driver = Driver::new().unwrap();
    let socket = driver.bind(&Bind::to_addr(local(0))).unwrap();
    let our_port = driver.socket(socket).unwrap().local_addr().port();
    let their_port = free_port();
    // Between both: who calls, calls the emulator.
    let called = if case.calls == Calls::We { their_port } else { our_port };
    let link = LinkModel { delay: ms(20), loss: Loss::Uniform(case.loss), ..LinkModel::default() };
    let mut emulator = Emulator::new(local(0), local(called), link.clone(), link, &Rng::from_seed(7)).unwrap();
    let entrance = emulator.listen_addr();
    std::thread::spawn(move || emulator.run(Some(Instant::ZERO + PATIENCE + PATIENCE)));

    let media = UdpSocket::bind(local(0)).unwrap();
    media.set_nonblocking(true).unwrap();
    let media_port = media.local_addr().unwrap().port();
    let theirs = match case.calls {
        Calls::We => format!("srt://:{their_port}?mode=listener&{}", case.url),
        Calls::They => format!("srt://{entrance}?mode=caller&{}", case.url),
    };
    let fed = free_port();
    let tool = match case.direction {
        Direction::Receive => tool(&format!("udp://:{fed}"), &theirs)?,
        Direction::Send => tool(&theirs, &format!("udp://127.0.0.1:{media_port}"))?,
    };
    let rng = Rng::from_seed(3);
    let mut endpoint = match case.calls {
        Calls::We => Endpoint::caller(driver.now(), entrance, case.options.clone(), rng),
        Calls::They => Endpoint::listener(driver.now(), case.direction, case.options.clone(), rng),
    };
    let (mut numbers, mut events, mut report) = (Vec::new(), Vec::new(), None);
    let (mut sent, mut next, mut buf) = (0, None, Vec::new());
    let mut finished = None;
    while driver.now() < Instant::ZERO + PATIENCE && finished.is_none_or(|at| driver.now() < at) {
        let until = driver.now() + ms(1);
        let _ = driver.drive(&mut endpoint, Some(until)).unwrap();
        let now = driver.now();
        while let Some(event) = braidcast_core::Machine::poll_event(&mut endpoint) {
            if let Event::Connected(_) = event {
                // The tool opens its other end only now.
                next.get_or_insert(now + ms(300));
            }
            events.push(event);
        }
        if matches!(events.last(), Some(Event::Refused { .. } | Event::RefusedByPeer(_))) {
            break;
        }
        case.told.iter().for_each(|told| endpoint.tell_capacity(*told));
        report = endpoint.reports().next().map(|(_, report)| report).or(report);
        while next.is_some_and(|at| at <= now) && sent < PAYLOADS {
            let mut payload = [0x47; PAYLOAD];
            payload[1..9].copy_from_slice(&u64::to_be_bytes(sent));
            match case.direction {
                Direction::Receive => drop(media.send_to(&payload, local(fed))),
                Direction::Send => endpoint.push(now, &payload),
            }
            sent += 1;
            next = next.map(|at| at + INTERVAL);
        }
        if sent == PAYLOADS && finished.is_none() {
            finished = Some(now + ms(1500));
        }
        let mut note = |bytes: &[u8]| {
            assert_eq!((bytes.len(), bytes[0], bytes[PAYLOAD - 1]), (PAYLOAD, 0x47, 0x47));
            numbers.push(u64::from_be_bytes(bytes[1..9].try_into().unwrap()));
        };
        while endpoint.deliver(now, &mut buf).is_some() {
            note(&buf);
        }
        let mut datagram = [0; 2000];
        while let Ok(len) = media.recv(&mut datagram) {
            note(&datagram[..len]);
        }
    }
    let report = report.unwrap_or_else(|| panic!("no connection: {events:?}"));
    Some(Outcome { numbers, report, events, statistics: tool.statistics() })
}

/// All payloads, in order; `missing` of them may be missing.
fn whole(case: &Case, missing: u64) -> Option<Report> {
    let Outcome { numbers, report, events, .. } = run(case)?;
    assert!(numbers.is_sorted_by(|a, b| a < b), "in order, once");
    let came = numbers.len() as u64;
    assert!(came + missing >= PAYLOADS, "{came} of {PAYLOADS}: {report:?} {events:?}");
    assert_eq!(report.peer_version, 0x01_05_01);
    Some(report)
}

#[test]
fn we_take_what_it_sends_whoever_calls() {
    for calls in [Calls::They, Calls::We] {
        let Some(report) = whole(&Case::new(Direction::Receive, calls), 0) else { return };
        assert_eq!((report.latency, report.key_bytes, report.received.skipped), (ms(200), 0, 0));
        assert!((ms(38)..ms(70)).contains(&report.rtt), "{:?}", report.rtt);
    }
}

#[test]
fn it_takes_what_we_send_whoever_calls() {
    for calls in [Calls::They, Calls::We] {
        let Some(report) = whole(&Case::new(Direction::Send, calls), 0) else { return };
        assert_eq!((report.peer_latency, report.sent.packets, report.sent.dropped), (ms(200), PAYLOADS, 0));
    }
}

#[test]
fn keys_of_each_length_are_the_same_in_both_directions_over_a_lossy_link() {
    let cases = [
        (Direction::Receive, Calls::They, KeyLength::Aes128),
        (Direction::Receive, Calls::We, KeyLength::Aes256),
        (Direction::Send, Calls::They, KeyLength::Aes192),
        (Direction::Send, Calls::We, KeyLength::Aes128),
    ];
    for (direction, calls, length) in cases {
        let case = Case::new(direction, calls).encrypted(length).lossy(0.02);
        // Two percent in each direction, and nine round trips in the latency.
        let Some(report) = whole(&case, 2) else { return };
        assert_eq!((report.key_bytes, report.received.undecrypted), (length.bytes(), 0));
        let repaired = report.received.recovered + report.sent.repeated;
        assert!(repaired >= 10, "the link loses two of a hundred: {report:?}");
    }
}

#[test]
fn keys_change_in_both_directions_while_media_flows() {
    for (direction, calls) in [(Direction::Receive, Calls::They), (Direction::Send, Calls::They)] {
        let mut case = Case::new(direction, calls).encrypted(KeyLength::Aes256);
        case.url += "&kmrefreshrate=600&kmpreannounce=200";
        case.options.key_refresh = 600;
        let Some(report) = whole(&case, 0) else { return };
        assert_eq!((report.key_bytes, report.received.undecrypted), (32, 0));
    }
}

#[test]
fn its_statistics_show_what_the_path_behind_us_carries() {
    // Its own mean over eight acknowledgements is cut to whole packets each time: up to seven of 12 kbit/s too few.
    for told in [1_500_000_u64, 20_000_000] {
        let case = Case { told: Some(told), ..Case::new(Direction::Receive, Calls::They) };
        let Some(Outcome { statistics, .. }) = run(&case) else { return };
        let last = statistics.last().expect("statistics");
        let (_, rest) = last.split_once("\"bandwidth\":").expect("a bandwidth");
        let shown: f64 = rest.split([',', '}']).next().unwrap().trim().parse().unwrap();
        let told = told as f64 / 1e6;
        assert!((told - 0.1..told + 0.02).contains(&shown), "{shown} Mbit/s of {told}: {last}");
    }
}

/// Why we refuse the tool, which calls with this behind the port.
fn refused(options: Options, url: &str) -> Option<Refusal> {
    refused_as(options, |port| tool(&format!("udp://:{}", free_port()), &format!("srt://127.0.0.1:{port}?{url}")))
}

/// Why we refuse whoever `call` has call a port.
fn refused_as(options: Options, call: impl FnOnce(u16) -> Option<Tool>) -> Option<Refusal> {
    let mut driver = Driver::new().unwrap();
    let socket = driver.bind(&Bind::to_addr(local(0))).unwrap();
    let port = driver.socket(socket).unwrap().local_addr().port();
    let _tool = call(port)?;
    let mut endpoint = Endpoint::listener(driver.now(), Direction::Receive, options, Rng::from_seed(3));
    let mut refused = None;
    while refused.is_none() && driver.now() < Instant::ZERO + PATIENCE {
        let until = driver.now() + ms(5);
        let _ = driver.drive(&mut endpoint, Some(until)).unwrap();
        refused = braidcast_core::Machine::poll_event(&mut endpoint);
    }
    assert!(!endpoint.is_connected());
    let Some(Event::Refused { why, .. }) = refused else { panic!("{refused:?}") };
    Some(why)
}

#[test]
fn a_wrong_passphrase_is_refused_with_its_code() {
    let case = Case::new(Direction::Receive, Calls::They).encrypted(KeyLength::Aes128);
    let Some(why) = refused(case.options, &case.url.replace("horse", "house")) else { return };
    assert_eq!(why, Refusal::BAD_SECRET);
}

#[test]
fn a_stream_of_a_list_is_opened_by_its_own_passphrase_only() {
    let keys = [("cam1", "correct horse"), ("cam2", "another horse")];
    let keys = keys.map(|(name, text)| (name.to_owned(), Passphrase::new(text.into()).unwrap()));
    let options = || Options { keys: Some(keys.to_vec()), latency: ms(200), ..Options::default() };
    let url = |stream: &str, secret: &str| format!("latency=200{stream}{secret}");
    for (stream, secret, why) in [
        ("&streamid=cam1", "&passphrase=another horse", Refusal::BAD_SECRET),
        ("&streamid=#!::r=live/cam2,m=publish", "&passphrase=correct horse", Refusal::BAD_SECRET),
        ("&streamid=cam3", "&passphrase=correct horse", Refusal::FORBIDDEN),
        ("", "&passphrase=correct horse", Refusal::FORBIDDEN),
        ("&streamid=cam1", "", Refusal::UNSECURE),
    ] {
        let Some(was) = refused(options(), &url(stream, secret)) else { return };
        assert_eq!(was, why, "{stream}{secret}");
    }
    let case = Case::new(Direction::Receive, Calls::They);
    let case = Case { options: options(), url: url("&streamid=cam2", "&passphrase=another horse"), ..case };
    let Some(report) = whole(&case, 0) else { return };
    assert_eq!((report.key_bytes, &*report.stream_id), (16, "cam2"));
}

#[test]
fn its_file_mode_is_refused_with_its_code() {
    let file = format!("file://{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let call = |port| start(Command::new("srt-file-transmit").args([&file, &format!("srt://127.0.0.1:{port}")]));
    let Some(why) = refused_as(Options::default(), call) else { return };
    assert_eq!(why, Refusal::MESSAGE_API);
}

#[test]
fn it_calls_and_sends_by_ipv6() {
    let mut driver = Driver::new().unwrap();
    let socket = driver.bind(&Bind::to_addr((Ipv6Addr::LOCALHOST, 0).into())).unwrap();
    let port = driver.socket(socket).unwrap().local_addr().port();
    let fed = free_port();
    let Some(_tool) = tool(&format!("udp://:{fed}"), &format!("srt://[::1]:{port}?latency=200")) else { return };
    let options = Options { latency: ms(200), ..Options::default() };
    let mut endpoint = Endpoint::listener(driver.now(), Direction::Receive, options, Rng::from_seed(3));
    let (media, mut buf, mut came) = (UdpSocket::bind(local(0)).unwrap(), Vec::new(), 0);
    while came < 20 && driver.now() < Instant::ZERO + PATIENCE {
        let until = driver.now() + ms(10);
        let _ = driver.drive(&mut endpoint, Some(until)).unwrap();
        media.send_to(&[0x47; PAYLOAD], local(fed)).unwrap();
        while endpoint.deliver(driver.now(), &mut buf).is_some() {
            came += 1;
        }
    }
    let report = endpoint.reports().next().expect("a connection").1;
    assert!(report.peer.is_ipv6() && came >= 20, "{came}: {report:?}");
}

#[test]
fn it_says_when_it_goes() {
    let case = Case::new(Direction::Receive, Calls::They);
    let mut driver = Driver::new().unwrap();
    let socket = driver.bind(&Bind::to_addr(local(0))).unwrap();
    let port = driver.socket(socket).unwrap().local_addr().port();
    let url = format!("srt://127.0.0.1:{port}?streamid=#!::r=cam1,m=publish&{}", case.url);
    let options = Options { stream_id: Some("cam1".into()), ..case.options };
    let Some(tool) = tool(&format!("udp://:{}", free_port()), &url) else { return };
    let mut tool = Some(tool);
    let mut endpoint = Endpoint::listener(driver.now(), Direction::Receive, options, Rng::from_seed(3));
    let mut events = Vec::new();
    while events.len() < 2 && driver.now() < Instant::ZERO + PATIENCE {
        let until = driver.now() + ms(5);
        let _ = driver.drive(&mut endpoint, Some(until)).unwrap();
        events.extend(braidcast_core::Machine::poll_event(&mut endpoint));
        if events.len() == 1
            && let Some(tool) = tool.take()
        {
            assert_eq!(endpoint.reports().next().unwrap().1.stream_id, "#!::r=cam1,m=publish");
            // SIGTERM, on which it closes its connection.
            Command::new("kill").arg(tool.0.id().to_string()).status().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(ms(2000));
                drop(tool);
            });
        }
    }
    assert!(matches!(events[..], [Event::Connected(_), Event::Ended(_, Ended::ByPeer | Ended::Silent)]), "{events:?}");
}
