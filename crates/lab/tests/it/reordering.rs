//! The main claims of THESIS ch. 5 and of its eq. 3.1, in short runs of their own scenarios.

use braidcast_lab::results::Results;
use braidcast_lab::{Job, Request, Scenario};
use core::time::Duration;
use std::sync::atomic::AtomicBool;

fn run(name: &str, seconds: u64, params: &[(&str, &str)]) -> Results {
    let scenario = Scenario::find(name).unwrap();
    let params = params.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let duration = Some(Duration::from_secs(seconds));
    let request = Request { runs: Some(2), duration, params, ..Request::default() };
    let results = Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {});
    assert_eq!(results.lost_runs, Vec::<String>::new());
    results
}

fn mean(results: &Results, variant: &str, metric: &str) -> f64 {
    let row = results.rows.iter().find(|row| row.variant == variant && row.metric == metric);
    row.unwrap_or_else(|| panic!("no row {variant} {metric}")).mean
}

#[test]
fn late_packets_cost_what_the_equation_says() {
    let results = run("dccp-reordering", 60, &[("rtt_ms", "100")]);
    let goodput = |variant| mean(&results, variant, "goodput");
    assert!(goodput("in order") > 950.0);
    for variant in ["late", "netem", "late, no patience"] {
        let share = goodput(variant) / mean(&results, variant, "equation");
        assert!((0.9..1.15).contains(&share), "{variant}: {share} of the equation");
    }
    // Table 5.1 has 565 kbit/s, ns-2's DCCP 533, its TFRC sink without patience 327.
    assert!((450.0..620.0).contains(&goodput("late")), "{}", goodput("late"));
    assert!((280.0..400.0).contains(&goodput("late, no patience")), "{}", goodput("late, no patience"));
}

#[test]
fn a_buffer_of_5_packets_reaches_a_ratio_of_0_6_and_one_of_7_0_85() {
    let five = run("dccp-reorder-buffer", 60, &[("packets", "5"), ("rtt_ms", "100")]);
    let ratio = |variant| mean(&five, variant, "goodput ratio");
    assert!(ratio("as in table 5.1") >= 0.6, "{}", ratio("as in table 5.1"));
    assert!(mean(&five, "as in table 5.1", "loss event rate ratio") < 0.4);
    let seven = run("dccp-reorder-buffer", 60, &[("packets", "7"), ("rtt_ms", "400")]);
    let ratio = |variant| mean(&seven, variant, "goodput ratio");
    assert!(ratio("no patience, always 50 ms late") > 0.82, "{}", ratio("no patience, always 50 ms late"));
    assert!(ratio("always 50 ms late") > 0.66, "{}", ratio("always 50 ms late"));
}

#[test]
fn no_packet_waits_longer_than_d_max_and_enough_of_it_gains_0_85() {
    let results = run("dccp-reorder-delay", 60, &[("d_max_ms", "400"), ("rtt_ms", "400")]);
    for variant in ["as in table 5.1", "always 50 ms late"] {
        assert!(mean(&results, variant, "buffer longest wait") <= 400.0);
    }
    let ratio = mean(&results, "as in table 5.1", "goodput ratio");
    assert!(ratio > 0.82, "{ratio}");
    let short = run("dccp-reorder-delay", 30, &[("d_max_ms", "50"), ("rtt_ms", "200")]);
    assert!(mean(&short, "as in table 5.1", "buffer longest wait") <= 50.0);
}

#[test]
fn calls_and_video_are_as_good_as_tables_5_2_and_5_3_have_them() {
    let results = run("dccp-reorder-mos", 60, &[("reordered_pct", "5")]);
    for (flow, variant, printed) in [
        ("g711", "dccp buffer", 4.33),
        ("g711", "application's buffer", 4.33),
        ("g711", "no buffer", 3.87),
        ("g729", "dccp buffer", 3.96),
        ("g729", "application's buffer", 3.96),
        ("g729", "no buffer", 3.27),
    ] {
        let mos = mean(&results, variant, &format!("{flow} MOS"));
        assert!((mos - printed).abs() < 0.12, "{flow}, {variant}: {mos}, printed {printed}");
    }
    let video = |variant| mean(&results, variant, "video MOS");
    assert!(video("dccp buffer") > 3.5 && video("no buffer") < 1.1, "{} {}", video("dccp buffer"), video("no buffer"));
    assert!((2.0..2.9).contains(&video("application's buffer")), "{}", video("application's buffer"));
}

#[test]
fn each_ccid_gets_what_the_equation_gives() {
    for (loss, rtt) in [("1", "100"), ("5", "200")] {
        let results = run("ccid-equation", 60, &[("loss_pct", loss), ("rtt_ms", rtt)]);
        for variant in ["ccid2", "ccid3"] {
            let share = mean(&results, variant, "share of the equation");
            assert!((0.8..1.2).contains(&share), "{variant} at {loss} % and {rtt} ms: {share} of the equation");
        }
        for variant in ["ccid4", "ccid4-n", "ccid4-n100"] {
            let (goodput, most) = (mean(&results, variant, "goodput"), mean(&results, variant, "equation and 15 %"));
            assert!(goodput > 100.0 && goodput < most.min(128.1), "{variant} at {loss} % and {rtt} ms: {goodput}");
        }
    }
}
