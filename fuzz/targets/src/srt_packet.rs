//! Any bytes as packets of SRT and SRTLA, and as what is inside them: what is read is written as it was.

use braidcast_gateway::srt::StreamId;
use braidcast_gateway::srt::wire::{Ack, Control, ControlKind, Handshake, Hello, KeyMaterial, LossList, Packet};
use braidcast_gateway::srtla;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut again = Vec::new();
    match Packet::parse(bytes) {
        Ok(Packet::Data(data)) => {
            data.write(&mut again);
            assert_eq!(again, bytes);
        }
        Ok(Packet::Control(Control { kind, info, timestamp, to, body })) => {
            Control { kind, info, timestamp, to, body }.write(&mut again);
            assert!(again.len() == bytes.len() && again[4..] == bytes[4..]);
            inside(kind, body);
        }
        Err(_) => {}
    }
    if let Some(packet) = srtla::Packet::parse(bytes) {
        again.clear();
        packet.write(&mut again);
        assert!(again.len() <= bytes.len());
        if let srtla::Packet::Ack(acknowledged) = packet {
            assert!(acknowledged.numbers().count() <= bytes.len() / 4);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let id = StreamId::parse(text);
        assert!(id.is(text) && id.text == text);
    }
}

fn inside(kind: ControlKind, body: &[u8]) {
    let mut again = Vec::new();
    match kind {
        ControlKind::Handshake => {
            let Ok(handshake) = Handshake::parse(body) else { return };
            handshake.write(&mut again);
            let read = Handshake::parse(&again).expect("what was written is read");
            assert!(read.extensions.len() <= handshake.extensions.len());
            for extension in &handshake.extensions {
                let _ = extension.to_text();
                let _ = Hello::parse(&extension.content);
                keys(&extension.content);
            }
        }
        ControlKind::Ack => {
            let Ok(ack) = Ack::parse(body) else { return };
            ack.write(&mut again);
            assert!(again.len() <= body.len() && Ack::parse(&again).is_ok_and(|it| it.next == ack.next));
        }
        ControlKind::Nak => assert!(LossList::new(body).count() <= body.len() / 4),
        ControlKind::User(_) => keys(body),
        _ => {}
    }
}

fn keys(bytes: &[u8]) {
    if let Ok(material) = KeyMaterial::parse(bytes) {
        assert_eq!(material.to_bytes().len(), bytes.len());
        assert_eq!(KeyMaterial::parse(&material.to_bytes()), Ok(material));
    }
}
