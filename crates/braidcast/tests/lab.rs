//! `braidcast lab` as its users see it.

mod common;
use common::Test;

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
    Test::new("lab run fairness --variant tcp").run().says(2, &["no variant 'tcp'", "tcp-tcp"]);
    Test::new("lab report").run().says(1, &["lab-results", "lab run all"]);
}
