//! Speech and video of the call, as RTP: speech by espeak-ng in Opus, video in H.264.

use super::run;
use crate::common::network::{Killed, runs};
use std::io::Write;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is said, over and over.
const WORDS: &str = "The quick brown fox jumps over the lazy dog. This call goes over a link that carries less than we send, and \
    others use it too; every word of it should arrive in order and in time, and what cannot be carried is left out of the picture. \
    One two three four five six seven eight nine ten eleven twelve.";

/// Fewer packets than this tell a player nothing.
const SOMETHING: usize = 50;

/// The two streams of a call.
pub(crate) const STREAMS: [&str; 2] = ["audio", "video"];

/// A packet of the call.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// 0 audio, 1 video.
    pub(crate) stream: usize,
    /// When it leaves the application, from the beginning.
    pub(crate) at: Duration,
    pub(crate) bytes: Vec<u8>,
}

/// The number in an RTP packet (RFC 3550 §5.1).
pub(crate) fn sequence_number(rtp: &[u8]) -> u16 {
    u16::from_be_bytes([rtp[2], rtp[3]])
}

fn timestamp(rtp: &[u8]) -> u32 {
    u32::from_be_bytes([rtp[4], rtp[5], rtp[6], rtp[7]])
}

/// A call that can be repeated.
pub(crate) struct Call {
    /// In the order in which they leave.
    pub(crate) packets: Vec<Packet>,
    /// Session description (SDP) for a player of the streams, with the ports 0 and 0.
    sdp: String,
}

/// The clip of `make demo`, if it was fetched.
fn clip() -> Option<PathBuf> {
    let named = std::env::var_os("BRAIDCAST_CLIP").map(PathBuf::from);
    let path = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/demo/clip.mp4"));
    path.exists().then_some(path)
}

impl Call {
    /// `seconds` of it, encoded as telephones do: Opus at 24 kbit/s in packets of 20 ms, H.264 at
    /// 600 kbit/s without B frames.
    pub(crate) fn make(dir: &Path, seconds: u64) -> Self {
        let speech = dir.join("said.wav");
        run(Command::new("espeak-ng").arg("-w").arg(&speech).arg(WORDS));
        let mut ffmpeg = Command::new("ffmpeg");
        // Faster than life, but not so fast that the sockets below overflow.
        ffmpeg.args(["-nostdin", "-v", "error", "-readrate", "6", "-stream_loop", "-1", "-i"]).arg(&speech);
        match clip() {
            Some(clip) => ffmpeg.args(["-readrate", "6", "-stream_loop", "-1", "-i"]).arg(clip),
            None => {
                eprintln!("the video is a test pattern: `tools/clip.sh` fetches a real clip");
                ffmpeg.args(["-readrate", "6", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"])
            }
        };
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let ports = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
        let (length, sdp) = (seconds.to_string(), dir.join("sent.sdp"));
        let audio =
            ["-map", "0:a", "-t", &length, "-c:a", "libopus", "-b:a", "24k", "-application", "voip", "-f", "rtp"];
        ffmpeg.args(audio).arg(format!("rtp://127.0.0.1:{}", ports[0]));
        let video = "-map 1:v -vf scale=480:-2,fps=25 -pix_fmt yuv420p -c:v libx264 -preset veryfast -tune zerolatency \
            -b:v 600k -maxrate 600k -bufsize 300k -g 50 -flags +global_header -f rtp";
        ffmpeg.args(video.split_whitespace()).args(["-t", &length]);
        ffmpeg.arg(format!("rtp://127.0.0.1:{}?pkt_size=1200", ports[1])).arg("-sdp_file").arg(&sdp);
        let readers = sockets.map(|socket| std::thread::spawn(move || read_all(&socket)));
        run(&mut ffmpeg);
        let [audio, video] = readers.map(|reader| reader.join().unwrap());
        let mut packets: Vec<Packet> = timed(0, 48_000, audio).chain(timed(1, 90_000, video)).collect();
        packets.sort_by_key(|packet| packet.at);
        assert!(packets.last().unwrap().at.as_secs() + 2 > seconds, "the call is too short");
        let mut sdp = std::fs::read_to_string(&sdp).unwrap();
        for port in ports {
            sdp = sdp.replacen(&format!(" {port} RTP"), " 0 RTP", 1);
        }
        Self { packets, sdp }
    }

    /// Packets of a stream.
    pub(crate) fn count(&self, stream: usize) -> usize {
        self.packets.iter().filter(|packet| packet.stream == stream).count()
    }

    /// Bits per second of a stream, without headers below RTP.
    pub(crate) fn rate(&self, stream: usize) -> f64 {
        let bytes: usize = self.packets.iter().filter(|it| it.stream == stream).map(|it| it.bytes.len()).sum();
        bytes as f64 * 8.0 / self.packets.last().unwrap().at.as_secs_f64()
    }

    /// Writes what somebody heard and saw who was given `packets`: `call.mkv` with the streams as
    /// they came, and `heard.wav`, with silence for what did not.
    pub(crate) fn record(&self, dir: &Path, packets: &[&Packet]) {
        let came = [0, 1].map(|stream| packets.iter().filter(|it| it.stream == stream).count() >= SOMETHING);
        let recording = dir.join("call.mkv");
        if came.contains(&true) {
            self.play_to_file(&recording, packets, came);
        }
        if came == [true; 2] && !runs(Command::new("ffprobe").args(["-v", "error"]).arg(&recording)) {
            // Too few of the frames came to know their format.
            self.play_to_file(&recording, packets, [true, false]);
        }
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-y", "-nostdin", "-v", "error"]);
        if came[0] {
            ffmpeg.arg("-i").arg(recording).args(["-map", "0:a", "-af", "aresample=async=1:first_pts=0"]);
        } else {
            let seconds = self.packets.last().unwrap().at.as_secs().to_string();
            ffmpeg.args(["-f", "lavfi", "-i", "anullsrc=r=48000:cl=mono", "-t", &seconds]);
        }
        run(ffmpeg.arg(dir.join("heard.wav")));
    }

    /// Sends packets of the streams that `came` to ffmpeg, which writes them as they are.
    fn play_to_file(&self, recording: &Path, packets: &[&Packet], came: [bool; 2]) {
        let ports = [(); 2].map(|()| even_port());
        let sdp = recording.with_extension("sdp");
        let mut parts = self.sdp.split("m=");
        let mut text = parts.next().unwrap().to_owned();
        for ((part, port), _) in parts.zip(ports).zip(came).filter(|(_, came)| *came) {
            text += &format!("m={}", part.replacen(" 0 RTP", &format!(" {port} RTP"), 1));
        }
        std::fs::write(&sdp, text).unwrap();
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg
            .args(["-y", "-v", "error", "-protocol_whitelist", "file,udp,rtp", "-reorder_queue_size", "0", "-i"])
            .arg(sdp);
        ffmpeg.args(["-c", "copy"]).arg(recording).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = Killed(ffmpeg.spawn().unwrap());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // It listens when it has read the file; RTP has nothing to ask it by.
        std::thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        for packet in packets.iter().filter(|packet| came[packet.stream]) {
            std::thread::sleep((packet.at / 6).saturating_sub(began.elapsed()));
            let _ = socket.send_to(&packet.bytes, ("127.0.0.1", ports[packet.stream]));
        }
        std::thread::sleep(Duration::from_millis(500));
        let _ = child.0.stdin.as_mut().unwrap().write_all(b"q");
        let end = Instant::now() + Duration::from_secs(60);
        while child.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "ffmpeg does not end its recording {}", recording.display());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A free port with the next one, for RTCP, free as well.
fn even_port() -> u16 {
    loop {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() & !1;
        if [port, port + 1].into_iter().all(|port| UdpSocket::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
}

/// Everything that comes until a second after the last.
fn read_all(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (mut all, mut buf) = (Vec::new(), [0; 2048]);
    while let Ok(len) = socket.recv(&mut buf) {
        all.push(buf[..len].to_vec());
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    }
    all
}

/// Packets at the times that their timestamps say, none missing.
fn timed(stream: usize, clock: u32, packets: Vec<Vec<u8>>) -> impl Iterator<Item = Packet> {
    let first = packets.first().expect("ffmpeg made packets").clone();
    let mut next = sequence_number(&first);
    packets.into_iter().map(move |bytes| {
        assert_eq!(sequence_number(&bytes), next, "a packet was lost between ffmpeg and the test");
        next = next.wrapping_add(1);
        let ticks = timestamp(&bytes).wrapping_sub(timestamp(&first));
        Packet { stream, at: Duration::from_secs_f64(f64::from(ticks) / f64::from(clock)), bytes }
    })
}
