//! A publisher of our own, as encoders speak, and what does not speak like one.

use braidcast_core::{Instant, Rng};
use braidcast_gateway::rtmp::amf::Value;
use braidcast_gateway::rtmp::{Codec, Connection, Content, Event, Remux, Tag, Wrong, is_path};

fn connection() -> Connection {
    Connection::new(Rng::from_seed(1))
}

fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

/// A message in chunks of 128 bytes, as every encoder begins.
fn message(kind: u8, time: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = [&[4][..], &time.to_be_bytes()[1..], &length[1..], &[kind, 1, 0, 0, 0]].concat();
    for (nth, piece) in payload.chunks(128).enumerate() {
        bytes.extend((nth > 0).then_some(0xc4));
        bytes.extend_from_slice(piece);
    }
    bytes
}

fn command(values: &[Value]) -> Vec<u8> {
    let mut payload = Vec::new();
    values.iter().for_each(|value| value.write(&mut payload));
    message(20, 0, &payload)
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// All up to the question if the stream may come.
fn opening(app: &str, key: &str) -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.extend([7; 1536]);
    bytes.extend([9; 1536]);
    let object = Value::Object(vec![("app".into(), text(app)), ("tcUrl".into(), text("rtmp://here/"))]);
    bytes.extend(command(&[text("connect"), Value::Number(1.0), object]));
    bytes.extend(command(&[text("releaseStream"), Value::Number(2.0), Value::Null, text(key)]));
    bytes.extend(command(&[text("createStream"), Value::Number(4.0), Value::Null]));
    bytes.extend(command(&[text("publish"), Value::Number(5.0), Value::Null, text(key), text("live")]));
    bytes
}

#[test]
fn an_encoder_is_led_to_its_stream_however_its_bytes_come() {
    for each in [1, 100, 10_000] {
        let mut connection = connection();
        let mut out = Vec::new();
        for piece in opening("live", "cam1?user=x").chunks(each) {
            connection.receive(piece);
            out.extend(connection.take_output());
        }
        assert_eq!(events(&mut connection), [Event::Asks("live/cam1".into())]);
        assert!(out[0] == 3 && out[1 + 1536..][..1536] == [7; 1536], "its own part comes back");
        let said = String::from_utf8_lossy(&out).into_owned();
        assert!(said.contains("NetConnection.Connect.Success") && said.matches("_result").count() == 3, "{said}");
        // Nothing before it is accepted.
        connection.receive(&message(9, 0, &[0x17, 1, 0, 0, 0, 5]));
        assert_eq!(events(&mut connection), []);
        connection.accept();
        assert!(String::from_utf8_lossy(&connection.take_output()).contains("NetStream.Publish.Start"));
        connection.receive(&message(9, 40, &[0x17, 1, 0, 0, 80, 5, 6]));
        let content = Content::Unit { bytes: vec![5, 6], key: true, offset: 80 };
        assert_eq!(events(&mut connection), [Event::Tag(Tag { codec: Codec::H264, time: 40, content })]);
        connection.receive(&command(&[text("deleteStream"), Value::Number(6.0), Value::Null, Value::Number(1.0)]));
        assert_eq!(events(&mut connection), [Event::Ended]);
    }
}

#[test]
fn what_does_not_speak_like_an_encoder_is_given_up_with_a_word() {
    let failed = |bytes: &[u8]| {
        let mut connection = connection();
        connection.receive(bytes);
        match events(&mut connection).pop() {
            Some(Event::Failed(wrong)) => wrong.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let with = |after: &[u8]| [&opening("live", "cam1")[..], after].concat();
    assert!(failed(b"GET / HTTP/1.1\r\n").contains("does not speak RTMP"));
    assert!(failed(&with(&[4, 0, 0, 0, 0xff, 0xff, 0xff, 9, 1, 0, 0, 0])).contains("longer than 8 MiB"));
    assert!(failed(&with(&command(&[text("play"), Value::Number(9.0), Value::Null, text("x")]))).contains("play"));
    let bomb: Vec<u8> = (0..10_000).flat_map(|_| [3, 0, 1, b'a']).collect();
    assert!(failed(&with(&message(20, 0, &bomb))).contains("too many values"));
    assert!(failed(&with(&message(20, 0, &vec![5; 70_000]))).contains("too long"));
    let many: Vec<u8> = (0..40).flat_map(|_| command(&[text("_checkbw"), Value::Number(0.0)])).collect();
    assert!(failed(&with(&many)).contains("too many commands"));
    let mut refused = connection();
    refused.receive(&opening("live", "other"));
    refused.refuse("it is not expected");
    assert!(events(&mut refused).contains(&Event::Failed(Wrong::Refused)));
    assert!(String::from_utf8_lossy(&refused.take_output()).contains("NetStream.Publish.BadName"));
    let mut rng = Rng::from_seed(1);
    assert!(is_path("live/a", "live/a", &mut rng) && !is_path("live/a", "live/b", &mut rng));
}

#[test]
fn pieces_become_packets_whose_counters_and_clock_go_on_over_connections() {
    let mut remux = Remux::new();
    let mut out = Vec::new();
    let avc = vec![1, 0x64, 0, 30, 0xff, 0xe1, 0, 3, 0x67, 1, 2, 1, 0, 2, 0x68, 3];
    let push = |remux: &mut Remux, now: u64, codec, time, content, out: &mut Vec<u8>| {
        remux.push(Instant::from_millis(now), &Tag { codec, time, content }, out);
    };
    let frame = |key| Content::Unit { bytes: [&[0, 0, 4, 0][..], &[0x41; 1024]].concat(), key, offset: 40 };
    for (now, first) in [(0, 5000), (10_000, 77)] {
        remux.restart();
        push(&mut remux, now, Codec::H264, first, Content::Config(avc.clone()), &mut out);
        push(&mut remux, now, Codec::Aac, first, Content::Config(vec![0x11, 0x90]), &mut out);
        for n in 0..50 {
            push(&mut remux, now + u64::from(n) * 40, Codec::H264, first + n * 40, frame(n == 0), &mut out);
            let sound = Content::Unit { bytes: vec![n as u8; 170], key: false, offset: 0 };
            push(&mut remux, now + u64::from(n) * 40, Codec::Aac, first + n * 40, sound, &mut out);
        }
    }
    let counts = remux.counts();
    assert_eq!((counts.video, counts.audio, counts.unusable, counts.foreign), (100, 100, 0, 0));
    let (packets, rest) = out.as_chunks::<188>();
    assert!(rest.is_empty() && packets.iter().all(|packet| packet[0] == 0x47));
    let mut counters = std::collections::BTreeMap::new();
    let mut clocks = Vec::new();
    for packet in packets {
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let counter = packet[3] & 0x0f;
        if let Some(before) = counters.insert(pid, counter) {
            assert_eq!(counter, (before + 1) & 0x0f, "pid {pid}");
        }
        if packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0 {
            let base = u64::from_be_bytes([0, 0, 0, packet[6], packet[7], packet[8], packet[9], packet[10]]) >> 7;
            clocks.push((base, packet[5] & 0x80 != 0));
        }
    }
    assert_eq!(counters.into_keys().collect::<Vec<_>>(), [0, 0x100, 0x101, 0x1000]);
    assert!(clocks.windows(2).all(|pair| pair[0].0 < pair[1].0), "{clocks:?}");
    assert_eq!(clocks.iter().filter(|(_, jumps)| *jumps).count(), 2);
    assert_eq!(clocks[50].0 - clocks[0].0, 10 * 90_000);
}
