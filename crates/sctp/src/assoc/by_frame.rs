//! Frames laid over paths: what each path still delivers, and what the queue says of it.

use super::Open;
use super::choose::Avoided;
use crate::path::PathIndex;
use braidcast_core::Instant;
use braidcast_queue::{Curve, knob};

impl Open {
    /// Returns `true` if the queue says what goes over which path.
    pub(super) fn goes_by_frame(&self) -> bool {
        self.options.paths.concurrent
            && self.options.paths.scheduler == braidcast_mpath::SchedulerKind::ByFrame
            && self.queue.front().is_some_and(crate::tx::Front::lays_out)
    }

    /// Lays what waits over the paths.
    fn lay_out(&mut self, now: Instant) {
        if self.queue.front().is_none_or(crate::tx::Front::is_drained) {
            return;
        }
        let mut curves = core::mem::take(&mut self.scratch.curves);
        curves.clear();
        for place in 0..self.paths.places() {
            let index = self.paths.at(place).filter(|&index| self.paths.is_best(index));
            curves.push(index.map_or_else(Curve::default, |index| self.curve(now, index)));
        }
        self.queue.lay_out(now, &curves);
        self.scratch.curves = curves;
        while let Some((key, why, untouched)) = self.queue.next_gone() {
            if untouched {
                self.journal.abandoned(self.queue.get(key), Some(why), true);
                self.queue.forget(key);
            } else {
                let (ledger, books) = self.books();
                ledger.abandon(books, key);
            }
        }
    }

    /// What the path still delivers.
    pub(super) fn curve(&self, now: Instant, index: PathIndex) -> Curve {
        let path = &self.paths[index];
        let in_flight = self.ledger.in_flight_over(index);
        let rtt = path.shortest_round_trip().unwrap_or_default().as_secs_f64();
        let oldest = self.ledger.sent_over(index).next().map(|(_, _, chunk)| chunk.sent());
        let silent = path.silent_for(now, oldest).saturating_sub(4 * path.rtt().rttvar()).as_secs_f64();
        let by_window = path.cwnd() as f64 / path.rtt().srtt().map_or(0.1, |srtt| srtt.as_secs_f64()).max(1e-3);
        let rate = if path.rate_is_lower_bound() {
            path.known_rate().unwrap_or_default().max(by_window)
        } else {
            path.known_rate().unwrap_or(by_window) * knob("K_RATE")
        };
        let queue = (in_flight as f64 / rate.max(1.0) - rtt).max(0.0);
        let late = if silent > 0.02 { 0.9 * ((silent - 0.02) / 0.08).clamp(0.0, 1.0) } else { 0.0 };
        Curve {
            first: rtt / 2.0 + queue + silent * knob("K_SILENT"),
            rate,
            loss: path.losses_of_late(),
            late: path.lateness().map(|it| it.max(late)),
            again: 1.25 * rtt + queue,
        }
    }

    pub(super) fn suits_by_frame(&self, index: PathIndex) -> bool {
        self.queue.peek_over(index.get()).is_some_and(|(key, _)| {
            let front = self.queue.front().map_or((0, 0), |front| (front.bytes(), front.most_bytes()));
            let sent = self.queue.held_bytes() - front.0;
            !self.queue.is_untouched(key)
                || sent == 0
                || sent + self.queue.get(key).payload.len() <= self.options.limits.send_buffer - front.1
        })
    }

    pub(super) fn choose_by_frame(&mut self, now: Instant, ready: impl Iterator<Item = PathIndex>) {
        self.lay_out(now);
        for index in ready.filter(|index| index.get() < Avoided::BITS) {
            if !self.suits_by_frame(index) {
                self.avoided.add(index);
                let in_flight = self.ledger.in_flight_over(index);
                self.paths[index].on_app_limited(in_flight);
            }
        }
    }
}
