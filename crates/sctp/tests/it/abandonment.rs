//! Immediate against delayed abandonment, and the five variants of PRCMT §6.

use crate::common::{CLIENT, Pair, SERVER, link, ms, on, pattern};
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::{Abandonment, Event, Options, PrVariant, Priority, Reliability, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss};

fn options(abandonment: Abandonment) -> Options {
    Options::classic().with(|it| it.papers.abandonment = abandonment)
}

#[test]
fn what_expires_in_flight_is_forgotten_at_once_or_waited_for() {
    use Abandonment::{Delayed, Immediate, ImmediateCounted};
    for (abandonment, forgotten, counted) in [(Immediate, true, 0), (ImmediateCounted, true, 2), (Delayed, false, 2)] {
        let mut pair = Pair::connected(&options(abandonment), vec![Duplex::both(link(10, 100))]);
        let recording = pair.record();
        let cwnd = pair.client_path(0).unwrap().cwnd;
        // Two packets fill the window; they arrive after 100 ms, the acknowledgement after 200 ms, and are worth 50 ms.
        pair.on_client(|it, now| {
            (0..2).try_for_each(|n| it.send(now, &pattern(1452, n), on(0, Reliability::Lifetime(ms(50)))))
        })
        .unwrap();
        pair.run(ms(60));
        let path = pair.client_path(0).unwrap();
        // The network still holds them; RFC 3758 §3.5 A2 has them outstanding no more.
        assert_eq!(path.in_flight, counted * 1452, "{abandonment}");
        let abandoned = pair.client_events.iter().filter(|event| matches!(event, Event::Abandoned { .. })).count();
        assert_eq!(abandoned, if forgotten { 2 } else { 0 }, "{abandonment}");
        pair.run(ms(1000));
        assert_eq!(recording.count(&CLIENT, kind::FORWARD_TSN) > 0, forgotten, "{abandonment}");
        assert_eq!(pair.server_recv().len(), 2, "{abandonment}: FORWARD-TSN left after them");
        // PRCMT §3.1.1: the window earns nothing by what was abandoned.
        assert_eq!(pair.client_path(0).unwrap().cwnd > cwnd, !forgotten, "{abandonment}");
        assert_eq!(pair.on_client(|it, _| it.buffered()), 0);
        assert!(recording.count(&SERVER, kind::SACK) > 0);
    }
}

#[test]
fn what_is_given_up_by_a_timeout_frees_its_window() {
    for (name, abandonment) in Abandonment::ALL {
        let options = options(abandonment).with(|it| it.congestion.initial_window = Some(10));
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 20)), Duplex::both(link(10, 20))]);
        // One message of six chunks, lost on the primary path, and abandoned with the first of them
        // that counts as lost.
        pair.cut(0, true);
        pair.client_send(&pattern(8000, 1), on(0, Reliability::Retransmissions(0)));
        pair.until(ms(5000), name, |pair| pair.client_path(0).unwrap().t3_expiries > 0);
        pair.cut(0, false);
        assert_eq!(pair.client_path(0).unwrap().in_flight, 0, "{name}");
        pair.client_send(&pattern(1000, 2), on(1, Reliability::Reliable));
        pair.until(ms(5000), name, |pair| !pair.server_recv().is_empty());
    }
}

#[test]
fn delayed_abandonment_keeps_the_window_growing_when_messages_expire_before_their_acknowledgement() {
    // PRCMT fig. 8 and §6.1, smaller: more is offered than fits, so that messages leave just before they expire.
    let run = |variant: PrVariant| {
        let links = [(10, 75), (15, 50)].map(|(mbit, delay)| {
            let clean = LinkModel { queue: "100p".parse().unwrap(), ..link(mbit, delay) };
            Duplex::new(LinkModel { loss: Loss::Uniform(0.005), ..clean.clone() }, clean)
        });
        let options = variant.apply(Options::classic()).with(|it| it.limits.receive_buffer = 1 << 20);
        let mut pair = Pair::connected(&options, links.to_vec());
        let reliability = Reliability::Lifetime(ms(300));
        let mut received = 0;
        for n in 0..4000 {
            pair.on_client(|it, now| (0..3).try_for_each(|_| it.send(now, &pattern(1400, n), on(0, reliability))))
                .unwrap();
            pair.run(ms(2));
            received += pair.server_recv().len();
        }
        let stats = pair.on_client(|it, _| it.stats());
        println!("{variant}: {received} received, {} abandoned in flight", stats.abandoned_sent);
        received as f64
    };
    assert!(run(PrVariant::PrSctpF) > 1.1 * run(PrVariant::PrSctp));
    assert!(run(PrVariant::PrCmt) > 1.1 * run(PrVariant::PrCmtF));
}

#[test]
fn the_variants_are_made_of_three_choices() {
    let rows: Vec<String> = PrVariant::ALL
        .iter()
        .map(|(name, variant)| {
            assert_eq!((name.parse(), variant.to_string().as_str()), (Ok(*variant), *name));
            let options = variant.apply(Options::default());
            let concurrent = options.paths.concurrent;
            let (abandonment, stream_order) = (options.papers.abandonment, options.queue.stream_order);
            let lifetimes = variant.is_partially_reliable();
            format!("{name}: concurrent {concurrent}, lifetimes {lifetimes}, {abandonment}, {stream_order}")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "pr-sctp: concurrent false, lifetimes true, immediate-counted, fcfs",
            "pr-sctpf: concurrent false, lifetimes true, delayed, fcfs",
            "cmt: concurrent true, lifetimes false, delayed, fcfs",
            "pr-cmtf: concurrent true, lifetimes true, immediate-counted, fcfs",
            "pr-cmt: concurrent true, lifetimes true, delayed, priority",
        ]
    );
}

#[test]
fn only_with_priorities_do_important_frames_overtake() {
    for (variant, overtakes) in [(PrVariant::PrCmt, true), (PrVariant::PrCmtF, false)] {
        let mut pair = Pair::connected(&variant.apply(Options::classic()), vec![Duplex::both(link(1, 10))]);
        pair.on_client(|it, _| it.set_priority(1, Priority::new(0)));
        pair.on_client(|it, now| {
            (0..20).try_for_each(|n| it.send(now, &pattern(1400, n), SendOptions::default()))?;
            it.send(now, &pattern(1400, 99), SendOptions { stream: 1, ..SendOptions::default() })
        })
        .unwrap();
        pair.run(ms(3000));
        let place = pair.server_recv().iter().position(|(info, _)| info.stream == 1).unwrap();
        assert_eq!(place < 8, overtakes, "{variant}: arrived as number {place}");
    }
}
