use super::{Connection, Control, Ending, Phase, ReorderBuffer};
use crate::api::CloseReason;
use crate::seq::Seq;
use crate::wire::{Reset, ResetCode};
use braidcast_core::Instant;
use core::time::Duration;

/// When something is repeated, after pauses that double up to 64 s (RFC 4340 §8.1.1, §8.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) at: Instant,
    pause: Duration,
}

impl Backoff {
    const MAX: Duration = Duration::from_secs(64);
    /// A round trip may measure as nothing, but a timer that runs out at once would never end.
    const MIN: Duration = Duration::from_millis(20);

    pub(super) fn new(now: Instant, pause: Duration) -> Self {
        let pause = pause.max(Self::MIN);
        Self { at: now + pause, pause }
    }

    /// Returns `true` if it is time; sets the next time if so.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.at <= now;
        if due {
            *self = Self::new(now, (self.pause * 2).min(Self::MAX));
        }
        due
    }
}

impl Connection {
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let state = match self.phase {
            Phase::Request { retry, give_up } => Some(retry.at.min(give_up)),
            Phase::Respond { give_up, .. } => Some(give_up),
            Phase::PartOpen { retry, give_up, .. } => Some(retry.at.min(give_up)),
            Phase::CloseReq { retry, .. } | Phase::Closing { retry, .. } => Some(retry.at),
            Phase::Open => None,
            Phase::Closed { .. } => return None,
        };
        let state = state.into_iter().chain(self.close_due()).min();
        if let Some(moving) = self.moving.as_ref().filter(|_| self.is_held()) {
            return state.into_iter().chain([moving.timer()]).min();
        }
        if !self.transfers() {
            return state.into_iter().chain(self.key_timeout()).min();
        }
        let times = [
            state,
            self.features.timer(),
            self.sender.timer(),
            self.receiver.ack_due(),
            self.receiver.timer(),
            self.reorder.as_ref().and_then(ReorderBuffer::due),
            self.pace,
            self.key_timeout(),
            self.moving.as_ref().map(super::moving::Move::timer),
            self.path_size.timer().filter(|_| matches!(self.phase, Phase::Open)),
        ];
        // A third cheaper than `flatten`, after each packet.
        times.into_iter().fold(None, |first, at| first.into_iter().chain(at).min())
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.sender.timer().is_some_and(|at| at <= now) {
            self.sender.on_timer(now);
            self.path_size.doubt(self.sender.losses());
            self.steer_features(now);
        }
        self.release(now);
        if self.receiver.timer().is_some_and(|at| at <= now) {
            self.receiver.on_timer(now);
        }
        if self.pace.is_some_and(|at| at <= now) {
            self.pace = None;
        }
        if self.key_timeout().is_some_and(|at| at <= now) {
            self.handle_key_timeout(now);
        }
        self.handle_move_timeout(now);
        let given_up = match self.phase {
            Phase::Request { give_up, .. } | Phase::Respond { give_up, .. } | Phase::PartOpen { give_up, .. } => {
                give_up <= now
            }
            _ => false,
        };
        if given_up || self.close_due().is_some_and(|at| at <= now) {
            return self.give_up();
        }
        let (retry, control) = match &mut self.phase {
            Phase::Request { retry, .. } => (retry, Control::Request),
            Phase::PartOpen { retry, .. } => (retry, Control::Ack),
            Phase::CloseReq { retry, .. } => (retry, Control::CloseReq),
            Phase::Closing { retry, .. } => (retry, Control::Close),
            Phase::Respond { .. } | Phase::Open | Phase::Closed { .. } => return,
        };
        if retry.is_due(now) {
            self.control(control);
        }
    }

    /// We did not run for `late`, until `now`: that is nobody's silence but our own.
    pub(crate) fn handle_late_wake(&mut self, now: Instant, late: Duration) {
        self.sender.on_late_wake(now);
        match &mut self.phase {
            Phase::Request { give_up, .. }
            | Phase::Respond { give_up, .. }
            | Phase::PartOpen { give_up, .. }
            | Phase::CloseReq { give_up, .. }
            | Phase::Closing { give_up, .. } => *give_up += late,
            Phase::Open | Phase::Closed { .. } => {}
        }
        if let Ending::WhenSent(since) = &mut self.ending {
            *since = now;
        }
    }

    /// The handshake or the end takes too long: the peer is told, in case that it got something
    /// (RFC 4340 §8.1.1, §8.1.3, §8.1.5).
    fn give_up(&mut self) {
        let known = !matches!(self.phase, Phase::Request { .. });
        let ack = if known { self.numbers.acknowledgeable } else { Seq::default() };
        self.control(Control::Reset { reset: Reset::new(ResetCode::ABORTED), ack });
        self.closed(CloseReason::NoAnswer, false);
    }
}
