//! A camera, a microphone and a display, through real elements of GStreamer: what they deliver, and
//! what becomes of the stream when they are gone. If a part is missing, its test is left out, and
//! says so.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real pipelines and processes, in real time")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The encoder's own program.
const ENCODER: &str = env!("CARGO_BIN_EXE_braidcast-encode");
/// A device that no machine has.
const CAMERA: &str = "/dev/video97";

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("braidcast-devices-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process beside it, that ends with it.
struct Beside(Child);

impl Beside {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns `true` if programs, elements and what else a test needs are there; says what is not.
fn has(programs: &[&str], elements: &[&str], package: &str) -> bool {
    let runs = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
    };
    let missing = programs.iter().find(|it| !runs(Command::new("which").arg(it)));
    let missing =
        missing.or_else(|| elements.iter().find(|it| !runs(Command::new("gst-inspect-1.0").arg("--exists").arg(it))));
    if let Some(missing) = missing {
        eprintln!("NOT TESTED, left out: {missing} is not there; on Debian `apt-get install {package}`");
    }
    missing.is_none()
}

/// `braidcast-encode` at work.
struct Encoding<'a> {
    child: Child,
    stdin: Option<ChildStdin>,
    copy: Option<JoinHandle<u64>>,
    folder: &'a Folder,
}

impl Drop for Encoding<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Encoding<'a> {
    fn start(folder: &'a Folder, args: &str, environment: &[(&str, &Path)]) -> Self {
        let file = |name: &str| File::create(folder.at(name)).unwrap();
        let mut command = Command::new(ENCODER);
        command.args(args.split_whitespace()).arg("--log").arg(folder.at("log")).envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file("said")).spawn().unwrap();
        // As `braidcast encode` reads it; in a file each new pipeline would begin at the front.
        let (mut from, mut to) = (child.stdout.take().unwrap(), file("out.ts"));
        let copy = std::thread::spawn(move || std::io::copy(&mut from, &mut to).unwrap());
        let stdin = child.stdin.take();
        Self { child, stdin, copy: Some(copy), folder }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.at(name)).unwrap_or_default()
    }

    fn wait(&mut self, what: &str, until: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !until(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < Duration::from_secs(40),
                "{what}: {ended:?}, {}",
                self.read("said")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for `pictures` more frames.
    fn more(&mut self, pictures: usize) {
        let pictures = self.read("log").lines().count() + pictures;
        self.wait("pictures", |it| it.read("log").lines().count() >= pictures);
    }

    /// Waits for words.
    fn says(&mut self, words: &str) {
        self.wait(words, |it| it.read("said").contains(words));
    }

    /// Ends it; times of the packets of video and of audio, s.
    fn end(mut self) -> [Vec<f64>; 2] {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
        self.copy.take().unwrap().join().unwrap();
        let probe = "-v error -show_entries packet=codec_type,pts_time -of csv=p=0";
        let said =
            Command::new("ffprobe").args(probe.split(' ')).arg(self.folder.at("out.ts")).output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        ["video,", "audio,"].map(|kind| {
            let times = said.lines().filter_map(|line| line.strip_prefix(kind));
            times.map(|it| it.trim_end_matches(',').parse().unwrap()).collect()
        })
    }
}

/// Returns the number of frames that are black and of those that are not, of 320x240.
fn black(path: &Path) -> (usize, usize) {
    let mut command = Command::new("ffmpeg");
    command
        .args("-v error -i".split(' '))
        .arg(path)
        .args("-map 0:v -fps_mode passthrough -pix_fmt gray -vf scale=16:16 -f rawvideo -".split(' '));
    let pictures = command.output().unwrap().stdout;
    let is_black = |it: &&[u8]| it.iter().all(|it| *it < 32);
    let black = pictures.chunks_exact(256).filter(is_black).count();
    (black, pictures.len() / 256 - black)
}

fn longest_gap(times: &[f64]) -> f64 {
    times.windows(2).map(|it| it[1] - it[0]).fold(0.0, f64::max)
}

fn rises(times: &[f64]) -> bool {
    times.windows(2).all(|it| it[0] < it[1])
}

/// Compiles what stands in for the kernel's driver of a camera.
fn driver(folder: &Folder) -> PathBuf {
    let library = folder.at("camera.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/devices/camera.c");
    let mut command = Command::new("cc");
    command.args(["-O1", "-Wall", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(command.status().unwrap().success());
    library
}

#[test]
fn a_camera_that_is_unplugged_comes_back_and_audio_goes_on_meanwhile() {
    if !has(&["cc"], &["v4l2src"], "gcc gstreamer1.0-plugins-good") {
        return;
    }
    for audio in ["test", "none"] {
        let folder = Folder::new(&format!("camera-{audio}"));
        let (library, plugged) = (driver(&folder), folder.at("plugged"));
        File::create(&plugged).unwrap();
        let environment =
            [("LD_PRELOAD", &*library), ("FAKE_CAMERA", Path::new(CAMERA)), ("FAKE_CAMERA_PLUGGED", &plugged)];
        let mut it = Encoding::start(&folder, &format!("{CAMERA} --audio {audio}"), &environment);
        it.more(40);
        std::fs::remove_file(&plugged).unwrap();
        it.says("warning: the camera is gone");
        if audio == "test" {
            it.more(40)
        } else {
            std::thread::sleep(Duration::from_secs(2))
        }
        File::create(&plugged).unwrap();
        it.says("the camera is back");
        it.more(40);
        let [video, heard] = it.end();
        let (black, seen) = black(&folder.at("out.ts"));
        println!(
            "audio {audio}: {seen} frames of the camera, {black} black; gaps {:.2} s, {:.2} s",
            longest_gap(&video),
            longest_gap(&heard)
        );
        assert!(seen >= 70 && rises(&video), "{seen}; {video:?}");
        if audio == "test" {
            // A busy machine takes a while for a new pipeline.
            assert!(black >= 30 && rises(&heard) && longest_gap(&heard) < 2.0, "{black}; {heard:?}");
        } else {
            assert!(black == 0 && longest_gap(&video) > 1.5, "{video:?}");
        }
    }
}

#[test]
fn a_camera_that_was_never_there_is_an_error() {
    if !has(&["cc"], &["v4l2src"], "gcc gstreamer1.0-plugins-good") {
        return;
    }
    for audio in ["none", "test"] {
        let mut command = Command::new(ENCODER);
        let mut child = command
            .args([CAMERA, "--audio", audio])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _stdin = child.stdin.take();
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success()
                && said.contains(CAMERA)
                && said.contains("No such file")
                && said.contains("v4l2-ctl"),
            "{said}"
        );
    }
}

/// PulseAudio with a sink that nobody hears, and a tone that is played to it: what it hears is its own microphone.
struct Pulse {
    _tone: Beside,
    _server: Beside,
}

impl Pulse {
    fn start(folder: &Folder) -> Self {
        let socket = folder.at("native");
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("pulseaudio");
        command.args("-n --daemonize=no --exit-idle-time=-1 --use-pid-file=no --disable-shm=yes -L".split(' '));
        command.arg(format!("module-native-protocol-unix socket={} auth-anonymous=1", socket.display()));
        command.args(["-L", "module-null-sink sink_name=null"]);
        command.envs(["HOME", "XDG_RUNTIME_DIR", "PULSE_RUNTIME_PATH"].map(|name| (name, &folder.0)));
        let server = Beside::start(&mut command);
        let begun = Instant::now();
        while !socket.exists() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut tone = Command::new("gst-launch-1.0");
        tone.args("audiotestsrc is-live=true freq=440 ! pulsesink device=null".split(' '))
            .env("PULSE_SERVER", server_of(folder));
        let tone = Beside::start(&mut tone);
        std::thread::sleep(Duration::from_millis(500));
        Self { _tone: tone, _server: server }
    }
}

fn server_of(folder: &Folder) -> PathBuf {
    format!("unix:{}", folder.at("native").display()).into()
}

#[test]
fn a_microphone_that_is_gone_takes_no_pictures_along_and_comes_back() {
    if !has(&["pulseaudio"], &["pulsesrc", "autoaudiosrc"], "pulseaudio gstreamer1.0-plugins-good") {
        return;
    }
    let folder = Folder::new("microphone");
    let pulse = Pulse::start(&folder);
    let mut it = Encoding::start(&folder, "test --size 320x180 --audio mic", &[("PULSE_SERVER", &server_of(&folder))]);
    it.more(60);
    drop(pulse);
    it.says("warning: the audio is gone");
    it.more(60);
    let _pulse = Pulse::start(&folder);
    it.says("the microphone is back");
    it.more(90);
    let [video, heard] = it.end();
    println!(
        "{} frames, {} packets of audio; gaps {:.2} s, {:.2} s",
        video.len(),
        heard.len(),
        longest_gap(&video),
        longest_gap(&heard)
    );
    assert!(video.len() > 180 && rises(&video) && longest_gap(&video) < 2.0, "{video:?}");
    // Packets of 20 ms, on both sides of what is missing.
    assert!(heard.len() > 100 && rises(&heard) && longest_gap(&heard) > 1.5, "{heard:?}");
    let lost = heard.windows(2).position(|it| it[1] - it[0] > 1.5).unwrap();
    assert!(lost > 30 && heard.len() - lost > 30, "{lost} of {}", heard.len());
}

#[test]
fn a_display_is_encoded() {
    if !has(&["Xvfb"], &["ximagesrc", "ximagesink"], "xvfb gstreamer1.0-x gstreamer1.0-plugins-good") {
        return;
    }
    let folder = Folder::new("display");
    let mut server = Command::new("Xvfb");
    server
        .args("-displayfd 1 -screen 0 640x360x24 -nolisten tcp".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut server = Beside(server.spawn().unwrap());
    let mut number = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut number).unwrap();
    let display = PathBuf::from(format!(":{}", number.trim()));
    // A ball that moves, on black; its position shows if frames are new.
    let mut shows = Command::new("gst-launch-1.0");
    shows.args("videotestsrc is-live=true pattern=ball ! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert ! ximagesink".split(' '));
    let _shows = Beside::start(shows.env("DISPLAY", &display));
    let mut it = Encoding::start(&folder, "screen", &[("DISPLAY", &display)]);
    it.more(150);
    let [video, _] = it.end();
    let mut probe = Command::new("ffprobe");
    probe
        .args("-v error -select_streams v -show_entries stream=width,height -of csv=p=0".split(' '))
        .arg(folder.at("out.ts"));
    let size = String::from_utf8_lossy(&probe.output().unwrap().stdout).into_owned();
    let mut pictures = Command::new("ffmpeg");
    pictures
        .args("-v error -i".split(' '))
        .arg(folder.at("out.ts"))
        .args("-fps_mode passthrough -pix_fmt gray -vf scale=64:36 -f rawvideo -".split(' '));
    let pictures = pictures.output().unwrap().stdout;
    let changed = pictures.chunks_exact(64 * 36).collect::<Vec<_>>().windows(2).filter(|it| it[0] != it[1]).count();
    println!("{} frames, {changed} unlike the one before", video.len());
    assert!(size.starts_with("640,360") && video.len() > 100 && rises(&video) && changed > 50, "{size}, {changed}");
}

#[test]
fn without_a_display_it_is_said() {
    if !has(&[], &["ximagesrc"], "gstreamer1.0-plugins-good") {
        return;
    }
    let mut command = Command::new(ENCODER);
    command.arg("screen").env_remove("DISPLAY").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _stdin = child.stdin.take();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        !out.status.success() && said.contains("display") && said.contains("hint: it needs an X11 display in DISPLAY"),
        "{said}"
    );
}
