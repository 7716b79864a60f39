//! Peers that acknowledge what they never got are found out; honest ones lose nothing by that.

use crate::common::hand::Hand;
use crate::common::{Pair, SERVER, link, ms, packet, tag, transfer};
use braidcast_core::Machine;
use braidcast_sctp::wire::chunk::{Sack, kind};
use braidcast_sctp::wire::{Chunk, Entries, Packet};
use braidcast_sctp::{CloseReason, Event, Options, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;

fn wary() -> Options {
    Options::prompt().with(|options| options.limits.skip_tsns = true)
}

/// The TSNs that a packet carries data under.
fn tsns(bytes: &[u8]) -> Vec<u32> {
    let parsed = Packet::parse(bytes).unwrap();
    let tsn = |chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        Chunk::IData(data) => Some(data.tsn),
        _ => None,
    };
    parsed.chunks().flatten().filter_map(|raw| Chunk::parse(raw).ok()).filter_map(tsn).collect()
}

/// How an association ends, and after how many chunks, if `lie` says for each packet with data
/// which TSN the peer acknowledges.
fn ends(options: &Options, mut lie: impl FnMut(&[u32]) -> Option<u32>) -> (Vec<Event>, usize) {
    let mut hand = Hand::new(options);
    let id = hand.connect();
    let init = hand.client_sends().remove(0);
    hand.server_gets(0, &init);
    let init_ack = hand.server_sends().remove(0);
    let to_client = tag(&init_ack);
    hand.client_gets(0, &init_ack);
    let echo = hand.client_sends();
    echo.iter().for_each(|packet| hand.server_gets(0, packet));
    hand.server_sends().iter().for_each(|packet| hand.client_gets(0, packet));
    for _ in 0..3000 {
        hand.client.association_mut(id).unwrap().send(hand.now, &[7; 1000], SendOptions::default()).unwrap();
    }
    let mut all = Vec::new();
    for _ in 0..100 {
        hand.now += ms(5);
        for sent in hand.client_sends() {
            all.extend(tsns(&sent));
        }
        let Some(cumulative_tsn) = lie(&all) else { continue };
        let sack = Sack { cumulative_tsn, a_rwnd: 4 << 20, flags: 0, gaps: Entries::EMPTY, duplicates: Entries::EMPTY };
        hand.client_gets(0, &packet(to_client, &[Chunk::Sack(sack)]));
        while hand.client.poll_timeout().is_some_and(|at| at <= hand.now) {
            hand.client.handle_timeout(hand.now);
        }
    }
    (hand.client_events(), all.len())
}

fn is_found_out(events: &[Event]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, Event::Closed(CloseReason::Violation(what)) if what.contains("never sent")))
}

#[test]
fn who_acknowledges_whatever_was_sent_is_found_out_within_a_few_packets() {
    let (events, sent) = ends(&wary(), |sent| sent.last().copied());
    assert!(is_found_out(&events), "{events:?}");
    assert!(sent < 100, "{sent} chunks");
    let (events, sent) = ends(&Options::prompt(), |sent| sent.last().copied());
    assert!(!is_found_out(&events) && sent > 1000, "nobody looked: {sent} chunks, {events:?}");
}

#[test]
fn who_acknowledges_what_is_yet_to_be_sent_is_found_out_at_once() {
    let (events, sent) = ends(&wary(), |sent| sent.last().map(|tsn| tsn.wrapping_add(64)));
    assert!(is_found_out(&events), "{events:?}");
    assert!(sent < 20, "{sent} chunks");
}

/// Bulk over a network as `options` have it: how long it takes, and FORWARD-TSNs sent.
fn honest(options: &Options, links: &[LinkModel]) -> (f64, u64) {
    let mut pair = Pair::new(options, links.iter().map(|link| Duplex::both(link.clone())).collect());
    pair.connect();
    let recording = pair.record();
    let from = pair.now();
    transfer(&mut pair, 4_000_000, 1200);
    let took = pair.now().since(from).as_secs_f64();
    pair.run(ms(2000));
    let closed = pair.client_events.iter().any(|event| matches!(event, Event::Closed(_)));
    assert!(!closed, "{:?}", pair.client_events);
    assert_eq!(pair.on_client(|association, _| association.buffered()), 0, "all is acknowledged");
    let forwards = recording.all().into_iter().filter(|it| !it.is_from(&SERVER)).flat_map(|it| it.kinds());
    (took, forwards.filter(|&it| it == kind::FORWARD_TSN || it == kind::I_FORWARD_TSN).count() as u64)
}

#[test]
fn an_honest_peer_is_as_fast() {
    let lossy = LinkModel { loss: "2%".parse().unwrap(), ..link(20, 15) };
    for links in [vec![link(20, 15)], vec![lossy.clone()], vec![link(10, 5), lossy]] {
        for interleaving in [true, false] {
            let options = wary().with(|options| options.interleaving = interleaving);
            let plain = options.clone().with(|options| options.limits.skip_tsns = false);
            let ((with, told), (without, _)) = (honest(&options, &links), honest(&plain, &links));
            assert!(told > 0, "nothing was left out");
            assert!(with < without * 1.05 + 0.05, "{with} s instead of {without}");
        }
    }
}
