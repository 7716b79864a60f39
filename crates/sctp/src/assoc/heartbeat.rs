use super::Association;
use crate::api::PathState;
use crate::path::Info;
use crate::wire::chunk::{self, Heartbeat, HeartbeatAck, Pad};
use crate::wire::{Chunk, Header};
use braidcast_core::{Instant, Writer};

impl Association {
    /// HEARTBEAT: sent back as it came (RFC 9260 §8.3), over the path it came from.
    pub(super) fn answer_heartbeat(&mut self, slot: usize, heartbeat: &Heartbeat<'_>) {
        if self.state.is_up() {
            self.control_chunk(slot, &Chunk::HeartbeatAck(HeartbeatAck { info: heartbeat.info }));
        }
    }

    /// HEARTBEAT ACK: the path works, and this is its round trip.
    pub(super) fn handle_heartbeat_ack(&mut self, now: Instant, slot: usize, ack: &HeartbeatAck<'_>) {
        let (interval, queueing_limit) =
            (self.options.paths.heartbeat_interval, self.options.congestion.queueing_limit);
        let Ok(info) = Info::parse(ack.info) else { return };
        let Some(path) = self.paths.get_mut(slot).filter(|path| path.id == info.path) else { return };
        if info.probe_size > 0 {
            if info.nonce == path.pmtu_nonce {
                path.pmtu.answered(now, usize::from(info.probe_size));
            }
            return;
        }
        let late = if path.heartbeats.answered(now, info.nonce, interval) {
            false
        } else if path.heartbeats.answered_late(info.nonce) {
            true
        } else {
            return;
        };
        // Late because it stood in a queue, with all else that is under way there, or because the path stood still?
        if !late || path.errors == 0 {
            let rtt = now - info.sent;
            path.rtt.sample(rtt);
            path.measured = now;
            if path.in_flight > 0 {
                path.queueing.observe(now, rtt);
                path.shorten_queue(queueing_limit, false);
            }
        }
        if late {
            path.window.undo_timeout();
        }
        self.path_answers(now, slot);
    }

    pub(super) fn put_heartbeat(&mut self, now: Instant, slot: usize, buf: &mut Vec<u8>) {
        let nonce = self.rng.u64();
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.heartbeats.sent(now, nonce, path.rtt.rto());
        put_info(Info { path: path.id, sent: now, nonce, probe_size: 0 }, buf);
    }

    /// A HEARTBEAT padded to the size in question (RFC 8899 §6.2.1), in a packet that holds nothing else of weight.
    pub(super) fn put_mtu_probe(&mut self, now: Instant, slot: usize, start: usize, buf: &mut Vec<u8>) {
        let nonce = self.rng.u64();
        let Some(path) = self.paths.get_mut(slot) else { return };
        let Some(size) = path.pmtu.due(now) else { return };
        path.pmtu.sent(now, path.rtt.rto());
        path.pmtu_nonce = nonce;
        put_info(Info { path: path.id, sent: now, nonce, probe_size: size as u16 }, buf);
        let used = buf.len() - start;
        if size >= used + 4 {
            chunk::Chunk::Pad(Pad { len: size - used - 4 }).emit(&mut Writer::new(buf));
        }
        debug_assert!(used >= Header::LEN);
    }

    /// A heartbeat of the path in `slot`, sent at `asked`, was not answered within its RTO.
    pub(super) fn handle_heartbeat_failure(&mut self, now: Instant, slot: usize, asked: Instant) {
        let Some(path) = self.paths.get_mut(slot) else { return };
        let mtu = path.mtu();
        if path.answered > asked {
            path.heartbeats.postpone(now, self.options.paths.heartbeat_interval);
            return; // One packet was lost; the data that came through since speaks for the path (RFC 9260 §8.2).
        }
        if path.in_flight == 0 {
            path.window.on_silence(mtu);
        }
        if self.options.paths.quick_failover.is_some() || path.state == PathState::Unconfirmed {
            path.pending.heartbeat = true; // RFC 7829 §4: each RTO.
        } else {
            path.heartbeats.postpone(now, self.options.paths.heartbeat_interval); // RFC 9260 §8.3.
        }
        self.path_failed(slot);
        self.rejoin(now, slot);
    }
}

fn put_info(info: Info, buf: &mut Vec<u8>) {
    let mut bytes = Vec::with_capacity(20);
    info.emit(&mut Writer::new(&mut bytes));
    Heartbeat { info: &bytes }.emit(&mut Writer::new(buf));
}
