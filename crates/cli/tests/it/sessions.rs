//! Ends that go and come back, several streams at one receiver, and what becomes of files.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real files and real signals")]

use crate::common::{PATIENCE, Running, Test, free_port, free_ports, len, noise, transport_stream, until};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn listen(dir: &Path, args: &str) -> Running {
    Running::start(dir, &format!("receive {args}")).wait_for("listening")
}

#[test]
fn a_file_goes_on_after_both_ends_were_killed() {
    let (dir, [port, link]) = (tempfile::tempdir().unwrap(), free_ports());
    let (input, out) = (noise(6_000_000), dir.path().join("out.bin"));
    fs::write(dir.path().join("in.bin"), &input).unwrap();
    let emulate = format!("emulate 127.0.0.1:{link} 127.0.0.1:{port} --rate 16mbit --delay 5ms");
    let _link = Running::start(dir.path(), &emulate).wait_for("listening");
    let send = format!("send in.bin --to 127.0.0.1:{link} --reliable");
    let receive = format!("127.0.0.1:{port} out.bin");
    let (receiver, sender) = (listen(dir.path(), &receive), Running::start(dir.path(), &send));
    until("a part", || len(&out) > 1_500_000);
    receiver.kill();
    sender.kill();
    let had = len(&out);
    assert!(had < 6_000_000, "the link was too fast for this test");
    let sender = Running::start(dir.path(), &send);
    let receiver = listen(dir.path(), &receive);
    sender.finish().says(0, &["are there already; going on from there"]);
    receiver.finish().says(0, &[]);
    assert!(fs::read(&out).unwrap() == input, "{} bytes, {had} before", len(&out));
    assert!(!dir.path().join("out.bin.braidcast").exists());
}

#[test]
fn a_sender_whose_receiver_is_stopped_says_what_is_missing_and_the_next_run_goes_on() {
    let (dir, [port, link]) = (tempfile::tempdir().unwrap(), free_ports());
    let (input, out) = (noise(3_000_000), dir.path().join("out.bin"));
    fs::write(dir.path().join("in.bin"), &input).unwrap();
    let emulate = format!("emulate 127.0.0.1:{link} 127.0.0.1:{port} --rate 16mbit --delay 5ms");
    let _link = Running::start(dir.path(), &emulate).wait_for("listening");
    let send = format!("send in.bin --to 127.0.0.1:{link} --reliable");
    let receive = format!("127.0.0.1:{port} out.bin");
    let (receiver, sender) = (listen(dir.path(), &receive), Running::start(dir.path(), &send));
    until("a part", || len(&out) > 500_000);
    receiver.interrupt();
    receiver.finish().says(0, &["written in"]);
    sender.finish().says(1, &["not all was written", "of 3.00 MB", "the receiver was stopped", "goes on from there"]);
    // The port is free at once.
    let receiver = listen(dir.path(), &receive);
    Running::start(dir.path(), &send).finish().says(0, &["going on from there"]);
    receiver.finish().says(0, &[]);
    assert!(fs::read(&out).unwrap() == input);
}

#[test]
fn each_name_has_its_output_and_who_has_none_is_told() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let receiver = listen(dir.path(), &format!("127.0.0.1:{port} --accept a=one.bin --accept b=two.bin --json"));
    for (file, bytes) in [("a.bin", noise(700_000)), ("b.bin", noise(400_000))] {
        fs::write(dir.path().join(file), bytes).unwrap();
    }
    let send = |file: &str, name: &str| {
        Running::start(dir.path(), &format!("send {file} --to 127.0.0.1:{port} --reliable {name}"))
    };
    send("a.bin", "--name c").finish().says(1, &["unknown name", "give --name as one of"]);
    let (a, b) = (send("a.bin", "--name a"), send("b.bin", "--name b"));
    a.finish().says(0, &[]);
    b.finish().says(0, &[]);
    let received = receiver.finish();
    received.says(0, &["a sender, 'c', was turned away"]);
    let streams = received.json()["streams"].as_array().unwrap().clone();
    let names: Vec<_> = streams.iter().map(|stream| (&stream["name"], &stream["complete_streams"])).collect();
    assert_eq!(names, [(&"a".into(), &1.into()), (&"b".into(), &1.into())]);
    for (from, to) in [("a.bin", "one.bin"), ("b.bin", "two.bin")] {
        assert!(fs::read(dir.path().join(from)).unwrap() == fs::read(dir.path().join(to)).unwrap());
    }
}

#[test]
fn each_stream_makes_a_file_of_its_name() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let receiver = listen(dir.path(), &format!("127.0.0.1:{port} {{name}}.bin --keep"));
    let senders: Vec<_> = ["one", "two", "three"]
        .map(|name| {
            fs::write(dir.path().join(format!("in-{name}")), name.repeat(10_000)).unwrap();
            Running::start(dir.path(), &format!("send in-{name} --to 127.0.0.1:{port} --reliable --name {name}"))
        })
        .into();
    senders.into_iter().for_each(|sender| sender.finish().says(0, &[]));
    fs::write(dir.path().join("in"), "x").unwrap();
    let nameless = Running::start(dir.path(), &format!("send in --to 127.0.0.1:{port} --reliable"));
    nameless.finish().says(1, &["unknown name"]);
    receiver.interrupt();
    receiver.finish().says(0, &["`send --name` sets one"]);
    for name in ["one", "two", "three"] {
        assert_eq!(fs::read_to_string(dir.path().join(format!("{name}.bin"))).unwrap(), name.repeat(10_000));
    }
}

#[test]
fn what_is_in_a_file_stays_unless_it_is_said_otherwise() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let path = |name: &str| dir.path().join(name);
    fs::write(path("out"), "precious").unwrap();
    fs::write(path("in"), "new").unwrap();
    let run = |flags: &str| {
        let receiver = listen(dir.path(), &format!("127.0.0.1:{port} out {flags}"));
        Running::start(dir.path(), &format!("send in --to 127.0.0.1:{port} --reliable")).finish().says(0, &[]);
        let ran = receiver.finish();
        ran.says(0, &[]);
        ran.stderr
    };
    let said = run("");
    assert!(said.contains("holds something else, which stays as it is; writing out-0002"), "{said}");
    assert_eq!(fs::read_to_string(path("out")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(path("out-0002")).unwrap(), "new");
    run("--append");
    assert_eq!(fs::read_to_string(path("out")).unwrap(), "preciousnew");
    // Without a stream nothing is overwritten either.
    let receiver = listen(dir.path(), &format!("127.0.0.1:{port} out --overwrite"));
    receiver.interrupt();
    receiver.finish().says(0, &[]);
    assert_eq!(fs::read_to_string(path("out")).unwrap(), "preciousnew");
    run("--overwrite");
    assert_eq!(fs::read_to_string(path("out")).unwrap(), "new");
}

#[test]
fn a_stream_goes_to_all_outputs_and_a_pipes_reader_comes_and_goes() {
    let dir = tempfile::tempdir().unwrap();
    let [port, player] = free_ports();
    transport_stream(dir.path(), 12);
    let (fifo, out) = (dir.path().join("pipe"), dir.path().join("out.ts"));
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let listener = std::net::UdpSocket::bind(("127.0.0.1", player)).unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let args = format!("127.0.0.1:{port} out.ts pipe udp://127.0.0.1:{player}");
    let receiver = listen(dir.path(), &args);
    let sender = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port}"));
    for _ in 0..2 {
        let mut reader = fs::File::open(&fifo).unwrap();
        let mut bytes = vec![0; 50_000];
        std::io::Read::read_exact(&mut reader, &mut bytes).unwrap();
        assert!(bytes.chunks(188).take(200).all(|packet| packet[0] == 0x47), "packets are whole");
        let before = len(&out);
        drop(reader);
        until("the file to go on", || len(&out) > before + 50_000);
    }
    assert!(listener.recv(&mut [0; 2000]).unwrap() > 0);
    sender.interrupt();
    sender.finish().says(0, &[]);
    receiver.finish().says(0, &["a pipe has a reader", "the reader of a pipe is gone"]);
}

#[test]
fn every_signal_ends_with_a_summary_and_one_sent_twice_is_one() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 20);
    for signal in ["INT", "TERM", "HUP"] {
        let receiver = listen(dir.path(), &format!("127.0.0.1:{port} /dev/null --json"));
        let sender =
            Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --json")).wait_for("is up");
        std::thread::sleep(Duration::from_millis(700));
        sender.signal(signal);
        sender.signal(signal);
        let (sent, received) = (sender.finish(), receiver.finish());
        sent.says(0, &["delivering what is already queued"]);
        received.says(0, &[]);
        assert_eq!((&sent.json()["complete"], &sent.json()["interrupted"]), (&true.into(), &true.into()));
        assert_eq!(received.json()["complete_streams"], 1);
    }
}

#[test]
fn a_sender_that_is_stopped_after_its_receiver_is_gone_ends_within_the_latency() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 20);
    let receiver = listen(dir.path(), &format!("127.0.0.1:{port} /dev/null"));
    let sender =
        Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --json")).wait_for("connected");
    receiver.kill();
    let sender = sender.wait_for("does not answer");
    let start = Instant::now();
    sender.interrupt();
    let sent = sender.finish();
    sent.says(1, &["not delivered to its end"]);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(sent.json()["interrupted"], true);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for (args, words) in [
        ("send x --to a:1 --name ../x", "letters, digits"),
        ("send x --to a:1 --name .x", "begins with a letter"),
        ("receive 9000 --accept a/b=x", "letters, digits"),
        ("receive 9000 --accept a", "NAME=OUTPUT"),
        ("receive 9000 x.ts x.ts", "there twice"),
        ("receive 9000 show-%k.ts", "%k, which is not a part of a time"),
        ("receive 9000 {name}.ts all.ts", "would be mixed in that file"),
        ("receive 9000 x.ts --segment 10ms", "too short"),
    ] {
        Test::new(args).run().says(2, &[words]);
    }
}

#[test]
fn a_long_recording_is_cut_into_files_that_each_can_be_played() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let clip = transport_stream(dir.path(), 5);
    let receiver = listen(dir.path(), &format!("127.0.0.1:{port} out.ts --segment 1s"));
    Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --latency 3s")).finish().says(0, &[]);
    receiver.finish().says(0, &[]);
    let parts: Vec<_> =
        (1..20).map(|n| dir.path().join(format!("out-{n:04}.ts"))).filter(|path| path.exists()).collect();
    assert!(parts.len() >= 3, "{} files", parts.len());
    let mut whole = Vec::new();
    for (n, part) in parts.iter().map(|path| fs::read(path).unwrap()).enumerate() {
        // The tables, which the stream itself has somewhere before: PAT and PMT.
        let (tables, rest) = part.split_at(if n == 0 { 0 } else { 2 * 188 });
        let pids: Vec<u16> =
            tables.chunks(188).map(|packet| u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff).collect();
        assert_eq!(pids, [0, 0x1000][..pids.len()], "file {n}");
        assert!(n == 0 || (rest[1] & 0x40 != 0 && rest[5] & 0x40 != 0), "file {n} begins where decoding can begin");
        whole.extend_from_slice(rest);
    }
    assert!(whole == fs::read(clip).unwrap());
    assert!(
        fs::read_dir(dir.path())
            .unwrap()
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().contains("braidcast"))
    );
}
