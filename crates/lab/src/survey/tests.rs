use super::*;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

fn sets(survey: &Survey, count: u32) -> Vec<Set> {
    survey.sets(&(0..count).collect::<Vec<_>>())
}

fn names(all: &Survey, set: &Set) -> Vec<String> {
    let scenario = all.scenario(set, &all.settings[0]).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    scenario.variants.into_iter().map(|it| it.name).collect()
}

#[test]
fn sets_are_drawn_from_what_the_survey_says() {
    let survey = Survey { links: (2, 4), ..Survey::default() };
    let all = sets(&survey, 600);
    let stream = survey.stream_kbit();
    assert!((3_760.0..3_780.0).contains(&stream), "{stream}");
    let share = |of: &dyn Fn(&Set) -> bool| all.iter().filter(|set| of(set)).count() as f64 / all.len() as f64;
    for count in 2..=4 {
        assert!((0.25..0.42).contains(&share(&|set| set.links.len() == count)), "{count} links");
    }
    let loads: Vec<f64> = all.iter().map(|set| stream / set.links[0].mean_kbit as f64).collect();
    assert!(loads.iter().all(|it| (0.449..1.001).contains(it)), "{loads:?}");
    assert!(loads.iter().any(|it| *it < 0.5) && loads.iter().any(|it| *it > 0.95));
    let others: Vec<&Link> = all.iter().flat_map(|set| &set.links[1..]).collect();
    let steps = others.iter().filter(|it| !it.is_steady()).count() as f64 / others.len() as f64;
    assert!((0.28..0.39).contains(&steps), "a third of the others step: {steps}");
    assert!(all.iter().all(|set| set.links[0].is_steady() && !set.links[0].is_far()));
    let far = others.iter().filter(|it| it.is_far()).count() as f64 / others.len() as f64;
    assert!((0.5..0.65).contains(&far), "four delays of seven: {far}");
}

#[test]
fn the_same_links_are_spared_what_they_are_asked_to_be() {
    let survey = Survey { links: (3, 3), kinds: vec![Kind::Drawn, Kind::Operators], ..Survey::default() };
    let spared = |without: &[Without]| sets(&Survey { without: without.to_vec(), ..survey.clone() }, 40);
    let (drawn, bare) = (spared(&[]), spared(&[Without::Loss, Without::Changes, Without::Distance]));
    for (drawn, bare) in drawn.iter().zip(&bare) {
        let mean = |set: &Set| set.links.iter().map(|it| it.mean_kbit).collect::<Vec<_>>();
        assert_eq!((drawn.seed, mean(drawn)), (bare.seed, mean(bare)));
        for link in &bare.links {
            assert!(link.is_steady() && link.outages.is_empty() && link.rate == format!("{}kbit", link.mean_kbit));
            assert_eq!((link.delay_ms, link.loss_percent), (10, 0.0));
        }
    }
    let lossless = spared(&[Without::Loss]);
    let rest = |set: &Set| set.links.iter().map(|it| (it.rate.clone(), it.delay_ms)).collect::<Vec<_>>();
    assert!(drawn.iter().zip(&lossless).all(|(drawn, lossless)| rest(drawn) == rest(lossless)));
    assert_ne!(survey.name(), Survey { without: vec![Without::Loss], ..survey }.name());
}

#[test]
fn a_set_depends_on_its_number_and_the_seed_alone() {
    let survey = Survey::default();
    assert_eq!(sets(&survey, 10)[7], sets(&survey, 8)[7]);
    assert_ne!(sets(&survey, 8)[7].links, sets(&Survey { seed: 2, ..survey }, 8)[7].links);
}

#[test]
fn each_link_alone_and_each_two_are_subsets() {
    let two = Survey::default();
    assert_eq!(names(&two, &two.set(0)), ["all", "first", "second"]);
    let three = Survey { links: (3, 3), ..Survey::default() };
    let expected = ["all", "first", "second", "third", "first+second", "first+third", "second+third"];
    assert_eq!(names(&three, &three.set(0)), expected);
    assert_eq!(three.runs_of(&three.set(0)), 21);
}

#[test]
fn pieces_of_recordings_have_the_loads_that_were_asked_for() {
    for kind in [Kind::Operators, Kind::Lte, Kind::Wifi] {
        let survey = Survey { kinds: vec![kind], links: (3, 3), ..Survey::default() };
        let all = sets(&survey, 40);
        for set in &all {
            let load = survey.stream_kbit() / set.links[0].mean_kbit as f64;
            assert!((0.44..1.01).contains(&load), "{kind}: {load}");
            assert!(set.links.iter().all(|it| !it.is_steady() && it.kind.contains(" at ")), "{set:?}");
            names(&survey, set);
        }
        let moments = all.iter().map(|set| set.links[0].kind.clone()).collect::<std::collections::BTreeSet<_>>();
        assert!(moments.len() > 30, "{kind}: at random");
    }
    let mixed = Survey { kinds: vec![Kind::Drawn, Kind::Operators], ..Survey::default() };
    let recorded = sets(&mixed, 100).iter().filter(|set| set.links[0].kind.starts_with("operators")).count();
    assert!((35..65).contains(&recorded), "{recorded} of 100");
    // Two operators at the same moment.
    let pair = Survey { kinds: vec![Kind::Operators], ..Survey::default() }.set(0);
    let moment = |link: &Link| link.kind.replace(" a at", " at").replace(" b at", " at");
    assert_eq!(moment(&pair.links[0]), moment(&pair.links[1]));
}

#[test]
fn settings_are_keys_of_live_or_whole_ones_and_text_needs_no_quotes() {
    let read = |lines: &[&str]| Settings::read(What::Clip, lines.iter().copied());
    let it = read(&["scheduler=ecf", "reinject = false", "link.first.queue = \"1s\""]).unwrap();
    assert_eq!(it.lines, ["live.scheduler = \"ecf\"", "live.reinject = false", "link.first.queue = \"1s\""]);
    assert_eq!(it.name, "scheduler ecf, reinject false, link.first.queue 1s");
    assert_eq!(read(&[]).unwrap(), Settings::none());
    let wrong = |line: &str| {
        let it = read(&["reinject=false", line]).unwrap_err();
        format!("{it}; {}", it.fix)
    };
    assert!(wrong("schedular=ecf").contains("'schedular=ecf': ") && wrong("schedular=ecf").contains("scheduler"));
    assert!(wrong("scheduler=best").contains("earliest-delivery"), "{}", wrong("scheduler=best"));
    assert!(wrong("scheduler").contains("for example"));
    assert!(wrong("x]=1").contains("'x]=1'"), "{}", wrong("x]=1"));
}

#[test]
fn what_no_survey_can_be_is_refused() {
    let wrong = |it: Survey| it.check().unwrap_err().fix;
    assert!(wrong(Survey { links: (1, 2), ..Survey::default() }).contains("2 to 8"));
    assert!(wrong(Survey { load: (2.0, 1.0), ..Survey::default() }).contains("lower one first"));
    assert!(wrong(Survey { load: (0.0, f64::NAN), ..Survey::default() }).contains("0.01"));
    assert!(wrong(Survey { clip: "test".into(), ..Survey::default() }).contains("test-"));
    Survey { links: (8, 8), ..Survey::default() }.check().unwrap();
}

/// Two sets of two links for a short while.
fn short() -> Survey {
    Survey { duration: Duration::from_secs(4), runs: 1, ..Survey::default() }
}

fn run(survey: &Survey, sets: &[u32], known: &(dyn Fn(usize, u32) -> bool + Sync)) -> Vec<SetResult> {
    let results = Mutex::new(Vec::new());
    survey.run(sets, known, &AtomicBool::new(false), &|| {}, &|_, it| results.lock().unwrap().push(it));
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|it| it.index);
    results
}

#[test]
fn the_same_seed_gives_the_same_results_in_pieces_too() {
    let survey = short();
    let all = run(&survey, &[0, 1, 2], &|_, _| false);
    assert_eq!(all.iter().map(|it| it.index).collect::<Vec<_>>(), [0, 1, 2]);
    for result in &all {
        assert_eq!(result.lost_runs, Vec::<String>::new());
        assert_eq!(result.subsets.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["all", "first", "second"]);
        assert!(result.subsets.iter().all(|it| it.values("playable").len() == 1));
        assert!(result.subsets[0].mean("oracle playable") > 0.0);
    }
    let rest = run(&survey, &[0, 1, 2], &|_, index| index != 1);
    assert_eq!(rest, [all[1].clone()]);
    // What a file holds is what was measured.
    let text = serde_json::to_string(&all).unwrap();
    let again: Vec<SetResult> = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert_eq!(again[0].subsets, all[0].subsets);
}

#[test]
fn with_a_yardstick_it_is_kept_what_senders_without_foresight_could_have_shown() {
    let settings = Settings::read(What::Clip, ["yardstick=true"]).unwrap();
    let all = run(&Survey { settings: vec![settings], load: (1.0, 2.2), ..short() }, &[0], &|_, _| false);
    for subset in &all[0].subsets {
        let causal: Vec<&String> = subset.values.keys().filter(|name| name.starts_with("causal, ")).collect();
        assert_eq!(causal.len(), 7, "{subset:?}");
        assert!(causal.iter().all(|name| subset.values(name).iter().all(|value| (0.0..=100.0).contains(value))));
    }
    let without = run(&short(), &[0], &|_, _| false);
    assert!(without[0].subsets[0].values("causal, ideal").is_empty());
}

#[test]
fn a_set_that_is_stopped_is_not_half_there() {
    let (stop, results) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let once = || stop.store(true, Ordering::Relaxed);
    short().run(&(0..40).collect::<Vec<_>>(), &|_, _| false, &stop, &once, &|_, it| results.lock().unwrap().push(it));
    let results = results.into_inner().unwrap();
    assert!(results.len() < 40 && results.iter().all(|it| it.subsets.len() == 3), "{results:?}");
}

fn subset(name: &str, metrics: &[(&str, [f64; 2])]) -> Subset {
    let values = metrics.iter().map(|(metric, values)| ((*metric).to_owned(), values.to_vec()));
    Subset { name: name.to_owned(), values: values.collect() }
}

fn judged(what: What, subsets: Vec<Subset>) -> Judged {
    let result = SetResult { index: 3, seed: 1, links: Vec::new(), subsets, lost_runs: Vec::new() };
    Judged::of(what, &result).unwrap()
}

#[test]
fn what_subsets_show_is_judged_by_the_best_of_them() {
    let of =
        |name: &str, playable: [f64; 2]| subset(name, &[("playable", playable), ("oracle playable", [80.0, 100.0])]);
    let set = |all: [f64; 2], subsets: Vec<Subset>| {
        judged(What::Clip, core::iter::once(of("all", all)).chain(subsets).collect())
    };
    let worse = set([40.0, 42.0], vec![of("first", [20.0, 22.0]), of("second", [50.0, 50.0])]);
    let Judged::Clip(it) = &worse else { panic!("{worse:?}") };
    assert_eq!((it.best_subset.as_str(), it.all, it.best, it.oracle), ("second", 41.0, 50.0, 90.0));
    assert_eq!(it.difference, -9.0);
    // Differences -10 and -8: t(1) 12.706 times a standard error of 1.
    assert!((it.difference_ci95.unwrap() - 12.7062).abs() < 1e-3, "{worse:?}");
    let fine = set([99.5, 100.0], vec![of("first", [100.0, 100.0])]);
    let better = set([60.0, 60.0], vec![of("first", [40.0, 40.0])]);
    let Sums::Clip(sums) = Sums::of(What::Clip, &[(3, worse), (4, fine), (9, better)]) else { panic!() };
    let shares = [sums.hurt, sums.hurt_much, sums.helped, sums.hurt_where_enough].map(|it| (it.sets, it.of));
    assert_eq!(shares, [(1, 3), (1, 3), (1, 3), (0, 1)]);
    assert_eq!(sums.worst.map(|it| (it.index, it.value)), Some((3, -9.0)));
    let all = 41.0 + 99.75 + 60.0;
    assert!((sums.of_best.mean - 100.0 * all / 190.0).abs() < 1e-9 && (sums.of_oracle.mean - all / 2.7).abs() < 1e-9);
    let Sums::Clip(none) = Sums::of(What::Clip, &[]) else { panic!() };
    assert_eq!((none.hurt.of, none.worst), (0, None));
}

#[test]
fn a_bulk_transfer_is_judged_by_its_goodput() {
    let what = What::Bulk { receive_buffer: Some(65_536) };
    let of = |name: &str, goodput: f64| subset(name, &[("goodput", [goodput; 2])]);
    let set = |all, first, second| judged(what, vec![of("all", all), of("first", first), of("second", second)]);
    let sets = [(0, set(1_500.0, 1_000.0, 1_000.0)), (1, set(700.0, 1_000.0, 400.0)), (2, set(990.0, 1_000.0, 100.0))];
    let Sums::Bulk(sums) = Sums::of(what, &sets) else { panic!() };
    assert_eq!((sums.slower.sets, sums.slower.of, sums.worst.unwrap().index), (1, 3, 1));
    assert!((sums.worst.unwrap().value - 70.0).abs() < 1e-9 && (sums.median_of_sum - 75.0).abs() < 1e-9, "{sums:?}");
}

#[test]
fn an_encoder_is_judged_by_three_aims_and_beside_the_best_link_alone() {
    let of = |name: &str, on_time: f64, freeze: [f64; 2], rate: f64| {
        let metrics = [
            ("on time", [on_time; 2]),
            ("longest freeze", freeze),
            ("rate", [rate; 2]),
            ("oracle rate", [2_000.0; 2]),
            ("share of the oracle rate", [rate / 20.0; 2]),
            ("oracle on time", [100.0; 2]),
            ("oracle longest freeze", [0.0; 2]),
        ];
        subset(name, &metrics)
    };
    let set = |on_time: f64, freeze: [f64; 2], rate: f64| {
        let alone = [of("first", 100.0, [0.0; 2], 900.0), of("second", 100.0, [0.0; 2], 1_000.0)];
        judged(What::Encoder, core::iter::once(of("all", on_time, freeze, rate)).chain(alone).collect())
    };
    // All aims; frames late; a freeze in one of two runs; a rate that is too low.
    let sets = [
        (0, set(99.5, [0.0, 0.2], 1_800.0)),
        (1, set(98.0, [0.0; 2], 1_800.0)),
        (2, set(99.5, [0.0, 0.5], 1_800.0)),
        (3, set(99.5, [0.0; 2], 1_200.0)),
    ];
    assert!(sets[0].1.rank() > 0.0 && sets[1..].iter().all(|(_, it)| it.rank() < 0.0));
    let Sums::Encoder(sums) = Sums::of(What::Encoder, &sets) else { panic!() };
    let met = [sums.met, sums.on_time, sums.smooth, sums.full, sums.possible].map(|it| it.sets);
    assert_eq!(met, [1, 3, 3, 3, 4]);
    assert!((sums.of_alone.mean - 165.0).abs() < 1e-9 && (sums.possible_of_alone.mean - 100.0).abs() < 1e-9);
}

#[test]
fn sums_are_results_that_the_report_reads() {
    let survey = Survey { kinds: vec![Kind::Drawn, Kind::Wifi], links: (2, 4), ..Survey::default() };
    let results = survey.results(&[Sums::of(What::Clip, &[])], vec!["set 1".to_owned()]);
    assert_eq!(results.experiment, "survey-2-to-4-links-load-0.45-1-test-3.6-500ms-drawn-wifi-seed-1");
    assert_eq!((results.rows.len(), results.lost_runs.len()), (5, 1), "without sets none is the worst");
    assert!(results.rows.iter().all(|row| row.variant == "default" && row.n == 0));
    let page = crate::report::html(&[results]);
    assert!(page.contains("sets hurt by over 5 points"));
}

#[test]
fn bulk_transfers_run_with_the_buffer_that_was_asked_for() {
    let what = What::Bulk { receive_buffer: Some(65_536) };
    let settings = Settings::read(what, ["scheduler=blest"]).unwrap();
    let survey = Survey { what, settings: vec![settings], duration: Duration::from_secs(5), ..Survey::default() };
    assert!(survey.scenario_text(&survey.set(0), &survey.settings[0]).contains("receive_buffer = 65536"));
    let all = run(&survey, &[0, 1], &|_, _| false);
    for result in &all {
        assert_eq!(result.lost_runs, Vec::<String>::new());
        let first = result.links[0].mean_kbit as f64;
        let alone = result.subsets[1].mean("goodput");
        assert!((0.1 * first..first).contains(&alone), "{alone} of {first}");
    }
}
