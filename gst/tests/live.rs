//! x264 through `braidcast encode`, over an emulated network whose rate falls and rises, to
//! `braidcast receive`. BRAIDCAST names the program.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real pipelines and processes, in real time")]

mod common;

use common::{Running, braidcast, free_port};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The encoder's own program.
const ENCODER: &str = env!("CARGO_BIN_EXE_braidcast-encode");

/// Starts a command that finds the encoder's program.
fn start(program: &Path, args: &str) -> Running {
    let beside = Path::new(ENCODER).parent().unwrap().display();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    Running::start(program, args, ("PATH", &path))
}

/// Ctrl-C, which a terminal sends to the whole group of processes.
fn interrupt(it: &Running) {
    assert!(Command::new("kill").args(["-INT", "--", &format!("-{}", it.0.id())]).status().unwrap().success());
}

/// Returns the share of a test clip's frames that came on time, %, over a link of this rate, by the
/// options of the encoder; and its log.
fn stream(program: &Path, seconds: u64, rate: &str, how: &str) -> (f64, Vec<(f64, u64)>) {
    let dir = std::env::temp_dir().join(format!("braidcast-gst-{}", free_port()));
    std::fs::create_dir_all(&dir).unwrap();
    let (port, link) = (free_port(), free_port());
    let at = |name: &str| dir.join(name).display().to_string();
    let receiver = start(program, &format!("receive {port} {}", at("out.ts")));
    let _link = start(program, &format!("emulate :{link} 127.0.0.1:{port} --rate {rate} --delay 30ms --queue 1s"));
    std::thread::sleep(Duration::from_secs(1));
    let sender =
        start(program, &format!("encode test --size 640x360 --to 127.0.0.1:{link} --log {} {how}", at("log.csv")));
    std::thread::sleep(Duration::from_secs(seconds));
    interrupt(&sender);
    sender.document();
    let received = receiver.document();
    let sum = |field: &str| {
        let kinds =
            received["kinds"].as_array().unwrap().iter().filter(|kind| "IPB".contains(kind["kind"].as_str().unwrap()));
        kinds.map(|kind| kind[field].as_f64().unwrap()).sum::<f64>()
    };
    let log = std::fs::read_to_string(dir.join("log.csv")).unwrap();
    let encoded = log.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[1] == "encoded").then(|| (fields[0].parse().unwrap(), fields[3].parse().unwrap()))
    });
    let encoded: Vec<(f64, u64)> = encoded.collect();
    let left_out = log.lines().filter(|line| line.contains("left out")).count();
    let share = 100.0 * sum("on_time") / (sum("captured") + left_out as f64);
    println!("{how} {rate}: {share:.2} % of the frames on time, {left_out} left out");
    let _ = std::fs::remove_dir_all(dir);
    (share, encoded)
}

/// Returns the video's bit/s between two times.
fn rate(log: &[(f64, u64)], from: f64, to: f64) -> f64 {
    log.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, bits)| *bits as f64).sum::<f64>() / (to - from)
}

#[test]
fn pictures_follow_the_network_and_come_on_time() {
    let Some(program) = braidcast() else { return };
    let link = "0s:4mbit,13s:1mbit,24s:4mbit";
    let (live, log) = stream(&program, 34, link, "--rate-range 100kbit-6mbit");
    let (before, low, after) = (rate(&log, 6.0, 11.0), rate(&log, 14.0, 22.0), rate(&log, 29.0, 33.0));
    println!("{:.2}, {:.2}, {:.2} Mbit/s", before / 1e6, low / 1e6, after / 1e6);
    assert!(before > 2e6 && low < 1e6 && low > 4e5 && after > 1.8e6, "{before:.0}, {low:.0}, {after:.0} bit/s");
    assert!(live > 95.0, "{live:.2} %");
}

#[test]
fn other_encoders_follow_too() {
    let Some(program) = braidcast() else { return };
    let (share, log) = stream(&program, 14, "1500kbit", "--encoder openh264enc --profile quality");
    assert!(share > 80.0 && rate(&log, 6.0, 12.0) < 1.7e6, "{share:.2} %");
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let cases = [
        ("test --encoder nosuchenc", "no element nosuchenc"),
        ("nowhere.mp4", "cannot open nowhere.mp4"),
        ("/dev/video99", "v4l2-ctl"),
        ("gst:nosuchsrc", "hint: try it"),
        ("test --encoder identity", "no property bitrate"),
        ("test --size 7x7", "1280x720"),
        ("test --audio microphone", "auto, none, test, mic, or gst:PIPELINE"),
        ("test --audio test --audio-encoder nosuchenc", "no element nosuchenc"),
        ("test --audio test --audio-encoder identity", "no property bitrate"),
    ];
    for (args, words) in cases {
        let mut command = Command::new(ENCODER);
        command.args(args.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Its end would end the program.
        let _stdin = child.stdin.take();
        let ran = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains(words), "{args}: {said}");
    }
}

#[test]
fn without_lines_it_ends_with_its_input() {
    let mut child = Command::new(ENCODER)
        .args(["test", "--size", "320x180"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(1));
    drop(child.stdin.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stdout.len() > 10_000 && out.stdout[0] == 0x47, "{} bytes", out.stdout.len());
}

#[test]
fn a_source_that_changes_size_and_rate_goes_on() {
    let sizes = "gst:videotestsrc num-buffers=60 ! video/x-raw,width=320,height=240,framerate=30/1 ! c. \
                 videotestsrc num-buffers=60 pattern=ball ! video/x-raw,width=640,height=480,framerate=15/1 ! c. \
                 concat name=c ! identity sync=true";
    let mut command = Command::new(ENCODER);
    let mut child = command.arg(sizes).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _stdin = child.stdin.take();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let path = std::env::temp_dir().join(format!("braidcast-gst-sizes-{}.ts", free_port()));
    std::fs::write(&path, out.stdout).unwrap();
    let probe = "-v error -select_streams v -show_entries frame=width -of csv=p=0";
    let said = Command::new("ffprobe").args(probe.split(' ')).arg(&path).output().unwrap().stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let of = |width: &str| said.lines().filter(|line| line.starts_with(width)).count();
    // A busy machine leaves some out.
    assert!(of("320") > 30 && of("640") > 30, "{} and {}", of("320"), of("640"));
    let _ = std::fs::remove_file(path);
}

/// Streams that ffprobe finds in a file: codec and packets.
fn streams(path: &Path) -> Vec<(String, u32)> {
    let probe = "-v error -count_packets -show_entries stream=codec_name,nb_read_packets -of json";
    let said = Command::new("ffprobe").args(probe.split(' ')).arg(path).output().unwrap().stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    let stream = |it: &Value| {
        (it["codec_name"].as_str().unwrap().to_owned(), it["nb_read_packets"].as_str().unwrap().parse().unwrap())
    };
    said["streams"].as_array().unwrap().iter().map(stream).collect()
}

#[test]
fn the_audio_of_a_file_goes_along_and_before_pictures() {
    let Some(program) = braidcast() else { return };
    let dir = std::env::temp_dir().join(format!("braidcast-gst-audio-{}", free_port()));
    std::fs::create_dir_all(&dir).unwrap();
    let (film, silent) = (dir.join("film.mkv"), dir.join("silent.mkv"));
    let make = |more: &str, path: &Path| {
        let words = format!(
            "-q videotestsrc num-buffers=240 pattern=snow ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 \
             ! x264enc speed-preset=ultrafast bitrate=8000 ! h264parse ! mux. {more} matroskamux name=mux ! filesink location={}",
            path.display()
        );
        assert!(Command::new("gst-launch-1.0").args(words.split_whitespace()).status().unwrap().success());
    };
    make("audiotestsrc num-buffers=375 ! audio/x-raw,rate=48000 ! opusenc ! mux.", &film);
    make("", &silent);
    // Snow takes whatever the link has, and more.
    for (path, encoder, codec) in
        [(&film, "opusenc", Some("opus")), (&film, "voaacenc", Some("aac")), (&silent, "opusenc", None)]
    {
        let (port, link, out) = (free_port(), free_port(), dir.join("out.ts"));
        let _ = std::fs::remove_file(&out);
        let receiver = start(&program, &format!("receive {port} {}", out.display()));
        let _link = start(&program, &format!("emulate :{link} 127.0.0.1:{port} --rate 700kbit --delay 30ms"));
        std::thread::sleep(Duration::from_millis(500));
        let how = format!("--to 127.0.0.1:{link} --audio-encoder {encoder} --rate-range 100kbit-3mbit");
        let sender = start(&program, &format!("encode {} {how}", path.display())).document();
        let received = receiver.document();
        let streams = streams(&out);
        let kinds = received["kinds"].as_array().unwrap();
        let audio = kinds.iter().find(|kind| kind["kind"] == "audio");
        println!("{encoder}: {streams:?}, {audio:?}");
        assert_eq!(sender["complete"], true, "{sender}");
        assert!(streams.iter().any(|(codec, packets)| codec == "h264" && *packets > 100), "{streams:?}");
        assert_eq!(streams.len(), 1 + usize::from(codec.is_some()), "{streams:?}");
        assert_eq!(audio.is_some(), codec.is_some(), "{kinds:?}");
        if let (Some(codec), Some(audio)) = (codec, audio) {
            // Seven seconds and more, in packets of 20 or 23 ms.
            assert!(streams.iter().any(|(it, packets)| it == codec && *packets > 280), "{streams:?}");
            let (came, all) = (audio["on_time"].as_f64().unwrap(), audio["captured"].as_f64().unwrap());
            assert!(came > 0.97 * all, "{audio}");
        }
    }
    let _ = std::fs::remove_dir_all(dir);
}
