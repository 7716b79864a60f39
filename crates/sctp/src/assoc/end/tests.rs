use crate::assoc::testing::Pair;
use crate::{AssociationId, CloseReason, Event, Options, PeerCause, Reason, Reliability, SendOptions};
use braidcast_core::Machine;

fn server(pair: &Pair) -> AssociationId {
    pair.ends[1].associations().next().unwrap()
}

fn events(pair: &mut Pair, end: usize) -> Vec<Event> {
    core::iter::from_fn(|| pair.ends[end].poll_event()).map(|(_, event)| event).collect()
}

/// The client does `last` right after it has sent two messages; the server's application hears of
/// nothing before all of it has come.
fn busy_server(last: impl FnOnce(&mut Pair)) -> (Pair, AssociationId, Vec<Event>) {
    let mut pair = Pair::over(1);
    let id = server(&pair);
    events(&mut pair, 1);
    for message in [b"one", b"two"] {
        let now = pair.now;
        pair.ends[0].association_mut(pair.client).unwrap().send(now, message, SendOptions::default()).unwrap();
    }
    pair.exchange(0);
    last(&mut pair);
    pair.settle();
    let events = events(&mut pair, 1);
    (pair, id, events)
}

#[test]
fn what_came_before_the_end_is_told_before_it_and_can_be_taken_after_it() {
    let shutdown = |pair: &mut Pair| pair.ends[0].association_mut(pair.client).unwrap().shutdown(pair.now);
    let abort = |pair: &mut Pair| pair.ends[0].association_mut(pair.client).unwrap().abort(pair.now, "bye");
    let by_peer = CloseReason::AbortedByPeer(PeerCause::User("bye".into()));
    type End = (fn(&mut Pair), CloseReason);
    let ends: [End; 2] = [(shutdown, CloseReason::Shutdown), (abort, by_peer)];
    for (last, reason) in ends {
        let (mut pair, id, events) = busy_server(last);
        assert_eq!(events, [Event::Readable, Event::Closed(reason)]);
        let (now, mut message) = (pair.now, Vec::new());
        for expected in [b"one", b"two"] {
            let association = pair.ends[1].association_mut(id).expect("the application has just been told");
            assert!(association.recv(now, &mut message).is_some());
            assert_eq!(message, expected);
        }
        pair.settle();
        assert!(pair.ends[1].association(id).is_none(), "it is over and told");
    }
}

#[test]
fn who_reads_one_message_at_a_time_is_told_again() {
    let (mut pair, id, first) = busy_server(|_| {});
    assert_eq!(first, [Event::Readable]);
    let (now, mut message) = (pair.now, Vec::new());
    assert!(pair.ends[1].association_mut(id).unwrap().recv(now, &mut message).is_some());
    assert_eq!(events(&mut pair, 1), [Event::Readable]);
    assert_eq!(events(&mut pair, 1), [], "once");
    assert!(pair.ends[1].association_mut(id).unwrap().recv(now, &mut message).is_some());
    assert_eq!(events(&mut pair, 1), []);
}

#[test]
fn what_nobody_acknowledged_is_named_at_the_end() {
    let mut pair = Pair::over(1);
    let now = pair.now;
    let client = pair.ends[0].association_mut(pair.client).unwrap();
    for (context, reliability) in [(7, Reliability::Reliable), (5, Reliability::Retransmissions(1))] {
        let how = SendOptions { context, reliability, ..SendOptions::default() };
        client.send(now, b"never acknowledged", how).unwrap();
    }
    client.abort(now, "");
    let mut told = events(&mut pair, 0);
    let told = told.split_off(told.len() - 2);
    assert_eq!(told, [Event::Unsettled(vec![7, 5]), Event::Closed(CloseReason::Aborted)]);
}

#[test]
fn the_peer_is_told_as_much_of_a_reason_as_fits() {
    for (reason, length) in [("r".repeat(100_000), 256), ("\u{4e2d}".repeat(100), 255)] {
        let (_, _, events) = busy_server(|pair| {
            let now = pair.now;
            pair.ends[0].association_mut(pair.client).unwrap().abort(now, reason.as_str());
        });
        let Some(Event::Closed(CloseReason::AbortedByPeer(told))) = events.last() else { panic!("{events:?}") };
        assert_eq!(*told, PeerCause::User(reason[..length].into()));
    }
}

#[test]
fn a_reason_fits_the_smallest_packets_too() {
    let small = Options::default().with(|it| {
        it.paths.base_mtu = crate::PathOptions::MIN_MTU;
        it.paths.max_mtu = crate::PathOptions::MIN_MTU;
    });
    let mut pair = Pair::with(small, 1);
    let now = pair.now;
    pair.ends[0].association_mut(pair.client).unwrap().abort(now, "r".repeat(1000));
    let mut packet = Vec::new();
    while pair.ends[0].poll_transmit(now, &mut packet).is_some() {
        assert!(packet.len() <= crate::PathOptions::MIN_MTU, "{} bytes", packet.len());
    }
}

/// The wish to shut down may come before there is anything to shut down.
#[test]
fn a_shutdown_before_the_association_is_open_delivers_first() {
    let options = Options::default();
    let [mut client, mut server] =
        [1, 2].map(|seed| crate::Endpoint::new(options.clone(), braidcast_core::Rng::from_seed(seed)).unwrap());
    server.listen();
    let now = braidcast_core::Instant::from_millis(1);
    let id = client.connect(now, options.local_port, &[crate::assoc::testing::route(0, 0)]).unwrap();
    let association = client.association_mut(id).unwrap();
    association.send(now, b"first and last", SendOptions::default()).unwrap();
    association.shutdown(now);
    assert_eq!(association.send(now, b"later", SendOptions::default()), Err(crate::SendError::Closing));
    let mut pair = Pair { now, ends: [client, server], client: id };
    pair.settle();
    let mut message = Vec::new();
    let events: Vec<_> = core::iter::from_fn(|| pair.ends[1].poll_event()).collect();
    let (id, end) = events.last().unwrap();
    assert_eq!(*end, Event::Closed(CloseReason::Shutdown), "{events:?}");
    assert!(pair.ends[1].association_mut(*id).unwrap().recv(now, &mut message).is_some());
    assert_eq!(message, b"first and last");
}

#[test]
fn who_asks_is_told_what_was_acknowledged() {
    let mut pair = Pair::over(1);
    events(&mut pair, 0);
    let now = pair.now;
    let client = pair.ends[0].association_mut(pair.client).unwrap();
    for (context, report) in [(1, true), (2, false), (3, true)] {
        let message = vec![0; 5000];
        client.send(now, &message, SendOptions { context, report, ..SendOptions::default() }).unwrap();
    }
    client.shutdown(now);
    pair.settle();
    let [one, three] = [1, 3].map(|context| Event::Delivered { context });
    assert_eq!(events(&mut pair, 0), [one, three, Event::Closed(CloseReason::Shutdown)]);
}

#[test]
fn a_reason_arrives_with_its_number_and_its_bytes() {
    for reason in
        [Reason::new(7, "full"), Reason::new(u32::MAX, ""), Reason::new(0, "#5 is alive"), Reason::new(1, [0, 0xff])]
    {
        let (_, _, events) = busy_server(|pair| {
            let now = pair.now;
            pair.ends[0].association_mut(pair.client).unwrap().abort(now, reason.clone());
        });
        let Some(Event::Closed(end)) = events.last() else { panic!("{events:?}") };
        assert_eq!(end.said(), Some(&reason));
    }
}
