//! What is told of the inside of a connection ([`braidcast_core::events`]).

use super::Connection;
use crate::seq::Seq;
use crate::wire::Kind;
use braidcast_core::Instant;
use braidcast_core::events::{DccpEvent, DccpMetrics, Unsent};
use braidcast_queue::Why;

/// What was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// The time when something last happened.
    pub(super) now: Instant,
    metrics: DccpMetrics,
}

impl Connection {
    /// Reports what happens at `now`; `event` is made only if anybody listens. The connection is
    /// named by the client's first sequence number, which both ends know.
    #[inline]
    pub(super) fn tell(&self, now: Instant, event: impl FnOnce() -> DccpEvent) {
        let first = if self.is_server { self.numbers.isr } else { self.numbers.iss };
        self.options.events.tell(now, first.get() as u32, event);
    }

    /// A packet of this type left or came, with this number of bytes of data.
    #[inline]
    pub(super) fn tell_packet(&mut self, now: Instant, sent: bool, (seq, kind): (Seq, Kind), payload: usize) {
        self.told.now = now;
        if !self.options.events.is_on() {
            return;
        }
        let (seq, ack, bytes, kind) = (seq.get(), kind.ack(), payload as u32, kind.code());
        self.tell(now, || {
            if sent {
                DccpEvent::PacketSent { seq, kind, ack, bytes }
            } else {
                DccpEvent::PacketReceived { seq, kind, ack, bytes }
            }
        });
        let metrics = self.metrics(now);
        if metrics != self.told.metrics {
            self.told.metrics = metrics;
            self.tell(now, || DccpEvent::Metrics(metrics));
        }
    }

    /// The connection is over.
    pub(super) fn tell_closed(&self) {
        self.tell(self.told.now, || DccpEvent::Closed);
    }

    /// A message was discarded unsent.
    pub(super) fn tell_discarded(&self, now: Instant, message: Option<u64>, why: Option<Why>) {
        let why = match why {
            Some(Why::Expired) => Unsent::Expired,
            Some(Why::Replaced) => Unsent::Replaced,
            Some(Why::NoRoom) => Unsent::NoRoom,
            None => Unsent::NotWorthIt,
        };
        self.tell(now, || DccpEvent::MessageDiscarded { message, why });
    }

    fn metrics(&self, now: Instant) -> DccpMetrics {
        let it = self.sender.report(now);
        DccpMetrics {
            cwnd: it.cwnd,
            pipe: it.pipe,
            allowed_rate: it.allowed_rate,
            recv_rate: it.recv_rate,
            fair_rate: it.fair_rate,
            segment: it.segment_size,
            loss_event_rate: it.loss_event_rate,
            srtt: it.srtt,
            rto: it.rto,
            // Before the first loss there is no threshold.
            ssthresh: it.ssthresh.filter(|&packets| packets != u32::MAX),
            ack_ratio: it.ack_ratio,
            queued: self.queue.len() as u32,
            acked: it.acked,
            lost: it.lost,
            marked: it.marked,
            loss_events: it.loss_events,
            timeouts: it.timeouts,
        }
    }
}
