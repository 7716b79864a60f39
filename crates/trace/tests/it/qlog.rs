//! Every event is written as the schema says and read as it was written; bad input is refused with its place.

use braidcast_core::events::{
    DccpEvent, DccpMetrics, FrameKind, Loss, MediaEvent, PacketContent, PathCondition, PathMetrics, Purpose, Reduction,
    SctpEvent, Sending, TraceEvent, Unsent,
};
use braidcast_core::{Instant, PathId, Route, SocketId};
use braidcast_trace::{QlogHeader, QlogReader, QlogWriter, Record};
use core::time::Duration;
use serde_json::Value;
use std::collections::BTreeSet;

const SCHEMA: &str = include_str!("../../../../docs/trace.schema.json");

fn sctp() -> Vec<SctpEvent> {
    use SctpEvent as E;
    let (path, tsn, first, count, gaps, window) = (PathId(3), u32::MAX, 7, 200, 12, 1 << 20);
    let (message, stream, cumulative) = (77 * 256 + 2, 5, 9);
    let route = Route::new(SocketId(1), "[2001:db8::1]:9000".parse().unwrap());
    let ms = Duration::from_millis;
    let known = PathMetrics {
        cwnd: 20_000,
        ssthresh: Some(10_000),
        in_flight: 4200,
        srtt: Some(Duration::from_nanos(12_345_678)),
        min_rtt: Some(ms(11)),
        rto: ms(200),
        queued: ms(1),
        mtu: 1452,
    };
    let unknown = PathMetrics { ssthresh: None, srtt: None, min_rtt: None, ..known };
    let deadline = Some(Instant::from_nanos(987_654_321_012));
    let mut all = vec![
        E::Opened { local_tag: 1, peer_tag: 0xffff_ffff },
        E::Closed,
        E::PathAdded { path, route },
        E::PathRemoved { path },
        E::PathMetrics { path, metrics: known },
        E::PathMetrics { path, metrics: unknown },
        E::PacketReceived { path, bytes: 1400, marked: true },
        E::MessageQueued { message, stream, bytes: 100_000, deadline },
        E::MessageQueued { message: u64::MAX, stream, bytes: 1, deadline: None },
        E::ChunkAcked { path: None, tsn, spurious: true },
        E::ChunkAcked { path: Some(path), tsn, spurious: false },
        E::ChunkReceived { path, tsn, bytes: u16::MAX, new: true },
        E::ChunkRecovered { path, tsn },
        E::RedundancySent { path, first, count, bytes: 1300 },
        E::RedundancyReceived { path, first, count },
        E::SackSent { path, cumulative, gaps, window },
        E::SackReceived { path, cumulative, gaps, window },
        E::ForwardSent { path, tsn },
        E::ForwardReceived { path, tsn },
    ];
    use PathCondition::{Active, Inactive, PotentiallyFailed, Unconfirmed};
    all.extend([Active, Inactive, PotentiallyFailed, Unconfirmed].map(|state| E::PathState { path, state }));
    all.extend([Reduction::Loss, Reduction::Mark, Reduction::Timeout].map(|cause| E::WindowReduced { path, cause }));
    use Purpose::{Announcement, Control, Copy, Handshake, New, Redundancy, Repeat, Sack};
    all.extend([New, Sack, Repeat, Copy, Redundancy, Control, Announcement, Handshake].map(|purpose| {
        let content = PacketContent { purpose, sack: true, redundancy: false };
        E::PacketSent { path, bytes: 1428, content }
    }));
    for cause in [Loss::Reported, Loss::Timeout, Loss::Silence] {
        all.push(E::ChunkLost { path: Some(path), tsn, cause });
        all.push(E::ChunkSent { path, tsn, bytes: 1400, stream, message, sending: Sending::Again(cause) });
    }
    all.extend([Sending::New, Sending::Copy].map(|sending| E::ChunkSent {
        path,
        tsn,
        bytes: 1,
        stream,
        message,
        sending,
    }));
    all.extend(reasons().map(|why| E::MessageAbandoned { message, stream, sent: false, why }));
    all
}

fn reasons() -> [Unsent; 4] {
    [Unsent::Expired, Unsent::Replaced, Unsent::NoRoom, Unsent::NotWorthIt]
}

fn dccp() -> Vec<DccpEvent> {
    let route = Route::new(SocketId(0), "10.0.0.1:0".parse().unwrap());
    let metrics = DccpMetrics {
        allowed_rate: Some(123_456.789),
        recv_rate: Some(1e9),
        loss_event_rate: Some(0.012_345_678_9),
        srtt: Some(Duration::from_micros(1)),
        queued: 7,
        fair_rate: Some(5e5),
        segment: Some(1200.5),
        rto: Some(Duration::from_millis(200)),
        ack_ratio: Some(2),
        ..DccpMetrics::default()
    };
    let window = DccpMetrics {
        cwnd: Some(9),
        pipe: Some(3),
        timeouts: 2,
        lost: 5,
        acked: 8,
        marked: 1,
        loss_events: 4,
        ssthresh: Some(6),
        ..metrics
    };
    let mut all = vec![
        DccpEvent::Opened { route, ccid: 248 },
        DccpEvent::Closed,
        DccpEvent::Metrics(metrics),
        DccpEvent::Metrics(window),
        DccpEvent::Metrics(DccpMetrics::default()),
    ];
    for kind in 0..10 {
        all.push(DccpEvent::PacketSent { seq: (1 << 48) - 1, kind, ack: Some(5), bytes: 1400 });
        all.push(DccpEvent::PacketReceived { seq: 1, kind, ack: None, bytes: 0 });
    }
    all.extend(reasons().map(|why| DccpEvent::MessageDiscarded { message: Some(5), why }));
    all
}

fn media() -> Vec<MediaEvent> {
    let (captured, due) = (Instant::from_nanos(1), Instant::from_millis(500));
    let each = |kind| {
        let (frame, reference, bytes, pts) = (u32::MAX, true, 54_321, Some(1 << 33));
        [
            MediaEvent::FrameCaptured { frame, kind, reference, bytes, parts: 2, captured, deadline: Some(due), pts },
            MediaEvent::FrameCaptured { frame, kind, reference, bytes, parts: 1, captured, deadline: None, pts: None },
            MediaEvent::FrameUnsent { frame, kind },
            MediaEvent::FrameArrived {
                frame,
                kind,
                reference,
                bytes,
                path: PathId(0),
                captured,
                due,
                on_time: true,
                pts,
            },
        ]
    };
    FrameKind::ALL.into_iter().flat_map(each).collect()
}

fn all() -> Vec<TraceEvent> {
    let (sctp, dccp, media) = (sctp().into_iter(), dccp().into_iter(), media().into_iter());
    sctp.map(TraceEvent::from).chain(dccp.map(TraceEvent::from)).chain(media.map(TraceEvent::from)).collect()
}

fn written(events: &[TraceEvent]) -> Vec<u8> {
    let header =
        QlogHeader { title: "a \"test\" \u{1}", vantage: "here", wall_clock: "2026-11-22T12:00:00Z", simulated: false };
    let mut writer = QlogWriter::new(Vec::new(), &header).unwrap();
    for (n, event) in events.iter().enumerate() {
        writer.event(Instant::from_nanos(1_000_001 * n as u64), n as u32, event).unwrap();
    }
    writer.into_inner()
}

#[test]
fn every_event_is_read_as_it_was_written() {
    let events = all();
    let text = written(&events);
    let mut reader = QlogReader::new(text.as_slice()).unwrap();
    assert_eq!((reader.title(), reader.vantage()), ("a \"test\" \u{1}", "here"));
    assert_eq!(reader.wall_clock(), Some("2026-11-22T12:00:00Z"));
    for (n, event) in events.into_iter().enumerate() {
        let at = Instant::from_nanos(1_000_001 * n as u64);
        assert_eq!(reader.next_record().unwrap(), Some(Record { at, connection: n as u32, event }));
    }
    assert_eq!(reader.next_record().unwrap(), None);
    assert!(!reader.is_cut_off() && reader.unknown() == 0);
}

/// Returns `true` if `value` is as `schema` has it, by as much of JSON Schema as ours uses.
fn check(value: &Value, schema: &Value, place: &str) {
    for key in schema.as_object().unwrap().keys() {
        let known = ["type", "description", "properties", "required", "additionalProperties"].contains(&key.as_str())
            || ["enum", "minimum", "maximum", "pattern"].contains(&key.as_str());
        assert!(known, "{place}: this test knows no `{key}`");
    }
    let fits = match schema["type"].as_str().unwrap() {
        "object" => value.is_object(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        other => panic!("{place}: type {other}"),
    };
    assert!(fits, "{place}: {value}");
    let most = schema["maximum"].as_f64().unwrap_or(f64::INFINITY);
    assert!(value.as_f64().is_none_or(|it| (0.0..=most).contains(&it)), "{place}: {value}");
    assert!(schema["enum"].as_array().is_none_or(|words| words.contains(value)), "{place}: {value}");
    if schema["pattern"] == "^[0-9a-f]{8}$" {
        let text = value.as_str().unwrap();
        assert!(text.len() == 8 && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it)));
    }
    let Some(members) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(members.contains_key(required.as_str().unwrap()), "{place} lacks {required}");
    }
    if let Some(properties) = schema["properties"].as_object() {
        for (key, value) in members {
            let of = properties.get(key).unwrap_or_else(|| panic!("{place}: `{key}` is not in the schema"));
            check(value, of, &format!("{place}.{key}"));
        }
    }
}

#[test]
fn every_event_is_as_the_schema_says_and_the_schema_has_no_others() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let text = written(&all());
    let mut seen = BTreeSet::new();
    let mut top = schema.clone();
    ["$schema", "title", "allOf", "$defs"].iter().for_each(|key| _ = top.as_object_mut().unwrap().remove(*key));
    for record in text.split(|&byte| byte == b'\n').filter(|it| !it.is_empty()).skip(1) {
        let event: Value = serde_json::from_slice(record.strip_prefix(&[0x1e]).unwrap()).unwrap();
        let name = event["name"].as_str().unwrap();
        let mut general = event.clone();
        general["path"] = Value::from("0"); // A pattern that `check` does not know.
        let mut known = top.clone();
        known["properties"]["path"] = serde_json::json!({ "type": "string" });
        check(&general, &known, name);
        check(&event["data"], &schema["$defs"][name], name);
        let rules = schema["allOf"].as_array().unwrap();
        let rule = rules.iter().find(|it| it["if"]["properties"]["name"]["const"] == name).unwrap();
        assert_eq!(rule["then"]["properties"]["data"]["$ref"], format!("#/$defs/{name}"));
        assert!(rule["then"].get("required").is_none() || event.get("path").is_some(), "{name} has no path");
        seen.insert(name.to_owned());
    }
    let described: BTreeSet<_> = schema["$defs"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(seen, described);
}

fn refused(text: &[u8]) -> String {
    let mut reader = match QlogReader::new(text) {
        Ok(reader) => reader,
        Err(error) => return error.to_string(),
    };
    loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => return format!("fine, {} unknown, cut off: {}", reader.unknown(), reader.is_cut_off()),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let good = written(&[SctpEvent::Closed.into()]);
    let with = |more: &str| refused(&[&good, more.as_bytes()].concat());
    assert_eq!(refused(b""), "it is not a trace: it is empty");
    assert_eq!(refused(b"\x7fELF\0\0"), "it is not a trace: its first record is not the header of a qlog file");
    assert_eq!(refused(&vec![b'x'; 1 << 20]), "it is not a trace: its first line is too long for a header");
    assert_eq!(refused(&good[..good.len() - 9]), "fine, 0 unknown, cut off: true");
    assert_eq!(
        with("\u{1e}{\"time\":1,\"name\":\"quic:packet_lost\",\"data\":{\"x\":[1]}}\n"),
        "fine, 1 unknown, cut off: false"
    );
    for (record, told) in [
        ("{\"time\":-1,\"name\":\"sctp:association_closed\"}", "line 3: -1.0 ms is not a time of a trace"),
        ("{\"time\":1e300,\"name\":\"sctp:association_closed\"}", "line 3: 1e300 ms is not a time of a trace"),
        ("{\"time\":1,\"name\":\"sctp:path_removed\"}", "line 3: the event names no path"),
        (
            "{\"time\":1,\"name\":\"sctp:path_removed\",\"path\":\"70000\"}",
            "line 3: the path is not a number below 65,536",
        ),
        (
            "{\"time\":1,\"name\":\"sctp:path_state\",\"path\":\"0\",\"data\":{\"state\":\"<b>\"}}",
            "line 3: `<b>` means nothing here",
        ),
        ("{\"time\":1,\"name\":\"x:y\",\"group_id\":\"zz\"}", "line 3: `zz` is not the number of a connection"),
    ] {
        assert_eq!(with(&format!("\u{1e}{record}\n")), told);
    }
    assert!(with("\u{1e}{\"time\":1,\n").starts_with("line 3: "));
    assert!(with(&format!("\u{1e}{}\n", "[".repeat(60_000))).starts_with("line 3: "));
    assert_eq!(with(&"y".repeat(100_000)), "line 3: it has more than 65536 bytes, as no event has");
}
