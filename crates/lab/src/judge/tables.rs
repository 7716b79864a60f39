//! What became of each published table: how many of its values are near, how many of the others
//! have a reason, and the claims about what it shows.

use super::claims::pairs;
use super::{Placed, differences};
use crate::results::{Difference, Found, Table, Verdict};
use crate::scenario::Scenario;

/// A line for each published table that rows were joined with, in the order in which the scenario names them.
pub(crate) fn tables(
    scenario: &Scenario,
    rows: &[Placed<'_>],
    verdicts: &[Verdict],
    differences: &[Difference],
) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (_, row) in rows {
        let (Some(name), Some(theirs)) = (&row.table, row.published) else { continue };
        let place = tables.iter().position(|it| it.name == *name).unwrap_or_else(|| {
            tables.push(Table { name: name.clone(), ..Table::default() });
            tables.len() - 1
        });
        let table = &mut tables[place];
        table.rows += 1;
        if !differences::is_far(row.mean, theirs) {
            table.near += 1;
            continue;
        }
        let is_it = |it: &&Difference| {
            it.against == "published" && it.metric == row.metric && it.variant == row.variant && it.params == row.params
        };
        match differences.iter().find(is_it).and_then(|it| it.found) {
            Some(Found::Traced) => table.traced += 1,
            Some(Found::Arithmetic) => table.arithmetic += 1,
            Some(Found::Noise) => table.noise += 1,
            Some(Found::Unknown) => table.unknown += 1,
            None => table.unexplained += 1,
        }
    }
    for table in &mut tables {
        for (claim, verdict) in scenario.claims.iter().zip(verdicts) {
            let of_it = |(_, row): &Placed<'_>| row.table.as_ref() == Some(&table.name);
            if pairs(claim, rows).iter().any(|(high, low)| of_it(high) || of_it(low)) {
                table.claims.push(verdict.outcome);
            }
        }
    }
    tables
}
