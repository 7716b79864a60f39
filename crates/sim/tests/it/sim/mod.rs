//! The simulator seen from outside: links alone, networks of tiny machines, and what holds for all of them.

mod links;
mod networks;
mod properties;
mod queues;
mod topologies;

use braidcast_core::{Ecn, Instant, Rng};
use braidcast_sim::link::{Link, LinkModel, LinkStats};

const fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Offers packets of these sizes at these times, numbered from 0, and polls whenever the link asks for it. Gives
/// what arrived and when.
fn carry(model: LinkModel, seed: u64, offers: &[(Instant, usize)]) -> (Vec<(Instant, usize)>, LinkStats) {
    let mut link = Link::new(model, Rng::from_seed(seed));
    let mut arrivals = Vec::new();
    let mut poll_until = |link: &mut Link<usize>, limit| {
        while let Some(at) = link.poll_timeout().filter(|at| *at <= limit) {
            arrivals.extend(core::iter::from_fn(|| link.poll(at)).map(|number| (at, number)));
        }
    };
    for (number, &(at, len)) in offers.iter().enumerate() {
        poll_until(&mut link, at);
        link.offer(at, len, Ecn::Ect0, number);
    }
    poll_until(&mut link, Instant::from_nanos(u64::MAX - 1));
    (arrivals, link.stats())
}

/// `count` packets of `len` bytes, one every `micros` microseconds from time zero on.
fn steady(count: u64, len: usize, micros: u64) -> Vec<(Instant, usize)> {
    (0..count).map(|i| (Instant::from_micros(i * micros), len)).collect()
}
