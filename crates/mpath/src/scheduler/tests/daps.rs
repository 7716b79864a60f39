//! DAPS beside the algorithms of THESIS §7.1.2 as they are printed.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Bytes of a packet.
const SIZE: usize = 1000;

/// A path of the source's model: every `delay` ms it emits `capacity` packets.
#[derive(Clone, Copy, Debug)]
struct Emitter {
    delay: u64,
    capacity: usize,
}

/// What goes over each path at each of its emissions.
type Emissions = Vec<Vec<Vec<usize>>>;

fn lcm(paths: &[Emitter]) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    paths.iter().fold(1, |lcm, path| lcm / gcd(lcm, path.delay) * path.delay)
}

/// Algorithms 1 and 2, for paths in order of their delays: the vectors SEQ of eq. 7.5.
fn published(paths: &[Emitter]) -> Emissions {
    let order = (1..=lcm(paths)).flat_map(|t| (0..paths.len()).filter(move |&i| t % paths[i].delay == 0));
    let (mut sequences, mut highest) = (vec![Vec::new(); paths.len()], 0);
    for path in order {
        sequences[path].push((highest + 1..=highest + paths[path].capacity).collect());
        highest += paths[path].capacity;
    }
    sequences
}

/// Algorithm 3 with the scheduler: at each emission it is asked for each packet.
fn scheduled(paths: &[Emitter], wrong: f64, until: u64) -> Emissions {
    let mut scheduler = SchedulerKind::Daps.scheduler();
    let mut waiting: VecDeque<usize> = (1..=20_000).collect();
    let mut emissions = vec![Vec::new(); paths.len()];
    for t in 0..until {
        let emits = |path: &Emitter| t % path.delay == 0;
        let mut room: Vec<_> = paths.iter().map(|path| if emits(path) { path.capacity } else { 0 }).collect();
        (0..paths.len()).filter(|&i| emits(&paths[i])).for_each(|i| emissions[i].push(Vec::new()));
        loop {
            let views: Vec<_> = (0..paths.len())
                .map(|i| {
                    let Emitter { delay, capacity } = paths[i];
                    let mean = Duration::from_millis(delay).mul_f64(wrong);
                    let forward_delay = Some(Delay { mean, deviation: Duration::ZERO });
                    let rate = Some((capacity * SIZE) as f64 / (delay as f64 / 1000.0));
                    PathView { ready: room[i] > 0, active: true, forward_delay, rate, ..PathView::default() }
                })
                .collect();
            let bytes = waiting.len() * SIZE;
            let view = View { waiting: Waiting { bytes, ..Waiting::default() }, ..view(&views) };
            let Some(path) = scheduler.pick(&view) else { break };
            let packet = waiting.remove(scheduler.ahead(&view, path).div_ceil(SIZE)).unwrap();
            emissions[path].last_mut().unwrap().push(packet);
            scheduler.on_sent(path, SIZE);
            room[path] -= 1;
        }
    }
    emissions
}

/// Table 7.2: 1.6 Mbit/s and 10 ms one way, 400 kbit/s and 100 ms; N = 25 (eq. 7.4).
#[test]
fn table_7_2_packet_by_packet() {
    let paths = [Emitter { delay: 10, capacity: 2 }, Emitter { delay: 100, capacity: 5 }];
    let emissions = scheduled(&paths, 1.0, 200);
    let rows: Vec<Vec<usize>> = (0..10).map(|row| vec![2 * row + 1, 2 * row + 2]).collect();
    assert_eq!(emissions[0][..10], rows, "1 to 20 over the first path, two each 10 ms");
    assert_eq!(emissions[1], [vec![21, 22, 23, 24, 25], vec![46, 47, 48, 49, 50]]);
    assert_eq!(emissions[0][10], [26, 27]);
}

#[test]
fn three_paths_as_the_algorithms_have_them() {
    let paths = [(10, 1), (20, 1), (40, 1)].map(|(delay, capacity)| Emitter { delay, capacity });
    assert_eq!(published(&paths), [vec![vec![1], vec![2], vec![4], vec![5]], vec![vec![3], vec![6]], vec![vec![7]]]);
    assert_eq!(scheduled(&paths, 1.0, 40), published(&paths));
}

/// Packets that must wait at the receiver, at most, if each arrives after the delay of its path.
fn most_held(paths: &[Emitter], emissions: &Emissions) -> usize {
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    for (path, rows) in paths.iter().zip(emissions) {
        let at = |row: usize| path.delay * (row as u64 + 1);
        arrivals
            .extend(rows.iter().enumerate().flat_map(|(row, packets)| packets.iter().map(move |&it| (at(row), it))));
    }
    arrivals.sort_unstable();
    let (mut next, mut most, mut held) = (1, 0, std::collections::BTreeSet::new());
    for at in arrivals.chunk_by(|a, b| a.0 == b.0) {
        held.extend(at.iter().map(|(_, packet)| *packet));
        while held.remove(&next) {
            next += 1;
        }
        most = most.max(held.len());
    }
    most
}

proptest! {
    /// If each delay is a multiple of the one before, every packet goes where the vectors have
    /// it, and the receiver holds none.
    #[test]
    fn each_packet_has_the_place_of_the_vectors(first in 1_u64..5, factors in prop::collection::vec(2_u64..5, 1..4), capacities in prop::collection::vec(1_usize..6, 4)) {
        let mut delay = first;
        let mut paths = vec![Emitter { delay, capacity: capacities[0] }];
        for (factor, &capacity) in factors.iter().zip(&capacities[1..]) {
            delay *= factor;
            paths.push(Emitter { delay, capacity });
        }
        let emissions = scheduled(&paths, 1.0, lcm(&paths));
        prop_assert_eq!(most_held(&paths, &emissions), 0);
        prop_assert_eq!(emissions, published(&paths));
    }

    /// Delays that are no multiples of each other: what the receiver holds is less than two emissions of each path.
    #[test]
    fn delays_that_are_no_neat_multiples(delays in prop::collection::btree_set(3_u64..80, 2..4), capacities in prop::collection::vec(1_usize..6, 4)) {
        let paths: Vec<_> = delays.iter().zip(&capacities).map(|(&delay, &capacity)| Emitter { delay, capacity }).collect();
        let held = most_held(&paths, &scheduled(&paths, 1.0, 800));
        let bound: usize = paths.iter().map(|path| 2 * path.capacity).sum();
        prop_assert!(held <= bound, "{held} of {bound}");
    }
}

/// Delays twice as long as they are (§7.2.1): out of order by what the quick path carries in the
/// difference, and no more.
#[test]
fn wrong_delays_cost_what_the_difference_carries() {
    let paths = [Emitter { delay: 10, capacity: 2 }, Emitter { delay: 100, capacity: 5 }];
    let emissions = scheduled(&paths, 2.0, 400);
    assert_eq!(
        emissions[1][0],
        [39, 40, 41, 42, 43],
        "as if the quick path carried 36 packets meanwhile, instead of 18"
    );
}

#[test]
fn nothing_goes_ahead_of_what_is_not_there_and_repeats_do_not_take_the_long_way() {
    let mut scheduler = SchedulerKind::Daps.scheduler();
    let ms = |mean| Some(Delay { mean: Duration::from_millis(mean), deviation: Duration::ZERO });
    let quick = PathView { active: true, forward_delay: ms(10), rate: Some(200_000.0), ..PathView::default() };
    let slow =
        PathView { ready: true, active: true, forward_delay: ms(100), rate: Some(50_000.0), ..PathView::default() };
    let mut pick = |quick, waiting| {
        let paths = [quick, slow];
        scheduler.pick(&View { now: Instant::ZERO, paths: &paths, waiting })
    };
    let waiting = |bytes| Waiting { bytes, ..Waiting::default() };
    assert_eq!(pick(quick, waiting(18_000)), None, "the quick path will have carried it all by then");
    assert_eq!(pick(quick, waiting(18_001)), Some(1));
    assert_eq!(pick(PathView { silent: Duration::from_millis(60), ..quick }, waiting(10)), Some(1), "it stands still");
    let again = Waiting { again: true, ..waiting(100_000) };
    assert_eq!(pick(quick, again), None);
    assert_eq!(pick(PathView { active: false, ..quick }, again), Some(1));
}
