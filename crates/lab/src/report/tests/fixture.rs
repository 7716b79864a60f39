//! Results that look like real ones: the reference values are real, ours are made up.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::results::{Difference, Outcome, Params, Plot, PlotKind, Results, Row, Series, Verdict};

/// Parameters out of name and value.
pub(super) fn params(pairs: &[(&str, Value)]) -> Params {
    pairs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// A row without references.
pub(super) fn row(variant: &str, params: Params, metric: (&str, &str), mean: f64, ci95: Option<f64>) -> Row {
    Row {
        experiment: String::new(),
        variant: variant.into(),
        params,
        metric: metric.0.into(),
        unit: metric.1.into(),
        mean,
        ci95,
        n: 10,
        published: None,
        table: None,
        ns2: None,
        source: String::new(),
        values: Vec::new(),
    }
}

/// A plot of one metric.
pub(super) fn plot(title: &str, kind: PlotKind, metric: &str, x: &str) -> Plot {
    Plot { title: title.into(), kind, metrics: vec![metric.into()], x: x.into(), log_y: false }
}

/// An experiment of which only the name is known.
pub(super) fn empty(name: &str) -> Results {
    Results {
        experiment: name.into(),
        title: format!("Title of {name}"),
        source: "THESIS §6.1".into(),
        text: "What it shows.".into(),
        seed: 1,
        runs: 10,
        version: "0.1.0".into(),
        duration_s: 180.0,
        real_time: false,
        rows: Vec::new(),
        series: Vec::new(),
        verdicts: Vec::new(),
        differences: Vec::new(),
        tables: Vec::new(),
        plots: Vec::new(),
        lost_runs: Vec::new(),
    }
}

/// A number from -1 to 1 that looks like noise.
fn noise(i: usize) -> f64 {
    (i as f64 * 12.9898).sin() * 43_758.545_3 % 1.0
}

fn csv(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    lines.map(|line| header.iter().copied().zip(line.split(',')).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

fn rtt_asymmetry() -> Results {
    let mut results = Results {
        title: "Goodput over two paths when the round-trip time of one grows".into(),
        source: "THESIS §6.1, figure 6.3; ns-2 A_rtt_asymmetry".into(),
        text: "Two paths of 1 Mbit/s carry one bulk transfer. The first has a round-trip time of 20 ms, that of the second \
               grows from 20 to 500 ms. With a receive window of 64 KiB the slower path holds back the faster one."
            .into(),
        lost_runs: vec!["braidcast lab run cmt-rtt-asymmetry --variant cmt-sack --param rtt2=300 --seed 7 --runs 1".into()],
        ..empty("cmt-rtt-asymmetry")
    };
    let files = [
        (50, include_str!("../../../reference/ns2/A_rtt_asymmetry.csv")),
        (20, include_str!("../../../reference/ns2/Q_A_rtt_asymmetry_queue20.csv")),
    ];
    for (queue, file) in files {
        for (i, line) in csv(file).into_iter().enumerate() {
            let params = params(&[("rtt2_ms", json!(number(line["rtt2_ms"]))), ("queue_packets", json!(queue))]);
            let ns2 = number(line["goodput_kbps_mean"]);
            let ours = ns2 * (1.0 + 0.12 * noise(i) + 0.015 * i as f64);
            let goodput = row(
                line["variant"],
                params.clone(),
                ("goodput", "kbit/s"),
                ours,
                Some(20.0 + 60.0 * noise(i + 3).abs()),
            );
            results.rows.push(Row { ns2: Some(ns2), ..goodput });
            let again = row(line["variant"], params.clone(), ("retransmissions", "packets"), 3.0 + i as f64, Some(1.5));
            results.rows.push(Row { ns2: Some(number(line["rtx_mean"])), ..again });
            if (ours / ns2 - 1.0).abs() > 0.15 {
                let reason =
                    "The seeds of ns-2 differ by 100 kbit/s here, and its README says not to compare single runs.";
                results.differences.push(Difference {
                    metric: "goodput".into(),
                    variant: line["variant"].into(),
                    params,
                    against: "ns2".into(),
                    ours,
                    theirs: ns2,
                    reason: (queue == 20 || i % 3 == 0).then(|| reason.into()),
                    found: None,
                    shown: None,
                });
            }
        }
    }
    for (v, variant) in ["cmt-sack", "sack-every-packet"].iter().enumerate() {
        let saw = |i: usize| 20.0 + ((i * (v + 2)) % 700) as f64 / 20.0 + 2.0 * noise(i);
        results.series.push(Series {
            name: "cwnd".into(),
            variant: (*variant).into(),
            params: params(&[("path", json!(1))]),
            x: "time, s".into(),
            y: "congestion window, packets".into(),
            points: (0..9000).map(|i| [i as f64 / 50.0, saw(i)]).collect(),
        });
    }
    let verdict = |outcome, claim: &str, evidence: &str, reason: &str| Verdict {
        claim: claim.into(),
        source: "THESIS §6.1".into(),
        headline: None,
        outcome,
        evidence: evidence.into(),
        reason: reason.into(),
        inside: Vec::new(),
    };
    results.verdicts = vec![
        verdict(
            Outcome::Confirmed,
            "Goodput falls as the round-trip time of the second path grows.",
            "1898 ± 23 kbit/s at 20 ms, 1290 ± 31 kbit/s at 500 ms.",
            "The shared receive window is full of what the slow path still owes.",
        ),
        verdict(
            Outcome::Mixed,
            "CMT with delayed SACKs is ahead at every round-trip time.",
            "Ahead at 5 of 7 points.",
            "",
        ),
        verdict(
            Outcome::NotDistinguishable,
            "Retransmissions don't depend on the SACK policy.",
            "3.1 ± 1.5 against 3.9 ± 1.5.",
            "Ten runs don't tell.",
        ),
    ];
    results.plots = vec![
        plot("Goodput over the round-trip time of path 2", PlotKind::Line, "goodput", "rtt2_ms"),
        Plot { log_y: true, ..plot("Retransmissions", PlotKind::Line, "retransmissions", "rtt2_ms") },
        plot("Congestion windows of the first run", PlotKind::Series, "cwnd", ""),
        plot("Distribution of the congestion windows", PlotKind::Cdf, "cwnd", ""),
    ];
    results
}

fn lossy() -> Results {
    let mut results = Results {
        title: "Goodput over two paths that lose packets".into(),
        duration_s: 300.0,
        runs: 50,
        ..empty("cmt-loss-symmetric")
    };
    let lines = csv(include_str!("../../../reference/ns2/D_lossy_symmetric.csv"));
    for (i, line) in lines.into_iter().enumerate() {
        let params = params(&[("loss", json!(format!("{}%", line["loss_pct"])))]);
        let ns2 = number(line["goodput_kbps_mean"]);
        let goodput = row(line["variant"], params, ("goodput", "kbit/s"), ns2 * (1.03 + 0.02 * noise(i)), Some(10.0));
        results.rows.push(Row { ns2: Some(ns2), published: (i % 4 < 2).then_some(ns2 * 0.93), ..goodput });
    }
    results.verdicts.push(Verdict {
        claim: "Above 5 % loss nothing gets through.".into(),
        source: "THESIS §6.4".into(),
        headline: Some("Losses silence whoever has no code.".into()),
        outcome: Outcome::Refuted,
        evidence: "745 ± 10 kbit/s at 6 %.".into(),
        reason: "The source had RTO min 3 s.".into(),
        inside: Vec::new(),
    });
    results.plots.push(plot("Goodput over loss", PlotKind::Line, "goodput", "loss"));
    results
}

fn partial_reliability() -> Results {
    let mut results = Results {
        title: "Partial reliability on congested and lossy paths".into(),
        real_time: true,
        ..empty("prcmt-f13")
    };
    for line in csv(include_str!("../../../reference/published/prcmt-f13-throughput.csv")) {
        let published = number(line["kbit_per_s"]);
        let at = params(&[("environment", json!(line["environment"]))]);
        let ours = row(line["variant"], at, ("throughput", "kbit/s"), published * 1.07, Some(12.0));
        results.rows.push(Row { published: Some(published), ns2: Some(published * 1.2), ..ours });
    }
    for line in csv(include_str!("../../../reference/published/prcmt-f18-playable-pct.csv")) {
        let published = number(line["playable_pct"]);
        let ours = row(line["variant"], Params::new(), ("playable frames", "%"), published * 0.9 + 2.0, Some(3.1));
        results.rows.push(Row { published: Some(published), ..ours });
    }
    results.plots = vec![
        plot("Throughput", PlotKind::Bars, "throughput", "environment"),
        plot("Playable frames", PlotKind::Bars, "playable frames", "variant"),
    ];
    results
}

fn schedulers() -> Results {
    let mut results = Results { title: "Seven schedulers and their queues".into(), ..empty("schedulers") };
    let names =
        ["round-robin", "lowest-rtt", "blest", "ecf", "sbpn1", "sbpn2", "a-scheduler-with-a-long-name", "stms", "daps"];
    for (v, name) in names.iter().enumerate() {
        for (i, queue) in [5, 10, 20, 50, 100, 200, 500, 1000].into_iter().enumerate() {
            for rate in ["500 kbit/s", "2 Mbit/s", "10 Mbit/s"] {
                let delay = 10.0 + f64::from(queue).powf(0.5 + 0.08 * v as f64) + 5.0 * noise(v + i);
                let at = params(&[("queue", json!(queue)), ("rate", json!(rate))]);
                results.rows.push(row(name, at, ("delay", "ms"), delay, Some(delay * 0.06)));
            }
        }
    }
    results.plots.push(Plot { log_y: true, ..plot("Delay over the queue", PlotKind::Line, "delay", "queue") });
    results.plots.push(plot("Delay over the rate", PlotKind::Bars, "delay", "rate"));
    results.rows.truncate(200);
    results
}

/// A page as a reader gets it.
pub(super) fn realistic() -> Vec<Results> {
    vec![rtt_asymmetry(), lossy(), partial_reliability(), schedulers(), empty("sctp-nothing-yet")]
}
