//! Sender and receiver closed into a loop by a path with delay and loss, without any protocol.

mod equation;
mod idle;

use super::*;
use braidcast_core::{Instant, Rng};
use core::time::Duration;
use std::collections::VecDeque;

/// A packet in flight, or the report about one.
type InFlight<T> = VecDeque<(Instant, T)>;

/// What the application sends.
#[derive(Clone, Copy, PartialEq)]
enum App {
    /// Always has more.
    Greedy,
    /// A packet each so often, but for a silence.
    Voice { interval: Duration, silent: (Instant, Instant) },
}

struct Loop {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    /// `true` if packets carry window counters or the round trip.
    counted: bool,
    counter: WindowCounter,
    rng: Rng,
    rtt: Duration,
    loss: f64,
    size: usize,
    app: App,
    next_voice: Instant,
    waiting: usize,
    sent: Vec<Instant>,
    data: InFlight<(u64, Stamp)>,
    reports: InFlight<Report>,
    /// X after each report and timeout.
    rates: Vec<(Instant, f64)>,
}

impl Loop {
    fn new(config: Config, app: App, rtt: Duration, loss: f64, seed: u64) -> Self {
        let per_rtt = config.feedback.unwrap_or(config.variant.feedback());
        Self {
            now: Instant::ZERO,
            sender: Sender::new(Instant::ZERO, config),
            receiver: Receiver::new(config.variant.small_packets(), per_rtt),
            counted: false,
            counter: WindowCounter::default(),
            rng: Rng::from_seed(seed).stream("loss"),
            rtt,
            loss,
            size: config.segment_size,
            app,
            next_voice: Instant::ZERO,
            waiting: 0,
            sent: Vec::new(),
            data: VecDeque::new(),
            reports: VecDeque::new(),
            rates: Vec::new(),
        }
    }

    /// Lets everything happen up to `end`.
    fn run_until(&mut self, end: Instant) {
        loop {
            let next = self.step();
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
        }
    }

    /// Does all that is due now; when something is due next.
    fn step(&mut self) -> Instant {
        let now = self.now;
        while let Some(&(at, (seq, stamp))) = self.data.front()
            && at <= now
        {
            self.data.pop_front();
            let packet = Arrival { seq, size: self.size, data: true, ndp: 0, marked: false, stamp };
            if self.receiver.on_packet(now, &packet) {
                self.report();
            }
        }
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) && self.receiver.on_timeout(now) {
            self.report();
        }
        while let Some(&(at, report)) = self.reports.front()
            && at <= now
        {
            self.reports.pop_front();
            self.sender.on_feedback(now, &report);
            self.rates.push((now, self.sender.allowed_rate()));
        }
        if self.sender.poll_timeout() <= now {
            self.sender.on_timeout(now);
            self.rates.push((now, self.sender.allowed_rate()));
        }
        let blocked = self.send();
        let arrivals = [self.data.front().map(|it| it.0), self.reports.front().map(|it| it.0), blocked];
        let timers = [self.receiver.poll_timeout(), Some(self.sender.poll_timeout()), self.voice_due()];
        arrivals.into_iter().chain(timers).flatten().min().unwrap_or(now)
    }

    fn voice_due(&self) -> Option<Instant> {
        (self.app != App::Greedy).then_some(self.next_voice)
    }

    /// Sends what may leave; when the rest may.
    fn send(&mut self) -> Option<Instant> {
        if let App::Voice { interval, silent } = self.app
            && self.next_voice <= self.now
        {
            let speaks = self.now < silent.0 || self.now >= silent.1;
            self.waiting = (self.waiting + usize::from(speaks)).min(5);
            self.next_voice += interval;
        }
        while self.app == App::Greedy || self.waiting > 0 {
            if let Err(at) = self.sender.try_send(self.now) {
                return Some(at);
            }
            self.waiting = self.waiting.saturating_sub(1);
            let stamp = if self.counted {
                Stamp::Counter(self.counter.next(self.now, self.sender.rtt().unwrap_or(self.rtt)))
            } else {
                Stamp::Rtt(self.sender.rtt())
            };
            if !self.rng.chance(self.loss) {
                self.data.push_back((self.now + self.rtt / 2, (self.sent.len() as u64, stamp)));
            }
            self.sent.push(self.now);
            self.sender.on_sent(self.now, self.size);
        }
        None
    }

    fn report(&mut self) {
        let Some(feedback) = self.receiver.feedback(self.now) else { return };
        let report = Report {
            sent_at: self.sent[feedback.newest as usize],
            elapsed: feedback.elapsed,
            recv_rate: feedback.recv_rate,
            loss_event_rate: feedback.loss_event_rate,
            new_loss: feedback.new_loss,
        };
        self.reports.push_back((self.now + self.rtt / 2, report));
    }

    /// Bytes of data per second that left between two times.
    fn sent_rate(&self, from: Instant, until: Instant) -> f64 {
        let count = self.sent.iter().filter(|&&at| at >= from && at < until).count();
        (count * self.size) as f64 / (until - from).as_secs_f64()
    }

    /// X at `at`.
    fn rate_at(&self, at: Instant) -> f64 {
        self.rates.iter().take_while(|it| it.0 <= at).last().map_or(0.0, |it| it.1)
    }
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(secs: f64) -> Instant {
    Instant::from_micros((secs * 1e6) as u64)
}
