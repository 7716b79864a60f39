//! usrsctp, in a process of its own, over UDP encapsulation on the loopback.

use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_driver::Bind;
use braidcast_interop::Ours;
use braidcast_interop::usrsctp::{Received, Running, Telling, build, find, free_port};
use braidcast_sctp::{
    Association, AssociationId, CloseReason, Event, Options, PathState, SchedulerKind, SendError, SendOptions,
};
use std::net::SocketAddr;
use std::time::Duration;

const TOTAL: usize = 50_000_000;
const LIMIT: Duration = Duration::from_secs(25);

/// The first INIT may come before the other process has its socket: be quick with the next.
fn options() -> Options {
    Options::prompt().with(|it| it.congestion.queueing_limit = None)
}

fn assert_shut_down(ours: &mut Ours, id: AssociationId) {
    ours.until(LIMIT, "shutdown", |ours| ours.closed(id).is_some());
    assert_eq!(ours.closed(id), Some(&CloseReason::Shutdown), "{:?}", ours.events);
}

#[test]
fn tsctp_counts_every_byte_of_50_mb_from_us() {
    let Some(tsctp) = find("tsctp") else { return };
    let udp = free_port().unwrap();
    let server = Running::start(&tsctp, &["-E", &udp.to_string(), "-R", "4194304", "-L", "127.0.0.1"]).unwrap();
    let mut ours = Ours::new(options());
    let id = ours.connect(udp, 5001);
    let message = [b'x'; 1000];
    let mut left = TOTAL / message.len();
    ours.until(LIMIT, "transfer", |ours| {
        let outcome = ours.with(id, |association, now| {
            while left > 0 {
                match association.send(now, &message, SendOptions::default()) {
                    Ok(()) => left -= 1,
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert!(outcome.is_some(), "{:?}", ours.events);
        left == 0
    });
    ours.until(LIMIT, "connected", |ours| ours.events.contains(&(id, Event::Connected)));
    ours.with(id, |association, now| association.shutdown(now));
    assert_shut_down(&mut ours, id);
    let expected = Received { first_len: 1000, messages: (TOTAL / 1000) as u64, bytes: TOTAL as u64 };
    assert_eq!(server.received(LIMIT), Some(expected));
}

/// What `tsctp` sends us with `how`; each byte is checked.
fn take_from_tsctp(count: usize, len: usize, how: &[&str]) {
    let Some(tsctp) = find("tsctp") else { return };
    let mut ours = Ours::new(options());
    ours.listen();
    let (at, udp, port) = (free_port().unwrap().to_string(), ours.udp_port().to_string(), "9899");
    let (count_text, len_text) = (count.to_string(), len.to_string());
    let mut args = vec!["-E", &at, "-U", &udp, "-p", port, "-S", "4194304", "-n", &count_text, "-l", &len_text];
    args.extend_from_slice(how);
    args.extend_from_slice(&["-L", "127.0.0.1", "127.0.0.1"]);
    let mut client = Running::start(&tsctp, &args).unwrap();
    ours.until(LIMIT, "association", |ours| ours.first().is_some());
    let id = ours.first().unwrap();
    let (mut messages, mut bytes, mut buf) = (0, 0, Vec::new());
    let unordered = how.contains(&"-u");
    ours.until(LIMIT, "transfer", |ours| {
        ours.with(id, |association, now| {
            while let Some(received) = association.recv(now, &mut buf) {
                assert_eq!(received.unordered, unordered);
                assert!(buf.len() == len && buf.iter().all(|&byte| byte == b'b'), "message {messages}");
                messages += 1;
                bytes += buf.len();
            }
        });
        ours.closed(id).is_some() && messages >= count
    });
    assert_eq!((messages, bytes), (count, count * len));
    assert_shut_down(&mut ours, id);
    ours.until(LIMIT, "tsctp ends", |_| match client.try_wait().unwrap() {
        Some(status) => {
            assert!(status.success(), "{status}");
            true
        }
        None => false,
    });
}

#[test]
fn we_take_every_byte_of_50_mb_from_tsctp() {
    take_from_tsctp(TOTAL / 1000, 1000, &[]);
}

#[test]
fn we_take_unordered_and_long_messages_from_tsctp() {
    take_from_tsctp(10_000, 1000, &["-u"]);
    take_from_tsctp(200, 50_000, &[]);
}

/// One message of the echo test; everything about it follows from its number.
fn message(number: u32) -> (Vec<u8>, SendOptions) {
    let mut rng = Rng::from_seed(u64::from(number));
    // `echo_server` reads 10240 bytes at once.
    let mut payload = vec![0; 1 + rng.below(10_240) as usize];
    rng.fill(&mut payload);
    let (stream, unordered) = ((number % 10) as u16, number % 7 == 3);
    (payload, SendOptions { stream, ppid: number, unordered, ..SendOptions::default() })
}

/// Messages sent one after the other, as far as the send buffer takes them, and what the peer gives back of them.
struct Echo {
    total: usize,
    next: (Vec<u8>, SendOptions),
    sent: usize,
    came: Vec<bool>,
    came_bytes: usize,
    /// The latest of each stream.
    last: [Option<u32>; 10],
    buf: Vec<u8>,
}

impl Echo {
    /// Of `total` bytes, at most.
    fn of(total: usize) -> Self {
        let (next, came) = (message(0), vec![false; 20_000]);
        Self { total, next, sent: 0, came, came_bytes: 0, last: [None; 10], buf: Vec::new() }
    }

    /// Sends what goes and takes what came, which is each message once, as it was, and in order
    /// unless it may come in any. Returns `true` if all did.
    fn turn(&mut self, association: &mut Association, now: Instant) -> bool {
        while self.sent < self.total {
            match association.send(now, &self.next.0, self.next.1) {
                Ok(()) => {
                    self.sent += self.next.0.len();
                    self.next = message(self.next.1.ppid + 1);
                }
                Err(SendError::BufferFull { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        while let Some(received) = association.recv(now, &mut self.buf) {
            let (payload, how) = message(received.ppid);
            assert!(self.buf == payload, "message {} came back different", received.ppid);
            assert_eq!((received.stream, received.unordered), (how.stream, how.unordered));
            let twice = core::mem::replace(&mut self.came[received.ppid as usize], true);
            assert!(!twice, "{} came twice", received.ppid);
            if !how.unordered {
                let before = self.last[usize::from(how.stream)].replace(received.ppid);
                assert!(before < Some(received.ppid), "{} came after {before:?}", received.ppid);
            }
            self.came_bytes += self.buf.len();
        }
        self.sent >= self.total && self.came_bytes == self.sent
    }
}

#[test]
fn echo_server_gives_50_mb_of_random_bytes_back() {
    let Some(echo) = find("echo_server") else { return };
    let udp = free_port().unwrap();
    let _server = Running::start(&echo, &[&udp.to_string()]).unwrap();
    // What is on its way to the server and back must be bounded, as it does not read while it writes.
    let mut ours = Ours::new(options().with(|it| {
        it.limits.send_buffer = 1 << 20;
        it.limits.max_message = 1 << 20;
    }));
    let id = ours.connect(udp, 7);
    let mut flow = Echo::of(TOTAL);
    ours.until(LIMIT, "echo", |ours| {
        let outcome = ours.with(id, |association, now| flow.turn(association, now));
        outcome.unwrap_or_else(|| panic!("{:?}", ours.events))
    });
    ours.with(id, |association, now| association.shutdown(now));
    assert_shut_down(&mut ours, id);
}

/// RFC 5061 §4.2.4. usrsctp acknowledges our own requests. If it heeds the wildcard depends on its
/// `sctp_nat_friendly`, which is off.
#[test]
fn we_send_over_the_path_that_usrsctp_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build("usrsctp_primary", folder.path()) else { return };
    let udp = free_port().unwrap();
    let peer = Telling::start(&program, &[&udp.to_string(), "7"]).unwrap();
    let says = |ours: &mut Ours, what: &str| ours.until(LIMIT, what, |_| peer.line().is_some_and(|line| line == what));
    let own: [SocketAddr; 2] = ["127.0.0.1:0", "127.0.0.2:0"].map(|at| at.parse().unwrap());
    let mut ours = Ours::on(options().with(|it| it.paths.concurrent = false), &own.map(Bind::to_addr));
    says(&mut ours, "listening");
    let id = ours.connect(udp, 7);
    let [first, second] = [0, 1].map(|socket| Route::new(SocketId(socket), SocketAddr::from(([127, 0, 0, 1], udp))));
    ours.with(id, |association, now| association.join(now, second)).unwrap().unwrap();
    ours.until(LIMIT, "the second path", |ours| {
        let active = |association: &mut Association, _| {
            association.paths().any(|path| path.route == second && path.state == PathState::Active)
        };
        ours.with(id, active).unwrap()
    });
    let sent = |ours: &mut Ours| {
        let chunks = |it: &mut Association, route| it.paths().find(|path| path.route == route).unwrap().sent_chunks;
        ours.with(id, |it, _| [first, second].map(|route| chunks(it, route))).unwrap()
    };
    // Ours are acknowledged: the second one goes when the first was.
    for route in [second, first] {
        assert!(ours.with(id, |association, now| association.ask_primary(now, route)).unwrap());
    }
    // We choose the second path, usrsctp asks over the first for its address.
    assert!(ours.with(id, |association, _| association.set_primary(second)).unwrap());
    ours.with(id, |association, now| association.send(now, b"127.0.0.1", SendOptions::default())).unwrap().unwrap();
    says(&mut ours, "asked ok");
    assert_eq!(sent(&mut ours), [0, 1]);
    ours.until(LIMIT, "data over the first path", |ours| {
        ours.with(id, |association, now| association.send(now, b"127.0.0.1", SendOptions::default())).unwrap().unwrap();
        (0..5).for_each(|_| ours.turn());
        sent(ours)[0] > 0
    });
    assert_eq!(ours.closed(id), None);
}

/// Bytes of the messages that each scheduler has there and back.
const EACH: usize = 500_000;

/// Whatever chooses between two paths, and with timestamps wanted, which usrsctp does not know:
/// every message comes back as it was.
#[test]
fn every_scheduler_works_with_usrsctp_over_two_paths() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build("usrsctp_echo", folder.path()) else { return };
    let udp = free_port().unwrap();
    let peer = Telling::start(&program, &[&udp.to_string(), "7"]).unwrap();
    Ours::new(options()).until(LIMIT, "listening", |_| peer.line().is_some());
    let own: [SocketAddr; 2] = ["127.0.0.1:0", "127.0.0.2:0"].map(|at| at.parse().unwrap());
    for (name, scheduler) in SchedulerKind::ALL {
        let options = options().with(|it| {
            it.paths.scheduler = scheduler;
            it.paths.forward_delay = true;
            it.limits.send_buffer = 1 << 18;
            it.limits.max_message = 1 << 18;
        });
        let mut ours = Ours::on(options, &own.map(Bind::to_addr));
        let id = ours.connect(udp, 7);
        let second = Route::new(SocketId(1), SocketAddr::from(([127, 0, 0, 1], udp)));
        ours.with(id, |association, now| association.join(now, second)).unwrap().unwrap();
        ours.until(LIMIT, "the second path", |ours| {
            let up = |it: &mut Association, _| it.paths().filter(|path| path.state == PathState::Active).count() == 2;
            ours.with(id, up).unwrap()
        });
        let mut flow = Echo::of(EACH);
        ours.until(LIMIT, name, |ours| {
            let outcome = ours.with(id, |association, now| flow.turn(association, now));
            outcome.unwrap_or_else(|| panic!("{name}: {:?}", ours.events))
        });
        let carried =
            ours.with(id, |it, _| it.paths().map(|path| path.sent_chunks + path.copied_chunks).collect::<Vec<_>>());
        println!("{name}: {carried:?} chunks");
        let both = matches!(scheduler, SchedulerKind::RoundRobin | SchedulerKind::Redundant | SchedulerKind::ByRate);
        // What was acknowledged before its copy could leave needs none: of `redundant`, one path may carry little.
        assert!(!both || carried.unwrap().iter().all(|&chunks| chunks > 5), "{name} uses both paths");
        ours.with(id, |association, now| association.shutdown(now));
        assert_shut_down(&mut ours, id);
    }
}
