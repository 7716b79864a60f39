use super::{carry, ms, steady};
use braidcast_core::{Ecn, Instant, Rng};
use braidcast_sim::link::{
    DropReason, EcnField, Exit, Jitter, Link, LinkModel, Loss, Offer, Outage, Outcome, QueueLimit, Rate, Reorder,
    ReorderHow, Trace,
};
use core::time::Duration;
use std::sync::Arc;

fn millis(arrivals: &[(Instant, usize)]) -> Vec<u64> {
    arrivals.iter().map(|(at, _)| at.as_micros() / 1_000).collect()
}

#[test]
fn an_overloaded_link_carries_its_rate() {
    let model = LinkModel { queue: QueueLimit::Bytes(64_000).into(), ..LinkModel::wire(8_000_000, Duration::ZERO) };
    let (arrivals, stats) = carry(model, 1, &steady(10_000, 1_250, 1_000));
    let until_10s = arrivals.iter().filter(|(at, _)| *at <= ms(10_000)).count() as f64;
    assert!((until_10s * 10_000.0 / 8e7 - 1.0).abs() < 0.001, "{until_10s}");
    assert_eq!(stats.offered, stats.delivered + stats.dropped_queue);
    assert_eq!(stats.queue_peak_bytes, 51 * 1_250);
}

#[test]
fn a_packet_takes_its_serialisation_and_the_delay_exactly() {
    let model = LinkModel::wire(1_000_000, Duration::from_millis(20));
    // 125 bytes are 1 ms; the second waits for the first, the third finds the link idle.
    let (arrivals, _) = carry(model, 1, &[(ms(0), 125), (ms(0), 250), (ms(50), 125)]);
    assert_eq!(arrivals, [(ms(21), 0), (ms(23), 1), (ms(71), 2)]);
}

#[test]
fn a_full_queue_drops_what_comes_on_top() {
    let model = LinkModel { queue: QueueLimit::Packets(10).into(), ..LinkModel::wire(1_000_000, Duration::ZERO) };
    let (arrivals, stats) = carry(model, 1, &[(ms(0), 125); 25]);
    assert_eq!((arrivals.len(), stats.dropped_queue, stats.queue_peak_packets), (10, 15, 10));
    let mut link =
        Link::new(LinkModel { queue: QueueLimit::Packets(0).into(), ..LinkModel::default() }, Rng::from_seed(1));
    assert_eq!(link.offer(ms(0), 1, Ecn::NotEct, 'x'), Offer::Dropped(DropReason::QueueFull, 'x'));
}

#[test]
fn packets_above_the_mtu_vanish() {
    let (arrivals, stats) =
        carry(LinkModel { mtu: 1_400, ..LinkModel::default() }, 1, &[(ms(0), 1_400), (ms(1), 1_401)]);
    assert_eq!((arrivals, stats.dropped_too_big), (vec![(ms(0), 0)], 1));
}

#[test]
fn a_link_may_clear_the_ecn_field_or_lose_what_has_it_set() {
    let what_comes = |ecn_field| {
        let mut link = Link::new(LinkModel { ecn_field, ..LinkModel::default() }, Rng::from_seed(1));
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(link.offer(ms(0), 1, ecn, ()), Offer::Queued);
        }
        let exits = core::iter::from_fn(|| link.poll_outcome(ms(0)));
        let ecns: Vec<_> = exits.filter(|it| matches!(it.outcome, Outcome::Arrived(()))).map(|it| it.ecn).collect();
        (ecns, link.stats().dropped_loss)
    };
    assert_eq!(what_comes(EcnField::Kept), (vec![Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce], 0));
    assert_eq!(what_comes(EcnField::Cleared), (vec![Ecn::NotEct; 4], 0));
    assert_eq!(what_comes(EcnField::Refused), (vec![Ecn::NotEct], 3));
}

#[test]
fn losses_have_their_share_and_cost_capacity() {
    let model = LinkModel { loss: Loss::Uniform(0.05), ..LinkModel::wire(10_000_000, Duration::ZERO) };
    let (arrivals, stats) = carry(model, 2, &steady(100_000, 1_250, 1_000));
    let sigma = (100_000.0 * 0.05 * 0.95_f64).sqrt();
    assert!((stats.dropped_loss as f64 - 5_000.0).abs() < 4.0 * sigma, "{stats:?}");
    // Exactly loaded: had lost packets cost nothing, the rest would arrive earlier than it does.
    assert!(arrivals.iter().all(|(at, number)| *at == ms(*number as u64 + 1)));
}

#[test]
fn a_saturated_trace_carries_exactly_its_opportunities() {
    let times = vec![0, 3, 3, 3, 40, 41, 100];
    let model = LinkModel {
        rate: Rate::Trace(Arc::new(Trace::from_millis(times).unwrap())),
        queue: QueueLimit::Packets(50).into(),
        ..LinkModel::default()
    };
    let (arrivals, _) = carry(model, 1, &steady(10_000, 1_500, 100));
    let within_1s = arrivals.iter().filter(|(at, _)| *at < ms(1_000)).count();
    // What closes a round at 100 ms falls together with the next round's first; the tenth closes at 1000 ms.
    assert_eq!(within_1s, 10 * 7 - 1);
    assert_eq!(millis(&arrivals)[..9], [0, 3, 3, 3, 40, 41, 100, 100, 103]);
}

#[test]
fn an_outage_that_drops_loses_what_leaves_the_queue_in_it() {
    let model = LinkModel {
        outages: vec![Outage::window(ms(10), ms(12))],
        ..LinkModel::wire(1_000_000, Duration::from_millis(5))
    };
    let (arrivals, stats) = carry(model, 1, &steady(15, 125, 1_000));
    // Packet n leaves at n + 1 ms: 9 and 10 leave during the outage; 8 was in flight already.
    let numbers: Vec<_> = arrivals.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14]);
    assert_eq!(stats.dropped_outage, 2);
}

#[test]
fn an_outage_that_holds_delays_and_then_releases_at_the_rate() {
    let hold = Outage::window(ms(2), ms(10)).holding();
    let model = LinkModel { outages: vec![hold], ..LinkModel::wire(1_000_000, Duration::ZERO) };
    let (arrivals, stats) = carry(model.clone(), 1, &steady(5, 125, 1_000));
    assert_eq!((millis(&arrivals), stats.dropped()), (vec![1, 2, 11, 12, 13], 0));
    let unlimited = LinkModel { rate: Rate::Unlimited, ..model };
    assert_eq!(millis(&carry(unlimited, 1, &steady(5, 125, 1_000)).0), [0, 1, 10, 10, 10]);
}

#[test]
fn a_link_that_is_down_drops_until_it_is_mended() {
    let mut link = Link::new(LinkModel::wire(1_000_000, Duration::from_millis(10)), Rng::from_seed(1));
    for number in 0..4 {
        assert_eq!(link.offer(ms(0), 125, Ecn::NotEct, number), Offer::Queued);
    }
    link.set_down(ms(2), true);
    assert_eq!(link.offer(ms(3), 125, Ecn::NotEct, 4), Offer::Dropped(DropReason::Outage, 4));
    link.set_down(ms(5), false);
    link.offer(ms(6), 125, Ecn::NotEct, 5);
    let outcome = Outcome::Dropped(DropReason::Outage, 2);
    assert_eq!(link.poll_outcome(ms(30)), Some(Exit { at: ms(3), ecn: Ecn::NotEct, outcome }));
    let arrived: Vec<_> = core::iter::from_fn(|| link.poll(ms(30))).collect();
    assert_eq!(arrived, [0, 1, 5]);
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn the_share_asked_for_is_reordered() {
    let overtakers = |how| {
        let reorder = Reorder { share: 0.02, how };
        let model = LinkModel { reorder, delay: Duration::from_millis(20), ..LinkModel::default() };
        let (arrivals, stats) = carry(model, 3, &steady(50_000, 100, 5_000));
        assert_eq!(stats.delivered, 50_000);
        arrivals.iter().enumerate().filter(|(place, (_, number))| place.abs_diff(*number) > 1).count() as f64 / 50_000.0
    };
    assert!((overtakers(ReorderHow::Skip) - 0.02).abs() < 0.003);
    assert!((overtakers(ReorderHow::Late(Duration::from_millis(21))) - 0.02).abs() < 0.003);
}

#[test]
fn jitter_alone_never_reorders() {
    for jitter in [Jitter::Uniform(Duration::from_millis(30)), Jitter::Normal(Duration::from_millis(30))] {
        let model = LinkModel { jitter, delay: Duration::from_millis(30), ..LinkModel::default() };
        let (arrivals, _) = carry(model, 4, &steady(10_000, 100, 500));
        assert!(arrivals.is_sorted_by_key(|(_, number)| *number));
        assert!(arrivals.is_sorted_by_key(|(at, _)| *at));
    }
}

#[test]
fn duplicates_arrive_with_their_originals() {
    let (arrivals, stats) = carry(LinkModel { duplicate: 0.1, ..LinkModel::default() }, 5, &steady(10_000, 100, 1_000));
    assert!((stats.duplicated as f64 - 1_000.0).abs() < 4.0 * 30.0, "{stats:?}");
    assert_eq!(arrivals.len() as u64, 10_000 + stats.duplicated);
    let pairs = arrivals.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    assert_eq!(pairs, stats.duplicated);
}

#[test]
fn links_made_from_streams_of_one_seed_lose_different_packets() {
    let losses = |name| {
        let model = LinkModel { loss: Loss::Uniform(0.5), ..LinkModel::default() };
        let mut link = Link::new(model, Rng::from_seed(1).stream(name));
        (0..64).for_each(|number| assert_eq!(link.offer(ms(number), 1, Ecn::NotEct, number), Offer::Queued));
        core::iter::from_fn(|| link.poll(ms(64))).collect::<Vec<_>>()
    };
    assert_eq!(losses("a"), losses("a"));
    assert_ne!(losses("a"), losses("b"));
}
