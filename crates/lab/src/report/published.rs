//! The tables that the sources publish, each with what came of it here.

use maud::{Markup, html};

use crate::results::{Outcome, Results, Table};

/// The tables and figures whose values the sources publish, and for those that no row stands beside why not.
const PUBLISHED: [(&str, &str); 27] = [
    ("THESIS table 4.3, 4.5", ""),
    ("THESIS table 4.4, 4.6", ""),
    ("THESIS table 4.7", ""),
    ("THESIS table 4.8", ""),
    ("THESIS table 5.1", ""),
    ("THESIS table 5.2", ""),
    ("THESIS table 5.3", ""),
    ("THESIS table 6.1", ""),
    ("THESIS table 9.1", XSTREAM),
    ("THESIS table 9.2", ""),
    ("THESIS table 9.3", ""),
    ("THESIS table 9.4", ""),
    ("SBPN table 5.1", ""),
    ("SBPN table 5.2", ""),
    ("SBPN table 5.3", ""),
    ("SBPN table 5.4", ""),
    ("SBPN table 7.1", ""),
    ("SBPN table 7.2", ""),
    ("SBPN table 7.3", ""),
    ("SBPN table 7.4", ""),
    ("SBPN table 7.5", ""),
    ("PATHS table 8.4", ""),
    ("PATHS table 8.5, 8.6", ""),
    ("PATHS table 8.7", ""),
    ("PRCMT fig. 13", ""),
    ("PRCMT fig. 14", "the film that was sent, not a result: prcmt-video sends it"),
    ("PRCMT fig. 18", ""),
];

const XSTREAM: &str = "PSNR needs video: tools/xstream.py --results has it encoded by x264 and puts the table here (docs/measurements.md)";

/// The tables of all results under their names: one may be compared in several experiments.
fn joined(results: &[Results]) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    for table in results.iter().flat_map(|it| &it.tables) {
        match all.iter_mut().find(|it| it.name == table.name) {
            Some(known) => {
                known.rows += table.rows;
                known.near += table.near;
                known.traced += table.traced;
                known.arithmetic += table.arithmetic;
                known.noise += table.noise;
                known.unknown += table.unknown;
                known.unexplained += table.unexplained;
                known.claims.extend(&table.claims);
            }
            None => all.push(table.clone()),
        }
    }
    all
}

/// A line for each published table: the sources' first, then what else was compared.
pub(super) fn tables(results: &[Results]) -> Markup {
    let joined = joined(results);
    let of = |name: &str| joined.iter().find(|it| it.name == name);
    let others = joined.iter().filter(|it| !PUBLISHED.iter().any(|(name, _)| it.name == *name));
    html! {
        @if !joined.is_empty() {
            details {
                summary { "Published tables: how near, and why not" }
                div.wide { table {
                    thead { tr {
                        th { "table" } th.number { "values" } th.number { "within 15 %" } th.number { "traced" }
                        th.number { "arithmetic" } th.number { "noise" } th.number { "unknown" } th.number { "unexplained" }
                        th.number { "confirmed" } th.number { "mixed" } th.number { "refuted" }
                    } }
                    tbody {
                        @for (name, why) in PUBLISHED {
                            @match of(name) {
                                Some(table) => (line(table)),
                                None => tr { td { (name) } td colspan="10" {
                                    span.quiet { @if why.is_empty() { "not run" } @else { (why) } }
                                } },
                            }
                        }
                        @for table in others { (line(table)) }
                    }
                } }
            }
        }
    }
}

fn line(table: &Table) -> Markup {
    let count = |outcome| table.claims.iter().filter(|it| **it == outcome).count();
    let share = |part: usize| html! { td.number { (part * 100 / table.rows.max(1)) " %" } };
    html! {
        tr {
            td { (table.name) } td.number { (table.rows) } (share(table.near)) (share(table.traced)) (share(table.arithmetic))
            (share(table.noise)) (share(table.unknown))
            td.number.far[table.unexplained > 0] { (table.unexplained) }
            @for outcome in [Outcome::Confirmed, Outcome::Mixed, Outcome::Refuted] { td.number { (count(outcome)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PUBLISHED;
    use crate::Scenario;

    #[test]
    fn a_table_stands_beside_an_experiment_or_is_said_why_not() {
        let scenarios = Scenario::all().unwrap();
        let compared = |name: &str| {
            let mut tables = scenarios.iter().flat_map(|it| &it.references).filter_map(|it| it.table.as_deref());
            tables.any(|table| table == name)
        };
        for (name, why) in PUBLISHED {
            assert!(compared(name) == why.is_empty(), "{name}: {why}");
        }
    }
}
