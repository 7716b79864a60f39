use braidcast_cc::{Acked, Algorithm, Conditions, Controller, Setup, Signal, Standard};

/// A congestion controller in packets. RFC 4341 counts these, while [`Controller`] counts bytes: each packet stands for as many
/// as a full one has, whatever its own.
#[derive(Debug)]
pub(super) struct Window {
    controller: Box<dyn Controller>,
    packet: usize,
}

/// Why the window is reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Congestion {
    Lost,
    Marked,
}

impl Window {
    /// A window in slow start that begins with `initial` packets of `packet` bytes.
    pub(super) fn new(algorithm: Algorithm, packet: usize, initial: u32) -> Self {
        let packet = packet.max(1);
        let setup = Setup { initial: packet * initial as usize, ..Setup::new(Standard::RFC_4341, packet) };
        Self { controller: algorithm.controller(&setup), packet }
    }

    /// Bytes that `packets` stand for.
    pub(super) const fn bytes(&self, packets: u32) -> usize {
        self.packet * packets as usize
    }

    /// Packets that may be out, one at least.
    pub(super) fn cwnd(&self) -> u32 {
        (self.controller.window() / self.packet).try_into().unwrap_or(u32::MAX)
    }

    /// Slow start threshold; `u32::MAX` before anything has set it.
    pub(super) fn ssthresh(&self) -> u32 {
        (self.controller.ssthresh() / self.packet).try_into().unwrap_or(u32::MAX)
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, path: &Conditions<'_>) {
        self.controller.on_sent(path, self.packet);
    }

    /// An acknowledgement came.
    pub(super) fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        self.controller.on_acked(path, acked);
    }

    /// A packet was lost or marked, the first of those that were sent before that was noticed, or another one.
    pub(super) fn on_congestion(&mut self, path: &Conditions<'_>, why: Congestion, new_round: bool) {
        let signal = Signal { bytes: self.packet, new_round };
        match why {
            Congestion::Lost => self.controller.on_lost(path, &signal),
            Congestion::Marked => self.controller.on_marked(path, &signal),
        }
    }

    /// All that was out is lost.
    pub(super) fn on_timeout(&mut self, path: &Conditions<'_>) {
        self.controller.on_timeout(path);
    }

    /// Nothing was sent for a timeout: no more than `initial` packets, and slow start from there.
    pub(super) fn on_idle(&mut self, path: &Conditions<'_>, initial: u32) {
        self.controller.on_idle(path, self.bytes(initial));
    }

    /// Slow start ends here.
    pub(super) fn leave_slow_start(&mut self, path: &Conditions<'_>) {
        self.controller.settle(path, self.controller.window());
    }

    /// One packet less, and slow start ends.
    pub(super) fn shrink(&mut self, path: &Conditions<'_>) {
        self.controller.settle(path, self.controller.window().saturating_sub(self.packet));
    }
}
