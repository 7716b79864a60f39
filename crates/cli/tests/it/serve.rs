//! One stream to many: `receive --serve` and the receivers that call it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::{Ran, Running, Test, free_port, free_ports, len, transport_stream, until};
use std::fs;
use std::path::Path;

const PACKET: usize = 188;

/// Makes a key, and returns its fingerprint.
fn identity(dir: &Path, file: &str) -> String {
    Running::start(dir, &format!("key identity {file}")).finish().out().trim().to_owned()
}

fn read(dir: &Path, file: &str) -> Vec<u8> {
    fs::read(dir.join(file)).unwrap()
}

/// Of what `file` has, the program tables that it begins with are left out: the rest is a part of `whole`.
fn begins_in(whole: &[u8], file: &[u8]) -> usize {
    let packets = file.chunks(PACKET).position(|packet| packet[1] & 0x1f == 1 && packet[2] == 0).expect("video");
    let rest = &file[packets * PACKET..];
    assert!(packets <= 2, "{packets} packets of tables");
    let at =
        whole.chunks(PACKET).position(|packet| packet == &rest[..PACKET]).expect("its first frame is in the whole");
    assert!(whole[at * PACKET..].starts_with(rest), "{} bytes from packet {at} on", rest.len());
    at
}

fn share(ran: &Ran) -> f64 {
    let kinds = ran.json()["kinds"].as_array().unwrap().clone();
    let sum = |field: &str| kinds.iter().map(|kind| kind[field].as_u64().unwrap()).sum::<u64>() as f64;
    sum("on_time") / sum("captured")
}

/// One is there from the beginning, one has too slow a network, one is killed and comes back, one is not in the list.
#[test]
fn each_receiver_gets_the_stream_and_none_slows_another() {
    let (dir, [port, serve, slow]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = transport_stream(dir, 9);
    let [screen, far, again, _stranger] = ["screen", "far", "again", "stranger"].map(|name| identity(dir, name));
    let hub_key = identity(dir, "hub");
    fs::write(dir.join("list.txt"), format!("{screen} screen\n{far} far\n{again} again\n")).unwrap();
    let camera = identity(dir, "camera");
    fs::write(dir.join("cameras.txt"), format!("{camera} cam1\n")).unwrap();
    let hub = format!(
        "receive 127.0.0.1:{port} {{name}}.ts --identity hub --authorized cameras.txt --serve 127.0.0.1:{serve} \
         --serve-authorized list.txt --json"
    );
    let hub = Running::start(dir, &hub).wait_for("serving at");
    let emulate = format!("emulate 127.0.0.1:{slow} 127.0.0.1:{serve} --rate 400kbit --delay 30ms --both");
    let _link = Running::start(dir, &emulate).wait_for("listening");
    let receive = |at: u16, key: &str, more: &str| {
        let from = format!("receive --from 127.0.0.1:{at} --identity {key} --peer-key {hub_key} {more}");
        Running::start(dir, &from)
    };
    let sender = format!("send clip.ts --to 127.0.0.1:{port} --identity camera --peer-key {hub_key}");
    let refused = receive(serve, "stranger", "none.ts");
    let camera = Running::start(dir, &sender);
    until("the stream", || len(&dir.join("cam1.ts")) > 50_000);
    let screen = receive(serve, "screen", "screen.ts --name cam1 --json");
    let far = receive(slow, "far", "far.ts --json");
    let killed = receive(serve, "again", "first.ts");
    until("a part", || len(&dir.join("first.ts")) > 100_000);
    killed.kill();
    let again = receive(serve, "again", "second.ts --json");
    camera.finish().says(0, &[]);
    let hub = hub.finish();
    hub.says(0, &["serving 'cam1' to screen at", "a receiver was turned away"]);
    refused.finish().says(1, &["no connection"]);
    let whole = read(dir, "cam1.ts");
    assert!(whole == fs::read(clip).unwrap());
    for (file, ran) in [("screen.ts", screen.finish()), ("second.ts", again.finish())] {
        ran.says(0, &[]);
        let bytes = read(dir, file);
        let at = begins_in(&whole, &bytes);
        assert_eq!(whole[at * PACKET..].len() + 2 * PACKET, bytes.len(), "{file}: to the last byte");
        assert!(share(&ran) > 0.999, "{file}: {}", ran.json()["kinds"]);
    }
    let far = far.finish();
    assert!(share(&far) < 0.9 && len(&dir.join("far.ts")) > 20_000, "{}", far.json()["kinds"]);
    let served = hub.json()["served"].clone();
    assert_eq!(served["receivers"], 4, "{served}");
    let of = |name: &str| served["last"].as_array().unwrap().iter().filter(|it| it["receiver"] == name).count();
    assert_eq!([of("screen"), of("far"), of("again")], [1, 1, 2]);
}

/// Who waits before there is a sender gets all of it, over the hub's own latency and its own.
#[test]
fn who_was_there_before_the_stream_has_what_the_hub_has() {
    let (dir, [port, serve]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = transport_stream(dir, 3);
    let key = "--key open-sesame-2026";
    let hub =
        Running::start(dir, &format!("receive 127.0.0.1:{port} hub.ts --serve {serve} {key}")).wait_for("serving");
    let receive = |file: &str| Running::start(dir, &format!("receive --from 127.0.0.1:{serve} {file} {key}"));
    let viewers = ["one.ts", "two.ts"].map(|file| receive(file).wait_for("is up"));
    let sender = Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{port} {key} --name cam1"));
    sender.finish().says(0, &[]);
    hub.finish().says(0, &["served to 2 receivers"]);
    viewers.into_iter().for_each(|viewer| viewer.finish().says(0, &[]));
    let whole = fs::read(clip).unwrap();
    for file in ["hub.ts", "one.ts", "two.ts"] {
        assert!(read(dir, file) == whole, "{file}: {} of {} bytes", len(&dir.join(file)), whole.len());
    }
}

/// The names are told to who has the key, and to nobody without one.
#[test]
fn a_wrong_name_says_which_there_are_to_whom_it_concerns() {
    for (key, names) in [("--key open-sesame-2026", true), ("", false)] {
        let (dir, [port, serve]) = (tempfile::tempdir().unwrap(), free_ports());
        let dir = dir.path();
        let hub = format!(
            "receive 127.0.0.1:{port} --accept cam1=a.ts --accept cam2=b.ts --serve 127.0.0.1:{serve} --keep {key}"
        );
        let hub = Running::start(dir, &hub).wait_for("serving at");
        let words = if names { "sent here; there is cam1, cam2" } else { "no stream of this name is sent here" };
        for name in ["--name cam3", ""] {
            let receive = format!("receive --from 127.0.0.1:{serve} out.ts {name} {key}");
            let viewer = Running::start(dir, &receive).wait_for(words);
            assert!(names || !viewer.said().contains("cam1"), "{}", viewer.said());
            viewer.interrupt();
        }
        hub.interrupt();
        hub.finish().says(0, &["asked for 'cam3' and was turned away"]);
    }
}

#[test]
fn who_calls_the_wrong_port_is_told() {
    let (dir, [port, serve]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    transport_stream(dir, 1);
    let hub = Running::start(dir, &format!("receive 127.0.0.1:{port} --serve 127.0.0.1:{serve}"));
    let hub = hub.wait_for("whoever reaches it gets the stream");
    Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{serve}")).finish().says(1, &["receivers call here"]);
    let viewer = Running::start(dir, &format!("receive --from 127.0.0.1:{port} out.ts"));
    viewer.wait_for("this is braidcast receive").interrupt();
    hub.interrupt();
    hub.finish().says(0, &[]);
}

#[test]
fn wrong_uses_say_what_is_missing() {
    let port = free_port();
    for (args, words) in [
        ("receive 9000 out.ts --serve nonsense", &["neither PORT nor ADDR:PORT"] as &[&str]),
        ("receive 9000 out.ts --serve-authorized list.txt", &["--serve"]),
        ("receive --relay a:1 out.ts --serve 9001", &["--relay", "--serve"]),
        ("receive srt://:9000 out.ts --serve 9001", &["serves what `braidcast send` sends"]),
        ("receive 9000 out.ts --name cam1", &["--name is for --from", "--accept"]),
        ("receive 9000 out.ts --latency 1s", &["the sender sets the latency"]),
    ] {
        Test::new(args).run().says(2, words);
    }
    let (key, other) = ("ab".repeat(32), "cd".repeat(32));
    let ran = Test::new(&format!("receive {port} out.ts --identity id --peer-key {key} --serve 0")).run();
    ran.says(2, &["who may have the stream is not said"]);
    let dir = tempfile::tempdir().unwrap();
    identity(dir.path(), "id");
    fs::write(dir.path().join("list.txt"), format!("{key} screen\n{other} wall max-rate=5mbit\n")).unwrap();
    let hub = format!("receive {port} out.ts --identity id --serve 0 --serve-authorized list.txt");
    Running::start(dir.path(), &hub).finish().says(2, &["list.txt:2", "streams="]);
}
