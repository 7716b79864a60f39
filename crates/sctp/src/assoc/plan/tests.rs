//! Plans without bytes: two endpoints meet, and then one is asked what it would send.

use super::*;
use crate::assoc::testing::Pair;
use crate::{Event, Options, Reliability, SendOptions};
use braidcast_core::Machine;
use braidcast_queue::Method;
use core::time::Duration;

impl Pair {
    fn plan(&mut self) -> Option<(usize, What)> {
        let now = self.now;
        let plan = self.open().plan(now, true);
        plan.map(|plan| (plan.path.get(), plan.what))
    }

    fn send(&mut self, len: usize) {
        let (now, how) = (self.now, SendOptions { reliability: Reliability::Reliable, ..SendOptions::default() });
        self.association().send(now, &vec![1; len], how).unwrap();
    }
}

#[test]
fn nothing_to_say_is_no_plan() {
    let mut pair = Pair::over(1);
    assert_eq!(pair.plan(), None);
    assert!(pair.ends[0].poll_event().is_some_and(|(_, event)| event == Event::Connected));
}

#[test]
fn new_data_goes_after_control_and_announcements_and_what_was_lost_before_it() {
    let mut pair = Pair::over(1);
    pair.send(100_000);
    assert_eq!(pair.plan(), Some((0, What::New)));
    let now = pair.now;
    let path = pair.open().paths.at(0).unwrap();
    // Nobody carries the first window: T3 takes it for lost.
    while pair.association().poll_transmit(now, &mut Vec::new()).is_some() {}
    assert_eq!(pair.plan(), None, "the window is full");
    pair.now += Duration::from_secs(2);
    let now = pair.now;
    pair.association().handle_timeout(now);
    assert_eq!(pair.plan(), Some((0, What::Announcement)), "a heartbeat asks whether the path answers");
    pair.open().paths[path].take_pending();
    assert_eq!(pair.plan(), Some((0, What::Repeat)));
    pair.association().abort(now, "enough");
    assert_eq!(pair.plan(), Some((0, What::Control)));
}

#[test]
fn a_copy_goes_over_another_path_than_the_chunk_did() {
    let mut pair = Pair::over(2);
    pair.association().set_copied(0, true);
    pair.send(100);
    let Some((first, What::New)) = pair.plan() else { panic!("data goes first") };
    let now = pair.now;
    assert!(pair.association().poll_transmit(now, &mut Vec::new()).is_some());
    assert_eq!(pair.plan(), Some((1 - first, What::Copy)));
}

#[test]
fn asking_twice_changes_nothing() {
    let mut pair = Pair::over(2);
    pair.send(50_000);
    let plans = [pair.plan(), pair.plan(), pair.plan()];
    assert!(plans[0].is_some() && plans.iter().all(|plan| *plan == plans[0]), "{plans:?}");
}

#[test]
fn what_waits_for_room_in_the_send_buffer_holds_up_no_sack() {
    for concurrent in [true, false] {
        let options = Options::default().with(|it| {
            it.paths.concurrent = concurrent;
            it.queue.method = Some(Method::Fifo);
            (it.limits.send_buffer, it.limits.max_message) = (20_000, 9_000);
            it.congestion.initial_window = Some(100);
        });
        let mut pair = Pair::with(options, 1);
        let now = pair.now;
        for _ in 0..2 {
            pair.send(9_000);
            while pair.association().poll_transmit(now, &mut Vec::new()).is_some() {}
        }
        assert!(pair.open().has_new_data(), "the second message waits until the first one is acknowledged");
        let server = pair.ends[1].associations().next().unwrap();
        pair.ends[1].association_mut(server).unwrap().send(now, b"data", SendOptions::default()).unwrap();
        assert!(pair.exchange(1) > 0);
        pair.now += Duration::from_millis(500);
        assert_eq!(pair.plan(), Some((0, What::Sack)), "concurrent: {concurrent}");
    }
}
