//! What an application may send: the guide of [`braidcast_rate`], where it is asked for.

use super::Association;
use crate::api::{PathReport, PathState};
use braidcast_core::Instant;
use braidcast_rate::{PathSample, RateGuide, RateLimits, RateOptions, RateReport, View};
use core::time::Duration;

impl Association {
    /// Says from now on what the messages given to [`send`](Self::send) may have, in
    /// [`rate_report`](Self::rate_report). It takes some 10 kB, and nothing that is sent depends on
    /// it. Called again, it begins anew.
    pub fn follow_rate(&mut self, now: Instant, options: &RateOptions) {
        self.guide = Some(Box::new(RateGuide::of_messages(now, options)));
    }

    /// Other rates that the application is able to make, without forgetting what is known of the paths.
    pub fn set_rate_limits(&mut self, limits: RateLimits) {
        if let Some(guide) = &mut self.guide {
            guide.set_limits(limits);
        }
    }

    /// How much the next message may have, and which rate will hold for the next second. It is
    /// worked out anew each time that a message is sent or a packet comes, every 20 ms at most.
    /// If both ends send as much as one path carries, acknowledgements come late behind what the
    /// other end sends, and the rate stays below what the forward direction carries. `None` before
    /// [`follow_rate`](Self::follow_rate), and while the handshake is under way.
    pub fn rate_report(&self, now: Instant) -> Option<RateReport> {
        self.guide.as_ref().filter(|_| self.is_established()).map(|guide| guide.report(now))
    }

    /// What a guide wants to know. For those that have one of their own.
    pub fn rate_view(&self) -> View<impl Iterator<Item = PathSample> + '_> {
        View { paths: self.paths().map(sample), waiting: self.waiting() }
    }

    /// Has the guide look at the paths, if that is due. Called before a message waits itself.
    pub(super) fn look(&mut self, now: Instant) {
        if !self.guide.as_ref().is_some_and(|guide| guide.is_due(now)) || !self.is_established() {
            return;
        }
        if let Some(mut guide) = self.guide.take() {
            guide.look(now, self.rate_view());
            self.guide = Some(guide);
        }
    }

    /// A message was taken.
    pub(super) fn count(&mut self, now: Instant, bytes: usize) {
        if let Some(guide) = &mut self.guide {
            guide.on_unit(now, bytes, true, Duration::ZERO);
        }
    }
}

fn sample(path: PathReport) -> PathSample {
    PathSample {
        id: path.id.0,
        carries: path.state == PathState::Active,
        delivered: path.delivered_bytes,
        in_flight: path.in_flight,
        srtt: path.srtt,
        min_rtt: path.min_rtt,
        capacity: path.capacity,
        queued: path.queued,
    }
}
