//! Neighbours that speak SRT or RTP, in and out: ffmpeg sends, `srt-live-transmit` fetches.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::{Ran, Running, Test, free_ports, transport_stream};
use braidcast_gateway::rtp::Packet;
use braidcast_testing::peers;
use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that does not outlive its test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// ffmpeg with SRT plays `clip.ts` to `to`, to its end.
fn ffmpeg(dir: &Path, to: &str) -> bool {
    let args = ["-nostdin", "-v", "error", "-re", "-i", "clip.ts", "-c", "copy", "-f", "mpegts", to];
    Command::new("ffmpeg").current_dir(dir).args(args).status().unwrap().success()
}

fn fetch(dir: &Path, from: &str, file: &str) -> Option<Program> {
    let out = File::create(dir.join(file)).unwrap();
    let mut command = Command::new("srt-live-transmit");
    command.args(["-q", "-loglevel:fatal", from, "file://con"]).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => {
            peers::met("srt-live-transmit");
            Some(Program(child))
        }
        Err(error) => {
            assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "srt-live-transmit: {error}");
            peers::lacks("srt-live-transmit", "not installed");
            None
        }
    }
}

#[test]
fn what_an_encoder_sends_by_srt_comes_out_by_srt_and_into_a_file_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let clip = std::fs::metadata(transport_stream(dir, 4)).unwrap().len();
    let [port, input, output, nobody] = free_ports();
    std::fs::write(dir.join("srt.key"), "correct horse\n").unwrap();
    let outputs = format!("out.ts srt://127.0.0.1:{output}?mode=listener&passphrase=@srt.key srt://127.0.0.1:{nobody}");
    let receiver = Running::start(dir, &format!("receive {port} {outputs} --json")).wait_for("listening");
    let url = format!("srt://127.0.0.1:{output}?passphrase=correct horse&latency=200");
    let Some(_fetching) = fetch(dir, &url, "fetched.ts") else { return };
    let receiver = receiver.wait_for("AES-128");
    let args =
        format!("send srt://:{input}?latency=200&passphrase=@srt.key&streamid=cam1 --to 127.0.0.1:{port} --json");
    let sender = Running::start(dir, &args).wait_for("connected");
    let options = "passphrase=correct horse&pbkeylen=32&latency=100000&streamid=#!::r=cam1,m=publish";
    assert!(ffmpeg(dir, &format!("srt://127.0.0.1:{input}?{options}")));
    let sender = sender.wait_for("the neighbour ended the connection");
    sender.interrupt();
    let (sent, received): (Ran, Ran) = (sender.finish(), receiver.finish());
    sent.says(0, &["stream '#!::r=cam1,m=publish', AES-256; SRT latency 200 ms towards here"]);
    received.says(0, &["connected to 127.0.0.1:", "AES-128"]);
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let (out, mut fetched) = (read("out.ts"), read("fetched.ts"));
    // srt-live-transmit writes what it has got when its turn comes, which is late on a busy machine.
    let until = Instant::now() + Duration::from_secs(5);
    while out.len() - fetched.len() >= 20_000 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        fetched = read("fetched.ts");
    }
    // ffmpeg packs the clip anew, and does not wait for the last packets when it goes.
    assert!(out.len() as u64 > clip * 9 / 10, "{} of {clip}", out.len());
    assert!(out.len() - fetched.len() < 20_000, "{} of {}", fetched.len(), out.len());
    assert!(out.starts_with(&fetched), "not the same bytes");
    let (sent, received) = (sent.json(), received.json());
    let neighbour = &sent["neighbour"];
    assert_eq!((&neighbour["protocol"], &neighbour["key_bytes"]), (&"srt".into(), &32.into()));
    assert_eq!((&neighbour["skipped_packets"], &neighbour["undecrypted_packets"]), (&0.into(), &0.into()));
    let neighbours = received["neighbours"].as_array().unwrap();
    assert_eq!((&neighbours[0]["key_bytes"], &neighbours[0]["dropped_packets"]), (&16.into(), &0.into()));
    assert_eq!((&neighbours[1]["connected"], &neighbours[1]["remote"]), (&false.into(), &serde_json::Value::Null));
    for ran in [&sent, &received] {
        assert!(!ran.to_string().contains("horse"), "a secret is shown");
    }
}

#[test]
fn a_neighbour_that_anybody_may_be_needs_a_word_where_a_key_is_asked_for() {
    let [port, input] = free_ports();
    let keyed = "--key correct-horse-battery-staple";
    let send = |url: &str| Test::new(&format!("send {url} --to 127.0.0.1:{port} {keyed} --give-up 1s")).run();
    send(&format!("srt://127.0.0.1:{input}?mode=listener")).says(2, &["anybody may be that neighbour", "?open"]);
    Test::new(&format!("receive {port} srt://127.0.0.1:{input} {keyed}")).run().says(2, &["anybody may be"]);
    // It is allowed then, and fails for want of a receiver.
    send(&format!("srt://127.0.0.1:{input}?mode=listener&open")).says(1, &["no connection"]);
    Test::new(&format!("send srt://127.0.0.1:{input} --reliable --to 127.0.0.1:{port}")).run().says(2, &["is live"]);
}

#[test]
fn what_ffmpeg_sends_by_rtp_goes_on_by_rtp() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    transport_stream(dir, 3);
    // ffmpeg sends RTCP to the port behind.
    let [port, output, input, _rtcp] = free_ports();
    let player = UdpSocket::bind(("127.0.0.1", output)).unwrap();
    // It ends with a datagram of nothing.
    let playing = std::thread::spawn(move || {
        let (mut datagrams, mut buf) = (Vec::new(), [0; 2000]);
        while let Ok(len @ 1..) = player.recv(&mut buf) {
            datagrams.push(buf[..len].to_vec());
        }
        datagrams
    });
    let receiver =
        Running::start(dir, &format!("receive {port} rtp://127.0.0.1:{output} out.ts")).wait_for("listening");
    let sender =
        Running::start(dir, &format!("send rtp://127.0.0.1:{input} --to 127.0.0.1:{port} --latency 100ms --json"));
    let sender = sender.wait_for("connected");
    let args = ["-nostdin", "-v", "error", "-re", "-i", "clip.ts", "-c", "copy", "-f", "rtp_mpegts"];
    let to = format!("rtp://127.0.0.1:{input}");
    assert!(Command::new("ffmpeg").current_dir(dir).args(args).arg(to).status().unwrap().success());
    sender.interrupt();
    let sent = sender.finish();
    receiver.finish().says(0, &[]);
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], ("127.0.0.1", output)).unwrap();
    let (mut played, mut next) = (Vec::new(), None);
    for datagram in playing.join().unwrap() {
        let Packet { header, payload } = Packet::parse(&datagram).expect("RTP");
        assert!(header.kind == 33 && payload.len().is_multiple_of(188));
        assert!(next.is_none_or(|next| next == header.sequence), "in order");
        next = Some(header.sequence.wrapping_add(1));
        played.extend_from_slice(payload);
    }
    let out = std::fs::read(dir.join("out.ts")).unwrap();
    assert!(played == out && out.len() > 200_000, "{} and {}", played.len(), out.len());
    assert_eq!(sent.json()["format"], "mpeg-ts");
}
