//! What a user of several networks is promised: one more link does not hurt. On links drawn at random,
//! in simulated time.

use braidcast_lab::survey::{ClipSums, Judged, Sums, Survey, What};
use braidcast_testing::known_failure;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::sync::Mutex;

/// Sets of each kind.
const SETS: u32 = 6;

/// What is drawn, and what may come of it.
struct Bound {
    what: &'static str,
    links: usize,
    load: (f64, f64),
    /// Most sets that are hurt, by over 1 point and by over 5.
    hurt: usize,
    hurt_much: usize,
    /// Most points that a set loses.
    loses: f64,
    /// Least share of what foresight has, %.
    of_oracle: f64,
}

/// The bounds: `hurt`, `hurt_much`, `loses`, `of_oracle`, as they are reached (2026-12-01: 0, 0, 0.00, 100.00; 0, 0,
/// 0.00, 100.00; 2, 2, 12.20, 80.52; 2, 1, 13.00, 89.54), and a tenth of a point more. **Ceilings that only fall**:
/// whoever improves the scheduler runs the test with `--nocapture`, which prints what is reached, and writes that here.
/// Nobody writes a higher number (of `of_oracle`: a lower one). The aims are hurt 0, hurt_much 0, loses 1, of_oracle 88
/// and more.
const BOUNDS: [Bound; 4] = [
    bound("the first of two is enough", 2, (0.45, 1.0), (0, 0, 0.1, 99.9)),
    bound("the first of three is enough", 3, (0.45, 1.0), (0, 0, 0.1, 99.9)),
    bound("two are needed", 2, (1.0, 2.2), (2, 2, 12.3, 80.5)),
    bound("three are needed", 3, (1.1, 2.5), (2, 1, 9.3, 89.5)),
];

const fn bound(
    what: &'static str,
    links: usize,
    load: (f64, f64),
    (hurt, hurt_much, loses, of_oracle): (usize, usize, f64, f64),
) -> Bound {
    Bound { what, links, load, hurt, hurt_much, loses, of_oracle }
}

/// The sums of sets that depend on this seed alone: the same on every machine.
fn surveyed(bound: &Bound) -> ClipSums {
    let survey = Survey {
        seed: 101,
        links: (bound.links, bound.links),
        load: bound.load,
        duration: Duration::from_secs(20),
        runs: 1,
        ..Survey::default()
    };
    let judged = Mutex::new(Vec::new());
    let sets: Vec<u32> = (0..SETS).collect();
    survey.run(&sets, &|_, _| false, &AtomicBool::new(false), &|| {}, &|_, result| {
        let it = Judged::of(What::Clip, &result).unwrap_or_else(|| panic!("{:?}", result.lost_runs));
        judged.lock().unwrap().push((result.index, it));
    });
    let mut judged = judged.into_inner().unwrap();
    judged.sort_by_key(|(index, _)| *index);
    let Sums::Clip(sums) = Sums::of(What::Clip, &judged) else { unreachable!("a survey of clips") };
    sums
}

impl Bound {
    /// What came of its sets, which is within all bounds but that of the worst set.
    fn holds_on_the_whole(&self) -> ClipSums {
        let sums = surveyed(self);
        let (hurt, hurt_much, of_oracle) = (sums.hurt.sets, sums.hurt_much.sets, sums.of_oracle.mean);
        let loses = loses(&sums);
        let reached =
            format!("{}: hurt {hurt}, hurt_much {hurt_much}, loses {loses:.2}, of_oracle {of_oracle:.2}", self.what);
        println!("{reached}");
        let is_within = hurt <= self.hurt && hurt_much <= self.hurt_much && of_oracle >= self.of_oracle;
        assert!(is_within, "worse than its bound in BOUNDS:\n{reached}");
        sums
    }

    fn holds_for_the_worst(&self, sums: &ClipSums) {
        assert!(loses(sums) <= self.loses, "worse than its bound in BOUNDS:\n{}: loses {:.2}", self.what, loses(sums));
    }
}

/// Points that the worst set loses.
fn loses(sums: &ClipSums) -> f64 {
    -sums.worst.map_or(0.0, |it| it.value)
}

#[test]
fn one_more_link_hurts_no_more_than_it_did() {
    for bound in &BOUNDS[..3] {
        bound.holds_for_the_worst(&bound.holds_on_the_whole());
    }
}

#[test]
fn a_third_link_that_is_needed_hurts_no_more_than_it_did() {
    let bound = &BOUNDS[3];
    let sums = bound.holds_on_the_whole();
    let why =
        "less redundancy in a crowd is better over 1,040 sets, but the worst of these six loses 13.0 (decision 44)";
    known_failure(why, || bound.holds_for_the_worst(&sums));
}
