//! What is wrong in a scenario is named with its line and what would be right.

use braidcast_lab::{Job, Request, Scenario, Wrong};
use std::path::Path;

const GOOD: &str = r#"name = "x"
title = "t"
experiment = "transfer"
duration = "2s"
[link.a]
rate = "1mbit"
rtt = "${rtt_ms}ms"
[sweep]
rtt_ms = [20, 50]
[[variant]]
name = "sack"
sctp.sack = "every-packet"
"#;

fn read(text: &str) -> Result<Scenario, Wrong> {
    Scenario::read("my.toml", text, Path::new("."))
}

/// `GOOD` with `old` replaced is refused at `line`, in these words.
#[track_caller]
fn refused(old: &str, new: &str, line: usize, words: &[&str]) {
    assert!(GOOD.contains(old));
    let wrong = read(&GOOD.replacen(old, new, 1)).expect_err("must be refused");
    let place = if line == 0 { "my.toml".to_owned() } else { format!("my.toml:{line}") };
    assert_eq!(wrong.place, place, "{wrong}; {}", wrong.mend);
    for word in words {
        assert!(format!("{wrong} {}", wrong.mend).contains(word), "'{word}' is not in: {wrong}; {}", wrong.mend);
    }
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(read(GOOD).unwrap().points().unwrap().len(), 2);
}

#[test]
fn unknown_keys_get_the_nearest_one() {
    refused("title", "titel", 2, &["unknown key 'titel'", "did you mean 'title'?"]);
    refused("rate =", "rat =", 6, &["unknown key 'rat' in [link.a]", "did you mean 'rate'?"]);
    refused("sctp.sack", "sctp.sacks", 12, &["unknown key 'sacks' in [sctp]", "did you mean 'sack'?"]);
    refused("sctp.sack", "stcp.sack", 12, &["unknown key 'stcp'", "did you mean 'sctp'?"]);
    refused("transfer", "transfr", 3, &["no experiment is called 'transfr'", "did you mean 'transfer'?"]);
}

#[test]
fn values_that_mean_nothing_are_shown_what_would() {
    refused("1mbit", "-1mbit", 6, &["rate in [link.a]", "8mbit"]);
    refused("\"2s\"", "\"0s\"", 4, &["a duration of 0", "60s"]);
    refused("every-packet", "always", 12, &["every-packet, delayed, dac"]);
    refused("${rtt_ms}", "${rtt}", 7, &["$rtt is no parameter", "did you mean 'rtt_ms'?"]);
    refused("rate = \"1mbit\"", "trace = \"gone.up\"", 6, &["gone.up", "recording"]);
    refused("[20, 50]", "20", 9, &["'rtt_ms' is a list"]);
    refused("duration = \"2s\"", "duration = \"2s", 4, &[]);
}

#[test]
fn loops_without_end_are_refused() {
    let many: Vec<String> = (1..=10_001).map(|i| i.to_string()).collect();
    refused("[20, 50]", &format!("[{}]", many.join(",")), 0, &["more than 10000 points"]);
    let flow = "[flow.f]\npaths = [[\"a\", \"a\"]]\n[sweep]";
    refused("[sweep]", flow, 9, &["goes through 'a' twice"]);
    refused("[sweep]", "[flow.f]\nagent = \"udp\"\n[sweep]", 9, &["bulk traffic over UDP", "cbr:"]);
}

#[test]
fn claims_and_references_must_speak_of_what_there_is() {
    let claim = "[[claim]]\ntext = \"c\"\nmetric = \"goodput\"\nhigher = \"sack\"\nlower = \"cmt\"\n[[variant]]";
    refused("[[variant]]", claim, 0, &["a [[claim]] speaks of 'cmt'"]);
    let odd = "[[claim]]\ntext = \"c\"\nmetrik = \"goodput\"\n[[variant]]";
    refused("[[variant]]", odd, 12, &["unknown field `metrik`"]);
    let text =
        GOOD.to_owned() + "[[reference]]\nagainst = \"ns2\"\nfile = \"A_rtt.csv\"\nmetrics = { goodput = \"g\" }\n";
    let scenario = read(&text).unwrap();
    let wrong = Job::new(&scenario, &Request::default()).expect_err("no such file");
    assert!(wrong.mend.contains("A_rtt_asymmetry.csv"), "{wrong} {}", wrong.mend);
}
