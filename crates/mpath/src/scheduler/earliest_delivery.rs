use super::{Scheduler, nanos};
use crate::{PathView, View};
use core::time::Duration;

/// A path that loses fewer packets than this is trusted with what could not be sent again in time.
const TRUSTED: f32 = 0.005;

/// A path whose acknowledgement is overdue by this much stands still: nothing waits for it.
const SILENT: Duration = Duration::from_millis(50);

/// Time to spare for a repeat: forecasts differ by that.
const MARGIN: Duration = Duration::from_millis(10);

/// Of the paths with room, the one whose packet is expected to arrive first, if that is early
/// enough: a packet that gets lost there can come in time once more. Else it waits for a quicker
/// path that is full, if all that waits would be through over that one sooner (earliest completion
/// first: Lim, Nahum, Towsley, Gibbens, "ECF: An MPTCP Path Scheduler to Manage Heterogeneous
/// Paths", CoNEXT 2017, §4), or in time while this one loses packets, or if the rest of the message
/// would be shown late over this path and in time over that one (decision 40).
#[derive(Debug)]
pub(super) struct EarliestDelivery;

impl EarliestDelivery {
    /// From here to the receiver. A path whose answer is overdue, by more than round trips differ
    /// (as RFC 9260 §6.3.1 C3 reckons), is expected to take as much longer.
    fn delay(path: &PathView) -> Duration {
        // An unmeasured path is tried at once: only traffic can measure it.
        path.forward_delay.map_or(Duration::ZERO, |delay| delay.mean + path.silent.saturating_sub(4 * delay.deviation))
    }

    /// Returns `true` if `bytes` that are sent over `path` from now on would all be through `within` that time.
    fn is_through(path: &PathView, bytes: usize, within: Duration) -> bool {
        let Some(rate) = path.rate else { return false };
        let time = nanos(within) - nanos(Self::delay(path));
        // In slow start the window doubles each round trip.
        let rounds = || libm::log2(bytes as f64 / path.cwnd.max(1) as f64 + 1.0);
        let starting = path.srtt.filter(|_| path.ssthresh == usize::MAX);
        bytes as f64 * 1e9 <= rate * time || starting.is_some_and(|srtt| rate > 0.0 && rounds() * nanos(srtt) <= time)
    }

    /// Until a packet that is lost on `path` is there all the same, if that is known by the quickest path, over which
    /// it goes again.
    fn again(view: &View<'_>, known_lost: Duration) -> Duration {
        let answering = view.paths.iter().filter(|it| it.active && it.silent <= SILENT && it.srtt.is_some());
        known_lost + MARGIN + answering.map(Self::delay).min().unwrap_or_default()
    }

    /// Returns `true` if a packet that `path` loses would come in time when it is sent once more.
    fn is_safe(view: &View<'_>, path: &PathView) -> bool {
        let again = match path.known_lost {
            Some(known_lost) => Self::again(view, known_lost),
            // It goes again over the same one.
            None => path.srtt.unwrap_or_default() + 2 * Self::delay(path),
        };
        view.waiting.deadline.is_some_and(|deadline| view.now + again < deadline)
    }

    /// Returns `true` if a packet that `path` loses would come too late by the time it came over `other`.
    fn is_last_chance(view: &View<'_>, path: &PathView, other: &PathView) -> bool {
        let Some((deadline, srtt)) = view.waiting.deadline.zip(path.srtt) else { return false };
        let again = || match path.known_lost {
            Some(known_lost) => Self::again(view, known_lost),
            None => srtt + srtt / 4 + Self::delay(other),
        };
        path.loss_rate > TRUSTED
            && view.now + again() >= deadline
            // With as much time again: a path that is needed must not stand idle until the last moment.
            && Self::is_through(other, view.waiting.bytes, deadline.since(view.now) / 2)
    }

    /// Returns `true` if the rest of the message, sent over `path`, would be shown late, but not all of it over
    /// `other`: the end of a large frame belongs to the quicker path.
    fn is_late(view: &View<'_>, path: &PathView, other: &PathView) -> bool {
        let Some(due) = view.waiting.due.or(view.waiting.deadline) else { return false };
        view.now + Self::delay(path) >= due && Self::is_through(other, view.waiting.head, due.since(view.now))
    }
}

impl Scheduler for EarliestDelivery {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let ready = view.paths.iter().enumerate().filter(|(_, path)| path.ready);
        let (index, path) = ready.min_by_key(|(_, path)| Self::delay(path))?;
        if Self::is_safe(view, path) {
            return Some(index);
        }
        let delay = Self::delay(path);
        // With half as much time again: waiting for every small gain leaves the slow path idle (decision 19).
        let soon = delay * 2 / 3;
        let better = |(other, it): (usize, &PathView)| {
            let quicker = it.active && it.silent <= SILENT && other != index && Self::delay(it) < delay;
            let through = || Self::is_through(it, view.waiting.bytes, soon);
            quicker && (through() || Self::is_last_chance(view, path, it) || Self::is_late(view, path, it))
        };
        (!view.paths.iter().enumerate().any(better)).then_some(index)
    }
}
