//! `braidcast lab` as its users see it.

use crate::common::{Running, Test};

const SCENARIO: &str = r#"name = "mine"
title = "A link of my own"
experiment = "transfer"
duration = "5s"
[link.a]
rate = "1mbit"
rtt = "${rtt_ms}ms"
[sweep]
rtt_ms = [20, 50]
"#;

#[test]
fn the_experiments_are_listed() {
    let ran = Test::new("lab list").run();
    ran.says(0, &[]);
    assert!(ran.out().contains("cmt-rtt-asymmetry"), "{}", ran.out());
}

#[test]
fn what_scenarios_can_be_made_of_is_listed() {
    let lists = [
        ("measures", &["transfer ", "conference "][..]),
        ("traffic", &["prcmt ", "bulk, bulk:10MB "]),
        ("links", &["outage ", "10s-12s, every:3s,250ms"]),
        ("keys", &["[sctp]\n", "[live]\n", "fec "]),
        ("keys live", &["[live]\n", "as `send --fec`"]),
    ];
    for (what, words) in lists {
        let ran = Test::new(&format!("lab list {what}")).run();
        ran.says(0, &[]);
        assert!(words.iter().all(|word| ran.out().contains(word)), "{what}: {}", ran.out());
    }
    assert!(!Test::new("lab list keys live").run().out().contains("[sctp]"));
    let document = Test::new("lab list keys link --json").run().json();
    assert_eq!(document["sections"][0]["keys"][0]["word"], "rate");
    Test::new("lab list keys sctpp").run().says(2, &["no section [sctpp]", "sctp, dccp"]);
    Test::new("lab list traffic voice").run().says(2, &["'voice' is not expected here"]);
    Test::new("lab list codes").run().says(2, &["codes", "measures"]);
}

#[test]
fn a_scenario_of_the_users_own_gives_a_row_for_each_metric_and_point() {
    let ran = Test::new("lab run mine.toml --runs 2 --seed 5 --json --quiet").file("mine.toml", SCENARIO).run();
    ran.says(0, &[]);
    let document = ran.json();
    assert_eq!((&document["command"], &document["seed"]), (&"lab run".into(), &5.into()));
    let rows = document["rows"].as_array().unwrap();
    let goodput: Vec<_> = rows.iter().filter(|row| row["metric"] == "goodput").collect();
    assert_eq!(goodput.len(), 2);
    assert_eq!(goodput[1]["params"]["rtt_ms"], 50);
    assert_eq!((&goodput[0]["n"], &goodput[0]["published"]), (&2.into(), &serde_json::Value::Null));
    let again = Test::new("lab run mine.toml --runs 2 --seed 5 --json --quiet").file("mine.toml", SCENARIO).run();
    assert_eq!(ran.out(), again.out());
}

#[test]
fn rows_come_as_csv_too() {
    let ran = Test::new("lab run mine.toml --runs 1 --csv --quiet --param rtt_ms=50").file("mine.toml", SCENARIO).run();
    ran.says(0, &[]);
    let goodput: Vec<_> = ran.out().lines().filter(|line| line.contains(",goodput,")).collect();
    assert!(goodput.len() == 1 && goodput[0].starts_with("mine,default,rtt_ms=50,goodput,kbit/s,"), "{goodput:?}");
}

#[test]
fn wrong_scenarios_are_refused_with_their_line() {
    let ran = Test::new("lab run mine.toml").file("mine.toml", SCENARIO.replace("1mbit", "-1mbit")).run();
    ran.says(2, &["mine.toml:6", "rate", "8mbit"]);
    Test::new("lab run cmt-rtt-asymetry").run().says(2, &["no such experiment", "did you mean 'cmt-rtt-asymmetry'?"]);
    Test::new("lab run fairness --variant tpc").run().says(2, &["no variant 'tpc'", "sctp"]);
    Test::new("lab run daps-table --duration 20s").run().says(2, &["daps-table", "always last 0.1s", "--duration"]);
    Test::new("lab run daps-table --duration 100ms").run().says(0, &["5 of 5 runs"]);
    Test::new("lab report").run().says(1, &["lab-results", "lab run all"]);
}

#[test]
fn a_clip_is_made_of_a_recording_and_of_nothing_else() {
    let ran = Test::new("lab clip talk.txt").file("talk.txt", "no stream").run();
    ran.says(1, &["talk.txt", "no video", "ffmpeg"]);
    Test::new("lab clip gone.ts").run().says(1, &["cannot open gone.ts"]);
    Test::new("lab clip").run().says(2, &["FILE"]);
}

/// Two runs of five seconds, of an experiment with one claim.
const EXPECTED: &str = "[sctp-loss]\nruns = 2\nduration = \"5s\"\nclaims = []\n";

#[test]
fn a_verdict_that_is_another_one_fails_with_the_line_that_runs_it_again() {
    let check = |list: &str, command: &str| Test::new(command).file("list.toml", list).run();
    let ran = check(EXPECTED, "lab check --list list.toml --json --quiet");
    ran.says(1, &["changed", "--update"]);
    let document = ran.json();
    let changed = &document["changed"][0];
    assert_eq!((&changed["experiment"], &changed["expected"]), (&"sctp-loss".into(), &serde_json::Value::Null));
    assert_eq!(changed["again"], "braidcast lab run sctp-loss --runs 2 --seed 1 --duration 5s");
    let (claim, found) = (changed["claim"].as_str().unwrap(), changed["found"].as_str().unwrap());
    let right = EXPECTED.replace("[]", &format!("[[{found:?}, {claim:?}]]"));
    let ran = check(&right, "lab check sctp-loss --list list.toml --quiet");
    ran.says(0, &[]);
    assert!(ran.out().contains("1 claims of 1 experiments: 0 changed"), "{}", ran.out());
    let other = if found == "refuted" { "confirmed" } else { "refuted" };
    let wrong = EXPECTED.replace("[]", &format!("[[{other:?}, {claim:?}]]"));
    let ran = check(&wrong, "lab check --list list.toml --quiet");
    ran.says(1, &["a verdict has changed"]);
    assert!(ran.out().contains(&format!("was {other}, is {found}")), "{}", ran.out());
}

#[test]
fn an_experiment_that_the_list_does_not_have_is_added_by_its_name_or_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("list.toml"), EXPECTED).unwrap();
    std::fs::write(dir.path().join("mine.toml"), SCENARIO).unwrap();
    let check =
        |names: &str| Running::start(dir.path(), &format!("lab check {names} --list list.toml --quiet")).finish();
    check("mine.toml").says(2, &["list.toml has no [mine.toml]", "--update adds one"]);
    check("none.toml --update").says(2, &["none.toml", "check the path"]);
    check("fairnes --update").says(2, &["did you mean 'fairness'?"]);
    let updated = check("mine.toml daps-table --update");
    updated.says(0, &[]);
    assert!(updated.out().contains("2 experiments in list.toml"), "{}", updated.out());
    let list = std::fs::read_to_string(dir.path().join("list.toml")).unwrap();
    assert!(list.contains("[\"mine.toml\"]\nruns = ") && list.contains("[\"sctp-loss\"]\nruns = 2\n"), "{list}");
    check("mine.toml daps-table").says(0, &[]);
}

#[test]
fn a_list_that_is_none_is_refused() {
    Test::new("lab check --list gone.toml").run().says(2, &["cannot read gone.toml", "crates/lab/verdicts.toml"]);
    let check = |list: &str, names: &str| {
        Test::new(&format!("lab check {names} --list list.toml")).file("list.toml", list).run()
    };
    check(&EXPECTED.replace("= 2", "= 1"), "").says(2, &["list.toml: [sctp-loss]", "a single run has no verdict"]);
    check(EXPECTED, "fairness").says(2, &["list.toml has no [fairness]"]);
    check("nonsense", "").says(2, &["list.toml:1", "lab check --update"]);
}

#[test]
fn ctrl_c_keeps_what_is_done() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.toml"), SCENARIO).unwrap();
    let running = Running::start(dir.path(), "lab run mine.toml --runs 500 --json").wait_for("100 of 1000 runs");
    running.interrupt();
    let ran = running.finish();
    ran.says(1, &["stopped early, after", "of 1000 runs", "kept in lab-results"]);
    let done = ran.json()["rows"][0]["n"].as_u64().unwrap();
    assert!((1..500).contains(&done), "{done} runs of 500");
    let kept = std::fs::read_to_string(dir.path().join("lab-results/mine.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).unwrap()["rows"], ran.json()["rows"]);
}

#[test]
fn a_slip_of_the_pen_is_told_after_the_results() {
    let claim = "[[claim]]\ntext = \"c\"\nmetric = \"goodputt\"\nhigher = \"default\"\nlower = \"default\"\n";
    let ran = Test::new("lab run mine.toml --runs 1").file("mine.toml", SCENARIO.to_owned() + claim).run();
    ran.says(2, &["mine.toml:12", "metric 'goodputt'", "did you mean 'goodput'?", "2 of 2 runs"]);
    assert!(ran.out().contains("goodput, kbit/s"), "{}", ran.out());
}

#[test]
fn a_livelock_loses_its_run_alone() {
    // A timer that is due again as soon as it has expired.
    let stuck = "[[variant]]\nname = \"good\"\n[[variant]]\nname = \"stuck\"\nflow.main.agent = \"tcp\"\n\
                 tcp = { rto_initial = \"0s\", rto_min = \"0s\", rto_max = \"0s\" }\n";
    let ran = Test::new("lab run mine.toml --runs 1 --json --param rtt_ms=50 --quiet")
        .file("mine.toml", SCENARIO.to_owned() + stuck)
        .run();
    let command = "braidcast lab run mine.toml --variant stuck --param rtt_ms=50 --seed 1 --runs 1";
    ran.says(1, &["1 runs were lost"]);
    let document = ran.json();
    let lost = document["lost_runs"][0].as_str().unwrap();
    assert!(lost.contains("timeouts at") && lost.contains(command), "{lost}");
    assert!(document["rows"].as_array().unwrap().iter().all(|row| row["variant"] == "good"));
}

#[test]
fn one_run_is_looked_into() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.toml"), SCENARIO).unwrap();
    let at = |command: &str| Running::start(dir.path(), command).finish();
    let ran = at("lab run mine.toml --seed 5 --viz --json");
    ran.says(0, &["one of 20 runs", "--variant default --param rtt_ms=20 --seed 5 --runs 1"]);
    let document = ran.json();
    assert_eq!(document["pages"][0], "lab-results/mine.main.html");
    assert_eq!(document["traces"][1], "lab-results/mine.main.receiver.trace");
    let page = std::fs::read_to_string(dir.path().join("lab-results/mine.main.html")).unwrap();
    assert!(page.contains("mine.main.sender.trace and mine.main.receiver.trace"));
    // Who listens changes nothing.
    let alone = at("lab run mine.toml --seed 5 --runs 1 --param rtt_ms=20 --json --quiet").json();
    assert_eq!(alone["rows"], document["rows"]);
    // Nothing of a single run stands where results are kept.
    let kept = std::fs::read_to_string(dir.path().join("lab-results/mine.json")).unwrap();
    at("lab run mine.toml --seed 6 --viz --quiet").says(0, &[]);
    assert_eq!(std::fs::read_to_string(dir.path().join("lab-results/mine.json")).unwrap(), kept);
    let ran = at("lab run mine.toml --param rtt_ms=50 --trace a.trace --quiet");
    ran.says(0, &[]);
    assert!(ran.out().ends_with("a.main.sender.trace\na.main.receiver.trace\n"), "{}", ran.out());
    let trace = std::fs::read_to_string(dir.path().join("a.main.sender.trace")).unwrap();
    assert!(trace.contains("\"clock_type\":\"simulated\"") && trace.contains("sctp:chunk_sent"));
    at("lab run mine.toml fairness --viz").says(2, &["look into one run", "name one experiment"]);
    at("lab run mine.toml --trace gone/a.trace").says(1, &["cannot write the trace gone/a.main.sender.trace"]);
    at("lab run mine.toml --open").says(2, &["--viz"]);
}
