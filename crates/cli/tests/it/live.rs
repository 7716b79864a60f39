//! Live streams: inputs and outputs of all kinds, and ends of all kinds.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common;
use crate::common::{PATIENCE, Running, Test, free_port, free_ports, transport_stream};
use std::io::Write;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_recording_plays_at_its_own_speed_and_comes_out_as_it_went_in() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let clip = transport_stream(dir.path(), 3);
    let receiver =
        Running::start(dir.path(), &format!("receive {port} out.ts --json --log log.csv")).wait_for("listening");
    let start = now();
    let sent = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --latency 2s --json")).finish();
    sent.says(0, &[]);
    assert!(start.elapsed() > Duration::from_millis(2500), "paced");
    let received = receiver.finish();
    received.says(0, &[]);
    let kinds = &received.json()["kinds"];
    let came = std::fs::read(dir.path().join("out.ts")).unwrap();
    assert!(came == std::fs::read(clip).unwrap(), "not the same bytes: {} came; {kinds}", came.len());
    decodes_without_error(&dir.path().join("out.ts"));
    let (sent, received) = (sent.json(), received.json());
    assert_eq!(
        (&sent["command"], &sent["format"], &sent["reliable"]),
        (&"send".into(), &"mpeg-ts".into(), &false.into())
    );
    for kind in received["kinds"].as_array().unwrap() {
        assert_eq!((kind["on_time_share"].as_f64(), kind["late"].as_u64()), (Some(1.0), Some(0)), "{kind}");
    }
    let log = std::fs::read_to_string(dir.path().join("log.csv")).unwrap();
    assert!(log.starts_with("sequence,kind,reference,bytes,pts,captured_s,due_s,arrived_s,path,on_time,used\n"));
    for kind in ["audio", "I", "P", "B"] {
        assert!(log.contains(&format!(",{kind},")), "{kind} is not in the log");
    }
}

#[test]
fn quiet_ends_work_without_a_word() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 1);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts --quiet"));
    // It says nothing when it is ready, and a sender that nobody answers says so.
    let end = Instant::now() + PATIENCE;
    let listens = || {
        let sockets = ["/proc/net/udp", "/proc/net/udp6"].map(|file| std::fs::read_to_string(file).unwrap_or_default());
        sockets.concat().contains(&format!(":{port:04X} "))
    };
    while !listens() {
        assert!(Instant::now() < end, "the receiver does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sender = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --quiet")).finish();
    for ran in [sender, receiver.finish()] {
        ran.says(0, &[]);
        assert_eq!((ran.out(), ran.stderr.as_str()), ("", ""));
    }
}

#[test]
fn datagrams_in_come_out_as_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let [port, input, output] = free_ports();
    let listener = udp(output);
    let receiver =
        Running::start(dir.path(), &format!("receive {port} udp://127.0.0.1:{output}")).wait_for("listening");
    let args = format!("send udp://127.0.0.1:{input} --to 127.0.0.1:{port} --latency 100ms");
    let sender = Running::start(dir.path(), &args).wait_for("connected");
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    for text in ["one", "two", "three"] {
        source.send_to(text.as_bytes(), ("127.0.0.1", input)).unwrap();
        let mut buf = [0; 100];
        let len = listener.recv(&mut buf).unwrap();
        assert_eq!(&buf[..len], text.as_bytes());
    }
    sender.interrupt();
    sender.finish().says(0, &["stopping"]);
    receiver.finish().says(0, &[]);
}

#[test]
fn ctrl_c_ends_a_stream_in_good_order_with_a_summary() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 20);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts --json")).wait_for("listening");
    let sender =
        Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --json")).wait_for("connected");
    pause(Duration::from_millis(1500));
    sender.interrupt();
    let (sent, received) = (sender.finish(), receiver.finish());
    sent.says(0, &["delivering what is already queued"]);
    received.says(0, &[]);
    let sent = sent.json();
    assert_eq!((&sent["interrupted"], &sent["complete"]), (&true.into(), &true.into()));
    assert!(sent["seconds"].as_f64().unwrap() < 10.0);
    assert!(std::fs::metadata(dir.path().join("out.ts")).unwrap().len() > 50_000);
}

#[test]
fn a_receiver_that_is_stopped_tells_its_sender() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 20);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let sender = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port}")).wait_for("connected");
    receiver.interrupt();
    receiver.finish().says(0, &[]);
    let mut sender = sender.wait_for("the receiver was stopped; reconnecting");
    assert!(sender.is_running());
    sender.interrupt();
    sender.finish().says(1, &["not delivered to its end"]);
}

#[test]
fn a_full_disk_ends_the_receiver_and_tells_the_sender() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("in.bin"), common::noise(500_000)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} /dev/full")).wait_for("listening");
    let sent = Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port} --reliable")).finish();
    receiver.finish().says(1, &["cannot write /dev/full", "No space left"]);
    sent.says(1, &["cannot write its output"]);
}

#[test]
fn an_output_that_cannot_be_made_is_said_at_once() {
    let ran = Test::new(&format!("receive {} nowhere/out.ts", free_port())).run();
    ran.says(1, &["cannot write nowhere/out.ts", "No such file"]);
    Test::new("receive 192.0.2.77:9000 out.ts")
        .run()
        .says(1, &["192.0.2.77 is not an address of this machine", "127.0.0.1"]);
}

#[test]
fn an_input_that_is_not_there_is_said_at_once() {
    Test::new("send nowhere.ts --to 127.0.0.1:9").run().says(1, &["cannot open nowhere.ts", "No such file"]);
    Test::new("send . --to 127.0.0.1:9").run().says(1, &["is a folder"]);
}

/// DNS may come later than the sender.
#[test]
fn a_name_that_is_not_known_yet_is_asked_for_again() {
    let ran = Test::new("send x --to no-such-host.invalid:9 --give-up 1s").file("x", "x").run();
    ran.says(1, &["no-such-host.invalid is not known yet; going on asking"]);
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let ran = Test::new("send x --to 127.0.0.1:9 --via nowhere0 --give-up 1s").file("x", "x").run();
    ran.says(1, &["no nowhere0", "lo (127.0.0.1"]);
}

#[test]
fn an_interface_that_is_not_there_is_waited_for_while_another_path_works() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("in.bin"), common::noise(10_000)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.bin")).wait_for("listening");
    let args = format!("send in.bin --to 127.0.0.1:{port} --via lo --via nowhere0");
    Running::start(dir.path(), &args).finish().says(0, &["no nowhere0 now", "joins when it appears"]);
    receiver.finish().says(0, &[]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("in.bin"), common::noise(2_000_000)).unwrap();
    let shell = format!(
        "{} receive {port} - 2>messages | head -c 1000 >/dev/null; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_braidcast")
    );
    let mut reader = std::process::Command::new("bash").args(["-c", &shell]).current_dir(dir.path()).spawn().unwrap();
    pause(Duration::from_millis(500));
    Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port}")).finish();
    assert!(reader.wait().unwrap().success());
    let messages = std::fs::read_to_string(dir.path().join("messages")).unwrap();
    assert!(messages.contains("the program that read the stream from stdout is gone"), "{messages}");
}

#[test]
fn a_pipe_that_is_faster_than_its_own_clock_is_held_back() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let clip = std::fs::read(transport_stream(dir.path(), 4)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts --json")).wait_for("listening");
    let start = now();
    let mut sender = Running::start_with(dir.path(), &format!("send - --to 127.0.0.1:{port}"), Stdio::piped());
    sender.stdin().write_all(&clip).unwrap();
    sender.finish().says(0, &[]);
    let took = start.elapsed();
    assert!(took > Duration::from_secs(2) && took < PATIENCE, "{took:?}");
    receiver.finish().says(0, &[]);
    assert!(std::fs::read(dir.path().join("out.ts")).unwrap() == clip, "not the same bytes");
}

#[test]
fn what_is_read_and_put_out_in_slices_comes_whole_in_order_and_not_before_its_time() {
    const DATAGRAM: usize = 7 * 188;
    let dir = tempfile::tempdir().unwrap();
    let clip = std::fs::read(transport_stream(dir.path(), 2)).unwrap();
    let latency = Duration::from_millis(400);
    let [port, input, output] = free_ports();
    let player = udp(output);
    let receiver =
        Running::start(dir.path(), &format!("receive {port} udp://127.0.0.1:{output}")).wait_for("listening");
    let args = format!("send udp://127.0.0.1:{input} --to 127.0.0.1:{port} --latency 400ms");
    let sender = Running::start(dir.path(), &args).wait_for("connected");
    let whole = clip.len();
    let played = std::thread::spawn(move || {
        let (mut came, mut times, mut buf) = (Vec::new(), Vec::new(), [0; 2000]);
        while came.len() < whole {
            let len = player.recv(&mut buf).unwrap();
            times.push((came.len(), now()));
            came.extend_from_slice(&buf[..len]);
        }
        (came, times)
    });
    // As encoders send them: some datagrams at once, and then a pause.
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = Vec::new();
    for frame in clip.chunks(5 * DATAGRAM) {
        for datagram in frame.chunks(DATAGRAM) {
            sent.push(now());
            source.send_to(datagram, ("127.0.0.1", input)).unwrap();
        }
        pause(Duration::from_millis(6));
    }
    // What completes the last frame is its end.
    pause(Duration::from_millis(200));
    sender.interrupt();
    sender.finish().says(0, &["stopping"]);
    receiver.finish().says(0, &[]);
    let (came, times) = played.join().unwrap();
    assert!(came == clip, "not the same bytes");
    for (at, played) in times {
        // A slice of 4 ms early, and as a frame's packets are spread evenly over the time that it took.
        let least = sent[at / DATAGRAM] + latency - Duration::from_millis(4 + 20);
        assert!(played >= least, "byte {at} is {:?} too early", least - played);
    }
}

/// Insists that ffmpeg finds nothing wrong in `file`.
fn decodes_without_error(file: &std::path::Path) {
    let args = ["-nostdin", "-v", "error", "-xerror", "-i"];
    let out = std::process::Command::new("ffmpeg").args(args).arg(file).args(["-f", "null", "-"]).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "ffmpeg: {}", String::from_utf8_lossy(&out.stderr));
}

fn udp(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn now() -> Instant {
    Instant::now()
}

fn pause(time: Duration) {
    std::thread::sleep(time);
}
