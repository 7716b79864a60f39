mod blest;
mod by_rate;
mod daps;
mod earliest_delivery;
mod ecf;
mod fill_in_turn;
mod kind;
mod lowest_delay;
mod redundant;
mod round_robin;
#[cfg(test)]
mod tests;

pub use kind::SchedulerKind;

use crate::{PathView, View};
use core::fmt;
use core::time::Duration;

/// Says which path carries the next packet. [`SchedulerKind`] has them all by name.
///
/// The caller asks, and reports what it then did. A pick binds nobody: the caller may ask again, or
/// send nothing. What is remembered of what was sent changes in the `on_` calls only, and those may
/// name any path, picked or not.
pub trait Scheduler: fmt::Debug + Send {
    /// The index of the path to use next; it is ready. `None`: none is ready, or it is better to
    /// wait for one that is not.
    fn pick(&mut self, view: &View<'_>) -> Option<usize>;

    /// How many bytes of what waits are to be left to other paths, before what goes over `path`, which was just picked.
    fn ahead(&self, view: &View<'_>, path: usize) -> usize {
        let _ = (view, path);
        0
    }

    /// Returns `true` if each packet is to go over every path that can carry it, and not only over
    /// the one that is picked.
    fn is_everywhere(&self) -> bool {
        false
    }

    /// Returns `true` if measuring the way to the receiver alone is worth its bytes: it decides by
    /// differences of forward delays.
    fn heeds_forward_delay(&self) -> bool {
        false
    }

    /// All starts anew at `path`, where the handshake went.
    fn reset(&mut self, path: usize) {
        let _ = path;
    }

    /// A packet with `bytes` of data, new or sent again, left over `path`.
    fn on_sent(&mut self, path: usize, bytes: usize) {
        let _ = (path, bytes);
    }

    /// `bytes` left over `path` in its window that took no turn, for example redundancy.
    fn on_extra(&mut self, path: usize, bytes: usize) {
        let _ = (path, bytes);
    }

    /// The peer acknowledged data, on whichever path.
    fn on_acknowledged(&mut self) {}

    /// Data waits that the receiver has no room for.
    fn on_held(&mut self) {}

    /// What was sent over `path` is no longer waited for: its timer ran out, it answers again, or
    /// another path took its place.
    fn on_restarted(&mut self, path: usize) {
        let _ = path;
    }
}

/// Returns `true` if a path acknowledged nothing for so long that nothing waits for it: two round
/// trips, 50 ms at least.
fn stands_still(path: &PathView) -> bool {
    path.silent > Duration::from_millis(50) && path.silent / 2 > path.srtt.unwrap_or_default()
}

/// Bytes of a full packet, about: for schedulers whose sources count packets.
const PACKET: usize = 1200;

/// The ready path with the shortest round trip. An unmeasured path is tried at once: only traffic can measure it.
fn quickest_ready(view: &View<'_>) -> Option<usize> {
    quickest_two(view).map(|(ready, _)| ready)
}

/// Both at once: the ready path with the shortest round trip, and the quickest one that data may go over.
fn quickest_two<'a>(view: &View<'a>) -> Option<(usize, Option<(usize, &'a PathView)>)> {
    let (mut ready, mut fast) = (None::<(Duration, usize)>, None::<(Duration, usize)>);
    for (index, path) in view.paths.iter().enumerate() {
        let srtt = path.srtt.unwrap_or(Duration::ZERO);
        if path.ready && ready.is_none_or(|(least, _)| srtt < least) {
            ready = Some((srtt, index));
        }
        if path.active && path.srtt.is_some() && fast.is_none_or(|(least, _)| srtt < least) && !stands_still(path) {
            fast = Some((srtt, index));
        }
    }
    Some((ready?.1, fast.map(|(_, index)| (index, &view.paths[index]))))
}

/// Nanoseconds, without a division.
fn nanos(time: Duration) -> f64 {
    time.as_secs() as f64 * 1e9 + f64::from(time.subsec_nanos())
}

/// The first ready path behind the one that was `last`, which comes last itself.
fn next_ready(view: &View<'_>, last: usize) -> Option<usize> {
    let count = view.paths.len();
    let behind = last.saturating_add(1).min(count);
    (behind..count).chain(0..behind).find(|&path| view.paths[path].ready)
}
