//! What a queue does with what makes no sense: the same for all methods, or as its rule has it.

use braidcast_core::Instant;
use braidcast_queue::{Discard, Limits, Method, Outlook, Priority, Refused, SendQueue, Tag, Why};
use core::time::Duration;

fn at(ms: u64) -> Outlook {
    Outlook { now: Instant::from_millis(ms), ..Outlook::default() }
}

fn tag(expiry: Option<u64>, len: usize) -> Tag {
    Tag { priority: Priority::FIRST, expiry: expiry.map(Instant::from_millis), len, frame: None }
}

/// All that comes out at `outlook`: what goes, and what is discarded.
fn drain(queue: &mut dyn SendQueue<u32>, outlook: &Outlook) -> (Vec<u32>, Vec<(u32, Why)>) {
    let (mut sent, mut gone) = (Vec::new(), Vec::new());
    while !queue.is_empty() {
        sent.extend(queue.pop(outlook, &mut gone).map(|(_, message)| message));
    }
    (sent, gone.into_iter().map(|Discard { message, why, .. }| (message, why)).collect())
}

#[test]
fn what_had_expired_before_it_came_is_treated_as_what_expired_while_it_waited() {
    for (name, method) in Method::ALL {
        let expired_before = |first, second| {
            let mut queue = method.queue(Limits::NONE);
            queue.push(&at(first), tag(Some(500), 100), 1, &mut Vec::new()).unwrap();
            queue.push(&at(second), tag(Some(2000), 100), 2, &mut Vec::new()).unwrap();
            drain(&mut *queue, &at(1000))
        };
        // Put in after 500 ms, or before.
        let late = expired_before(1000, 1000);
        assert_eq!(late, expired_before(0, 0), "{name}");
        if matches!(method, Method::Fifo | Method::Ring | Method::NeverDiscard | Method::InTime) {
            assert_eq!(late.0.len(), 2, "{name}: all are sent");
        } else {
            assert_eq!(late, (vec![2], vec![(1, Why::Expired)]), "{name}");
        }
    }
}

#[test]
fn a_priority_above_the_last_is_no_priority() {
    assert_eq!(Priority::new(7), Ok(Priority::LAST));
    for level in [8, u8::MAX] {
        let error = Priority::new(level).unwrap_err();
        assert_eq!(error.to_string(), format!("{level} is not a priority; use 0 (first) to 7"));
    }
    for text in ["8", "-1", "256", "first", ""] {
        assert!(text.parse::<Priority>().unwrap_err().contains("is not a priority; use 0 (first) to 7"), "{text}");
    }
}

#[test]
fn a_message_larger_than_the_queue_is_refused_and_nothing_goes_for_it() {
    for (name, method) in Method::ALL {
        let mut queue = method.queue(Limits::messages(4).bytes(1000));
        let mut gone = Vec::new();
        for message in 0..4 {
            queue.push(&at(0), tag(Some(100), 250), message, &mut gone).unwrap();
        }
        let refused = queue.push(&at(50), tag(Some(300), 1001), 9, &mut gone);
        assert_eq!(refused, Err(Refused::TooLarge(9)), "{name}");
        assert!(gone.is_empty() && (queue.len(), queue.bytes()) == (4, 1000), "{name}");
    }
}

#[test]
fn a_queue_for_no_message_holds_one() {
    for (name, method) in Method::ALL {
        let mut queue = method.queue(Limits::messages(0));
        queue.push(&at(0), tag(None, 100), 1, &mut Vec::new()).unwrap_or_else(|_| panic!("{name}"));
        assert_eq!(drain(&mut *queue, &at(0)).0, [1], "{name}");
    }
}

#[test]
fn when_the_clock_steps_back_messages_live_longer_and_that_is_all() {
    for (name, method) in Method::ALL {
        let mut queue = method.queue(Limits::NONE);
        for message in 0..5 {
            queue.push(&at(10_000), tag(Some(10_100), 100), message, &mut Vec::new()).unwrap();
        }
        queue.push(&at(500), tag(Some(600), 100), 5, &mut Vec::new()).unwrap();
        let (mut sent, gone) = drain(&mut *queue, &at(500));
        sent.sort_unstable();
        assert_eq!((sent, gone), ((0..6).collect(), vec![]), "{name}");
    }
    // By the time that the clock has caught up they are as old as ever.
    let mut queue = Method::Sbpn1.queue(Limits::NONE);
    queue.push(&at(10_000), tag(Some(10_100), 100), 0, &mut Vec::new()).unwrap();
    assert!(queue.peek().is_some_and(|tag| !tag.is_expired(&at(500))));
    assert_eq!(drain(&mut *queue, &at(10_100)), (vec![], vec![(0, Why::Expired)]));
    let far = Outlook { one_way_delay: Duration::MAX, ..at(0) };
    assert!(tag(Some(u64::MAX / 1_000_000), 1).is_expired(&far), "a way without end does not overflow");
}
