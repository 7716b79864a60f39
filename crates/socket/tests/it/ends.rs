//! How connections end, on the loopback interface: nothing that was sent reliably is lost without a
//! word, and nothing is left behind.

use braidcast_socket::{CloseReason, ConnectionId, Error, Event, Path, Protection, SendOptions, Socket};
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

fn server(protection: &Protection) -> (Socket, SocketAddr) {
    let mut server = Socket::new(protection).unwrap();
    let at = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    server.listen();
    (server, at)
}

fn client(protection: &Protection, at: SocketAddr) -> (Socket, ConnectionId) {
    let mut client = Socket::new(protection).unwrap();
    let connection = client.connect(&[Path::to(at)]).unwrap();
    (client, connection)
}

/// Polls both in turn until `done` says so of an event of the first (0) or the second (1).
fn both(mut ends: [&mut Socket; 2], mut done: impl FnMut(usize, ConnectionId, &Event) -> bool) {
    for _ in 0..20_000 {
        for (which, end) in ends.iter_mut().enumerate() {
            if let Some((connection, event)) = end.poll(Some(Duration::from_millis(1))).unwrap()
                && done(which, connection, &event)
            {
                return;
            }
        }
    }
    panic!("nothing happened for long");
}

/// What a server is told that reads one message for each [`Event::Readable`], until it is told
/// `ends` times that a connection is over.
fn one_at_a_time(server: &mut Socket, ends: usize) -> Vec<String> {
    let (mut told, mut message, mut over) = (Vec::new(), Vec::new(), 0);
    while over < ends {
        let (connection, event) = server.poll(PATIENCE).unwrap().expect("nothing happened for long");
        match event {
            Event::Readable if server.recv(connection, &mut message).unwrap().is_some() => {
                told.push(format!("{} {}", connection.0, String::from_utf8_lossy(&message)));
            }
            Event::Closed { reason, .. } => {
                told.push(format!("{} {reason}", connection.0));
                over += 1;
            }
            _ => {}
        }
    }
    told
}

/// Twenty clients send two messages each and shut down at once. All forty arrive, at whoever reads
/// one message for each event, too.
#[test]
fn what_was_sent_before_an_orderly_end_arrives() {
    for protection in [Protection::Plain, Protection::Anyone] {
        let (mut server, at) = server(&protection);
        let clients: Vec<_> = (0..20)
            .map(|_| {
                let (mut client, connection) = client(&protection, at);
                std::thread::spawn(move || {
                    for message in ["one", "two"] {
                        client.send(connection, message.as_bytes(), &SendOptions::default()).unwrap();
                    }
                    client.shutdown(connection).unwrap();
                    loop {
                        let (_, event) = client.poll(PATIENCE).unwrap().expect("nothing happened for long");
                        if let Event::Closed { reason, unsettled } = event {
                            assert_eq!((reason, unsettled), (CloseReason::Shutdown, vec![]));
                            return;
                        }
                    }
                })
            })
            .collect();
        let mut told = one_at_a_time(&mut server, 20);
        clients.into_iter().for_each(|client| client.join().unwrap());
        let mut expected = Vec::new();
        for id in 1..=20 {
            let words = ["one", "two", "shut down after everything was delivered"];
            expected.extend(words.map(|words| format!("{id} {words}")));
        }
        told.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(told, expected);
        assert_eq!(server.connections().count(), 0);
    }
}

/// The server's process stands still while a client sends, and goes: it reads what came, then hears
/// of the end, and of nothing else.
#[test]
fn what_came_before_an_abort_can_be_read_and_nothing_is_left_behind() {
    for protection in [Protection::Plain, Protection::Anyone] {
        let (mut server, at) = server(&protection);
        let (mut client, connection) = client(&protection, at);
        let mut connected = [false; 2];
        both([&mut server, &mut client], |which, _, event| {
            connected[which] |= *event == Event::Connected;
            connected == [true; 2]
        });
        for message in ["one", "two", "three"] {
            client.send(connection, message.as_bytes(), &SendOptions::default()).unwrap();
        }
        client.poll(Some(Duration::ZERO)).unwrap();
        client.abort(connection, 0, "bye").unwrap();
        while client.poll(Some(Duration::ZERO)).unwrap().is_some() {}
        assert_eq!(client.connections().count(), 0, "the end was handed out");
        let told = one_at_a_time(&mut server, 1);
        let by_peer = "1 aborted by the other end: bye";
        assert_eq!(told, ["1 one", "1 two", "1 three", by_peer]);
        assert_eq!(server.connections().count(), 0);
        assert_eq!(server.poll(Some(Duration::from_millis(50))).unwrap(), None, "nothing follows");
        assert!(server.close(Duration::from_secs(1)).unwrap());
    }
}

#[test]
fn a_connection_that_is_over_stays_until_it_is_read() {
    let (mut server, at) = server(&Protection::Plain);
    let (mut client, connection) = client(&Protection::Plain, at);
    client.send(connection, b"late reader", &SendOptions::default()).unwrap();
    client.shutdown(connection).unwrap();
    let mut there = None;
    both([&mut server, &mut client], |which, id, event| {
        if which == 0 {
            assert!(!matches!(event, Event::Closed { .. }), "nothing was read");
            there = Some(id);
        }
        which == 1 && matches!(event, Event::Closed { .. })
    });
    let there = there.unwrap();
    // The last packet may be in flight yet.
    while server.poll(Some(Duration::from_millis(200))).unwrap().is_some() {}
    assert_eq!(server.connections().collect::<Vec<_>>(), [there]);
    let closing = server.send(there, b"x", &SendOptions::default()).unwrap_err();
    assert_eq!(closing.to_string(), "the association is closing");
    assert_eq!(server.paths(there).unwrap(), []);
    let mut message = Vec::new();
    assert!(server.recv(there, &mut message).unwrap().is_some());
    assert_eq!(message, b"late reader");
    assert_eq!(server.recv(there, &mut message).unwrap(), None);
    let end = server.poll(PATIENCE).unwrap();
    assert!(matches!(end, Some((id, Event::Closed { reason: CloseReason::Shutdown, .. })) if id == there), "{end:?}");
    assert_eq!(server.recv(there, &mut message).unwrap(), None);
    assert!(matches!(server.recv(ConnectionId(77), &mut message), Err(Error::NoConnection(_))));
}

#[test]
fn messages_that_nobody_acknowledged_are_named() {
    let (_server, at) = server(&Protection::Plain);
    let (mut client, connection) = client(&Protection::Plain, at);
    for context in [3, 1, 2] {
        client.send(connection, b"x", &SendOptions::new().context(context)).unwrap();
    }
    client.abort(connection, 0, "").unwrap();
    let (_, event) = client.poll(PATIENCE).unwrap().unwrap();
    assert_eq!(event, Event::Closed { reason: CloseReason::Aborted, unsettled: vec![3, 1, 2] });
}

#[test]
fn a_reason_of_any_length_is_told_as_far_as_it_fits() {
    let (mut server, at) = server(&Protection::Anyone);
    let (mut client, connection) = client(&Protection::Anyone, at);
    both([&mut server, &mut client], |which, _, event| which == 1 && *event == Event::Connected);
    client.abort(connection, 7, "r".repeat(100_000)).unwrap();
    both([&mut server, &mut client], |which, _, event| match event {
        Event::Closed { reason: CloseReason::ByPeer { code: 7, reason }, .. } if which == 0 => {
            assert_eq!(*reason, vec![b'r'; CloseReason::MAX_TEXT - "#7 ".len()]);
            true
        }
        _ => false,
    });
}

/// Who has another key is no connection of the server's: only asked about.
#[test]
fn a_stranger_is_no_connection() {
    let (mut server, at) = server(&Protection::Key("one passphrase of some length".into()));
    for other in [Protection::Key("another passphrase of some length".into()), Protection::Plain] {
        let (mut stranger, _) = client(&other, at);
        both([&mut server, &mut stranger], |which, _, event| {
            assert!(which == 1, "the server is told {event:?}");
            matches!(event, Event::Closed { .. })
        });
        while server.poll(Some(Duration::from_millis(50))).unwrap().is_some() {}
        assert_eq!(server.connections().count(), 0);
        let refused = server.next_refused().expect("it was turned away");
        assert!(
            refused.remote.ip().is_loopback() && matches!(refused.why, CloseReason::Insecure { .. }),
            "{refused:?}"
        );
    }
}

#[test]
fn a_socket_that_is_dropped_says_so() {
    let (mut server, at) = server(&Protection::Anyone);
    let (mut client, _) = client(&Protection::Anyone, at);
    let mut connected = [false; 2];
    both([&mut server, &mut client], |which, _, event| {
        connected[which] |= *event == Event::Connected;
        connected == [true; 2]
    });
    drop(client);
    let told = one_at_a_time(&mut server, 1);
    assert!(told[0].contains("the program ended the connection"), "{told:?}");
}

/// Another process has the server's port now, and knows nothing of the connection.
#[test]
#[allow(clippy::disallowed_types, reason = "two programs share a port")]
fn an_end_that_was_started_anew_is_told_from_one_that_is_gone() {
    for protection in [Protection::Plain, Protection::Anyone] {
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let again = port.try_clone().unwrap();
        let mut killed = Socket::new(&protection).unwrap();
        let at = killed.adopt(port).unwrap();
        killed.listen();
        let (mut client, connection) = client(&protection, at);
        let mut connected = [false; 2];
        both([&mut killed, &mut client], |which, _, event| {
            connected[which] |= *event == Event::Connected;
            connected == [true; 2]
        });
        // Not dropped before the end, as that would tell the client; nobody drives it any more.
        let mut anew = Socket::new(&protection).unwrap();
        anew.adopt(again).unwrap();
        anew.listen();
        client.send(connection, b"are you there?", &SendOptions::new().context(9)).unwrap();
        both([&mut anew, &mut client], |which, _, event| {
            match event {
                // Who encrypts asks by a connection of its own whether the same server is there.
                _ if which == 0 => false,
                Event::Closed { reason, unsettled } => {
                    assert_eq!((reason, &unsettled[..]), (&CloseReason::PeerRestarted, &[9][..]));
                    assert!(reason.may_pass());
                    true
                }
                _ => false,
            }
        });
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Run alone in its process (`files.rs` would do for more): other tests open files meanwhile, so
/// that it counts on a margin.
#[test]
fn calls_that_are_refused_leave_no_socket_behind() {
    let (mut server, at) = server(&Protection::Plain);
    let (mut client, connection) = client(&Protection::Plain, at);
    both([&mut server, &mut client], |which, _, event| which == 1 && *event == Event::Connected);
    for _ in 1..8 {
        client.join(connection, &Path::to(at)).unwrap();
    }
    let before = open_files();
    for _ in 0..500 {
        assert_eq!(
            client.join(connection, &Path::to(at)).unwrap_err().to_string(),
            "8 paths are in use, more are not allowed"
        );
        assert!(client.connect(&[(); 9].map(|()| Path::to(at))).is_err());
        let other_family = Path::via("[2001:db8::1]:9".parse().unwrap(), "127.0.0.1");
        assert!(client.connect(&[Path::to(at), other_family]).is_err());
    }
    let after = open_files();
    assert!(after < before + 250, "{before} files were open, now {after}");
}
