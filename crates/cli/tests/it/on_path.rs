//! What somebody on the path sees, and what meddling does, between the real programs.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes and sockets")]

use crate::common;
use crate::common::between::{Action, Between, From};
use crate::common::{Ran, Running, clock, free_port, noise};
use braidcast_core::{Ecn, Writer};
use braidcast_sctp::wire::chunk::Abort;
use braidcast_sctp::wire::{Cause, Causes, Chunk, Header, Packet, begin, seal};
use braidcast_trace::{Captured, Direction, PcapWriter, Ports, Protocol};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `receive` behind somebody who meddles.
struct Scene {
    dir: tempfile::TempDir,
    receiver: Running,
    between: Between,
    flags: &'static str,
}

impl Scene {
    fn new(flags: &'static str, meddle: impl FnMut(From, &mut Vec<u8>) -> Action + Send + 'static) -> Self {
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        std::fs::write(dir.path().join("in.bin"), noise(5000)).unwrap();
        let receiver =
            Running::start(dir.path(), &format!("receive 127.0.0.1:{port} out.bin {flags}")).wait_for("listening");
        Self { dir, receiver, between: Between::meddling(port, meddle), flags }
    }

    fn send(&self) -> Ran {
        let port = self.between.port;
        Running::start(self.dir.path(), &format!("send in.bin --to 127.0.0.1:{port} {}", self.flags)).finish()
    }

    fn output(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("out.bin")).unwrap_or_default()
    }
}

/// The first chunk of a packet, read.
fn first_chunk(datagram: &[u8]) -> Option<(Header, Chunk<'_>)> {
    let packet = Packet::parse(datagram).ok()?;
    Some((packet.header, Chunk::parse(packet.chunks().next()?.ok()?).ok()?))
}

/// What refuses the association that this INIT asks for, as if the receiver had sent it: all that
/// it takes stands in the INIT.
fn refusal_of(datagram: &[u8]) -> Option<Vec<u8>> {
    let (header, Chunk::Init(init)) = first_chunk(datagram)? else { return None };
    let mut causes = Vec::new();
    for cause in [Cause::NoProtection { kind: 101 }, Cause::UserInitiatedAbort(b"a stranger says no")] {
        cause.emit(&mut Writer::new(&mut causes));
    }
    let Header { source_port, destination_port, .. } = header;
    let (source_port, destination_port) = (destination_port, source_port);
    let mut packet = Vec::new();
    begin(&mut packet, Header { source_port, destination_port, verification_tag: init.initiate_tag });
    Chunk::Abort(Abort { reflected: false, causes: Causes::new(&causes) }).emit(&mut Writer::new(&mut packet));
    seal(&mut packet);
    Some(packet)
}

#[test]
fn a_forged_refusal_ends_nothing_and_the_second_in_a_row_does() {
    for (refused, ends) in [(1, false), (u32::MAX, true)] {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let scene = Scene::new("--key right", move |_, datagram| match refusal_of(datagram) {
            Some(refusal) if counted.fetch_add(1, Ordering::Relaxed) < refused => Action::Answer(refusal),
            _ => Action::Pass,
        });
        let sent = scene.send();
        if ends {
            sent.says(1, &["no connection: no secure connection: a stranger says no"]);
            assert_eq!(count.load(Ordering::Relaxed), 2, "it asked twice");
        } else {
            sent.says(0, &["authenticated"]);
            assert_eq!(scene.output(), noise(5000));
            scene.receiver.finish().says(0, &[]);
        }
    }
}

#[test]
fn a_refusal_after_an_attempt_that_nobody_answered_is_the_first() {
    let (begun, mut refused) = (Instant::now(), false);
    let scene = Scene::new("", move |_, datagram| {
        // Long enough for the first attempt to be abandoned.
        if begun.elapsed() < Duration::from_millis(4500) {
            return Action::Drop;
        }
        match refusal_of(datagram).filter(|_| !refused) {
            Some(refusal) => {
                refused = true;
                Action::Answer(refusal)
            }
            None => Action::Pass,
        }
    });
    scene.send().says(0, &[]);
    assert_eq!(scene.output(), noise(5000));
}

/// The place of `pattern` in `datagram`, once.
fn place_of(datagram: &[u8], pattern: &[u8]) -> Option<usize> {
    datagram.windows(pattern.len()).position(|window| window == pattern)
}

#[test]
fn ends_of_different_versions_say_so_at_both_ends() {
    // The hello of a session, with the version of all messages and that of sessions: only in clear
    // can it be changed in flight.
    let hello = [1, 4, 1];
    for place in [0, 2] {
        let scene = Scene::new("--plain", move |from, datagram| {
            if from == From::Client
                && let Some(at) = place_of(datagram, &hello)
            {
                datagram[at + place] = 2;
                seal(datagram);
            }
            Action::Pass
        });
        let differs = "the other end speaks another version of braidcast";
        scene.send().says(1, &[differs, "use the same version at both ends"]);
        drop(scene.receiver.wait_for(differs));
    }
    // The way to agree on keys: parameter 0x8006 of INIT, whose sixth byte names it.
    let scene = Scene::new("", |from, datagram| {
        if let (From::Client, Some((_, Chunk::Init(_)))) = (from, first_chunk(datagram)) {
            let at = place_of(datagram, &[0x80, 0x06]).expect("an offer");
            assert_eq!(datagram[at + 9], 192);
            datagram[at + 9] = 193;
            seal(datagram);
        }
        Action::Pass
    });
    let differs = "no secure connection: no way to agree on keys that both ends know: their versions differ";
    scene.send().says(1, &["no connection", differs, "use the same version at both ends"]);
    drop(scene.receiver.wait_for(differs));
}

/// `braidcast` in `dir` on a machine whose clock is `days` ahead; `None` if that is not possible.
fn start_ahead(dir: &Path, days: u32, args: &str) -> Option<Running> {
    clock::start(dir, &[("FAKETIME", &format!("+{days}d"))], args)
}

#[test]
fn ends_whose_clocks_are_a_year_apart_connect_whichever_is_ahead() {
    for receiver_is_ahead in [true, false] {
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        std::fs::write(dir.path().join("in.bin"), noise(5000)).unwrap();
        let start = |ahead: bool, args: &str| start_ahead(dir.path(), if ahead { 365 } else { 0 }, args);
        let Some(receiver) = start(receiver_is_ahead, &format!("receive {port} out.bin --key right")) else { return };
        let receiver = receiver.wait_for("listening");
        let send = start(!receiver_is_ahead, &format!("send in.bin --to 127.0.0.1:{port} --key right")).unwrap();
        send.finish().says(0, &["authenticated"]);
        receiver.finish().says(0, &["authenticated"]);
        assert_eq!(std::fs::read(dir.path().join("out.bin")).unwrap(), noise(5000));
    }
}

#[test]
fn what_heeds_the_clock_says_that_it_is_the_clock() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("in.bin"), noise(5000)).unwrap();
    let identity = |name: &str| {
        let ran = Running::start(dir.path(), &format!("key identity {name}")).finish();
        ran.says(0, &[]);
        ran.out().trim().to_owned()
    };
    let [_home, camera] = ["home", "camera"].map(identity);
    let last = jiff::Zoned::now().date().tomorrow().unwrap();
    std::fs::write(dir.path().join("list"), format!("{camera} cam1 until={last}\n")).unwrap();
    let (receive, send) = (
        format!("receive {port} {{name}}.bin --identity home --authorized list"),
        format!("send in.bin --to 127.0.0.1:{port} --identity camera"),
    );
    let Some(receiver) = start_ahead(dir.path(), 365, &receive) else { return };
    let receiver = receiver.wait_for("listening");
    Running::start(dir.path(), &send)
        .finish()
        .says(1, &["the other end does not accept our key", &camera, "a last day that is not over"]);
    receiver.wait_for(&format!("list:1: the last day of 'cam1' was {last}, and by this machine's clock it is")).kill();
    let receiver = Running::start(dir.path(), &receive).wait_for("listening");
    Running::start(dir.path(), &send).finish().says(0, &[]);
    receiver.finish().says(0, &[]);
}

/// Found wherever a packet's bounds are.
const SECRET: &[u8] = b"attack at dawn; ";

/// What was heard as a capture of packets straight over IP, which tshark knows by their number.
fn capture(protocol: Protocol, heard: &[(From, Vec<u8>)]) -> Vec<u8> {
    let mut writer = PcapWriter::of(protocol, Vec::new(), Ports::Real).unwrap();
    let interface = writer.interface("between").unwrap();
    for (from, payload) in heard {
        let mut ends = ["10.0.0.1:0", "10.0.0.2:0"].map(|end| end.parse().unwrap());
        if *from == From::Server {
            ends.reverse();
        }
        let ([from, to], at, direction, ecn) = (ends, Default::default(), Direction::Out, Ecn::NotEct);
        writer.packet(&Captured { at, interface, direction, from, to, ecn, payload, comment: "" }).unwrap();
    }
    writer.into_inner()
}

/// What tshark says of a capture, asked with `args`.
fn tshark(file: &Path, args: &[&str]) -> String {
    let out = Command::new("tshark").arg("-r").arg(file).args(args).output().expect("tshark is installed");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Places of the secret in all that tshark shows, bytes of packets and what it made of them.
fn shown(file: &Path) -> usize {
    let hex: String = SECRET.iter().map(|byte| format!("{byte:02x}")).collect();
    let everything = tshark(file, &["-T", "jsonraw"]);
    everything.matches(&hex).count() + tshark(file, &["-V", "-x"]).matches("attack at").count()
}

#[test]
fn tshark_shows_nothing_of_a_stream_unless_both_ends_say_plain() {
    for (flags, readable) in [("", false), ("--key some-long-passphrase", false), ("--plain", true)] {
        let scene = Scene::new(flags, |_, _| Action::Pass);
        let secret = SECRET.repeat(4000);
        std::fs::write(scene.dir.path().join("in.bin"), &secret).unwrap();
        scene.send().says(0, &[]);
        assert_eq!(scene.output(), secret);
        let heard = scene.between.heard();
        assert!(heard.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > secret.len(), "all of it went by");
        let file = scene.dir.path().join("heard.pcapng");
        std::fs::write(&file, capture(Protocol::Sctp, &heard)).unwrap();
        let found = shown(&file);
        assert_eq!(found > 0, readable, "{flags}: {found} times");
        // Types of chunks: handshake, key messages (DATA or I-DATA with PPID 4242) and their
        // acknowledgement, then DTLS chunks alone.
        let fields = ["sctp.chunk_type", "sctp.data_payload_proto_id"];
        let lines = tshark(&file, &["-T", "fields", "-e", fields[0], "-e", fields[1]]);
        let kinds: Vec<(&str, &str)> = lines.lines().map(|line| line.split_once('\t').unwrap()).collect();
        assert_eq!(kinds.len(), heard.len());
        let first = kinds.iter().position(|(types, _)| *types == "65");
        assert_eq!(first.is_none(), readable);
        let (clear, protected) = kinds.split_at(first.unwrap_or(kinds.len()));
        let is_data = |types: &str| types.split(',').any(|it| it == "0" || it == "64");
        // Fragments behind the first have a number in place of the PPID.
        let is_key_message = |ppid: &str| ppid.split(',').all(|it| it.is_empty() || it == "4242");
        let others = clear.iter().filter(|(types, ppid)| is_data(types) && !is_key_message(ppid));
        assert_eq!(others.count() > 0, readable, "{kinds:?}");
        // The last of them may cross the first record of the other end, and so may answers to
        // heartbeats of the handshake.
        let late = protected.iter().filter(|(types, _)| *types != "65");
        // A slow machine has both of these in one packet.
        let are_answers = |types: &str| types.split(',').all(|it| matches!(it, "3" | "5"));
        let is_late = |(types, ppid): &(&str, &str)| are_answers(types) || (is_data(types) && is_key_message(ppid));
        let late: Vec<_> = late.collect();
        assert!(late.iter().all(|it| is_late(it)) && late.len() < 6, "late in clear: {late:?} of {kinds:?}");
    }
}

#[test]
fn tshark_shows_nothing_of_a_tunnel_unless_both_ends_say_plain() {
    for (flags, readable) in [("", false), ("--plain", true)] {
        let (dir, port, listen) = (tempfile::tempdir().unwrap(), free_port(), free_port());
        let exit = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        exit.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let to = exit.local_addr().unwrap();
        let start = |args: String, word| Running::start(dir.path(), &format!("{args} {flags}")).wait_for(word);
        let _server = start(format!("tunnel server 127.0.0.1:{port} --forward {to}"), "waiting for clients");
        let between = Between::listening(port);
        let _client = start(
            format!("tunnel client --to 127.0.0.1:{} --listen {listen} --ccid ccid2", between.port),
            "connected with",
        );
        let application = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (secret, mut came, end) = (SECRET.repeat(10), 0, Instant::now() + common::PATIENCE);
        while came < 20 && Instant::now() < end {
            let mut buf = [0; 500];
            application.send_to(&secret, ("127.0.0.1", listen)).unwrap();
            came += u32::from(exit.recv(&mut buf).is_ok_and(|len| buf[..len] == secret[..]));
        }
        assert_eq!(came, 20);
        let file = dir.path().join("heard.pcapng");
        std::fs::write(&file, capture(Protocol::Dccp, &between.heard())).unwrap();
        let found = shown(&file);
        assert_eq!(found > 0, readable, "{flags}: {found} times");
        // It is DCCP that was looked at: Request, Response and data.
        let types = tshark(&file, &["-T", "fields", "-e", "dccp.type"]);
        assert!(["0", "1", "4"].iter().all(|kind| types.lines().any(|line| line == *kind)), "{types}");
    }
}
