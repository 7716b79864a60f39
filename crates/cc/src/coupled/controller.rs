use super::Congestion;
use crate::{Acked, Conditions, Controller, Policing, Signal};
use core::time::Duration;

/// A controller whose growth and losses depend on what the other paths of the connection do.
///
/// It hands all that happens on to the controller inside, and lets that see its
/// [`Siblings`](super::Siblings) under a rule.
#[derive(Debug)]
pub struct Coupled {
    rule: Congestion,
    inner: Box<dyn Controller>,
    /// Bytes acknowledged since the last loss, and between the two before it.
    delivered: (u64, u64),
}

impl Coupled {
    /// `inner` under `rule`.
    pub fn new(rule: Congestion, inner: Box<dyn Controller>) -> Self {
        Self { rule, inner, delivered: (0, 0) }
    }

    const fn view<'a>(&self, path: &Conditions<'a>) -> Conditions<'a> {
        Conditions { siblings: path.siblings.under(self.rule), ..*path }
    }

    /// The interval between two losses is over (`l_r` of draft-khalili-mptcp-congestion-control-05).
    const fn end_interval(&mut self) {
        self.delivered = (0, self.delivered.0);
    }
}

impl Controller for Coupled {
    fn on_sent(&mut self, path: &Conditions<'_>, bytes: usize) {
        self.inner.on_sent(&self.view(path), bytes);
    }

    fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        self.delivered.0 = self.delivered.0.saturating_add(acked.bytes as u64);
        self.inner.on_acked(&self.view(path), acked);
    }

    fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal) {
        if lost.new_round {
            self.end_interval();
        }
        self.inner.on_lost(&self.view(path), lost);
    }

    fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal) {
        if marked.new_round {
            self.end_interval();
        }
        self.inner.on_marked(&self.view(path), marked);
    }

    fn on_timeout(&mut self, path: &Conditions<'_>) {
        self.end_interval();
        self.inner.on_timeout(&self.view(path));
    }

    fn on_spurious_timeout(&mut self) {
        self.inner.on_spurious_timeout();
    }

    fn on_idle(&mut self, path: &Conditions<'_>, most: usize) {
        self.inner.on_idle(&self.view(path), most);
    }

    fn settle(&mut self, path: &Conditions<'_>, most: usize) {
        self.inner.settle(&self.view(path), most);
    }

    fn window(&self) -> usize {
        self.inner.window()
    }

    fn ssthresh(&self) -> usize {
        self.inner.ssthresh()
    }

    fn in_slow_start(&self) -> bool {
        self.inner.in_slow_start()
    }

    fn pacing_rate(&self, srtt: Option<Duration>) -> Option<f64> {
        self.inner.pacing_rate(srtt)
    }

    fn delivery_rate(&self) -> Option<f64> {
        self.inner.delivery_rate()
    }

    fn policing(&self) -> Policing {
        self.inner.policing()
    }

    fn between_losses(&self) -> u64 {
        self.delivered.0.max(self.delivered.1)
    }
}
