use super::super::{Chance, Route, possible};
use super::*;
use FrameKind::{B, I, P};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Groups of ten frames, 40 ms apart: I 6000 bytes, then P and B of 2000 and 1000.
fn clip(groups: usize) -> Vec<Wanted> {
    let kinds = [(I, 6000), (P, 2000), (B, 1000)];
    let frame = |n: usize| {
        let (kind, bytes) = if n.is_multiple_of(10) { kinds[0] } else { kinds[1 + n % 2] };
        Wanted { at: ms(40 * n as u64), bytes, kind }
    };
    (0..10 * groups).map(frame).collect()
}

fn route(bytes: f64, delay: u64) -> Route {
    (0..10_000).map(|at| Chance { at: ms(at), bytes, delay: ms(delay) }).collect()
}

const LATENCY: Duration = ms(300);

fn share(routes: &[(Route, f64)], rules: &Rules) -> f64 {
    let clip = clip(20);
    let end = clip.last().unwrap().at + LATENCY;
    let lines: Vec<Line> = routes.iter().map(|(route, loss)| Line::of(route, *loss, ms(0), end)).collect();
    causal(&clip, &lines, LATENCY, rules, &mut Rng::from_seed(1))
}

#[test]
fn with_room_for_all_every_step_shows_all() {
    // 49 bytes in a ms are asked for.
    for (name, rules) in STEPS {
        assert_eq!(share(&[(route(70.0, 10), 0.0)], &rules), 1.0, "{name}");
        assert_eq!(share(&[(route(40.0, 10), 0.0), (route(40.0, 20), 0.0)], &rules), 1.0, "{name}");
    }
}

#[test]
fn without_foresight_no_more_is_shown_than_with_it() {
    for bytes in [25.0, 30.0, 40.0, 45.0] {
        let routes = [route(bytes, 10)];
        let oracle = possible(&clip(20), &routes, LATENCY).playable;
        let ideal = share(&[(routes[0].clone(), 0.0)], &STEPS[0].1);
        assert!(ideal <= oracle + 0.01 && ideal >= 0.9 * oracle, "{bytes}: {ideal} of {oracle}");
    }
}

#[test]
fn a_plan_shows_more_than_what_goes_until_it_is_too_late() {
    let link = [(route(30.0, 10), 0.0)];
    let (plan, none) = (share(&link, &IDEAL), share(&link, &Rules { plans: false, ..IDEAL }));
    assert!(plan > none + 0.2, "{plan}, {none}");
}

#[test]
fn each_step_takes_something_away() {
    let lossy = |loss: f64| [(route(30.0 * (1.0 - loss), 20), loss), (route(20.0 * (1.0 - loss), 120), loss)];
    let shares = STEPS.map(|(_, rules)| share(&lossy(0.05), &rules));
    let [ideal, headers, late, code, repeats, told_late, no_plan] = shares;
    assert!(ideal >= headers && headers >= late && late >= code, "{shares:?}");
    assert!(late > repeats.max(told_late) && repeats > no_plan, "{shares:?}");
    let clean = STEPS.map(|(_, rules)| share(&lossy(0.0), &rules));
    assert_eq!(clean[4], clean[5], "nothing is lost");
}
