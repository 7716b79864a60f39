//! A reason stands for its points and its size only: if a link is another one, rows without a reason appear.

use braidcast_lab::results::{Found, Outcome, Results};
use braidcast_lab::{Job, Request, Scenario};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const SEED: u64 = 1;

/// Two runs of one point of the shipped scenario `file`, with `was` in it changed to `is`.
fn run(file: &str, (was, is): (&str, &str), variant: &str, param: (&str, &str)) -> Results {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(was), "{file} has no {was}");
    let scenario =
        Scenario::read(file, &text.replace(was, is), Path::new(".")).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    let request = Request {
        runs: Some(2),
        seed: SEED,
        variant: Some(variant.to_owned()),
        params: vec![(param.0.to_owned(), param.1.to_owned())],
        ..Request::default()
    };
    let results = Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {});
    assert_eq!(results.lost_runs, Vec::<String>::new());
    results
}

/// Rows that no reason stands for, as shipped and with the change.
fn unexplained(file: &str, change: (&str, &str), variant: &str, param: (&str, &str)) -> (usize, usize) {
    let count = |results: Results| results.differences.iter().filter(|it| it.reason.is_none()).count();
    let (was, _) = change;
    (count(run(file, (was, was), variant, param)), count(run(file, change, variant, param)))
}

#[test]
fn links_of_300_kbit_are_not_what_the_reasons_were_found_for() {
    let (shipped, changed) =
        unexplained("cmt-loss-asymmetry.toml", ("rate = \"1mbit\"", "rate = \"300kbit\""), "sack", ("loss2_pct", "6"));
    assert!(shipped == 0 && changed > 0, "{shipped} {changed}");
}

#[test]
fn a_round_trip_of_600_ms_is_not_what_the_reasons_were_found_for() {
    let (shipped, changed) =
        unexplained("sbpn-loss.toml", ("rtt = \"80ms\"", "rtt = \"600ms\""), "dccp", ("link_loss_pct", "4"));
    assert!(shipped == 0 && changed > 0, "{shipped} {changed}");
}

#[test]
fn a_link_of_5_mbit_is_not_what_the_reasons_were_found_for() {
    let (shipped, changed) = unexplained(
        "dccp-download.toml",
        ("rate = \"1mbit\"", "rate = \"5mbit\""),
        "tfrc",
        ("others_peak_kbps", "400"),
    );
    assert!(shipped == 0 && changed > 0, "{shipped} {changed}");
}

/// Every figure in the words of a claim is in what is tested: a degree, a share, or a metric that says it.
#[test]
fn a_claim_with_a_figure_in_its_words_tests_it() {
    for scenario in Scenario::all().unwrap() {
        for claim in &scenario.claims {
            let degree = claim.factor.is_some() || claim.by.is_some() || claim.margin.is_some();
            let words: Vec<&str> = claim.text.split_whitespace().collect();
            let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
            // "by 14 s", "by about 20 s"; "2.2 times"; "15 % less".
            let figure = words.windows(3).any(|three| {
                let by = three[0] == "by" && (is_number(&three[1]) || three[1] == "about" && is_number(&three[2]));
                let times = is_number(&three[0]) && three[1] == "times";
                by || times
                    || is_number(&three[0])
                        && three[1] == "%"
                        && ["less", "more", "higher", "fewer"].contains(&three[2])
            });
            let said_by_metric = claim.lower_metric.iter().chain([&claim.metric]).any(|metric| metric.contains('%'));
            assert!(!figure || degree || said_by_metric, "{}: {}", scenario.name, claim.text);
        }
    }
}

/// How far two of our own values are apart is quoted from the run, in braces; written out it may be
/// of ns-2 and of the source only.
#[test]
fn how_far_values_are_apart_comes_from_the_run() {
    for scenario in Scenario::all().unwrap() {
        let reasons = scenario.claims.iter().map(|it| &it.reason).chain(scenario.differences.iter().map(|it| &it.text));
        for reason in reasons {
            for sentence in reason.split(". ") {
                let is_theirs = sentence.contains("ns-2") || sentence.contains("source");
                assert!(
                    is_theirs || degree(sentence).is_none(),
                    "{}: {:?} in {sentence}",
                    scenario.name,
                    degree(sentence)
                );
            }
        }
    }
}

/// "by 5 %", "within 20 ms", "25 against 17": a degree that is written out.
fn degree(sentence: &str) -> Option<String> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_unit = |word: &str| {
        ["%", "ms", "kbit/s", "kB/s", "Mbit/s"].contains(&word.trim_end_matches(['.', ',', ';', ':', ')']))
    };
    let is_by = |words: &&[&str]| {
        ["by", "By", "within", "Within"].contains(&words[0]) && is_number(words[1]) && is_unit(words[2])
    };
    let is_against =
        |words: &&[&str]| words[1] == "against" && is_number(words[0].trim_start_matches('(')) && is_number(words[2]);
    let three = || words.windows(3);
    let (by, against) = (three().find(is_by), three().find(is_against));
    by.or(against).map(|words| words.join(" "))
}

#[test]
fn no_scenario_has_two_claims_in_the_same_words() {
    for scenario in Scenario::all().unwrap() {
        for (i, claim) in scenario.claims.iter().enumerate() {
            assert!(scenario.claims[..i].iter().all(|it| it.text != claim.text), "{}: {}", scenario.name, claim.text);
        }
    }
}

#[test]
fn reasons_quote_the_run_and_tables_count_it() {
    let results = run("sbpn-loss.toml", ("rtt = \"80ms\"", "rtt = \"80ms\""), "dccp", ("link_loss_pct", "4"));
    assert!(results.differences.iter().any(|it| it.found == Some(Found::Arithmetic)), "{:?}", results.differences);
    let table = results.tables.iter().find(|it| it.name == "SBPN table 5.1").expect("it is joined");
    assert_eq!(table.rows, table.near + table.traced + table.arithmetic + table.unknown + table.unexplained);
    assert!(table.rows >= 5 && table.arithmetic > 0, "{table:?}");
    // Only one of the two variants of each claim was run.
    assert!(results.verdicts.iter().all(|it| it.outcome == Outcome::NoVerdict));
}

#[test]
fn the_list_of_verdicts_names_every_claim() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("verdicts.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let list = braidcast_lab::check::read("verdicts.toml", &text).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    for scenario in Scenario::all().unwrap() {
        let claims: Vec<&str> = scenario.claims.iter().map(|it| it.text.as_str()).collect();
        let listed = list.iter().find(|it| it.experiment == scenario.name);
        let listed: Vec<&str> = listed.iter().flat_map(|it| &it.claims).map(|(_, claim)| claim.as_str()).collect();
        assert_eq!(listed, claims, "{}: run `make lab-check-update`", scenario.name);
    }
}
