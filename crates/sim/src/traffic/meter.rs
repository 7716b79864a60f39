use super::{Histogram, Series};
use braidcast_core::Instant;
use core::time::Duration;

/// How many sequence numbers back a packet may arrive and still be told from a duplicate.
const WINDOW: u64 = 4096;

/// Runs of this many losses and longer are counted together.
pub const MAX_RUN: usize = 64;

/// What arrived of one stream of numbered packets, and how: for datagrams, messages or frames alike.
///
/// Numbers start at 0 and go up by one. A meter takes about 20 kB, and 80 bytes for each second,
/// however many packets it sees.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowMeter {
    /// Packets sent earlier than this are left out.
    from: Instant,
    deadline: Duration,
    /// The first number that counts.
    base: u64,
    /// One above the highest number seen.
    next: u64,
    /// Which of the last [`WINDOW`] numbers arrived.
    seen: Vec<bool>,
    received: u64,
    duplicates: u64,
    reordered: u64,
    stale: u64,
    on_time: u64,
    delays: Histogram,
    delay_sum: u128,
    delay_min: Duration,
    delay_max: Duration,
    jitter: Jitter,
    losses: Losses,
    series: Series,
}

/// What is missing of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Losses {
    lost: u64,
    /// Length of the run that has not ended.
    run: u64,
    runs: [u64; MAX_RUN + 1],
}

impl Losses {
    /// Packets lost.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// How many runs of `n` losses in a row there were; the place [`MAX_RUN`] has the longer ones too, 0 none.
    pub const fn runs(&self) -> &[u64; MAX_RUN + 1] {
        &self.runs
    }

    /// Mean length of a run; 0 without losses.
    pub fn mean_run(&self) -> f64 {
        let runs = self.runs.iter().sum::<u64>();
        if runs == 0 { 0.0 } else { self.lost as f64 / runs as f64 }
    }

    fn lose(&mut self, count: u64) {
        self.lost += count;
        self.run += count;
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            self.runs[usize::try_from(self.run).map_or(MAX_RUN, |run| run.min(MAX_RUN))] += 1;
            self.run = 0;
        }
    }
}

/// Differences of transit time between packets that arrived one after the other, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Jitter {
    last_transit: Option<i128>,
    smoothed: f64,
    sum: f64,
    max: f64,
    count: u64,
}

impl Jitter {
    fn add(&mut self, transit: i128) {
        if let Some(last) = self.last_transit.replace(transit) {
            let difference = transit.abs_diff(last) as f64;
            self.smoothed += (difference - self.smoothed) / 16.0;
            self.sum += difference;
            self.max = self.max.max(difference);
            self.count += 1;
        }
    }
}

fn from_nanos(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.round() as u64)
}

impl Default for FlowMeter {
    fn default() -> Self {
        Self {
            from: Instant::ZERO,
            deadline: Duration::MAX,
            base: 0,
            next: 0,
            seen: vec![false; WINDOW as usize],
            received: 0,
            duplicates: 0,
            reordered: 0,
            stale: 0,
            on_time: 0,
            delays: Histogram::default(),
            delay_sum: 0,
            delay_min: Duration::MAX,
            delay_max: Duration::ZERO,
            jitter: Jitter::default(),
            losses: Losses { lost: 0, run: 0, runs: [0; MAX_RUN + 1] },
            series: Series::default(),
        }
    }
}

/// Setting it up and feeding it.
impl FlowMeter {
    /// Leaves out packets sent before `from`: the time in which an experiment warms up.
    #[must_use]
    pub fn counting_from(self, from: Instant) -> Self {
        Self { from, ..self }
    }

    /// Counts packets that take at most `deadline` as on time (200 ms in SBPN §4.6.1).
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Packet number `sequence`, sent at `sent` with `bytes` of payload, arrived at `now`.
    pub fn record(&mut self, now: Instant, sequence: u64, sent: Instant, bytes: usize) {
        if sent < self.from || sequence < self.base {
            self.leave_out(sequence);
            return;
        }
        if sequence < self.next {
            if self.next - sequence > WINDOW {
                self.stale += 1;
                return;
            }
            if self.seen[slot(sequence)] {
                self.duplicates += 1;
                return;
            }
            self.reordered += 1;
        } else {
            self.advance(sequence.saturating_add(1));
        }
        self.seen[slot(sequence)] = true;
        self.received += 1;
        self.series.add(now, bytes);
        let delay = now - sent;
        self.on_time += u64::from(delay <= self.deadline);
        self.delays.add(delay);
        self.delay_sum += delay.as_nanos();
        self.delay_min = self.delay_min.min(delay);
        self.delay_max = self.delay_max.max(delay);
        self.jitter.add(i128::from(now.as_nanos()) - i128::from(sent.as_nanos()));
    }

    /// Packet number `sequence` arrived before anything counts: no number up to it does.
    pub fn leave_out(&mut self, sequence: u64) {
        if sequence >= self.next && self.received == 0 {
            self.next = sequence.saturating_add(1);
            self.base = self.next;
        }
    }

    /// Makes `next` the first number that was not seen, and judges those that fall out of the window.
    fn advance(&mut self, next: u64) {
        let steps = next.saturating_sub(self.next);
        for _ in 0..steps.min(WINDOW) {
            if self.next >= self.base + WINDOW {
                if self.seen[slot(self.next)] {
                    self.losses.end_run();
                } else {
                    self.losses.lose(1);
                }
            }
            self.seen[slot(self.next)] = false;
            self.next += 1;
        }
        // After a leap of more than the window nothing in it has arrived; numbers before the base do not count.
        let leap = steps.saturating_sub(WINDOW);
        let uncounted = (self.base + WINDOW).saturating_sub(self.next).min(leap);
        self.losses.lose(leap - uncounted);
        self.next += leap;
    }
}

const fn slot(sequence: u64) -> usize {
    (sequence % WINDOW) as usize
}

/// What it measured.
impl FlowMeter {
    /// Packets that arrived, each counted once.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Further copies that arrived.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Packets that arrived after one with a higher number (RFC 4737 §3.3).
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Packets so late that they were counted as lost before and could be copies: more than 4096 numbers.
    pub const fn stale(&self) -> u64 {
        self.stale
    }

    /// Packets within the deadline.
    pub const fn on_time(&self) -> u64 {
        self.on_time
    }

    /// Bytes of payload that arrived, copies left out.
    pub const fn bytes(&self) -> u64 {
        self.series.total()
    }

    /// Those bytes over time: goodput in a window.
    pub const fn series(&self) -> &Series {
        &self.series
    }

    /// What is missing, when `sent` packets were sent in all, or up to the highest number that
    /// arrived if that is not known.
    pub fn losses(&self, sent: Option<u64>) -> Losses {
        let mut end = self.clone();
        end.advance(sent.unwrap_or(0));
        end.advance(end.next.saturating_add(WINDOW));
        end.losses.end_run();
        end.losses
    }

    /// Mean one-way delay; `None` before the first packet, as for the others.
    pub fn delay_mean(&self) -> Option<Duration> {
        let mean = self.delay_sum.checked_div(u128::from(self.received))?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Smallest one-way delay.
    pub fn delay_min(&self) -> Option<Duration> {
        (self.received > 0).then_some(self.delay_min)
    }

    /// Largest one-way delay.
    pub fn delay_max(&self) -> Option<Duration> {
        (self.received > 0).then_some(self.delay_max)
    }

    /// One-way delays, for their quantiles.
    pub const fn delays(&self) -> &Histogram {
        &self.delays
    }

    /// Interarrival jitter, smoothed (RFC 3550 §6.4.1).
    pub fn jitter(&self) -> Duration {
        from_nanos(self.jitter.smoothed)
    }

    /// Mean difference of transit time between successive packets (THESIS §4.4, where it is called jitter).
    pub fn jitter_mean(&self) -> Duration {
        from_nanos(self.jitter.sum / self.jitter.count.max(1) as f64)
    }

    /// Largest such difference.
    pub fn jitter_max(&self) -> Duration {
        from_nanos(self.jitter.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Packets of 100 bytes sent each 10 ms; the pairs are number and delay in ms, in the order of arrival.
    fn arrivals(meter: &mut FlowMeter, packets: &[(u64, u64)]) {
        for &(number, delay) in packets {
            let sent = Instant::from_millis(number * 10);
            meter.record(sent + ms(delay), number, sent, 100);
        }
    }

    #[test]
    fn counts_losses_runs_copies_and_reordering() {
        let mut meter = FlowMeter::default().with_deadline(ms(45));
        // 1 is lost, 4 comes after 5, 5 comes twice, 6 to 8 are lost.
        arrivals(&mut meter, &[(0, 40), (2, 40), (3, 40), (5, 40), (4, 60), (5, 80), (9, 50)]);
        assert_eq!((meter.received(), meter.duplicates(), meter.reordered(), meter.bytes()), (6, 1, 1, 600));
        assert_eq!(meter.on_time(), 4);
        let losses = meter.losses(None);
        assert_eq!((losses.lost(), losses.runs()[1], losses.runs()[3], losses.mean_run()), (4, 1, 1, 2.0));
        assert_eq!(meter.losses(Some(12)).lost(), 6, "two more after the last that arrived");
    }

    #[test]
    fn delay_and_jitter() {
        let mut meter = FlowMeter::default();
        assert_eq!((meter.delay_mean(), meter.delay_min(), meter.delay_max()), (None, None, None));
        arrivals(&mut meter, &[(0, 40), (1, 56), (2, 40), (3, 64)]);
        assert_eq!(
            (meter.delay_mean(), meter.delay_min(), meter.delay_max()),
            (Some(ms(50)), Some(ms(40)), Some(ms(64)))
        );
        // RFC 3550 §6.4.1: J += (|D| - J)/16 for |D| of 16, 16 and 24 ms.
        let j = [16.0, 16.0, 24.0].iter().fold(0.0, |j, d| j + (d - j) / 16.0);
        assert_eq!(meter.jitter(), from_nanos(j * 1e6));
        assert_eq!((meter.jitter_mean(), meter.jitter_max()), (from_nanos(56e6 / 3.0), ms(24)));
    }

    #[test]
    fn what_was_sent_while_warming_up_is_left_out() {
        let mut meter = FlowMeter::default().counting_from(Instant::from_millis(1000));
        arrivals(&mut meter, &(0..200).filter(|n| n % 10 != 5).map(|n| (n, 20)).collect::<Vec<_>>());
        assert_eq!((meter.received(), meter.losses(None).lost()), (90, 10));
    }

    #[test]
    fn a_leap_of_any_size_is_counted_and_costs_no_time() {
        let mut meter = FlowMeter::default();
        arrivals(&mut meter, &[(0, 1), (3, 1)]);
        meter.record(Instant::from_millis(50), 1 << 40, Instant::from_millis(40), 1);
        assert_eq!(meter.losses(None).lost(), (1 << 40) + 1 - 3);
        meter.record(Instant::from_millis(50), 1, Instant::from_millis(40), 1);
        meter.record(Instant::from_millis(50), u64::MAX, Instant::from_millis(40), 1);
        assert_eq!(meter.stale(), 1);
    }

    proptest! {
        #[test]
        fn received_and_lost_make_up_what_was_sent(
            steps in prop::collection::vec((0_u64..30, 0_u64..2000), 1..400),
            warm in 0_u64..500,
        ) {
            // A walk upwards, in which some numbers come late, at most 2000 back.
            let (mut meter, mut top, mut seen) = (FlowMeter::default(), warm, BTreeSet::new());
            meter.record(Instant::ZERO, warm, Instant::ZERO, 1);
            seen.insert(warm);
            for (step, back) in steps {
                top += step;
                let number = if back % 3 == 0 { top.saturating_sub(back) } else { top };
                meter.record(Instant::ZERO, number, Instant::ZERO, 1);
                seen.insert(number);
            }
            let highest = seen.last().copied().unwrap_or(0);
            prop_assert_eq!(meter.received(), seen.len() as u64);
            let losses = meter.losses(Some(top + 1));
            prop_assert_eq!(losses.lost(), (highest.max(top) + 1) - seen.len() as u64);
        }
    }
}
