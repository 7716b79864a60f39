//! What is published to another end: our own, which takes what encoders publish.

use braidcast_core::{Instant, Rng};
use braidcast_gateway::rtmp::amf::Value;
use braidcast_gateway::rtmp::{Codec, Connection, Content, Event, Pack, Publisher, Remux, Reply, Tag};

fn publisher() -> Publisher {
    Publisher::new(Rng::from_seed(2), "live", "rtmp://there.example/live", "a-key")
}

/// Both ends talk until neither has anything to say. Returns the events of the one that is published to.
fn talk(publisher: &mut Publisher, connection: &mut Connection) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let (there, back) = (publisher.take_output(), connection.take_output());
        if there.is_empty() && back.is_empty() {
            return events;
        }
        // However they come.
        there.chunks(1000).for_each(|piece| connection.receive(piece));
        back.chunks(777).for_each(|piece| publisher.receive(piece));
        while let Some(event) = connection.poll_event() {
            if matches!(event, Event::Asks(_)) {
                connection.accept();
            }
            events.push(event);
        }
    }
}

/// Three groups of frames and their audio, as pieces that an encoder publishes.
fn pieces(codec: Codec) -> Vec<Tag> {
    let config = match codec {
        Codec::H264 => vec![1, 0x64, 0, 30, 0xff, 0xe1, 0, 4, 0x67, 0x64, 0, 30, 1, 0, 2, 0x68, 3],
        _ => {
            let sequence = [0x42, 1, 1, 1, 0x60, 0, 0, 3, 0, 0x90, 0, 0, 3, 0, 0, 3, 0, 93, 0xa0];
            let mut config = vec![1, 1, 0x60, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 93, 0xf0, 0, 0xfc, 0xfd, 0xf8, 0xf8];
            config.extend([0, 0, 0x0f, 3, 0xa0, 0, 1, 0, 3, 0x40, 1, 0xc, 0xa1, 0, 1, 0, sequence.len() as u8]);
            config.extend(sequence);
            config.extend([0xa2, 0, 1, 0, 3, 0x44, 1, 0xc1]);
            config
        }
    };
    let tag = |codec, time, content| Tag { codec, time, content };
    let mut all = vec![tag(codec, 0, Content::Config(config)), tag(Codec::Aac, 0, Content::Config(vec![0x11, 0x90]))];
    for n in 0..30_u32 {
        let key = n % 10 == 0;
        // Slices that say what they are: I and P.
        let first: &[u8] = match (codec, key) {
            (Codec::H264, true) => &[0x65, 0x88],
            (Codec::H264, false) => &[0x41, 0xc0],
            (_, true) => &[19 << 1, 1, 0x88],
            (_, false) => &[1 << 1, 1, 0xc0],
        };
        let frame = [first, &[0x80 | n as u8; 5000]].concat();
        let bytes = [&(frame.len() as u32).to_be_bytes()[..], &frame].concat();
        all.push(tag(codec, n * 40, Content::Unit { bytes, key, offset: 80 }));
        let sound = Content::Unit { bytes: vec![n as u8; 170], key: false, offset: 0 };
        all.push(tag(Codec::Aac, n * 40, sound));
    }
    all
}

#[test]
fn what_an_encoder_made_arrives_as_it_was_at_the_end_that_is_published_to() {
    for codec in [Codec::H264, Codec::H265] {
        let (mut remux, mut stream) = (Remux::new(), Vec::new());
        let all = pieces(codec);
        for piece in &all {
            remux.push(Instant::from_millis(u64::from(piece.time)), piece, &mut stream);
        }
        let mut pack = Pack::new();
        stream.chunks(1316).for_each(|bytes| pack.push(Instant::ZERO, bytes));
        let (mut publisher, mut connection) = (publisher(), Connection::new(Rng::from_seed(1)));
        assert_eq!(talk(&mut publisher, &mut connection), [Event::Asks("live/a-key".into())]);
        assert_eq!(publisher.poll_reply(), Some(Reply::Ready));
        while let Some(piece) = pack.poll() {
            publisher.send(&piece);
        }
        let events = talk(&mut publisher, &mut connection);
        let came = events.into_iter().map(|event| if let Event::Tag(tag) = event { tag } else { panic!("{event:?}") });
        let of = |wanted: Codec, tags: &mut dyn Iterator<Item = Tag>| {
            tags.filter(|tag| tag.codec == wanted).collect::<Vec<_>>()
        };
        let came: Vec<Tag> = came.collect();
        for wanted in [codec, Codec::Aac] {
            let (sent, came) = (of(wanted, &mut all.iter().cloned()), of(wanted, &mut came.iter().cloned()));
            let same = came.iter().zip(&sent).take_while(|(came, sent)| came == sent).count();
            assert!(same == came.len() && same + 1 >= sent.len(), "{wanted:?}: {same} of {}", sent.len());
        }
        publisher.finish();
        assert_eq!(talk(&mut publisher, &mut connection), [Event::Ended]);
    }
}

#[test]
fn a_stream_begins_with_what_needs_no_other_frame_and_again_after_a_part_was_lost() {
    let (mut remux, mut stream) = (Remux::new(), Vec::new());
    for piece in pieces(Codec::H264) {
        remux.push(Instant::from_millis(u64::from(piece.time)), &piece, &mut stream);
    }
    let keys = |lost: std::ops::Range<usize>| {
        let mut pack = Pack::new();
        let mut video = 0;
        for bytes in stream.chunks(188) {
            video += usize::from(bytes[1] & 0x1f == 1 && bytes[2] == 0);
            if !lost.contains(&video) {
                pack.push(Instant::ZERO, bytes);
            }
        }
        let tags = std::iter::from_fn(|| pack.poll()).filter(|it| it.video);
        let tags: Vec<Tag> = tags.filter_map(|it| Tag::parse(true, it.time, &it.payload)).collect();
        let is_key = |tag: &Tag| match tag.content {
            Content::Unit { key, .. } => {
                if key {
                    "I"
                } else {
                    "P"
                }
            }
            Content::Config(_) => "c",
        };
        (tags.iter().map(is_key).collect::<String>(), pack.counts().broken)
    };
    let whole = "cIPPPPPPPPPIPPPPPPPPPIPPPPPPPP";
    let (all, broken) = keys(0..0);
    assert!(all.starts_with(whole) && broken == 0, "{all} {broken}");
    // A frame is 28 packets of its PID. One of the first frame, and one of the fifth.
    let (from_second, _) = keys(5..6);
    assert!(from_second.starts_with("cIPPPPPPPPPIPPPPPPPP"), "{from_second}");
    let (gap, broken) = keys(120..121);
    assert!(gap.starts_with("cIPP") && gap.ends_with("PcIPPPPPPPPPIPPPPPPPPP"), "{gap}");
    assert!((5..=9).contains(&broken), "{broken}");
    let mut pack = Pack::new();
    pack.push(Instant::ZERO, &stream);
    pack.restart();
    assert_eq!(pack.poll(), None);
}

#[test]
fn what_the_other_end_has_against_it_is_told_by_its_word() {
    let (mut refused, mut connection) = (publisher(), Connection::new(Rng::from_seed(1)));
    loop {
        connection.receive(&refused.take_output());
        if connection.poll_event().is_some() {
            connection.refuse("no");
        }
        refused.receive(&connection.take_output());
        if let Some(reply) = refused.poll_reply() {
            break assert_eq!(reply, Reply::Refused("NetStream.Publish.BadName".into()));
        }
    }
    let mut web = publisher();
    web.receive(b"HTTP/1.1 400 Bad Request\r\n");
    assert!(
        matches!(web.poll_reply(), Some(Reply::Failed(wrong)) if wrong.to_string().contains("does not speak RTMP"))
    );
    let mut deep = publisher();
    deep.receive(&[&[3][..], &[0; 3072]].concat());
    let mut payload = Vec::new();
    let nested = (0..12).fold(Value::Null, |value, _| Value::Object(vec![("a".into(), value)]));
    [Value::Text("onStatus".into()), nested].iter().for_each(|it| it.write(&mut payload));
    let length = (payload.len() as u32).to_be_bytes();
    deep.receive(&[&[3, 0, 0, 0][..], &length[1..], &[20, 0, 0, 0, 0], &payload].concat());
    assert!(matches!(deep.poll_reply(), Some(Reply::Failed(_))));
}
