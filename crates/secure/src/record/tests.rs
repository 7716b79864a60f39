use super::{HEADER, OVERHEAD, Opener, Rejected, Sealer, candidates};
use crate::pure::Pure;
use crate::{Keys, Suite};
use proptest::prelude::*;

fn keys(suite: Suite) -> Keys {
    let key: Vec<u8> = (0..suite.key_len() as u8).collect();
    let number_key: Vec<u8> = key.iter().map(|byte| byte ^ 0xA5).collect();
    Keys::new(suite, &key, &number_key, *b"twelve bytes").expect("keys of the right length")
}

fn pair(suite: Suite, epoch: u64) -> (Sealer, Opener) {
    let keys = keys(suite);
    let sealer = Sealer::new(&Pure, &keys, epoch).expect("a suite that it has");
    (sealer, Opener::new(&Pure, &keys, epoch).expect("a suite that it has"))
}

fn sealed(sealer: &mut Sealer, text: &[u8]) -> Vec<u8> {
    let mut record = vec![0xEE; HEADER];
    record.extend_from_slice(text);
    sealer.seal(&mut record, 0).expect("keys that are not used up");
    assert_eq!(record.len(), text.len() + OVERHEAD);
    record
}

/// Sealed by Python's `cryptography` from the same keys: AES-GCM over header `2b 00 07`, the text
/// and its type 23, and the number exclusive-or AES-ECB of the first 16 bytes.
#[test]
fn a_record_is_to_the_byte_what_another_implementation_makes() {
    let (mut sealer, mut opener) = pair(Suite::Aes128Gcm, 3);
    for number in 0..7 {
        sealed(&mut sealer, &[number]);
    }
    let record = sealed(&mut sealer, b"a chunk of text!");
    assert_eq!(record, EXPECTED);
    let mut text = Vec::new();
    assert_eq!(opener.open(&record, &mut text), Ok(()));
    assert_eq!(text, b"a chunk of text!");
}

const EXPECTED: [u8; 36] = [
    0x2b, 0xc4, 0xd1, 0xd7, 0x7c, 0xfe, 0xc4, 0xa1, 0xbf, 0x5b, 0x3a, 0xcb, 0x45, 0x0b, 0xfc, 0x51, 0x48, 0x4a, 0xa2,
    0x14, 0xc0, 0x03, 0xe9, 0xeb, 0xbb, 0xdc, 0xc2, 0x80, 0xa7, 0xc9, 0xc0, 0x97, 0xdb, 0xcc, 0x63, 0x14,
];

#[test]
fn both_numbers_are_tried_and_no_others() {
    let tried = |next, wire| candidates(next, wire).collect::<Vec<_>>();
    assert_eq!(tried(0, 5), [5]);
    assert_eq!(tried(0, 65_535), [65_535], "nothing lies before 0");
    assert_eq!(tried(70_000, 70_000_u64 as u16), [70_000, 4_464], "the next first");
    assert_eq!(tried(70_000, 69_999_u64 as u16), [69_999, 135_535], "the one before first");
    assert_eq!(tried((1 << 48) - 1, 0), [(1 << 48) - (1 << 16)], "none beyond 48 bits");
}

#[test]
fn what_is_no_record_is_refused() {
    let (mut sealer, mut opener) = pair(Suite::Aes128Gcm, 4);
    let mut text = Vec::new();
    let record = sealed(&mut sealer, b"x");
    for len in 0..20 {
        assert_eq!(opener.open(&record[..len], &mut text), Err(Rejected::Malformed), "{len} bytes");
    }
    for flags in [0, 0x20, 0x24, 0x2C, 0x38, 0xFF] {
        let mut other = record.clone();
        other[0] = flags;
        assert_eq!(opener.open(&other, &mut text), Err(Rejected::Malformed), "flags {flags:02x}");
    }
    let (mut other_epoch, _) = pair(Suite::Aes128Gcm, 5);
    let other = sealed(&mut other_epoch, b"x");
    assert_eq!(opener.open(&other, &mut text), Err(Rejected::NoKeys { low_bits: 1 }));
    assert_eq!(opener.counts().forged, 0);
}

#[test]
fn a_silence_of_65_000_records_ends_nothing() {
    let (mut sealer, mut opener) = pair(Suite::ChaCha20Poly1305, 3);
    let mut text = Vec::new();
    assert_eq!(opener.open(&sealed(&mut sealer, b"first"), &mut text), Ok(()));
    let early = sealed(&mut sealer, b"late by 65,000");
    if cfg!(miri) {
        // It would seal for hours.
        sealer.next += 65_000;
    } else {
        (0..65_000).for_each(|_| _ = sealed(&mut sealer, b""));
    }
    assert_eq!(opener.open(&sealed(&mut sealer, b"again"), &mut text), Ok(()));
    assert_eq!(text, b"again");
    assert_eq!(opener.open(&early, &mut text), Ok(()));
    assert_eq!(text, b"late by 65,000");
    assert_eq!(opener.open(&early, &mut text), Err(Rejected::Replayed));
}

#[test]
fn a_forged_record_does_not_move_the_window() {
    let (mut sealer, mut opener) = pair(Suite::Aes128Gcm, 3);
    let mut text = Vec::new();
    let mut forged = sealed(&mut sealer, b"mine");
    let honest = forged.clone();
    *forged.last_mut().expect("a tag") ^= 1;
    for high in 0..=255 {
        forged[1] = high;
        assert_eq!(opener.open(&forged, &mut text), Err(Rejected::Forged));
        assert!(text.is_empty());
    }
    assert_eq!(opener.window.next(), 0);
    assert_eq!(opener.open(&honest, &mut text), Ok(()));
    assert_eq!(opener.counts().forged, 256);
}

#[test]
fn sealing_ends_at_the_cipher_s_limit() {
    let (mut sealer, _) = pair(Suite::Aes256Gcm, 3);
    sealer.next = Suite::Aes256Gcm.most_sealed() - 1;
    let mut buf = vec![0; HEADER];
    assert_eq!(sealer.seal(&mut buf, 0), Ok(()));
    buf.truncate(HEADER);
    assert_eq!(sealer.seal(&mut buf, 0), Err(super::Spent));
}

#[test]
fn padding_is_taken_off_and_other_kinds_are_refused() {
    let (sealer, mut opener) = pair(Suite::Aes128Gcm, 3);
    let mut raw = |number: u64, inner: &[u8]| {
        let mut text = inner.to_vec();
        let header = [super::FLAGS | 3, 0, number as u8];
        let tag = sealer.cipher.seal(&super::nonce(&sealer.iv, number), &header, &mut text).expect("a short text");
        text.extend_from_slice(&tag);
        let [a, b] = sealer.cipher.mask(text.first_chunk().expect("16 bytes"));
        let record = [&[header[0], a, header[2] ^ b], &text[..]].concat();
        let mut out = Vec::new();
        opener.open(&record, &mut out).map(|()| out)
    };
    assert_eq!(raw(0, b"text\x17\0\0\0"), Ok(b"text".to_vec()));
    assert_eq!(raw(1, b"text\x16"), Err(Rejected::Kind));
    assert_eq!(raw(2, &[0; 9]), Err(Rejected::Kind));
}

/// Records; Miri takes a thousand times as long.
const RECORDS: usize = if cfg!(miri) { 20 } else { 300 };

proptest! {
    /// Records that are reordered, lost, doubled and changed, from a number near the wire's wrap:
    /// each comes out once, unchanged, or not at all; and what was not changed and is not too late
    /// does come out.
    #[test]
    fn each_record_comes_out_once_and_as_it_was(
        suite in proptest::sample::select(&Suite::ALL[..]),
        start in prop_oneof![Just(0), 65_400u64..65_600, (1u64 << 24) - 100..(1 << 24) + 100],
        order in proptest::collection::vec((0..RECORDS, proptest::option::weighted(0.2, (0usize..400, 0u32..8))), 1..RECORDS),
    ) {
        let (mut sealer, mut opener) = pair(suite, 3);
        sealer.next = start;
        if start > 0 {
            opener.window.accept(start - 1);
        }
        let records: Vec<Vec<u8>> = (0..RECORDS as u16).map(|at| sealed(&mut sealer, &at.to_be_bytes())).collect();
        let mut out = std::collections::BTreeSet::new();
        let mut text = Vec::new();
        for (at, change) in order {
            let mut record = records[at].clone();
            if let Some((place, bit)) = change {
                let place = place % record.len();
                record[place] ^= 1 << bit;
            }
            let result = opener.open(&record, &mut text);
            if change.is_some() {
                prop_assert!(result.is_err(), "a changed record was taken");
                prop_assert!(text.is_empty());
            } else if out.insert(at) {
                prop_assert_eq!(result, Ok(()));
                prop_assert_eq!(&text[..], &(at as u16).to_be_bytes()[..]);
            } else {
                prop_assert_eq!(result, Err(Rejected::Replayed));
            }
        }
    }
}
