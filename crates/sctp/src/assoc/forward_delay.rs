//! Forward delays of the paths by timestamps (THESIS §7.1.3, eq. 7.6; decision 21).
//!
//! A timestamp and its echo give delay plus the difference of two clocks. That difference is the
//! same for all paths, so that differences of delays are exact. It is taken to be what makes the
//! quickest path as long there as round trips alone would have it, within what all paths allow: no
//! way is shorter than nothing, or longer than its round trip. Where no difference of clocks fits
//! all paths somebody does not tell the truth, and round trips alone count.

use super::Open;
use crate::path::{ForwardDelay, Path, PathIndex};
use crate::rx::micros;
use crate::wire::chunk::{Timestamp, TimestampEcho};
use braidcast_core::{Instant, PathId, Writer};
use braidcast_mpath::{Delay, PathView};
use core::time::Duration;

/// What is known of the clocks of both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// The first difference that was seen, µs, which all others are counted from; it wraps.
    first: Option<u32>,
    /// Until then what the peer says is not believed.
    doubted_until: Instant,
}

impl Open {
    /// Timestamps older than that are not believed, µs.
    const OLDEST: u32 = 10_000_000;
    /// For how long timestamps are not believed after the receive window was shut.
    const DOUBT: Duration = Duration::from_secs(30);

    /// Returns `true` if forward delays are measured.
    fn measures(&self) -> bool {
        self.agreed.timestamps && (self.scheduler.heeds_forward_delay() || self.heeds_forward_delay())
    }

    /// Returns `true` if packets are stamped: forward delays are measured, or messages say when they
    /// are due by our clock, which the peer has to know then (decision 39).
    pub(super) fn stamps(&self) -> bool {
        self.measures() || self.queue.has_timed()
    }

    /// Bytes that new data over the path `index` leaves to a timestamp.
    pub(super) fn timestamp_reserve(&self, now: Instant, index: PathIndex) -> usize {
        let reserved = self.measures() || (self.stamps() && self.paths[index].one_way().is_due(now));
        if reserved { Timestamp::LEN } else { 0 }
    }

    /// Appends a timestamp to a packet that leaves over the path `index`, if one is due and fits.
    pub(super) fn put_timestamp(&mut self, now: Instant, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        if self.stamps() && buf.len() + Timestamp::LEN <= end && self.paths[index].takes_timestamp(now) {
            let PathId(path) = self.paths[index].id();
            Timestamp { path, sent: micros(now), quiet: !self.measures() }.emit(&mut Writer::new(buf));
        }
    }

    /// Timestamps of ours came back.
    pub(super) fn handle_timestamp_echo(&mut self, now: Instant, echo: &TimestampEcho<'_>) {
        for arrival in echo.arrivals.iter() {
            let age = micros(now).wrapping_sub(arrival.sent);
            let Some(index) = self.paths.by_id(PathId(arrival.path)) else { continue };
            if age > Self::OLDEST || arrival.elapsed > age {
                continue; // Not of now, or nonsense.
            }
            if self.paths[index].on_train_arrival(arrival.sent, arrival.arrived) {
                continue;
            }
            let difference = arrival.arrived.wrapping_sub(arrival.sent);
            let first = *self.clocks.first.get_or_insert(difference);
            let measured = i64::from(difference.wrapping_sub(first).cast_signed());
            self.paths[index].on_timestamp_echo(now, measured);
        }
    }

    /// The receive window is shut. Perhaps that is because data was sent by delays that the peer
    /// made up, and comes out of order: round trips, which it cannot make shorter, count for a
    /// while.
    pub(super) fn doubt_timestamps(&mut self, now: Instant) {
        if self.measures() {
            self.clocks.doubted_until = now + Self::DOUBT;
        }
    }

    /// Puts into `views` the forward delays that were measured one way.
    pub(super) fn fill_forward_delays(&self, now: Instant, views: &mut [PathView]) {
        if !self.measures() || now < self.clocks.doubted_until {
            return;
        }
        let measured = || self.paths.enumerate().filter_map(|(index, path)| Some((index, Bounds::of(now, path)?)));
        if measured().count() < 2 {
            return; // One alone has nothing to be compared with.
        }
        let least = measured().map(|(_, it)| it.delay.mean - it.longest).max().unwrap_or_default();
        let most = measured().map(|(_, it)| it.delay.mean + it.delay.deviation).min().unwrap_or_default();
        let Some((quickest, reference)) = measured().min_by_key(|(_, it)| it.longest) else { return };
        if least > most {
            return;
        }
        let usual = views.get(quickest.get()).and_then(|view| view.forward_delay).unwrap_or_default();
        let difference = (reference.delay.mean - usual.mean.as_micros() as i64).clamp(least, most);
        for (index, it) in measured() {
            let us = |n: i64| Duration::from_micros(n.clamp(0, it.longest).unsigned_abs());
            let delay = Delay { mean: us(it.delay.mean - difference), deviation: us(it.delay.deviation) };
            if let Some(view) = views.get_mut(index.get()) {
                view.forward_delay = Some(delay);
            }
        }
    }
}

/// What one path allows.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    delay: ForwardDelay,
    /// The way there is no longer than the round trip, as far as that is certain, µs.
    longest: i64,
}

impl Bounds {
    fn of(now: Instant, path: &Path) -> Option<Self> {
        let (delay, srtt) = (path.one_way().delay(now)?, path.rtt().srtt()?);
        let longest = (srtt + path.queued() + 2 * path.rtt().rttvar()).as_micros() as i64 + delay.deviation;
        Some(Self { delay, longest })
    }
}

#[cfg(test)]
mod tests;
