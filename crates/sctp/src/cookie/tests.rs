use braidcast_core::Rng;
use core::net::IpAddr;
use proptest::{collection::vec, prelude::*};
use sha2::Digest;

use super::*;
use crate::api::Options;
use crate::wire::{
    Entries,
    Parameter::{ChunkList, ForwardTsnSupported, HmacAlgorithms, Random, SupportedExtensions},
};

fn cookie(created: Instant) -> Cookie {
    let mut rng = Rng::from_seed(5);
    Cookie {
        created,
        lifespan: Duration::from_secs(60),
        local_tag: 0x0102_0304,
        peer_tag: 0x1112_1314,
        local_initial_tsn: 7,
        peer_initial_tsn: u32::MAX,
        peer_a_rwnd: 1 << 20,
        outbound_streams: 64,
        inbound_streams: 10,
        local_port: 9899,
        peer_port: 5000,
        route: Route::new(SocketId(2), "192.0.2.1:9899".parse().expect("address")),
        local_tie_tag: 0,
        peer_tie_tag: 9,
        local_offer: Offer::of(&mut rng, &Options::default().with(|it| it.papers.nr_sack = true)),
        peer_offer: Offer::new(&mut rng, false, false),
        peer_addresses: Addresses::default(),
        bound: [0; 16],
    }
}

fn jar() -> CookieJar {
    CookieJar::new(Rng::from_seed(1).stream("cookie"))
}

fn issued(jar: &mut CookieJar, cookie: &Cookie) -> Vec<u8> {
    let mut bytes = Vec::new();
    jar.issue(cookie, &mut bytes);
    bytes
}

const START: Instant = Instant::from_millis(5_000_000);

#[test]
fn a_cookie_comes_back_as_it_was_and_stands_behind_what_was_in_the_buffer() {
    let (mut jar, cookie) = (jar(), cookie(START));
    let mut bytes = b"before".to_vec();
    jar.issue(&cookie, &mut bytes);
    assert_eq!(jar.open(&bytes[6..], START), Ok(cookie));
    assert!(bytes.len() - 6 <= 256, "{} bytes", bytes.len() - 6);
    let v6 = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 1, 0xfffff, 3));
    let peer_addresses = Addresses::new([IpAddr::from([192, 0, 2, 1]), IpAddr::from(Ipv6Addr::LOCALHOST)]);
    let (route, lifespan) = (Route::new(SocketId(0), v6), Duration::from_nanos(1));
    let cookie = Cookie { route, lifespan, peer_addresses, ..cookie };
    let bytes = issued(&mut jar, &cookie);
    assert_eq!(jar.open(&bytes, START), Ok(cookie));
}

#[test]
fn the_mac_is_hmac_sha_256_over_all_before_it() {
    let mut jar = jar();
    let bytes = issued(&mut jar, &cookie(START));
    let (signed, mac) = bytes.split_last_chunk::<32>().expect("long enough");
    let mut rng = Rng::from_seed(1).stream("cookie");
    let mut key = [0; 64];
    rng.fill(&mut key);
    // RFC 2104 §2, with a key of one block.
    let inner = Sha256::digest([&key.map(|b| b ^ 0x36), signed].concat());
    let expected = Sha256::digest([&key.map(|b| b ^ 0x5c)[..], &inner].concat());
    assert_eq!(mac[..], expected[..]);
}

#[test]
fn every_changed_bit_and_every_other_length_is_refused() {
    let mut jar = jar();
    let bytes = issued(&mut jar, &cookie(START));
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(jar.open(&changed, START), Err(CookieError::Forged), "bit {bit}");
    }
    for len in 0..bytes.len() {
        let expected = if len < 33 { CookieError::Malformed { given: len } } else { CookieError::Forged };
        assert_eq!(jar.open(&bytes[..len], START), Err(expected));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(jar.open(&longer, START), Err(CookieError::Forged));
    let given = CookieJar::MAX + 1;
    assert_eq!(jar.open(&vec![0; given], START), Err(CookieError::Malformed { given }));
}

#[test]
fn another_jar_knows_nothing() {
    let bytes = issued(&mut jar(), &cookie(START));
    assert_eq!(CookieJar::new(Rng::from_seed(2)).open(&bytes, START), Err(CookieError::Forged));
}

#[test]
fn a_cookie_past_its_lifespan_is_stale_and_says_by_how_much() {
    let (mut jar, cookie) = (jar(), cookie(START));
    let bytes = issued(&mut jar, &cookie);
    assert_eq!(jar.open(&bytes, START + cookie.lifespan), Ok(cookie));
    let by = Duration::from_millis(1500);
    let stale = CookieError::Stale { by, cookie: Box::new(cookie) };
    assert_eq!(jar.open(&bytes, START + cookie.lifespan + by), Err(stale));
    assert_eq!(jar.open(&bytes, Instant::ZERO), Ok(cookie), "a clock that went back harms nobody");
}

#[test]
fn a_secret_opens_for_one_rotation_after_its_last_cookie_and_no_longer() {
    let mut jar = jar();
    let rotation = CookieJar::ROTATION;
    let almost = START + rotation - Duration::from_nanos(1);
    let first = issued(&mut jar, &cookie(START));
    let last = cookie(almost);
    let last_bytes = issued(&mut jar, &last);
    assert_eq!(first[0], last_bytes[0], "same secret");
    let second = issued(&mut jar, &cookie(START + rotation));
    assert_ne!(second[0], first[0], "new secret");
    assert_eq!(jar.open(&last_bytes, START + rotation), Ok(last), "the previous secret still opens");
    assert!(jar.open(&second, START + rotation).is_ok());
    issued(&mut jar, &cookie(START + 2 * rotation));
    assert_eq!(jar.open(&last_bytes, almost), Err(CookieError::Forged), "two secrets ago");
    assert!(jar.open(&second, START + rotation).is_ok());
}

#[test]
fn after_a_long_pause_both_secrets_are_new() {
    let mut jar = jar();
    let old = issued(&mut jar, &cookie(START));
    issued(&mut jar, &cookie(START + 2 * CookieJar::ROTATION));
    assert_eq!(jar.open(&old, START), Err(CookieError::Forged));
}

proptest! {
    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..CookieJar::MAX + 8)) {
        prop_assert!(jar().open(&bytes, START).is_err());
        // As if the MAC were right.
        let _ = Cookie::parse(&bytes);
    }

    #[test]
    fn damaged_fields_do_no_harm(at in 0usize..200, value: u8) {
        let mut fields = Vec::new();
        cookie(START).emit(&mut fields);
        let at = at % fields.len();
        fields[at] = value;
        let _ = Cookie::parse(&fields);
    }

    #[test]
    fn every_cookie_fits_and_comes_back(
        numbers in any::<[u32; 7]>(), halves in any::<[u16; 5]>(), created: u64, lifespan: u64, remote: SocketAddr,
        kinds in vec(any::<u8>(), 0..=32), hmacs in vec(any::<u8>(), 0..=8), interleaving: bool,
    ) {
        let mut peer = Vec::new();
        let ids = hmacs.iter().flat_map(|&id| [0, id]).collect::<Vec<_>>();
        let hmacs = Entries::new(&ids);
        let extensions = SupportedExtensions(&[64, 0xc2, 0xc0, 15]);
        for parameter in [extensions, Random(&[3; 32]), ChunkList(&kinds), HmacAlgorithms(hmacs), ForwardTsnSupported] {
            parameter.emit(&mut Writer::new(&mut peer));
        }
        let [local_tag, peer_tag, local_initial_tsn, peer_initial_tsn, ..] = numbers;
        let [.., peer_a_rwnd, local_tie_tag, peer_tie_tag] = numbers;
        let [outbound_streams, inbound_streams, local_port, peer_port, socket] = halves;
        let cookie = Cookie {
            created: Instant::from_nanos(created),
            lifespan: Duration::from_nanos(lifespan),
            local_tag, peer_tag, local_initial_tsn, peer_initial_tsn, peer_a_rwnd, local_tie_tag, peer_tie_tag,
            outbound_streams, inbound_streams, local_port, peer_port,
            route: Route::new(SocketId(socket), remote),
            local_offer: Offer::new(&mut Rng::from_seed(created), interleaving, !interleaving),
            peer_offer: Offer::parse(Parameters::new(&peer)).expect("good offer"),
            peer_addresses: Addresses::new(core::iter::repeat_n(remote.ip(), usize::from(socket % 10))),
            bound: [0; 16],
        };
        let mut jar = jar();
        let bytes = issued(&mut jar, &cookie);
        prop_assert!(bytes.len() <= CookieJar::MAX);
        prop_assert_eq!(jar.open(&bytes, cookie.created), Ok(cookie));
    }
}
