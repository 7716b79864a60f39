//! Who calls whom: a sink that waits and a source that dials, who comes in, and what an element that runs takes.

use super::applications::{heard, live, wait};
use super::common::{Running, braidcast, free_port};
use super::{KEY, Playing, decoded, folder, inspect, links, load, pictures, share};
use gst::prelude::*;
use gstreamer as gst;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Three files with keys of their own in `dir`, and their fingerprints.
pub(super) fn identities(program: &Path, dir: &Path) -> [(String, String); 3] {
    std::fs::create_dir_all(dir).unwrap();
    ["first", "second", "third"].map(|name| {
        let file = dir.join(name).display().to_string();
        let made = Command::new(program).args(["key", "identity", &file]).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
        let key = said.split(|it: char| !it.is_ascii_hexdigit()).find(|it| it.len() == 64).expect(&said).to_owned();
        (file, key)
    })
}

/// The next warning that a pipeline posts.
fn warning(of: &Playing) -> String {
    let message =
        of.0.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(20), &[gst::MessageType::Warning]);
    let message = message.expect("there is no warning");
    let gst::MessageView::Warning(warning) = message.view() else { unreachable!() };
    warning.error().message().to_owned()
}

#[test]
fn a_source_calls_a_sink_that_waits_and_its_application_says_who_comes_in() {
    let Some(program) = braidcast() else { return };
    let port = free_port();
    let words = format!("{} ! braidcastsink name=it at={port} key=\"{KEY}\" stream-name=door", live(300));
    let sender = Playing::paused(&words);
    let sink = sender.element("it");
    let [added, removed, rejected] = ["caller-added", "caller-removed", "caller-rejected"].map(|it| heard(&sink, it));
    let asked = Arc::new(AtomicU32::new(0));
    let it = Arc::clone(&asked);
    // The first call is turned away, and a source calls again.
    sink.connect("caller-connecting", false, move |_| Some((it.fetch_add(1, Relaxed) > 0).to_value()));
    sender.0.set_state(gst::State::Playing).unwrap();
    let (_links, from) = links(&program, port, "--rate 5mbit --delay 10ms");
    let words = format!("braidcastsrc name=it from={from} key=\"{KEY}\" ! {}", decoded());
    let receiver = Playing::start(&words);
    let shown = receiver.count("shown");
    wait("nobody comes in", || !added.lock().unwrap().is_empty());
    let [address, name, fingerprint] = added.lock().unwrap()[0].clone();
    assert!(address.starts_with("127.0.0.1:") && name == "door" && fingerprint.len() == 64, "{address} {name}");
    assert!(rejected.lock().unwrap()[0][2].contains("list"), "{rejected:?}");
    let paths = |stats: gst::Structure| stats.get::<gst::Array>("paths").unwrap().len();
    wait("the second path does not join", || paths(receiver.stats("it")) == 2 && paths(sender.stats("it")) == 2);
    // One receiver at a time.
    let second = Playing::start(&format!("braidcastsrc from=127.0.0.1:{port} key=\"{KEY}\" ! fakesink"));
    wait("the second receiver is not turned away", || rejected.lock().unwrap().len() > 1);
    assert!(rejected.lock().unwrap()[1][2].contains("busy"), "{rejected:?}");
    drop(second);
    assert!(removed.lock().unwrap().is_empty());
    let said = sender.end();
    assert!(said.iter().all(|it| it.contains("turned away")), "{said:?}");
    receiver.end();
    assert_eq!(*removed.lock().unwrap(), *added.lock().unwrap());
    let shown = shown.load(Relaxed);
    println!("{shown} of 300 frames");
    assert!(shown > 150, "{shown} of 300 frames");
}

#[test]
fn the_commands_call_a_sink_and_are_called_by_a_source() {
    let Some(program) = braidcast() else { return };
    load();
    let dir = folder().join("called");
    std::fs::create_dir_all(&dir).unwrap();
    let at = |name: &str| dir.join(name).display().to_string();
    let of = |a: &str, b: &str| share(&std::fs::read(at(a)).unwrap(), &std::fs::read(at(b)).unwrap());
    let start = |args: &str| Running::start(&program, args, ("BRAIDCAST_KEY", KEY));
    let port = free_port();
    let receiver = start(&format!("receive --from 127.0.0.1:{port} {}", at("out.ts")));
    let copy = format!("tee name=t ! queue ! filesink location={} t. ! queue", at("in.ts"));
    let words = pictures(60, 500, "");
    let sender = Playing::start(&format!("{words} ! {copy} ! braidcastsink at={port} key=\"{KEY}\" latency=2000"));
    assert_eq!(sender.end(), [] as [String; 0]);
    receiver.document();
    drop(sender);
    assert!(of("in.ts", "out.ts") == 1.0, "what `receive` wrote is not what went into braidcastsink");
    let port = free_port();
    let sender = start(&format!("send {} --at {port} --latency 2s", at("in.ts")));
    let words = format!("braidcastsrc from=127.0.0.1:{port} key=\"{KEY}\" ! filesink location={}", at("back.ts"));
    let receiver = Playing::start(&words);
    assert_eq!(sender.document()["complete"], true);
    assert_eq!(receiver.end(), [] as [String; 0]);
    drop(receiver);
    assert!(of("in.ts", "back.ts") == 1.0, "what braidcastsrc gave is not what `send` sent");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn a_sender_that_is_on_the_list_no_more_goes_while_the_source_plays() {
    let Some(program) = braidcast() else { return };
    load();
    let dir = folder().join("relisted");
    let keys = identities(&program, &dir);
    let port = free_port();
    let receiver = Playing::start(&format!(
        "braidcastsrc name=it listen={port} peer-key={} keep-listening=true ! fakesink",
        keys[0].1
    ));
    let source = receiver.element("it");
    let [added, removed] = ["caller-added", "caller-removed"].map(|it| heard(&source, it));
    let send = |at: usize| {
        Playing::start(&format!("{} ! braidcastsink to=127.0.0.1:{port} identity={}", live(3000), keys[at].0))
    };
    let first = send(0);
    wait("the first sender does not come in", || added.lock().unwrap().len() == 1);
    // A list is neither taken away nor replaced by what is none.
    for wrong in ["", "abc"] {
        source.set_property("peer-key", wrong);
        assert!(warning(&receiver).contains("64 hexadecimal digits"));
    }
    source.set_property("peer-key", &keys[1].1);
    assert_eq!(source.property::<String>("peer-key"), keys[1].1);
    wait("the first sender does not go", || removed.lock().unwrap().len() == 1);
    assert_eq!(removed.lock().unwrap()[0][2], keys[0].1);
    let second = send(1);
    wait("the second sender does not come in", || added.lock().unwrap().len() == 2);
    assert_eq!(added.lock().unwrap()[1][2], keys[1].1);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((added.lock().unwrap().len(), removed.lock().unwrap().len()), (2, 1), "the first one comes back");
    drop((first, second, receiver));
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn a_receiver_that_is_on_the_list_no_more_goes_while_the_sink_plays() {
    let Some(program) = braidcast() else { return };
    load();
    let dir = folder().join("receivers");
    let keys = identities(&program, &dir);
    let port = free_port();
    let words = format!("{} ! braidcastsink name=it at={port} peer-key={}", live(3000), keys[0].1);
    let sender = Playing::start(&words);
    let sink = sender.element("it");
    let [added, removed] = ["caller-added", "caller-removed"].map(|it| heard(&sink, it));
    let receive =
        |at: usize| Playing::start(&format!("braidcastsrc from=127.0.0.1:{port} identity={} ! fakesink", keys[at].0));
    let first = receive(0);
    wait("the first receiver does not come in", || added.lock().unwrap().len() == 1);
    // One that stays on the list is not disturbed.
    sink.set_property("peer-key", format!("{},{}", keys[1].1, keys[0].1));
    std::thread::sleep(Duration::from_millis(1500));
    assert!(removed.lock().unwrap().is_empty());
    sink.set_property("peer-key", &keys[1].1);
    wait("the first receiver does not go", || removed.lock().unwrap().len() == 1);
    let second = receive(1);
    wait("the second receiver does not come in", || added.lock().unwrap().len() == 2);
    assert_eq!(added.lock().unwrap()[1][2], keys[1].1);
    drop((first, second, sender));
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn what_cannot_change_while_an_element_runs_is_said_and_stays() {
    let port = free_port();
    let receiver = Playing::start(&format!("braidcastsrc name=it listen={port} stream-name=door ! fakesink"));
    let sender = Playing::start(&format!("{} ! braidcastsink name=it to=127.0.0.1:{port} stream-name=door", live(900)));
    for (of, name, value) in [
        (&receiver, "listen", "9".to_value()),
        (&receiver, "keep-listening", true.to_value()),
        (&receiver, "stream-name", "gate".to_value()),
        (&receiver, "give-up", 1_u32.to_value()),
        (&sender, "fec", "none".to_value()),
        (&sender, "scheduler", "redundant".to_value()),
        (&sender, "stream-name", "gate".to_value()),
        (&sender, "at", "9".to_value()),
    ] {
        let it = of.element("it");
        let before = it.property_value(name).serialize().unwrap();
        it.set_property_from_value(name, &value);
        let said = warning(of);
        assert!(said.contains(name) && said.contains("while the element runs") && said.contains("READY"), "{said}");
        assert_eq!(it.property_value(name).serialize().unwrap(), before, "{name}");
    }
    drop((sender, receiver));
    for (element, live) in [
        (
            "braidcastsink",
            &["to", "via", "latency", "min-bitrate", "max-bitrate", "peer-key", "wait-for-connection"][..],
        ),
        ("braidcastsrc", &["peer-key"]),
    ] {
        let said = String::from_utf8(inspect(element).stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let is_live = |pair: &[&str]| pair[1].contains("changeable in NULL, READY, PAUSED or PLAYING state");
        let found =
            lines.windows(2).filter(|pair| is_live(pair)).map(|pair| pair[0].split_whitespace().next().unwrap());
        let (mut found, mut live) = (found.collect::<Vec<_>>(), live.to_vec());
        found.sort_unstable();
        live.sort_unstable();
        assert_eq!(found, live, "{element}");
    }
}

#[test]
fn a_pipeline_that_waits_for_a_receiver_can_be_told_to_go_on_without() {
    let words = format!("{} ! braidcastsink name=it to=127.0.0.1:{}", pictures(3000, 500, ""), free_port());
    let it = Playing::start(&words);
    assert!(it.0.state(gst::ClockTime::from_mseconds(800)).0 == Ok(gst::StateChangeSuccess::Async), "it does not wait");
    it.element("it").set_property("wait-for-connection", false);
    assert_eq!(it.0.state(gst::ClockTime::from_seconds(5)).1, gst::State::Playing);
}
