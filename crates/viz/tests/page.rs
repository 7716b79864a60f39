//! What both ends tell comes together, by one clock, on a page that nothing in a trace can make run.

use braidcast_core::events::{
    FrameKind, Loss, MediaEvent, PathCondition, PathMetrics, SctpEvent, Sending, TraceEvent, Unsent,
};
use braidcast_core::{Instant, PathId};
use braidcast_trace::Record;
use braidcast_viz::Exchange;
use core::time::Duration;

const STREAM: u32 = 77;
/// How far the receiver's clock is ahead, ms.
const AHEAD: u64 = 5000;

fn at(connection: u32, ms: u64, event: impl Into<TraceEvent>) -> Record {
    Record { at: Instant::from_millis(ms), connection, event: event.into() }
}

fn page_of(exchange: Exchange, title: &str) -> String {
    let mut page = Vec::new();
    exchange.page(title, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// A column of the page.
fn column(page: &str, name: &str) -> Vec<f64> {
    let between = |from: &str, to: &str| page.split_once(from).unwrap().1.split_once(to).unwrap().0;
    let about: serde_json::Value = serde_json::from_str(between("id=\"about\">", "</script>")).unwrap();
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in between("id=\"data\">", "</script>").bytes().filter(|&byte| byte != b'=') {
        bits = bits << 6 | letters.iter().position(|&it| it == byte).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    let place = about["columns"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    let (at, rows) = (place["at"].as_u64().unwrap() as usize, place["count"].as_u64().unwrap() as usize);
    let value = |n: usize| match place["of"].as_str().unwrap() {
        "f64" => f64::from_le_bytes(bytes[at + 8 * n..][..8].try_into().unwrap()),
        "f32" => f64::from(f32::from_le_bytes(bytes[at + 4 * n..][..4].try_into().unwrap())),
        "u32" => f64::from(u32::from_le_bytes(bytes[at + 4 * n..][..4].try_into().unwrap())),
        _ => f64::from(bytes[at + n]),
    };
    (0..rows).map(value).collect()
}

/// Two frames over two paths; of the second, one chunk is lost, is sent again over the other path and comes too late.
fn both_ends() -> (Vec<Record>, Vec<Record>) {
    let (near, far) = (0xa, 0xb);
    let (slow, quick) = (PathId(0), PathId(1));
    let chunk = |path, tsn, frame: u64, sending| SctpEvent::ChunkSent {
        path,
        tsn,
        bytes: 1400,
        stream: 2,
        message: frame << 8 | 2,
        sending,
    };
    let frame = |frame, ms| MediaEvent::FrameCaptured {
        frame,
        kind: FrameKind::I,
        reference: true,
        bytes: 2800,
        parts: 1,
        captured: Instant::from_millis(ms),
        deadline: Some(Instant::from_millis(ms + 200)),
        pts: None,
    };
    let metrics = PathMetrics { cwnd: 12_000, srtt: Some(Duration::from_millis(40)), ..PathMetrics::default() };
    let sack = |path, cumulative| (path, cumulative, 0, 1 << 20);
    let (path, cumulative, gaps, window) = sack(quick, 102);
    let sender = vec![
        at(near, 1, SctpEvent::Opened { local_tag: near, peer_tag: far }),
        at(near, 1, SctpEvent::PathState { path: slow, state: PathCondition::Active }),
        at(near, 2, SctpEvent::PathMetrics { path: slow, metrics }),
        at(STREAM, 100, frame(0, 100)),
        at(near, 100, chunk(slow, u32::MAX, 0, Sending::New)),
        at(near, 100, chunk(quick, 0, 0, Sending::New)),
        at(STREAM, 200, frame(1, 200)),
        at(near, 200, chunk(quick, 1, 1, Sending::New)),
        at(near, 200, chunk(slow, 2, 1, Sending::New)),
        at(near, 390, SctpEvent::ChunkLost { path: Some(slow), tsn: 2, cause: Loss::Reported }),
        at(near, 391, chunk(quick, 2, 1, Sending::Again(Loss::Reported))),
        at(near, 450, SctpEvent::SackReceived { path, cumulative, gaps, window }),
        at(STREAM, 500, frame(2, 500)),
        at(
            near,
            600,
            SctpEvent::MessageAbandoned { message: 2 << 8 | 2, stream: 2, sent: false, why: Unsent::Expired },
        ),
    ];
    // The other end numbers the paths the other way round.
    let came = |path, tsn| SctpEvent::ChunkReceived { path, tsn, bytes: 1400, new: true };
    let whole = |frame, captured: u64, on_time| MediaEvent::FrameArrived {
        frame,
        kind: FrameKind::I,
        reference: true,
        bytes: 2800,
        path: PathId(0),
        captured: Instant::from_millis(captured + AHEAD),
        due: Instant::from_millis(captured + 200 + AHEAD),
        on_time,
        pts: None,
    };
    let receiver = vec![
        at(far, AHEAD + 1, SctpEvent::Opened { local_tag: far, peer_tag: near }),
        at(far, AHEAD + 120, came(PathId(0), 0)),
        at(far, AHEAD + 150, came(PathId(1), u32::MAX)),
        at(STREAM, AHEAD + 150, whole(0, 100, true)),
        at(far, AHEAD + 221, came(PathId(0), 1)),
        at(far, AHEAD + 411, came(PathId(0), 2)),
        at(STREAM, AHEAD + 411, whole(1, 200, false)),
        at(far, AHEAD + 430, SctpEvent::SackSent { path: PathId(0), cumulative, gaps, window }),
    ];
    (sender, receiver)
}

fn joined(receiver_first: bool) -> String {
    let (sender, receiver) = both_ends();
    let mut exchange = Exchange::default();
    let ends = [("send", &sender), ("receive", &receiver)];
    let order = if receiver_first { [1, 0] } else { [0, 1] };
    for (name, records) in order.map(|n| ends[n]) {
        let end = exchange.add_end(name);
        records.iter().for_each(|record| exchange.take(end, record));
    }
    page_of(exchange, "both")
}

#[test]
fn what_both_ends_tell_comes_together_whichever_comes_first() {
    for receiver_first in [false, true] {
        let page = joined(receiver_first);
        let [sent, arrived, path, outcome, what] =
            ["at", "arrived", "path", "outcome", "what"].map(|it| column(&page, &format!("sent.{it}")));
        // The five chunks, and the SACK by the sender's name of its path.
        assert_eq!(sent, [100.0, 100.0, 200.0, 200.0, 391.0, 430.0], "{receiver_first}");
        assert_eq!(path, [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(what, [0.0, 0.0, 0.0, 0.0, 1.0, 4.0]);
        assert_eq!(outcome, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0]);
        let ways: Vec<_> = arrived.iter().zip(&sent).map(|(arrived, sent)| arrived - sent).collect();
        assert!(ways[3].is_nan());
        assert_eq!([ways[0], ways[1], ways[2], ways[4], ways[5]], [50.0, 20.0, 21.0, 20.0, 20.0]);
        assert_eq!(column(&page, "sent.frame"), [0.0, 0.0, 1.0, 1.0, 1.0, f64::from(u32::MAX)]);
        // The third frame was abandoned before any of it was sent.
        assert_eq!(column(&page, "frame.outcome"), [1.0, 2.0, 3.0]);
        assert_eq!(column(&page, "frame.captured"), [100.0, 200.0, 500.0]);
        assert_eq!(column(&page, "frame.arrived")[..2], [150.0, 411.0]);
        assert_eq!(column(&page, "frame.given_up")[2], 600.0);
    }
}

#[test]
fn perfetto_gets_an_arrow_for_each_packet_that_came_and_a_bar_for_each_frame() {
    let (sender, receiver) = both_ends();
    let mut exchange = Exchange::default();
    for (name, records) in [("send", &sender), ("receive", &receiver)] {
        let end = exchange.add_end(name);
        records.iter().for_each(|record| exchange.take(end, record));
    }
    let mut text = Vec::new();
    exchange.perfetto("a \"test\"", &mut text).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|it| it["ph"] == phase).collect::<Vec<_>>();
    // Four chunks and a SACK came, one chunk was lost.
    assert_eq!((of("s").len(), of("f").len(), of("X").len()), (5, 5, 11));
    for arrow in of("s") {
        let end = of("f").into_iter().find(|it| it["id"] == arrow["id"]).unwrap();
        assert_ne!(arrow["pid"], end["pid"]);
        assert!(arrow["ts"].as_f64().unwrap() + 19_000.0 < end["ts"].as_f64().unwrap(), "{arrow} {end}");
    }
    assert_eq!(of("b").len(), 3);
    assert_eq!(of("b")[1]["name"], "frame 1 (I), late");
    assert_eq!(of("C")[0]["args"]["value"], 12_000.0);
    // Slices of a track do not overlap.
    let mut last = std::collections::HashMap::new();
    for slice in of("X") {
        let (from, until) =
            (slice["ts"].as_f64().unwrap(), slice["ts"].as_f64().unwrap() + slice["dur"].as_f64().unwrap());
        let before = last.insert((slice["pid"].as_u64(), slice["tid"].as_u64()), until);
        assert!(before.is_none_or(|before| before <= from), "{slice}");
    }
}

#[test]
fn one_end_alone_shows_what_it_knows() {
    let (sender, receiver) = both_ends();
    let alone = |records: &[Record]| {
        let mut exchange = Exchange::default();
        let end = exchange.add_end("one");
        records.iter().for_each(|record| exchange.take(end, record));
        page_of(exchange, "one")
    };
    let page = alone(&sender);
    assert_eq!(column(&page, "sent.outcome"), [0.0, 0.0, 0.0, 2.0, 0.0, 1.0]);
    assert_eq!(column(&page, "known.cwnd"), [12_000.0]);
    let page = alone(&receiver);
    assert_eq!(column(&page, "sent.arrived").len(), 5);
    assert_eq!(column(&page, "frame.outcome"), [1.0, 2.0]);
}

#[test]
fn nothing_in_a_trace_becomes_a_part_of_the_script() {
    let mut exchange = Exchange::default();
    let end = exchange.add_end("</script><script>alert(1)</script><!--");
    exchange.take(end, &at(1, 1, SctpEvent::Closed));
    let page = page_of(exchange, "<img src=x onerror=alert(2)>&");
    assert!(!page.contains("alert(1)</script>") && !page.contains("<img"));
    assert!(page.contains("&lt;img src=x onerror=alert(2)&gt;&amp;"));
    // Nothing is loaded from anywhere.
    let page = page.replace("img src=x", ""); // The title, which is text wherever it stands.
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains(" src="));
    assert!(page.contains("default-src 'none'"));
}
