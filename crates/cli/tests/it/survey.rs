//! `braidcast lab survey` as its users see it.

use crate::common::{Running, Test};

/// Three sets of two links for a short while.
const SHORT: &str = "lab survey --sets 3 --duration 4s --runs 2";

#[test]
fn the_table_lines_up_and_names_the_worst_sets_with_the_line_that_repeats_one() {
    let ran = Test::new(&format!("{SHORT} --seed 3 --beside scheduler=redundant --quiet")).run();
    ran.says(0, &[]);
    let lines: Vec<&str> = ran.out().lines().collect();
    assert!(
        lines[0].starts_with("3 sets of 2 links (drawn), load 0.45 to 1, latency 500 ms, 2 runs each, seed 3 (odd"),
        "{}",
        lines[0]
    );
    let head = lines.iter().position(|it| it.trim_start().starts_with("hurt, %")).unwrap();
    // Numbers stand to the right, so every line of the table ends in the same column.
    let width = |line: &str| line.chars().count();
    assert_eq!([width(lines[head + 1]), width(lines[head + 2])], [width(lines[head]); 2], "{}", ran.out());
    assert!(lines[head + 1].starts_with("default ") && lines[head + 2].starts_with("scheduler=redundant "));
    let worst = lines.iter().position(|it| it.starts_with("links ")).unwrap();
    assert!(lines[worst + 1..worst + 4].iter().all(|it| it.contains("Mbit/s") && width(it) == width(lines[worst])));
    let again = lines.last().unwrap().strip_prefix("one of them again: braidcast ").unwrap();
    assert!(again.starts_with("lab survey --seed 3 --runs 2 --duration 4s --set-index "), "{again}");
    let one = Test::new(again).run();
    one.says(0, &[]);
    assert!(one.out().contains("oracle playable") && one.out().contains("first"), "{}", one.out());
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_other_sets() {
    let run = |seed: u32| Test::new(&format!("{SHORT} --seed {seed} --json --quiet")).run();
    let (first, second) = (run(5), run(5));
    first.says(0, &[]);
    assert_eq!(first.out(), second.out());
    let document = first.json();
    let survey = &document["surveys"][0];
    assert_eq!(
        (&document["command"], &document["seed"], &survey["settings"]),
        (&"lab survey".into(), &5.into(), &"default".into())
    );
    assert_eq!((&survey["sets"], &survey["hurt"]["of"]), (&3.into(), &3.into()));
    let sets = survey["results"].as_array().unwrap();
    assert_eq!(sets.iter().map(|it| it["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(sets[0]["subsets"][0]["values"]["playable"].as_array().unwrap().len(), 2);
    let links = |document: &serde_json::Value| document["surveys"][0]["results"][0]["links"].clone();
    assert_ne!(links(&document), links(&run(7).json()));
    // A set by its number is the one that the survey had.
    let alone = Test::new(&format!("{SHORT} --seed 5 --set-index 2 --json --quiet")).run().json();
    assert_eq!(alone["surveys"][0]["results"][0], sets[2]);
}

#[test]
fn after_ctrl_c_the_same_command_goes_on_and_ends_with_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let command = "lab survey --sets 30 --duration 2s --runs 1 --seed 9 --json";
    let running = Running::start(dir.path(), command).wait_for("9 of 90 runs");
    running.interrupt();
    let ran = running.finish();
    ran.says(1, &["stopped early, after", "of 90 runs", "goes on from what is kept in lab-results"]);
    let done = ran.json()["surveys"][0]["sets"].as_u64().unwrap();
    assert!((1..30).contains(&done), "{done} sets of 30");
    let resumed = Running::start(dir.path(), command).finish();
    resumed.says(0, &[&format!("{done} of 30 sets are there from a run that was ended early")]);
    let kept: Vec<_> =
        std::fs::read_dir(dir.path().join("lab-results")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(
        kept,
        ["survey-2-links-load-0.45-1-test-3.6-500ms-drawn-seed-9.json"],
        "all is done: the sums alone are kept"
    );
    let report = Running::start(dir.path(), "lab report").finish();
    report.says(0, &[]);
    let page = std::fs::read_to_string(dir.path().join("lab-report.html")).unwrap();
    assert!(page.contains("sets hurt by over 1 point") && page.contains("seed 9"));
    let whole = Test::new(&format!("{command} --quiet")).run();
    whole.says(0, &[]);
    assert_eq!(resumed.out(), whole.out());
}

#[test]
fn the_same_sets_without_what_makes_them_bad_say_so_and_show_more() {
    let run = |more: &str| {
        let command = "lab survey --sets 2 --load 1.1,1.2 --duration 4s --runs 1 --seed 6 --quiet";
        Test::new(&format!("{command} {more}")).run()
    };
    let named = run("--without loss,changes,distance");
    named.says(0, &[]);
    assert!(named.out().starts_with("2 sets of 2 links (drawn) without loss and changes and distance, load 1.1"));
    let again = named.out().lines().last().unwrap();
    assert!(again.contains(" --without loss,changes,distance "), "{again}");
    let document = run("--without distance --json").json();
    assert_eq!(document["without"], serde_json::json!(["distance"]));
    let sets = document["surveys"][0]["results"].as_array().unwrap();
    assert!(sets.iter().flat_map(|set| set["links"].as_array().unwrap()).all(|link| link["delay_ms"] == 10));
}

#[test]
fn a_set_as_a_scenario_is_what_the_survey_ran() {
    let dir = tempfile::tempdir().unwrap();
    let at = |command: &str| Running::start(dir.path(), command).finish();
    let written = at(
        "lab survey --seed 4 --kinds operators --set reinject=false --duration 4s --runs 1 --set-index 1 --scenario a.toml",
    );
    written.says(0, &[]);
    let line = written.out().trim().strip_prefix("braidcast ").unwrap();
    assert!(line.starts_with("lab run a.toml --variant all --seed ") && line.ends_with(" --viz"), "{line}");
    let ran = at(&line.replace("--viz", "--json --quiet"));
    ran.says(0, &[]);
    let rows = ran.json();
    let playable =
        rows["rows"].as_array().unwrap().iter().find(|row| row["metric"] == "playable").unwrap()["mean"].clone();
    let survey = at(
        "lab survey --seed 4 --kinds operators --set reinject=false --duration 4s --runs 1 --set-index 1 --json --quiet",
    );
    let survey = survey.json();
    let set = &survey["surveys"][0]["results"][0];
    assert!(set["links"][0]["kind"].as_str().unwrap().starts_with("operators "), "{set}");
    let (ours, theirs) = (&set["subsets"][0]["values"]["playable"][0], playable.as_f64().unwrap());
    assert!((ours.as_f64().unwrap() - theirs).abs() < 1e-5, "{ours} {theirs}");
}

#[test]
fn bulk_transfers_have_their_own_table() {
    let command = "lab survey --bulk --buffer 64KiB --sets 2 --runs 1 --duration 4s --quiet --beside scheduler=blest";
    let ran = Test::new(command).run();
    ran.says(0, &[]);
    let words = [
        "2 sets of 2 links (drawn), bulk transfers with a receive buffer of 65536 bytes",
        "slower, %",
        "of sum, %",
        "lab survey --bulk --seed 1",
    ];
    assert!(words.iter().all(|word| ran.out().contains(word)), "{}", ran.out());
    let document = Test::new(&format!("{command} --json")).run().json();
    assert_eq!(
        (&document["what"]["bulk"]["receive_buffer"], &document["surveys"][1]["slower"]["of"]),
        (&65536.into(), &2.into())
    );
}

#[test]
fn an_encoder_that_follows_is_judged_by_its_aims() {
    let ran = Test::new("lab survey --encoder follow --sets 2 --runs 1 --duration 6s --json --quiet").run();
    ran.says(0, &[]);
    let document = ran.json();
    let survey = &document["surveys"][0];
    assert_eq!((&document["what"], &survey["met"]["of"]), (&"encoder".into(), &2.into()));
    for set in survey["results"].as_array().unwrap() {
        let value = |key: &str| set["judged"][key].as_f64().unwrap();
        assert!(value("rate_kbit") > 100.0 && value("rate_kbit") < value("oracle_kbit"), "{set}");
        assert!(value("on_time") > 50.0 && value("on_time") <= 100.0, "{set}");
    }
}

#[test]
fn what_a_survey_cannot_be_is_refused_with_what_would_be_right() {
    let refused = |args: &str, words: &[&str]| Test::new(&format!("lab survey {args}")).run().says(2, words);
    refused("--links 1", &["'1' is not 2 to 8 links", "2..4"]);
    refused("--load 1", &["'1' is not a range of loads", "0.45,1"]);
    refused("--kinds drawn,moon", &["moon", "operators"]);
    refused("--without loss,rain", &["rain", "changes"]);
    refused("--clip test-9", &["there is no clip 'test-9'", "did you mean 'test-"]);
    refused("--set schedular=ecf", &["'schedular=ecf'", "did you mean 'scheduler'?"]);
    refused("--beside scheduler=best", &["'scheduler=best'", "earliest-delivery"]);
    refused("--set scheduler", &["no setting", "'scheduler = \"ecf\"'"]);
    refused("--buffer 64KiB", &["--bulk"]);
    refused("--bulk --load 1,2", &["cannot be used with", "--load"]);
    refused("--bulk --set scheduler=best", &["'scheduler=best'", "blest"]);
    refused("--encoder lead", &["lead", "follow"]);
    refused("--encoder follow --bulk", &["cannot be used with"]);
    refused("--latency 1ms", &["10ms to 60s"]);
    refused("--duration 0s", &["1s to 1h"]);
    refused("--sets 0", &["1..=10000"]);
    refused("--scenario a.toml", &["--set-index"]);
    refused("--seed -1", &["'-1' is not a seed"]);
    Test::new("lab survey --sets 1 --runs 1 --duration 1s --results file/there")
        .file("file", "")
        .run()
        .says(1, &["file/there", "--results"]);
    Test::new("lab survey --set-index 1 --scenario gone/a.toml")
        .run()
        .says(1, &["cannot write gone/a.toml", "--scenario"]);
}
