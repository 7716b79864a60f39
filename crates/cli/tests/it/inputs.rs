//! Inputs of shapes that multiplexers, stations and programs make, over clean, lossy and overloaded
//! links: what comes out is judged by ffmpeg, frame by frame.
//!
//! One link for each shape, as `make test` has it; with `BRAIDCAST_ALL_INPUTS` set, all
//! (`make more-inputs`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::{Running, Test, free_port, free_ports, transport_stream};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PACKET: usize = 188;
/// PIDs of ffmpeg's multiplexer.
const PMT: u16 = 0x1000;
const SDT: u16 = 0x11;
const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

/// How a shape gets to `send`.
#[derive(Clone, Copy)]
enum Way {
    File,
    /// At once, as `cat` writes it.
    Pipe,
    /// Datagrams of this many bytes, in real time.
    Datagrams(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Clean,
    /// Two paths, 5 % and 8 % of loss in bursts.
    Lossy,
    /// 0.7 of what comes in.
    Over,
}

/// A shape: its name, what it makes of ffmpeg's packets, how it is fed, and the link of `make test`.
type Shape = (&'static str, fn(&[u8]) -> Vec<u8>, Way, Link);

const SHAPES: [Shape; 7] = [
    ("null packets of zeros", with_zeros, Way::File, Link::Clean),
    ("no tables", without_tables, Way::File, Link::Over),
    ("packets of 192 bytes in a pipe", longer, Way::Pipe, Link::Lossy),
    ("datagrams that cut packets", <[u8]>::to_vec, Way::Datagrams(1472), Link::Over),
    ("audio and video on PIDs of stations", on_low_pids, Way::File, Link::Over),
    ("no clock", without_clock, Way::File, Link::Clean),
    ("a program guide", with_guide, Way::File, Link::Over),
];

fn pid(packet: &[u8]) -> u16 {
    u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2])
}

fn packets(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    stream.chunks_exact(PACKET)
}

fn with_zeros(stream: &[u8]) -> Vec<u8> {
    let zeros = [&[0x47, 0x1f, 0xff, 0x10][..], &[0; PACKET - 4]].concat();
    packets(stream).flat_map(|packet| [packet, &zeros]).flatten().copied().collect()
}

fn without_tables(stream: &[u8]) -> Vec<u8> {
    packets(stream).filter(|packet| ![0, SDT, PMT].contains(&pid(packet))).flatten().copied().collect()
}

fn longer(stream: &[u8]) -> Vec<u8> {
    packets(stream).flat_map(|packet| [&[0, 1, 2, 3], packet]).flatten().copied().collect()
}

fn without_clock(stream: &[u8]) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for packet in stream.chunks_exact_mut(PACKET) {
        if packet[3] & 0x20 != 0 && packet[4] >= 7 && packet[5] & 0x10 != 0 {
            packet[5] &= !0x10;
            packet[6..12].fill(0xff);
        }
    }
    stream
}

/// The checksum of a section (ISO/IEC 13818-1 annex A).
fn crc(bytes: &[u8]) -> u32 {
    let shift = |crc: u32| crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 };
    bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| shift(crc)))
}

/// A table section in a packet.
fn section(pid: u16, counter: u8, table: u8, body: &[u8]) -> Vec<u8> {
    let mut section = vec![table, 0xb0, body.len() as u8 + 9, 0, 1, 0xc1, 0, 0];
    section.extend_from_slice(body);
    let crc = crc(&section);
    section.extend_from_slice(&crc.to_be_bytes());
    let mut packet = vec![0x47, 0x40 | (pid >> 8) as u8, pid as u8, 0x10 | counter & 15, 0];
    packet.extend_from_slice(&section);
    packet.resize(PACKET, 0xff);
    packet
}

/// Video on 0x12 and audio on 0x14, where stations have their guides and clocks.
fn on_low_pids(stream: &[u8]) -> Vec<u8> {
    let (mut out, mut tables) = (Vec::new(), 0);
    for packet in packets(stream) {
        let moved = match pid(packet) {
            SDT => continue,
            0 => {
                tables += 1;
                out.extend(section(0, tables, 0, &[0, 1, 0xe0, 0x55]));
                continue;
            }
            PMT => {
                out.extend(section(
                    0x55,
                    tables,
                    2,
                    &[0xe0, 0x12, 0xf0, 0, 0x1b, 0xe0, 0x12, 0xf0, 0, 0x0f, 0xe0, 0x14, 0xf0, 0],
                ));
                continue;
            }
            VIDEO => 0x12,
            AUDIO => 0x14,
            _ => panic!("ffmpeg has other PIDs"),
        };
        let from = out.len();
        out.extend_from_slice(packet);
        out[from + 1] &= 0xe0;
        out[from + 2] = moved;
    }
    out
}

/// A quarter more, of a program guide.
fn with_guide(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, packet) in packets(stream).enumerate() {
        out.extend_from_slice(packet);
        if n % 4 == 0 {
            out.extend(section(0x12, (n / 4) as u8, 0x50, &[(n / 4) as u8; 160]));
        }
    }
    out
}

/// The packets of a shape, without what stands between them.
fn bare(shape: &[u8]) -> Vec<u8> {
    let size = if shape[0] == 0x47 { PACKET } else { 192 };
    shape.chunks_exact(size).flat_map(|packet| &packet[size - PACKET..]).copied().collect()
}

/// What each frame of the video looks like, by its time.
fn frames(file: &Path) -> BTreeMap<String, String> {
    let args = "-nostdin -v quiet -copyts -flags +output_corrupt -i";
    let out = "-map 0:v:0 -f framemd5 -fps_mode passthrough -".split(' ');
    let run = Command::new("ffmpeg").args(args.split(' ')).arg(file).args(out).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let line = |line: &str| -> Option<(String, String)> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        Some((fields.get(2)?.to_string(), fields.get(5)?.to_string()))
    };
    text.lines().filter(|it| !it.starts_with('#')).filter_map(line).collect()
}

/// Feeds `shape` to datagrams in real time, which is `seconds`.
fn play(shape: &[u8], size: usize, seconds: f64, port: u16) {
    let (socket, start) = (UdpSocket::bind("127.0.0.1:0").unwrap(), Instant::now());
    for (n, datagram) in shape.chunks(size).enumerate() {
        let at = Duration::from_secs_f64(seconds * (n * size) as f64 / shape.len() as f64);
        std::thread::sleep(at.saturating_sub(start.elapsed()));
        socket.send_to(datagram, ("127.0.0.1", port)).unwrap();
    }
}

/// Sends a shape over a link and judges what comes out.
fn carry(clip: &[u8], seconds: u32, (name, make, way, _): Shape, link: Link) {
    let what = format!("{name}, {link:?}");
    let (dir, shape) = (tempfile::tempdir().unwrap(), make(clip));
    let path = dir.path();
    let expected = bare(&shape);
    std::fs::write(path.join("in.ts"), &shape).unwrap();
    std::fs::write(path.join("expected.ts"), &expected).unwrap();
    let [port, first, second, input] = free_ports();
    let receiver = Running::start(path, &format!("receive {port} out.ts --json")).wait_for("listening");
    let rate = expected.len() as f64 * 8.0 / f64::from(seconds);
    let links: Vec<(u16, String)> = match link {
        Link::Clean => Vec::new(),
        Link::Lossy => vec![
            (first, "--delay 25ms --loss burst:5%,3 --seed 3".into()),
            (second, "--delay 60ms --loss burst:8%,4 --seed 4".into()),
        ],
        Link::Over => vec![(first, format!("--rate {}kbit --delay 20ms --queue 200ms", (rate * 0.7 / 1e3) as u64))],
    };
    let emulators: Vec<Running> = links
        .iter()
        .map(|(at, how)| {
            Running::start(path, &format!("emulate 127.0.0.1:{at} 127.0.0.1:{port} {how}")).wait_for("listening")
        })
        .collect();
    let mut to: String = links.iter().map(|(at, _)| format!(" --to 127.0.0.1:{at}")).collect();
    if to.is_empty() {
        to = format!(" --to 127.0.0.1:{port}");
    }
    let send = |from: &str| format!("send {from}{to} --latency 800ms --json");
    let start = Instant::now();
    let sent = match way {
        Way::File => Running::start(path, &send("in.ts")).finish(),
        Way::Pipe => {
            let mut sender = Running::start_with(path, &send("-"), Stdio::piped());
            sender.stdin().write_all(&shape).unwrap();
            sender.finish()
        }
        Way::Datagrams(size) => {
            let sender = Running::start(path, &send(&format!("udp://127.0.0.1:{input}"))).wait_for("connected");
            play(&shape, size, f64::from(seconds), input);
            std::thread::sleep(Duration::from_secs(1));
            sender.interrupt();
            sender.finish()
        }
    };
    sent.says(0, &[]);
    assert!(start.elapsed().as_secs_f64() > f64::from(seconds) - 1.5, "{what}: not at its own speed");
    let received = receiver.finish();
    received.says(0, &[]);
    emulators.into_iter().for_each(Running::kill);
    assert_eq!(sent.json()["format"], "mpeg-ts", "{what}");
    let kinds = received.json()["kinds"].clone();
    let kind = |name: &str| kinds.as_array().unwrap().iter().find(|it| it["kind"] == name).cloned().unwrap_or_default();
    let out = path.join("out.ts");
    if link != Link::Over {
        assert!(std::fs::read(&out).unwrap() == expected, "{what}: not the same bytes: {kinds}");
    }
    let (whole, came) = (frames(&path.join("expected.ts")), frames(&out));
    let right = came.iter().filter(|(time, picture)| whole.get(*time) == Some(picture)).count();
    // In overload less than half is right at best; where audio or frames are not known, a tenth.
    let least = if link == Link::Over { whole.len() / 6 } else { whole.len() };
    assert!(whole.len() >= 20 * seconds as usize && right >= least, "{what}: {right} of {}: {kinds}", whole.len());
    let share = kind("audio")["on_time_share"].as_f64().unwrap_or_default();
    assert!(share >= 0.9, "{what}: audio {share}: {kinds}");
    let other = kind("other");
    if name.starts_with("null packets") {
        let carried = other["bytes"].as_u64().unwrap();
        // In the first tenth of a second the sender does not know that it may pack them.
        assert!(carried * 4 < (shape.len() - clip.len()) as u64, "{what}: {carried} bytes of nothing");
    }
}

#[test]
fn streams_of_all_shapes_come_out_right() {
    let (dir, seconds) = (tempfile::tempdir().unwrap(), 4);
    let clip = std::fs::read(transport_stream(dir.path(), seconds)).unwrap();
    let all = std::env::var_os("BRAIDCAST_ALL_INPUTS").is_some();
    for shapes in SHAPES.chunks(4) {
        let runs = shapes.iter().flat_map(|shape| {
            let links = [Link::Clean, Link::Lossy, Link::Over];
            links.into_iter().filter(|link| all || *link == shape.3).map(|link| (*shape, link))
        });
        std::thread::scope(|scope| {
            for (shape, link) in runs {
                let clip = &clip;
                scope.spawn(move || carry(clip, seconds, shape, link));
            }
        });
    }
}

#[test]
fn a_file_format_in_a_pipe_is_refused_with_the_line_that_makes_a_stream_of_it() {
    let matroska = [&[0x1a, 0x45, 0xdf, 0xa3][..], &[7; 200_000]].concat();
    let ran = Test::new(&format!("send - --to 127.0.0.1:{}", free_port())).stdin(matroska).run();
    ran.says(1, &["Matroska", "not MPEG-TS", "ffmpeg -i - -c copy -f mpegts -", "--reliable"]);
}

#[test]
fn a_live_stream_is_not_recorded_as_mp4() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 1);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.mp4")).wait_for("listening");
    let sender = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port}"));
    receiver
        .finish()
        .says(2, &["out.mp4 is named after another format", "out.ts", "-movflags frag_keyframe+empty_moov out.mp4"]);
    sender.interrupt();
    assert!(!dir.path().join("out.mp4").exists());
    // A file that is sent whole may be one.
    let receiver = Running::start(dir.path(), &format!("receive {port} out.mp4")).wait_for("listening");
    Running::start(dir.path(), &format!("send clip.ts --reliable --to 127.0.0.1:{port}")).finish().says(0, &[]);
    receiver.finish().says(0, &[]);
    Test::new("receive 9000 {name}.mkv --segment 5s").run().says(2, &["{name}.mkv is named after another format"]);
}
