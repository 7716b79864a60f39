use super::*;
use braidcast_core::Rng;
use proptest::prelude::*;

const PAUSE: Duration = Duration::from_millis(200);
/// Miri, a thousand times slower, has a tenth of messages and fragments.
const SHARE: usize = if cfg!(miri) { 10 } else { 1 };

/// What one end has to send now.
fn fragments(now: Instant, from: &mut Courier, room: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut buf = Vec::new();
    while from.poll(now, room, &mut buf) {
        assert!(buf.len() <= room);
        all.push(std::mem::take(&mut buf));
    }
    all
}

fn messages(of: &mut Courier) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| of.next_message().unwrap()).collect()
}

#[test]
fn a_message_goes_over_once_and_is_acknowledged() {
    let now = Instant::ZERO;
    let (mut a, mut b) = (Courier::new(PAUSE), Courier::new(PAUSE));
    a.push(&[7; 2000]).unwrap();
    for fragment in fragments(now, &mut a, 800) {
        b.handle(now, &fragment).unwrap();
    }
    assert_eq!(messages(&mut b), [vec![7; 2000]]);
    assert!(a.poll_timeout().is_some());
    for fragment in fragments(now, &mut b, 800) {
        a.handle(now, &fragment).unwrap();
    }
    assert_eq!((a.poll_timeout(), b.poll_timeout()), (None, None));
    assert_eq!((fragments(now, &mut a, 800).len(), fragments(now, &mut b, 800).len()), (0, 0));
}

#[test]
fn what_is_no_fragment_is_refused_and_memory_is_bounded() {
    let now = Instant::ZERO;
    let mut it = Courier::new(PAUSE);
    for wrong in [&[][..], &[22; 8], &[23; 20]] {
        assert_eq!(it.handle(now, wrong), Err(NoFragment));
    }
    // A peer that acknowledges what was never sent, and fills what nobody reads.
    it.handle(now, &[22, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]).unwrap();
    for at in 0..10_000 / SHARE as u32 {
        let mut fragment = vec![22, 0, 0, 0, 0];
        fragment.extend((at * 100).to_be_bytes());
        fragment.extend([0xff; 100]);
        it.handle(now, &fragment).unwrap();
    }
    assert!(it.came.len() <= 2 * WINDOW as usize && it.ahead.len() <= MAX_AHEAD);
    assert_eq!(it.next_message(), Err(NoFragment));
}

proptest! {
    #[test]
    fn all_messages_come_in_order_whatever_gets_lost(
        seed in any::<u64>(),
        lengths in proptest::collection::vec((0..3000 / SHARE, any::<bool>()), 1..8),
        room in 40..1200 / SHARE,
        loss in 0.0..0.6,
    ) {
        let mut rng = Rng::from_seed(seed);
        let mut ends = [Courier::new(PAUSE), Courier::new(PAUSE)];
        let mut expected = [Vec::new(), Vec::new()];
        for (at, (len, side)) in lengths.into_iter().enumerate() {
            let message = vec![at as u8; len];
            ends[usize::from(side)].push(&message).unwrap();
            expected[usize::from(!side)].push(message);
        }
        let mut got = [Vec::new(), Vec::new()];
        let mut now = Instant::ZERO;
        for _ in 0..20_000 {
            for from in [0, 1] {
                let mut flying = fragments(now, &mut ends[from], room);
                // Out of order, some twice, some never.
                flying.sort_by_cached_key(|_| rng.u32());
                for fragment in flying {
                    let copies = if rng.chance(loss) { 0 } else { 1 + usize::from(rng.chance(0.1)) };
                    for _ in 0..copies {
                        ends[1 - from].handle(now, &fragment).unwrap();
                    }
                }
                got[1 - from].extend(messages(&mut ends[1 - from]));
            }
            let Some(at) = ends.iter().filter_map(Courier::poll_timeout).min() else { break };
            now = now.max(at);
            for end in &mut ends {
                end.handle_timeout(now);
            }
        }
        prop_assert_eq!(got, expected);
        prop_assert!(ends.iter().all(|end| end.out.is_empty()));
    }
}

/// A stranger sends fragments ahead of those before them; a peer acknowledges nothing.
#[test]
fn memory_is_bounded_whatever_the_other_end_does() {
    let mut it = Courier::new(PAUSE);
    for n in 0..2000 / SHARE as u32 {
        let mut fragment = vec![KIND, 0, 0, 0, 0];
        fragment.extend((1 + n * 500).to_be_bytes());
        fragment.resize(1400, 1);
        it.handle(Instant::ZERO, &fragment).unwrap();
    }
    let ahead: usize = it.ahead.values().map(Vec::len).sum();
    assert!(ahead <= WINDOW as usize, "{ahead} bytes");
    let pushed = (0..1000).take_while(|_| it.push(&[1; 1500]).is_ok()).count();
    assert!((40..44).contains(&pushed), "{pushed} messages");
}
