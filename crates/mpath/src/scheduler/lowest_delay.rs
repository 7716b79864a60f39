use super::Scheduler;
use crate::View;
use core::time::Duration;

/// Of the paths with space, the one whose packet is expected to arrive first: half its round trip,
/// as RTT measurements already hold the time spent in queues. A slow path helps only once the
/// faster ones are full.
#[derive(Debug)]
pub(super) struct LowestDelay;

impl Scheduler for LowestDelay {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let ready = view.paths.iter().enumerate().filter(|(_, path)| path.ready);
        // An unmeasured path is tried at once: only traffic can measure it.
        ready.min_by_key(|(_, path)| path.srtt.unwrap_or(Duration::ZERO)).map(|(index, _)| index)
    }
}
