//! Values of others: the CSV files that rows are joined with.

use crate::scenario::{Against, Column, Point, Reference, Scenario, Wrong, did_you_mean};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file of the folder `reference`.
macro_rules! embedded {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reference/", $path)))),+]
    };
}

/// The files that the program has inside.
const EMBEDDED: &[(&str, &str)] = &embedded![
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
    "ns2/W_reordering.csv",
    "published/cmt-f6.9-srtt-ms.csv",
    "published/cmt-t6.1-blocking-ms.csv",
    "published/daps-t7.1-t7.2.csv",
    "published/dccp-f4.5-r-score.csv",
    "published/dccp-t4.3-t4.5-satellite-loss.csv",
    "published/dccp-t4.4-t4.6-jitter-ms.csv",
    "published/dccp-t4.7-download.csv",
    "published/dccp-t4.8-fairness.csv",
    "published/dccp-f5.2-efficiency.csv",
    "published/dccp-t5.1-reordering.csv",
    "published/dccp-t5.2-reorder-mos-voice.csv",
    "published/dccp-t5.3-reorder-mos-video.csv",
    "published/ecmt-text-goodput.csv",
    "published/paths-t8.4-hysteresis.csv",
    "published/paths-t8.5-t8.6-stability.csv",
    "published/paths-t8.7-one-way.csv",
    "published/prcmt-f13-throughput.csv",
    "published/prcmt-f18-playable-pct.csv",
    "published/sbpn-t5.1-loss-80ms-unbounded.csv",
    "published/sbpn-5.2-loss-80ms-queue5.csv",
    "published/sbpn-t5.2-t7.5-congestion.csv",
    "published/xstream-t9.2-frame-loss-pct.csv",
    "published/xstream-t9.3-frame-loss.csv",
    "published/xstream-t9.4-frame-loss-by-kind.csv",
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

    /// The value of `metric` at `point` and the table that it stands in, if somebody has one.
    pub(crate) fn value(&self, against: Against, point: &Point, metric: &str) -> Option<(f64, &str)> {
        let mut of_them = self.0.iter().filter(|table| table.reference.against == against);
        of_them.find_map(|table| Some((table.value(point, metric)?, table.name())))
    }
}

/// Longest file of values that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let bytes = File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if bytes as u64 > MAX_BYTES { Err(io::Error::other("it is longer than 16 MiB")) } else { Ok(text) }
}

impl<'a> Table<'a> {
    fn read(reference: &'a Reference, scenario: &Scenario) -> Result<Self, Wrong> {
        let path = format!("{}/{}", reference.against.name(), reference.file);
        let text = match EMBEDDED.iter().find(|(name, _)| *name == path) {
            Some((_, text)) => (*text).to_owned(),
            None => read(&scenario.folder.join(&reference.file)).map_err(|e| {
                let what = format!("the [[reference]] {} cannot be read: {e}", reference.file);
                let prefix = format!("{}/", reference.against.name());
                let known = EMBEDDED.iter().filter_map(|(name, _)| name.strip_prefix(&prefix));
                Wrong::new(reference.places.of("file"), what, did_you_mean(&reference.file, known))
            })?,
        };
        Self::parse(reference, &text)
    }

    fn parse(reference: &'a Reference, text: &str) -> Result<Self, Wrong> {
        let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
        let head = lines.next().unwrap_or_default();
        let table = Self { reference, head, lines: lines.collect() };
        let metrics = reference.metrics.iter().map(|(name, it)| (format!("metrics.{name}"), it.parts().0));
        let params = reference.params.iter().map(|(name, column)| (format!("params.{name}"), column.as_str()));
        let fixed = reference.at.keys().map(|column| (format!("where.{column}"), column.as_str()));
        let variant = reference.variant.iter().map(|column| ("variant".to_owned(), column.as_str()));
        for (key, column) in metrics.chain(params).chain(fixed).chain(variant) {
            if table.column(column).is_none() {
                let what = format!("{} has no column '{column}'", reference.file);
                let fix = did_you_mean(column, table.head.iter().map(String::as_str));
                return Err(Wrong::new(reference.places.of(&key), what, fix));
            }
        }
        Ok(table)
    }

    fn name(&self) -> &str {
        let stem = self.reference.file.strip_suffix(".csv").unwrap_or(&self.reference.file);
        self.reference.table.as_deref().unwrap_or(stem)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"name = "x"
title = "t"
experiment = "transfer"
duration = "2s"
link.l.rate = "1mbit"
sweep.rtt = ["20ms", "300ms"]
variant = [{ name = "sack" }, { name = "dac" }]
[[reference]]
against = "ns2"
file = "values.csv"
variant = "who"
variants = { sack = "plain" }
params = { rtt = "rtt_ms" }
where = { size = "1000B" }
[reference.metrics]
goodput = "kbps"
rate = { column = "kBps", factor = 8 }
"#;

    const VALUES: &str = "rtt_ms, who, size, kbps, kBps\n20,plain,100B,1,1\n20.0,plain,1000B,1900,240\n\n\
                          20,dac,1000B,1800,n/a\n300,plain,1000B,1700\n";

    /// The value of `metric` for each variant at 20 ms, then at 300 ms.
    fn values(metric: &str) -> Vec<Option<f64>> {
        let scenario = Scenario::read("x.toml", SCENARIO, Path::new(".")).unwrap();
        let table = Table::parse(&scenario.references[0], VALUES).unwrap_or_else(|e| panic!("{e}"));
        let references = References(vec![table]);
        let points = scenario.points().unwrap();
        assert!(points.iter().all(|point| references.value(Against::Published, point, metric).is_none()));
        points.iter().map(|point| Some(references.value(Against::Ns2, point, metric)?.0)).collect()
    }

    #[test]
    fn lines_are_found_by_variant_parameter_and_fixed_columns() {
        assert_eq!(values("goodput"), [Some(1900.0), Some(1800.0), Some(1700.0), None]);
    }

    #[test]
    fn values_come_in_our_unit_and_cells_without_a_number_are_none() {
        assert_eq!(values("rate"), [Some(1920.0), None, None, None]);
        assert_eq!(values("delay"), [None; 4], "nobody has it");
    }

    #[test]
    fn all_files_inside_can_be_read() {
        for (name, text) in EMBEDDED {
            let mut lines = text.lines();
            let columns = lines.next().unwrap().split(',').count();
            assert!(columns > 1 && lines.all(|line| line.split(',').count() == columns), "{name}");
        }
    }
}
