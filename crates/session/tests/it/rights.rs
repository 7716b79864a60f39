//! What belongs to a key: a place, a turn, a stream that broke. Names and contents others know too.

use crate::common::keyed::{key, keyed};
use crate::common::*;
use braidcast_core::{Instant, Rng};
use braidcast_session::{Admission, Event, Identity, ReceiverOptions, SenderOptions};
use braidcast_sim::{Duplex, LinkModel, NodeId};

const FILE: Identity = Identity([9; 16]);

fn link() -> LinkModel {
    LinkModel::wire(20_000_000, ms(15))
}

/// One more sender, from `address`.
fn join(scene: &mut Scene, address: &str, options: &SenderOptions, units: Units) -> NodeId {
    let seed = u64::from(address.bytes().fold(7, |sum: u32, byte| sum.wrapping_mul(31) + u32::from(byte)));
    let node = source(scene.net.now(), &Rng::from_seed(seed), options, units, 1);
    let id = scene.net.add(node, [address]);
    scene.net.connect((id, 0), (scene.sink, 0), Duplex::both(link()));
    id
}

fn source_at(scene: &Scene, id: NodeId) -> &Source {
    match scene.net.node(id) {
        Node::Source(source) => source,
        Node::Sink(_) => unreachable!("a source"),
    }
}

/// Names and numbers of keys of the streams that were offered.
fn offered(scene: &Scene) -> Vec<(String, Option<u8>)> {
    let number = |offer: &braidcast_session::Offer| (1..9).find(|own| offer.key == Some(key(*own)));
    let one = |event: &Event| match event {
        Event::Offered(offer) => Some((offer.name.clone(), number(offer))),
        _ => None,
    };
    scene.sink().events.iter().filter_map(one).collect()
}

#[test]
fn a_stream_that_broke_goes_on_for_its_key_alone() {
    for (own, goes_on) in [(1, true), (3, false)] {
        let send = |own| {
            SenderOptions::reliable().with(|it| {
                it.identity = Some(FILE);
                it.security = keyed(own);
            })
        };
        let receive = ReceiverOptions::default().with(|it| it.security = keyed(2));
        let mut scene = Scene::new(send(1), receive, file(600).1, &[link()]);
        scene.net.run_for(ms(1500));
        let there = scene.sink().bytes.len();
        assert!(there > 100_000, "{there}");
        let (to, back) = scene.links[0];
        scene.net.set_down(to, true);
        scene.net.set_down(back, true);
        scene.net.run_for(ms(6000));
        // The same file by name, size and beginning, from somewhere else.
        join(&mut scene, "10.7.0.1:9899", &send(own), file(600).1);
        scene.net.run_for(ms(6000));
        let offered = offered(&scene);
        let more = scene.sink().bytes.len();
        assert!(more > there + 100_000, "{own}: {there} and {more} bytes; {:?}", scene.sink().events);
        let expected: &[u8] = if goes_on { &[1] } else { &[1, 3] };
        let keys: Vec<u8> = offered.iter().filter_map(|(_, own)| *own).collect();
        assert_eq!(keys, expected, "{own}: {:?}", scene.sink().events);
    }
}

#[test]
fn who_takes_all_places_in_line_keeps_nobody_else_out() {
    let send = |own, name: &str| {
        SenderOptions::default().with(|it| {
            it.name = name.into();
            it.security = keyed(own);
        })
    };
    let admission = Admission::Named(vec!["mallory".into(), "alice".into()]);
    let receive = ReceiverOptions::default().with(|it| {
        it.keep = true;
        it.security = keyed(2);
        it.admission = admission;
    });
    let mut scene = Scene::new(send(3, "mallory"), receive, camera(20), &[link()]);
    scene.net.run_for(ms(1000));
    let crowd: Vec<_> =
        (0..40).map(|n| join(&mut scene, &format!("10.3.{n}.1:9899"), &send(3, "mallory"), camera(20))).collect();
    scene.net.run_for(ms(5000));
    let waiting = crowd.iter().filter(|id| source_at(&scene, **id).events.contains(&Event::InLine)).count();
    assert!((1..=4).contains(&waiting), "{waiting} wait for one name");
    let begun = scene.net.now();
    join(&mut scene, "10.5.0.1:9899", &send(1, "alice"), camera(20));
    let sink = scene.sink;
    let is_alice = |event: &Event| matches!(event, Event::Offered(offer) if offer.name == "alice");
    let let_in = scene.net.wait_for(begun + ms(2000), |net| match net.node(sink) {
        Node::Sink(sink) => sink.events.iter().any(is_alice),
        Node::Source(_) => false,
    });
    assert!(let_in, "{:?}", offered(&scene));
    assert_eq!(offered(&scene), [("mallory".into(), Some(3)), ("alice".into(), Some(1))]);
    // And the stream that was there is untouched.
    scene.net.run_for(ms(1000));
    let last = scene.sink().outputs.last().map_or(Instant::ZERO, |(at, _)| *at);
    assert!(scene.net.now().since(last) < ms(200));
}
