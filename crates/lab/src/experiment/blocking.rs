//! How long a packet of the slower path holds up the receiver: the model of THESIS eq. 6.2 and 6.3 beside a transfer.

use super::stalls::stalls;
use super::{Experiment, Measures};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "blocking",
    text: "how long the receiver holds data that waits for the slower path, beside the model's lower bound",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// What the model knows of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
struct ModelPath {
    /// C_k, bit/s.
    rate: f64,
    /// D_n: propagation one way.
    delay: Duration,
}

/// When the `n`-th packet of `bytes` over `path` arrives, from the time at which all paths began: it has left at
/// a_n = n·L / C_k (THESIS eq. 6.2) and arrives D_n later.
fn arrival(path: ModelPath, n: u32, bytes: usize) -> Duration {
    Duration::from_secs_f64(f64::from(n) * bytes as f64 * 8.0 / path.rate) + path.delay
}

/// T_block of packets that arrive at these times, in the order of their TSNs: the longest that one
/// of them waits for those before it (THESIS eq. 6.3).
fn blocking(arrivals: impl IntoIterator<Item = Duration>) -> Duration {
    let mut latest = Duration::ZERO;
    let wait = |arrival: Duration| {
        latest = latest.max(arrival);
        latest - arrival
    };
    arrivals.into_iter().map(wait).max().unwrap_or_default()
}

/// The minimum of T_block with these paths: one packet on each leaves at the same time, with queues
/// empty, and that of the slower path has the lower TSN. Later packets of the faster path come
/// later, so they wait less.
fn least_blocking(paths: &[ModelPath], bytes: usize) -> Duration {
    let mut arrivals: Vec<_> = paths.iter().map(|&path| arrival(path, 1, bytes)).collect();
    arrivals.sort_unstable_by(|a, b| b.cmp(a));
    blocking(arrivals)
}

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let flow = &run.point.flows[0];
    let model = |links: &Vec<usize>| {
        let links = links.iter().map(|&link| &run.point.links[link].there);
        let rates = links.clone().filter_map(|link| link.rate.mean_bits_per_second());
        let rate = rates.min().map_or(f64::INFINITY, |rate| rate as f64);
        ModelPath { rate, delay: links.map(|link| link.delay).sum() }
    };
    let paths: Vec<_> = flow.paths.iter().map(model).collect();
    measures.metric(
        "model",
        "ms",
        ms(least_blocking(&paths, flow.sctp.paths.base_mtu + run.point.network.wrap.bytes())),
    );
    let Some(receiver) = done.receiver(&flow.name).and_then(Host::sctp_receiver) else { return measures };
    let stalls: Vec<_> = stalls(&receiver.delivered.log).map(ms).collect();
    let mean = |values: &[f64]| values.iter().fold(0.0, |sum, it| sum + it) / values.len().max(1) as f64;
    let blocked = mean(&stalls);
    let variance = mean(&stalls.iter().map(|it| (it - blocked).powi(2)).collect::<Vec<_>>());
    measures.metric("blocking", "ms", blocked);
    measures.metric("deviation of blocking", "ms", variance.sqrt());
    measures.metric("longest blocking", "ms", stalls.iter().copied().fold(0.0, f64::max));
    measures.metric("stalls", "1/s", stalls.len() as f64 / receiver.delivered.seconds);
    measures.metric(
        "time blocked",
        "%",
        stalls.iter().fold(0.0, |sum, it| sum + it) / receiver.delivered.seconds / 10.0,
    );
    measures.metric("goodput", "kbit/s", receiver.delivered.goodput() / 1e3);
    measures
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn path(kilobits: u32, ms: u64) -> ModelPath {
        ModelPath { rate: kilobits as f64 * 1e3, delay: Duration::from_millis(ms) }
    }

    #[test]
    fn a_packet_waits_for_the_latest_of_those_before_it() {
        let ms = |all: &[u64]| all.iter().map(|&it| Duration::from_millis(it)).collect::<Vec<_>>();
        for (arrivals, longest) in
            [(vec![], 0), (vec![1, 2, 3], 0), (vec![5, 2, 3], 3), (vec![5, 4, 90, 80, 60, 95], 30)]
        {
            assert_eq!(blocking(ms(&arrivals)), Duration::from_millis(longest), "{arrivals:?}");
        }
    }

    #[test]
    fn the_bound_is_the_difference_of_delay_and_of_packet_time() {
        // THESIS §6.2.1.2: RTT 20 and 100 ms, 1000 and 400 kbit/s, 1460 bytes: 40 ms of delay,
        // 29.2 - 11.68 ms of packet time.
        let bound = |slow| least_blocking(&[path(1000, 10), slow], 1460).as_secs_f64() * 1e3;
        assert!((bound(path(400, 50)) - 57.52).abs() < 1e-6);
        assert_eq!(bound(path(1000, 10)), 0.0);
        assert!((bound(path(1000, 250)) - 240.0).abs() < 1e-6);
        assert!((bound(path(100, 10)) - 105.12).abs() < 1e-6);
    }
}
