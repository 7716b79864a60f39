//! A socket that several threads use.
#![allow(clippy::disallowed_methods, reason = "threads of tests that are slower than others")]

use braidcast_socket::{ConnectionId, Error, Event, Path, Protection, SendOptions, SharedSocket, Socket};
use std::sync::mpsc;
use std::time::Duration;

/// A server that receives what comes, and reports each message; and a client that is connected to
/// it.
fn pair() -> (mpsc::Receiver<Vec<u8>>, SharedSocket, ConnectionId) {
    let mut server = Socket::new(&Protection::Plain).unwrap();
    let at = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    server.listen();
    let (report, received) = mpsc::channel();
    std::thread::spawn(move || {
        let mut message = Vec::new();
        while let Some((id, event)) = server.poll(Some(Duration::from_secs(20))).unwrap() {
            while event == Event::Readable && server.recv(id, &mut message).unwrap().is_some() {
                report.send(message.clone()).unwrap();
            }
        }
    });
    let mut client = Socket::new(&Protection::Plain).unwrap();
    let id = client.connect(&[Path::to(at)]).unwrap();
    while client.poll(None).unwrap().unwrap().1 != Event::Connected {}
    (received, SharedSocket::new(client).unwrap(), id)
}

/// One thread waits for ever. What another one sends leaves at once each time: by luck it would
/// take as long as the first waits.
#[test]
fn a_call_goes_before_a_thread_that_waits() {
    let (received, client, id) = pair();
    let poller = client.clone();
    let thread = std::thread::spawn(move || while poller.poll(None).unwrap().is_some() {});
    for number in 0..100_u8 {
        client.with(|socket| socket.send(id, &[number], &SendOptions::default())).unwrap();
        assert_eq!(received.recv_timeout(Duration::from_secs(20)).unwrap(), [number]);
        assert_eq!(client.with(|socket| socket.paths(id)).unwrap().len(), 1);
    }
    client.interrupt();
    thread.join().unwrap();
}

#[test]
fn many_threads_send_beside_two_that_poll() {
    let (received, client, id) = pair();
    let pollers: Vec<_> = (0..2)
        .map(|_| {
            let poller = client.clone();
            std::thread::spawn(move || while poller.poll(None).unwrap().is_some() {})
        })
        .collect();
    let senders: Vec<_> = (0..8_u8)
        .map(|number| {
            let client = client.clone();
            std::thread::spawn(move || {
                for _ in 0..50 {
                    client.with(|socket| socket.send(id, &[number], &SendOptions::default())).unwrap();
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let mut counts = [0; 8];
    for _ in 0..400 {
        counts[usize::from(received.recv_timeout(Duration::from_secs(20)).unwrap()[0])] += 1;
    }
    assert_eq!(counts, [50; 8]);
    client.interrupt();
    pollers.into_iter().for_each(|poller| poller.join().unwrap());
}

#[test]
fn a_wait_ends_in_time_and_at_once_if_it_is_interrupted() {
    let (_received, client, _) = pair();
    while client.poll(Some(Duration::ZERO)).unwrap().is_some() {}
    while client.poll(Some(Duration::from_millis(100))).unwrap().is_some() {}
    let poller = client.clone();
    let thread = std::thread::spawn(move || poller.poll(None).unwrap());
    std::thread::sleep(Duration::from_millis(30));
    client.interrupt();
    assert_eq!(thread.join().unwrap(), None);
    assert!(client.close(Duration::from_secs(20)).unwrap());
}

/// A thread that has not begun to poll, or is between two polls, would wait for ever.
#[test]
fn an_interrupt_before_a_poll_ends_it() {
    let (_received, client, _) = pair();
    while client.poll(Some(Duration::ZERO)).unwrap().is_some() {}
    let clones = [client.clone(), client.clone()];
    client.interrupt();
    for clone in &clones {
        assert_eq!(clone.poll(None).unwrap(), None);
    }
    let later = client.clone();
    let start = std::time::Instant::now();
    assert_eq!(later.poll(Some(Duration::from_millis(50))).unwrap(), None);
    assert!(start.elapsed() >= Duration::from_millis(50), "a clone that was made later was interrupted");
}

#[test]
fn a_socket_whose_call_panicked_says_so_and_never_hangs() {
    let (_received, client, id) = pair();
    let poller = client.clone();
    let thread = std::thread::spawn(move || -> Result<(), Error> {
        while poller.poll(None)?.is_some() {}
        Ok(())
    });
    let broken = client.clone();
    let panicked = std::thread::spawn(move || broken.with(|_| -> Result<(), Error> { panic!("a bug") })).join();
    assert!(panicked.is_err());
    let error = client.with(|socket| socket.send(id, b"x", &SendOptions::default())).unwrap_err();
    assert!(matches!(error, Error::Broken), "{error}");
    assert!(matches!(client.poll(None), Err(Error::Broken)));
    assert!(matches!(thread.join().unwrap(), Err(Error::Broken)));
}
