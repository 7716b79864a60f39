//! SCReAM v2, self-clocked rate adaptation for multimedia
//! (draft-johansson-ccwg-rfc8298bis-screamv2-06): its network congestion control. Section titles in
//! quotes are the draft's.
//!
//! What differs, since the coder behind this one does not change its rate: no more is in flight
//! than the reference window (the draft lets a multiple of it out, and advises less for such
//! coders), and the window grows only while it is full (RFC 7661 §1). A loss within a window that
//! was reduced already does not reduce it again (RFC 5681 §3.2). A timeout, which the draft does
//! not know, leaves a packet until something is acknowledged. There is no L4S: marks are answered
//! as those of classic ECN.

use super::{Acked, Conditions, Controller, Setup, Signal};
use braidcast_core::Instant;
use core::time::Duration;

/// How long packets may stand in queues, s (`QDELAY_TARGET_LO`), and beside others that fill them (`QDELAY_TARGET_HI`).
const TARGET_LOW: f64 = 0.06;
const TARGET_HIGH: f64 = 0.4;
/// What a loss and a mark leave of the window (`BETA_LOSS`, `BETA_ECN`).
const AFTER_LOSS: f64 = 0.7;
const AFTER_MARK: f64 = 0.8;
/// Weight of a longer queue in the average (`QDELAY_AVG_G`).
const AVERAGE_GAIN: f64 = 0.25;
/// So many round trips after congestion the window grows with care (`POST_CONGESTION_DELAY_RTT`).
const CAREFUL_ROUNDS: f64 = 100.0;
/// Share of the window by which it grows in a round trip beside its packet (`MUL_INCREASE_FACTOR`).
const MULTIPLICATIVE: f64 = 0.02;
/// It reacts to queues so often, on longer paths too (`VIRTUAL_RTT`).
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Share of the rounds with losses from which on others fill the queue, perhaps.
const OTHERS_LOSE: f64 = 0.002;
/// Weight of a round in that share.
const LOSS_GAIN: f64 = 0.01;
/// Pacing over what the window makes in a round trip (`PACKET_PACING_HEADROOM`).
const PACING: f64 = 1.5;

/// See the page of this file.
#[derive(Clone, Debug)]
pub(super) struct Scream {
    /// The reference window, bytes.
    window: f64,
    mtu: usize,
    /// The window when congestion last began (`ref_wnd_i`), and since when that is.
    inflection: f64,
    inflection_at: Instant,
    /// How long packets may stand in queues, s.
    target: f64,
    /// How long they do, s: quick to fall, slow to rise; and when that was averaged.
    queue: f64,
    queue_at: Instant,
    congested_at: Option<Instant>,
    reacted_at: Instant,
    /// Queues of the latest rounds, in units of [`TARGET_LOW`].
    rounds: Rounds,
    /// Share of the rounds in which something was lost.
    loss_events: f64,
    lost: bool,
    /// Nothing was acknowledged since the timer expired.
    timed_out: bool,
}

/// The values of the latest rounds.
#[derive(Clone, Debug)]
struct Rounds {
    values: [f32; Self::LONG],
    len: usize,
    next: usize,
}

impl Rounds {
    /// Over so many the variance is taken, and over so many the mean.
    const LONG: usize = 200;
    const SHORT: usize = 50;

    const fn new() -> Self {
        Self { values: [0.0; Self::LONG], len: 0, next: 0 }
    }

    fn add(&mut self, value: f64) {
        self.values[self.next] = value as f32;
        self.next = (self.next + 1) % Self::LONG;
        self.len = (self.len + 1).min(Self::LONG);
    }

    /// The latest `count`.
    fn latest(&self, count: usize) -> impl Iterator<Item = f64> + Clone {
        let count = count.min(self.len);
        (1..=count).map(|n| f64::from(self.values[(self.next + Self::LONG - n) % Self::LONG]))
    }

    fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
        values.clone().sum::<f64>() / values.count().max(1) as f64
    }

    fn variance(&self) -> f64 {
        let mean = Self::mean(self.latest(Self::LONG));
        Self::mean(self.latest(Self::LONG).map(|it| (it - mean).powi(2)))
    }
}

impl Scream {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            window: setup.initial.max(setup.mtu) as f64,
            mtu: setup.mtu,
            inflection: 1.0,
            inflection_at: Instant::ZERO,
            target: TARGET_LOW,
            queue: 0.0,
            queue_at: Instant::ZERO,
            congested_at: None,
            reacted_at: Instant::ZERO,
            rounds: Rounds::new(),
            loss_events: 0.0,
            lost: false,
            timed_out: false,
        }
    }

    /// A packet as a share of the window.
    fn packet_share(&self) -> f64 {
        (self.mtu as f64 / self.window).min(1.0)
    }

    /// How far the window is from where congestion last began, 0.1 to 1.
    fn distance(&self) -> f64 {
        ((self.window - self.inflection) / self.inflection * 8.0).powi(2).clamp(0.1, 1.0)
    }

    /// "Reference Window Reduction": `kept` of the window is left.
    fn reduce(&mut self, path: &Conditions<'_>, kept: f64) {
        let srtt = path.srtt.unwrap_or_default();
        if path.now - self.inflection_at > 10 * srtt {
            (self.inflection, self.inflection_at) = (self.window, path.now);
        }
        let least = (2 * path.mtu) as f64;
        self.window = (self.window * kept).max(least.min(self.window));
        self.reacted_at = path.now;
    }

    /// "Detecting Increased Queue Delay": as if a share of the packets had been marked.
    fn heed_queue(&mut self, path: &Conditions<'_>, queue: f64) {
        if queue <= self.target / 2.0 {
            return;
        }
        let over = ((self.queue - self.target / 2.0) / (self.target / 2.0)).max(0.0);
        let marked = (2.0 * 2.0 * self.packet_share() * over).min(1.0);
        let back_off = marked / 2.0 * (1.0 - self.packet_share()).max(0.5);
        self.reduce(path, 1.0 - back_off);
    }

    /// "Competing Flows Compensation".
    fn adjust_target(&mut self, queue: f64) {
        self.rounds.add(queue / TARGET_LOW);
        self.loss_events += LOSS_GAIN * (f64::from(u8::from(self.lost)) - self.loss_events);
        self.lost = false;
        let variance = self.rounds.variance();
        let wanted = TARGET_LOW * (Rounds::mean(self.rounds.latest(Rounds::SHORT)) + variance.sqrt());
        self.target = if self.loss_events > OTHERS_LOSE {
            1.5 * wanted
        } else if variance < 0.2 {
            wanted
        } else if wanted < TARGET_LOW {
            wanted.max(self.target / 2.0)
        } else {
            0.9 * self.target
        };
        self.target = self.target.clamp(TARGET_LOW, TARGET_HIGH);
    }

    /// "Reference Window Increase" by `bytes` that were acknowledged.
    fn grow(&mut self, path: &Conditions<'_>, bytes: usize) {
        let srtt = path.srtt.unwrap_or_default();
        let share = self.packet_share();
        let near = (srtt.as_secs_f64() / VIRTUAL_RTT.as_secs_f64()).min(1.0);
        let quiet = (1.0 - self.queue / (self.target / 4.0)).max(0.1);
        let additive = bytes as f64 * share * near * near * self.distance().max(0.25) * (1.0 - share).max(0.5) * quiet;
        let since = self.congested_at.map_or(f64::INFINITY, |at| (path.now - at).as_secs_f64());
        let careful = (since / (CAREFUL_ROUNDS * srtt.max(VIRTUAL_RTT).as_secs_f64())).min(1.0);
        let multiplicative = 1.0 + MULTIPLICATIVE / share * careful * self.distance();
        // Not more than in slow start.
        self.window += (additive * multiplicative).min(bytes as f64);
    }
}

impl Controller for Scream {
    fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        if acked.bytes == 0 {
            return;
        }
        self.timed_out &= !acked.was_full;
        let queue = acked.rtt.map_or(path.queueing, |rtt| rtt.saturating_sub(path.base_rtt)).as_secs_f64();
        let often = path.srtt.unwrap_or_default().min(VIRTUAL_RTT);
        if path.now - self.queue_at >= often {
            self.queue = if queue < self.queue { queue } else { self.queue + AVERAGE_GAIN * (queue - self.queue) };
            self.queue_at = path.now;
        }
        if acked.ends_round {
            self.adjust_target(queue);
        }
        if path.now - self.reacted_at >= often {
            self.heed_queue(path, queue);
        }
        if acked.was_full {
            self.grow(path, acked.bytes);
        }
    }

    fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal) {
        self.lost = true;
        if lost.new_round {
            self.congested_at = Some(path.now);
            self.reduce(path, AFTER_LOSS);
        }
    }

    fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal) {
        if marked.new_round {
            self.congested_at = Some(path.now);
            self.reduce(path, AFTER_MARK);
        }
    }

    fn on_timeout(&mut self, path: &Conditions<'_>) {
        self.lost = true;
        self.congested_at = Some(path.now);
        self.timed_out = true;
    }

    fn on_spurious_timeout(&mut self) {
        self.timed_out = false;
    }

    fn on_idle(&mut self, _: &Conditions<'_>, _: usize) {}

    /// Queues are its own business.
    fn settle(&mut self, _: &Conditions<'_>, _: usize) {}

    fn window(&self) -> usize {
        let window = (self.window as usize).max(self.mtu);
        if self.timed_out { window.min(self.mtu) } else { window }
    }

    fn ssthresh(&self) -> usize {
        self.window()
    }

    fn pacing_rate(&self, srtt: Option<Duration>) -> Option<f64> {
        Some(PACING * self.window() as f64 / srtt?.as_secs_f64().max(1e-6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standard;

    const MTU: usize = 1000;

    /// A path of `rate` bytes in a second that takes 40 ms, with a queue that holds `deepest`: how
    /// much was delivered in each of `seconds`, and how long packets stood in the queue at the end
    /// of each.
    fn run(rate: impl Fn(usize) -> f64, lose_each: usize, seconds: usize) -> Vec<(f64, Duration)> {
        let mut scream = Scream::new(&Setup { initial: 4 * MTU, ..Setup::new(Standard::RFC_9260, MTU) });
        let (base, mut queued, mut packets) = (Duration::from_millis(40), 0.0_f64, 0);
        let mut seen = Vec::new();
        for second in 0..seconds {
            let (rate, mut now, mut delivered) = (rate(second), 0.0, 0.0);
            while now < 1.0 {
                // A window in a round trip: what the path does not take meanwhile stands in the queue.
                let rtt = base.as_secs_f64() + queued / rate;
                let window = scream.window() as f64;
                queued = (window - rate * base.as_secs_f64()).max(0.0);
                for n in 0..scream.window() / MTU {
                    let at = second as f64 + now + rtt * (n as f64 / (window / MTU as f64));
                    let path = Conditions {
                        now: Instant::ZERO + Duration::from_secs_f64(at),
                        mtu: MTU,
                        in_flight: scream.window(),
                        srtt: Some(Duration::from_secs_f64(rtt)),
                        base_rtt: base,
                        ..Conditions::default()
                    };
                    packets += 1;
                    if lose_each > 0 && packets % lose_each == 0 {
                        scream.on_lost(&path, &Signal { bytes: MTU, new_round: true });
                        continue;
                    }
                    let rtt = Some(Duration::from_secs_f64(rtt));
                    let acked = Acked { bytes: MTU, was_full: true, rtt, ends_round: n == 0, ..Acked::default() };
                    scream.on_acked(&path, &acked);
                }
                delivered += window.min(rate * rtt);
                now += rtt;
            }
            seen.push((delivered / now, Duration::from_secs_f64(queued / rate)));
        }
        seen
    }

    #[test]
    fn it_fills_a_path_and_keeps_the_queue_near_its_target() {
        let seen = run(|_| 500_000.0, 0, 30);
        let (delivered, queue) = seen[29];
        assert!(delivered >= 0.95 * 500_000.0, "{seen:?}");
        assert!(queue <= Duration::from_millis(60), "{seen:?}");
    }

    #[test]
    fn a_rate_that_falls_to_a_fifth_is_followed_within_a_second() {
        let seen = run(|second| if second < 20 { 500_000.0 } else { 100_000.0 }, 0, 23);
        assert!(seen[22].1 <= Duration::from_millis(120), "{seen:?}");
    }

    #[test]
    fn losses_cost_it_rate() {
        let mean = |lose_each| run(|_| 500_000.0, lose_each, 30)[10..].iter().map(|it| it.0).sum::<f64>() / 20.0;
        assert!(mean(20) < 0.7 * mean(0), "5 % of loss: {} of {}", mean(20), mean(0));
    }
}
