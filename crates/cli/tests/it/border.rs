//! `receive` as a listener for neighbours beside senders of ours: phones that bond, encoders, RTP.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

#[path = "../../../gateway/tests/it/common/phone.rs"]
mod phone;

use crate::common::{Running, Test, free_ports, transport_stream};
use braidcast_core::{Instant, Rng};
use braidcast_driver::{Bind, Driver};
use braidcast_gateway::srt::{Event, Options, Passphrase};
use phone::Phone;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a phone tries.
const PATIENCE: Duration = Duration::from_secs(20);

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A phone sends `media` in two seconds over a network for each port; it goes with a word, or without.
fn send_by_phone(ports: [u16; 2], media: &[u8], mark: u8, says_goodbye: bool) {
    send_encrypted("correct horse", ports, media, mark, says_goodbye);
}

/// The same with this passphrase.
fn send_encrypted(passphrase: &str, ports: [u16; 2], media: &[u8], mark: u8, says_goodbye: bool) {
    let mut driver = Driver::new().unwrap();
    for _ in ports {
        driver.bind(&Bind::to_addr(local(0))).unwrap();
    }
    let passphrase = Some(Passphrase::new(passphrase.into()).unwrap());
    let options = Options { passphrase, stream_id: Some("cam1".into()), ..Options::default() };
    let rng = Rng::from_seed(mark.into());
    let mut phone = Phone::new(driver.now(), options, ports.map(local).to_vec(), mark, rng);
    let give_up = driver.now() + PATIENCE;
    let mut drive = |phone: &mut Phone, until: Instant| {
        while driver.now() < until {
            driver.drive(phone, Some(until)).unwrap();
        }
        assert!(driver.now() < give_up, "no end");
        driver.now()
    };
    let mut now = Instant::ZERO;
    while !matches!(braidcast_core::Machine::poll_event(&mut phone), Some(Event::Connected(_))) {
        now = drive(&mut phone, now + Duration::from_millis(10));
    }
    let payloads = media.chunks(7 * 188);
    let each = Duration::from_secs(2) / payloads.len() as u32;
    for payload in payloads {
        phone.inside.push(now, payload);
        now = drive(&mut phone, now + each);
    }
    while !phone.inside.is_drained() {
        now = drive(&mut phone, now + Duration::from_millis(10));
    }
    if says_goodbye {
        phone.inside.close(now);
        drive(&mut phone, now + Duration::from_millis(100));
    }
}

#[test]
fn a_phone_comes_over_two_lossy_networks_and_comes_back_into_the_same_file() {
    let (dir, [port, phone, wifi, lte]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = fs::read(transport_stream(dir, 4)).unwrap();
    fs::write(dir.join("srt.key"), "correct horse\n").unwrap();
    let args = format!(
        "receive {port},srtla://:{phone}?latency=1s&passphrase=@srt.key out.ts --key open-sesame-2026 --give-up 4s --json"
    );
    let receiver = Running::start(dir, &args).wait_for("listening on srtla://");
    let emulate = |at: u16, how: &str| {
        Running::start(dir, &format!("emulate 127.0.0.1:{at} 127.0.0.1:{phone} {how}")).wait_for("listening")
    };
    let _links = (emulate(wifi, "--delay 10ms --loss 2%"), emulate(lte, "--delay 40ms --loss 2%"));
    let (first, second) = clip.split_at(clip.len() / 2 / 1316 * 1316);
    // Its battery is empty; it comes back with another one.
    send_by_phone([wifi, lte], first, 1, false);
    send_by_phone([wifi, lte], second, 2, true);
    let ran = receiver.finish();
    ran.says(0, &["stream 'cam1', AES-128", "a stream from srtla://", "the stream goes on", "the neighbour ended"]);
    assert!(fs::read(dir.join("out.ts")).unwrap() == clip, "not the same bytes");
    let json = ran.json();
    let neighbour = &json["neighbour"];
    assert_eq!((&neighbour["protocol"], &neighbour["key_bytes"]), (&"srtla".into(), &16.into()));
    let (count, links) =
        (|it: &serde_json::Value| it["received_packets"].as_u64().unwrap(), neighbour["links"].as_array().unwrap());
    assert!(links.len() == 2 && links.iter().all(|link| count(link) > 50), "{links:?}");
    assert_eq!((&json["complete_streams"], &json["restarts"]), (&1.into(), &1.into()));
    let kind = &json["kinds"][0];
    let packets = clip.len().div_ceil(1316);
    assert_eq!((&kind["kind"], &kind["on_time"], &kind["missing"]), (&"data".into(), &packets.into(), &0.into()));
    assert!(!json.to_string().contains("horse"), "a secret is shown");
}

/// What README says to type, with another port.
#[test]
fn the_readmes_line_for_a_phone_takes_one_over_two_emulated_networks() {
    let (dir, [phone, wifi, lte]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = fs::read(transport_stream(dir, 2)).unwrap();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("braidcast receive 'srtla://:5000?")).unwrap();
    let (options, file) = line.split_once("' ").unwrap();
    let passphrase = options.split_once("passphrase=").unwrap().1.split('&').next().unwrap();
    let args = format!("receive srtla://:{phone}?{options} {file} --give-up 3s");
    let receiver = Running::start(dir, &args).wait_for("listening on srtla://");
    let emulate = |at: u16, how: &str| {
        Running::start(dir, &format!("emulate 127.0.0.1:{at} 127.0.0.1:{phone} {how}")).wait_for("listening")
    };
    let _links = (emulate(wifi, "--delay 10ms --loss 2%"), emulate(lte, "--delay 40ms --loss 2%"));
    send_encrypted(passphrase, [wifi, lte], &clip, 3, true);
    receiver.finish().says(0, &["AES-128", "SRT latency 1.5 s"]);
    assert!(fs::read(dir.join(file)).unwrap() == clip, "not the same bytes");
}

/// ffmpeg with SRT plays the clip.
fn ffmpeg(dir: &Path, to: &str) -> bool {
    let args = ["-nostdin", "-v", "error", "-re", "-i", "clip.ts", "-c", "copy", "-f", "mpegts", to];
    Command::new("ffmpeg").current_dir(dir).args(args).status().unwrap().success()
}

#[test]
fn names_of_encoders_and_of_our_senders_go_where_each_belongs() {
    let (dir, [port, srt]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = fs::read(transport_stream(dir, 2)).unwrap();
    let args = format!(
        "receive {port},srt://:{srt}?latency=200 --accept cam1=one.ts --accept cam2=two.ts --give-up 1s --json"
    );
    let receiver = Running::start(dir, &args).wait_for("listening on srt://");
    let to = |id: &str| format!("srt://127.0.0.1:{srt}?streamid={id}");
    assert!(!ffmpeg(dir, &to("cam3")), "a name that nobody expects");
    let encoder = std::thread::spawn({
        let (dir, to) = (dir.to_owned(), to("#!::r=live/cam1,m=publish"));
        move || assert!(ffmpeg(&dir, &to))
    });
    let receiver = receiver.wait_for("cam1: a stream from srt://");
    let send =
        |name: &str| Test::new(&format!("send in.ts --to 127.0.0.1:{port} --name {name}")).file("in.ts", &clip).run();
    send("cam1 --end-with-receiver").says(1, &["another sender is being received"]);
    send("cam2").says(0, &[]);
    encoder.join().unwrap();
    let ran = receiver.finish();
    ran.says(0, &["stream 'cam3'", "not encrypted"]);
    let [one, two] = ["one.ts", "two.ts"].map(|name| fs::read(dir.join(name)).unwrap());
    assert!(two == clip, "{} of {} bytes", two.len(), clip.len());
    // ffmpeg packs the clip anew, and does not wait for the last packets when it goes.
    assert!(one.len() > clip.len() * 8 / 10 && one.starts_with(&[0x47]), "{} of {}", one.len(), clip.len());
    let json = ran.json();
    assert_eq!(json["complete_streams"], 2, "{json}");
    let streams = json["streams"].as_array().unwrap();
    assert_eq!(
        (&streams[0]["neighbour"]["protocol"], &streams[1]["neighbour"]),
        (&"srt".into(), &serde_json::Value::Null)
    );
}

#[test]
fn each_encoder_has_a_passphrase_of_its_own_by_a_list_that_is_read_again() {
    let (dir, [port, srt]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    transport_stream(dir, 2);
    let list = |second: &str| {
        fs::write(dir.join("phones"), format!("# phones\ncam1 correct horse\ncam2 {second}\n")).unwrap();
    };
    list("another horse");
    let args = format!(
        "receive {port},srt://:{srt}?latency=200&keys=@phones {{name}}.ts --key open-sesame-2026 --keep --json"
    );
    let receiver = Running::start(dir, &args).wait_for("listening on srt://");
    let to = |id: &str, secret: &str| format!("srt://127.0.0.1:{srt}?streamid={id}&passphrase={secret}");
    assert!(ffmpeg(dir, &to("live/cam1", "correct horse")));
    for (id, secret) in [("cam1", "another horse"), ("cam3", "correct horse")] {
        assert!(!ffmpeg(dir, &to(id, secret)), "{id} with {secret}");
    }
    let receiver = receiver.wait_for("stream 'cam1': the passphrases differ (code 1010)").wait_for("(code 1403)");
    // Another passphrase for one of them; a list without sense changes nothing.
    list("a third horse");
    receiver.signal("HUP");
    let receiver = receiver.wait_for("phones was read again");
    assert!(!ffmpeg(dir, &to("cam2", "another horse")), "the passphrase of before");
    list("short");
    receiver.signal("HUP");
    let receiver = receiver.wait_for("phones:3: a passphrase of SRT has 10 to 79 bytes; this one has 5");
    assert!(ffmpeg(dir, &to("cam2", "a third horse")));
    receiver.interrupt();
    let ran = receiver.finish();
    ran.says(0, &["stream 'live/cam1', AES-128", "stream 'cam3'", "going on with what it said before"]);
    assert!(!ran.json().to_string().contains("horse"), "a secret is shown");
    for name in ["cam1.ts", "cam2.ts"] {
        assert!(fs::metadata(dir.join(name)).unwrap().len() > 50_000, "{name}");
    }
    assert!(!dir.join("cam3.ts").exists());
}

/// A hash of each decoded frame of the first stream of this kind, `v` or `a`.
pub(crate) fn frames(file: &Path, kind: &str) -> Vec<String> {
    let map = format!("0:{kind}:0");
    let args = ["-nostdin", "-v", "error", "-i"];
    hashes(Command::new("ffmpeg").args(args).arg(file).args(["-map", &map, "-f", "framemd5", "-"]))
}

/// The same of audio as it is coded: what a decoder makes of it depends on all that came before.
pub(crate) fn coded_sound(file: &Path) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-i"]).arg(file);
    hashes(command.args(["-map", "0:a:0", "-c", "copy", "-bsf:a", "aac_adtstoasc", "-f", "framemd5", "-"]))
}

fn hashes(ffmpeg: &mut Command) -> Vec<String> {
    let text = String::from_utf8(ffmpeg.output().unwrap().stdout).unwrap();
    // The sixth column; what goes with a packet follows.
    let hash = |line: &str| line.split(',').nth(5).unwrap_or_default().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

#[test]
fn as_many_streams_come_in_at_a_time_as_are_wanted() {
    let (dir, [port, srt]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    transport_stream(dir, 3);
    let args = format!("receive {port},srt://:{srt}?latency=200 {{name}}.ts --streams 2 --give-up 1s");
    let receiver = Running::start(dir, &args).wait_for("listening on srt://");
    let to = |id: &str| format!("srt://127.0.0.1:{srt}?streamid={id}");
    let encoders = ["cam1", "cam2"].map(|id| {
        let (dir, to) = (dir.to_owned(), to(id));
        std::thread::spawn(move || ffmpeg(&dir, &to))
    });
    let receiver = receiver.wait_for("cam1: a stream").wait_for("cam2: a stream");
    assert!(!ffmpeg(dir, &to("cam3")), "a third one");
    encoders.into_iter().for_each(|encoder| assert!(encoder.join().unwrap()));
    receiver.finish().says(0, &["stream 'cam3'"]);
    assert!(dir.join("cam1.ts").exists() && dir.join("cam2.ts").exists() && !dir.join("cam3.ts").exists());
}

#[test]
fn what_an_encoder_publishes_by_rtmp_comes_out_as_the_same_pictures() {
    let (dir, [port, rtmp]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = transport_stream(dir, 3);
    fs::write(dir.join("stream.key"), "a-long-key\n").unwrap();
    let args =
        format!("receive {port},rtmp://:{rtmp}/live/@stream.key out.ts --key open-sesame-2026 --give-up 1s --json");
    let receiver = Running::start(dir, &args).wait_for(&format!("listening on rtmp://:{rtmp}/live"));
    let publish = |key: &str| {
        let args = ["-nostdin", "-v", "error", "-re", "-i", "clip.ts", "-c", "copy", "-f", "flv"];
        let to = format!("rtmp://127.0.0.1:{rtmp}/live/{key}");
        Command::new("ffmpeg").current_dir(dir).args(args).arg(to).stderr(Stdio::null()).status().unwrap().success()
    };
    // More than there are places for, which say nothing.
    let strangers: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(("127.0.0.1", rtmp)).unwrap()).collect();
    assert!(!publish("another-key"), "a key that is not expected");
    assert!(publish("a-long-key"));
    drop(strangers);
    let ran = receiver.finish();
    ran.says(0, &["cut off 127.0.0.1: its stream is not expected", "publishes, not encrypted", "the encoder ended"]);
    let out = dir.join("out.ts");
    for kind in ["v", "a"] {
        let (sent, came) = (frames(&clip, kind), frames(&out, kind));
        assert!(came.len() > 50 && came == sent, "{kind}: {} of {} frames", came.len(), sent.len());
    }
    let json = ran.json();
    assert_eq!((&json["neighbour"]["protocol"], &json["complete_streams"]), (&"rtmp".into(), &1.into()));
    assert!(!json.to_string().contains("a-long-key"), "a secret is shown");
}

#[test]
fn what_cannot_be_meant_is_refused_at_the_start() {
    let keyed = "--key correct-horse-battery-staple";
    let [port, other] = free_ports();
    for (args, words) in [
        (format!("receive 9000,srtla://:5000 out.ts {keyed}"), ["anybody may be that neighbour", "?open"]),
        (format!("receive 9000,rtp://:5004 out.ts {keyed}"), ["anybody may send to rtp://", "?open"]),
        (format!("receive {port},rtp://:{other} {{name}}.ts"), ["it does not say", "?name=cam1"]),
        (
            format!("receive {port},srt://:{other}?keys=@nowhere {{name}}.ts"),
            ["cannot read keys=@nowhere", "a line is"],
        ),
        (
            format!("receive {port},srt://:{other}?name=cam2 --accept cam1=out.ts"),
            ["'cam2' has no output", "?name=cam1"],
        ),
        ("receive 9000 rtmp://live.example".into(), ["APP and KEY are missing", "as the platform shows them"]),
        ("receive 9000 rtmps://live.example/app".into(), ["APP or KEY is missing", "@FILE"]),
        ("receive 9000 out.ts --streams 2".into(), ["--streams has no effect", "{name}"]),
        ("receive rtsp://:5000 out.ts".into(), ["nothing listens for 'rtsp://'", "rist://"]),
        ("receive rist://:5001 out.ts".into(), ["even port", "profile=main"]),
        (format!("receive {port},rist://:5000 {{name}}.ts"), ["it does not say", "?name=cam1"]),
        ("send srt://:5000?name=cam1 --to a:1".into(), ["name= is for LISTEN", "leave it out"]),
    ] {
        Test::new(&args).run().says(2, &words);
    }
}
