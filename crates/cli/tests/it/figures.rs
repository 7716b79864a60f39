//! `--stats`, `--metrics`, `--web`, and what is said of too much: the real programs over an
//! emulated network that is too narrow.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "these tests are about real sockets and clocks"
)]

use crate::common;
use crate::common::{Running, Test, browser, free_ports, transport_stream, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const SCHEMA: &str = include_str!("../../../../docs/figures.schema.json");

/// Checks `value` against what of JSON Schema the file uses.
fn check(value: &Value, schema: &Value, place: &str) {
    let words = ["type", "description", "properties", "required", "additionalProperties"];
    let more = ["enum", "minimum", "maximum", "items", "$schema", "title"];
    schema.as_object().unwrap().keys().for_each(|key| {
        assert!(words.contains(&&**key) || more.contains(&&**key), "{place}: this test knows no `{key}`");
    });
    let fits = |of: &Value| match of.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        other => panic!("{place}: type {other}"),
    };
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    assert!(types.iter().any(fits), "{place}: {value}");
    let (least, most) =
        (schema["minimum"].as_f64().unwrap_or(f64::MIN), schema["maximum"].as_f64().unwrap_or(f64::MAX));
    assert!(value.as_f64().is_none_or(|it| (least..=most).contains(&it)), "{place}: {value}");
    assert!(schema["enum"].as_array().is_none_or(|words| words.contains(value)), "{place}: {value}");
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        check(item, &schema["items"], &format!("{place}[{n}]"));
    }
    let Some(members) = value.as_object() else { return };
    for required in schema["required"].as_array().unwrap() {
        assert!(members.contains_key(required.as_str().unwrap()), "{place} lacks {required}");
    }
    for (key, value) in members {
        let of = schema["properties"].get(key).unwrap_or_else(|| panic!("{place}: `{key}` is not in the schema"));
        check(value, of, &format!("{place}.{key}"));
    }
}

fn lines(text: &str) -> Vec<Value> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    all.iter().for_each(|line| check(line, &schema, "figures"));
    all
}

fn free_tcp_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns `true` if somebody is connected to this TCP port of this machine.
fn is_connected(port: u16) -> bool {
    let (end, established) = (format!(":{port:04X}"), "01");
    std::fs::read_to_string("/proc/net/tcp").unwrap().lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&end)) && words.nth(1) == Some(established)
    })
}

/// What a GET is answered with, head and all, as bytes.
fn get_bytes(port: u16, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn get(port: u16, path: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Prometheus' text format, strictly: each family has HELP and TYPE before its samples, each sample
/// a name, labels in quotes and a number, and no series stands there twice.
fn check_metrics(text: &str) -> usize {
    let (mut family, mut seen) = (String::new(), std::collections::BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().unwrap().to_owned();
            assert!(rest.len() > family.len() + 5, "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            let name = series.split('{').next().unwrap();
            assert_eq!(name, family, "{line}");
            assert!(name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{line}");
            let labels = series[name.len()..].strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            let quotes = labels.bytes().filter(|&it| it == b'"').count();
            assert_eq!(quotes, 2 * labels.matches("=\"").count(), "{line}");
            assert!(seen.insert(series.to_owned()), "twice: {line}");
        }
    }
    seen.len()
}

/// The real parser, if it is installed.
fn promtool(text: &str) {
    let Ok(mut child) = Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).spawn() else {
        return;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "promtool check metrics");
}

#[test]
fn too_much_for_the_paths_is_seen_in_every_view_and_said_in_words() {
    let dir = tempfile::tempdir().unwrap();
    transport_stream(dir.path(), 60);
    let [port, at] = free_ports();
    let (web, metrics) = (free_tcp_port(), free_tcp_port());
    let emulator = format!("emulate 127.0.0.1:{at} 127.0.0.1:{port} --rate 500kbit --delay 20ms --duration 60s");
    let emulator = Running::start(dir.path(), &emulator).wait_for("listening");
    let receiver =
        Running::start(dir.path(), &format!("receive {port} out.ts --stats 500ms,receive.json")).wait_for("listening");
    let sender = format!("send clip.ts --to 127.0.0.1:{at} --stats 500ms,send.json --web {web} --metrics {metrics}");
    let sender = Running::start(dir.path(), &sender).wait_for("figures at");
    // Until the server has gone.
    let page = std::thread::spawn(move || browser::document(&format!("http://127.0.0.1:{web}/"), 1500));
    let sender = sender.wait_for("lower the encoder to");
    let text = get(metrics, "/metrics", "");
    assert!(text.contains("text/plain; version=0.0.4"), "{text}");
    let body = text.split_once("\r\n\r\n").unwrap().1;
    assert!(check_metrics(body) > 40, "{body}");
    promtool(body);
    assert!(body.contains("braidcast_path_state{") && body.contains("state=\"active\"} 1.0"), "{body}");
    let open = get(metrics, "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(open.contains("application/openmetrics-text") && open.ends_with("# EOF\n"), "{open}");
    assert!(get(metrics, "/", "").starts_with("HTTP/1.1 404") && get(web, "/metrics", "").starts_with("HTTP/1.1 404"));
    // A browser that starts on a busy machine takes many seconds.
    until("the browser", || is_connected(web));
    let told = || std::fs::read_to_string(dir.path().join("send.json")).map_or(0, |text| text.lines().count());
    let before = told();
    until("figures for it", || told() >= (before + 6).max(15));
    sender.interrupt();
    let page = page.join().unwrap();
    let figures = page.split_once("data-figures=\"").map(|(_, rest)| rest.split('"').next().unwrap());
    assert!(figures.is_some_and(|count| count.parse::<u32>().unwrap() >= 3), "{page}");
    // A browser's own clock stands still while events come, so that it looks when the stream has ended.
    let words = [
        "<title>Live, with frames missing",
        "does not answer; trying again",
        "suggested encoder",
        "class=\"good\">active<",
    ];
    for word in words {
        assert!(page.contains(word), "{word} is not in {page}");
    }
    let sent = sender.finish();
    sent.says(
        0,
        &[
            "warning: what comes in is",
            "the paths carry about",
            "the paths carried about",
            "metrics at http://127.0.0.1:",
        ],
    );
    receiver.finish().says(0, &[]);
    emulator.kill();
    let told = lines(&std::fs::read_to_string(dir.path().join("send.json")).unwrap());
    assert!(told.len() >= 15, "{} lines", told.len());
    let worst =
        told.iter().rev().find(|line| line["streams"][0]["suggested_encoder_bits_per_second"].is_number()).unwrap();
    let stream = &worst["streams"][0];
    // Headers and redundancy of 500 kbit/s are no payload; nine tenths of the rest are left to the encoder.
    let suggested = stream["suggested_encoder_bits_per_second"].as_f64().unwrap();
    assert!((250e3..480e3).contains(&suggested), "{suggested}");
    assert!(stream["input_bits_per_second"].as_f64().unwrap() > 700e3, "{stream}");
    assert_eq!((&stream["health"], &stream["paths"][0]["state"]), (&"bad".into(), &"active".into()));
    let heard = lines(&std::fs::read_to_string(dir.path().join("receive.json")).unwrap());
    let counts = |line: &Value, what: &str| -> u64 {
        line["streams"][0]["kinds"].as_array().into_iter().flatten().map(|kind| kind[what].as_u64().unwrap()).sum()
    };
    assert!(counts(heard.last().unwrap(), "on_time") > 50);
    assert!(counts(told.last().unwrap(), "dropped_expired") > 20, "{}", told.last().unwrap());
    assert!(told.iter().all(|line| line["lost_lines"] == 0));
}

#[test]
fn a_reader_that_takes_nothing_loses_lines_and_the_stream_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    transport_stream(dir.path(), 3);
    let [port] = free_ports();
    assert!(Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    // Nobody ever opens the pipe.
    let sent = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --stats 50ms,pipe")).finish();
    sent.says(0, &["100.0 %"]);
    receiver.finish().says(0, &[]);
    let receiver = Running::start(dir.path(), &format!("receive {port} again.ts")).wait_for("listening");
    let full =
        Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --stats 50ms,/dev/full")).finish();
    full.says(0, &["warning:", "the statistics in /dev/full end here", "No space left", "all else goes on"]);
    receiver.finish().says(0, &[]);
}

#[test]
fn a_tunnel_tells_figures_of_paths_and_flows() {
    let dir = tempfile::tempdir().unwrap();
    for over in ["dccp", "sctp"] {
        let [port, entrance, application] = free_ports();
        let socket = std::net::UdpSocket::bind(("127.0.0.1", application)).unwrap();
        let server = format!("tunnel server {port} --forward 127.0.0.1:{application} --over {over}");
        let server = Running::start(dir.path(), &server).wait_for("waiting for clients");
        let client = format!("tunnel client --to 127.0.0.1:{port} --listen {entrance} --over {over} --stats 100ms");
        let client = Running::start(dir.path(), &client).wait_for("connected with");
        let source = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut datagram = [0; 200];
        for _ in 0..40 {
            source.send_to(&[7; 160], ("127.0.0.1", entrance)).unwrap();
            socket.recv_from(&mut datagram).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(15));
        }
        client.interrupt();
        let told = client.finish();
        told.says(0, &[]);
        server.kill();
        let told = lines(told.out());
        let stream = told.iter().rev().map(|line| &line["streams"][0]).find(|it| it["connected"] == true).unwrap();
        assert_eq!(stream["paths"][0]["state"], "active", "{over}: {stream}");
        assert!(stream["paths"][0]["rtt_ms"].is_number(), "{over}: {stream}");
        assert!(stream["flows"][0]["sent_datagrams"].as_u64().unwrap() >= 30, "{over}: {stream}");
    }
}

#[test]
fn events_are_said_in_words_as_far_as_one_wants_to_know() {
    let dir = tempfile::tempdir().unwrap();
    transport_stream(dir.path(), 1);
    let run = |flags: &str, variable: &str| {
        let [port] = free_ports();
        let receiver = Running::start(dir.path(), &format!("receive {port} out.ts --overwrite")).wait_for("listening");
        let mut sender = common::command(dir.path());
        sender.env("RUST_LOG", variable);
        sender.args(["send", "clip.ts", "--to", &format!("127.0.0.1:{port}")]).args(flags.split_whitespace());
        let sent = Running::spawn(sender, Stdio::null()).finish();
        sent.says(0, &[]);
        receiver.finish().says(0, &[]);
        sent.stderr
    };
    let (nothing, some, all, wrong) =
        (run("", ""), run("-v", ""), run("", "braidcast::events=trace"), run("", "a=b=c"));
    assert!(!nothing.contains("braidcast::"), "{nothing}");
    assert!(some.contains("INFO  braidcast::paths: ") && some.contains("path 0 is active"), "{some}");
    assert!(!some.contains("ChunkSent"), "{some}");
    assert!(all.contains("TRACE braidcast::events: ") && all.contains("ChunkSent") && !all.contains("INFO"), "{all}");
    assert!(wrong.contains("warning: RUST_LOG=a=b=c makes no sense"), "{wrong}");
}

#[test]
fn what_cannot_be_meant_is_refused_in_words() {
    let refused = |args: &str, words: &[&str]| Test::new(args).run().says(2, words);
    refused("send x --to a:1 --stats 1", &["--stats"]);
    refused("send x --to a:1 --stats 1ms", &["every 50ms to 1h"]);
    refused("send x --to a:1 --stats 1s,", &["no file behind the comma"]);
    refused("send x --to a:1 --web here", &["neither PORT nor ADDR:PORT"]);
    refused("send x --to a:1 --metrics :80", &["neither PORT nor ADDR:PORT"]);
    let stdout = ["cannot both go to stdout", "give it a file"];
    Test::new("send clip.ts --to 127.0.0.1:9 --stats 1s --json").file("clip.ts", [0x47; 1880]).run().says(2, &stdout);
    refused("receive 127.0.0.1:0 - --stats 1s", &stdout);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let web = Test::new(&format!("receive 127.0.0.1:0 x.ts --web {port}")).run();
    web.says(1, &["cannot listen at 127.0.0.1:", "for --web", "choose another address"]);
}

#[test]
fn beyond_this_machine_the_page_asks_for_a_password() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("page"), "sesame\n").unwrap();
    let ([port, other], web, next) = (free_ports(), free_tcp_port(), free_tcp_port());
    let receiver = format!("receive {port} out.ts --web 0.0.0.0:{web} --web-password page");
    let receiver = Running::start(dir.path(), &receiver).wait_for("for who knows the password");
    assert!(get(web, "/", "").starts_with("HTTP/1.1 401"));
    // ":sesame", and ":open".
    assert!(get(web, "/events", "Authorization: Basic Om9wZW4=\r\n").starts_with("HTTP/1.1 401"));
    assert!(get(web, "/", "Authorization: Basic OnNlc2FtZQ==\r\n").starts_with("HTTP/1.1 200"));
    receiver.kill();
    let made_up = format!("receive {other} out.ts --overwrite --web 0.0.0.0:{next}");
    let made_up = Running::start(dir.path(), &made_up).wait_for("with the password ");
    assert!(get(next, "/page.js", "").starts_with("HTTP/1.1 401"));
    made_up.kill();
}

#[test]
fn an_image_of_the_stream_stands_on_the_page_of_each_end() {
    let dir = tempfile::tempdir().unwrap();
    transport_stream(dir.path(), 12);
    let ([port, _], webs) = (free_ports(), [free_tcp_port(), free_tcp_port()]);
    let receiver = format!("receive {port} out.ts --web {} --thumbnail --stats 200ms,receive.json", webs[0]);
    let receiver = Running::start(dir.path(), &receiver).wait_for("listening");
    let sender = format!("send clip.ts --to 127.0.0.1:{port} --web {} --thumbnail", webs[1]);
    let sender = Running::start(dir.path(), &sender).wait_for("connected");
    for web in webs {
        let mut answer = Vec::new();
        until("an image", || {
            answer = get_bytes(web, "/thumbnail/0");
            answer.starts_with(b"HTTP/1.1 200")
        });
        let body = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert!(String::from_utf8_lossy(&answer[..body]).contains("image/jpeg"));
        std::fs::write(dir.path().join("image.jpg"), &answer[body..]).unwrap();
        let probe = ["-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0", "image.jpg"];
        let probed = Command::new("ffprobe").args(probe).current_dir(dir.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&probed.stdout).trim(), "mjpeg,480,270");
        assert!(get(web, "/thumbnail/1", "").starts_with("HTTP/1.1 404"));
    }
    // A line that is being written has no end yet, and the last one may be older than the image.
    let mut address = None;
    until("its address", || {
        let told = std::fs::read_to_string(dir.path().join("receive.json")).unwrap();
        let (whole, _) = told.rsplit_once('\n').unwrap_or_default();
        address = lines(whole).last().and_then(|it| Some(it["streams"][0]["thumbnail"].as_str()?.to_owned()));
        address.is_some()
    });
    sender.kill();
    receiver.kill();
    assert!(address.as_ref().unwrap().starts_with("thumbnail/0?"), "{address:?}");
}

/// Returns `true` if this kernel has Landlock. The list in /sys/kernel/security is there only where that is mounted.
fn has_landlock() -> bool {
    use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessFs::from_all(ABI::V1)).and_then(|rules| rules.create()).is_ok()
}

#[test]
fn the_decoder_of_images_reads_and_writes_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let (secret, made) = (dir.path().join("secret"), dir.path().join("made"));
    std::fs::write(&secret, "the key").unwrap();
    let script = format!("#!/bin/sh\necho begun\ncat {}\necho x > {}\n", secret.display(), made.display());
    let decoder = dir.path().join("ffmpeg");
    std::fs::write(&decoder, script).unwrap();
    std::fs::set_permissions(&decoder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_braidcast"));
    let run = command.arg("decode-thumbnail").env("PATH", format!("{}:/usr/bin:/bin", dir.path().display())).output();
    let said = String::from_utf8_lossy(&run.unwrap().stdout).into_owned();
    assert_eq!(std::fs::read(&made).unwrap_or_default(), b"", "it wrote a file");
    assert_eq!(said, if has_landlock() { "begun\n" } else { "begun\nthe key" });
}
