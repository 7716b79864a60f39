//! A session of libsrt with itself, recorded: `srt-live-transmit` 1.5.1, passphrase `correct horse`, a transport packet
//! of 0x47 and 187 zeros.

use super::cipher::Cipher;
use super::secret::{KeyLength, Passphrase};
use super::wire::{Ack, Control, ControlKind, Extension, ExtensionKind, Handshake, HandshakeType, Hello, HelloFlags};
use super::wire::{KeyMaterial, KeySlot, MAGIC, Packet, Rate, WhichKeys};
use braidcast_core::Rng;

const INDUCTION: &str = concat!(
    "80000000000000000000008e0000000000000004000000021801ab2f000005dc00002000000000011105baa700000000",
    "0100007f000000000000000000000000",
);
const COOKIE: &str = concat!(
    "8000000000000000003d93561105baa70000000500024a171801ab2f000005dc00002000000000011105baa77ba7df16",
    "0100007f000000000000000000000000",
);
const CONCLUSION: &str = concat!(
    "80000000000000000000306a0000000000000005000200071801ab2f000005dc00002000ffffffff1105baa77ba7df16",
    "0100007f0000000000000000000000000001000300010501000000bf00c800c8000500053a3a212361633d726d2c316d",
    "6275703d6873696c0003000e1220290100000000020002000000040435108328d17334be70b59223e2f8661f12dadd16",
    "b029b97e8fd960eca564fc8dccfd5e887bee501b",
);
const ANSWER: &str = concat!(
    "80000000000000000000040d1105baa700000005000200031801ab2f000005dc00002000ffffffff1e3f48187ba7df16",
    "0100007f0000000000000000000000000002000300010501000000bf00c800c80004000e122029010000000002000200",
    "0000040435108328d17334be70b59223e2f8661f12dadd16b029b97e8fd960eca564fc8dccfd5e887bee501b",
);
const DATA: &str = concat!(
    "1801ab2fc80000010098903a1e3f4818573a952e5925d5aeb6203f238a95b47f16fc73cdac4e9ce14431dbeaaee0d814",
    "5d507dc1d62c9802258becdb0236ea59c6bca00abb756095b9897256075c1904c6549fe9cb8869f2a48052c020c27fc8",
    "6c8b741f29a4a52483c9b46e7d4af06bd9e1cfb28876b85a02e53380ba111ca5e4f3e889f978d0f213656dfde0ee3d81",
    "9b7c09e927d94397d1aabf50e889b57557ff66873bf4adfa72efb8902419d1206f3bb82af33a65cbf0595af1a13e9851",
    "1283b2c1fcf0c710671f0738",
);
const ACK: &str = "80020000000000010098a6181105baa71801ab31000186a00000c35000001ffd00000001000003e8000005dc";
const ACK_ACK: &str = "800600000000000100991b5f1e3f481800000000";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn control(hex: &str) -> (ControlKind, u32, Vec<u8>) {
    let bytes = bytes(hex);
    let Packet::Control(Control { kind, info, body, .. }) = Packet::parse(&bytes).unwrap() else { panic!("control") };
    (kind, info, body.to_vec())
}

fn handshake(hex: &str) -> Handshake {
    let (kind, _, body) = control(hex);
    assert_eq!(kind, ControlKind::Handshake);
    let handshake = Handshake::parse(&body).unwrap();
    let mut again = Vec::new();
    handshake.write(&mut again);
    assert_eq!(again, body, "written as it was read");
    handshake
}

#[test]
fn handshakes_read_as_libsrt_means_them() {
    let induction = handshake(INDUCTION);
    assert_eq!((induction.version, induction.flags, induction.kind), (4, 2, HandshakeType::Induction));
    assert_eq!(induction.address, Handshake::address_of("127.0.0.1".parse().unwrap()));
    let cookie = handshake(COOKIE);
    assert_eq!((cookie.version, cookie.encryption, cookie.flags), (5, 2, MAGIC));
    let conclusion = handshake(CONCLUSION);
    assert_eq!((conclusion.cookie, conclusion.flags, conclusion.kind), (cookie.cookie, 7, HandshakeType::Conclusion));
    assert_eq!(conclusion.extension(ExtensionKind::StreamId).map(Extension::to_text).unwrap(), "#!::r=cam1,m=publish");
    let answer = handshake(ANSWER);
    let hello = |handshake: &Handshake, kind| Hello::parse(&handshake.extension(kind).unwrap().content).unwrap();
    for hello in [hello(&conclusion, ExtensionKind::Request), hello(&answer, ExtensionKind::Response)] {
        assert_eq!(
            (hello.version, hello.flags, hello.receive_latency, hello.send_latency),
            (0x01_05_01, HelloFlags(0xbf), 200, 200)
        );
    }
    let keys = |handshake: &Handshake, kind| handshake.extension(kind).unwrap().content.clone();
    assert_eq!(keys(&conclusion, ExtensionKind::KeyRequest), keys(&answer, ExtensionKind::KeyResponse));
}

#[test]
fn its_keys_decrypt_its_data() {
    let conclusion = handshake(CONCLUSION);
    let material = KeyMaterial::parse(&conclusion.extension(ExtensionKind::KeyRequest).unwrap().content).unwrap();
    assert_eq!((material.which, material.key_len), (WhichKeys::Even, 16));
    let passphrase = Passphrase::new("correct horse".into()).unwrap();
    let cipher = Cipher::of_listener(&passphrase, &material, 1 << 24, &mut Rng::from_seed(1)).unwrap();
    assert_eq!(cipher.length, KeyLength::Aes128);
    let bytes = bytes(DATA);
    let Packet::Data(data) = Packet::parse(&bytes).unwrap() else { panic!("data") };
    assert_eq!((data.sequence, data.position, data.key, data.message), (0x1801_ab2f, 3, KeySlot::Even, 1));
    assert_eq!((data.in_order, data.repeated, data.to), (false, false, handshake(ANSWER).socket));
    let mut payload = data.payload.to_vec();
    assert!(cipher.open(data.key, data.sequence, &mut payload));
    assert!(payload.len() == 188 && payload[0] == 0x47 && payload[1..].iter().all(|byte| *byte == 0));
    let mut again = Vec::new();
    data.write(&mut again);
    assert_eq!(again, bytes);
}

#[test]
fn acknowledgements_read_as_libsrt_means_them() {
    let (kind, number, body) = control(ACK);
    let ack = Ack::parse(&body).unwrap();
    assert_eq!((kind, number, ack.next), (ControlKind::Ack, 1, 0x1801_ab31));
    // Nothing is measured yet: what §4.10 begins with.
    assert_eq!((ack.rtt, ack.room), (Some((100_000, 50_000)), Some(8189)));
    assert_eq!(ack.rate, Some(Rate { packets: 1, capacity: 1000, bytes: 1500 }));
    assert_eq!(control(ACK_ACK).0, ControlKind::AckAck);
    assert_eq!(control(ACK_ACK).1, 1);
}
