use braidcast_core::Rng;
use proptest::{collection::vec, prelude::*};
use sha1::Digest;

use super::*;
use crate::wire::{
    Chunks, Entries, Header, Packet, Parameter, begin,
    chunk::kind::{ASCONF, AUTH, COOKIE_ACK, DATA, INIT},
};

/// The HMAC by the words of RFC 2104 §2, for a block of 64 bytes.
fn hmac<H: Digest>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > 64 { H::digest(key).to_vec() } else { key.to_vec() };
    block.resize(64, 0);
    let pad = |with: u8| block.iter().map(|b| b ^ with).collect::<Vec<_>>();
    let inner = H::digest([&pad(0x36), data].concat());
    H::digest([&pad(0x5c)[..], &inner].concat()).to_vec()
}

/// An offer of `number`, 32 times, of `chunks` and of `hmacs`.
fn offer(number: u8, chunks: Option<&[u8]>, hmacs: &[u8]) -> Offer {
    let mut buf = Vec::new();
    let number = [number; 32];
    let list = [Some(Parameter::Random(&number)), chunks.map(Parameter::ChunkList)];
    let hmacs = Some(Parameter::HmacAlgorithms(Entries::new(hmacs)));
    list.into_iter().chain([hmacs]).flatten().for_each(|parameter| parameter.emit(&mut Writer::new(&mut buf)));
    Offer::parse(Parameters::new(&buf)).expect("good offer")
}

const SHA1: &[u8] = &[0, 1];
const BOTH: &[u8] = &[0, 3, 0, 1];

/// Keys at both ends.
fn pair(a: &Offer, b: &Offer, key: &[u8]) -> (AuthKeys, AuthKeys) {
    (AuthKeys::new(a, b, key).expect("both authenticate"), AuthKeys::new(b, a, key).expect("both authenticate"))
}

/// A packet of COOKIE-ACK, AUTH and `following`, and where AUTH starts.
fn sealed(keys: &AuthKeys, following: &[u8]) -> (Vec<u8>, usize) {
    let mut buf = Vec::new();
    begin(&mut buf, Header { source_port: 1, destination_port: 2, verification_tag: 3 });
    buf.extend_from_slice(&[COOKIE_ACK, 0, 0, 4]);
    let at = keys.emit(&mut buf);
    assert_eq!(buf.len() - at, keys.overhead());
    buf.extend_from_slice(following);
    keys.seal(&mut buf[at..]);
    crate::wire::seal(&mut buf);
    (buf, at)
}

/// Finds the AUTH chunk in a packet, as a receiver does, and verifies it.
fn verify(keys: &AuthKeys, packet: &[u8]) -> Result<(), AuthError> {
    let chunks: Chunks<'_> = Packet::parse(packet).expect("sealed").chunks();
    let raw = chunks.map_while(Result::ok).find(|raw| raw.kind == AUTH).expect("AUTH");
    keys.verify(&Auth::parse(raw).expect("whole"), &packet[raw.offset..])
}

#[test]
fn the_hmac_of_these_tests_gives_the_values_of_rfc_2202_and_4231() {
    let hex = |digest: Vec<u8>| digest.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let (key, data) = (b"Jefe", b"what do ya want for nothing?");
    assert_eq!(hex(hmac::<Sha1>(key, data)), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    assert_eq!(hex(hmac::<Sha256>(key, data)), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[test]
fn the_key_is_put_together_as_rfc_4895_6_1_says() {
    let short = offer(0xee, None, SHA1);
    let long = offer(1, Some(&[ASCONF, 0x80, 9]), BOTH);
    let mut expected = b"secret".to_vec();
    // The shorter vector is the smaller number, though its random number is the larger.
    expected.extend_from_slice(&[0x80, 2, 0, 36]);
    expected.extend_from_slice(&[0xee; 32]);
    expected.extend_from_slice(&[0x80, 4, 0, 6, 0, 1]);
    expected.extend_from_slice(&[0x80, 2, 0, 36]);
    expected.extend_from_slice(&[1; 32]);
    expected.extend_from_slice(&[0x80, 3, 0, 7, 0xc1, 0x80, 9, 0x80, 4, 0, 8, 0, 3, 0, 1]);
    assert_eq!(association_key(&short, &long, b"secret"), expected);
    assert_eq!(association_key(&long, &short, b"secret"), expected);
    // Of equal length, the bytes decide.
    let (small, large) = (offer(1, None, SHA1), offer(2, None, SHA1));
    assert_eq!(association_key(&large, &small, b"")[4], 1);
    assert_eq!(association_key(&small, &large, b"")[4], 1);
}

#[test]
fn the_hmac_is_over_auth_with_zeros_and_all_that_follows_with_its_padding() {
    let following = [DATA, 3, 0, 5, 0xaa, 0, 0, 0, COOKIE_ACK, 0, 0, 4];
    for (hmacs, id, len) in [(SHA1, 1, 20), (BOTH, 3, 32), (&[0, 2, 0, 1], 1, 20)] {
        let (local, peer) = (offer(1, None, BOTH), offer(2, None, hmacs));
        let keys = AuthKeys::new(&local, &peer, b"key").expect("both authenticate");
        let (packet, at) = sealed(&keys, &following);
        let mut covered = vec![15, 0, 0, 8 + len, 0, 0, 0, id];
        covered.resize(8 + usize::from(len), 0);
        covered.extend_from_slice(&following);
        let key = association_key(&local, &peer, b"key");
        let expected = if id == 1 { hmac::<Sha1>(&key, &covered) } else { hmac::<Sha256>(&key, &covered) };
        assert_eq!(packet[at + 8..at + 8 + usize::from(len)], expected);
    }
}

#[test]
fn each_end_takes_what_the_other_sealed_by_the_first_hash_it_knows_of_the_others() {
    let (a, b) = (offer(1, None, SHA1), offer(2, None, BOTH));
    for key in [&b""[..], b"secret", &[7; 200]] {
        let (at_a, at_b) = pair(&a, &b, key);
        assert_eq!((at_a.sending, at_b.sending), (Algorithm::Sha256, Algorithm::Sha1));
        assert_eq!(verify(&at_b, &sealed(&at_a, &[COOKIE_ACK, 0, 0, 4]).0), Ok(()));
        assert_eq!(verify(&at_a, &sealed(&at_b, &[]).0), Ok(()));
    }
}

#[test]
fn another_secret_or_another_random_number_fails() {
    let (a, b) = (offer(1, None, BOTH), offer(2, None, BOTH));
    let (packet, _) = sealed(&AuthKeys::new(&a, &b, b"secret").expect("keys"), &[COOKIE_ACK, 0, 0, 4]);
    let others = [(&b, &a, &b"Secret"[..]), (&b, &a, b""), (&b, &offer(3, None, BOTH), b"secret")];
    for (local, peer, key) in others {
        let keys = AuthKeys::new(local, peer, key).expect("keys");
        assert_eq!(verify(&keys, &packet), Err(AuthError::Forged));
    }
}

#[test]
fn every_changed_bit_from_auth_on_is_noticed_and_none_before() {
    let (at_a, at_b) = pair(&offer(1, None, BOTH), &offer(2, None, BOTH), b"");
    let (packet, at) = sealed(&at_a, &[ASCONF, 0, 0, 13, 0, 0, 0, 1, 0, 5, 0, 8, 1, 0, 0, 0]);
    for bit in 0..packet.len() * 8 {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // Type and length of AUTH are for the framing to judge; here it stays where it was.
        let raw = Packet::parse(&packet).expect("sealed").chunks().flatten().find(|raw| raw.offset == at);
        let mut auth = Auth::parse(raw.expect("AUTH")).expect("whole");
        auth.key_id = u16::from_be_bytes([changed[at + 4], changed[at + 5]]);
        auth.hmac_id = u16::from_be_bytes([changed[at + 6], changed[at + 7]]);
        auth.hmac = &changed[at + 8..at + 40];
        assert_eq!(at_b.verify(&auth, &changed[at..]).is_err(), bit / 8 >= at, "bit {bit}");
    }
}

#[test]
fn keys_and_hashes_that_nobody_offered_are_told_apart_from_forgeries() {
    let (at_a, at_b) = pair(&offer(1, None, BOTH), &offer(2, None, SHA1), b"");
    let (packet, at) = sealed(&at_a, &[]);
    let chunks = &packet[at..];
    let check = |key_id, hmac_id, hmac| at_b.verify(&Auth { key_id, hmac_id, hmac }, chunks);
    let hmac = &chunks[8..];
    assert_eq!(check(0, 1, hmac), Ok(()));
    assert_eq!(check(1, 1, hmac), Err(AuthError::UnknownKey { key_id: 1 }));
    // SHA-256 is known here, but this end did not offer it.
    assert_eq!(check(0, 3, &[0; 32]), Err(AuthError::UnsupportedHmac { hmac_id: 3 }));
    assert_eq!(check(0, 2, hmac), Err(AuthError::UnsupportedHmac { hmac_id: 2 }));
    assert_eq!(check(0, 1, &hmac[..19]), Err(AuthError::Forged));
    assert_eq!(check(0, 1, &[]), Err(AuthError::Forged));
    for len in 0..chunks.len() {
        let auth = Auth { key_id: 0, hmac_id: 1, hmac };
        assert_eq!(at_b.verify(&auth, &chunks[..len]), Err(AuthError::Forged));
    }
}

#[test]
fn there_are_no_keys_unless_both_authenticate() {
    let (able, plain) = (Offer::new(&mut Rng::from_seed(1), true, false), Offer::default());
    assert!(AuthKeys::new(&able, &plain, b"").is_none());
    assert!(AuthKeys::new(&plain, &able, b"").is_none());
    assert!(AuthKeys::new(&able, &offer(1, None, &[0, 2]), b"").is_none(), "no hash in common");
}

#[test]
fn each_end_asks_for_its_own_chunk_types() {
    let (a, b) = (offer(1, Some(&[DATA, INIT]), BOTH), offer(2, Some(&[COOKIE_ACK]), BOTH));
    let (at_a, at_b) = pair(&a, &b, b"");
    for (kind, a_wants, b_wants) in
        [(DATA, true, false), (COOKIE_ACK, false, true), (ASCONF, true, true), (INIT, false, false)]
    {
        assert_eq!((at_a.requires(kind), at_a.peer_requires(kind)), (a_wants, b_wants));
        assert_eq!((at_b.requires(kind), at_b.peer_requires(kind)), (b_wants, a_wants));
    }
}

proptest! {
    #[test]
    fn both_ends_have_one_key_whatever_they_offer(
        numbers in any::<(u8, u8)>(),
        chunks in (prop::option::of(vec(any::<u8>(), 0..=32)), prop::option::of(vec(any::<u8>(), 0..=32))),
        extra in 0usize..7,
        key in vec(any::<u8>(), 0..80),
    ) {
        let hmacs = [SHA1, &[0, 9].repeat(extra)].concat();
        let a = offer(numbers.0, chunks.0.as_deref(), &hmacs);
        let b = offer(numbers.1, chunks.1.as_deref(), BOTH);
        prop_assert_eq!(association_key(&a, &b, &key), association_key(&b, &a, &key));
        let (at_a, at_b) = pair(&a, &b, &key);
        prop_assert_eq!(verify(&at_b, &sealed(&at_a, &key.repeat(4)).0), Ok(()));
    }

    #[test]
    fn no_auth_chunk_does_harm(
        bytes in vec(any::<u8>(), 0..80), key_id in 0u16..2, hmac_id in 0u16..5, at in 0usize..80,
    ) {
        let (keys, _) = pair(&offer(1, None, BOTH), &offer(2, None, BOTH), b"");
        let hmac = bytes.get(at..).unwrap_or_default();
        let auth = Auth { key_id, hmac_id, hmac };
        prop_assert!(keys.verify(&auth, &bytes).is_err());
    }
}
