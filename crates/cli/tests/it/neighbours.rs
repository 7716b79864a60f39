//! Neighbours that speak SRT, RIST or RTP, in and out: ffmpeg and `ristsender` send, `srt-live-transmit` and
//! `ristreceiver` fetch.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::{Ran, Running, Test, free_port, free_ports, transport_stream};
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
    program("srt-live-transmit", &["-q", "-loglevel:fatal", from, "file://con"], out.into())
}

/// Starts it; `None` if it is not installed and need not be.
fn program(name: &str, args: &[&str], out: Stdio) -> Option<Program> {
    match Command::new(name).args(args).stdin(Stdio::null()).stdout(out).stderr(Stdio::null()).spawn() {
        Ok(child) => {
            peers::met(name);
            Some(Program(child))
        }
        Err(error) => {
            assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "{name}: {error}");
            peers::lacks(name, "not installed");
            None
        }
    }
}

/// Two ports, of which the first is even and the second the one behind it, as RTP and RTCP have them.
fn free_pair() -> u16 {
    let first = || std::iter::repeat_with(free_port).find(|port| port % 2 == 0);
    std::iter::repeat_with(first).flatten().take(100).find(|port| free_port() == port + 1).expect("two free ports")
}

/// Collects what is played to `port`, until a datagram of nothing comes.
fn player(port: u16) -> std::thread::JoinHandle<Vec<Vec<u8>>> {
    let player = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        let (mut datagrams, mut buf) = (Vec::new(), [0; 2000]);
        while let Ok(len @ 1..) = player.recv(&mut buf) {
            datagrams.push(buf[..len].to_vec());
        }
        datagrams
    })
}

fn end_playing(port: u16) {
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], ("127.0.0.1", port)).unwrap();
}

#[test]
fn what_comes_by_rist_with_a_secret_over_a_lossy_network_goes_on_by_rist_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let clip = std::fs::metadata(transport_stream(dir, 4)).unwrap().len();
    let ([port, input, fed, played], output, lossy) = (free_ports(), free_pair(), free_port());
    std::fs::write(dir.join("rist.key"), "correct horse\n").unwrap();
    let playing = player(played);
    let [from, to] = [format!("rist://@127.0.0.1:{output}"), format!("udp://127.0.0.1:{played}")];
    let Some(_fetching) = program("ristreceiver", &["-p", "0", "-b", "500", "-i", &from, "-o", &to], Stdio::null())
    else {
        return;
    };
    let receiver = Running::start(dir, &format!("receive {port} out.ts rist://127.0.0.1:{output}?buffer=500 --json"));
    let receiver = receiver.wait_for("RIST's simple profile, not encrypted");
    let args = format!("send rist://:{input}?secret=@rist.key&buffer=700 --to 127.0.0.1:{port} --json");
    let sender = Running::start(dir, &args).wait_for("connected");
    let network = format!("emulate {lossy} 127.0.0.1:{input} --delay 20ms --loss 2% --both");
    let network = Running::start(dir, &network).wait_for("listening");
    let [from, to] = [format!("udp://@127.0.0.1:{fed}"), format!("rist://127.0.0.1:{lossy}?aes-type=256")];
    let args = ["-p", "1", "-s", "correct horse", "-e", "256", "-i", &from, "-o", &to];
    let Some(_sending) = program("ristsender", &args, Stdio::null()) else { return };
    // The main profile has a tunnel first, and the encoder's first frame must find it.
    std::thread::sleep(Duration::from_millis(700));
    assert!(ffmpeg(dir, &format!("udp://127.0.0.1:{fed}?pkt_size=1316")));
    std::thread::sleep(Duration::from_millis(1200));
    sender.interrupt();
    let (sent, received) = (sender.finish(), receiver.finish());
    network.interrupt();
    sent.says(0, &["RIST's main profile, AES-256; buffer 700 ms"]);
    received.says(0, &[]);
    // What came last is played within its buffer.
    std::thread::sleep(Duration::from_millis(700));
    end_playing(played);
    let (played, out) = (playing.join().unwrap().concat(), std::fs::read(dir.join("out.ts")).unwrap());
    // ffmpeg packs the clip anew.
    assert!(out.len() as u64 > clip * 9 / 10, "{} of {clip}", out.len());
    // A receiver of RIST heeds nothing before both ends know of each other.
    assert!(out.ends_with(&played), "not the end of the same bytes: {} of {}", played.len(), out.len());
    assert!(out.len() - played.len() <= 25_000, "{} of {}", played.len(), out.len());
    let (sent, received) = (sent.json(), received.json());
    let neighbour = &sent["neighbour"];
    assert_eq!((&neighbour["protocol"], &neighbour["key_bytes"]), (&"rist".into(), &32.into()));
    assert_eq!((&neighbour["skipped_packets"], &neighbour["undecrypted_packets"]), (&0.into(), &0.into()));
    assert!(neighbour["recovered_packets"].as_u64().unwrap() > 0, "{neighbour}");
    let neighbour = &received["neighbours"][0];
    assert_eq!((&neighbour["protocol"], &neighbour["dropped_packets"]), (&"rist".into(), &0.into()));
    assert!(!sent.to_string().contains("horse"), "a secret is shown");
}

#[test]
fn an_encoder_that_sends_by_srt_hears_the_rate_that_encoders_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let clip = std::fs::metadata(transport_stream(dir, 4)).unwrap().len();
    assert!(clip * 8 / 4 < 2_000_000, "what comes is less than what is told");
    let [port, srt, fed] = free_ports();
    let _receiver = Running::start(dir, &format!("receive 127.0.0.1:{port} out.ts")).wait_for("listening");
    let args = format!(
        "send srt://:{srt}?latency=200 --to 127.0.0.1:{port} --rate-report rates.json,range=3mbit-3100kbit --give-up 2s"
    );
    let sender = Running::start(dir, &args).wait_for("connected");
    let statistics = dir.join("statistics");
    let out = format!("-statsout:{}", statistics.display());
    let [from, to] = [format!("udp://:{fed}"), format!("srt://127.0.0.1:{srt}?latency=200")];
    let args = ["-loglevel:fatal", "-chunk:1316", "-s:50", "-pf:json", &out, &from, &to];
    let Some(_tool) = program("srt-live-transmit", &args, Stdio::null()) else { return };
    let sender = sender.wait_for("connected to 127.0.0.1");
    assert!(ffmpeg(dir, &format!("udp://127.0.0.1:{fed}?pkt_size=1316")));
    let text = std::fs::read_to_string(&statistics).unwrap();
    let (_, rest) = text.rsplit_once("\"bandwidth\":").unwrap_or_else(|| panic!("no bandwidth in {text}"));
    let shown: f64 = rest.split([',', '}']).next().unwrap().trim().parse().unwrap();
    // libsrt's mean over eight acknowledgements begins with nothing, and a short clip has few of them.
    assert!((2.6..3.12).contains(&shown), "{shown} of 3 to 3.1 Mbit/s");
    sender.interrupt();
}

#[test]
fn gstreamer_sends_by_srt_and_fetches_by_srt_and_by_rist() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let clip = transport_stream(dir, 4);
    let ([srt, out], rist) = (free_ports(), free_pair());
    let args = format!(
        "receive srt://:{srt}?latency=200 srt://:{out}?latency=200 rist://127.0.0.1:{rist}?buffer=300 --give-up 2s"
    );
    let receiver = Running::start(dir, &args).wait_for("listening on srt://");
    let gst = |pipeline: &str| program("gst-launch-1.0", &[&["-q"], &*words(pipeline)].concat(), Stdio::null());
    let [by_srt, by_rist] = ["srt.ts", "rist.ts"].map(|name| dir.join(name));
    let file = |path: &Path| format!("filesink location={}", path.display());
    let fetch = format!("srtsrc uri=srt://127.0.0.1:{out}?latency=200 ! {}", file(&by_srt));
    let Some(_by_srt) = gst(&fetch) else { return };
    let fetch = format!("ristsrc address=0.0.0.0 port={rist} receiver-buffer=300 ! rtpmp2tdepay ! {}", file(&by_rist));
    let Some(_by_rist) = gst(&fetch) else { return };
    let receiver = receiver.wait_for("SRT latency").wait_for("RIST's simple profile");
    let send = format!(
        "filesrc location={} ! tsparse set-timestamps=true ! identity sync=true ! \
         srtsink uri=srt://127.0.0.1:{srt}?latency=200 wait-for-connection=true",
        clip.display()
    );
    let Some(mut sending) = gst(&send) else { return };
    assert!(sending.0.wait().unwrap().success());
    receiver.finish().says(0, &["a stream from srt://"]);
    let sent = std::fs::metadata(&clip).unwrap().len();
    for path in [by_srt, by_rist] {
        // Both write what they have when their buffers are full.
        let came = std::fs::metadata(&path).map_or(0, |it| it.len());
        assert!(came > sent * 7 / 10, "{came} of {sent} bytes in {}", path.display());
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn who_has_another_secret_of_rist_is_told_of_and_not_heard() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ([port, fed], input) = (free_ports(), free_pair());
    let listen = format!("{port},rist://:{input}?secret=correct%20horse");
    let receiver = Running::start(dir, &format!("receive {listen} out.ts")).wait_for("listening on rist://");
    let [from, to] = [format!("udp://@127.0.0.1:{fed}"), format!("rist://127.0.0.1:{input}?aes-type=128")];
    let args = ["-p", "1", "-s", "wrong horse", "-e", "128", "-i", &from, "-o", &to];
    let Some(_sending) = program("ristsender", &args, Stdio::null()) else { return };
    let receiver = receiver.wait_for("its secret is another one");
    let simple = UdpSocket::bind("127.0.0.1:0").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    // RTP that is not encrypted.
    let mut packet = vec![0x80, 33, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    packet.extend([0x47; 188]);
    for _ in 0..20 {
        simple.send_to(&packet, ("127.0.0.1", input)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let receiver = receiver.wait_for("it does not encrypt");
    receiver.interrupt();
    let ran = receiver.finish();
    ran.says(0, &["nothing was written"]);
    assert!(!dir.join("out.ts").exists());
    Test::new(&format!("send rist://127.0.0.1:{input} --to 127.0.0.1:{port}")).run().says(2, &["rist://:PORT"]);
    Test::new(&format!("receive {port} rist://:{input}")).run().says(2, &["rist://HOST:PORT"]);
    let keyed = "--key correct-horse-battery-staple";
    let open = Test::new(&format!("send rist://:{input} --to 127.0.0.1:{port} {keyed} --give-up 1s")).run();
    open.says(2, &["anybody may be that neighbour", "rist://:PORT?open"]);
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
    sent.says(0, &["stream '#!::r=cam1,m=publish', AES-256; SRT latency 200 ms towards here", "; 700 ms in total"]);
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
    assert_eq!((&neighbour["latency_ms"], &neighbour["total_latency_ms"]), (&200.0.into(), &700.0.into()));
    assert_eq!((&neighbour["skipped_packets"], &neighbour["undecrypted_packets"]), (&0.into(), &0.into()));
    let neighbours = received["neighbours"].as_array().unwrap();
    assert_eq!((&neighbours[0]["key_bytes"], &neighbours[0]["dropped_packets"]), (&16.into(), &0.into()));
    assert_eq!((&neighbours[1]["connected"], &neighbours[1]["remote"]), (&false.into(), &serde_json::Value::Null));
    for ran in [&sent, &received] {
        assert!(!ran.to_string().contains("horse"), "a secret is shown");
    }
}

/// Two seconds of video by this encoder go to `to`, at their own speed.
fn encode(dir: &Path, encoder: &str, to: &str) -> bool {
    let video = ["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-t", "2"];
    let codec = ["-c:v", encoder, "-b:v", "500k", "-bf", "0", "-g", "10", "-f", "mpegts", to];
    Command::new("ffmpeg").current_dir(dir).args(video).args(codec).status().unwrap().success()
}

/// Frames that begin on ffmpeg's PID for video while its program table has the first one of these
/// types of streams, and then the second one.
fn frames_by_type(stream: &[u8], types: [u8; 2]) -> [usize; 2] {
    let (mut now, mut frames) = (None, [0; 2]);
    for packet in stream.chunks_exact(188) {
        let begins = packet[1] & 0x40 != 0;
        match u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) {
            // Behind the pointer and 12 bytes of the table, as it has no descriptors of the
            // program.
            0x1000 if begins => now = types.iter().position(|it| *it == packet[5 + 12]),
            0x100 if begins => frames[now.expect("a table, of a type that was sent")] += 1,
            _ => {}
        }
    }
    frames
}

#[test]
fn a_source_that_comes_back_as_another_stream_of_another_codec_goes_on_in_the_same_session() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let [port, input] = free_ports();
    let receiver = Running::start(dir, &format!("receive {port} out.ts --json")).wait_for("listening");
    let sender =
        Running::start(dir, &format!("send srt://:{input} --to 127.0.0.1:{port} --json")).wait_for("connected");
    let to = |id: &str| format!("srt://127.0.0.1:{input}?streamid={id}");
    assert!(encode(dir, "libx264", &to("cam1")));
    let sender = sender.wait_for("the neighbour ended the connection");
    assert!(encode(dir, "mpeg2video", &to("studio/b")));
    let sender = sender.wait_for("stream 'studio/b'");
    // What came last waits for its time.
    std::thread::sleep(Duration::from_secs(1));
    sender.interrupt();
    let (sent, received): (Ran, Ran) = (sender.finish(), receiver.finish());
    sent.says(0, &["stream 'cam1'", "stream 'studio/b'"]);
    received.says(0, &[]);
    let frames = frames_by_type(&std::fs::read(dir.join("out.ts")).unwrap(), [0x1b, 0x02]);
    // ffmpeg does not wait for its last packets when it goes.
    assert!(frames.iter().all(|count| (40..=50).contains(count)), "{frames:?}");
    let (sent, received) = (sent.json(), received.json());
    assert_eq!((&sent["restarts"], &sent["neighbour"]["stream_id"]), (&0.into(), &"studio/b".into()), "{sent}");
    assert_eq!((&received["complete_streams"], &received["restarts"]), (&1.into(), &0.into()), "{received}");
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
    let playing = player(output);
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
    end_playing(output);
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

#[test]
fn two_networks_have_the_same_packets_and_one_of_them_may_go() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    transport_stream(dir, 6);
    let [port, first, second, one, two] = free_ports();
    let emulate = |from: u16, to: u16, how: &str| {
        Running::start(dir, &format!("emulate {from} 127.0.0.1:{to} {how}")).wait_for("listening")
    };
    // What the first one loses the second one brings 12 ms later, until there is no first one.
    let networks = [emulate(first, one, "--loss 10%"), emulate(second, two, "--delay 12ms")];
    let copy = format!("receive rtp://127.0.0.1:{one}?copy=127.0.0.1:{two} copy.ts --json");
    let copy = Running::start(dir, &copy).wait_for("listening on rtp://");
    let outputs = format!("out.ts rtp://127.0.0.1:{first}?copy=127.0.0.1:{second}");
    let receiver = Running::start(dir, &format!("receive {port} {outputs}")).wait_for("listening");
    let sender = Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{port} --latency 100ms"));
    let copy = copy.wait_for("begins");
    std::thread::sleep(Duration::from_millis(1500));
    let [network, other] = networks;
    network.kill();
    let copy = copy.wait_for("nothing comes here");
    sender.finish().says(0, &[]);
    receiver.finish().says(0, &[]);
    std::thread::sleep(Duration::from_millis(500));
    copy.interrupt();
    let ran = copy.finish();
    other.interrupt();
    ran.says(0, &[&format!("rtp://127.0.0.1:{one}: nothing comes here")]);
    let [out, copied] = ["out.ts", "copy.ts"].map(|name| std::fs::read(dir.join(name)).unwrap());
    assert!(out == copied && out.len() > 400_000, "{} and {}", out.len(), copied.len());
    let json = ran.json();
    let neighbour = &json["neighbour"];
    assert_eq!((&neighbour["protocol"], &neighbour["skipped_packets"]), (&"rtp".into(), &0.into()), "{json}");
    let links = neighbour["links"].as_array().unwrap();
    let packets = [0, 1].map(|at: usize| links[at]["received_packets"].as_u64().unwrap());
    assert!(packets[0] > 50 && packets[1] > 2 * packets[0], "{neighbour}");
}
