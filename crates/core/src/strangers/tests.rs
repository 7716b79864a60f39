use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

type Pool = Strangers<u32>;

/// Miri, a thousand times slower, has a pool of a sixteenth, and a sixteenth comes.
const SHARE: u32 = if cfg!(miri) { 16 } else { 1 };
const PLACES: usize = Pool::PLACES / SHARE as usize;

fn host(network: u32, host: u32) -> IpAddr {
    Ipv4Addr::from_bits(network << 8 | host).into()
}

/// What the pool says to one who asks, and has come of it then.
fn come(pool: &mut Pool, now: Instant, from: IpAddr, id: u32) -> Result<Option<u32>, NoRoom> {
    let room = pool.make_room(now, from);
    if let Ok(goes) = room {
        assert!(goes.is_none_or(|other| !pool.leave(other)), "it has left already");
        pool.enter(now, from, id);
    }
    room
}

#[test]
fn one_network_takes_no_place_from_another() {
    let (mut pool, at) = (Pool::bounded(PLACES, Pool::STAY), Instant::from_millis);
    for id in 0..5000 / SHARE {
        let _room = come(&mut pool, at(u64::from(id)), host(7, id % 250), id);
    }
    assert_eq!(pool.len(), PLACES);
    for id in 0..100 / SHARE {
        let room = come(&mut pool, at(5001), host(100 + id, 1), 10_000 + id);
        assert!(matches!(room, Ok(Some(other)) if other < 5000), "{room:?}");
    }
    // The crowd goes on asking, and gets only its own places.
    for id in 0..5000 / SHARE {
        let room = come(&mut pool, at(5002 + u64::from(id)), host(7, id % 250), 20_000 + id);
        assert!(!matches!(room, Ok(Some(10_000..=10_099))), "{room:?}");
    }
}

/// A flood from as many networks as it likes, and a sender that takes 4.8 s for its key handshake
/// and asks once a second until then.
#[test]
#[cfg_attr(miri, ignore = "a hundred thousand strangers take more than a quarter of an hour")]
fn who_is_far_away_gets_in_within_half_a_minute_whoever_else_comes() {
    for (networks, per_second) in [(1, 2000), (5, 1000), (250, 1000), (1_000_000, 1000)] {
        let mut pool = Pool::default();
        let (mut since, mut id, mut number) = (None, 1, 1_u32);
        let mut asked = 0;
        let proved = (0..30_000_u64).find(|&ms| {
            let now = Instant::from_millis(60_000 + ms);
            for _ in 0..per_second / 1000 {
                id += 1;
                number = number.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                let from = host(1000 + (number >> 8) % networks, number & 0xFF);
                if come(&mut pool, now, from, id) == Ok(Some(0)) {
                    since = None;
                }
            }
            // A sender repeats its COOKIE ECHO, and begins anew, several times a second.
            if since.is_none() && ms % 331 == 0 {
                asked += 1;
                if come(&mut pool, now, host(1, 1), 0).is_ok() {
                    since = Some(ms);
                }
            }
            since.is_some_and(|since| ms - since >= 4800)
        });
        assert!(proved.is_some(), "{networks} networks, {per_second} a second: asked {asked} times");
    }
}

proptest! {
    #[test]
    fn there_are_never_more_than_there_are_places_and_the_books_agree(
        steps in prop::collection::vec((0..40_u32, 0..3000 / SHARE, 0..4_u8), 0..4000 / SHARE as usize),
    ) {
        let mut pool = Pool::bounded(PLACES, Pool::STAY);
        let mut there = std::collections::BTreeMap::new();
        for (n, (network, id, what)) in steps.into_iter().enumerate() {
            let now = Instant::from_millis(n as u64 * 7);
            if what == 0 {
                prop_assert_eq!(pool.leave(id), there.remove(&id).is_some());
            } else if !there.contains_key(&id) {
                match come(&mut pool, now, host(network, id & 0xFF), id) {
                    Ok(None) => {}
                    Err(NoRoom) => continue,
                    Ok(Some(other)) => prop_assert!(there.remove(&other).is_some()),
                }
                there.insert(id, network);
            }
            prop_assert!(pool.len() <= PLACES);
            prop_assert_eq!(pool.len(), there.len());
            prop_assert_eq!(pool.crowds.iter().map(|(count, _)| count).sum::<usize>(), there.len());
        }
    }
}
