//! Sockets on the loopback interface: both ends in this process, one thread for each.

use braidcast_socket::{
    CloseReason, ConnectionId, Error, Event, Options, Path, Protection, SchedulerKind, SendError, SendOptions, Socket,
    SocketBuilder,
};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server with two addresses that sends back what comes, until its first client has gone; how
/// many messages there were.
fn echo(protection: &Protection) -> ([SocketAddr; 2], JoinHandle<usize>) {
    let mut socket = Socket::new(protection).unwrap();
    let at = [(); 2].map(|()| socket.bind(loopback()).unwrap());
    socket.listen();
    let thread = std::thread::spawn(move || {
        let (mut message, mut count) = (Vec::new(), 0);
        while let Some((connection, event)) = socket.poll(PATIENCE).unwrap() {
            match event {
                Event::Readable => {
                    while let Some(received) = socket.recv(connection, &mut message).unwrap() {
                        let how = SendOptions::new().stream(received.stream).ppid(received.ppid);
                        socket.send(connection, &message, &how).unwrap();
                        count += 1;
                    }
                }
                Event::Closed { .. } => break,
                _ => {}
            }
        }
        count
    });
    (at, thread)
}

/// Polls until `wanted` says so of an event.
fn wait(socket: &mut Socket, mut wanted: impl FnMut(ConnectionId, &Event) -> bool) {
    loop {
        let (connection, event) = socket.poll(PATIENCE).unwrap().expect("nothing happened for long");
        if wanted(connection, &event) {
            return;
        }
    }
}

#[test]
fn messages_go_and_come_over_two_paths() {
    let key = Protection::Key("correct horse battery staple".into());
    let (at, server) = echo(&key);
    let mut socket = Socket::new(&key).unwrap();
    let connection = socket.connect(&at.map(Path::to)).unwrap();
    let mut up = 0;
    wait(&mut socket, |_, event| {
        up += usize::from(matches!(event, Event::PathUp { .. }));
        up == 2
    });
    let text = vec![7; 10_000];
    let how = SendOptions::new().stream(3).ppid(42);
    for _ in 0..200 {
        socket.send(connection, &text, &how).unwrap();
    }
    let (mut message, mut answers) = (Vec::new(), 0);
    while answers < 200 {
        wait(&mut socket, |_, event| *event == Event::Readable);
        while let Some(received) = socket.recv(connection, &mut message).unwrap() {
            assert_eq!((received.stream, received.ppid, &message), (3, 42, &text));
            answers += 1;
        }
    }
    let paths = socket.paths(connection).unwrap();
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path.sent_bytes > 100_000 && path.rtt.is_some()), "{paths:?}");
    assert!(paths.iter().all(|path| at.contains(&path.remote) && path.name == path.remote.to_string()));
    assert!(socket.close(Duration::from_secs(20)).unwrap());
    assert_eq!(server.join().unwrap(), 200);
    assert!(matches!(socket.send(connection, b"late", &how), Err(Error::NoConnection(_))));
    assert_eq!(socket.recv(connection, &mut message).unwrap(), None, "it is over");
}

#[test]
fn who_has_another_key_does_not_get_in() {
    for other in [Protection::Key("another passphrase of some length".into()), Protection::Anyone, Protection::Plain] {
        let (at, _) = echo(&Protection::Key("one passphrase of some length".into()));
        let mut socket = Socket::new(&other).unwrap();
        socket.connect(&at.map(Path::to)).unwrap();
        let mut why = None;
        wait(&mut socket, |_, event| {
            assert_ne!(*event, Event::Connected);
            if let Event::Closed { reason, .. } = event {
                why = Some(reason.clone());
            }
            why.is_some()
        });
        assert!(matches!(why, Some(CloseReason::Insecure { .. })), "{other:?}: {why:?}");
    }
    assert_eq!(Socket::new(&Protection::Key(" ".into())).unwrap_err().to_string(), "the key: the key is empty");
}

#[test]
fn paths_leave_and_join_while_messages_go() {
    let (at, server) = echo(&Protection::Plain);
    let mut socket = Socket::new(&Protection::Plain).unwrap();
    let connection = socket.connect(&[Path::to(at[0])]).unwrap();
    wait(&mut socket, |_, event| *event == Event::Connected);
    socket.join(connection, &Path::via(at[1], "127.0.0.1")).unwrap();
    wait(&mut socket, |_, event| matches!(event, Event::PathUp { name, .. } if name == "127.0.0.1"));
    assert!(socket.leave(connection, &at[0].to_string()).unwrap());
    assert!(!socket.leave(connection, "wlan77").unwrap());
    socket.send(connection, b"over the other", &SendOptions::default()).unwrap();
    wait(&mut socket, |_, event| *event == Event::Readable);
    let mut message = Vec::new();
    assert!(socket.recv(connection, &mut message).unwrap().is_some());
    assert_eq!(message, b"over the other");
    let names: Vec<String> = socket.paths(connection).unwrap().into_iter().map(|path| path.name).collect();
    assert_eq!(names, ["127.0.0.1"]);
    assert!(socket.close(Duration::from_secs(20)).unwrap());
    assert_eq!(server.join().unwrap(), 1);
}

#[test]
fn what_is_too_late_is_discarded_and_said() {
    let (at, _server) = echo(&Protection::Plain);
    let mut socket = Socket::new(&Protection::Plain).unwrap();
    let connection = socket.connect(&[Path::to(at[0])]).unwrap();
    wait(&mut socket, |_, event| *event == Event::Connected);
    let how = SendOptions::new().deadline(Duration::ZERO).context(17);
    socket.send(connection, b"too late", &how).unwrap();
    wait(&mut socket, |_, event| *event == Event::Discarded { context: 17 });
}

#[test]
fn a_message_with_a_deadline_says_how_old_it_is() {
    let mut server = Socket::new(&Protection::Plain).unwrap();
    let at = server.bind(loopback()).unwrap();
    server.listen();
    let (limit, pause) = (Duration::from_secs(30), Some(Duration::from_millis(10)));
    let mut client = Socket::new(&Protection::Plain).unwrap();
    let connection = client.connect(&[Path::to(at)]).unwrap();
    let (begin, mut message, mut known) = (server.now(), Vec::new(), 0);
    // At first the server has measured no round trip.
    while known < 5 {
        assert!(server.now() - begin < limit, "{known}");
        client.poll(pause).unwrap();
        for how in [SendOptions::new().unordered().deadline(limit), SendOptions::new()] {
            let _ = client.send(connection, b"a reading", &how);
        }
        while let Some((from, event)) = server.poll(pause).unwrap() {
            while let Some(received) = server.recv(from, &mut message).unwrap().filter(|_| event == Event::Readable) {
                assert_eq!((&message[..], received.is_late()), (&b"a reading"[..], false));
                let timing = received.timing.filter(|_| received.unordered);
                assert_eq!(received.timing, timing, "without a deadline nothing is said");
                let Some(timing) = timing else { continue };
                assert!(timing.age < limit && timing.uncertainty < limit / 2, "{timing:?}");
                known += 1;
            }
        }
    }
}

#[test]
fn without_waiting_poll_does_what_there_is_and_returns() {
    let (at, server) = echo(&Protection::Plain);
    let mut socket = Socket::new(&Protection::Plain).unwrap();
    assert_eq!(socket.poll(Some(Duration::ZERO)).unwrap(), None);
    assert_eq!(socket.poll(Some(Duration::from_millis(5))).unwrap(), None);
    let connection = socket.connect(&[Path::to(at[0])]).unwrap();
    // Only its file descriptor is waited for, as by a program with an event loop of its own.
    let mut poll = mio::Poll::new().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    poll.registry().register(&mut mio::unix::SourceFd(&fd), mio::Token(0), mio::Interest::READABLE).unwrap();
    let (mut answers, mut message, mut ready) = (0, Vec::new(), mio::Events::with_capacity(4));
    while answers < 100 {
        while let Some((_, event)) = socket.poll(Some(Duration::ZERO)).unwrap() {
            match event {
                Event::Connected => socket.send(connection, b"ping", &SendOptions::default()).unwrap(),
                Event::Readable => {
                    while socket.recv(connection, &mut message).unwrap().is_some() {
                        answers += 1;
                        socket.send(connection, b"ping", &SendOptions::default()).unwrap();
                    }
                }
                _ => {}
            }
        }
        poll.poll(&mut ready, PATIENCE).unwrap();
        assert!(!ready.is_empty(), "the file descriptor was never readable after {answers} answers");
    }
    assert!(socket.close(Duration::from_secs(20)).unwrap());
    assert!(server.join().unwrap() > 100);
}

#[test]
fn wrong_uses_are_refused_in_words() {
    let mut socket = Socket::new(&Protection::Plain).unwrap();
    let nobody = ConnectionId(5);
    assert_eq!(socket.shutdown(nobody).unwrap_err().to_string(), "there is no connection 5");
    assert!(socket.connect(&[]).unwrap_err().to_string().contains("no route"));
    let missing = socket.connect(&[Path::via("127.0.0.1:9".parse().unwrap(), "nothere0")]).unwrap_err().to_string();
    assert!(missing.starts_with("there is no nothere0; this machine has"), "{missing}");
    for nowhere in ["127.0.0.1:0", "0.0.0.0:9", "[::]:9", "localhost:0"] {
        let error = socket.connect(&[nowhere.parse().unwrap()]).unwrap_err();
        assert_eq!(error.to_string(), format!("{nowhere} leads nowhere; give an address and a port of the other end"));
    }
    let taken = socket.bind(loopback()).unwrap();
    assert!(socket.bind(taken).unwrap_err().to_string().contains("in use"));
    let odd = Options::live().with(|it| it.local_port = 0);
    assert!(matches!(Socket::with_options(odd), Err(Error::Options(_))));
}

#[test]
fn a_socket_has_the_options_that_it_was_built_with() {
    let key = "a passphrase of some length";
    let (at, _server) = echo(&Protection::Key(key.into()));
    let mut socket = Socket::builder()
        .key(key)
        .longest_silence(Some(Duration::from_secs(1)))
        .buffers(20_000, 20_000)
        .max_message(10_000)
        .options(|it| it.limits.streams = 2)
        .build()
        .unwrap();
    let connection = socket.connect(&[Path::to(at[0])]).unwrap();
    wait(&mut socket, |_, event| *event == Event::Connected);
    let how = SendOptions::new().stream(1).priority(4);
    assert!(socket.send(connection, &[0; 10_001], &how).unwrap_err().to_string().contains("the limit of 10000"));
    // The end of the key handshake may be in the buffer yet.
    for size in [10_000, 9000] {
        socket.send(connection, &vec![0; size], &how).unwrap();
    }
    assert!((19_000..=20_000).contains(&socket.buffered(connection).unwrap()));
    assert!(matches!(socket.send(connection, &[0; 1000], &how), Err(Error::Send(SendError::BufferFull { .. }))));
    let beyond = how.stream(2);
    assert!(matches!(socket.send(connection, &[0; 1], &beyond), Err(Error::Send(SendError::NoSuchStream { .. }))));
    let odd = Socket::builder().max_message(0).build().unwrap_err();
    assert!(matches!(odd, Error::Options(_)), "{odd}");
}

/// The other end's process is stopped: without a word.
#[test]
fn who_is_silent_for_too_long_is_gone() {
    let mut server =
        Socket::builder().protection(Protection::Plain).longest_silence(Some(Duration::from_secs(1))).build().unwrap();
    let at = server.bind(loopback()).unwrap();
    server.listen();
    let mut client = Socket::new(&Protection::Plain).unwrap();
    client.connect(&[Path::to(at)]).unwrap();
    let mut connected = false;
    while !connected {
        client.poll(Some(Duration::from_millis(1))).unwrap();
        connected = matches!(server.poll(Some(Duration::from_millis(1))).unwrap(), Some((_, Event::Connected)));
    }
    let mut why = None;
    wait(&mut server, |_, event| {
        if let Event::Closed { reason, .. } = event {
            why = Some(reason.clone());
        }
        why.is_some()
    });
    assert_eq!(why, Some(CloseReason::PathsFailed));
}

#[test]
#[allow(clippy::disallowed_types, reason = "the program's own socket")]
fn a_program_brings_its_own_sockets_and_prepares_others() {
    let bound = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut server = Socket::new(&Protection::Plain).unwrap();
    let at = server.adopt(bound).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(server.adopt(file).unwrap_err().to_string().contains("Socket operation on non-socket"));
    server.listen();
    let mut client = Socket::new(&Protection::Plain).unwrap();
    let opened = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = opened.clone();
    client.on_open(move |_| {
        seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    });
    client.connect(&[Path::to(at), Path::to(at)]).unwrap();
    let mut connected = false;
    while !connected {
        client.poll(Some(Duration::from_millis(1))).unwrap();
        connected = matches!(server.poll(Some(Duration::from_millis(1))).unwrap(), Some((_, Event::Connected)));
    }
    assert_eq!(opened.load(std::sync::atomic::Ordering::Relaxed), 2);
    client.on_open(|_| Err(std::io::Error::other("not with this one")));
    let refused = client.connect(&[Path::to(at)]).unwrap_err().to_string();
    assert!(refused.ends_with("not with this one"), "{refused}");
}

/// Bytes that a client sends for 100 messages of 1 kB, by a builder that `set` changes.
fn bytes_sent(set: impl FnOnce(SocketBuilder) -> SocketBuilder) -> u64 {
    let (at, server) = echo(&Protection::Anyone);
    let mut client = set(Socket::builder()).build().unwrap();
    let connection = client.connect(&[Path::to(at[0])]).unwrap();
    for _ in 0..100 {
        client.send(connection, &[7; 1000], &SendOptions::default()).unwrap();
    }
    let (mut message, mut came) = (Vec::new(), 0);
    while came < 100 {
        client.poll(PATIENCE).unwrap().expect("nothing happened for long");
        while client.recv(connection, &mut message).unwrap().is_some() {
            came += 1;
        }
    }
    let sent = client.paths(connection).unwrap().iter().map(|path| path.sent_bytes).sum();
    client.shutdown(connection).unwrap();
    while client.connections().next().is_some() {
        client.poll(PATIENCE).unwrap();
    }
    assert_eq!(server.join().unwrap(), 100);
    sent
}

#[test]
fn redundancy_is_sent_if_it_is_asked_for_and_taken_by_every_socket() {
    let plain = bytes_sent(|it| it);
    assert!(plain < 150_000, "{plain} bytes");
    // Of what was acknowledged meanwhile there is none, and on loopback that may be most of it.
    let with = || bytes_sent(|it| it.scheduler(SchedulerKind::RoundRobin).fec("block:2,1".parse().unwrap()));
    let sent: Vec<_> = (0..5).map(|_| with()).collect();
    assert!(sent.iter().any(|&it| it > plain + 8_000), "{plain} bytes without, {sent:?} with");
}

/// What was sent before there was a connection, as it came.
fn order_of_arrival(set: fn(SocketBuilder) -> SocketBuilder) -> Vec<u8> {
    let mut server = Socket::builder().build().unwrap();
    let at = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    server.listen();
    let mut client = set(Socket::builder()).build().unwrap();
    let connection = client.connect(&[Path::to(at)]).unwrap();
    for n in 1..=5 {
        client.send(connection, &[n], &SendOptions::default()).unwrap();
    }
    let client = std::thread::spawn(move || {
        client.shutdown(connection).unwrap();
        while client.connections().next().is_some() {
            client.poll(PATIENCE).unwrap();
        }
    });
    let (mut message, mut came) = (Vec::new(), Vec::new());
    while came.len() < 5 {
        let (connection, _) = server.poll(PATIENCE).unwrap().expect("nothing happened for long");
        while server.recv(connection, &mut message).unwrap().is_some() {
            came.extend_from_slice(&message);
        }
    }
    drop(server);
    client.join().unwrap();
    came
}

#[test]
fn messages_wait_in_the_queue_that_is_asked_for() {
    assert_eq!(order_of_arrival(|it| it), [1, 2, 3, 4, 5]);
    assert_eq!(order_of_arrival(|it| it.queue("lifo".parse().unwrap())), [5, 4, 3, 2, 1]);
}
