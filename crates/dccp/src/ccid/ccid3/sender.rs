use super::super::ccid4::ShortIntervals;
use super::Profile;
use super::report::Told;
use super::sent_log::{Departure, SentLog};
use crate::api::Wanted;
use crate::ccid::{self, CcidReport, Feedback, Permit, Sent, Setup};
use crate::seq::{Seq, back};
use crate::wire::RawOption;
use crate::wire::option::{Ccid3Option, DropCode, DroppedPackets};
use braidcast_cc::tfrc::{self, WindowCounter};
use braidcast_core::Instant;
use core::time::Duration;

/// Round trip to step the window counter by where none is known (RFC 4340 §3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);

/// The data sender of CCID 3 and 4 (RFC 4342 §5): TFRC's rate, fed from options.
#[derive(Debug)]
pub(in crate::ccid) struct Sender {
    tfrc: tfrc::Sender,
    /// A round trip was measured since that was last asked.
    measured: bool,
    counter: WindowCounter,
    /// Window counter of the last data packet.
    ccval: u8,
    log: SentLog,
    /// Packets from here on count against `limit`.
    unanswered: Seq,
    limit: u64,
    /// Where every loss of a short interval counts.
    short: Option<ShortIntervals>,
    /// The receiver's loss event rate is preferred to our own.
    asked: bool,
    /// What is discarded takes a turn to send.
    discard_takes_turn: bool,
    /// What the loss event rate is divided by.
    loss_event_divisor: f64,
    /// First number of the newest loss event that was told.
    newest_event: Option<Seq>,
    /// Data Dropped was read up to here.
    dropped_until: Option<Seq>,
    /// The packet that is being read said Slow Receiver.
    slow: bool,
    /// The peer keeps state until it is acknowledged (§6.3).
    owes_ack: bool,
    counts: CcidReport,
}

impl Sender {
    pub(in crate::ccid) fn new(setup: &Setup, profile: Profile) -> Self {
        let mut sender = Self {
            tfrc: tfrc::Sender::new(setup.now, profile.config(setup)),
            measured: false,
            counter: WindowCounter::default(),
            ccval: 0,
            log: SentLog::default(),
            unanswered: Seq::default(),
            limit: u64::MAX,
            short: profile.dropped_packets.then(ShortIntervals::default),
            asked: setup.tfrc.ask_loss_event_rate,
            discard_takes_turn: setup.tfrc.discard_takes_turn,
            loss_event_divisor: setup.tfrc.loss_event_divisor.into(),
            newest_event: None,
            dropped_until: None,
            slow: false,
            owes_ack: false,
            counts: CcidReport::default(),
        };
        setup.rtt.into_iter().for_each(|rtt| sender.tfrc.on_rtt(setup.now, rtt));
        sender
    }

    /// Packets that left since the last answer or timeout.
    fn out(&self) -> u64 {
        self.unanswered.distance_to(self.log.next())
    }

    /// The receive rate, lowered for what was dropped at the other end (§5.2).
    fn adjusted(&self, recv_rate: f64, drops: u32) -> f64 {
        let per_rtt = self.tfrc.segment_size() / self.tfrc.rtt().unwrap_or(DEFAULT_RTT).as_secs_f64().max(1e-6);
        let mut bound = if self.slow { recv_rate } else { f64::INFINITY };
        if drops > 0 {
            bound = bound.min((recv_rate - f64::from(drops) * per_rtt).max(recv_rate.min(per_rtt)));
        }
        recv_rate.min(bound / 2.0)
    }

    /// Packets not told of before whose data met a full receive buffer.
    fn receive_buffer_drops(&mut self, feedback: &Feedback<'_>) -> u32 {
        let (mut high, mut count, mut any) = (feedback.ack, 0, false);
        for run in feedback.options.dropped_runs() {
            any = true;
            let low = back(high, u64::from(run.len) - 1);
            if run.code == Some(DropCode::ReceiveBuffer) {
                let fresh = match self.dropped_until {
                    Some(until) if until >= high => 0,
                    Some(until) if until >= low => until.distance_to(high),
                    _ => u64::from(run.len),
                };
                count += fresh as u32;
            }
            high = back(low, 1);
        }
        if any {
            self.dropped_until = Some(feedback.ack);
        }
        count
    }
}

impl ccid::Sender for Sender {
    fn permit(&mut self, now: Instant, _payload: usize) -> Permit {
        if let Err(at) = self.tfrc.try_send(now) {
            return Permit::At(at);
        }
        if self.out() >= self.limit { Permit::Wait } else { Permit::Now }
    }

    fn ccval(&mut self, now: Instant) -> u8 {
        self.ccval = self.counter.next(now, self.tfrc.rtt().unwrap_or(DEFAULT_RTT));
        self.ccval
    }

    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        self.tfrc.on_rtt(now, rtt);
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        let first = self.log.is_empty();
        self.log.sent(sent.seq, Departure { at: now, ccval: self.ccval });
        if first {
            self.unanswered = sent.seq;
        }
        if sent.is_data {
            if sent.is_key {
                self.tfrc.on_sent_early(now, sent.payload);
            } else {
                self.tfrc.on_sent(now, sent.payload);
            }
            if let Some(short) = &mut self.short {
                short.sent(sent.seq, self.ccval);
            }
        }
        self.owes_ack &= !sent.is_ack;
    }

    fn on_discarded(&mut self, now: Instant) {
        if self.discard_takes_turn {
            self.tfrc.skip_turn(now);
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        let Some(departure) = self.log.acknowledge(feedback.ack) else { return };
        let answered = feedback.ack.plus(1);
        if self.unanswered < answered {
            self.counts.acked += self.unanswered.distance_to(answered);
            self.unanswered = answered;
        }
        self.counter.on_acknowledged(now, departure.ccval);
        self.owes_ack |= feedback.has_vectors || feedback.has_dropped;
        let drops = if feedback.has_dropped { self.receive_buffer_drops(feedback) } else { 0 };
        if let Some(told) = Told::read(feedback) {
            let loss_event_rate = told.loss_event_rate(self.asked, self.short.as_mut()) / self.loss_event_divisor;
            let event = told.newest_event();
            let new_loss = event.is_some() && event != self.newest_event;
            self.newest_event = event.or(self.newest_event);
            let recv_rate = self.adjusted(told.recv_rate, drops);
            let report =
                tfrc::Report { sent_at: departure.at, elapsed: told.elapsed, recv_rate, loss_event_rate, new_loss };
            self.measured = true;
            self.tfrc.on_feedback(now, &report);
            self.counts.loss_events += u64::from(new_loss);
            self.counts.recv_rate = Some(told.recv_rate);
        }
        self.slow = false;
    }

    fn on_slow_receiver(&mut self, _: Instant) {
        self.slow = true;
    }

    fn timer(&self) -> Option<Instant> {
        (!self.tfrc.is_dormant()).then_some(self.tfrc.poll_timeout())
    }

    fn on_timer(&mut self, now: Instant) {
        if self.timer().is_some_and(|at| at <= now) {
            self.tfrc.on_timeout(now);
            // What was not answered by now never may be: it no longer stands in the way.
            self.counts.timeouts += u64::from(self.out() > 0);
            self.unanswered = self.log.next();
        }
    }

    fn on_late_wake(&mut self, now: Instant) {
        self.tfrc.on_late_wake(now);
    }

    fn wants_ack_of_ack(&self) -> bool {
        self.owes_ack
    }

    fn packets_per_rtt(&self, _: Instant) -> u64 {
        self.out()
    }

    fn limit(&mut self, packets: u64) {
        self.limit = packets.max(1);
    }

    fn set_wanted(&mut self, wanted: Wanted) {
        self.tfrc.set_wanted(wanted.min, wanted.max);
    }

    fn understands(&self, option: RawOption<'_>) -> bool {
        Ccid3Option::parse(option).is_some() || (self.short.is_some() && DroppedPackets::parse(option).is_some())
    }

    fn losses(&self) -> u64 {
        self.counts.loss_events + self.counts.timeouts
    }

    fn allowed_rate(&self) -> Option<f64> {
        Some(self.tfrc.allowed_rate())
    }

    fn packet_size(&self) -> Option<f64> {
        Some(self.tfrc.segment_size())
    }

    fn srtt(&self) -> Option<Duration> {
        self.tfrc.rtt()
    }

    fn take_measured(&mut self) -> bool {
        core::mem::take(&mut self.measured)
    }

    fn report(&self, _: Instant) -> CcidReport {
        CcidReport {
            allowed_rate: Some(self.tfrc.allowed_rate()),
            fair_rate: self.tfrc.fair_rate(),
            segment_size: Some(self.tfrc.segment_size()),
            srtt: self.tfrc.rtt(),
            loss_event_rate: Some(self.tfrc.loss_event_rate()),
            below_minimum: self.tfrc.is_below_minimum(),
            ..self.counts
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
