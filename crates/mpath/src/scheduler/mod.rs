mod earliest_delivery;
mod fill_in_turn;
mod kind;
mod lowest_delay;
mod round_robin;
#[cfg(test)]
mod tests;

pub use kind::SchedulerKind;

use crate::View;
use core::fmt;

/// Says which path carries the next packet. [`SchedulerKind`] has them all by name.
///
/// The caller asks, and tells what it then did. A pick binds nobody: the caller may ask again, or send nothing. What is
/// remembered of what was sent changes in the `on_` calls only, and those may name any path, picked or not.
pub trait Scheduler: fmt::Debug + Send {
    /// The index of the path to use next; it is ready. `None`: none is ready, or it is better to wait for one that is not.
    fn pick(&mut self, view: &View<'_>) -> Option<usize>;

    /// All starts anew at `path`, where the handshake went.
    fn reset(&mut self, path: usize) {
        let _ = path;
    }

    /// A packet with `bytes` of data, new or sent again, left over `path`.
    fn on_sent(&mut self, path: usize, bytes: usize) {
        let _ = (path, bytes);
    }

    /// `bytes` left over `path` in its window that took no turn, such as redundancy.
    fn on_extra(&mut self, path: usize, bytes: usize) {
        let _ = (path, bytes);
    }

    /// The peer acknowledged data, on whichever path.
    fn on_acknowledged(&mut self) {}

    /// What was sent over `path` is no longer waited for: its timer ran out, it answers again, or another path took its place.
    fn on_restarted(&mut self, path: usize) {
        let _ = path;
    }
}

/// The first ready path behind the one that was `last`, which comes last itself.
fn next_ready(view: &View<'_>, last: usize) -> Option<usize> {
    let count = view.paths.len();
    let behind = last.saturating_add(1).min(count);
    (behind..count).chain(0..behind).find(|&path| view.paths[path].ready)
}
