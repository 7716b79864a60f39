//! What is wrong in a scenario is named with its line and what would be right. The snapshot is the
//! page of all messages.

use braidcast_lab::{Job, Request, Scenario, Wrong};
use core::fmt::Write;
use core::sync::atomic::AtomicBool;
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
[[variant]]
name = "dac"
sctp.sack = "dac"
[[claim]]
text = "c"
metric = "goodput"
higher = "sack"
lower = "dac"
where = { rtt_ms = 50 }
factor = [1.0, 1.2]
[[reference]]
against = "ns2"
file = "A_rtt_asymmetry.csv"
variant = "variant"
params = { rtt_ms = "rtt2_ms" }
[reference.metrics]
goodput = "goodput_kbps_mean"
[[plot]]
title = "p"
kind = "line"
metrics = ["goodput"]
x = "rtt_ms"
"#;

/// What is wrong, in what is otherwise good: what is replaced, and by what.
const WRONG: &[(&str, &str, &str)] = &[
    ("no TOML", "duration = \"2s\"", "duration = \"2s"),
    ("the same key twice", "title = \"t\"", "title = \"t\"\ntitle = \"u\""),
    ("a key that is not there", "title = \"t\"\n", ""),
    ("no link", "[link.a]\nrate = \"1mbit\"\nrtt = \"${rtt_ms}ms\"\n", ""),
    ("a link of which nothing is said", "rate = \"1mbit\"\nrtt = \"${rtt_ms}ms\"\n", ""),
    ("a link without a name", "[link.a]", "[link]"),
    ("an unknown key at the top", "title", "titel"),
    ("an unknown key of a link", "rate =", "rat ="),
    ("an unknown key of SCTP", "sctp.sack", "sctp.sacks"),
    ("an unknown key of DCCP", "sctp.sack = \"dac\"", "dccp.cid = \"ccid3\""),
    ("an encoder that does not follow", "sctp.sack = \"dac\"", "live.encoder = \"x264\""),
    ("rates in the wrong order", "sctp.sack = \"dac\"", "live.rate_range = \"6mbit-100kbit\""),
    ("an unknown CCID", "sctp.sack = \"dac\"", "dccp.ccid = \"ccid9\""),
    ("traffic back over SCTP", "[sweep]", "[flow.f]\nback = \"g711\"\n[sweep]"),
    ("an unknown table in a variant", "sctp.sack", "stcp.sack"),
    ("an unknown key of a claim", "metric =", "metrik ="),
    ("a claim without a variant", "lower = \"dac\"\n", ""),
    ("one bracket too few", "[[variant]]\nname = \"sack\"", "[variant]\nname = \"sack\""),
    ("an unknown experiment", "transfer", "transfr"),
    ("an unknown agent", "[sweep]", "[flow.f]\nagent = \"stcp\"\n[sweep]"),
    ("an unknown link in a path", "[sweep]", "[flow.f]\npaths = [[\"b\"]]\n[sweep]"),
    ("a flow without a path", "[sweep]", "[flow.f]\npaths = []\n[sweep]"),
    ("a number for a text", "name = \"x\"", "name = 7"),
    ("a negative rate", "1mbit", "-1mbit"),
    ("a rate without a unit", "\"1mbit\"", "1000000"),
    ("a rate too high", "1mbit", "1e30mbit"),
    ("a delay longer than a year", "${rtt_ms}ms", "${rtt_ms}000h"),
    ("more loss than there is", "rate = \"1mbit\"", "rate = \"1mbit\"\nloss = \"105%\""),
    ("no duration", "\"2s\"", "\"0s\""),
    ("no runs", "duration", "runs = 0\nduration"),
    ("too many runs", "duration", "runs = 99999999999\nduration"),
    ("no number", "[20, 50]", "[20, nan]"),
    ("infinite", "[1.0, 1.2]", "[1.0, inf]"),
    ("a number beyond all types", "[20, 50]", "[20, 99999999999999999999]"),
    ("a float beyond all types", "[20, 50]", "[20, 1e999]"),
    ("a buffer too large", "sctp.sack = \"dac\"", "sctp.send_buffer = 99999999999"),
    ("a message that fits no buffer", "sctp.sack = \"dac\"", "sctp.max_message = 5000000"),
    (
        "a buffer for less than a message",
        "[sweep]",
        "[flow.f.sctp]\nmax_message = 9000\nreceive_buffer = 4000\n[sweep]",
    ),
    ("a timeout longer than the longest", "sctp.sack = \"dac\"", "sctp.rto_min = \"2h\""),
    ("no time between heartbeats", "sctp.sack = \"dac\"", "sctp.heartbeat = \"0s\""),
    ("a SACK that comes too late", "sctp.sack = \"dac\"", "sctp.sack_delay = \"1s\""),
    ("a word that is no SACK rule", "every-packet", "always"),
    ("a parameter that there is not", "${rtt_ms}", "${rtt}"),
    ("a parameter that is no list", "[20, 50]", "20"),
    ("a parameter without values", "[20, 50]", "[]"),
    ("a date", "[20, 50]", "2020-02-02"),
    ("a missing trace", "rate = \"1mbit\"", "trace = \"gone.up\""),
    ("a path in a circle", "[sweep]", "[flow.f]\npaths = [[\"a\", \"a\"]]\n[sweep]"),
    ("bulk traffic without a pace", "[sweep]", "[flow.f]\nagent = \"udp\"\n[sweep]"),
    ("bulk traffic on which no time passes", "rate = \"1mbit\"\nrtt = \"${rtt_ms}ms\"", "loss = \"1%\""),
    ("two variants of one name", "name = \"dac\"", "name = \"sack\""),
    ("a variant without a name", "name = \"dac\"\n", ""),
    ("a claim about an unknown variant", "lower = \"dac\"", "lower = \"dca\""),
    ("a claim at an unknown parameter", "{ rtt_ms = 50 }", "{ rtt = 50 }"),
    ("a claim whose factors are swapped", "[1.0, 1.2]", "[1.2, 1.0]"),
    ("a margin in percent", "factor = [1.0, 1.2]", "margin = 98.0"),
    ("a margin of nothing", "factor = [1.0, 1.2]", "margin = 0.0"),
    ("a negative margin", "factor = [1.0, 1.2]", "margin = -0.02"),
    ("a margin that is no number", "factor = [1.0, 1.2]", "margin = \"2%\""),
    ("a claim about an unknown metric", "metric = \"goodput\"", "metric = \"goodputt\""),
    ("a claim whose differences are swapped", "factor = [1.0, 1.2]", "by = [5, 2]"),
    ("a claim about nobody", "lower = \"dac\"", "lower = []"),
    ("a claim across links", "sctp.sack = \"dac\"", "sctp.sack = \"dac\"\nlink.a.loss = \"1%\""),
    ("a claim about two things", "sctp.sack = \"dac\"", "sctp.sack = \"dac\"\nsctp.mtu = 1400"),
    ("a claim that lets vary what does not", "factor = [1.0, 1.2]", "varies = [\"link.a.loss\"]"),
    ("a reason that quotes nothing", "factor = [1.0, 1.2]", "reason = \"by {goodput}\""),
    ("a reason that quotes an unknown variant", "factor = [1.0, 1.2]", "reason = \"by {goodput | dca}\""),
    ("a reason that quotes an unknown parameter", "factor = [1.0, 1.2]", "reason = \"by {goodput | dac | rtt=1}\""),
    ("a reason that quotes an unknown metric", "factor = [1.0, 1.2]", "reason = \"by {goodputt | dac}\""),
    (
        "a difference that does not say how it was found",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nratio = [0.5, 0.8]\n[[plot]]",
    ),
    (
        "a difference without a size",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nfound = \"unknown\"\n[[plot]]",
    ),
    (
        "a difference on both sides",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nfound = \"unknown\"\nratio = [0.5, 1.2]\n[[plot]]",
    ),
    (
        "a difference whose sizes are swapped",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nfound = \"unknown\"\nby = [-1, -2]\n[[plot]]",
    ),
    (
        "a difference with two sizes",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nfound = \"unknown\"\nratio = [0.5, 0.8]\npoints = [{ ratio = [0.5, 0.8] }]\n[[plot]]",
    ),
    (
        "a difference at an unknown parameter",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nfound = \"unknown\"\npoints = [{ where.rtt = 1, ratio = [0.5, 0.8] }]\n[[plot]]",
    ),
    (
        "a difference that was traced, but is not shown",
        "[[plot]]",
        "[[difference]]\nmetric = \"goodput\"\nagainst = \"ns2\"\ntext = \"t\"\nfound = \"traced\"\nratio = [0.5, 0.8]\n[[plot]]",
    ),
    ("an unknown reference", "against = \"ns2\"", "against = \"ns3\""),
    ("a missing reference", "A_rtt_asymmetry.csv", "A_rtt.csv"),
    ("an unknown column", "goodput_kbps_mean", "goodput_kbps"),
    ("an unknown column of a parameter", "\"rtt2_ms\"", "\"rtt_ms\""),
    ("a reference for an unknown parameter", "{ rtt_ms = \"rtt2_ms\" }", "{ rtt = \"rtt2_ms\" }"),
    ("a reference for an unknown metric", "goodput = \"goodput_kbps_mean\"", "speed = \"goodput_kbps_mean\""),
    (
        "a reference multiplied with nothing",
        "= \"goodput_kbps_mean\"",
        "= { column = \"goodput_kbps_mean\", factor = 0 }",
    ),
    ("a plot over an unknown parameter", "x = \"rtt_ms\"", "x = \"rtt\""),
    ("a plot of an unknown metric", "metrics = [\"goodput\"]", "metrics = [\"goodput\", \"jiter\"]"),
    ("a plot of an unknown kind", "kind = \"line\"", "kind = \"lines\""),
];

/// The first thing that is wrong with a scenario, be it seen only when it has run.
fn judge(text: &str) -> Option<Wrong> {
    let run = |scenario: &Scenario| {
        let job = Job::new(scenario, &Request { runs: Some(1), ..Request::default() })?;
        Ok(job.unmeasured(&job.run(&AtomicBool::new(false), &|| {})))
    };
    match Scenario::read("my.toml", text, Path::new("/nowhere")).and_then(|scenario| run(&scenario)) {
        Ok(unmeasured) => unmeasured.into_iter().next(),
        Err(wrong) => Some(wrong),
    }
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(judge(GOOD), None);
}

#[test]
fn each_error_names_its_line_and_what_would_be_right() {
    let mut page = String::new();
    for &(case, old, new) in WRONG {
        assert!(GOOD.contains(old), "{case}");
        let text = GOOD.replacen(old, new, 1);
        let wrong = judge(&text).unwrap_or_else(|| panic!("{case} must be refused"));
        let line = wrong.place.strip_prefix("my.toml:").and_then(|line| line.parse::<usize>().ok());
        let line = line.and_then(|line| text.lines().nth(line - 1)).unwrap_or_else(|| panic!("{case}: {wrong}"));
        writeln!(page, "{case}: {line}\n  {wrong}").unwrap();
        if !wrong.fix.is_empty() {
            writeln!(page, "  {}", wrong.fix).unwrap();
        }
        page.push('\n');
    }
    insta::assert_snapshot!(page);
}

#[test]
fn what_would_take_for_ever_or_all_memory_is_refused() {
    let many = |n: usize, of: &str| (0..n).map(|i| of.replace('N', &i.to_string())).collect::<String>();
    let sweep = format!("[20{}]", many(10_000, ", N"));
    let links = many(251, "[link.lN]\nrate = \"1mbit\"\n") + "[sweep]";
    let flows = many(101, "[flow.fN]\nagent = \"sctp\"\n") + "[sweep]";
    let paths = format!("[flow.f]\npaths = [{}]\n[sweep]", many(251, "[\"a\"],"));
    let wide = many(99, "[flow.fN]\nagent = \"sctp\"\n") + &many(249, "[link.lN]\nrate = \"1mbit\"\n");
    let wide = format!("{wide}[sweep]\nwide = [1{}]", many(999, ", N"));
    let text = |old: &str, new: &str| GOOD.replacen(old, new, 1);
    let long = text("[20, 50]", &format!("[\"{}\"]", "9".repeat(10_000)));
    for (text, line, words) in [
        (text("[20, 50]", &sweep), 8, "more than 10000 points"),
        (text("[sweep]", &links), 509, "at most 250"),
        (text("[sweep]", &flows), 209, "at most 100"),
        (text("[sweep]", &paths), 9, "at most 250"),
        (text("[sweep]", &wide), 704, "all points together need more than"),
        (long.replace("${rtt_ms}", &"${rtt_ms}".repeat(8)), 7, "longer than 65536 bytes"),
    ] {
        let wrong = judge(&text).expect("must be refused");
        assert_eq!(wrong.place, format!("my.toml:{line}"), "{wrong}");
        assert!(format!("{wrong}; {}", wrong.fix).contains(words), "{wrong}; {}", wrong.fix);
    }
    let long = judge(&format!("{GOOD}#{}", " ".repeat(1 << 20))).expect("must be refused");
    assert!(long.to_string().contains("more than 1048576"), "{long}");
    let scenario = Scenario::read("my.toml", GOOD, Path::new("/nowhere")).unwrap();
    let often =
        Job::new(&scenario, &Request { runs: Some(u32::MAX), ..Request::default() }).expect_err("too many runs");
    assert!(often.to_string().contains("more than 1000000"), "{often}");
}
