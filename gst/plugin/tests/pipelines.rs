//! The elements as GStreamer loads them, over emulated links, to each other and to the commands.
//! BRAIDCAST names the program, and `make plugin-test` sets it.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real pipelines and processes, in real time")]

#[path = "../../tests/common/mod.rs"]
mod common;

#[path = "pipelines/applications.rs"]
mod applications;

#[path = "pipelines/callers.rs"]
mod callers;

use common::{Running, braidcast, free_port};
use gst::prelude::*;
use gstreamer as gst;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

const KEY: &str = "a passphrase of the tests";

/// A folder with nothing in it but the plugin.
fn folder() -> PathBuf {
    let beside = std::env::current_exe().unwrap();
    let built = beside.ancestors().skip(1).take(2).map(|it| it.join("libgstbraidcast.so")).find(|it| it.is_file());
    let folder = std::env::temp_dir().join(format!("braidcast-plugin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let place = folder.join("libgstbraidcast.so");
    if !place.exists() {
        let new = folder.join(format!("new-{:?}", std::thread::current().id()));
        std::fs::copy(built.expect("the plugin is built"), &new).unwrap();
        std::fs::rename(new, place).unwrap();
    }
    folder
}

/// Has GStreamer load the plugin as it would from its own folder.
fn load() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        gst::init().unwrap();
        gst::Registry::get().scan_path(folder());
    });
    assert!(gst::ElementFactory::find("braidcastsink").is_some(), "GStreamer does not load the plugin");
}

/// Starts a command that has the tests' key.
fn start(program: &Path, args: &str) -> Running {
    Running::start(program, args, ("BRAIDCAST_KEY", KEY))
}

/// Two links to `port`, and where they begin.
fn links(program: &Path, port: u16, how: &str) -> ([Running; 2], String) {
    let at = [free_port(), free_port()];
    let links = at.map(|at| start(program, &format!("emulate :{at} 127.0.0.1:{port} {how}")));
    (links, at.map(|at| format!("127.0.0.1:{at}")).join(","))
}

/// Ended when dropped.
struct Playing(gst::Pipeline);

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}

impl Playing {
    fn start(words: &str) -> Self {
        load();
        let it = Self::paused(words);
        it.0.set_state(gst::State::Playing).unwrap();
        it
    }

    fn paused(words: &str) -> Self {
        load();
        Self(gst::parse::launch(words).unwrap().downcast::<gst::Pipeline>().unwrap())
    }

    fn element(&self, name: &str) -> gst::Element {
        self.0.by_name(name).unwrap()
    }

    fn stats(&self, name: &str) -> gst::Structure {
        self.element(name).property("stats")
    }

    /// Buffers that come into an element from now on.
    fn count(&self, name: &str) -> Arc<AtomicU32> {
        let count = Arc::new(AtomicU32::new(0));
        let it = Arc::clone(&count);
        self.element(name).static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            it.fetch_add(1, Relaxed);
            gst::PadProbeReturn::Ok
        });
        count
    }

    /// Waits for the end of the stream. Returns what is said meanwhile, warnings first.
    fn end(&self) -> Vec<String> {
        let (bus, mut said) = (self.0.bus().unwrap(), Vec::new());
        loop {
            let message = bus.timed_pop(gst::ClockTime::from_seconds(60)).expect("it does not end");
            match message.view() {
                gst::MessageView::Eos(_) => return said,
                gst::MessageView::Error(error) => panic!("{} ({:?}); before: {said:?}", error.error(), error.debug()),
                gst::MessageView::Warning(warning) => said.push(warning.error().to_string()),
                gst::MessageView::Latency(_) => drop(self.0.recalculate_latency()),
                _ => {}
            }
        }
    }

    /// The error that the pipeline ends with.
    fn error(&self) -> String {
        let message =
            self.0.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(20), &[gst::MessageType::Error]);
        let message = message.expect("there is no error");
        let gst::MessageView::Error(error) = message.view() else { unreachable!() };
        format!("{} {:?}", error.error(), error.debug())
    }
}

/// Returns a pipeline that encodes a moving test pattern, up to the multiplexer.
fn pictures(count: u32, bitrate: u32, more: &str) -> String {
    format!(
        "videotestsrc num-buffers={count} pattern=ball {more} ! video/x-raw,width=320,height=240,framerate=30/1 \
         ! x264enc name=encoder tune=zerolatency speed-preset=veryfast key-int-max=30 bitrate={bitrate} vbv-buf-capacity=100 \
         ! h264parse config-interval=1 ! mpegtsmux alignment=7"
    )
}

/// What decodes and counts, behind a source. The decoder is libav's, or another one that there is.
fn decoded() -> String {
    load();
    let decoder = ["avdec_h264", "openh264dec"].into_iter().find(|it| gst::ElementFactory::find(it).is_some());
    let decoder = decoder.expect("no decoder of H.264: apt-get install gstreamer1.0-libav");
    format!("tsdemux ! h264parse ! {decoder} ! fakesink name=shown sync=true")
}

fn text(structure: &gst::Structure, path: &[&str]) -> Option<String> {
    let (last, before) = path.split_last()?;
    let mut it = structure.clone();
    for name in before {
        it = it.get::<gst::Structure>(*name).ok()?;
    }
    it.get::<String>(*last).ok()
}

fn inspect(element: &str) -> Output {
    let folder = folder();
    let mut command = Command::new("gst-inspect-1.0");
    command
        .arg(element)
        .env("GST_PLUGIN_PATH", &folder)
        .env("GST_REGISTRY", folder.join(format!("{element}.registry")));
    command.output().unwrap()
}

#[test]
fn gst_inspect_shows_both_elements() {
    for (element, properties) in [
        (
            "braidcastsink",
            &["to", "via", "latency", "key", "identity", "fec", "scheduler", "suggested-bitrate", "stats"][..],
        ),
        ("braidcastsrc", &["listen", "keep-listening", "key", "identity", "latency", "stats"]),
    ] {
        let ran = inspect(element);
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("video/mpegts"), "{said}");
        properties.iter().for_each(|it| assert!(said.contains(&format!("  {it} ")), "{element} has no {it}: {said}"));
    }
}

#[test]
fn every_picture_crosses_two_links_and_is_decoded() {
    let Some(program) = braidcast() else { return };
    let port = free_port();
    let receiver = Playing::start(&format!("braidcastsrc name=it listen={port} key=\"{KEY}\" ! {}", decoded()));
    let shown = receiver.count("shown");
    let (_links, to) = links(&program, port, "--rate 3mbit --delay 20ms --loss 1%");
    let words = pictures(150, 800, "");
    let sender = Playing::start(&format!("{words} ! braidcastsink name=it to={to} key=\"{KEY}\" latency=600"));
    std::thread::sleep(Duration::from_secs(3));
    let (there, here) = (receiver.stats("it"), sender.stats("it"));
    for stats in [&there, &here] {
        assert!(stats.get::<bool>("connected").unwrap(), "{stats}");
        assert_eq!(stats.get::<gst::Array>("paths").unwrap().len(), 2, "{stats}");
        assert!(stats.get::<gst::Structure>("security").unwrap().get::<bool>("authenticated").unwrap(), "{stats}");
        assert!(text(stats, &["security", "cipher"]).is_some(), "{stats}");
    }
    let paths = here.get::<gst::Array>("paths").unwrap();
    let names = paths.iter().map(|it| it.get::<gst::Structure>().unwrap().get::<String>("name").unwrap());
    assert_eq!(names.collect::<Vec<_>>().join(","), to);
    // As the sender has it, and what the demultiplexer adds comes on top.
    assert_eq!(receiver.element("it").property::<u32>("latency"), 600);
    let mut query = gst::query::Latency::new();
    assert!(receiver.element("it").query(&mut query));
    let (live, least, _) = query.result();
    assert_eq!((live, least), (true, gst::ClockTime::from_mseconds(600)));
    assert_eq!(sender.end(), [] as [String; 0]);
    assert_eq!(receiver.end(), [] as [String; 0]);
    let shown = shown.load(Relaxed);
    println!("{shown} of 150 frames");
    assert!((140..=150).contains(&shown), "{shown} of 150 frames");
}

/// How much of a live stream came out: its packets in their order, and nothing else.
fn share(stream: &[u8], out: &[u8]) -> f64 {
    let mut packets = stream.chunks(188);
    for packet in out.chunks(188) {
        assert!(packets.any(|it| it == packet), "a packet that was not sent, or not in its order");
    }
    out.len() as f64 / stream.len() as f64
}

#[test]
fn the_commands_are_at_the_other_end_too() {
    let Some(program) = braidcast() else { return };
    load();
    let dir = folder().join("interop");
    std::fs::create_dir_all(&dir).unwrap();
    let at = |name: &str| dir.join(name).display().to_string();
    let of = |a: &str, b: &str| share(&std::fs::read(at(a)).unwrap(), &std::fs::read(at(b)).unwrap());
    let same = |a: &str, b: &str| std::fs::read(at(a)).unwrap() == std::fs::read(at(b)).unwrap();
    // To `receive`, with a copy of what went in.
    let port = free_port();
    let receiver = start(&program, &format!("receive {port} {}", at("out.ts")));
    let words = pictures(60, 500, "");
    let copy = format!("tee name=t ! queue ! filesink location={} t. ! queue", at("in.ts"));
    let sender =
        Playing::start(&format!("{words} ! {copy} ! braidcastsink to=127.0.0.1:{port} key=\"{KEY}\" latency=2000"));
    assert_eq!(sender.end(), [] as [String; 0]);
    let document = receiver.document();
    assert_eq!(document["malformed"], 0, "{document}");
    drop(sender);
    assert!(of("in.ts", "out.ts") == 1.0, "what `receive` wrote is not what went into braidcastsink: {document}");
    // From `send`.
    let port = free_port();
    let words = format!("braidcastsrc listen={port} key=\"{KEY}\" ! filesink location={}", at("back.ts"));
    let receiver = Playing::start(&words);
    let document = start(&program, &format!("send {} --to 127.0.0.1:{port} --latency 2s", at("in.ts"))).document();
    assert_eq!(document["complete"], true, "{document}");
    assert_eq!(receiver.end(), [] as [String; 0]);
    drop(receiver);
    assert!(of("in.ts", "back.ts") == 1.0, "what braidcastsrc gave is not what `send` sent");
    // What has no clock goes as it is, all of it.
    let port = free_port();
    std::fs::write(at("plain.bin"), vec![7; 3_000_000]).unwrap();
    let receiver =
        Playing::start(&format!("braidcastsrc listen={port} key=\"{KEY}\" ! filesink location={}", at("plain.out")));
    let document = start(&program, &format!("send {} --to 127.0.0.1:{port} --reliable", at("plain.bin"))).document();
    assert_eq!(document["complete"], true, "{document}");
    receiver.end();
    drop(receiver);
    assert!(same("plain.bin", "plain.out"));
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn the_encoder_follows_when_the_rate_falls_tenfold() {
    let Some(program) = braidcast() else { return };
    let port = free_port();
    let receiver = Playing::start(&format!("braidcastsrc name=it listen={port} key=\"{KEY}\" ! {}", decoded()));
    let shown = receiver.count("shown");
    let (_links, to) = links(&program, port, "--rate 0s:2mbit,12s:200kbit --delay 20ms --queue 500ms");
    // Noise takes whatever rate there is.
    let words = pictures(25 * 30, 1000, "is-live=true").replace("pattern=ball", "pattern=snow");
    let sender = Playing::paused(&format!("{words} ! braidcastsink name=it to={to} key=\"{KEY}\" max-bitrate=6000000"));
    let (encoder, began) = (sender.element("encoder"), Instant::now());
    let (told, encoded) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let it = Arc::clone(&told);
    sender.element("it").connect_notify(Some("suggested-bitrate"), move |sink, _| {
        let bitrate: u32 = sink.property("suggested-bitrate");
        encoder.set_property("bitrate", (bitrate / 1000).max(1));
        it.lock().unwrap().push((began.elapsed().as_secs_f64(), bitrate));
    });
    let it = Arc::clone(&encoded);
    sender.element("encoder").static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        it.fetch_add(info.buffer().map_or(0, |buffer| buffer.size() as u64), Relaxed);
        gst::PadProbeReturn::Ok
    });
    sender.0.set_state(gst::State::Playing).unwrap();
    // The rate out of the encoder between two seconds, bit/s.
    let rate = |from: u64, to: u64| {
        std::thread::sleep(Duration::from_secs(from).saturating_sub(began.elapsed()));
        let (bytes, since) = (encoded.load(Relaxed), Instant::now());
        std::thread::sleep(Duration::from_secs(to - from));
        (encoded.load(Relaxed) - bytes) as f64 * 8.0 / since.elapsed().as_secs_f64()
    };
    let (before, after) = (rate(7, 11), rate(17, 23));
    let bus = sender.0.bus().unwrap();
    let words = std::iter::from_fn(|| bus.pop()).filter(|message| message.type_() == gst::MessageType::Element);
    let words: Vec<gst::Structure> = words.filter_map(|message| Some(message.structure()?.to_owned())).collect();
    let messages = words.iter().filter(|it| it.name() == "braidcast-suggested-bitrate").count();
    assert_eq!(sender.end(), [] as [String; 0]);
    receiver.end();
    let stats = receiver.stats("it");
    let kinds = stats.get::<gst::Array>("kinds").unwrap();
    let sum = |field: &str| {
        let of = |kind: &gst::glib::SendValue| kind.get::<gst::Structure>().unwrap().get::<u64>(field).unwrap();
        kinds.iter().map(of).sum::<u64>() as f64
    };
    let (on_time, shown) = (100.0 * sum("on_time") / sum("captured"), shown.load(Relaxed));
    let told = told.lock().unwrap();
    let lowest = told.iter().filter(|(at, _)| *at > 12.0).map(|(_, bitrate)| *bitrate).min().unwrap();
    println!(
        "{:.2} Mbit/s, then {:.2}; told {} times, {lowest} bit/s at least; {on_time:.1} % on time, {shown} of 750 decoded",
        before / 1e6,
        after / 1e6,
        told.len()
    );
    assert!(messages >= 3 && messages <= told.len(), "{messages} messages");
    assert!(before > 1e6, "{before:.0} bit/s over two links of 2 Mbit/s");
    assert!(after < 450e3, "{after:.0} bit/s over two links of 200 kbit/s");
    assert!(
        lowest < 400_000 && on_time > 70.0 && shown > 400,
        "{lowest} bit/s, {on_time:.1} % on time, {shown} decoded"
    );
}

#[test]
fn what_cannot_be_is_said_with_what_to_do() {
    load();
    let taken = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for (words, said) in [
        ("fakesrc ! braidcastsink".to_owned(), "to=home.example:9000"),
        ("fakesrc ! braidcastsink to=nowhere".to_owned(), "HOST:PORT"),
        ("fakesrc ! braidcastsink to=127.0.0.1:9 via=nosuch0".to_owned(), "there is no nosuch0"),
        ("fakesrc ! braidcastsink to=127.0.0.1:9 scheduler=best".to_owned(), "earliest-delivery"),
        ("fakesrc ! braidcastsink to=127.0.0.1:9 fec=much".to_owned(), "tetrys:10,9,200"),
        ("fakesrc ! braidcastsink to=127.0.0.1:9 key-file=/nowhere/key".to_owned(), "/nowhere/key"),
        ("fakesrc ! braidcastsink to=127.0.0.1:9 min-bitrate=9 max-bitrate=8".to_owned(), "more than max-bitrate"),
        ("fakesrc ! braidcastsink at=9000 to=127.0.0.1:9".to_owned(), "set at alone"),
        ("fakesrc ! braidcastsink at=home".to_owned(), "property at: 'home' is neither PORT nor ADDR:PORT"),
        ("braidcastsrc listen=home ! fakesink".to_owned(), "neither PORT nor ADDR:PORT"),
        ("braidcastsrc from=home ! fakesink".to_owned(), "property from: 'home' is not an address with a port"),
        ("braidcastsrc via=lo ! fakesink".to_owned(), "from=field.example:9000"),
        (format!("braidcastsrc listen={port} ! fakesink"), "in use by another program"),
    ] {
        let words = words.replace("fakesrc", "fakesrc ! video/mpegts,systemstream=true");
        let it = Playing::paused(&words);
        assert!(it.0.set_state(gst::State::Paused).is_err(), "{words} starts");
        let error = it.error();
        assert!(error.contains(said), "{words}: {error}");
    }
}

/// As `braidcast send` does, and in the same file: whom either knows the other one knows.
#[test]
fn a_receiver_s_key_is_remembered_and_another_one_is_not_taken_any_more() {
    let Some(program) = braidcast() else { return };
    let dir = folder().join("known");
    std::fs::create_dir_all(&dir).unwrap();
    let at = |name: &str| dir.join(name).display().to_string();
    let port = free_port();
    let home = ("XDG_CONFIG_HOME", dir.to_str().unwrap());
    let receive = |identity: &str| {
        assert!(Command::new(&program).args(["key", "identity", &at(identity)]).output().unwrap().status.success());
        let args = format!("receive {port} {} --overwrite --identity {}", at("out.ts"), at(identity));
        Running::start(&program, &args, home)
    };
    let send = || {
        let words = format!("-m {} ! braidcastsink to=127.0.0.1:{port} give-up=20000", pictures(10, 300, ""));
        let mut command = Command::new("gst-launch-1.0");
        command.args(words.split_whitespace()).env(home.0, home.1).env("GST_PLUGIN_PATH", folder());
        let out = command.env("GST_REGISTRY", at("registry")).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for _ in 0..2 {
        let receiver = receive("first");
        let (delivered, said) = send();
        assert!(delivered, "{said}");
        receiver.document();
        let known = std::fs::read_to_string(dir.join("braidcast/known_peers")).unwrap();
        assert!(known.starts_with(&format!("127.0.0.1:{port} ")) && known.lines().count() == 1, "{known}");
    }
    let _stranger = receive("second");
    let (delivered, said) = send();
    assert!(!delivered && said.contains("known_peers:1 says that its key was"), "{said}");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn who_waits_is_let_go() {
    load();
    for words in [
        // Nobody listens there, nobody sends here.
        format!("{} ! braidcastsink to=127.0.0.1:{}", pictures(100, 500, ""), free_port()),
        format!("{} ! braidcastsink to=127.0.0.1:{}", pictures(1000, 500, "is-live=true"), free_port()),
        format!("braidcastsrc listen={} ! fakesink", free_port()),
    ] {
        let it = Playing::start(&words);
        std::thread::sleep(Duration::from_millis(700));
        let begun = Instant::now();
        it.0.set_state(gst::State::Paused).unwrap();
        it.0.set_state(gst::State::Playing).unwrap();
        it.0.set_state(gst::State::Null).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(2), "{words}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_live_pipeline_does_not_wait_for_a_receiver_and_ends_without_one() {
    let words = format!("{} ! braidcastsink to=127.0.0.1:{}", pictures(30, 500, "is-live=true"), free_port());
    let it = Playing::start(&words);
    let begun = Instant::now();
    let error = it.error();
    assert!(error.contains("no connection"), "{error}");
    assert!((1..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn a_receiver_hears_of_a_pipeline_that_is_taken_down_and_a_sender_of_an_error() {
    let port = free_port();
    let receiver = Playing::start(&format!("braidcastsrc listen={port} ! fakesink"));
    let sender =
        Playing::start(&format!("{} ! braidcastsink to=127.0.0.1:{port}", pictures(3000, 500, "is-live=true")));
    std::thread::sleep(Duration::from_secs(2));
    drop(sender);
    receiver.end();
    drop(receiver);
    // With another key nobody gets in, and it is said.
    let receiver = Playing::start(&format!("braidcastsrc listen={port} key=\"another passphrase\" ! fakesink"));
    let words = format!("braidcastsink to=127.0.0.1:{port} key=\"{KEY}\" give-up=3000");
    let sender = Playing::start(&format!("{} ! {words}", pictures(3000, 500, "is-live=true")));
    let error = sender.error();
    assert!(error.contains("no connection") && error.contains("same key"), "{error}");
    drop((sender, receiver));
}
