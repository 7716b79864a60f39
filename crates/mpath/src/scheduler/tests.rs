mod daps;
mod unlike_paths;

use super::{Scheduler, SchedulerKind};
use crate::{Delay, PathView, View, Waiting};
use braidcast_core::Instant;
use core::time::Duration;
use proptest::prelude::*;

fn path(ready: bool, srtt_ms: Option<u64>) -> PathView {
    let srtt = srtt_ms.map(Duration::from_millis);
    let forward_delay = srtt.map(|srtt| Delay::half_of(srtt, Duration::ZERO));
    PathView { ready, srtt, forward_delay, ..PathView::default() }
}

fn view(paths: &[PathView]) -> View<'_> {
    View { now: Instant::default(), paths, waiting: Waiting::default() }
}

/// What each scheduler does over six packets on three paths, the second of which is full from the fourth packet on.
#[test]
fn behaviour() {
    let rows: Vec<String> = SchedulerKind::ALL
        .iter()
        .map(|(name, kind)| {
            let mut scheduler = kind.scheduler();
            let picks = (0..6).map(|n| {
                let paths = [path(true, Some(80)), path(n < 3, Some(20)), path(true, Some(40))];
                if n % 5 == 0 {
                    scheduler.on_acknowledged();
                }
                let picked = scheduler.pick(&view(&paths)).unwrap();
                scheduler.on_sent(picked, 1200);
                picked.to_string()
            });
            format!("{name}: {}", picks.collect::<String>())
        })
        .collect();
    assert_eq!(
        rows,
        [
            "round-robin: 120202",
            "fill-in-turn: 111220",
            "lowest-delay: 111222",
            "earliest-delivery: 111222",
            "daps: 111222",
            "blest: 111222",
            "ecf: 111222",
            "by-rate: 012020",
            "redundant: 111222",
        ]
    );
}

#[test]
fn no_ready_path_no_pick() {
    for (_, kind) in SchedulerKind::ALL {
        assert_eq!(kind.scheduler().pick(&view(&[path(false, None), path(false, Some(1))])), None);
        assert_eq!(kind.scheduler().pick(&view(&[])), None);
    }
}

/// What waits goes over a slow path only where it would not be through sooner over a quick one that is full.
#[test]
fn a_slow_path_helps_where_it_is_quicker_than_waiting() {
    let mut scheduler = SchedulerKind::EarliestDelivery.scheduler();
    let ms = Duration::from_millis;
    // A megabyte a second over the quick one: 1000 bytes in a millisecond.
    let quick = PathView { active: true, rate: Some(1e6), ..path(false, Some(20)) };
    let slow = PathView { active: true, rate: Some(1e5), ..path(true, Some(300)) };
    let mut pick = |quick, slow: PathView, bytes, deadline| {
        let deadline = Some(Instant::from_millis(deadline));
        let waiting = Waiting { bytes, deadline, priority: 1, ..Waiting::default() };
        scheduler.pick(&View { now: Instant::ZERO, paths: &[quick, slow], waiting })
    };
    assert_eq!(
        pick(quick, slow, 80_000, 500),
        None,
        "90 ms over the quick one and half as much again, 150 over the slow"
    );
    assert_eq!(pick(quick, slow, 80_000, 610), Some(1), "what it loses can come over it once more");
    assert_eq!(pick(quick, slow, 100_000, 500), Some(1), "110 ms and half as much again");
    assert_eq!(
        pick(PathView { ssthresh: usize::MAX, cwnd: 50_000, ..quick }, slow, 100_000, 500),
        None,
        "two doublings"
    );
    assert_eq!(pick(PathView { silent: ms(60), ..quick }, slow, 80_000, 500), Some(1), "it stands still");
    assert_eq!(pick(PathView { active: false, ..quick }, slow, 80_000, 500), Some(1), "it is no path for data");
    let lossy = PathView { loss_rate: 0.05, ..slow };
    assert_eq!(pick(quick, lossy, 150_000, 380), None, "what it loses would be noticed after 375 ms");
    assert_eq!(pick(quick, lossy, 150_000, 400), Some(1));
    assert_eq!(
        pick(quick, lossy, 200_000, 380),
        Some(1),
        "the quick one could carry all of it at the last moment only"
    );
}

/// If losses are known by the quickest path, and repeated over it, a slow path may carry what comes too late over it
/// twice.
#[test]
fn a_slow_path_helps_more_where_its_losses_are_known_sooner() {
    let mut scheduler = SchedulerKind::EarliestDelivery.scheduler();
    let ms = Duration::from_millis;
    let quick = PathView { active: true, rate: Some(1e6), ..path(false, Some(20)) };
    let slow = PathView { active: true, rate: Some(1e5), loss_rate: 0.05, ..path(true, Some(300)) };
    let mut pick = |known_lost: Option<u64>, deadline| {
        let slow = PathView { known_lost: known_lost.map(ms), ..slow };
        let waiting = Waiting { bytes: 80_000, deadline: Some(Instant::from_millis(deadline)), ..Waiting::default() };
        scheduler.pick(&View { now: Instant::ZERO, paths: &[quick, slow], waiting })
    };
    assert_eq!(pick(None, 500), None, "by its round trip a loss is known after 375 ms, and made up for after 525");
    assert_eq!(pick(Some(479), 500), Some(1), "10 ms over the quick one, and 10 to spare");
    assert_eq!(pick(Some(480), 500), None);
    assert_eq!(pick(Some(175), 200), Some(1));
    assert_eq!(pick(Some(185), 200), None, "90 ms over the quick one: in time even in half of what is left");
}

/// The end of a large frame waits for the quick path where it would be late over the slow one, and only there.
#[test]
fn the_end_of_a_frame_goes_over_the_path_that_brings_it_in_time() {
    let mut scheduler = SchedulerKind::EarliestDelivery.scheduler();
    let quick = PathView { active: true, rate: Some(1e6), ..path(false, Some(20)) };
    let slow = PathView { active: true, rate: Some(1e6), ..path(true, Some(300)) };
    let mut pick = |head, deadline, due: Option<u64>| {
        let (deadline, due) = (Some(Instant::from_millis(deadline)), due.map(Instant::from_millis));
        // Far more waits behind it.
        let waiting = Waiting { bytes: 500_000, head, deadline, due, ..Waiting::default() };
        scheduler.pick(&View { now: Instant::ZERO, paths: &[quick, slow], waiting })
    };
    assert_eq!(pick(30_000, 160, None), Some(1), "there after 150 ms");
    assert_eq!(pick(30_000, 140, None), None, "there after 40 ms over the quick one");
    assert_eq!(pick(200_000, 140, None), Some(1), "late over both");
    assert_eq!(pick(30_000, 190, Some(140)), None, "of use for 50 ms more, but shown late");
    assert_eq!(pick(30_000, 190, Some(160)), Some(1));
}

/// What should have been answered and was not may be gone: the path is expected to go on as it does.
#[test]
fn a_path_whose_answer_is_overdue_is_left_for_another() {
    let mut scheduler = SchedulerKind::EarliestDelivery.scheduler();
    let ms = Duration::from_millis;
    let other = PathView { active: true, ..path(true, Some(120)) };
    let mut pick = |silent, deviation| {
        let forward_delay = Some(Delay { mean: ms(30), deviation: ms(deviation) });
        let overdue = PathView { active: true, silent: ms(silent), forward_delay, ..path(true, Some(60)) };
        scheduler.pick(&view(&[overdue, other]))
    };
    assert_eq!(pick(0, 0), Some(0));
    assert_eq!(pick(40, 0), Some(1), "70 ms instead of 60");
    assert_eq!(pick(40, 10), Some(0), "its round trips differ by as much");
}

/// A scheduler with state, as one outside of this crate could be: each path gets bytes in proportion to its rate.
#[derive(Debug, Default)]
struct ByRate {
    /// Bytes for each path since it came, and what the others had by then.
    sent: Vec<usize>,
}

impl Scheduler for ByRate {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        self.sent.resize(view.paths.len().max(self.sent.len()), 0);
        let due = |&path: &usize| (self.sent[path] + 1) as f64 / view.paths[path].rate.unwrap_or(1.0).max(1.0);
        (0..view.paths.len()).filter(|&path| view.paths[path].ready).min_by(|a, b| due(a).total_cmp(&due(b)))
    }

    fn on_sent(&mut self, path: usize, bytes: usize) {
        self.sent.resize(self.sent.len().max(path + 1), 0);
        self.sent[path] += bytes;
    }

    fn on_restarted(&mut self, _path: usize) {
        self.sent.fill(0);
    }
}

#[test]
fn a_scheduler_with_state_can_be_added() {
    let mut scheduler: Box<dyn Scheduler> = Box::new(ByRate::default());
    let mut paths = [1e6, 3e6, 2e6].map(|rate| PathView { rate: Some(rate), ..path(true, None) });
    let mut send = |paths: &[PathView]| {
        let mut counts = vec![0; paths.len()];
        for _ in 0..600 {
            let picked = scheduler.pick(&view(paths)).unwrap();
            scheduler.on_sent(picked, 1200);
            counts[picked] += 1;
        }
        counts
    };
    assert_eq!(send(&paths), [100, 300, 200]);
    paths[1].ready = false;
    assert_eq!(send(&paths), [200, 0, 400]);
}

/// What may happen to a scheduler. Paths are any, be they there or not.
#[derive(Clone, Debug)]
enum Event {
    /// A pick with these paths (ready, round trip), and whether a packet goes over the one that was picked.
    Pick(Vec<(bool, Option<u64>)>, bool),
    Sent(usize),
    Extra(usize),
    Acknowledged,
    Restarted(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let paths = prop::collection::vec((any::<bool>(), prop::option::of(0_u64..4)), 0..=8);
    let event = prop_oneof![
        6 => (paths, any::<bool>()).prop_map(|(paths, sent)| Event::Pick(paths, sent)),
        1 => (0_usize..10).prop_map(Event::Sent),
        1 => (0_usize..10).prop_map(Event::Extra),
        2 => Just(Event::Acknowledged),
        1 => (0_usize..10).prop_map(Event::Restarted),
    ];
    prop::collection::vec(event, 0..60)
}

/// The rules by the whole record of what was sent: the path used last, and the packets over each
/// since an acknowledgement.
struct Record {
    last: usize,
    bursts: [u32; 10],
}

impl Record {
    fn pick(&self, kind: SchedulerKind, paths: &[PathView]) -> Option<usize> {
        let in_turn = || (1..=paths.len()).map(|step| (self.last + step) % paths.len()).find(|&i| paths[i].ready);
        let goes_on = self.bursts[self.last] > 0 && paths.get(self.last).is_some_and(|path| path.ready);
        let ready = (0..paths.len()).filter(|&i| paths[i].ready);
        match kind {
            SchedulerKind::RoundRobin => in_turn(),
            SchedulerKind::FillInTurn if goes_on => Some(self.last),
            SchedulerKind::FillInTurn => in_turn(),
            // No path is active here, so none is waited for.
            _ => ready.min_by_key(|&i| paths[i].srtt.unwrap_or(Duration::ZERO)),
        }
    }
}

proptest! {
    /// Whatever happens, paths that come and go included: what is picked is ready, something is if
    /// anything is, asking twice changes nothing, and the pick is what the whole record gives.
    #[test]
    fn picks_follow_the_record(first in 0_usize..10, events in events()) {
        for (_, kind) in SchedulerKind::ALL {
            let mut scheduler = kind.scheduler();
            scheduler.reset(first);
            let mut record = Record { last: first, bursts: [0; 10] };
            for event in &events {
                let mut sent = None;
                match event {
                    Event::Pick(paths, goes) => {
                        // The path used last may have left, and the list have become shorter than its index.
                        let paths: Vec<_> = paths.iter().map(|&(ready, srtt)| path(ready, srtt)).collect();
                        let picked = scheduler.pick(&view(&paths));
                        prop_assert!(picked.is_none_or(|i| paths[i].ready));
                        prop_assert_eq!(picked.is_some(), paths.iter().any(|path| path.ready));
                        prop_assert_eq!(scheduler.pick(&view(&paths)), picked);
                        if record.last < paths.len() && kind != SchedulerKind::ByRate {
                            prop_assert_eq!(picked, record.pick(kind, &paths));
                        }
                        sent = picked.filter(|_| *goes);
                    }
                    Event::Sent(path) => sent = Some(*path),
                    Event::Extra(path) => {
                        scheduler.on_extra(*path, 1200);
                        record.bursts[*path] += 1;
                    }
                    Event::Acknowledged => {
                        scheduler.on_acknowledged();
                        record.bursts = [0; 10];
                    }
                    Event::Restarted(path) => {
                        scheduler.on_restarted(*path);
                        record.bursts[*path] = 0;
                    }
                }
                if let Some(path) = sent {
                    scheduler.on_sent(path, 1200);
                    record.last = path;
                    record.bursts[path] += 1;
                }
            }
        }
    }
}

#[test]
fn one_way_is_half_of_the_round_trip() {
    let ms = Duration::from_millis;
    assert_eq!(Delay::half_of(ms(80), ms(6)), Delay { mean: ms(40), deviation: ms(6) });
}
