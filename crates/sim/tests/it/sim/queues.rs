//! Queues against theory, and their disciplines, marks and schedules on whole links.

use super::{carry, ms, steady};
use braidcast_core::{Ecn, Instant, Rng};
use braidcast_sim::link::{
    CoDel, Discipline, Link, LinkAction, LinkModel, LinkStats, Offer, Outage, Queue, QueueLimit, Red,
};
use braidcast_sim::testing::seed_from_env;
use core::time::Duration;

/// Student's t for 19 degrees of freedom and 99.9 %, both sides.
const T_19: f64 = 3.883;
/// 1250 bytes at this rate are 1 ms.
const RATE: u64 = 10_000_000;

/// Poisson arrivals of `len()` bytes on average 1.25 ms apart: the time before service of each of 20 batches of 20,000
/// packets, in ms, and the mean number in the system.
fn waits(seed: u64, mut len: impl FnMut(&mut Rng) -> usize) -> (Vec<f64>, f64) {
    let mut rng = Rng::from_seed(seed);
    let mut at = Instant::ZERO;
    let mut draw = |_| {
        at += Duration::from_secs_f64(rng.exponential() * 1.25e-3);
        (at, len(&mut rng))
    };
    let offers: Vec<_> = (0..400_000).map(&mut draw).collect();
    let limit = QueueLimit::Packets(1_000_000).into();
    let model = LinkModel { queue: limit, ..LinkModel::wire(RATE, Duration::ZERO) };
    let (arrivals, stats) = carry(model, seed, &offers);
    let wait = |(left, number): &(Instant, usize)| {
        let (came, len) = offers[*number];
        (*left - came).as_secs_f64() * 1e3 - len as f64 / 1_250.0
    };
    let batches = arrivals.chunks(20_000).map(|batch| batch.iter().map(wait).sum::<f64>() / batch.len() as f64);
    // The queue is empty at the end, so its integral is all; the last arrival ends the time.
    let end = arrivals.last().map_or(0.0, |(at, _)| at.as_secs_f64());
    (batches.collect(), stats.queue_packet_nanos as f64 / 1e9 / end)
}

fn assert_mean(batches: &[f64], expected: f64) {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let deviation = (batches.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = T_19 * deviation / n.sqrt();
    assert!((mean - expected).abs() < half, "{mean} ± {half}, not {expected}");
    assert!(half < 0.15 * expected, "{half}");
}

#[test]
fn packets_wait_as_long_as_queueing_theory_says() {
    let seed = seed_from_env(1);
    // Pollaczek and Khinchine: λ E[S²] / 2 (1 − ρ) with ρ = 0.8; in the system λ (W + S) by Little.
    let (m_d_1, in_system) = waits(seed.get(), |_| 1_250);
    assert_mean(&m_d_1, 0.8 / (2.0 * 0.2));
    assert!((in_system - 0.8 * 3.0).abs() < 0.1, "{in_system}");
    let (m_m_1, in_system) = waits(seed.get(), |rng| (rng.exponential() * 1_250.0).round() as usize);
    assert_mean(&m_m_1, 0.8 / 0.2);
    assert!((in_system - 0.8 * 5.0).abs() < 0.4, "{in_system}");
}

/// What a link of 10 Mbit/s and 30 ms that holds `packets` packets, those under way included, does with `offers`:
/// the delay of the first and of the last packet that arrive, and how many are dropped.
fn netem(packets: usize, offers: &[(Instant, usize)]) -> (Duration, Duration, u64) {
    let queue = Queue { limit: QueueLimit::Packets(packets), discipline: Discipline::Netem };
    let model = LinkModel { queue, ..LinkModel::wire(RATE, Duration::from_millis(30)) };
    let (arrivals, stats) = carry(model, 1, offers);
    let delay = |(at, number): &(Instant, usize)| *at - offers[*number].0;
    (delay(&arrivals[0]), delay(&arrivals[arrivals.len() - 1]), stats.dropped_queue)
}

/// tc-netem(8): the limit is that of packets "the qdisc may hold queued at a time", those that are delayed included.
#[test]
fn a_queue_that_holds_the_delay_counts_what_is_under_way() {
    let ms = Duration::from_millis;
    let at_the_rate = steady(200, 1_250, 1_000);
    assert_eq!(netem(31, &at_the_rate), (ms(31), ms(31), 0), "30 under way, and one on the wire");
    assert!(netem(20, &at_the_rate).2 > 50, "the link is idle though packets are dropped");
    // Twice the rate: what waits for others has its delay meanwhile, so that a full queue of 60 is 60 ms long.
    let (first, last, dropped) = netem(60, &steady(400, 1_250, 500));
    assert!(first == ms(31) && last > ms(59) && last <= ms(60) && dropped > 100, "{first:?} {last:?} {dropped}");
}

/// What a link of 10 Mbit/s does with `load` times as much for 30 s, in packets of 1250 bytes.
fn overload(discipline: Discipline, load: f64, ecn: Ecn) -> LinkStats {
    let queue = Queue { limit: QueueLimit::Packets(500), discipline };
    let mut link = Link::new(LinkModel { queue, ..LinkModel::wire(RATE, Duration::ZERO) }, Rng::from_seed(1));
    let mut number = 0;
    let mut at = Instant::ZERO;
    while at < ms(30_000) {
        link.offer(at, 1_250, ecn, number);
        while let Some(exit) = link.poll_outcome(at) {
            assert!(exit.ecn == ecn || (exit.ecn == Ecn::Ce && ecn == Ecn::Ect0), "{exit:?}");
        }
        number += 1;
        at += Duration::from_secs_f64(1e-3 / load);
    }
    link.stats()
}

#[test]
fn red_keeps_the_queue_between_its_thresholds() {
    let mean = |stats: &LinkStats| stats.mean_queue_packets(&LinkStats::default());
    let tail = overload(Discipline::DropTail, 1.05, Ecn::Ect0);
    assert!(mean(&tail) > 300.0 && tail.dropped_early == 0, "{tail:?}");
    let red = Red::new(5.0, 50.0, 0.1);
    let dropping = overload(Discipline::Red(red), 1.05, Ecn::Ect0);
    assert!((5.0..50.0).contains(&mean(&dropping)), "{}", mean(&dropping));
    assert_eq!((dropping.dropped_queue, dropping.marked), (0, 0));
    // Who is marked and does not slow down fills the queue to the upper threshold, where drops begin.
    let red = Discipline::Red(Red { ecn: true, ..red });
    let marking = overload(red, 1.05, Ecn::Ect0);
    assert!(marking.marked > 1_000 && mean(&marking) > mean(&dropping), "{marking:?}");
    assert_eq!(overload(red, 1.05, Ecn::NotEct).marked, 0);
}

#[test]
fn codel_drops_what_waits_for_too_long_or_marks_it() {
    let mean = |stats: &LinkStats| stats.mean_queue_packets(&LinkStats::default());
    let codel = CoDel::default();
    let dropping = overload(Discipline::CoDel(codel), 1.05, Ecn::Ect0);
    assert!(dropping.dropped_early > 100 && dropping.dropped_queue == 0, "{dropping:?}");
    assert!(mean(&dropping) < 100.0, "{}", mean(&dropping));
    let marking = overload(Discipline::CoDel(CoDel { ecn: true, ..codel }), 1.05, Ecn::Ect0);
    assert_eq!(marking.dropped_early, 0);
    assert!(marking.marked > 100, "{marking:?}");
    let fine = overload(Discipline::CoDel(codel), 0.95, Ecn::Ect0);
    assert_eq!((fine.dropped(), fine.marked), (0, 0));
}

/// Arrivals of a saturated link within each second of the first `seconds`.
fn per_second(model: LinkModel, seconds: usize) -> Vec<usize> {
    let (arrivals, _) = carry(model, 1, &steady(seconds as u64 * 2_000, 1_250, 500));
    let mut counts = vec![0; seconds];
    arrivals.iter().for_each(|(at, _)| {
        // What ends a second may be a nanosecond late on a ramp, where times are rounded up.
        if let Some(count) = counts.get_mut((at.as_nanos().saturating_sub(10) / 1_000_000_000) as usize) {
            *count += 1;
        }
    });
    counts
}

fn scheduled(rate: &str) -> LinkModel {
    LinkModel { rate: rate.parse().unwrap(), queue: QueueLimit::Packets(100).into(), ..LinkModel::default() }
}

#[test]
fn a_saturated_link_follows_its_schedule() {
    assert_eq!(per_second(scheduled("0s:8mbit,2s:2mbit,4s:6mbit"), 6), [800, 800, 200, 200, 600, 600]);
    assert_eq!(per_second(scheduled("0s:8mbit,1s:2mbit,repeat:2s"), 6), [800, 200, 800, 200, 800, 200]);
    // From 10 to 2 Mbit/s in 4 s: the means of the seconds are 9, 7, 5 and 3.
    assert_eq!(per_second(scheduled("ramp:0s:10mbit,4s:2mbit"), 6), [900, 700, 500, 300, 200, 200]);
}

#[test]
fn a_packet_on_the_wire_takes_each_part_of_its_time_at_that_parts_rate() {
    // 1000 bits at 0.1 Mbit/s would take 10 ms; after 5 ms the other 500 go at 1 Mbit/s, and a hold stops both.
    let rate = scheduled("0s:100kbit,5ms:1mbit");
    assert_eq!(carry(rate.clone(), 1, &[(ms(0), 125)]).0, [(Instant::from_micros(5_500), 0)]);
    let outages = vec![Outage::window(ms(2), ms(4)).holding(), Outage::window(ms(6), ms(9)).holding()];
    let (arrivals, _) = carry(LinkModel { outages, ..rate }, 1, &[(ms(0), 125), (ms(0), 125)]);
    // 300 bits in 3 of the first 5 ms, 700 more until 5.7; then 300 until 6 and the rest from 9 on.
    assert_eq!(arrivals, [(Instant::from_micros(5_700), 0), (Instant::from_micros(9_700), 1)]);
}

#[test]
fn a_delay_that_changes_never_reorders() {
    let delay_schedule = Some(braidcast_sim::link::parse::delay_schedule("0s:15ms,10ms:80ms,20ms:15ms").unwrap());
    let model = LinkModel { delay_schedule, ..LinkModel::default() };
    let (arrivals, _) = carry(model, 1, &[(ms(5), 1), (ms(15), 1), (ms(25), 1), (ms(100), 1)]);
    assert_eq!(arrivals, [(ms(20), 0), (ms(95), 1), (ms(95), 2), (ms(115), 3)]);
}

#[test]
fn framing_takes_time_on_the_wire_and_room_in_the_queue_but_none_of_the_mtu() {
    let model = LinkModel { overhead: 25, mtu: 100, ..LinkModel::wire(1_000_000, Duration::ZERO) };
    let (arrivals, stats) = carry(model, 1, &[(ms(0), 100), (ms(0), 101)]);
    assert_eq!(arrivals, [(ms(1), 0)]);
    assert_eq!((stats.delivered_bytes, stats.queue_peak_bytes, stats.dropped_too_big), (125, 125, 1));
}

#[test]
fn who_watches_sees_each_step_with_its_time_and_the_queue_after_it() {
    let queue = QueueLimit::Packets(2).into();
    let model = LinkModel { queue, ..LinkModel::wire(1_000_000, Duration::from_millis(5)) };
    let mut link = Link::new(model, Rng::from_seed(1));
    let mut seen = Vec::new();
    let mut watch = |event: braidcast_sim::link::LinkEvent<'_, char>| {
        seen.push((event.at, *event.packet, event.action, event.queue_packets));
    };
    for packet in ['a', 'b'] {
        assert_eq!(link.offer_watched(ms(0), 125, Ecn::Ect0, packet, &mut watch), Offer::Queued);
    }
    link.offer_watched(ms(0), 125, Ecn::Ect0, 'c', &mut watch);
    assert_eq!((link.next_change(), link.poll_timeout()), (Some(ms(1)), Some(ms(6))));
    while link.poll_watched(ms(50), &mut watch).is_some() {}
    let full = LinkAction::Dropped(braidcast_sim::link::DropReason::QueueFull);
    let expected = [
        (ms(0), 'a', LinkAction::Entered, 1),
        (ms(0), 'b', LinkAction::Entered, 2),
        (ms(0), 'c', full, 2),
        (ms(1), 'a', LinkAction::Left, 1),
        (ms(2), 'b', LinkAction::Left, 0),
        (ms(6), 'a', LinkAction::Arrived, 0),
        (ms(7), 'b', LinkAction::Arrived, 0),
    ];
    assert_eq!(seen, expected);
    // Two packets for 1 ms and one for another, in 50 ms.
    let stats = link.stats();
    assert!((stats.mean_queue_packets(&LinkStats::default()) - 3.0 / 50.0).abs() < 1e-12);
    assert!((stats.mean_queue_bytes(&LinkStats::default()) - 375.0 / 50.0).abs() < 1e-12);
}
