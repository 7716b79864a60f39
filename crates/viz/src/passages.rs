//! A simulator's records of packets: where and when they were sent, and when they came.

use crate::exchange::{EndId, Exchange};
use crate::rows::{Known, PacketOutcome, Sent, What};
use braidcast_core::Instant;
use braidcast_trace::{Cargo, Passage};

fn ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

impl Exchange {
    /// Takes a packet that went from one of the ends to the other: from the first to the second,
    /// unless it goes [back](Passage::back).
    pub fn take_passage(&mut self, [near, far]: [EndId; 2], it: &Passage) {
        let from = if it.back { far.0 } else { near.0 };
        let what = match it.cargo {
            Cargo::Data => What::New,
            Cargo::DataAgain => What::Repeat,
            Cargo::Acknowledgement => What::Sack,
            Cargo::Control => What::Control,
        };
        let sent = ms(it.sent);
        let arrived = it.arrived.map_or(f64::NAN, ms);
        let number =
            it.number.filter(|_| what != What::Control).map_or(f64::NAN, |number| self.relative(0, from, number));
        let outcome = match (it.arrived, it.lost) {
            (Some(_), _) => PacketOutcome::Arrived,
            (None, true) => PacketOutcome::Lost,
            (None, false) => PacketOutcome::Unknown,
        };
        let path = u32::from(it.path);
        let row = Sent::new(sent, from, path, what, it.bytes);
        let stream = it.stream.map_or(row.stream, u32::from);
        self.sent.push(Sent { arrived, number, outcome, stream, ..row });
        let last = if arrived.is_nan() { sent } else { arrived };
        self.last[from] = self.last[from].max(last);
        if it.arrived.is_some() && matches!(it.cargo, Cargo::Data | Cargo::DataAgain) {
            let queued = it.queued.as_secs_f64() * 1e3;
            let nothing = f64::NAN;
            let known =
                Known { at: arrived, end: from, path, cwnd: nothing, in_flight: nothing, srtt: nothing, queued };
            self.known.push(known);
        }
    }
}
