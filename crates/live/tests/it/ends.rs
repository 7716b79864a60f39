//! Who is let in, what is refused, and how it ends.

use crate::networks::{KEY, localhost, paths, wait_receiver, wait_sender};
use braidcast_live::{
    AccessUnit, CloseReason, Coding, Error, Farewell, Identity, Insecurity, MediaReceiver, MediaSender, Path, Permit,
    ReceiverEvent, SenderEvent, Trust,
};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

fn ended(event: &SenderEvent) -> Option<CloseReason> {
    let SenderEvent::Ended { complete: false, reason } = event else { return None };
    Some(reason.clone())
}

/// What the other end said.
fn said(reason: &CloseReason) -> Option<Farewell> {
    let CloseReason::ByPeer { code, .. } = reason else { return None };
    Farewell::of_code(*code)
}

#[test]
fn a_sender_with_another_key_or_name_is_told_so_and_ends() {
    let receiver = MediaReceiver::builder().key(KEY).named(["door"]).listen(&[localhost()]).unwrap();
    let ways = paths(receiver.local_addrs());
    let other = MediaSender::builder().key("another passphrase altogether").name("door").call(&ways).unwrap();
    let reason = wait_sender(&other, ended);
    assert!(
        matches!(reason, CloseReason::Insecure { why: Insecurity::WrongKey | Insecurity::NotLetIn, .. }),
        "{reason:?}"
    );
    assert!(matches!(other.poll(Some(LONG)), Err(Error::Over)));
    assert!(matches!(other.write(&[0x47; 188]), Err(Error::Over)));
    assert!(!other.finish(LONG).unwrap());
    let insecure = wait_receiver(&receiver, |event| match event {
        ReceiverEvent::Refused { insecure, .. } => Some(*insecure),
        _ => None,
    });
    assert!(matches!(insecure, Some(Insecurity::WrongKey | Insecurity::NotLetIn)), "{insecure:?}");

    let window = MediaSender::builder().key(KEY).name("window").call(&ways).unwrap();
    assert_eq!(said(&wait_sender(&window, ended)), Some(Farewell::UnknownName));
    let refused = wait_receiver(&receiver, |event| match event {
        ReceiverEvent::Refused { name, farewell, .. } if !name.is_empty() => Some((name.clone(), *farewell)),
        _ => None,
    });
    assert_eq!(refused, ("window".into(), Some(Farewell::UnknownName)));
}

#[test]
fn senders_are_known_by_their_keys_and_the_list_can_change() {
    let [home, door, window] = [(); 3].map(|()| Identity::generate().unwrap());
    let permit = |name: &str| Permit::named(name);
    let senders = BTreeMap::from([(door.fingerprint(), permit("door")), (window.fingerprint(), permit("window"))]);
    let trust = Trust::Only(vec![home.fingerprint()]);
    let receiver = MediaReceiver::builder().senders(home, senders).each(4).listen(&[localhost()]).unwrap();
    let ways = paths(receiver.local_addrs());
    let start = |own: &Identity| MediaSender::builder().identity(own.clone(), trust.clone()).call(&ways).unwrap();
    let (first, second) = (start(&door), start(&window));
    let mut here = BTreeMap::new();
    while here.len() < 2 {
        let (name, key) = wait_receiver(&receiver, |event| match event {
            ReceiverEvent::Connected { name, key, .. } => Some((name.clone(), *key)),
            _ => None,
        });
        here.insert(name, key);
    }
    let expected = [("door", &door), ("window", &window)].map(|(name, it)| (name.to_owned(), Some(it.fingerprint())));
    assert_eq!(here, BTreeMap::from(expected));

    receiver.set_senders(BTreeMap::from([(door.fingerprint(), permit("door"))])).unwrap();
    wait_receiver(&receiver, |event| matches!(event, ReceiverEvent::Ended { complete: false, .. }).then_some(()));
    assert_eq!(said(&wait_sender(&second, ended)), Some(Farewell::NotPermitted));
    assert!(first.finish(LONG).unwrap());
}

#[test]
fn a_receiver_that_is_dropped_says_so_and_another_one_goes_on() {
    let start = |at| MediaReceiver::builder().key(KEY).units().listen(&[at]).unwrap();
    let receiver = start(localhost());
    let at = receiver.local_addrs()[0];
    let sender = MediaSender::builder().key(KEY).latency(Duration::from_secs(3)).call(&[Path::to(at)]).unwrap();
    let audio = sender.add_track(Coding::Opus { channels: 1 }).unwrap();
    wait_sender(&sender, |event| (*event == SenderEvent::Connected).then_some(()));
    // The sender may know of it first, and who is not known yet is told nothing.
    wait_receiver(&receiver, |event| matches!(event, ReceiverEvent::Connected { .. }).then_some(()));
    drop(receiver);
    let reason = wait_sender(&sender, |event| match event {
        SenderEvent::Lost { reason } => Some(reason.clone()),
        _ => None,
    });
    assert_eq!(said(&reason), Some(Farewell::ReceiverStopped));
    assert!(reason.to_string().contains("the receiver was stopped"), "{reason}");
    let receiver = start(at);
    wait_sender(&sender, |event| (*event == SenderEvent::Connected).then_some(()));
    sender.send(AccessUnit::new(audio, Duration::ZERO, [7])).unwrap();
    let unit = wait_receiver(&receiver, |event| match event {
        ReceiverEvent::Unit { unit, .. } => Some(unit.clone()),
        _ => None,
    });
    assert_eq!(unit.data, [7]);
    drop(sender);
    wait_receiver(&receiver, |event| matches!(event, ReceiverEvent::Ended { complete: false, .. }).then_some(()));
}

#[test]
fn wrong_use_is_refused_with_what_is_wrong() {
    let sender =
        |builder: fn() -> braidcast_live::MediaSenderBuilder| builder().call(&["127.0.0.1:9".parse().unwrap()]);
    let refused = |made: Result<MediaSender, Error>| made.err().unwrap().to_string();
    assert!(refused(sender(|| MediaSender::builder().name("a/b"))).contains("'/'"));
    assert!(refused(sender(|| MediaSender::builder().key(""))).contains("key"));
    assert!(refused(MediaSender::builder().call(&["127.0.0.1:0".parse().unwrap()])).contains("leads nowhere"));
    assert!(refused(MediaSender::builder().call(&[])).contains("no"));
    assert!(refused(MediaSender::builder().listen(&[])).contains("no address"));
    assert!(refused(sender(|| MediaSender::builder().latency(Duration::ZERO))).contains("latency"));
    let both = MediaReceiver::builder().named([".."]).listen(&[localhost()]);
    assert!(both.err().unwrap().to_string().contains("name"));
    let long = MediaReceiver::builder().options(|it| it.name = "n".repeat(300)).call(&["127.0.0.1:9".parse().unwrap()]);
    assert!(matches!(long, Err(Error::Name(_))));

    let bytes = sender(MediaSender::builder).unwrap();
    bytes.write(&[0x47; 188]).unwrap();
    assert!(bytes.add_track(Coding::H264).unwrap_err().to_string().contains("takes a transport stream"));
    assert!(matches!(bytes.set_trust(Trust::Anyone), Err(Error::Setup(_))));
    let units = sender(MediaSender::builder).unwrap();
    let track = units.add_track(Coding::H264).unwrap();
    assert!(units.write(&[0x47; 188]).unwrap_err().to_string().contains("takes access units"));
    let foreign = sender(MediaSender::builder).unwrap();
    let unit = AccessUnit::new(track, Duration::ZERO, [0, 0, 1, 0x65]);
    assert!(matches!(foreign.send(unit.clone()), Err(Error::NoTrack(_))));
    assert!(units.send(AccessUnit::new(track, Duration::ZERO, [1, 2])).unwrap_err().to_string().contains("start code"));
    units.send(unit).unwrap();
    assert!(matches!(units.add_track(Coding::Opus { channels: 9 }), Err(Error::Channels(9))));
    for _ in 0..7 {
        units.add_track(Coding::Ac3).unwrap();
    }
    assert!(matches!(units.add_track(Coding::Ac3), Err(Error::TooManyTracks)));
}

#[test]
fn waits_end_when_they_are_interrupted_and_the_descriptor_says_when_not_to_wait() {
    let receiver = MediaReceiver::builder().key(KEY).listen(&[localhost()]).unwrap();
    let (poller, begun) = (receiver.clone(), std::time::Instant::now());
    let thread = std::thread::spawn(move || poller.poll(None).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    receiver.interrupt();
    assert_eq!(thread.join().unwrap(), None);
    // One that nobody waits for ends the next wait.
    receiver.interrupt();
    assert_eq!(receiver.poll(None).unwrap(), None);
    assert!(begun.elapsed() < LONG);

    let mut fd = std::os::unix::net::UnixStream::from(receiver.as_fd().try_clone_to_owned().unwrap());
    assert_eq!(fd.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let sender = MediaSender::builder().key(KEY).call(&paths(receiver.local_addrs())).unwrap();
    wait_sender(&sender, |event| (*event == SenderEvent::Connected).then_some(()));
    // The other end hears of it about then.
    while receiver.poll(Some(Duration::from_millis(10))).unwrap().is_none() {}
    receiver.stop();
    while receiver.poll(Some(LONG)).is_ok() {}
    assert_eq!(fd.read(&mut [0]).unwrap(), 1, "it is over, and nothing is to be waited for");
}
