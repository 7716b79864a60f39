//! A path behind a policer: a token bucket without a queue, as operators limit what a customer sends. It drops at once
//! what comes faster than its rate, and no packet is late, so that only losses tell of it. After the long-term sampling
//! of BBR (draft-cardwell-iccrg-bbr-congestion-control-00 §4.1.1), with one more step: radio links lose packets at a
//! constant rate too, but not fewer when less is sent.

use super::{Acked, Conditions, Policing};
use braidcast_core::Instant;
use core::time::Duration;

/// Losses and rates are measured over this number of rounds at least, this time, for packets come in frames, and this
/// number of packets, of which one is 2.5 %.
const ROUNDS: u32 = 3;
const TIME: Duration = Duration::from_millis(200);
const PACKETS: u64 = 40;
/// An interval that has not ended with a loss after this number of rounds and this time is not of an empty bucket, and
/// a trial has failed.
const MOST_ROUNDS: u32 = 16;
const MOST_TIME: Duration = Duration::from_secs(2);
/// Rounds after a change of the rate until what is heard was sent after it: one until it arrives, one until what was
/// lost before is known.
const SETTLING: u32 = 2;
/// Nobody polices at less, bytes in a second (32 kbit/s): where so little passes, the link drops what is too large for
/// it or is failing, and a rate like that would hold back what it carries a moment later.
pub(super) const LEAST: f64 = 4000.0;
/// The share that a policer drops, at least and clearly, of what comes too fast: what is lost of less can be sent again
/// in time. A path that loses more than the second has failed.
const LOSSY: (f64, f64) = (0.15, 0.8);
/// An empty bucket drops in this share of the rounds, at least; radio loses many packets in one and none in the next.
const EVERYWHERE: f64 = 2.0 / 3.0;
/// The rates of two intervals are the same if they differ by no more than this share: twice what BBR allows, as frames
/// do not fill the intervals evenly.
const SAME: f64 = 0.25;
/// For the trial, of what passed, so that the bucket gains a little whatever was measured.
const TRIAL: f64 = 0.85;
/// A policer loses this share of what it lost, or less, of no more than it lets through. Chance does so one time in
/// 5000 where so many packets would have been lost, and seldom where so many [clusters](Clustering) would have been.
const FEWER: f64 = 0.25;
const EXPECTED: f64 = 15.0;
const CLUSTERS: f64 = 6.0;
/// Weight of a round in what is known of clusters.
const CLUSTER_GAIN: f64 = 1.0 / 32.0;
/// More than the path loses anyway, and its spread, by this share: the bucket drops.
const EXCESS: f64 = 0.02;
/// The share that the path loses anyway is no more than this beyond what it lost in the trial.
const DOUBT: f64 = 0.05;
/// By this share more is tried after an interval without that, twice as much after each further one, and at most; most
/// at once after the trial, whose rate is a low guess.
const FIRST_STEP: f64 = 0.01;
const LARGEST_STEP: f64 = 0.25;
/// What passed in the trial passes again: the rate does not become less than this share of it.
const FLOOR: f64 = 0.9;
/// The rate falls by no more than this share at once.
const MOST_FALL: f64 = 0.1;
/// No policer is at work if the mean loss, an interval weighing as much as this, is still such a share of what it was.
const MEAN_GAIN: f64 = 0.125;
const STILL: f64 = 0.4;
/// The policer has gone if this multiple of what it let through passes.
const GONE: f64 = 4.0;
/// A path that lost as much of less is not tried again for this long, and twice as long each time, up to the second.
const TRUST: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(128));

/// How unevenly losses come: the variance of what a round loses, less its share of what is lost, for each packet lost.
/// It is 1 where each packet is lost by itself, and some burst length where radio fades. As a policer drops a share
/// of what comes, it is small there, whatever frames there are.
#[derive(Clone, Copy, Debug)]
struct Clustering {
    packets: f64,
    lost: f64,
    square: f64,
    /// What the transport had counted.
    counted: (u64, u64),
}

impl Clustering {
    fn on_round(&mut self, path: &Conditions<'_>) {
        let (packets, lost) = (path.packets, path.lost_packets);
        let since = (packets.saturating_sub(self.counted.0) as f64, lost.saturating_sub(self.counted.1) as f64);
        self.counted = (packets, lost);
        self.packets += CLUSTER_GAIN * (since.0 - self.packets);
        self.lost += CLUSTER_GAIN * (since.1 - self.lost);
        let more = since.1 - self.share() * since.0;
        self.square += CLUSTER_GAIN * (more * more - self.square);
    }

    /// The share that was lost of late.
    fn share(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }

    /// Losses that come together and count as one.
    fn size(&self) -> f64 {
        if self.lost > 0.0 { (self.square / self.lost).max(1.0) } else { 1.0 }
    }
}

/// Looks for a policer, and keeps the rate just under its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policed {
    state: State,
    clustering: Clustering,
    interval: Option<Interval>,
    /// Rounds until the next one begins.
    settling: u32,
    /// Packets that were lost until the end of the last round.
    lost: u64,
    trusted_until: Instant,
    trust: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The rate at which data passed in the interval before, bytes in a second, and the share that was lost, if that
    /// was much.
    Unknown {
        before: Option<(f64, f64)>,
    },
    /// No more than `rate` is sent: is less lost than the share `lost`, once so many packets would have been?
    Trial {
        rate: f64,
        lost: f64,
        expected: f64,
    },
    Known(Bucket),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// No more is sent, bytes in a second.
    rate: f64,
    /// What passed in the trial, and when the bucket last dropped.
    tried: f64,
    dropped_at: f64,
    /// By this share more is tried next.
    step: f64,
    /// The share that the path loses whatever is sent.
    own: f64,
    most_own: f64,
    /// The share that was lost of late, and before the trial.
    mean: f64,
    before: f64,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    since: Instant,
    /// What the transport had counted.
    packets: u64,
    lost: u64,
    redundancy: u64,
    /// Rounds since, and of these with losses.
    rounds: u32,
    lossy: u32,
    /// Bytes delivered, and of these while the application had enough to send.
    delivered: usize,
    full: usize,
    /// The shortest time in queues at the end of a round.
    queueing: Duration,
}

/// How far the lost share of these `packets` is from `share` by chance: its standard deviation.
fn spread(share: f64, packets: u64) -> f64 {
    libm::sqrt(share * (1.0 - share) / packets.max(1) as f64)
}

impl Interval {
    const fn begin(path: &Conditions<'_>) -> Self {
        Self {
            since: path.now,
            packets: path.packets,
            lost: path.lost_packets,
            redundancy: path.redundancy,
            rounds: 0,
            lossy: 0,
            delivered: 0,
            full: 0,
            queueing: Duration::MAX,
        }
    }

    fn packets(&self, path: &Conditions<'_>) -> u64 {
        path.packets.saturating_sub(self.packets)
    }

    fn is_long(&self, path: &Conditions<'_>) -> bool {
        self.rounds >= ROUNDS && path.now - self.since >= TIME
    }

    fn is_too_long(&self, path: &Conditions<'_>) -> bool {
        self.rounds > MOST_ROUNDS && path.now - self.since > MOST_TIME
    }

    fn is_lossy(&self, path: &Conditions<'_>) -> bool {
        let loss = self.loss(path);
        let is_clear = loss >= LOSSY.0 + spread(loss, self.packets(path));
        is_clear && loss <= LOSSY.1 && f64::from(self.lossy) >= EVERYWHERE * f64::from(self.rounds)
    }

    fn lost(&self, path: &Conditions<'_>) -> f64 {
        path.lost_packets.saturating_sub(self.lost) as f64
    }

    /// The share that was lost.
    fn loss(&self, path: &Conditions<'_>) -> f64 {
        self.lost(path) / self.packets(path).max(1) as f64
    }

    /// Bytes of data that passed in a second.
    fn data_rate(&self, path: &Conditions<'_>) -> f64 {
        self.delivered as f64 / (path.now - self.since).as_secs_f64()
    }

    /// The same with redundancy, of which as much got lost.
    fn rate(&self, path: &Conditions<'_>) -> f64 {
        let redundancy = path.redundancy.saturating_sub(self.redundancy) as f64 * (1.0 - self.loss(path));
        self.data_rate(path) + redundancy / (path.now - self.since).as_secs_f64()
    }
}

impl Bucket {
    /// In an interval of these `packets` the share `loss` was lost; `full`: the application had enough to send in
    /// most of it. Returns `true` if the rate is another one now.
    fn on_interval(&mut self, packets: u64, loss: f64, full: bool) -> bool {
        self.mean += MEAN_GAIN * (loss - self.mean);
        if loss <= self.own + spread(self.own, packets) + EXCESS {
            // Slowly up: some of it may be the bucket's.
            self.own = (self.own + (loss - self.own) / if loss < self.own { 4.0 } else { 16.0 }).min(self.most_own);
            if full {
                self.rate *= 1.0 + self.step;
                self.step = (2.0 * self.step).min(LARGEST_STEP);
            }
            return full;
        }
        let excess = loss - self.own;
        let least = FLOOR * self.tried;
        if self.rate <= least {
            self.own = (self.own + excess / 4.0).min(self.most_own);
            return false;
        }
        // A little under the bucket's rate, so that the path's own loss shows.
        self.rate = (self.rate * (1.0 - excess.min(MOST_FALL) - EXCESS)).max(least);
        (self.dropped_at, self.step) = (self.rate, FIRST_STEP);
        true
    }
}

impl Policed {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Unknown { before: None },
            clustering: Clustering { packets: 0.0, lost: 0.0, square: 0.0, counted: (0, 0) },
            interval: None,
            settling: 0,
            lost: 0,
            trusted_until: Instant::ZERO,
            trust: TRUST.0,
        }
    }

    pub(super) const fn policing(&self) -> Policing {
        match self.state {
            State::Unknown { .. } => Policing::None,
            State::Trial { .. } => Policing::Suspected,
            State::Known(_) => Policing::Known,
        }
    }

    /// `rate`, or what may be sent at most, bytes in a second.
    pub(super) fn limit(&self, rate: f64) -> f64 {
        match self.state {
            State::Unknown { .. } => rate,
            State::Trial { rate: most, .. } | State::Known(Bucket { rate: most, .. }) => rate.min(most),
        }
    }

    /// Call for each acknowledgement. Packets that stand in a queue longer than `short` in each round are not policed.
    pub(super) fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked, short: Duration) {
        if let Some(interval) = &mut self.interval {
            interval.delivered += acked.bytes;
            let full = acked.was_full || acked.rate.is_some_and(|rate| !rate.app_limited);
            interval.full += if full { acked.bytes } else { 0 };
        }
        if acked.ends_round {
            let lost = path.lost_packets > self.lost;
            self.lost = path.lost_packets;
            self.clustering.on_round(path);
            self.on_round(path, lost, short);
        }
    }

    fn on_round(&mut self, path: &Conditions<'_>, lost: bool, short: Duration) {
        if self.settling > 0 {
            self.settling -= 1;
            self.interval = (self.settling == 0).then(|| Interval::begin(path));
            return;
        }
        let Some(interval) = &mut self.interval else {
            let begins = lost && path.queueing <= short && path.now >= self.trusted_until;
            self.interval = begins.then(|| Interval::begin(path));
            return;
        };
        interval.rounds += 1;
        interval.lossy += u32::from(lost);
        interval.queueing = interval.queueing.min(path.queueing);
        let (interval, long) = (*interval, interval.is_long(path));
        let enough = long && interval.packets(path) >= PACKETS;
        // Of a short path that loses most packets, many a round has one packet alone, whose acknowledgement waits for
        // another one. That is no queue: what overflows stands in each round.
        let queued = enough && interval.queueing > short;
        match &mut self.state {
            State::Unknown { .. } if queued || (!lost && interval.is_too_long(path)) => {
                self.become_unknown();
            }
            State::Unknown { before } if lost && enough => {
                let (rate, loss) = (interval.data_rate(path), interval.loss(path));
                let after = before.filter(|(before, _)| (rate - before).abs() <= SAME * before);
                *before = interval.is_lossy(path).then_some((rate, loss));
                self.interval = Some(Interval::begin(path));
                let rate = TRIAL * interval.rate(path);
                if let (Some((_, lost)), Some(_)) = (after, before)
                    && rate >= LEAST
                {
                    // Two intervals that were lossy by chance lost more than the path does.
                    let (lost, expected) =
                        (lost.min(loss).min(self.clustering.share()), EXPECTED.max(CLUSTERS * self.clustering.size()));
                    self.change(State::Trial { rate, lost, expected });
                }
            }
            State::Trial { rate, lost, expected } => {
                let (rate, own, before, enough) = (*rate, interval.loss(path), *lost, *expected);
                let expected = before * interval.packets(path) as f64;
                if interval.lost(path) > 1.0 + FEWER * expected.max(enough) || interval.is_too_long(path) {
                    self.give_up(path.now);
                    return;
                }
                if !long || expected < enough {
                    return;
                }
                self.change(State::Known(Bucket {
                    rate,
                    tried: rate,
                    dropped_at: rate,
                    step: LARGEST_STEP,
                    own,
                    most_own: own + DOUBT,
                    mean: 0.0,
                    before,
                }));
            }
            // That nothing was lost of a few packets is enough to try more.
            State::Known(bucket) if enough || (long && interval.lost(path) == 0.0) => {
                let full = 2 * interval.full >= interval.delivered;
                let changed = bucket.on_interval(interval.packets(path), interval.loss(path), full);
                if bucket.mean > STILL * bucket.before {
                    self.give_up(path.now);
                } else if bucket.rate > GONE * bucket.dropped_at {
                    self.become_unknown();
                } else {
                    self.settling = if changed { SETTLING } else { 0 };
                    self.interval = (!changed).then(|| Interval::begin(path));
                }
            }
            State::Known(_) | State::Unknown { .. } => {}
        }
    }

    const fn change(&mut self, state: State) {
        (self.state, self.interval, self.settling) = (state, None, SETTLING);
    }

    const fn become_unknown(&mut self) {
        (self.state, self.interval, self.settling) = (State::Unknown { before: None }, None, 0);
    }

    /// The path loses as much of less.
    fn give_up(&mut self, now: Instant) {
        self.trusted_until = now + self.trust;
        self.trust = (2 * self.trust).min(TRUST.1);
        self.become_unknown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;

    const PACKET: usize = 1000;
    /// Packets a second that an application would send.
    const OFFERED: f64 = 250.0;

    /// Of a path of 50 ms whose policer lets so many packets a second through, six at once, and which loses a share
    /// anyway: the share that got lost, and the packets a second that arrived, after a minute.
    fn run(seed: u64, policer: f64, loss: f64) -> (f64, f64) {
        run_of((OFFERED, 50), seed, policer, (loss, 1.0))
    }

    /// The same of an application that would send `offered` packets in a second, whose rounds last `round` ms, where
    /// the path loses `burst` packets in a row, in the mean.
    fn run_of(load: (f64, u64), seed: u64, policer: f64, losses: (f64, f64)) -> (f64, f64) {
        run_with(load, seed, policer, losses, |_| 0)
    }

    /// The same where packets stand in queues for `queueing(round)` ms.
    fn run_with(
        (offered, round): (f64, u64),
        seed: u64,
        policer: f64,
        (loss, burst): (f64, f64),
        queueing: impl Fn(u64) -> u64,
    ) -> (f64, f64) {
        let (mut policed, mut rng, mut path) = (Policed::new(), Rng::from_seed(seed), Conditions::default());
        let (mut tokens, mut owed, mut bytes, mut after) = (0.0_f64, 0.0, 0, (0, 0));
        let mut bad = false;
        for ms in 1..=120_000_u64 {
            path.now = Instant::from_millis(ms);
            tokens = (tokens + policer / 1000.0).min(6.0);
            owed += policed.limit(offered * PACKET as f64) / PACKET as f64 / 1000.0;
            while owed >= 1.0 {
                owed -= 1.0;
                path.packets += 1;
                let passes = tokens >= 1.0;
                tokens -= f64::from(u8::from(passes));
                let again = if burst > 1.0 { 1.0 - 1.0 / burst } else { loss };
                let begins = loss * (1.0 - again) / (1.0 - loss);
                bad = if passes { rng.chance(if bad { again } else { begins }) } else { bad };
                let arrives = passes && !bad;
                path.lost_packets += u64::from(!arrives);
                bytes += if arrives { PACKET } else { 0 };
            }
            if ms.is_multiple_of(round) {
                path.queueing = Duration::from_millis(queueing(ms / round));
                let acked = Acked { bytes, was_full: true, ends_round: true, ..Acked::default() };
                policed.on_acked(&path, &acked, Duration::from_millis(5));
                bytes = 0;
            }
            after = if ms == 60_000 { (path.packets, path.lost_packets) } else { after };
        }
        let (sent, lost) = (path.packets - after.0, path.lost_packets - after.1);
        (lost as f64 / sent as f64, (sent - lost) as f64 / 60.0)
    }

    #[test]
    fn the_rate_stays_just_under_that_of_the_bucket() {
        for (policer, loss) in [(100.0, 0.0), (150.0, 0.0), (180.0, 0.0), (100.0, 0.03), (150.0, 0.05)] {
            let (lost, arrived) = run(1, policer, loss);
            println!("{policer} packets a second, {loss} lost anyway: {lost:.3} lost, {arrived:.1} arrived");
            assert!(lost < loss + 0.03 && arrived > 0.85 * policer * (1.0 - loss), "{policer}, {loss}");
        }
    }

    /// Two rounds of three end with a packet whose acknowledgement waited for 20 ms.
    #[test]
    fn acknowledgements_that_wait_are_no_queue_and_one_that_stands_is() {
        let (lost, arrived) = run_with((OFFERED, 20), 1, 100.0, (0.0, 1.0), |round| 20 * (round % 3).min(1));
        assert!(lost < 0.03 && arrived > 85.0, "{lost:.3} lost, {arrived:.1} arrived");
        let (lost, arrived) = run_with((OFFERED, 20), 1, 100.0, (0.0, 1.0), |_| 20);
        assert!(lost > 0.55 && arrived > 95.0, "{lost:.3} lost, {arrived:.1} arrived");
    }

    #[test]
    fn a_path_that_loses_whatever_is_sent_keeps_its_rate() {
        for loss in [0.01, 0.05, 0.1, 0.2, 0.4] {
            let arrived: Vec<f64> = (1..=10).map(|seed| run(seed, 1e6, loss).1).collect();
            println!("{loss} lost: {arrived:.1?} of {OFFERED} arrived");
            assert!(arrived.iter().all(|it| *it > 0.95 * OFFERED * (1.0 - loss)), "{loss}: {arrived:.1?}");
        }
    }

    /// One that loses many packets in a row does so too.
    #[test]
    fn losses_in_bursts_are_not_taken_for_those_of_a_policer() {
        for (loss, burst) in [(0.1, 5.0), (0.1, 10.0), (0.2, 5.0), (0.2, 10.0), (0.3, 10.0), (0.2, 30.0)] {
            let arrived: Vec<f64> = (1..=40).map(|seed| run_of((OFFERED, 50), seed, 1e6, (loss, burst)).1).collect();
            let worst = arrived.iter().copied().fold(f64::MAX, f64::min) / OFFERED / (1.0 - loss);
            let mean = arrived.iter().sum::<f64>() / 40.0 / OFFERED / (1.0 - loss);
            println!("{loss} lost, {burst} in a row: {mean:.3} of it in the mean, {worst:.3} at least");
            // Without clusters, and with the share that the intervals before the trial lost: 0.916 and 0.29.
            assert!(mean > 0.97 && worst > 0.85, "{loss} lost, {burst} in a row: {mean:.3} in the mean, {worst:.3}");
        }
    }

    /// A link that drops what is large passes a few small packets. That is no rate to send by once it passes all.
    #[test]
    fn a_trickle_is_not_held_back() {
        let (lost, arrived) = run_of((7.5, 2000), 1, 3.0, (0.0, 1.0));
        assert!(lost > 0.5 && arrived > 2.9, "{lost:.3} lost, {arrived:.1} arrived");
    }
}
