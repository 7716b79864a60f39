use super::{Acked, Conditions, Controller, Counting, LossBasis, Setup, Signal};
use crate::{Decrease, Standard};

/// Reno, in bytes. [`Standard`] says what SCTP, TCP and DCCP make of it; relatives that differ in
/// what a loss leaves bring a [`Response`].
#[derive(Clone, Debug)]
pub(super) struct Reno<R = Halve> {
    standard: Standard,
    window: usize,
    ssthresh: usize,
    /// Bytes acknowledged that have not made the window grow yet (`partial_bytes_acked`, RFC 9260 §7.2.2).
    credit: usize,
    /// Window and threshold before the timeouts since the last acknowledgement or loss, in case they prove spurious.
    before_timeout: Option<(usize, usize)>,
    /// The timer expired, and nothing was acknowledged since.
    timed_out: bool,
    response: R,
}

/// What a loss leaves.
pub(super) trait Response: core::fmt::Debug + Default + Send {
    /// The share of `window` that is kept.
    fn kept(&self, window: usize, path: &Conditions<'_>) -> f64;
}

/// Half, whatever the loss (RFC 5681 §3.1, RFC 9260 §7.2.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Halve;

impl Response for Halve {
    fn kept(&self, _: usize, _: &Conditions<'_>) -> f64 {
        0.5
    }
}

impl<R: Response> Reno<R> {
    /// A window in slow start.
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            standard: setup.standard,
            window: setup.initial.max(setup.mtu),
            ssthresh: setup.ssthresh,
            credit: 0,
            before_timeout: None,
            timed_out: false,
            response: R::default(),
        }
    }

    fn grow(&mut self, path: &Conditions<'_>, acked: &Acked) {
        let growth = path.siblings.growth();
        let at_threshold = self.standard.counting == Counting::Bytes && growth.slow_start_at_threshold;
        if self.window < self.ssthresh || (self.window == self.ssthresh && at_threshold) {
            if acked.was_full {
                let step = self.slow_start_step(path.mtu, acked) as f64 * growth.slow_start;
                self.window = self.window.saturating_add(step.ceil() as usize);
            }
        } else if let Some(step) = self.avoidance_step(path.mtu, acked) {
            let step = (growth.avoidance * step as f64).ceil() as isize;
            // A rule that moves the window elsewhere leaves a packet, and slow start does not take it back.
            self.window = self.window.saturating_add_signed(step).max(self.window.min(path.mtu));
            self.ssthresh = self.ssthresh.min(self.window.saturating_sub(1));
        }
    }

    /// Bytes that slow start adds to a full window.
    fn slow_start_step(&mut self, mtu: usize, acked: &Acked) -> usize {
        if self.standard.counting != Counting::Packets {
            return acked.bytes.min(mtu);
        }
        self.credit = self.credit.saturating_add(acked.bytes);
        let most = usize::from(acked.ack_ratio / 2).max(1) * mtu;
        let step = (self.credit / 2 / mtu * mtu).min(most).min(self.ssthresh - self.window);
        self.credit = if step == most { 0 } else { self.credit % (2 * mtu) };
        step
    }

    /// Bytes that congestion avoidance adds, if an acknowledgement adds any.
    fn avoidance_step(&mut self, mtu: usize, acked: &Acked) -> Option<usize> {
        if self.standard.counting == Counting::Acks {
            let step = mtu.saturating_mul(mtu) / self.window.max(1);
            return (acked.was_full && acked.bytes > 0).then(|| step.max(1));
        }
        self.credit = self.credit.saturating_add(acked.bytes.saturating_sub(acked.uncredited));
        if self.credit < self.window {
            return None;
        }
        // What an application that does not fill the window earns is one step at most.
        if acked.was_full {
            self.credit -= self.window;
        } else if !self.standard.keeps_credit {
            self.credit = self.window;
        }
        acked.was_full.then_some(mtu)
    }

    /// A congestion event, of which a path on its own keeps the share `kept`: what is left of the window.
    fn reduce(&mut self, path: &Conditions<'_>, kept: f64) -> usize {
        let Decrease { kept, floor } = path.siblings.decrease(Decrease { kept, floor: self.standard.floor });
        let basis = match self.standard.loss_basis {
            LossBasis::Window => self.window,
            LossBasis::Flight => path.in_flight,
        };
        let share = (basis as f64 * kept) as usize;
        let fraction = if self.standard.counting == Counting::Packets { share % path.mtu } else { 0 };
        let left = (share - fraction).max(floor * path.mtu);
        self.ssthresh = left.max(self.standard.least_ssthresh * path.mtu);
        self.credit = 0;
        left
    }

    fn respond(&mut self, path: &Conditions<'_>, kept: f64) {
        self.before_timeout = None;
        self.window = self.reduce(path, kept);
    }
}

impl<R: Response> Controller for Reno<R> {
    fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        self.timed_out &= acked.bytes == 0;
        if acked.may_grow {
            self.grow(path, acked);
        }
        if path.in_flight == 0 && self.standard.counting == Counting::Bytes {
            self.credit = 0; // RFC 9260 §7.2.2.
        }
    }

    fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal) {
        if lost.new_round {
            self.respond(path, self.response.kept(self.window, path));
        }
    }

    fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal) {
        if marked.new_round {
            // RFC 8511 §3.1; RFC 3168 §6.1.2 without ABE.
            self.respond(path, if self.standard.abe && !self.in_slow_start() { 0.8 } else { 0.5 });
        }
    }

    fn on_timeout(&mut self, path: &Conditions<'_>) {
        self.before_timeout.get_or_insert((self.window, self.ssthresh));
        if !self.timed_out || self.standard.loss_basis == LossBasis::Window {
            self.reduce(path, 0.5);
        }
        self.timed_out = true;
        self.window = path.mtu;
    }

    fn on_spurious_timeout(&mut self) {
        if let Some((window, ssthresh)) = self.before_timeout.take() {
            self.window = self.window.max(window);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    fn on_idle(&mut self, path: &Conditions<'_>, most: usize) {
        self.window = self.window.min(most.max(path.mtu));
        if self.standard.counting == Counting::Packets {
            self.credit = 0;
        }
    }

    fn settle(&mut self, path: &Conditions<'_>, most: usize) {
        self.window = self.window.min(most.max(path.mtu));
        self.ssthresh = self.window.max(self.standard.least_ssthresh * path.mtu);
        self.credit = 0;
    }

    fn window(&self) -> usize {
        self.window
    }

    fn ssthresh(&self) -> usize {
        self.ssthresh
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.ssthresh || (self.window == self.ssthresh && self.standard.counting == Counting::Bytes)
    }
}

#[cfg(test)]
#[path = "reno_tests.rs"]
mod tests;
