//! The sums as results, for the report.

use super::{Sums, Survey, What};
use crate::plots;
use crate::results::{Params, Results, Row};

impl Survey {
    /// Returns the name of its results: what is drawn and run.
    pub fn name(&self) -> String {
        let (least, most) = self.links;
        let links = if least == most { format!("{least}-links") } else { format!("{least}-to-{most}-links") };
        let load = || format!("load-{}-{}", self.load.0, self.load.1);
        let latency = self.latency.as_millis();
        let what = match self.what {
            What::Clip => format!("{links}-{}-{}-{latency}ms", load(), self.clip),
            What::Encoder => format!("encoder-{links}-{}-{latency}ms", load()),
            What::Bulk { receive_buffer: None } => format!("bulk-{links}"),
            What::Bulk { receive_buffer: Some(bytes) } => format!("bulk-{links}-buffer-{bytes}"),
        };
        let kinds: String = self.kinds.iter().map(|kind| format!("-{kind}")).collect();
        let without: String = self.without.iter().map(|it| format!("-no-{it}")).collect();
        format!("survey-{what}{kinds}{without}-seed-{}", self.seed)
    }

    /// Returns `sums`, those of each of the settings, as `lab report` reads results: a variant for each of the
    /// settings, a metric for each figure.
    pub fn results(&self, sums: &[Sums], lost_runs: Vec<String>) -> Results {
        let experiment = self.name();
        let rows = self.settings.iter().zip(sums).flat_map(|(settings, sums)| {
            let row = |figure: super::Figure| {
                let (mean, ci95) = figure.value.mean_ci95()?;
                Some(Row {
                    experiment: experiment.clone(),
                    variant: settings.name.clone(),
                    params: Params::new(),
                    metric: figure.metric.to_owned(),
                    unit: figure.unit.to_owned(),
                    mean,
                    ci95,
                    n: sums.sets() as u32,
                    published: None,
                    table: None,
                    ns2: None,
                    source: String::new(),
                    values: Vec::new(),
                })
            };
            sums.figures().into_iter().filter_map(row).collect::<Vec<_>>()
        });
        let rows: Vec<Row> = rows.collect();
        let what = match self.what {
            What::Clip => "a clip",
            What::Encoder => "an encoder that follows",
            What::Bulk { .. } => "bulk transfers",
        };
        Results {
            title: format!("Links drawn at random: {what}"),
            source: String::new(),
            text: format!("`braidcast lab survey`, seed {}: all links of a set beside the best of them.", self.seed),
            seed: self.seed,
            runs: self.runs,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            duration_s: self.duration.as_secs_f64(),
            real_time: false,
            series: Vec::new(),
            verdicts: Vec::new(),
            differences: Vec::new(),
            tables: Vec::new(),
            plots: plots::without_asking(&rows, &[]),
            lost_runs,
            experiment,
            rows,
        }
    }
}
