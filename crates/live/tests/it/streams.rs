//! What goes in comes out.

use crate::networks::{KEY, localhost, lossy, paths, wait_receiver, wait_sender};
use braidcast_live::{AccessUnit, Coding, MediaReceiver, MediaSender, ReceiverEvent, SenderEvent};
use std::time::Duration;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A slice of H.264 that `n` stands in.
fn slice(n: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1, if n.is_multiple_of(25) { 0x65 } else { 0x41 }, 0x9a];
    bytes.extend(n.to_be_bytes().map(|byte| byte | 0x80));
    bytes.resize(length, 0x5a);
    bytes
}

#[test]
fn access_units_arrive_over_two_lossy_networks_as_they_were_sent() {
    let receiver = MediaReceiver::builder().key(KEY).units().listen(&[localhost(); 2]).unwrap();
    let ways: Vec<_> = (1..).zip(receiver.local_addrs()).map(|(seed, at)| lossy(*at, seed)).collect();
    let builder = MediaSender::builder().key(KEY).name("door").latency(Duration::from_secs(4));
    let sender = builder.call(&ways).unwrap();
    let video = sender.add_track(Coding::H264).unwrap();
    let audio = sender.add_track(Coding::Opus { channels: 2 }).unwrap();
    wait_sender(&sender, |event| (*event == SenderEvent::Connected).then_some(()));
    const FRAMES: u64 = 50;
    let sending = sender.clone();
    let thread = std::thread::spawn(move || {
        for n in 0..FRAMES {
            let layer = if n % 25 == 0 { 0 } else { (n % 2) as u8 };
            // Up to more than one PES packet can say the length of.
            let length = 20 + (n as usize * 1777) % 8000 + if n == 25 { 70_000 } else { 0 };
            let frame = AccessUnit::new(video, ms(40 * n), slice(n, length)).with_key(n % 25 == 0).in_layer(layer);
            sending.send(frame).unwrap();
            sending.send(AccessUnit::new(audio, ms(40 * n), vec![n as u8; 160])).unwrap();
            assert!(sending.rate_report().unwrap().rate > 0.0);
            std::thread::sleep(ms(40));
        }
    });
    let (mut frames, mut packets) = (Vec::new(), Vec::new());
    let stream = wait_receiver(&receiver, |event| match event {
        ReceiverEvent::Connected { stream, name, key: Some(_) } if name == "door" => Some(*stream),
        _ => None,
    });
    while frames.len() + packets.len() < 2 * FRAMES as usize {
        let event = receiver.poll(Some(Duration::from_secs(30))).unwrap().expect("a unit lacks");
        if let ReceiverEvent::Unit { unit, .. } = event {
            if unit.track == video { &mut frames } else { &mut packets }.push(unit);
        }
    }
    thread.join().unwrap();
    for (n, frame) in (0..).zip(&frames) {
        let length = 20 + (n as usize * 1777) % 8000 + if n == 25 { 70_000 } else { 0 };
        assert!(frame.data.ends_with(&slice(n, length)) && frame.data.len() == length + 6 && frame.whole, "{n}");
        assert_eq!((frame.key, u64::from(frame.layer)), (n % 25 == 0, if n % 25 == 0 { 0 } else { n % 2 }));
        assert_eq!((frame.pts, frame.dts), (ms(1000 + 40 * n), None));
    }
    assert!((0..).zip(&packets).all(|(n, packet)| packet.data == vec![n; 160] && packet.track == audio));
    assert_eq!(receiver.latency(stream).unwrap(), Some(Duration::from_secs(4)));
    assert!(sender.finish(Duration::from_secs(30)).unwrap());
    let report = sender.report();
    let of = |kind: &str| report.kinds.iter().find(|it| it.kind == kind).map_or(0, |it| it.captured);
    assert_eq!((of("I"), of("audio"), report.paths.len()), (2, FRAMES, 2));
    wait_receiver(&receiver, |event| matches!(event, ReceiverEvent::Ended { complete: true, .. }).then_some(()));
}

#[test]
fn a_transport_stream_comes_out_byte_for_byte_whoever_calls() {
    let clip = std::fs::read("../media/tests/clips/h264.ts").unwrap();
    let sender = MediaSender::builder().key(KEY).latency(Duration::from_secs(5)).listen(&[localhost(); 2]).unwrap();
    let receiver = MediaReceiver::builder().key(KEY).call(&paths(sender.local_addrs())).unwrap();
    wait_sender(&sender, |event| (*event == SenderEvent::Connected).then_some(()));
    for piece in clip.chunks(1000) {
        sender.write(piece).unwrap();
    }
    let mut came = Vec::new();
    while came.len() < clip.len() {
        let event = receiver.poll(Some(Duration::from_secs(30))).unwrap().expect("bytes lack");
        if let ReceiverEvent::Bytes { data, .. } = event {
            came.extend(data);
        }
    }
    assert!(came == clip);
    assert!(sender.finish(Duration::from_secs(30)).unwrap());
}
