//! Values of others: the CSV files that rows are joined with.

use crate::scenario::{Against, Column, Point, Reference, Scenario, Wrong, did_you_mean};

/// A file of the folder `reference`.
macro_rules! embedded {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reference/", $path)))),+]
    };
}

/// The files that the program has inside.
const EMBEDDED: [(&str, &str); 16] = embedded![
    "ns2/A_rtt_asymmetry.csv",
    "ns2/B_bandwidth_asymmetry.csv",
    "ns2/C_loss_asymmetry.csv",
    "ns2/D_lossy_symmetric.csv",
    "ns2/E_wifi_3g.csv",
    "ns2/F_sctp_single_path.csv",
    "ns2/Q_A_rtt_asymmetry_queue20.csv",
    "ns2/Q_B_bandwidth_asymmetry_queue20.csv",
    "ns2/S_sensitivity.csv",
    "ns2/T_wifi_3g_single_path.csv",
    "ns2/U_blocking.csv",
    "ns2/V_srtt.csv",
    "published/cmt-f6.9-srtt-ms.csv",
    "published/cmt-t6.1-blocking-ms.csv",
    "published/prcmt-f13-throughput.csv",
    "published/prcmt-f18-playable-pct.csv",
];

/// The references of a scenario, read.
#[derive(Debug)]
pub(crate) struct References<'a>(Vec<Table<'a>>);

#[derive(Debug)]
struct Table<'a> {
    reference: &'a Reference,
    head: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl<'a> References<'a> {
    /// Reads them all; a file or column that is not there is wrong.
    pub(crate) fn read(scenario: &'a Scenario) -> Result<Self, Wrong> {
        scenario.references.iter().map(|reference| Table::read(reference, scenario)).collect::<Result<_, _>>().map(Self)
    }

    /// The value of `metric` at `point`, if somebody has one.
    pub(crate) fn value(&self, against: Against, point: &Point, metric: &str) -> Option<f64> {
        self.0.iter().filter(|table| table.reference.against == against).find_map(|table| table.value(point, metric))
    }
}

impl<'a> Table<'a> {
    fn read(reference: &'a Reference, scenario: &Scenario) -> Result<Self, Wrong> {
        let path = format!("{}/{}", reference.against.name(), reference.file);
        let text = match EMBEDDED.iter().find(|(name, _)| *name == path) {
            Some((_, text)) => (*text).to_owned(),
            None => std::fs::read_to_string(scenario.folder.join(&reference.file)).map_err(|e| {
                let what = format!("the [[reference]] {} cannot be read: {e}", reference.file);
                let prefix = format!("{}/", reference.against.name());
                let known = EMBEDDED.iter().filter_map(|(name, _)| name.strip_prefix(&prefix));
                Wrong::new(&scenario.file, what, did_you_mean(&reference.file, known))
            })?,
        };
        let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
        let head = lines.next().unwrap_or_default();
        let table = Self { reference, head, lines: lines.collect() };
        let metrics = reference.metrics.values().map(|column| column.parts().0);
        let params = reference.params.values().chain(&reference.variant).chain(reference.at.keys());
        for column in params.map(String::as_str).chain(metrics) {
            if table.column(column).is_none() {
                let what = format!("{} has no column '{column}'", reference.file);
                return Err(Wrong::new(
                    &scenario.file,
                    what,
                    did_you_mean(column, table.head.iter().map(String::as_str)),
                ));
            }
        }
        Ok(table)
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.head.iter().position(|known| known == name)
    }

    fn value(&self, point: &Point, metric: &str) -> Option<f64> {
        let (column, factor) = self.reference.metrics.get(metric)?.parts();
        let cell = |line: &'_ [String], column: &str| line.get(self.column(column)?).cloned();
        let is_ours = |line: &[String]| {
            let variant = self.reference.variant.as_ref().is_none_or(|column| {
                let theirs = self.reference.variants.get(&point.variant).unwrap_or(&point.variant);
                cell(line, column).as_ref() == Some(theirs)
            });
            let fixed = |(column, value): (&String, &crate::scenario::Value)| {
                cell(line, column).is_some_and(|cell| value.says(&cell))
            };
            let param = |(name, column): (&String, &String)| {
                let value = point.params.iter().find(|(known, _)| known == name).map(|(_, value)| value);
                value.zip(cell(line, column)).is_some_and(|(value, cell)| value.says(&cell))
            };
            variant && self.reference.at.iter().all(fixed) && self.reference.params.iter().all(param)
        };
        let line = self.lines.iter().find(|line| is_ours(line))?;
        cell(line, column)?.parse::<f64>().ok().map(|value| value * factor)
    }
}

impl Column {
    fn parts(&self) -> (&str, f64) {
        match self {
            Self::Plain(column) => (column, 1.0),
            Self::Scaled { column, factor } => (column, *factor),
        }
    }
}
