use crate::seq::{Seq, back, later};

/// The sequence number variables of RFC 4340 §7.1, by their names there.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) iss: Seq,
    pub(super) isr: Seq,
    pub(super) gss: Seq,
    pub(super) gsr: Seq,
    pub(super) gar: Seq,
    /// First number received in OPEN.
    pub(super) osr: Option<Seq>,
    /// Greatest number of a packet that became acknowledgeable (§7.4), which acknowledgements
    /// carry. GSR may be ahead, as §8.5 step 7 drops packets after step 6 has moved it.
    pub(super) acknowledgeable: Seq,
    /// Windows are cut at ISS and ISR, as long as they would reach below (§7.5.1).
    pub(super) cut_sent: bool,
    pub(super) cut_received: bool,
}

impl Numbers {
    /// Before anything was sent: the first packet will have number `iss`.
    pub(super) fn new(iss: Seq) -> Self {
        let none = Seq::default();
        Self {
            iss,
            isr: none,
            gss: back(iss, 1),
            gsr: none,
            gar: iss,
            osr: None,
            acknowledgeable: none,
            cut_sent: true,
            cut_received: true,
        }
    }

    /// The peer's first number.
    pub(super) const fn begin_receiving(&mut self, isr: Seq) {
        self.isr = isr;
        self.gsr = isr;
        self.acknowledgeable = isr;
    }

    /// Takes the number of a packet to be sent.
    pub(super) fn take(&mut self) -> Seq {
        self.gss = self.gss.plus(1);
        self.gss
    }

    /// `[SWL, SWH]` where the peer's Sequence Window is `w` (§7.5.1).
    pub(super) fn received_window(&mut self, w: u64) -> (Seq, Seq) {
        let behind = w / 4;
        let low = back(self.gsr, behind.saturating_sub(1));
        self.cut_received &= self.isr.distance_to(self.gsr) < behind;
        let low = if self.cut_received { self.isr } else { low };
        (low, self.gsr.plus(w - behind))
    }

    /// `[AWL, AWH]` where our Sequence Window is `w` (§7.5.1).
    pub(super) fn sent_window(&mut self, w: u64) -> (Seq, Seq) {
        self.cut_sent &= self.iss.distance_to(self.gss) < w;
        let low = if self.cut_sent { self.iss } else { back(self.gss, w - 1) };
        (low, self.gss)
    }

    /// A valid packet has moved the window.
    pub(super) fn received(&mut self, seq: Seq) {
        self.gsr = later(self.gsr, seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_as_rfc_4340_7_5_1_draws_them() {
        let mut n = Numbers::new(Seq::new(1000));
        n.begin_receiving(Seq::new(10));
        n.take();
        assert_eq!(n.received_window(100), (Seq::new(10), Seq::new(85)));
        assert_eq!(n.sent_window(100), (Seq::new(1000), Seq::new(1000)));
        n.received(Seq::new(60));
        assert_eq!(n.received_window(100), (Seq::new(36), Seq::new(135)));
        (0..300).for_each(|_| _ = n.take());
        assert_eq!(n.sent_window(100), (Seq::new(1201), Seq::new(1300)));
    }
}
