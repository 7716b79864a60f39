//! `braidcast relay` with more ends than a test has programs.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::{Running, clock, command, free_port, len, transport_stream, until};
use braidcast_relay::{Circuit, Control, HEADER, Header, Leg, OwnerSecret, Place, Registration, Tag};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Circuits of one address: a relay for all allows 64.
const EACH: u32 = 50;

fn socket(address: [u8; 4], relay: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::from(address), 0)).unwrap();
    // From then on the kernel takes nothing from another address.
    socket.connect(relay).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

fn send(socket: &UdpSocket, message: Control) {
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    socket.send(&bytes).unwrap();
}

fn answer(socket: &UdpSocket) -> Control {
    let buf = &mut [0; 2000];
    let len = socket.recv(buf).unwrap();
    Control::read(&buf[..len]).unwrap()
}

/// Asks for a place for each of them at once; returns their tags.
fn register(sockets: &[UdpSocket], place: impl Fn(usize) -> Place) -> Vec<Tag> {
    sockets.iter().for_each(|socket| send(socket, Control::Hello { nonce: 1 }));
    for (number, socket) in sockets.iter().enumerate() {
        let Control::Challenge { cookie, .. } = answer(socket) else { panic!("no cookie") };
        let place = place(number);
        let registration = Registration { place, leg: Leg(0), epoch: 1, member: 7, hidden: true, proof: None };
        send(socket, Control::Register { nonce: 2, cookie, registration });
    }
    let tag = |socket| match answer(socket) {
        Control::Registered { tag, .. } => tag,
        other => panic!("no place: {other:?}"),
    };
    sockets.iter().map(tag).collect()
}

fn secret(number: u32) -> OwnerSecret {
    let mut secret = [0; 16];
    secret[..4].copy_from_slice(&number.to_be_bytes());
    OwnerSecret(secret)
}

/// If a packet comes from another address of the relay than its receiver sends to, a NAT does not let it through. There
/// are more members than a socket remembers that was not told to expect them: twice 4,096.
#[test]
fn of_a_relay_with_several_addresses_each_of_9000_members_has_packets_from_the_one_that_it_sends_to() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let _relay = Running::start(dir.path(), &format!("relay {port} --open --threads 2")).wait_for("relaying at");
    // The kernel would answer from 127.0.0.1.
    let at = SocketAddr::from(([127, 0, 0, 2], port));
    let first = socket([127, 1, 0, 1], at);
    let owner = register(std::slice::from_ref(&first), |_| Place::Owner(secret(0)))[0];
    for host in 0..9_000 / EACH {
        let sockets: Vec<_> = (0..EACH).map(|_| socket([127, 2, 0, host as u8 + 1], at)).collect();
        register(&sockets, |number| Place::Owner(secret(1 + host * EACH + number as u32)));
    }
    let circuit: Circuit = Place::Owner(secret(0)).circuit();
    let guest = socket([127, 3, 0, 1], at);
    let tag = register(std::slice::from_ref(&guest), |_| Place::Guest(circuit))[0];
    let packet = [&Header { tag, leg: Leg(0) }.bytes()[..], b"a packet"].concat();
    guest.send(&packet).unwrap();
    let buf = &mut [0; 2000];
    let len = first.recv(buf).expect("the packet from 127.0.0.2");
    let (header, payload) = Header::read(&buf[..len]).unwrap();
    assert_eq!((header.tag, payload, len), (owner, &b"a packet"[..], HEADER + 8));
}

/// The relay's clock is this far from the right one from now on.
fn step(dir: &Path, offset: &str) {
    fs::write(dir.join("new"), offset).unwrap();
    fs::rename(dir.join("new"), dir.join("clock")).unwrap();
}

/// The output has not grown for two seconds.
fn until_it_stops(out: &Path) {
    let (mut had, mut since) = (len(out), Instant::now());
    until("the stream to stop", || {
        if len(out) > had {
            (had, since) = (len(out), Instant::now());
        }
        since.elapsed() > Duration::from_secs(2)
    });
}

/// A line of the relay's list is good until a day of its clock, which is set while a stream goes through it.
/// `asked`: SIGHUP has it look, in place of looking by itself each minute.
fn step_a_relay(asked: bool) {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    transport_stream(dir, if asked { 60 } else { 300 });
    let run = |args: &str| command(dir).args(args.split(' ')).output().unwrap().stdout;
    let fingerprint = String::from_utf8(run("key identity relay.key")).unwrap();
    let tomorrow = Command::new("date").args(["-d", "tomorrow", "+%F"]).output().unwrap().stdout;
    let tomorrow = String::from_utf8(tomorrow).unwrap();
    fs::write(dir.join("list"), format!("{} studio until={tomorrow}", fingerprint.trim())).unwrap();
    step(dir, "+0");
    let file = dir.join("clock");
    let told = [("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap()), ("FAKETIME_NO_CACHE", "1")];
    let list = format!("relay 127.0.0.1:{port} --authorized list");
    let Some(relay) = clock::start(dir, &told, &list) else { return };
    let relay = relay.wait_for("relaying at");
    let look = || if asked { relay.signal("HUP") } else { sleep(Duration::from_secs(61)) };
    fs::write(dir.join("ticket"), run(&format!("key ticket home --relay 127.0.0.1:{port}"))).unwrap();
    let receive = format!("receive --relay 127.0.0.1:{port} --relay-key relay.key --ticket=home out.ts --keep");
    let receiver = Running::start(dir, &receive).wait_for("which sees it as");
    let sender = Running::start(dir, "send clip.ts --to @ticket --relay-only").wait_for("connected");
    let out = dir.join("out.ts");
    let flows = |bytes: u64| {
        let had = len(&out);
        until("the stream to go on", || len(&out) > had + bytes);
    };
    flows(100_000);
    // Nothing that goes on depends on the time of day.
    for offset in if asked { &["-3h", "+3h", "-9999d"][..] } else { &["-3h"] } {
        step(dir, offset);
        look();
        flows(150_000);
    }
    let said = format!("{}{}", sender.said(), receiver.said());
    assert!(!said.contains("reconnecting") && !said.contains("lost"), "{said}");
    step(dir, "+400d");
    look();
    let receiver = receiver.wait_for("the relay does not know this end's key");
    until_it_stops(&out);
    step(dir, "+0");
    look();
    let _receiver = receiver.wait_for("again");
    flows(100_000);
}

#[test]
fn a_relays_permissions_follow_its_clock_and_what_it_carries_does_not() {
    step_a_relay(true);
}

#[test]
#[ignore = "four minutes: the same without SIGHUP, as it looks at its clock each minute"]
fn a_relay_looks_at_its_clock_by_itself() {
    step_a_relay(false);
}
