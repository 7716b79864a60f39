use super::received::Received;
use super::{Connection, options};
use crate::api::Event;
use crate::ccid::Arrival;
use crate::feature::{Place, number};
use crate::seq::{Seq, later};
use crate::wire::Kind;
use crate::wire::option::DropCode;
use braidcast_core::{Ecn, Instant};

impl Connection {
    /// Takes a packet whose header was dealt with: informs the receiver half, and hands its data over;
    /// behind the reordering buffer, if there is one.
    pub(super) fn take_in(&mut self, now: Instant, it: &Received<'_>, arrival: Arrival) {
        let is_data = matches!(it.kind, Kind::Data | Kind::DataAck { .. }) && !it.keys;
        let data = is_data.then(|| (it.packet.payload, self.verdict(it)));
        // The sender's X is not told; it is at most twice the rate of arrival (RFC 5348 §4.3).
        let rate = self.receiver.recv_rate().map(|rate| 2.0 * rate);
        if self.reorders()
            && let Some(buffer) = &mut self.reorder
        {
            buffer.resize(rate);
            if buffer.passes(arrival.seq) {
                self.book(now, now, &arrival, data);
            } else {
                buffer.push(now, arrival, data);
            }
            self.release(now);
        } else {
            self.book(now, now, &arrival, data);
        }
    }

    /// Returns `true` if packets pass the reordering buffer.
    pub(super) fn reorders(&self) -> bool {
        self.reorder.is_some() && self.receiving.is_tfrc() && self.transfers()
    }

    /// Lets go on what has waited in the reordering buffer for what came now, or long enough.
    pub(super) fn release(&mut self, now: Instant) {
        while let Some(held) = self.reorder.as_mut().and_then(|buffer| buffer.pop(now)) {
            self.book_held(now, held);
        }
    }

    /// Lets all go on that waits in the reordering buffer: the connection ends.
    pub(super) fn flush(&mut self, now: Instant) {
        while let Some(held) = self.reorder.as_mut().and_then(|buffer| buffer.take(now)) {
            self.book_held(now, held);
        }
    }

    fn book_held(&mut self, now: Instant, held: super::reorder::Held) {
        let data = held.data.as_ref().map(|(bytes, verdict)| (bytes.as_slice(), *verdict));
        self.book(now, held.at, &held.arrival, data);
        if let (Some(buffer), Some((bytes, _))) = (&mut self.reorder, held.data) {
            buffer.recycle(bytes);
        }
    }

    /// A packet that came at `at` has its turn.
    fn book(&mut self, now: Instant, at: Instant, arrival: &Arrival, data: Option<(&[u8], Option<DropCode>)>) {
        if self.reorders() {
            self.may_acknowledge(at, arrival.seq, arrival.ecn, arrival.ndp_count);
        }
        self.receiver.on_arrival(now, arrival);
        if let Some((payload, verdict)) = data {
            self.deliver(arrival.seq, payload, verdict);
        }
    }

    /// From now on packet `seq` may be acknowledged (RFC 4340 §7.4).
    pub(super) fn may_acknowledge(&mut self, at: Instant, seq: Seq, ecn: Ecn, ndp_count: Option<u64>) {
        let previous = self.numbers.acknowledgeable;
        let gap = previous.distance_to(seq);
        if seq > previous && gap > 1 && self.transfers() {
            self.stats.holes += 1;
            let counts = self.features.value(Place::Remote, number::SEND_NDP_COUNT) == 1;
            self.stats.data_holes += u64::from(counts && ndp_count.unwrap_or(0) < gap - 1);
        }
        if seq > previous || seq == self.numbers.isr {
            self.numbers.acknowledgeable = later(previous, seq);
            self.newest_at = at;
        }
        if self.features.value(Place::Local, number::SEND_ACK_VECTOR) == 1 {
            self.acks.insert(seq, ecn == Ecn::Ce, ecn == Ecn::Ect1);
        }
    }

    /// Why the data of a packet must not be handed over, if it must not (§11.7).
    fn verdict(&self, it: &Received<'_>) -> Option<DropCode> {
        let header = &it.packet.header;
        let minimum = self.features.value(Place::Local, number::MIN_COVERAGE) as u8;
        let covered = header.coverage == 0 || (minimum > 0 && header.coverage >= minimum);
        if !covered || !self.may_take_data() {
            Some(DropCode::ProtocolConstraints)
        } else if !self.listening {
            Some(DropCode::NotListening)
        } else if !options::checksum_is_right(it.packet) {
            Some(DropCode::Corrupt)
        } else {
            None
        }
    }

    /// Hands data over that goes past the reordering buffer.
    pub(super) fn hand_over(&mut self, it: &Received<'_>) {
        self.deliver(it.seq, it.packet.payload, self.verdict(it));
    }

    /// Step 16: hands the data over, or says why not (§11.7).
    fn deliver(&mut self, seq: Seq, payload: &[u8], verdict: Option<DropCode>) {
        let code = if let Some(code) = verdict {
            code
        } else {
            let first = self.inbox.is_empty();
            if self.inbox.push(payload, self.options.receive_buffer) {
                self.stats.received_messages += 1;
                if first {
                    self.events.push_back(Event::Readable);
                }
                return;
            }
            DropCode::ReceiveBuffer
        };
        self.stats.dropped += 1;
        self.acks.dropped(seq, code);
    }
}
