//! Verdicts and differences of a small scenario.

use super::*;
use crate::results::{Outcome, Verdict};
use crate::scenario::Scenario;
use std::path::Path;

const SCENARIO: &str = r#"name = "x"
title = "t"
source = "its source"
experiment = "transfer"
duration = "2s"
link.l.rate = "1mbit"
sweep.n = [1, 2, 3]
variant = [{ name = "a" }, { name = "b" }]
[[claim]]
text = "a is above b"
metric = "m"
higher = "a"
lower = "b"
"#;

/// The scenario with these lines after it.
pub(super) fn read(more: &str) -> Scenario {
    Scenario::read("x.toml", &format!("{SCENARIO}{more}"), Path::new(".")).unwrap_or_else(|e| panic!("{e}"))
}

pub(super) fn placed<'a>(points: &'a [Point], rows: &'a [Row]) -> Vec<Placed<'a>> {
    points.iter().zip(rows).collect()
}

/// A mean and its interval, of `a` and of `b`, at each of the three points.
pub(super) type Means = [[(f64, f64); 2]; 3];

pub(super) fn rows(points: &[Point], means: &Means) -> Vec<Row> {
    let row = |(point, &(mean, ci95)): (&Point, &(f64, f64))| Row {
        experiment: "x".to_owned(),
        variant: point.variant.clone(),
        params: point.json_params(),
        metric: "m".to_owned(),
        unit: String::new(),
        mean,
        ci95: Some(ci95),
        n: 10,
        values: Vec::new(),
        published: None,
        table: None,
        ns2: None,
        source: String::new(),
    };
    points.iter().zip(means.iter().flatten()).map(row).collect()
}

/// What shows a run of this point.
fn seen(point: &Point) -> Option<String> {
    Some(format!("{} {:?}", point.variant, point.json_params()))
}

/// The verdict on the claim, with these lines after it.
fn verdict_on(more: &str, means: &Means) -> Verdict {
    let scenario = read(more);
    let points = scenario.points().unwrap();
    let rows = rows(&points, means);
    let beside = placed(&points, &rows);
    verdicts(&scenario, &beside, &seen).remove(0)
}

const ABOVE: [(f64, f64); 2] = [(12.0, 0.5), (10.0, 0.5)];
const BELOW: [(f64, f64); 2] = [(8.0, 0.5), (10.0, 0.5)];
const OPEN: [(f64, f64); 2] = [(12.0, 2.0), (10.0, 2.0)];

#[test]
fn points_decide_by_their_intervals() {
    use Outcome::{Confirmed, Mixed, NotDistinguishable, Refuted};
    for (means, outcome) in [
        ([ABOVE, ABOVE, ABOVE], Confirmed),
        ([ABOVE, ABOVE, OPEN], Mixed),
        ([ABOVE, OPEN, OPEN], Mixed),
        ([ABOVE, ABOVE, BELOW], Mixed),
        ([BELOW, BELOW, OPEN], Refuted),
        ([BELOW, OPEN, OPEN], Mixed),
        ([OPEN, OPEN, OPEN], NotDistinguishable),
    ] {
        assert_eq!(verdict_on("", &means).outcome, outcome, "{means:?}");
    }
}

#[test]
fn a_mixed_verdict_says_which_it_is() {
    let says = |means, words: &str| verdict_on("", &means).evidence.contains(words);
    assert!(says([ABOVE, ABOVE, OPEN], "; it holds where it can be told"));
    assert!(says([ABOVE, OPEN, BELOW], "; some points contradict it"));
    assert!(!says([ABOVE; 3], "; it") && !says([BELOW; 3], "; some"));
}

#[test]
fn a_claim_holds_at_its_points_only() {
    let means = [BELOW, ABOVE, ABOVE];
    assert_eq!(verdict_on("", &means).outcome, Outcome::Mixed);
    assert_eq!(verdict_on("where.n = [2, 3]", &means).outcome, Outcome::Confirmed);
    assert_eq!(verdict_on("where.n = 1", &means).outcome, Outcome::Refuted);
}

#[test]
fn the_degree_is_asked_at_each_point_and_not_of_the_mean() {
    use Outcome::{Confirmed, Mixed, NotDistinguishable, Refuted};
    // 1.2 and 1.6: 1.4 on the average.
    const FAR_ABOVE: [(f64, f64); 2] = [(16.0, 0.1), (10.0, 0.1)];
    const NEAR_ABOVE: [(f64, f64); 2] = [(12.0, 0.1), (10.0, 0.1)];
    for (more, means, outcome) in [
        ("factor = [1.1, 1.7]", [FAR_ABOVE, NEAR_ABOVE, NEAR_ABOVE], Confirmed),
        ("factor = [1.3, 1.5]", [FAR_ABOVE, NEAR_ABOVE, FAR_ABOVE], Mixed),
        ("factor = [1.1, 1.3]", [FAR_ABOVE, NEAR_ABOVE, NEAR_ABOVE], Mixed),
        ("by = [1, 3]", [NEAR_ABOVE; 3], Confirmed),
        ("by = [1, 3]", [NEAR_ABOVE, NEAR_ABOVE, FAR_ABOVE], Mixed),
        ("by = [12, 16]", [NEAR_ABOVE; 3], Mixed),
        // Neither end of what is claimed can be told from 2 ± 0.14.
        ("by = [1.9, 2.1]", [NEAR_ABOVE; 3], NotDistinguishable),
        ("by = [1, 3]", [BELOW; 3], Refuted),
        // About the same: no order is claimed.
        ("by = [-5, 5]", [BELOW, NEAR_ABOVE, NEAR_ABOVE], Confirmed),
        ("factor = [0.9, 1.1]", [BELOW, NEAR_ABOVE, NEAR_ABOVE], Refuted),
        ("factor = [0.9, 1.1]", [OPEN; 3], NotDistinguishable),
    ] {
        assert_eq!(verdict_on(more, &means).outcome, outcome, "{more} {means:?}");
    }
    let evidence = verdict_on("by = [12, 16]", &[NEAR_ABOVE; 3]).evidence;
    assert_eq!(
        evidence,
        "m: a above b at 0 of 3 points, below at 0, off the claimed degree at 3, not distinguishable at 0; \
             the order is right, the degree is another one; \
             mean ratio 1.200 (1.200 to 1.200); mean difference 2.00 (2.00 to 2.00), claimed 12 to 16"
    );
}

#[test]
fn a_single_run_has_no_verdict_and_neither_have_points_that_were_not_run() {
    let scenario = read("");
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
    assert_eq!(verdicts(&scenario, &[], &seen).remove(0).outcome, Outcome::NoVerdict);
    for row in &mut rows {
        (row.ci95, row.values) = (None, vec![row.mean]);
    }
    let verdict = verdicts(&scenario, &placed(&points, &rows), &seen).remove(0);
    assert_eq!(verdict.outcome, Outcome::NoVerdict, "{}", verdict.evidence);
}

#[test]
fn each_of_several_variants_is_compared() {
    let variants =
        "[[variant]]\nname = \"c\"\n[[claim]]\ntext = \"t\"\nmetric = \"m\"\nhigher = \"a\"\nlower = [\"b\", \"c\"]\n";
    let text = SCENARIO.replace("variant = [{ name = \"a\" }, { name = \"b\" }]", "");
    let (head, claim) = text.split_once("[[claim]]").unwrap();
    let text = format!("{head}[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n{variants}[[claim]]{claim}");
    let scenario = Scenario::read("x.toml", &text, Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
    rows.truncate(0);
    for point in &points {
        let mean = match point.variant.as_str() {
            "a" => 12.0,
            "b" => 10.0,
            _ => 14.0,
        };
        rows.push(self::rows(core::slice::from_ref(point), &[[(mean, 0.1); 2]; 3]).remove(0));
    }
    let verdicts = verdicts(&scenario, &placed(&points, &rows), &seen);
    assert_eq!(verdicts[0].outcome, Outcome::Mixed, "{}", verdicts[0].evidence);
    assert!(
        verdicts[0].evidence.starts_with("m: a above b and c at 3 of 6 points, below at 3"),
        "{}",
        verdicts[0].evidence
    );
    assert_eq!(verdicts[1].outcome, Outcome::Confirmed);
}

#[test]
fn both_that_are_compared_are_shown_where_the_claim_does_not_hold() {
    let at = |verdict: Verdict| verdict.inside;
    let both = |n: u32| ["a", "b"].map(|variant| format!("{variant} {{\"n\": Number({n})}}"));
    assert_eq!(at(verdict_on("", &[ABOVE, ABOVE, BELOW])), both(3));
    assert_eq!(at(verdict_on("", &[ABOVE, OPEN, ABOVE])), both(2));
    assert_eq!(at(verdict_on("", &[ABOVE, ABOVE, ABOVE])), both(1));
}

#[test]
fn a_margin_asks_only_not_to_be_below_that_share() {
    use Outcome::{Confirmed, NotDistinguishable, Refuted};
    // 95 is below 100, but not below 90 % of it; the interval of what is between widens with 90 % of the lower one's.
    const NEAR: [(f64, f64); 2] = [(95.0, 1.0), (100.0, 1.0)];
    const WIDE: [(f64, f64); 2] = [(95.0, 3.0), (100.0, 5.0)];
    assert_eq!(verdict_on("", &[NEAR; 3]).outcome, Refuted);
    let verdict = verdict_on("margin = 0.9", &[NEAR; 3]);
    assert_eq!(verdict.outcome, Confirmed);
    assert_eq!(
        verdict.evidence,
        "m: a above 90 % of b at 3 of 3 points, below at 0, not distinguishable at 0; mean ratio 0.950 (0.950 to 0.950)"
    );
    assert_eq!(verdict_on("margin = 0.985", &[NEAR; 3]).outcome, Refuted);
    assert!(verdict_on("margin = 0.985", &[NEAR; 3]).evidence.contains("above 98.5 % of b at 0"));
    assert_eq!(verdict_on("margin = 0.9", &[WIDE; 3]).outcome, NotDistinguishable);
}

#[test]
fn with_a_margin_the_differences_of_each_seed_decide_too() {
    let scenario = read("margin = 0.9\n");
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[[(55.0, 60.0), (60.0, 60.0)]; 3]);
    // Far apart from seed to seed, but always 5 % less: the intervals of the means say nothing, those of the pairs do.
    for row in &mut rows {
        let share = if row.variant == "a" { 0.95 } else { 1.0 };
        row.values = [20.0, 60.0, 100.0].map(|value| value * share).to_vec();
        row.mean = 60.0 * share;
    }
    let beside = placed(&points, &rows);
    // 1, 3 and 5 above 90 %: 3 with an interval of 2 · 4.3027 / √3 = 4.97.
    assert_eq!(verdicts(&scenario, &beside, &seen).remove(0).outcome, Outcome::NotDistinguishable);
    for row in &mut rows {
        row.values.iter_mut().for_each(|value| *value += 100.0);
    }
    let beside = placed(&points, &rows);
    assert_eq!(verdicts(&scenario, &beside, &seen).remove(0).outcome, Outcome::Confirmed);
}

#[test]
fn the_evidence_has_the_numbers_the_reason_quotes_them_and_the_source_is_the_scenarios() {
    let verdict = verdict_on("factor = [1.1, 1.3]\nreason = \" why: {m | a - b | n=1} \"", &[ABOVE, ABOVE, OPEN]);
    assert_eq!(
        verdict.evidence,
        "m: a above b at 2 of 3 points, below at 0, off the claimed degree at 0, not distinguishable at 1; it holds \
             where it can be told; mean ratio 1.200 (1.200 to 1.200), claimed 1.1 to 1.3"
    );
    assert_eq!((verdict.source.as_str(), verdict.reason.as_str()), ("its source", "why: 2"));
}

const KNOWN: &str =
    "[[difference]]\nmetric = \"m\"\nvariant = \"a\"\nagainst = \"ns2\"\nfound = \"unknown\"\ntext = \"known\"\n";

/// The reasons for `a`, which is 12 at each of three points, where ns-2 has these values.
fn reasons(more: &str, theirs: [f64; 3]) -> [Option<String>; 3] {
    let scenario = read(&format!("{KNOWN}{more}"));
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
    for (row, theirs) in rows.iter_mut().filter(|row| row.variant == "a").zip(theirs) {
        row.ns2 = Some(theirs);
    }
    let found = differences(&scenario, &placed(&points, &rows));
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|it| it.reason.is_some() == it.found.is_some()));
    found.into_iter().map(|it| it.reason).collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn a_reason_stands_for_its_points_its_side_and_its_size() {
    let known = || Some("known".to_owned());
    assert_eq!(reasons("ratio = [1.1, 1.3]", [10.0, 10.0, 10.0]), [known(), known(), known()]);
    assert_eq!(reasons("ratio = [1.1, 1.3]\nwhere.n = 2", [10.0, 10.0, 10.0]), [None, known(), None]);
    // Three times ns-2's, and below it.
    assert_eq!(reasons("ratio = [1.1, 1.3]", [10.0, 4.0, 20.0]), [known(), None, None]);
    assert_eq!(reasons("ratio = [0.5, 0.9]", [10.0, 4.0, 20.0]), [None, None, known()]);
    // There is no ratio to 0.
    assert_eq!(reasons("ratio = [1.1, 1e9]", [0.0, 4.0, 4.0]), [None, known(), known()]);
    assert_eq!(reasons("by = [1, 12]", [0.0, 4.0, 20.0]), [known(), known(), None]);
}

#[test]
fn points_can_have_each_a_size_of_their_own() {
    let points = "points = [{ where.n = 1, ratio = [1.1, 1.3] }, { where.n = [2, 3], ratio = [0.5, 0.7] }]";
    let known = || Some("known".to_owned());
    assert_eq!(reasons(points, [10.0, 20.0, 20.0]), [known(), known(), known()]);
    assert_eq!(reasons(points, [20.0, 10.0, 20.0]), [None, None, known()]);
}

#[test]
fn a_table_counts_its_rows_by_how_their_reasons_were_found() {
    let arithmetic = KNOWN.replace("ns2", "published").replace("unknown", "arithmetic");
    let scenario = read(&format!("{arithmetic}ratio = [1.1, 1.3]"));
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
    for (row, theirs) in rows.iter_mut().filter(|row| row.variant == "a").zip([11.0, 10.0, 30.0]) {
        (row.published, row.table) = (Some(theirs), Some("T".to_owned()));
    }
    let beside = placed(&points, &rows);
    let (verdicts, differences) = (verdicts(&scenario, &beside, &seen), differences(&scenario, &beside));
    let [table] = &tables(&scenario, &beside, &verdicts, &differences)[..] else { panic!("one table") };
    assert_eq!((table.name.as_str(), table.rows, table.near, table.arithmetic), ("T", 3, 1, 1));
    assert_eq!((table.traced, table.unknown, table.unexplained), (0, 0, 1));
    assert_eq!(table.claims, [Outcome::Confirmed]);
}

#[test]
fn what_is_within_a_sources_noise_has_no_side() {
    let noise = KNOWN.replace("ns2", "published").replace("unknown", "noise");
    let ratio = format!("{SCENARIO}{noise}ratio = [0.5, 1.5]");
    assert!(Scenario::read("x.toml", &ratio, Path::new(".")).is_err(), "a ratio has one");
    let scenario = read(&format!("{noise}by = [-2.5, 2.5]"));
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
    let ours: Vec<f64> = rows.iter().filter(|row| row.variant == "a").map(|row| row.mean).collect();
    let theirs = [ours[0] - 2.0, ours[1] + 2.4, ours[2] + 4.0];
    for (row, theirs) in rows.iter_mut().filter(|row| row.variant == "a").zip(theirs) {
        (row.published, row.table) = (Some(theirs), Some("T".to_owned()));
    }
    let beside = placed(&points, &rows);
    let (verdicts, differences) = (verdicts(&scenario, &beside, &seen), differences(&scenario, &beside));
    let [table] = &tables(&scenario, &beside, &verdicts, &differences)[..] else { panic!("one table") };
    assert_eq!((table.noise, table.unexplained), (2, 1));
}

#[test]
fn rows_are_far_from_15_percent_on_and_from_nothing_always() {
    let scenario = read("");
    let points = scenario.points().unwrap();
    let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
    // `a` is 12 everywhere: 20 % above 10, but 14 % below 14; a reference of 0 is far from everything but 0.
    (rows[0].ns2, rows[2].ns2, rows[4].ns2) = (Some(10.0), Some(10.0), Some(14.0));
    (rows[1].published, rows[5].published) = (Some(0.0), Some(10.0));
    let found = differences(&scenario, &placed(&points, &rows));
    let found: Vec<_> = found.iter().map(|it| (it.params["n"].as_i64().unwrap(), &*it.variant, &*it.against)).collect();
    assert_eq!(found, [(1, "a", "ns2"), (1, "b", "published"), (2, "a", "ns2")]);
    assert!(differences(&scenario, &placed(&points, &rows)).iter().all(|it| it.reason.is_none()));
}
