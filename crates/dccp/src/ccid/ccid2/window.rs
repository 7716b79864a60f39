use braidcast_cc::{Acked, Algorithm, Conditions, Controller, Setup, Signal, Standard};

/// A congestion controller in packets. RFC 4341 counts these, while [`Controller`] counts bytes:
/// each packet stands for as many as a full one has, whatever its own.
#[derive(Debug)]
pub(super) struct Window {
    controller: Box<dyn Controller>,
    packet: usize,
    /// The controller's window, and what it comes to in packets, as every packet asks for it.
    window: usize,
    cwnd: u32,
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
        let mut window = Self { controller: algorithm.controller(&setup), packet, window: 0, cwnd: 0 };
        window.tell(|_| ());
        window
    }

    /// All that the controller is told goes through here.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Controller)) {
        what(&mut *self.controller);
        let window = self.controller.window();
        if self.window != window {
            self.window = window;
            self.cwnd = (window / self.packet).try_into().unwrap_or(u32::MAX);
        }
    }

    /// Bytes that `packets` stand for.
    pub(super) const fn bytes(&self, packets: u32) -> usize {
        self.packet * packets as usize
    }

    /// Packets that may be out, one at least.
    pub(super) const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Slow start threshold; `u32::MAX` before anything has set it.
    pub(super) fn ssthresh(&self) -> u32 {
        (self.controller.ssthresh() / self.packet).try_into().unwrap_or(u32::MAX)
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, path: &Conditions<'_>) {
        let packet = self.packet;
        self.tell(|controller| controller.on_sent(path, packet));
    }

    /// An acknowledgement came.
    pub(super) fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        self.tell(|controller| controller.on_acked(path, acked));
    }

    /// A packet was lost or marked, the first of those that were sent before that was noticed, or another one.
    pub(super) fn on_congestion(&mut self, path: &Conditions<'_>, why: Congestion, new_round: bool) {
        let signal = Signal { bytes: self.packet, new_round };
        self.tell(|controller| match why {
            Congestion::Lost => controller.on_lost(path, &signal),
            Congestion::Marked => controller.on_marked(path, &signal),
        });
    }

    /// All that was out is lost.
    pub(super) fn on_timeout(&mut self, path: &Conditions<'_>) {
        self.tell(|controller| controller.on_timeout(path));
    }

    /// Nothing was sent for a timeout: no more than `initial` packets, and slow start from there.
    pub(super) fn on_idle(&mut self, path: &Conditions<'_>, initial: u32) {
        let window = self.bytes(initial);
        self.tell(|controller| controller.on_idle(path, window));
    }

    /// Slow start ends here.
    pub(super) fn leave_slow_start(&mut self, path: &Conditions<'_>) {
        self.tell(|controller| controller.settle(path, controller.window()));
    }

    /// One packet less, and slow start ends.
    pub(super) fn shrink(&mut self, path: &Conditions<'_>) {
        let packet = self.packet;
        self.tell(|controller| controller.settle(path, controller.window().saturating_sub(packet)));
    }
}
