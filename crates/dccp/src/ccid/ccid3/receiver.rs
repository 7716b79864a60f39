use super::Profile;
use super::intervals;
use crate::ccid::{self, Arrival, Setup};
use crate::wire::option::Ccid3Option;
use braidcast_cc::tfrc::{self, Stamp};
use braidcast_core::{Ecn, Instant, Unwrapper, Writer};

/// The data receiver of CCID 3 and 4 (RFC 4342 §6): what it reports, and when.
#[derive(Debug)]
pub(in crate::ccid) struct Receiver {
    tfrc: tfrc::Receiver,
    numbers: Option<Unwrapper<48>>,
    /// The first number, unwrapped.
    first: u64,
    /// Window counter of the newest data packet.
    ccval: u8,
    /// A report is due.
    due: Option<Instant>,
    dropped_packets: bool,
    recv_rate: Option<f64>,
}

impl Receiver {
    pub(in crate::ccid) fn new(setup: &Setup, profile: Profile) -> Self {
        let feedback = profile.feedback(&setup.tfrc);
        Self {
            tfrc: tfrc::Receiver::new(profile.variant.small_packets(), feedback).losing_after(setup.tfrc.dup_acks),
            numbers: None,
            first: 0,
            ccval: 0,
            due: None,
            dropped_packets: profile.dropped_packets,
            recv_rate: None,
        }
    }
}

impl ccid::Receiver for Receiver {
    fn on_arrival(&mut self, now: Instant, arrival: &Arrival) {
        if self.numbers.is_none() && !arrival.is_data {
            return;
        }
        let numbers = self.numbers.get_or_insert_with(|| {
            let it = Unwrapper::new(arrival.seq.get());
            self.first = it.highest();
            it
        });
        let is_newest = numbers.peek(arrival.seq.get()) >= numbers.highest();
        let seq = numbers.unwrap(arrival.seq.get());
        // Only data carries a window counter (§8.1).
        let counter = if arrival.is_data { arrival.ccval } else { self.ccval };
        if is_newest {
            self.ccval = counter;
        }
        arrival.rtt.into_iter().for_each(|rtt| self.tfrc.on_rtt(rtt));
        let packet = tfrc::Arrival {
            seq,
            size: arrival.payload,
            data: arrival.is_data,
            ndp: arrival.ndp_count.unwrap_or(0),
            marked: arrival.is_data && arrival.ecn == Ecn::Ce,
            stamp: Stamp::Counter(counter),
        };
        if self.tfrc.on_packet(now, &packet) {
            self.due.get_or_insert(now);
        }
    }

    fn ack_due(&self) -> Option<Instant> {
        self.due
    }

    fn timer(&self) -> Option<Instant> {
        self.tfrc.poll_timeout()
    }

    fn on_timer(&mut self, now: Instant) {
        if self.tfrc.on_timeout(now) {
            self.due.get_or_insert(now);
        }
    }

    fn on_ack_sent(&mut self, _: Instant) {
        self.due = None;
    }

    fn options_len(&self) -> usize {
        if self.due.is_some() { 6 + 6 + intervals::MAX_LEN } else { 0 }
    }

    fn emit_options(&mut self, now: Instant, w: &mut Writer<'_>) {
        if self.due.is_none() {
            return; // An acknowledgement for another reason, which need be no feedback (§6).
        }
        let Some(report) = self.tfrc.feedback(now) else { return };
        self.recv_rate = Some(report.recv_rate).filter(|&rate| rate > 0.0).or(self.recv_rate);
        Ccid3Option::ReceiveRate(report.recv_rate.ceil() as u32).emit(w);
        // §8.4: also unasked. A Linux client that offers several CCIDs does not ask, but slows down for nothing else.
        let p = report.loss_event_rate;
        Ccid3Option::LossEventRate(if p > 0.0 { (1.0 / p).ceil() as u32 } else { u32::MAX }).emit(w);
        intervals::emit(self.tfrc.history(), self.first, report.newest, self.dropped_packets, w);
    }

    fn recv_rate(&self) -> Option<f64> {
        self.recv_rate
    }
}
