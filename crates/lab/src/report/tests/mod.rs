//! What a reader of the page relies on.

mod fixture;

use serde_json::json;

use self::fixture::{empty, params, plot, realistic, row};
use super::{html, prose};
use crate::results::{Difference, Found, Outcome, PlotKind, Results, Row, Series, Verdict};

/// Few results with something of each kind.
fn small() -> Results {
    let goodput = ("goodput", "kbit/s");
    let at = |rtt: u32| params(&[("rtt", json!(rtt)), ("queue", json!(50))]);
    let mut results = Results {
        rows: vec![
            Row { ns2: Some(1898.11), ..row("cmt", at(20), goodput, 1880.04, Some(12.3)) },
            Row { ns2: Some(1290.04), published: Some(1000.0), ..row("cmt", at(500), goodput, 1301.7, Some(21.0)) },
            row("plain", at(20), goodput, 960.0, None),
        ],
        plots: vec![plot("Goodput", PlotKind::Line, "goodput", "rtt"), plot("Bars", PlotKind::Bars, "goodput", "rtt")],
        lost_runs: vec!["braidcast lab run small --seed 3 --runs 1".into()],
        ..empty("small")
    };
    results.verdicts.push(Verdict {
        claim: "CMT is ahead.".into(),
        source: "THESIS §6.1".into(),
        headline: Some("Two paths carry more than one.".into()),
        outcome: Outcome::Confirmed,
        evidence: "1880 ± 12 against 960.".into(),
        reason: "Two paths carry more than one.".into(),
        inside: vec!["braidcast lab run small --variant cmt --param rtt=500 --seed 1 --viz".into()],
    });
    for reason in [Some("The source leaves the queue open.".to_string()), None] {
        results.differences.push(Difference {
            metric: "goodput".into(),
            variant: "cmt".into(),
            params: at(500),
            against: "published".into(),
            ours: 1301.7,
            theirs: 1000.0,
            reason,
            found: None,
            shown: None,
        });
    }
    results
}

/// A plot of each kind of everything that there is.
fn plotted(mut results: Results) -> String {
    for kind in [PlotKind::Line, PlotKind::Bars, PlotKind::Series, PlotKind::Cdf] {
        for log_y in [false, true] {
            results.plots.push(crate::results::Plot { log_y, ..plot("Plot", kind, "m", "x") });
        }
    }
    html(&[results])
}

/// The text between `start` and the next `end`, everywhere.
fn between<'a>(page: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    page.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// Checks that each element is closed in its turn, and that no attribute holds what is no number.
fn check(page: &str) {
    let body = page.split("</style>").nth(1).expect("a page with a style");
    let mut open = vec!["html", "head"];
    for tag in between(body, "<", ">") {
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap_or("");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            open.push(name);
        }
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_of_a_small_experiment() {
    let page = html(&[small()]);
    check(&page);
    let body = page.split("<body>").nth(1).expect("a body");
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn a_realistic_page_is_complete_and_small() {
    let page = html(&realistic());
    check(&page);
    for outside in ["http:", "https:", "<script", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let targets = between(&page, "href=\"#", "\"");
    assert_eq!(targets.iter().filter(|id| !id.is_empty()).count(), 6, "each experiment, and one behind its headline");
    assert!(targets.iter().all(|id| id.is_empty() || page.contains(&format!("<section id=\"{id}\""))));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    // For looking at it: REPORT_OUT=/tmp/report.html cargo test -p braidcast-lab realistic
    if let Some(path) = std::env::var_os("REPORT_OUT") {
        std::fs::write(path, &page).expect("REPORT_OUT can be written");
    }
}

#[test]
fn the_same_results_give_the_same_bytes() {
    assert_eq!(html(&realistic()), html(&realistic()));
    let text = serde_json::to_string(&realistic()).expect("JSON");
    let read: Vec<Results> = serde_json::from_str(&text).expect("the same JSON");
    assert_eq!(html(&realistic()), html(&read), "a report made of files is the report made at once");
}

#[test]
fn what_others_wrote_stays_text() {
    let evil = "</style><script>alert(\"1\")</script>'&";
    let evil_params = params(&[("x", json!(evil)), (evil, json!(1))]);
    let mut results = Results {
        title: evil.into(),
        source: evil.into(),
        text: evil.into(),
        version: evil.into(),
        rows: vec![
            row(evil, evil_params.clone(), ("m", evil), 1.0, None),
            row(evil, params(&[]), (evil, evil), 2.0, None),
        ],
        lost_runs: vec![evil.into()],
        ..empty(evil)
    };
    results.series.push(Series {
        name: "m".into(),
        variant: evil.into(),
        params: evil_params.clone(),
        x: evil.into(),
        y: evil.into(),
        points: vec![[0.0, 1.0], [1.0, 2.0]],
    });
    results.verdicts.push(Verdict {
        claim: evil.into(),
        source: evil.into(),
        headline: Some(evil.into()),
        outcome: Outcome::Mixed,
        evidence: evil.into(),
        reason: evil.into(),
        inside: Vec::new(),
    });
    results.differences.push(Difference {
        metric: evil.into(),
        variant: evil.into(),
        params: evil_params,
        against: evil.into(),
        ours: 1.0,
        theirs: 2.0,
        reason: Some(evil.into()),
        found: Some(Found::Traced),
        shown: Some(evil.into()),
    });
    results.plots.push(plot(evil, PlotKind::Line, evil, evil));
    let page = plotted(results);
    check(&page);
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;/style&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"));
}

#[test]
fn names_in_backticks_are_shown_as_code() {
    assert_eq!(prose("of `a<b>`, and `c").into_string(), "of <code>a&lt;b&gt;</code>, and <code>c</code>");
    assert_eq!(prose("no name").into_string(), "no name");
}

#[test]
fn odd_values_make_a_page_too() {
    let series = |points: Vec<[f64; 2]>| Series {
        name: "m".into(),
        variant: "v".into(),
        params: params(&[]),
        x: "time, s".into(),
        y: "delay, ms".into(),
        points,
    };
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e-300, 1e300, f64::MAX, 7.0];
    for mean in values {
        for x in [json!(1), json!("20ms"), json!(null), json!("-"), json!(1e308)] {
            for ci in [None, Some(0.0), Some(f64::NAN), Some(1e300)] {
                let at = params(&[("x", x.clone())]);
                let one = Row { published: Some(mean), ns2: Some(0.0), ..row("v", at, ("m", ""), mean, ci) };
                let both = vec![one.clone(), Row { mean: 3.0, ..one }];
                check(&plotted(Results { rows: both, series: vec![series(vec![[mean, mean]])], ..empty("odd") }));
            }
        }
    }
    for points in [vec![], vec![[1.0, f64::NAN]], vec![[0.0, 5.0], [0.0, 5.0]]] {
        check(&plotted(Results { series: vec![series(points)], ..empty("odd") }));
    }
    check(&plotted(empty("")));
    check(&html(&[]));
    check(&html(&[empty("twice"), empty("twice"), empty("")]));
}

#[test]
fn what_is_missing_is_said() {
    let page = html(&[small()]);
    assert!(page.contains("No reason is given for these points and sizes."));
    assert!(page.contains("(1 unexplained)"));
    let bare = Results { plots: vec![plot("Bare", PlotKind::Line, "speed", "x")], ..empty("bare") };
    assert!(html(&[bare]).contains("Nothing to draw: no values of speed."));
}

#[test]
fn large_results_stay_within_a_few_megabytes() {
    let point = |i: u32| params(&[("x", json!(i % 100)), ("y", json!(i / 100))]);
    let rows: Vec<Row> = (0..1000).map(|i| row("v", point(i), ("m", "ms"), f64::from(i), Some(1.0))).collect();
    let series = (0..100u32).map(|i| Series {
        name: "m".into(),
        variant: format!("v{}", i % 10),
        params: params(&[("seed", json!(i / 10))]),
        x: "time, s".into(),
        y: "delay, ms".into(),
        points: (0..20_000).map(|t| [f64::from(t), f64::from(t * i % 977)]).collect(),
    });
    let page = plotted(Results { rows, series: series.collect(), ..empty("large") });
    check(&page);
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert_eq!(between(&page, "<td class=\"ci\">", "<").len(), 1000, "no row is left out of the tables");
}
