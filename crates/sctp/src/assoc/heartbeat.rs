use super::Open;
use crate::api::{CloseReason, Event, LossDetection};
use crate::path::{Info, PathIndex};
use crate::wire::chunk::{self, Heartbeat, HeartbeatAck, Pad, StampArrival, Timestamp, TimestampEcho};
use crate::wire::{Chunk, Entries, Entry, Header};
use braidcast_core::{Instant, Writer};

impl Open {
    /// HEARTBEAT: sent back as it came (RFC 9260 §8.3), over the path it came from. If a timestamp stood before it, the
    /// answer says when the packet came: what is between answers is not what was between packets.
    pub(super) fn answer_heartbeat(&mut self, now: Instant, index: PathIndex, heartbeat: &Heartbeat<'_>) {
        if self.state.is_up() {
            self.ask_if_taken_in(now, index);
            if let Some(arrival) = self.timestamps.take_of_packet() {
                let mut bytes = Vec::with_capacity(StampArrival::SIZE);
                arrival.emit(&mut Writer::new(&mut bytes));
                self.answer(index, &Chunk::TimestampEcho(TimestampEcho { arrivals: Entries::new(&bytes) }));
            }
            self.answer(index, &Chunk::HeartbeatAck(HeartbeatAck { info: heartbeat.info }));
        }
    }

    /// HEARTBEAT ACK: the path works, and this is its round trip.
    pub(super) fn handle_heartbeat_ack(&mut self, now: Instant, index: PathIndex, ack: &HeartbeatAck<'_>) {
        let Ok(info) = Info::parse(ack.info) else { return };
        let in_flight = self.ledger.in_flight_over(index);
        let path = &mut self.paths[index];
        if info.place.is_some() {
            if path.id() == info.path {
                path.on_train_answer(now, &info);
            }
            return;
        }
        if path.id() == info.path
            && path.on_heartbeat_ack(now, &info, in_flight)
            && self.path_answers(now, index)
            && self.options.papers.loss_detection == LossDetection::Time
        {
            self.lose_sent_before(now, index, info.sent);
        }
    }

    /// Appends a HEARTBEAT to the packet that begins at `start`. Returns `false` if too little came from there for one
    /// more: that counts as one without an answer.
    pub(super) fn put_heartbeat(&mut self, now: Instant, index: PathIndex, start: usize, buf: &mut Vec<u8>) -> bool {
        let nonce = self.rng.u64();
        let info = self.paths[index].send_heartbeat(now, nonce);
        let stamp = if self.stamps() { Timestamp::LEN } else { 0 };
        let may_go = self.paths[index].may_get(buf.len() - start + Info::CHUNK + stamp + self.framing());
        if may_go {
            put_info(info, buf);
        }
        may_go
    }

    /// A HEARTBEAT padded to the size in question (RFC 8899 §6.2.1), in a packet that holds nothing else of weight.
    pub(super) fn put_mtu_probe(&mut self, now: Instant, index: PathIndex, start: usize, buf: &mut Vec<u8>) {
        let nonce = self.rng.u64();
        let path = &mut self.paths[index];
        let probe = path.send_mtu_probe(now, nonce);
        if path.take_narrow_news() {
            self.journal.events.push_back(Event::PathNarrow(path.id(), path.route()));
        }
        let Some((size, info)) = probe else { return };
        self.put_padded(info, start, size, buf);
    }

    /// A packet of a train that measures the path, alone and padded to its size.
    pub(super) fn put_train_packet(&mut self, now: Instant, index: PathIndex, start: usize, buf: &mut Vec<u8>) {
        let nonce = self.rng.u64();
        let Some((size, sent, info)) = self.paths[index].send_train_packet(now, nonce) else { return };
        if self.agreed.timestamps {
            Timestamp { path: info.path.0, sent, quiet: false }.emit(&mut Writer::new(buf));
        }
        self.put_padded(info, start, size, buf);
    }

    /// A HEARTBEAT in a packet of `size` bytes.
    fn put_padded(&self, info: Info, start: usize, size: usize, buf: &mut Vec<u8>) {
        put_info(info, buf);
        let used = buf.len() - start + self.framing();
        if size >= used + 4 {
            chunk::Chunk::Pad(Pad { len: size - used - 4 }).emit(&mut Writer::new(buf));
        }
        debug_assert!(used >= Header::LEN);
    }

    /// A heartbeat of the path `index`, sent at `asked`, was not answered within its RTO.
    pub(super) fn handle_heartbeat_failure(&mut self, now: Instant, index: PathIndex, asked: Instant) {
        let in_flight = self.ledger.in_flight_over(index);
        if self.paths[index].on_heartbeat_failure(now, asked, in_flight) {
            self.path_failed(index);
            // Who records a request and sends it from elsewhere gets no more than these heartbeats.
            // A peer that is there asks again (`rejoin`).
            if self.paths[index].is_disproved() && self.paths.best_rank(None).is_some() {
                self.remove_path(now, index);
            } else if self.paths[index].is_disproved() && self.paths.len() == 1 {
                // The cookie came back from where nobody is: it never was an association.
                self.close(CloseReason::PathsFailed);
            } else {
                self.rejoin(now, index);
            }
        }
    }
}

fn put_info(info: Info, buf: &mut Vec<u8>) {
    let mut bytes = Vec::with_capacity(20);
    info.emit(&mut Writer::new(&mut bytes));
    Heartbeat { info: &bytes }.emit(&mut Writer::new(buf));
}
