//! SACKs that come back over the quickest path (decision 34).

use crate::common::{Pair, link, ms, pattern};
use braidcast_core::Instant;
use braidcast_sctp::{Options, PathState, SackPath, SchedulerKind, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss};
use core::time::Duration;

fn options(path: SackPath) -> Options {
    Options::live().with(|it| {
        it.paths.scheduler = SchedulerKind::RoundRobin;
        it.sack.path = path;
    })
}

/// Sends `messages`, one each 10 ms. Returns the delays of those that came, the longest last.
fn took(pair: &mut Pair, messages: u64) -> Vec<Duration> {
    let how = SendOptions { unordered: true, ..SendOptions::default() };
    let (mut took, mut sent) = (Vec::new(), Vec::<Instant>::new());
    for n in 0..messages {
        let message = [&n.to_be_bytes()[..], &pattern(992, n)].concat();
        sent.push(pair.now());
        pair.client_send(&message, how);
        for _ in 0..10 {
            pair.run(ms(1));
            let now = pair.now();
            let number = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().unwrap()) as usize;
            took.extend(pair.server_recv().iter().filter_map(|(_, it)| Some(now - *sent.get(number(it))?)));
        }
    }
    took.sort();
    took
}

#[test]
fn a_loss_over_a_far_path_is_known_over_the_near_one() {
    // Of 200 packets three are lost over the far path; few of them twice. So the second longest was lost once.
    let repeated = |path, reordering| {
        let far = LinkModel { loss: Loss::Uniform(0.03), ..link(4, 250) };
        let options = options(path).with(|it| it.timers.reordering = reordering);
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(4, 30)), Duplex::new(far, link(4, 250))]);
        pair.run(ms(2000));
        let took = took(&mut pair, 2000);
        took[took.len() * 199 / 200]
    };
    let (before, now) = (repeated(SackPath::Rotate, None), repeated(SackPath::Quickest, Some(ms(15))));
    println!("lost once it took {before:?} and takes {now:?}");
    // 440 and 415 ms: of SACKs that go in turn, too, some come back over the near path, but the window is longer.
    assert!(now + ms(20) < before, "{before:?} {now:?}");
}

#[test]
fn a_near_path_that_carries_nothing_back_does_not_silence_the_others() {
    let mut pair =
        Pair::connected(&options(SackPath::Quickest), vec![Duplex::both(link(4, 10)), Duplex::both(link(4, 100))]);
    took(&mut pair, 300);
    let (_, back) = pair.links[0];
    pair.net.set_down(back, true);
    let came = took(&mut pair, 300).len();
    let far = pair.client_path(1).unwrap();
    println!("{came} of 300, {far:?}");
    assert_eq!((far.state, far.timeouts, far.t3_expiries), (PathState::Active, 0, 0));
    assert!(came > 250, "{came} of 300");
}

#[test]
fn a_sender_that_knows_nothing_of_it_repeats_losses_no_later() {
    let repeated = |receiver| {
        let far = LinkModel { loss: Loss::Uniform(0.03), ..link(4, 250) };
        let links = vec![Duplex::both(link(4, 30)), Duplex::new(far, link(4, 250))];
        let mut pair = Pair::with(options(SackPath::Rotate), options(receiver), links);
        pair.connect();
        pair.run(ms(2000));
        let took = took(&mut pair, 2000);
        let paths = [0, 1].map(|path| pair.client_path(path).unwrap());
        let answers = paths.map(|path| (path.state, path.timeouts, path.t3_expiries));
        (took.len(), took[took.len() * 199 / 200], answers)
    };
    let (before, now) = (repeated(SackPath::Rotate), repeated(SackPath::Quickest));
    println!("by a receiver without it {before:?}, with it {now:?}");
    assert_eq!(now.2, before.2);
    assert!(now.0 >= before.0 && now.1 < before.1 + ms(20), "{before:?} {now:?}");
}
