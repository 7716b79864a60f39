//! Disks that are full, and pipes that nobody empties.

use crate::common::network::{in_namespace, runs};
use crate::common::{command, free_port, free_ports, noise};
use crate::process::Process;
use crate::ts::{FRAME, Sink, Source};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(40);

fn start(dir: &Path, name: &str, args: &str) -> Process {
    let mut braidcast = command(dir);
    braidcast.args(args.split(' '));
    Process::start(braidcast, &dir.join(format!("{name}.said")))
}

fn mount(words: &str, on: &Path) {
    let mut mount = Command::new("mount");
    assert!(runs(mount.args(words.split(' ')).arg(on)), "mount {words}");
}

#[test]
fn a_full_disk_ends_a_file_in_words_and_it_goes_on_where_there_is_room() {
    in_namespace("outputs::a_full_disk_ends_a_file_in_words_and_it_goes_on_where_there_is_room", |dir| {
        assert!(runs(Command::new("ip").args(["link", "set", "lo", "up"])));
        let disk = dir.join("disk");
        fs::create_dir(&disk).unwrap();
        mount("-t tmpfs -o size=1m none", &disk);
        let (port, input) = (free_port(), noise(3_000_000));
        fs::write(dir.join("in.bin"), &input).unwrap();
        let run = |status: i32, words: [&str; 2]| {
            let mut rx = start(dir, "receive", &format!("receive 127.0.0.1:{port} disk/out.bin"));
            rx.wait_for("listening");
            let mut tx = start(dir, "send", &format!("send in.bin --reliable --to 127.0.0.1:{port}"));
            assert_eq!((tx.wait(PATIENCE), rx.wait(PATIENCE)), (status, status), "{}\n{}", tx.said(), rx.said());
            assert!(rx.said().contains(words[0]) && tx.said().contains(words[1]), "{}\n{}", tx.said(), rx.said());
        };
        run(1, ["No space left on device", "the receiver cannot write its output"]);
        mount("-o remount,size=8m", &disk);
        run(0, ["", "going on from there"]);
        assert!(fs::read(disk.join("out.bin")).unwrap() == input, "not the same bytes");
    });
}

#[test]
fn a_pipe_that_nobody_empties_holds_up_a_file_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (port, input) = (free_port(), noise(40_000_000));
    fs::write(dir.path().join("in.bin"), &input).unwrap();
    let mut rx = start(dir.path(), "receive", &format!("receive 127.0.0.1:{port} -"));
    rx.wait_for("listening");
    let mut tx = start(dir.path(), "send", &format!("send in.bin --reliable --to 127.0.0.1:{port}"));
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        for (name, process) in [("the sender", &mut tx), ("the receiver", &mut rx)] {
            let memory = process.sample().most;
            assert!(memory < 64 << 10, "{name} has {memory} KiB");
        }
        assert_eq!((tx.status(), rx.status()), (None, None), "{}\n{}", tx.said(), rx.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut came = Vec::new();
    rx.stdout().read_to_end(&mut came).unwrap();
    assert!(came == input, "{} of {} bytes", came.len(), input.len());
    assert_eq!((tx.wait(PATIENCE), rx.wait(PATIENCE)), (0, 0), "{}\n{}", tx.said(), rx.said());
}

#[test]
fn a_full_disk_and_a_blocked_pipe_end_no_live_stream_that_goes_elsewhere_too() {
    in_namespace("outputs::a_full_disk_and_a_blocked_pipe_end_no_live_stream_that_goes_elsewhere_too", |dir| {
        assert!(runs(Command::new("ip").args(["link", "set", "lo", "up"])));
        let [port, player] = free_ports();
        let (full, fifo) = (dir.join("full"), dir.join("pipe"));
        fs::create_dir(&full).unwrap();
        mount("-t tmpfs -o size=200k none", &full);
        assert!(runs(Command::new("mkfifo").arg(&fifo)));
        let listener = std::net::UdpSocket::bind(("127.0.0.1", player)).unwrap();
        listener.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let args = format!("receive 127.0.0.1:{port} full/out.ts pipe udp://127.0.0.1:{player}");
        let mut rx = start(dir, "receive", &args);
        rx.wait_for("listening");
        let mut tx = start(dir, "send", &format!("send - --to 127.0.0.1:{port}"));
        let mut stdin = tx.stdin();
        // Opened and never read.
        let reader = fs::File::open(&fifo).unwrap();
        let (begun, mut source, mut sink) = (Instant::now(), Source::new(60), Sink::default());
        let feeder = std::thread::spawn(move || {
            let mut frame = Vec::new();
            for n in 1..=150 {
                frame.clear();
                source.frame(begun.elapsed(), &mut frame);
                stdin.write_all(&frame).unwrap();
                std::thread::sleep((begun + FRAME * n).saturating_duration_since(Instant::now()));
            }
        });
        let mut datagram = [0; 2000];
        while sink.frames < 130 {
            let len = listener.recv(&mut datagram).expect("the stream goes on");
            sink.read(begun.elapsed(), &datagram[..len]);
            let memory = rx.sample().most;
            assert!(memory < 64 << 10, "the receiver has {memory} KiB");
        }
        feeder.join().unwrap();
        drop(reader);
        // The stream is over; that a part is missing on the disk is said by the exit status.
        assert_eq!((tx.wait(PATIENCE), rx.wait(PATIENCE)), (0, 1), "{}\n{}", tx.said(), rx.said());
        assert!(
            sink.wrong.is_none() && rx.said().contains("No space left on device"),
            "{:?}\n{}",
            sink.wrong,
            rx.said()
        );
    });
}
