use super::counter::distance;
use super::equation::{loss_event_rate_for, seconds};
use super::loss_history::{Arrival, LossHistory, Stamp};
use super::variant::FeedbackRate;
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// What the receiver reports (RFC 5348 §3.2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// Highest sequence number received: the packet whose send time the sender measures the round trip from.
    pub newest: u64,
    /// How long ago that packet came (t_delay).
    pub elapsed: Duration,
    /// Receive rate, bytes of data per second (X_recv); 0 in the first report.
    pub recv_rate: f64,
    /// Loss event rate, 0.0..=1.0.
    pub loss_event_rate: f64,
    /// `true` if a loss event was found since the report before.
    pub new_loss: bool,
}

/// A TFRC receiver: the loss event rate, the receive rate, and when to report them (RFC 5348 §6).
///
/// Feed packets to [`on_packet`](Self::on_packet) and [`on_timeout`](Self::on_timeout) when
/// [`poll_timeout`](Self::poll_timeout) says so; when either returns `true`, send what [`feedback`](Self::feedback)
/// gives.
#[derive(Clone, Debug)]
pub struct Receiver {
    per_rtt: FeedbackRate,
    history: LossHistory,
    rtt: Option<Duration>,
    rtt_probe: Option<(u8, Instant)>,
    bytes: u64,
    mean_size: f64,
    newest: Option<(u64, Instant, u8)>,
    /// When reports were sent, and the bytes received until then, oldest first.
    reports: VecDeque<(Instant, u64)>,
    last: Option<LastReport>,
    timer: Option<Instant>,
    /// Data came since the last report.
    unreported: bool,
    /// When data came last, and when it last came after a silence of an observation interval, with the bytes before it.
    last_data: Option<Instant>,
    resumed: Option<(Instant, u64)>,
    new_loss: bool,
    max_recv_rate: f64,
}

#[derive(Clone, Copy, Debug)]
struct LastReport {
    counter: u8,
    loss_event_rate: f64,
    recv_rate: f64,
}

impl Receiver {
    /// Reports to look back at for the receive rate.
    const REPORTS: usize = 64;
    /// Weight of a new packet in the mean size.
    const SIZE_WEIGHT: f64 = 1.0 / 32.0;

    /// A receiver before the first packet; `small_packets` for TFRC-SP
    /// ([`Variant::small_packets`](super::Variant::small_packets)).
    pub fn new(small_packets: bool, per_rtt: FeedbackRate) -> Self {
        Self {
            per_rtt,
            history: LossHistory::new(small_packets),
            rtt: None,
            rtt_probe: None,
            bytes: 0,
            mean_size: 0.0,
            newest: None,
            reports: VecDeque::with_capacity(Self::REPORTS),
            last: None,
            timer: None,
            unreported: false,
            last_data: None,
            resumed: None,
            new_loss: false,
            max_recv_rate: 0.0,
        }
    }

    /// Takes a missing packet for lost after this number of later ones ([`LossHistory::losing_after`]).
    #[must_use]
    pub fn losing_after(self, packets: usize) -> Self {
        Self { history: self.history.losing_after(packets), ..self }
    }

    /// Takes a packet; `true` if a report is due at once.
    pub fn on_packet(&mut self, now: Instant, packet: &Arrival) -> bool {
        let counter = if let Stamp::Counter(value) = packet.stamp { value % 16 } else { 0 };
        let advances = self.newest.is_none_or(|(seq, ..)| packet.seq > seq);
        if packet.data {
            let silent = |last: Instant| self.observation().is_some_and(|it| now - last > it);
            if self.last_data.is_some_and(silent) {
                self.resumed = Some((now, self.bytes));
            }
            self.last_data = Some(now);
            self.bytes += packet.size as u64;
            self.unreported = true;
            let size = packet.size as f64;
            let weight = if self.mean_size == 0.0 { 1.0 } else { Self::SIZE_WEIGHT };
            self.mean_size += weight * (size - self.mean_size);
        }
        if advances {
            self.newest = Some((packet.seq, now, counter));
            self.note_rtt(now, packet.stamp);
        }
        let (s, rtt, best) = (self.mean_size.max(1.0), self.rtt, self.max_recv_rate);
        if self.history.on_packet(now, packet, || first_interval(s, rtt, best)) {
            self.new_loss = true;
        }
        let Some(last) = self.last else { return packet.data };
        // Losses worse than reported (RFC 5348 §6.1 step 4).
        let worse = self.new_loss && self.history.loss_event_rate() > last.loss_event_rate;
        // Window counters do without a timer, if reports are not wanted more often (RFC 4342 §10.3). Else a timer that
        // is not set says that there was no round trip to set it by, or nothing to report when it expired (RFC 5348
        // §6.1, §6.3).
        let counted = matches!(packet.stamp, Stamp::Counter(_));
        let round_over = if counted && self.counts_rounds() {
            advances && distance(last.counter, counter) >= 4
        } else {
            self.timer.is_none()
        };
        packet.data && (worse || round_over)
    }

    /// A round trip known otherwise, as from the connection's handshake; what packets tell replaces it.
    pub fn on_rtt(&mut self, sample: Duration) {
        self.rtt = self.rtt.or(Some(sample));
    }

    /// Takes the round trip from the packet, or measures it by window counters (RFC 4342 §8.1).
    fn note_rtt(&mut self, now: Instant, stamp: Stamp) {
        match stamp {
            Stamp::Rtt(rtt) => self.rtt = rtt.or(self.rtt),
            Stamp::Counter(value) => match self.rtt_probe {
                Some((from, since)) => {
                    let steps = distance(from, value % 16);
                    if steps == 4 {
                        let sample = now - since;
                        self.rtt =
                            Some(self.rtt.map_or(sample, |rtt| rtt.saturating_mul(9).saturating_add(sample) / 10));
                    }
                    if steps >= 4 {
                        self.rtt_probe = Some((value % 16, now));
                    }
                }
                None => self.rtt_probe = Some((value % 16, now)),
            },
        }
    }

    /// Returns `true` if window counters, if there are any, say when to report.
    fn counts_rounds(&self) -> bool {
        self.rtt.is_none() || matches!(self.per_rtt, FeedbackRate::Times(0 | 1))
    }

    /// Reports per round trip now (THESIS eq. 4.8).
    pub fn reports_per_rtt(&self) -> f64 {
        let recv_rate = self.last.map_or(0.0, |it| it.recv_rate);
        self.rtt.map_or(1.0, |rtt| self.per_rtt.per_rtt(rtt, recv_rate, self.mean_size))
    }

    /// The time that a report covers: a round trip, or O = RTT / N_Fb (THESIS §4.5.2).
    fn observation(&self) -> Option<Duration> {
        self.rtt.map(|rtt| rtt.div_f64(self.reports_per_rtt()))
    }

    /// When to call [`on_timeout`](Self::on_timeout).
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The feedback timer; `true` if a report is due.
    pub fn on_timeout(&mut self, now: Instant) -> bool {
        if self.timer.is_none_or(|at| now < at) {
            return false;
        }
        // Nothing to report: the next packet sets the timer again, so that an idle connection is quiet.
        self.timer = None;
        self.unreported
    }

    /// The report to send now; `None` before the first packet.
    pub fn feedback(&mut self, now: Instant) -> Option<Feedback> {
        let (newest, at, counter) = self.newest?;
        let recv_rate = if self.last.is_some() { self.measure(now) } else { 0.0 };
        let loss_event_rate = self.history.loss_event_rate();
        self.max_recv_rate = self.max_recv_rate.max(recv_rate);
        self.last = Some(LastReport { counter, loss_event_rate, recv_rate });
        if self.reports.len() < Self::REPORTS {
            self.reports.push_back((now, self.bytes));
        }
        let by_timer = self.rtt_probe.is_none() || !self.counts_rounds();
        self.timer = self.observation().filter(|_| by_timer).map(|it| now + it);
        self.unreported = false;
        let new_loss = core::mem::take(&mut self.new_loss);
        Some(Feedback { newest, elapsed: now - at, recv_rate, loss_event_rate, new_loss })
    }

    /// X_recv since the newest report that lies an observation interval back (RFC 5348 §6.2 step 2), and drops older
    /// ones.
    fn measure(&mut self, now: Instant) -> f64 {
        let observation = self.observation().unwrap_or(Duration::ZERO);
        while self.reports.get(1).is_some_and(|(at, _)| now - *at >= observation) {
            self.reports.pop_front();
        }
        let Some(&report) = self.reports.front() else { return 0.0 };
        // A silence does not count, nor what came before it, reported or not: a packet counts as one each round trip at
        // least. RFC 4342 §8.3 would count the silence, which RFC 5348 §6.2 has replaced.
        let (since, before) = self.resumed.filter(|it| it.0 > report.0).unwrap_or(report);
        (self.bytes - before) as f64 / seconds((now - since).max(observation))
    }

    /// The losses behind the loss event rate, for the Loss Intervals option.
    pub const fn history(&self) -> &LossHistory {
        &self.history
    }

    /// The round trip as the receiver knows it.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Mean bytes of data per packet.
    pub const fn mean_size(&self) -> f64 {
        self.mean_size
    }
}

/// The made-up interval before the first loss: what gives the highest receive rate so far, half a packet per round trip
/// at least (RFC 5348 §6.3.1), which takes no knowledge of the round trip.
fn first_interval(s: f64, rtt: Option<Duration>, best: f64) -> f64 {
    let best = if rtt.is_some() { best } else { 0.0 };
    let rtt = rtt.unwrap_or(Duration::from_secs(1));
    1.0 / loss_event_rate_for(s, rtt, best.max(0.5 * s / seconds(rtt)))
}

#[cfg(test)]
mod tests {
    use super::super::throughput;
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn packet(seq: u64, stamp: Stamp) -> Arrival {
        Arrival { seq, size: 1000, data: true, ndp: 0, marked: false, stamp }
    }

    /// Packets each 10 ms but for those lost; when reports were made and what they said.
    fn reports(
        receiver: &mut Receiver,
        lost: &[u64],
        count: u64,
        stamp: impl Fn(u64) -> Stamp,
    ) -> Vec<(u64, Feedback)> {
        let mut out = Vec::new();
        for ms in 0..10 * count {
            let now = Instant::from_millis(ms);
            let seq = ms / 10;
            let mut due = receiver.poll_timeout().is_some_and(|at| at <= now) && receiver.on_timeout(now);
            due |= ms % 10 == 0 && !lost.contains(&seq) && receiver.on_packet(now, &packet(seq, stamp(seq)));
            if due {
                out.extend(receiver.feedback(now).map(|it| (ms, it)));
            }
        }
        out
    }

    #[test]
    fn a_report_each_round_trip_and_at_once_on_loss() {
        let mut receiver = Receiver::new(false, FeedbackRate::Times(1));
        let reports = reports(&mut receiver, &[42], 100, |_| Stamp::Rtt(Some(RTT)));
        let times: Vec<u64> = reports.iter().map(|it| it.0).collect();
        assert_eq!(times[..6], [0, 100, 200, 300, 400, 450], "42 is missed when 45 is there");
        assert_eq!(times[6..9], [550, 650, 750]);
        assert_eq!((reports[0].1.recv_rate, reports[0].1.loss_event_rate), (0.0, 0.0));
        assert!(reports[1..5].iter().all(|(_, it)| it.recv_rate == 100_000.0), "{reports:?}");
        let loss = reports[5].1;
        assert!(loss.new_loss && !reports[6].1.new_loss);
        // 300 ms to 450 ms: fifteen packets less one.
        assert!((loss.recv_rate - 14_000.0 / 0.15).abs() < 1.0, "a report on a loss covers a round trip too");
        let fair = throughput(1000.0, RTT, loss.loss_event_rate);
        assert!((fair / 100_000.0 - 1.0).abs() < 0.05, "the first loss sets p to what was received (§6.3.1): {fair}");
    }

    #[test]
    fn window_counters_do_without_a_timer() {
        let mut receiver = Receiver::new(false, FeedbackRate::Times(1));
        let reports = reports(&mut receiver, &[], 100, |seq| Stamp::Counter((seq * 2 / 5 % 16) as u8));
        assert!((9..=12).contains(&reports.len()), "{} in ten round trips", reports.len());
        assert_eq!(receiver.rtt(), Some(RTT));
    }

    #[test]
    fn a_loss_before_any_rate_is_known_allows_half_a_packet_per_round_trip() {
        for (rtt, stamp) in [(None, Stamp::Counter(0)), (Some(RTT), Stamp::Counter(0)), (None, Stamp::Rtt(Some(RTT)))] {
            let mut receiver = Receiver::new(false, FeedbackRate::Times(1));
            rtt.into_iter().for_each(|it| receiver.on_rtt(it));
            assert!(receiver.on_packet(Instant::ZERO, &Arrival { marked: true, ..packet(1, stamp) }));
            let report = receiver.feedback(Instant::ZERO).unwrap();
            let per_rtt = throughput(1000.0, RTT, report.loss_event_rate) * 0.1 / 1000.0;
            assert!((per_rtt - 0.5).abs() < 0.001, "{per_rtt}");
        }
    }

    #[test]
    fn more_reports_when_round_trips_are_long() {
        let count = |per_rtt| {
            let mut receiver = Receiver::new(true, per_rtt);
            let all = reports(&mut receiver, &[], 500, |_| Stamp::Rtt(Some(RTT * 10)));
            assert!(all[2..].iter().all(|(_, it)| (it.recv_rate - 100_000.0).abs() < 5000.0), "{all:?}");
            all.len()
        };
        assert_eq!([FeedbackRate::Times(1), FeedbackRate::Times(4)].map(count), [5, 20]);
        assert!((40..=46).contains(&count(FeedbackRate::Dynamic)), "10 a round trip but for the first");
    }

    /// The end of a burst stays unreported, as no window counter follows it.
    #[test]
    fn silence_does_not_count_as_time_in_which_little_came() {
        let mut it = Receiver::new(false, FeedbackRate::Times(1));
        let at = Instant::from_millis;
        let mut arrive = |ms: u64, quarters: u64, seq: u64| {
            let packet = Arrival {
                seq,
                size: 1000,
                data: true,
                ndp: 0,
                marked: false,
                stamp: Stamp::Counter((quarters % 16) as u8),
            };
            it.on_rtt(RTT);
            if it.on_packet(at(ms), &packet) { it.feedback(at(ms)).map(|report| report.recv_rate) } else { None }
        };
        let rates: Vec<f64> = (0..115).filter_map(|n| arrive(10 * n, 10 * n / 25, n)).collect();
        assert!(rates.len() > 8 && rates[3..].iter().all(|rate| (rate - 100_000.0).abs() < 11_000.0), "{rates:?}");
        // After a silence the window counter goes on by five (RFC 4342 §8.1).
        let first = (115..130).find_map(|n| arrive(3_600_000 + 10 * n, 5 + 10 * n / 25, n)).unwrap();
        assert!(first >= 10_000.0, "{first}, one packet each round trip at least");
    }

    #[test]
    fn silence_is_not_reported_and_the_next_packet_is() {
        let mut receiver = Receiver::new(false, FeedbackRate::Times(1));
        let rtt = Stamp::Rtt(Some(RTT));
        assert!(receiver.on_packet(Instant::ZERO, &packet(1, rtt)));
        assert!(receiver.feedback(Instant::ZERO).is_some());
        let timer = receiver.poll_timeout().unwrap();
        assert!(!receiver.on_timeout(timer) && receiver.poll_timeout().is_none());
        let late = Instant::from_millis(5000);
        assert!(receiver.on_packet(late, &packet(2, rtt)));
        assert_eq!(
            receiver.feedback(late).map(|it| it.recv_rate),
            Some(10_000.0),
            "a packet per round trip (RFC 5348 §6.2)"
        );
    }
}
