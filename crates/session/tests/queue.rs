//! A live stream that is more than the network carries: does a send queue choose better than the priorities of streams?

mod common;

use braidcast_media::Kind;
use braidcast_sctp::{Method, Options, QueueScope};
use braidcast_session::{ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use common::*;
use std::collections::BTreeSet;

const KINDS: [Kind; 5] = [Kind::Tables, Kind::Audio, Kind::I, Kind::P, Kind::B];

/// Links of so many kbit/s, ms and share of loss, which queue 30 packets. The camera makes 1.4 Mbit/s.
fn links(links: [(u64, u64, f64); 2]) -> [LinkModel; 2] {
    links.map(|(kbit, delay, loss)| LinkModel {
        queue: "30p".parse().unwrap(),
        loss: Loss::Uniform(loss),
        ..LinkModel::wire(kbit * 1000, ms(delay))
    })
}

/// The share of units on time, kind by kind, and of pictures that can be shown, as all that they lean on came too.
fn shares(queue: Option<(Method, QueueScope)>, links: &[LinkModel]) -> [f64; 6] {
    let sctp = Options {
        queue: queue.map(|(method, _)| method),
        queue_scope: queue.map_or_else(QueueScope::default, |(_, scope)| scope),
        ..Options::live()
    };
    let units = camera(20);
    let mut scene = Scene::with(sctp, SenderOptions::default(), ReceiverOptions::default(), units.clone(), links);
    scene.run_to_end(ms(60_000));
    let came: BTreeSet<u64> = indexes(&scene.sink().bytes).into_iter().collect();
    let mut pictures: Vec<_> =
        units.iter().map(|(_, unit)| unit).filter(|unit| matches!(unit.kind, Kind::I | Kind::P | Kind::B)).collect();
    pictures.sort_by_key(|unit| unit.first_captured);
    let (mut shown, mut lean_on) = (0, false);
    for unit in &pictures {
        let whole = unit.packets().all(|(index, _)| came.contains(&index));
        let good = whole && (lean_on || unit.kind == Kind::I);
        if unit.kind != Kind::B {
            lean_on = good;
        }
        shown += usize::from(good);
    }
    let [a, b, c, d, e] = KINDS.map(|kind| scene.sink().kind(kind).on_time_share.unwrap_or_default());
    [a, b, c, d, e, shown as f64 / pictures.len() as f64]
}

#[test]
fn measure() {
    for (name, links) in [
        ("congested", links([(600, 15, 0.0), (500, 40, 0.0)])),
        ("unlike", links([(800, 15, 0.0), (500, 150, 0.0)])),
        ("very unlike", links([(600, 15, 0.0), (1000, 300, 0.0)])),
        ("lossy", links([(800, 15, 0.02), (500, 40, 0.01)])),
        ("nearly", links([(900, 15, 0.01), (600, 60, 0.01)])),
    ] {
        let tell = |what: String, shares: [f64; 6]| println!("{name:12} {what:22} {shares:.3?}");
        tell("none".into(), shares(None, &links));
        for method in [
            Method::FifoTimed,
            Method::Sbpn1,
            Method::Sbpn2,
            Method::LifoPriority,
            Method::Ring,
            Method::RingSbpn2,
            Method::NeverDiscard,
            Method::Weighted,
        ] {
            for scope in [QueueScope::Alone, QueueScope::Under] {
                tell(format!("{method} {scope}"), shares(Some((method, scope)), &links));
            }
        }
    }
}

#[test]
fn look() {
    let links = links([(900, 15, 0.01), (600, 60, 0.01)]);
    let sctp = Options { queue: Some(Method::RingSbpn2), ..Options::live() };
    let mut scene = Scene::with(sctp, SenderOptions::default(), ReceiverOptions::default(), camera(20), &links);
    for s in 0..23 {
        scene.net.run_for(ms(1000));
        let source = scene.source();
        let endpoint = source.sender.endpoint();
        let id = endpoint.associations().next().unwrap();
        let association = endpoint.association(id).unwrap();
        for path in association.paths() {
            println!("{s} path {} srtt {:?} min {:?} cwnd {} in flight {} lost {} sent {}", path.id, path.srtt, path.min_rtt, path.cwnd, path.in_flight, path.lost_chunks, path.sent_bytes);
        }
        println!("waiting {} buffered {} {:?}", association.waiting(), association.buffered(), association.stats().expired);
    }
    scene.run_to_end(ms(60_000));
    for k in scene.sink().report().kinds { println!("SINK {k:?}"); }
    for k in scene.source().sender.report(scene.net.now()).kinds { println!("SOURCE {k:?}"); }
}
