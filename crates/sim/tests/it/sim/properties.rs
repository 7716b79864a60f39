use super::carry;
use braidcast_core::{Ecn, Instant, Rng};
use braidcast_sim::link::{
    CoDel, Discipline, EcnField, Jitter, Link, LinkModel, Loss, Outage, OutageEffect, Outcome, Policer, Queue,
    QueueLimit, Rate, Red, Reorder, ReorderHow, Schedule, Shape, Trace,
};
use core::time::Duration;
use proptest::prelude::*;
use std::sync::Arc;

fn durations(max_ms: u64) -> impl Strategy<Value = Duration> {
    (0..max_ms * 1_000).prop_map(Duration::from_micros)
}

fn rates() -> impl Strategy<Value = Rate> {
    let trace = prop::collection::vec(0_u32..200, 1..30).prop_filter_map("no time passes", |mut millis| {
        millis.sort_unstable();
        Trace::from_millis(millis).map(|trace| Rate::Trace(Arc::new(trace)))
    });
    let schedule = schedules(10_000..100_000_000).prop_map(Rate::Schedule);
    prop_oneof![Just(Rate::Unlimited), (10_000_u64..1_000_000_000).prop_map(Rate::Bits), schedule, trace]
}

fn schedules(values: core::ops::Range<u64>) -> impl Strategy<Value = Schedule> {
    let points = prop::collection::btree_map(1_u64..500, values.clone(), 0..6);
    let shape = prop_oneof![Just(Shape::Steps), Just(Shape::Ramps)];
    (values, points, shape, any::<bool>()).prop_map(|(first, rest, shape, repeat)| {
        let points: Vec<_> = core::iter::once((0, first)).chain(rest).collect();
        let points: Vec<_> = points.into_iter().map(|(ms, value)| (Duration::from_millis(ms), value)).collect();
        Schedule::new(&points, shape, repeat.then_some(Duration::from_millis(600))).expect("times rise from 0")
    })
}

fn outages() -> impl Strategy<Value = Vec<Outage>> {
    let window = (durations(500), durations(300)).prop_map(|(from, length)| {
        let from = Instant::ZERO + from;
        Outage::window(from, from + length)
    });
    let every = (durations(200), durations(100)).prop_map(|(pause, length)| Outage::every(pause + length, length));
    let effect = any::<bool>().prop_map(|hold| if hold { OutageEffect::Hold } else { OutageEffect::Drop });
    let outage = (prop_oneof![window, every], effect).prop_map(|(outage, effect)| Outage { effect, ..outage });
    prop::collection::vec(outage, 0..3)
}

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![Just(Jitter::None), durations(50).prop_map(Jitter::Uniform), durations(50).prop_map(Jitter::Normal)]
}

fn queues() -> impl Strategy<Value = Queue> {
    let limit = prop_oneof![
        (0_usize..30).prop_map(QueueLimit::Packets),
        (0_usize..30_000).prop_map(QueueLimit::Bytes),
        durations(300).prop_map(QueueLimit::Time),
    ];
    let red = (0.0..5.0, 0.1..10.0, 0.0..1.0, any::<bool>(), any::<bool>()).prop_map(|(min, span, p, gentle, ecn)| {
        Discipline::Red(Red { weight: 0.1, gentle, ecn, ..Red::new(min, min + span, p) })
    });
    let codel = (durations(20), durations(100), any::<bool>())
        .prop_map(|(target, interval, ecn)| Discipline::CoDel(CoDel { target, interval, ecn }));
    let discipline = prop_oneof![Just(Discipline::DropTail), Just(Discipline::Netem), red, codel];
    (limit, discipline).prop_map(|(limit, discipline)| Queue { limit, discipline })
}

fn policers() -> impl Strategy<Value = Policer> {
    (10_000_u64..50_000_000, 100_usize..100_000).prop_map(|(bits_per_second, depth)| Policer { bits_per_second, depth })
}

fn losses() -> impl Strategy<Value = Loss> {
    let bursts = (0.0..0.4, 1.0..9.0).prop_map(|(mean, burst)| Loss::bursts(mean, burst).unwrap_or_default());
    prop_oneof![Just(Loss::None), (0.0..1.0).prop_map(Loss::Uniform), bursts]
}

fn reorders() -> impl Strategy<Value = Reorder> {
    let how = prop_oneof![Just(ReorderHow::Skip), durations(50).prop_map(ReorderHow::Late)];
    (0.0..0.5, how).prop_map(|(share, how)| Reorder { share, how })
}

prop_compose! {
    fn models()(
        rate in rates(),
        delay in durations(100),
        delay_schedule in prop::option::of(schedules(0..100_000_000)),
        jitter in jitters(),
        policer in prop::option::of(policers()),
        queue in queues(),
        loss in losses(),
        ecn_field in prop_oneof![3 => Just(EcnField::Kept), 1 => Just(EcnField::Cleared), 1 => Just(EcnField::Refused)],
        reorder in reorders(),
        duplicate in 0.0..0.3,
        corrupt in prop_oneof![Just(0.0), 0.0..0.3],
        mtu in prop_oneof![Just(usize::MAX), 500_usize..1600],
        overhead in 0_usize..50,
        outages in outages(),
    ) -> LinkModel {
        LinkModel {
            rate, delay, delay_schedule, jitter, policer, queue, loss, ecn_field, reorder, duplicate, corrupt, mtu, overhead,
            outages,
        }
    }
}

prop_compose! {
    fn offers()(gaps in prop::collection::vec((0_u64..20_000, 0_usize..1600), 1..200)) -> Vec<(Instant, usize)> {
        let mut at = Instant::ZERO;
        gaps.into_iter().map(|(gap, len)| { at += Duration::from_micros(gap); (at, len) }).collect()
    }
}

proptest! {
    #[test]
    fn packets_are_conserved_at_every_moment(model in models(), offers in offers(), seed: u64) {
        let mut link = Link::new(model, Rng::from_seed(seed));
        for (at, len) in offers {
            link.offer(at, len, Ecn::Ect0, ());
            if len % 3 == 0 {
                while link.poll(at).is_some() {}
            }
            let stats = link.stats();
            prop_assert_eq!(stats.offered + stats.duplicated, stats.delivered + stats.dropped() + link.inside() as u64);
        }
    }

    #[test]
    fn order_is_kept_unless_reordering_is_asked_for(model in models(), offers in offers(), seed: u64) {
        let model = LinkModel { reorder: Reorder::default(), ..model };
        let (arrivals, _) = carry(model, seed, &offers);
        prop_assert!(arrivals.is_sorted());
    }

    #[test]
    fn nothing_arrives_before_it_was_offered(model in models(), offers in offers(), seed: u64) {
        let (arrivals, _) = carry(model, seed, &offers);
        prop_assert!(arrivals.iter().all(|(at, number)| *at >= offers[*number].0));
        prop_assert!(arrivals.is_sorted_by_key(|(at, _)| *at));
    }

    #[test]
    fn polling_late_or_in_vain_changes_nothing(model in models(), offers in offers(), seed: u64) {
        let mut link = Link::new(model.clone(), Rng::from_seed(seed));
        let mut arrivals = Vec::new();
        for (number, (at, len)) in offers.iter().enumerate() {
            if number % 5 == 4 {
                arrivals.extend(core::iter::from_fn(|| link.poll_outcome(*at)));
            }
            link.offer(*at, *len, Ecn::Ect0, number);
        }
        let end = Instant::from_millis(100_000_000);
        arrivals.extend(core::iter::from_fn(|| link.poll_outcome(end)));
        arrivals.retain(|exit| matches!(exit.outcome, Outcome::Arrived(_)));
        let late: Vec<_> = arrivals.into_iter().map(|exit| (exit.at, format!("{:?}", exit.outcome))).collect();
        let prompt = carry(model, seed, &offers).0;
        let prompt: Vec<_> = prompt.into_iter().map(|(at, number)| (at, format!("Arrived({number})"))).collect();
        prop_assert_eq!(late, prompt);
    }

    #[test]
    fn no_link_beats_its_rate(offers in offers(), rate in 10_000_u64..100_000_000) {
        let (arrivals, _) = carry(LinkModel::wire(rate, Duration::ZERO), 1, &offers);
        let mut busy_from = Instant::ZERO;
        for (at, number) in arrivals {
            let (offered, len) = offers[number];
            let fastest = (len as u64 * 8_000_000_000) / rate;
            prop_assert!(at >= offered.max(busy_from) + Duration::from_nanos(fastest));
            busy_from = at;
        }
    }
}
