//! The smallest and the largest of everything, on the loopback interface: nothing panics, hangs or
//! takes memory without end.

use braidcast_socket::{
    CloseReason, ConnectionId, Error, Event, Options, Path, Protection, RateLimits, RateOptions, SendError,
    SendOptions, Socket,
};
use braidcast_testing::Counting;
use std::net::SocketAddr;
use std::time::Duration;

/// It counts for each thread, and so for each test.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));
const CENTURIES: Duration = Duration::from_secs(600 * 365 * 24 * 3600);

/// A server that reads all that comes, in a thread, until its `clients` are gone: how many messages
/// came, and why the last one ended.
fn server(at: &str, mut clients: usize) -> (SocketAddr, std::thread::JoinHandle<(usize, CloseReason)>) {
    let mut server = Socket::new(&Protection::Plain).unwrap();
    let at = server.bind(at.parse().unwrap()).unwrap();
    server.listen();
    let thread = std::thread::spawn(move || {
        let (mut message, mut came) = (Vec::new(), 0);
        loop {
            let (id, event) = server.poll(PATIENCE).unwrap().expect("nothing happened for long");
            match event {
                Event::Readable => {
                    while server.recv(id, &mut message).unwrap().is_some() {
                        came += 1
                    }
                }
                Event::Closed { reason, .. } => {
                    clients -= 1;
                    if clients == 0 {
                        return (came, reason);
                    }
                }
                _ => {}
            }
        }
    });
    (at, thread)
}

fn connect(at: SocketAddr) -> (Socket, ConnectionId) {
    let mut client = Socket::new(&Protection::Plain).unwrap();
    let connection = client.connect(&[Path::to(at)]).unwrap();
    wait(&mut client, |event| *event == Event::Connected);
    (client, connection)
}

/// Polls until `wanted` says so of an event.
fn wait(socket: &mut Socket, wanted: impl Fn(&Event) -> bool) -> Event {
    loop {
        let (_, event) = socket.poll(PATIENCE).unwrap().expect("nothing happened for long");
        if wanted(&event) {
            return event;
        }
    }
}

fn is_closed(event: &Event) -> bool {
    matches!(event, Event::Closed { .. })
}

#[test]
fn messages_of_a_byte_fill_a_buffer_before_the_memory() {
    let buffer = Options::live().limits.send_buffer;
    let mut socket = Socket::new(&Protection::Plain).unwrap();
    // Nobody is there: all of it waits.
    let connection = socket.connect(&[Path::to("127.0.0.1:9".parse().unwrap())]).unwrap();
    let before = Counting::bytes();
    let mut taken = 0;
    let full = loop {
        match socket.send(connection, &[1], &SendOptions::new()) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Send(SendError::BufferFull { .. })), "{full}");
    assert!((1000..=buffer / 64).contains(&taken), "{taken} messages");
    let held = (Counting::bytes() - before).cast_unsigned();
    assert!(held <= 4 * buffer, "{held} bytes for {taken} messages of one");
}

#[test]
fn the_longest_times_are_as_good_as_others() {
    let (at, server) = server("127.0.0.1:0", 1);
    let (mut client, connection) = connect(at);
    for deadline in [Duration::MAX, CENTURIES, Duration::from_nanos(1), Duration::ZERO] {
        for unordered in [false, true] {
            let mut how = SendOptions::new().deadline(deadline);
            how.unordered = unordered;
            client.send(connection, b"x", &how).unwrap();
        }
    }
    client.send(connection, b"x", &SendOptions::new().max_retransmissions(u16::MAX).context(u64::MAX)).unwrap();
    client.shutdown(connection).unwrap();
    client.shutdown(connection).unwrap();
    let (_, event) = client.poll(Some(Duration::MAX)).unwrap().expect("it waits for ever");
    if !is_closed(&event) {
        wait(&mut client, is_closed);
    }
    let (came, reason) = server.join().unwrap();
    assert_eq!(reason, CloseReason::Shutdown);
    assert!((5..=9).contains(&came), "{came} of nine, four of which are worth nothing at once");
    assert!(client.close(Duration::MAX).unwrap());
}

#[test]
fn an_encoder_may_say_anything() {
    let (at, server) = server("127.0.0.1:0", 1);
    let (mut client, connection) = connect(at);
    let nothing = RateOptions::new(RateLimits::new(0, 0));
    let upside_down = RateOptions::new(RateLimits::new(u64::MAX, 1));
    let everything = RateOptions::new(RateLimits::new(u64::MAX, u64::MAX));
    for options in [nothing, upside_down, everything] {
        for latency in [Duration::ZERO, Duration::from_millis(500), Duration::MAX] {
            for interval in [Duration::ZERO, Duration::from_millis(40), Duration::MAX] {
                let options = options.latency(latency).interval(interval);
                client.follow_rate(connection, &options).unwrap();
                let report = client.rate_report(connection).unwrap().expect("it is connected");
                assert!(report.rate.is_finite() && report.smoothed_rate.is_finite(), "{options:?}: {report:?}");
            }
        }
    }
    client.shutdown(connection).unwrap();
    wait(&mut client, is_closed);
    assert_eq!(server.join().unwrap().1, CloseReason::Shutdown);
}

#[test]
fn all_paths_may_leave_and_one_may_join_twice() {
    let (at, server) = server("127.0.0.1:0", 1);
    let (mut client, connection) = connect(at);
    client.join(connection, &Path::to(at)).unwrap();
    client.join(connection, &Path::via(at, "127.0.0.1")).unwrap();
    assert!(matches!(client.join(connection, &Path::via(at, "::1")), Err(Error::Links(_))));
    while client.paths(connection).unwrap().len() < 3 {
        client.poll(Some(Duration::from_millis(5))).unwrap();
    }
    let names: Vec<_> = client.paths(connection).unwrap().into_iter().map(|path| path.name).collect();
    assert!(names.iter().all(|name| client.leave(connection, name).unwrap()), "{names:?}");
    assert!(names.iter().all(|name| !client.leave(connection, name).unwrap()), "{names:?}");
    // It is not over: another one may join.
    client.join(connection, &Path::to(at)).unwrap();
    client.send(connection, b"there again", &SendOptions::new()).unwrap();
    client.shutdown(connection).unwrap();
    wait(&mut client, is_closed);
    assert_eq!(server.join().unwrap(), (1, CloseReason::Shutdown));
    // And the socket is as good as before.
    assert!(client.connect(&[Path::to(at)]).is_ok());
}

#[test]
fn one_address_of_both_families_serves_both() {
    let (at, server) = server("[::]:0", 2);
    for to in ["127.0.0.1", "[::1]"] {
        let (mut client, connection) = connect(format!("{to}:{}", at.port()).parse().unwrap());
        client.send(connection, b"x", &SendOptions::new()).unwrap();
        assert!(client.paths(connection).unwrap()[0].remote.to_string().starts_with(to));
        client.shutdown(connection).unwrap();
        wait(&mut client, is_closed);
    }
    assert_eq!(server.join().unwrap(), (2, CloseReason::Shutdown));
}

/// A message of a byte takes room for its place in the order, too. The path is no worse for it that nobody reads.
#[test]
fn a_receiver_that_reads_nothing_keeps_no_more_than_its_buffer() {
    let buffer = Options::live().limits.receive_buffer;
    let mut server = Socket::new(&Protection::Plain).unwrap();
    let at = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    server.listen();
    let before = Counting::bytes();
    let client = std::thread::spawn(move || {
        let (mut client, connection) = connect(at);
        let mut sent = 0;
        loop {
            match client.send(connection, &[1], &SendOptions::new()) {
                Ok(()) => sent += 1,
                Err(Error::Send(SendError::BufferFull { .. })) => {
                    match client.poll(Some(Duration::from_secs(3))).unwrap() {
                        Some((_, event @ (Event::PathDown { .. } | Event::Closed { .. }))) => {
                            panic!("{event:?} while the window is shut")
                        }
                        Some(_) => {}
                        // Both buffers are full.
                        None => return sent,
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    while !client.is_finished() {
        let _nothing_is_read = server.poll(Some(Duration::from_millis(50))).unwrap();
    }
    let kept = Counting::bytes() - before;
    let sent = client.join().unwrap();
    assert!(sent > 10_000 && kept < 2 * buffer as isize, "{sent} messages, {kept} bytes kept of a buffer of {buffer}");
}
