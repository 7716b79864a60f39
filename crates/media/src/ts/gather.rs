use super::NULL_PID;
use crate::unit::{Kind, Run, Unit};
use braidcast_core::Instant;
use std::collections::VecDeque;

/// Null packets that wait for a unit to travel with.
const MAX_NULLS: u64 = 512;

/// Units that are complete, and the null packets that will travel with the next one.
#[derive(Debug, Default)]
pub(super) struct Gather {
    pub(super) ready: VecDeque<Unit>,
    pub(super) nulls: Vec<Run>,
    null_count: u64,
    nulls_captured: Instant,
    pub(super) nulls_total: u64,
}

impl Gather {
    /// Takes a null packet.
    pub(super) fn null(&mut self, now: Instant, index: u64) {
        Run::append(&mut self.nulls, index, true);
        self.null_count += 1;
        self.nulls_total += 1;
        self.nulls_captured = now;
        if self.null_count >= MAX_NULLS {
            self.flush_nulls();
        }
    }

    /// Takes a complete unit, in whose runs the waiting null packets are.
    pub(super) fn unit(&mut self, unit: Unit) {
        self.ready.push_back(unit);
        self.null_count = 0;
    }

    /// When the last waiting null packet came.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        (self.null_count > 0).then_some(self.nulls_captured)
    }

    /// Sends off null packets that found no unit to travel with.
    pub(super) fn flush_nulls(&mut self) {
        if self.nulls.is_empty() {
            return;
        }
        self.null_count = 0;
        self.ready.push_back(Unit {
            kind: Kind::Other,
            reference: false,
            continues: false,
            more: false,
            pid: NULL_PID,
            runs: core::mem::take(&mut self.nulls),
            bytes: Vec::new(),
            first_captured: self.nulls_captured,
            last_captured: self.nulls_captured,
            pts: None,
            dts: None,
        });
    }
}
