//! Linux's SCTP, in a kernel of its own, over two links: native and in UDP, over IPv4 and IPv6, either side first.

mod addresses;

use braidcast_core::Rng;
use braidcast_driver::Bind;
use braidcast_interop::Ours;
use braidcast_interop::linux::{GUEST, GUEST_V6, Guest, HOST, HOST_V6, with_guest};
use braidcast_sctp::{AssociationId, CloseReason, Options, PathState, SchedulerKind, SendError, SendOptions};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Bytes in each direction.
const TOTAL: usize = 10_000_000;
/// Where a tenth says the same.
const LESS: usize = TOTAL / 10;
/// An emulated guest with the processors shared carries 14 Mbit/s, or less.
const LIMIT: Duration = Duration::from_secs(240);
/// Bytes in flight, there and back, at most. A full receive buffer makes Linux deliver messages in
/// parts (RFC 6458 §6.1.7), and `sctp_peer` echoes each part as a message.
const ON_THE_WAY: usize = 100_000;
const SCTP: u8 = 132;
const UDP_PORT: u16 = 9899;
/// Large buffers, no Nagle, everything that comes goes back.
const ECHO: &str = "-m echo -D -Q -w 1000000 -W 1000000";

/// The version of IP on the two links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ip {
    V4,
    V6,
    /// IPv4 on the first link, IPv6 on the second one.
    Mixed,
}

impl Ip {
    /// Of these addresses on both links that of each.
    const fn of([v4, v6]: [[&'static str; 2]; 2], ip: Self) -> [&'static str; 2] {
        match ip {
            Self::V4 => v4,
            Self::V6 => v6,
            Self::Mixed => [v4[0], v6[1]],
        }
    }

    const fn hosts(self) -> [&'static str; 2] {
        Self::of([HOST, HOST_V6], self)
    }

    const fn guests(self) -> [&'static str; 2] {
        Self::of([GUEST, GUEST_V6], self)
    }

    /// The guest's addresses as `sctp_peer` takes them, which else binds to all of IPv4.
    fn bind(self) -> String {
        format!("-B {}", self.guests().join(","))
    }
}

fn ours(ip: Ip, in_udp: bool) -> Ours {
    // In turn: the quicker link of the two could carry nearly all of it alone.
    ours_with(ip, in_udp, SchedulerKind::RoundRobin)
}

fn ours_with(ip: Ip, in_udp: bool, scheduler: SchedulerKind) -> Ours {
    let addresses: Vec<IpAddr> = ip.hosts().iter().map(|host| host.parse().unwrap()).collect();
    let bind = |&addr: &IpAddr| match in_udp {
        true => Bind::to_addr(SocketAddr::new(addr, UDP_PORT)),
        false => Bind::to_ip(addr, SCTP),
    };
    let binds: Vec<Bind> = addresses.iter().map(bind).collect();
    let ecn = std::env::var_os("ECN").is_some();
    let options = Options::prompt().with(|it| {
        it.congestion.ecn = ecn;
        it.local_addresses = addresses;
        it.congestion.queueing_limit = None;
        it.paths.scheduler = scheduler;
        // Linux knows no timestamps and gets none.
        it.paths.forward_delay = true;
    });
    Ours::on(options, &binds)
}

/// One message; everything about it follows from its number.
fn message(number: u32) -> (Vec<u8>, SendOptions) {
    let mut rng = Rng::from_seed(u64::from(number));
    let mut payload = vec![0; 1 + rng.below(4_000) as usize];
    rng.fill(&mut payload);
    let stream = (number % 10) as u16;
    (payload, SendOptions { stream, ppid: number, unordered: number % 7 == 3, ..SendOptions::default() })
}

/// Sends `total` bytes of messages over `id` and takes them back, each as it was; data went over both links in turn.
fn exchange(total: usize, ours: &mut Ours, id: AssociationId) {
    for sent in exchange_of(total, ours, id) {
        assert!(sent > total / 10_000, "{sent} chunks of {total} bytes");
    }
}

/// The same, over whichever link; the chunks that each path sent.
fn exchange_of(total: usize, ours: &mut Ours, id: AssociationId) -> Vec<usize> {
    let both_up = |ours: &mut Ours| {
        let up = |association: &mut braidcast_sctp::Association, _| {
            association.paths().filter(|path| path.state == PathState::Active).count() >= 2
        };
        ours.with(id, up).unwrap_or_default()
    };
    ours.until(Duration::from_secs(60), "both paths", both_up);
    let (mut next, mut sent, mut came_bytes, mut buf) = (message(0), 0, 0, Vec::new());
    let mut came: Vec<bool> = Vec::new();
    ours.until(LIMIT, "echo", |ours| {
        let outcome = ours.with(id, |association, now| {
            while sent < total && sent - came_bytes < ON_THE_WAY {
                match association.send(now, &next.0, next.1) {
                    Ok(()) => {
                        sent += next.0.len();
                        came.push(false);
                        next = message(next.1.ppid + 1);
                    }
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            while let Some(received) = association.recv(now, &mut buf) {
                let (payload, how) = message(received.ppid);
                assert!(
                    buf == payload,
                    "message {} came back different: {} bytes for {}",
                    received.ppid,
                    buf.len(),
                    payload.len()
                );
                assert_eq!((received.stream, received.unordered), (how.stream, how.unordered));
                assert!(!core::mem::replace(&mut came[received.ppid as usize], true), "{} came twice", received.ppid);
                came_bytes += buf.len();
            }
        });
        assert!(outcome.is_some(), "{:?}", ours.events);
        sent >= total && came_bytes == sent
    });
    let sent = ours.with(id, |association, now| {
        let sent = |path: braidcast_sctp::PathReport| {
            println!("  {} sent {} chunks, {} again", path.route, path.sent_chunks, path.retransmitted_chunks);
            path.sent_chunks as usize
        };
        let sent = association.paths().map(sent).collect();
        association.shutdown(now);
        sent
    });
    ours.until(LIMIT, "shutdown", |ours| ours.closed(id).is_some());
    assert_eq!(ours.closed(id), Some(&CloseReason::Shutdown), "{:?}", ours.events);
    sent.unwrap()
}

/// Ends the guest's program, which knew both of our addresses.
fn stop(guest: &Guest, ip: Ip) {
    let said = guest.stop("peer");
    for host in ip.hosts() {
        // Beside IPv6 Linux says an IPv4 address as one of IPv6.
        let known = |prefix: &str| said.contains(&format!("addr={prefix}{host} "));
        assert!(known("") || known("::ffff:"), "{said}");
    }
}

fn we_connect(guest: &Guest, ip: Ip, in_udp: bool, total: usize) {
    println!("{ip:?}, in UDP {in_udp}: we connect");
    guest.start("peer", &format!("sctp_peer -l -p 5001 {} {ECHO}", ip.bind()));
    let port = if in_udp { UDP_PORT } else { 0 };
    let remotes = ip.guests().map(|addr| SocketAddr::new(addr.parse().unwrap(), port));
    let mut ours = ours(ip, in_udp);
    let id = ours.connect_to(5001, &remotes);
    exchange(total, &mut ours, id);
    stop(guest, ip);
}

fn linux_connects(guest: &Guest, ip: Ip, in_udp: bool, total: usize) {
    println!("{ip:?}, in UDP {in_udp}: Linux connects");
    let mut ours = ours(ip, in_udp);
    ours.listen();
    let encapsulation = if in_udp { format!("-e {UDP_PORT}") } else { String::new() };
    let to = format!("-h {} -p 9899 {} {encapsulation}", ip.hosts()[0], ip.bind());
    guest.start("peer", &format!("sctp_peer {to} -o 10 -x {ECHO}"));
    ours.until(Duration::from_secs(10), "association", |ours| ours.first().is_some());
    let id = ours.first().unwrap();
    exchange(total, &mut ours, id);
    stop(guest, ip);
}

/// Each scheduler with a megabyte.
fn all_schedulers(guest: &Guest) {
    for (name, scheduler) in SchedulerKind::ALL {
        println!("native, {name}");
        guest.start("peer", &format!("sctp_peer -l -p 5001 {ECHO}"));
        let mut ours = ours_with(Ip::V4, false, scheduler);
        let id = ours.connect_to(5001, &GUEST.map(|addr| SocketAddr::new(addr.parse().unwrap(), 0)));
        exchange_of(LESS, &mut ours, id);
        guest.stop("peer");
    }
}

/// Over IPv6, and over IPv4 and IPv6 at once.
fn newer_ip(guest: &Guest, in_udp: bool) {
    for ip in [Ip::V6, Ip::Mixed] {
        we_connect(guest, ip, in_udp, LESS);
        linux_connects(guest, ip, in_udp, LESS);
    }
}

#[test]
fn linux_guest_sctp() {
    with_guest("linux_guest_sctp", concat!(env!("CARGO_TARGET_TMPDIR"), "/linux-peer"), |guest| {
        we_connect(guest, Ip::V4, false, TOTAL);
        linux_connects(guest, Ip::V4, false, TOTAL);
        all_schedulers(guest);
        newer_ip(guest, false);
        addresses::come_and_go(guest);
        // A socket of the guest takes the UDP port when it is made.
        let (said, status) = guest.shell(&format!("sysctl -w net.sctp.udp_port={UDP_PORT}"));
        assert!(status.success(), "{said}");
        we_connect(guest, Ip::V4, true, TOTAL);
        linux_connects(guest, Ip::V4, true, TOTAL);
        newer_ip(guest, true);
    });
}
