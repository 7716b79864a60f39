//! What came while something before it was missing: where data is delivered in order, it waits in the receive buffer.

use crate::rows::{PacketOutcome, Sent, What};
use std::collections::{BTreeMap, HashMap};

/// Bytes that wait for a gap to be filled, from a time on, in ms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Waiting {
    pub(crate) at: f64,
    pub(crate) bytes: u32,
}

/// The numbers of one association.
#[derive(Debug)]
struct Order {
    /// All up to here came, or were abandoned.
    cumulative: i64,
    beyond: BTreeMap<i64, u32>,
}

/// The changes of what waits for the data that `left` sent.
pub(crate) fn waiting(rows: &[Sent], left: usize) -> Vec<Waiting> {
    let counts = |row: &&Sent| row.end == left && !row.number.is_nan() && row.what != What::Redundancy;
    let mut orders: HashMap<u32, Order> = HashMap::new();
    for row in rows.iter().filter(counts) {
        let order = orders.entry(row.flow).or_insert(Order { cumulative: i64::MAX, beyond: BTreeMap::new() });
        order.cumulative = order.cumulative.min(row.number as i64 - 1);
    }
    let came = |row: &&Sent| !row.arrived.is_nan() && row.outcome != PacketOutcome::Duplicate;
    let mut arrivals: Vec<&Sent> = rows.iter().filter(counts).filter(came).collect();
    arrivals.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
    let (mut changes, mut bytes): (Vec<Waiting>, u64) = (Vec::new(), 0);
    for row in arrivals {
        let Some(order) = orders.get_mut(&row.flow) else { continue };
        let number = row.number as i64;
        if row.what == What::Forward {
            order.cumulative = order.cumulative.max(number);
        } else if number == order.cumulative + 1 {
            order.cumulative = number;
        } else if number > order.cumulative && order.beyond.insert(number, row.bytes).is_none() {
            bytes += u64::from(row.bytes);
        }
        while let Some(next) = order.beyond.first_entry().filter(|it| *it.key() <= order.cumulative + 1) {
            order.cumulative = order.cumulative.max(*next.key());
            bytes -= u64::from(next.remove());
        }
        let waits = u32::try_from(bytes).unwrap_or(u32::MAX);
        if changes.last().map_or(0, |last| last.bytes) != waits {
            changes.push(Waiting { at: row.arrived, bytes: waits });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(arrived: f64, number: f64, what: What) -> Sent {
        Sent { arrived, number, ..Sent::new(0.0, 0, 0, what, 100) }
    }

    #[test]
    fn what_comes_behind_a_gap_waits_until_it_is_filled_or_given_up() {
        let rows = [
            row(1.0, 0.0, What::New),
            row(2.0, 2.0, What::New),
            row(3.0, 3.0, What::New),
            row(9.0, 1.0, What::New),
            row(10.0, 6.0, What::New),
            row(11.0, 5.0, What::Forward),
            // What the other end sends is another order.
            Sent { end: 1, ..row(4.0, 7.0, What::New) },
            row(f64::NAN, 4.0, What::New),
        ];
        let changes: Vec<_> = waiting(&rows, 0).iter().map(|it| (it.at, it.bytes)).collect();
        assert_eq!(changes, [(2.0, 100), (3.0, 200), (9.0, 0), (10.0, 100), (11.0, 0)]);
    }
}
