//! A telephone call: two instances of baresip (Debian `baresip-core`), each in a network namespace
//! of its own, with a tunnel over a satellite's delay between them. Signalling, speech and RTCP go
//! through the tunnel in both directions.
//!
//! Both telephones believe to be at 127.0.0.1, each at ports of its own: at either end the tunnel
//! listens at the ports of the telephone at the other end.
#![allow(clippy::disallowed_methods, reason = "this test is about real processes")]

use crate::common::network::{Killed, There, in_namespace, runs};
use crate::common::{PATIENCE, Running};
use braidcast_testing::peers;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MODULES: &str = "/usr/lib/baresip/modules";
/// Samples per second, mono.
const RATE: usize = 8000;
/// Ports of each telephone: SIP, RTP and RTCP.
const HERE: [u16; 3] = [5060, 10_000, 10_001];
const THERE: [u16; 3] = [5070, 20_000, 20_001];

const CALLER: &str = "The quick brown fox jumps over the lazy dog. This call goes over a satellite, and every word of it should arrive \
    in order and in time. One two three four five six seven eight nine ten eleven twelve.";
const CALLED: &str = "Hello there, this is the other side speaking. We have been waiting for your call all morning, and here is what \
    we wanted to say. Nine eight seven six five four three.";

/// A telephone.
struct Phone {
    dir: PathBuf,
    ports: [u16; 3],
    process: Option<Killed>,
}

impl Phone {
    /// It says `words` when it is called or calls.
    fn new(dir: &Path, user: &str, ports: [u16; 3], words: &str, voice: &str) -> Self {
        let dir = dir.join(user);
        std::fs::create_dir_all(dir.join("heard")).unwrap();
        let speech = dir.join("speech.wav");
        let source = format!("flite=text='{words}':voice={voice}");
        let format = ["-ar", "8000", "-ac", "1", "-c:a", "pcm_s16le"];
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &source]).args(format).arg(&speech);
        assert!(ffmpeg.status().unwrap().success(), "ffmpeg has no flite to speak with");
        let [sip, rtp, rtcp] = ports;
        let config = format!(
            "sip_listen 127.0.0.1:{sip}\nnet_interface 127.0.0.1\nrtp_ports {rtp}-{rtcp}\nrtcp_mux no\nrtp_timeout 0\n\
             audio_source aufile,{}\naudio_player aubridge,nobody\naudio_alert aubridge,nobody_either\naudio_path {}\n\
             ausrc_srate 8000\nauplay_srate 8000\nausrc_channels 1\nauplay_channels 1\nsnd_path {}\n\
             module_path {MODULES}\nmodule g711.so\nmodule aufile.so\nmodule aubridge.so\nmodule sndfile.so\n\
             module_tmp account.so\nmodule_app menu.so\n",
            speech.display(),
            dir.display(),
            dir.join("heard").display(),
        );
        let account =
            format!("<sip:{user}@127.0.0.1:{sip};transport=udp>;regint=0;answermode=auto;audio_codecs=PCMU\n");
        std::fs::write(dir.join("config"), config).unwrap();
        std::fs::write(dir.join("accounts"), account).unwrap();
        std::fs::write(dir.join("contacts"), "").unwrap();
        Self { dir, ports, process: None }
    }

    fn switch_on(&mut self, mut baresip: Command, more: &[&str]) {
        let log = File::create(self.dir.join("log")).unwrap();
        baresip.arg("-f").arg(&self.dir).args(["-v", "-t", "90"]).args(more).stdin(Stdio::null());
        self.process = Some(Killed(baresip.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()));
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join("log")).unwrap()).into_owned()
    }

    fn wait_for(&self, word: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.log().contains(word) {
            assert!(Instant::now() < end, "{} never said {word:?}: {}", self.dir.display(), self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn said(&self) -> Vec<i16> {
        samples(&self.dir.join("speech.wav"))
    }

    /// What came out of its decoder.
    fn heard(&self) -> Vec<i16> {
        let files = std::fs::read_dir(self.dir.join("heard")).unwrap().map(|entry| entry.unwrap().path());
        let decoded = |path: &PathBuf| path.to_string_lossy().ends_with("dec.wav");
        samples(&files.into_iter().find(decoded).expect("sndfile.so wrote what was decoded"))
    }
}

/// The samples of a WAV file with 16 bits.
fn samples(path: &Path) -> Vec<i16> {
    let bytes = std::fs::read(path).unwrap();
    let data = bytes.windows(4).position(|word| word == b"data").unwrap() + 8;
    bytes[data..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Loudness of each 5 ms.
fn loudness(samples: &[i16]) -> Vec<f64> {
    let power = |frame: &[i16]| frame.iter().map(|&s| f64::from(s) * f64::from(s)).sum::<f64>();
    samples.chunks_exact(RATE / 200).map(|frame| power(frame).sqrt()).collect()
}

/// Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let product =
        |x: &[f64], mx: f64, y: &[f64], my: f64| x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>();
    product(a, ma, b, mb) / (product(a, ma, a, ma) * product(b, mb, b, mb)).sqrt().max(1e-9)
}

/// How well each second of `heard` fits the place of `said` that it fits best: the median over the seconds with speech.
fn likeness(heard: &[i16], said: &[i16]) -> f64 {
    let (heard, said) = (loudness(heard), loudness(said));
    let is_speech = |second: &&[f64]| second.iter().sum::<f64>() / second.len() as f64 > 1000.0;
    let best = |second: &[f64]| said.windows(200).map(|place| correlation(second, place)).fold(0.0, f64::max);
    let mut all: Vec<f64> = heard.chunks_exact(200).filter(is_speech).map(best).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn ports(ports: [u16; 3]) -> String {
    ports.map(|port| format!("127.0.0.1:{port}")).join(",")
}

fn tools_are_there() -> bool {
    let is_there = |name: &str| runs(Command::new("which").arg(name));
    let baresip = is_there("baresip") && Path::new(MODULES).is_dir();
    if !baresip {
        assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "baresip is not installed");
        peers::lacks("baresip", "it is not installed");
        eprintln!("skipped: baresip is not installed (tools/setup.sh test installs it)");
        return false;
    }
    if let Some(name) = ["ffmpeg", "ip", "nsenter"].into_iter().find(|name| !is_there(name)) {
        peers::lacks("baresip", &format!("a call needs {name}"));
        eprintln!("skipped: a call needs {name}");
        return false;
    }
    peers::lacks("baresip", "no network namespaces");
    true
}

#[test]
fn both_sides_of_a_call_over_a_satellite_hear_the_other() {
    if !tools_are_there() {
        return;
    }
    in_namespace("baresip::both_sides_of_a_call_over_a_satellite_hear_the_other", |dir| {
        let network = There::new();
        let braidcast = env!("CARGO_BIN_EXE_braidcast");
        let tunnel = "--ccid ccid4-n100 --calls g711 --json";
        let mut command = network.command(braidcast);
        let forward = format!("--forward {} --listen {}", ports(THERE), ports(HERE));
        command.current_dir(dir).args(format!("tunnel server 10.9.0.2:9000 {forward} {tunnel}").split(' '));
        let server = Running::spawn(command, Stdio::null()).wait_for("waiting");
        let _emulate = Running::start(dir, "emulate 127.0.0.1:9001 10.9.0.2:9000 --delay 300ms").wait_for("listening");
        let forward = format!("--forward {} --listen {}", ports(HERE), ports(THERE));
        let client = Running::start(dir, &format!("tunnel client --to 127.0.0.1:9001 {forward} {tunnel}"));
        let client = client.wait_for("connected with");

        let mut called = Phone::new(dir, "called", THERE, CALLED, "kal");
        let mut caller = Phone::new(dir, "caller", HERE, CALLER, "slt");
        called.switch_on(network.command("baresip"), &[]);
        called.wait_for("baresip is ready");
        let dial = format!("d sip:called@127.0.0.1:{}", called.ports[0]);
        caller.switch_on(Command::new("baresip"), &["-e", &dial]);
        caller.wait_for("Call established");
        peers::met("baresip");
        // Whoever has said all hangs up.
        called.wait_for("terminated (duration");
        caller.wait_for("terminated (duration");

        client.interrupt();
        let client = client.finish();
        client.says(0, &[]);
        let document = client.json();
        assert!(document["ends"][0]["rtt_ms"].as_f64() >= Some(600.0), "{document}");
        for (hearing, speaking) in [(&called, &caller), (&caller, &called)] {
            let (heard, said, own) = (hearing.heard(), speaking.said(), hearing.said());
            let (right, wrong) = (likeness(&heard, &said), likeness(&heard, &own));
            let seconds = heard.len() as f64 / RATE as f64;
            eprintln!("heard {seconds:.1} s, likeness {right:.3} with what was said, {wrong:.3} with other speech");
            assert!(seconds > 5.0, "only {seconds} s were heard: {document}");
            assert!(right > 0.9 && wrong < right - 0.1, "likeness {right}, with other speech {wrong}: {document}");
        }
        let flows = document["ends"][0]["flows"].as_array().unwrap();
        let speech = |mine: bool| flows.iter().find(|flow| flow["opened_here"] == mine && flow["port"] == 1).unwrap();
        assert!(speech(true)["sent_datagrams"].as_u64() > Some(250), "{document}");
        assert!(speech(false)["received_datagrams"].as_u64() > Some(250), "{document}");
        server.interrupt();
        server.finish().says(0, &[]);
    });
}
