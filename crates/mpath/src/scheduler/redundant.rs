use super::{Scheduler, quickest_ready};
use crate::View;

/// Each packet over all paths, the quickest first (Frömmgen, Erbshäußer, Buchmann, Zimmermann,
/// Wehrle, "ReMP TCP: Low latency multipath TCP", IEEE ICC 2016, §III): as quick as the quickest
/// for each packet, for as many times the bytes as there are paths.
#[derive(Debug)]
pub(super) struct Redundant;

impl Scheduler for Redundant {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        quickest_ready(view)
    }

    fn is_everywhere(&self) -> bool {
        true
    }
}
