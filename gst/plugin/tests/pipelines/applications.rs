//! What applications do with the elements: URIs, signals, messages, several senders, and changes while they play.

use super::callers::identities;
use super::common::{braidcast, free_port};
use super::{KEY, Playing, decoded, folder, links, load, pictures};
use gst::prelude::*;
use gstreamer as gst;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) type Heard = Arc<Mutex<Vec<[String; 3]>>>;

/// What a signal of the callers says from now on.
pub(super) fn heard(source: &gst::Element, signal: &str) -> Heard {
    let all = Heard::default();
    let it = Arc::clone(&all);
    source.connect(signal, false, move |values| {
        it.lock().unwrap().push([1, 2, 3].map(|at| values[at].get::<String>().unwrap()));
        None
    });
    all
}

/// Waits until `so`, 20 s at most.
pub(super) fn wait(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The states that a pipeline's bus has told of, up to the end of the stream.
fn states(of: &Playing) -> Vec<String> {
    let kinds = [gst::MessageType::Element, gst::MessageType::Eos, gst::MessageType::Error];
    let (bus, mut states) = (of.0.bus().unwrap(), Vec::new());
    loop {
        let message = bus.timed_pop_filtered(gst::ClockTime::from_seconds(20), &kinds).expect("it does not end");
        match message.type_() {
            gst::MessageType::Eos => return states,
            gst::MessageType::Error => panic!("{message:?}"),
            _ => {}
        }
        let words = message.structure().filter(|it| it.name() == "braidcast-state");
        states.extend(words.map(|it| it.get::<String>("state").unwrap()));
    }
}

pub(super) fn live(count: u32) -> String {
    pictures(count, 500, "is-live=true")
}

#[test]
fn elements_are_made_from_uris() {
    load();
    let make = |kind, uri: &str| gst::Element::make_from_uri(kind, uri, None);
    let of = |element: &gst::Element| element.dynamic_cast_ref::<gst::URIHandler>().unwrap().uri().unwrap();
    let uri = "braidcast://[2001:db8::1]:9000,home.example:9001?via=wwan0,wlan0&latency=800&wait-for-connection=no&key=a%20secret";
    let sink = make(gst::URIType::Sink, uri).unwrap();
    assert_eq!(sink.factory().unwrap().name(), "braidcastsink");
    assert_eq!(sink.property::<String>("to"), "[2001:db8::1]:9000,home.example:9001");
    assert_eq!((sink.property::<String>("via"), sink.property::<u32>("latency")), ("wwan0,wlan0".into(), 800));
    assert!(!sink.property::<bool>("wait-for-connection"));
    let again = of(&sink);
    assert!(!again.contains("secret") && again.contains("latency=800") && !again.contains("fec="), "{again}");
    assert_eq!(make(gst::URIType::Sink, &again).unwrap().property::<String>("via"), "wwan0,wlan0");
    let source = make(gst::URIType::Src, "braidcast://:9000?stream-name=cam%201&keep-listening").unwrap();
    assert_eq!(source.property::<String>("listen"), ":9000");
    assert_eq!(source.property::<String>("stream-name"), "cam 1");
    assert!(source.property::<bool>("keep-listening"));
    let waits = make(gst::URIType::Sink, "braidcast://?at=9000,9001").unwrap();
    assert_eq!(waits.property::<String>("at"), "9000,9001");
    assert_eq!(of(&waits), "braidcast://?at=9000,9001");
    let calls = make(gst::URIType::Src, "braidcast://?from=field.example:9000").unwrap();
    assert_eq!(of(&calls), "braidcast://?from=field.example:9000");
    for (kind, wrong, said) in [
        (gst::URIType::Sink, "braidcast://", "no address"),
        (gst::URIType::Sink, "braidcast://a:1?latency=1", "cannot be '1'"),
        (gst::URIType::Sink, "braidcast://a:1?colour=red", "has no 'colour'; it has"),
        (gst::URIType::Sink, "braidcast://a:1?sync=maybe", "has no 'sync'"),
        (gst::URIType::Src, "braidcast://:9000?plain=maybe", "cannot be 'maybe'"),
        (gst::URIType::Src, "braidcast://:9000?key=%zz", "wrong %"),
    ] {
        let error = make(kind, wrong).unwrap_err();
        assert!(error.message().contains(said), "{wrong}: {error}");
    }
}

#[test]
fn uridecodebin_plays_a_uri() {
    let port = free_port();
    let uri = format!("braidcast://127.0.0.1:{port}?key={}", KEY.replace(' ', "%20"));
    let receiver = Playing::start(&format!("uridecodebin uri=\"{uri}\" ! fakesink name=shown sync=true"));
    let shown = receiver.count("shown");
    let sender =
        Playing::start(&format!("{} ! braidcastsink to=127.0.0.1:{port} key=\"{KEY}\"", pictures(90, 500, "")));
    assert_eq!(sender.end(), [] as [String; 0]);
    receiver.end();
    let shown = shown.load(Relaxed);
    assert!(shown > 75, "{shown} of 90 frames");
}

#[test]
fn several_senders_come_to_one_port_and_go_without_each_other() {
    let port = free_port();
    let source = |name: &str| {
        // Any address, spelled in two ways.
        let any = if name == "gate" { "0.0.0.0:" } else { "" };
        let words = format!("braidcastsrc name=it listen={any}{port} stream-name={name} key=\"{KEY}\" ! {}", decoded());
        Playing::start(&words)
    };
    let receivers = ["door", "gate"].map(source);
    let shown = receivers.each_ref().map(|it| it.count("shown"));
    let rejected = heard(&receivers[0].element("it"), "caller-rejected");
    let send = |name: &str, count: u32| {
        let to = format!("to=127.0.0.1:{port} key=\"{KEY}\" stream-name={name}");
        Playing::start(&format!("{} ! braidcastsink {to}", live(count)))
    };
    // The same name, another key or another address at the same port are mistakes.
    for (address, more, said) in [
        ("", "stream-name=door key=\"a passphrase of the tests\"", "takes 'door' there"),
        ("", "stream-name=yard plain=true", "in another way"),
        ("127.0.0.1:", "stream-name=yard key=\"a passphrase of the tests\"", "at another address"),
    ] {
        let wrong = Playing::paused(&format!("braidcastsrc listen={address}{port} {more} ! fakesink"));
        assert!(wrong.0.set_state(gst::State::Playing).is_err());
        let error = wrong.error();
        assert!(error.contains(said), "{error}");
    }
    let (door, gate) = (send("door", 240), send("gate", 120));
    let stranger = send("yard", 200);
    let error = stranger.error();
    assert!(error.contains("unknown name"), "{error}");
    wait("nobody hears of the stranger", || !rejected.lock().unwrap().is_empty());
    let [_, name, why] = rejected.lock().unwrap()[0].clone();
    assert!(name == "yard" && why.contains("unknown name"), "{name}: {why}");
    assert_eq!(gate.end(), [] as [String; 0]);
    assert_eq!(receivers[1].end(), [] as [String; 0]);
    let [first, second] = receivers;
    drop(second);
    // A name comes while the port is in use.
    let yard = source("yard");
    let there = yard.count("shown");
    let stranger = send("yard", 60);
    assert_eq!(stranger.end(), [] as [String; 0]);
    assert_eq!(yard.end(), [] as [String; 0]);
    assert_eq!(door.end(), [] as [String; 0]);
    // Who was turned away, and nothing else.
    let said = first.end();
    assert!(said.len() == 1 && said[0].contains("unknown name"), "{said:?}");
    let shown = [shown[0].load(Relaxed), shown[1].load(Relaxed), there.load(Relaxed)];
    println!("{shown:?} of 240, 120 and 60 frames");
    assert!(shown[0] > 210 && shown[1] > 95 && shown[2] > 40, "{shown:?}");
    drop((first, yard));
    std::net::UdpSocket::bind(("0.0.0.0", port)).expect("the port is not free");
}

#[test]
fn an_application_says_who_comes_in_and_hears_of_all() {
    let port = free_port();
    let receiver = Playing::paused(&format!(
        "braidcastsrc name=it listen={port} key=\"{KEY}\" keep-listening=true ! fakesink name=shown"
    ));
    let (source, shown) = (receiver.element("it"), receiver.count("shown"));
    let [added, removed, rejected] = ["caller-added", "caller-removed", "caller-rejected"].map(|it| heard(&source, it));
    source
        .connect("caller-connecting", false, |values| Some((values[2].get::<String>().unwrap() == "door").to_value()));
    receiver.0.set_state(gst::State::Playing).unwrap();
    let send = |name: &str, count: u32| {
        let to = format!("to=127.0.0.1:{port} key=\"{KEY}\" stream-name={name}");
        Playing::start(&format!("{} ! braidcastsink {to}", live(count)))
    };
    let error = send("gate", 200).error();
    assert!(error.contains("list"), "{error}");
    wait("it is not told", || !rejected.lock().unwrap().is_empty());
    assert!(rejected.lock().unwrap()[0][1] == "gate" && added.lock().unwrap().is_empty());
    assert_eq!(shown.load(Relaxed), 0, "something of who was turned away came out");
    let here = states(&send("door", 90));
    wait("its end is not told", || !removed.lock().unwrap().is_empty());
    let [address, name, fingerprint] = added.lock().unwrap()[0].clone();
    assert!(
        address.starts_with("127.0.0.1:") && name == "door" && fingerprint.len() == 64,
        "{address} {name} {fingerprint}"
    );
    assert_eq!(*removed.lock().unwrap(), *added.lock().unwrap());
    assert!(shown.load(Relaxed) > 20);
    // It would wait for the next one.
    receiver.0.bus().unwrap().post(gst::message::Eos::new()).unwrap();
    let there = states(&receiver);
    assert!(["rejected", "connected", "ended"].iter().all(|it| there.iter().any(|other| other == it)), "{there:?}");
    assert!(["connected", "path-up", "ended"].iter().all(|it| here.iter().any(|other| other == it)), "{here:?}");
}

#[test]
fn only_senders_on_the_list_come_in() {
    let Some(program) = braidcast() else { return };
    load();
    let dir = folder().join("list");
    let keys = identities(&program, &dir);
    let port = free_port();
    let list = format!("{},{}", keys[0].1, keys[1].1);
    let receiver = Playing::start(&format!(
        "braidcastsrc name=it listen={port} peer-key={list} keep-listening=true ! fakesink name=shown"
    ));
    let added = heard(&receiver.element("it"), "caller-added");
    let home = dir.display().to_string();
    for (place, (file, key)) in keys.iter().enumerate() {
        let mut command = Command::new("gst-launch-1.0");
        let words = format!("{} ! braidcastsink to=127.0.0.1:{port} identity={file} give-up=2000", live(30));
        command.args(words.split_whitespace()).env("XDG_CONFIG_HOME", &home).env("GST_PLUGIN_PATH", folder());
        let out = command.env("GST_REGISTRY", dir.join("registry")).output().unwrap();
        let told = added.lock().unwrap().iter().any(|it| it[2] == *key);
        assert_eq!(
            (out.status.success(), told),
            (place < 2, place < 2),
            "{place}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn paths_rates_and_the_latency_change_while_it_plays() {
    let Some(program) = braidcast() else { return };
    let port = free_port();
    let receiver = Playing::start(&format!("braidcastsrc name=it listen={port} key=\"{KEY}\" ! {}", decoded()));
    let shown = receiver.count("shown");
    let (mut links, to) = links(&program, port, "--rate 5mbit --delay 10ms");
    let (first, second) = to.split_once(',').unwrap();
    let sender = Playing::start(&format!("{} ! braidcastsink name=it to={first} key=\"{KEY}\" latency=400", live(390)));
    let sink = sender.element("it");
    let lists = Arc::new(AtomicU32::new(0));
    let it = Arc::clone(&lists);
    sink.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER_LIST, move |_, _| {
        it.fetch_add(1, Relaxed);
        gst::PadProbeReturn::Ok
    });
    let paths = || {
        let stats: gst::Structure = sink.property("stats");
        let paths = stats.get::<gst::Array>("paths").unwrap();
        let path = |it: &gst::glib::SendValue| it.get::<gst::Structure>().unwrap();
        let there = paths.iter().map(path).filter(|path| path.get::<String>("state").unwrap() != "left");
        there.map(|path| path.get::<String>("name").unwrap()).collect::<Vec<_>>()
    };
    wait("the first path is not there", || paths() == [first]);
    std::thread::sleep(Duration::from_secs(2));
    sink.set_property("to", &to);
    wait("the second path does not join", || paths() == [first, second]);
    // What cannot be changes nothing, and is said.
    sink.set_property("via", "a,b,c");
    let warning =
        sender.0.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(5), &[gst::MessageType::Warning]);
    let warning = warning.expect("nothing is said");
    let gst::MessageView::Warning(warning) = warning.view() else { unreachable!() };
    assert!(warning.error().message().contains("do not pair up"), "{}", warning.error());
    sink.set_property("via", "");
    assert_eq!(paths(), [first, second]);
    std::thread::sleep(Duration::from_secs(1));
    sink.set_property("to", second);
    wait("the first path does not leave", || paths() == [second]);
    links[0].0.kill().unwrap();
    sink.set_property("max-bitrate", 700_000_u32);
    sink.set_property("latency", 700_u32);
    wait("the rate does not follow", || sink.property::<u32>("suggested-bitrate") <= 700_000);
    wait("the latency does not follow", || receiver.element("it").property::<u32>("latency") == 700);
    let said = sender.end();
    assert_eq!(said, [] as [String; 0]);
    receiver.end();
    let shown = shown.load(Relaxed);
    println!("{shown} of 390 frames, {} buffer lists", lists.load(Relaxed));
    assert!(shown > 340 && lists.load(Relaxed) > 50, "{shown} of 390 frames, {} lists", lists.load(Relaxed));
}

#[test]
fn a_stream_that_was_not_delivered_is_an_error_of_gst_launch() {
    load();
    for live in [true, false] {
        let more = if live { "is-live=true" } else { "" };
        let words = format!(
            "{} ! braidcastsink to=127.0.0.1:{} wait-for-connection=false",
            pictures(30, 500, more),
            free_port()
        );
        let mut command = Command::new("gst-launch-1.0");
        command.args(words.split_whitespace()).env("GST_PLUGIN_PATH", folder());
        let out = command.env("GST_REGISTRY", folder().join(format!("launch-{live}.registry"))).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains("no connection"), "{:?}: {said}", out.status);
    }
}
