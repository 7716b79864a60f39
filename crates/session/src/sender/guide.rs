use super::{Phase, Sender};
use braidcast_core::Instant;
use braidcast_media::Unit;
use braidcast_rate::{RateLimits, RateReport};
use core::time::Duration;

impl Sender {
    /// What an encoder may make now: its next frame, and in the next second. It is worked out
    /// from what the paths deliver, what waits before the frame, and the latency, each time that
    /// anything is pushed or comes, every 20 ms at most. `None` in a reliable session, which has no
    /// deadlines.
    pub fn rate_report(&self, now: Instant) -> Option<RateReport> {
        self.guide.as_ref().map(|guide| guide.report(now))
    }

    /// Says which rates the encoder is able to make, in place of
    /// [`SenderOptions::encoder`](crate::SenderOptions::encoder).
    pub fn set_rate_limits(&mut self, limits: RateLimits) {
        if let Some(guide) = &mut self.guide {
            guide.set_limits(limits);
        }
    }

    /// Changes [`SenderOptions::latency`](crate::SenderOptions::latency) for what is pushed from now on. The
    /// receiver plays each unit by the latency that it was sent with: if that grows, there is a pause; if it
    /// shrinks, what has not been played by then is late. Nothing changes in a reliable session.
    pub const fn set_latency(&mut self, latency: Duration) {
        if self.options.reliable {
            return;
        }
        self.options.latency = latency;
        if let Some(guide) = &mut self.guide {
            guide.set_latency(latency);
        }
        if let Some(chooser) = &mut self.chooser {
            chooser.set_deadline(latency);
        }
    }

    /// A unit comes in. Paths are looked at before it waits itself.
    pub(super) fn look_at(&mut self, now: Instant, unit: &Unit) {
        self.look_ahead(now);
        if let Some(guide) = &mut self.guide {
            guide.on_unit(now, unit.bytes.len(), unit.kind.is_video(), now.since(unit.first_captured));
        }
    }

    /// Has the guide look at the paths, if that is due.
    pub(super) fn look_ahead(&mut self, now: Instant) {
        if self.phase == Phase::Up
            && let Some(guide) = self.guide.as_mut().filter(|guide| guide.is_due(now))
            && let Some(association) = self.id.and_then(|id| self.endpoint.association(id))
        {
            guide.look(now, association.rate_view());
        }
    }
}
