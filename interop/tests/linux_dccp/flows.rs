//! Data in either direction, over connections that either side began.

use super::{LIMIT, SERVICE, connect, linux_client, number, options, until_closed};
use braidcast_core::{Instant, Rng};
use braidcast_dccp::{Ccid, Connection, ConnectionId, Options, SendError, SendOptions};
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::Guest;

/// Messages in each direction.
const COUNT: u32 = 300;
/// Messages in flight, there and back, at most: fewer than what Linux queues (`-q`).
const ON_THE_WAY: u32 = 32;
/// What `dccp_peer`'s own messages begin with; it counts the gaps between such.
const MAGIC: u32 = 0x4c50_4452;
/// Bytes in `dccp_peer`'s messages.
const SIZE: usize = 1000;

/// Message `seq` of ours: it begins as `dccp_peer`'s do, the rest follows from the number.
fn message(seq: u32) -> Vec<u8> {
    let mut rng = Rng::from_seed(u64::from(seq));
    let mut bytes = vec![0; 16 + rng.below(1200) as usize];
    rng.fill(&mut bytes);
    bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&seq.to_be_bytes());
    bytes
}

/// Message `seq` as `dccp_peer` makes it, but for the time in it.
pub(crate) fn plain(seq: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..SIZE).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&seq.to_be_bytes());
    bytes
}

/// The number of a message, which must be as `dccp_peer` makes them.
pub(crate) fn number_of(bytes: &[u8]) -> u32 {
    assert_eq!(bytes.len(), SIZE);
    let seq = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
    assert!(bytes[16..] == plain(seq)[16..], "the message is not what was sent");
    seq
}

/// Everything that came.
pub(crate) fn received(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut buf = Vec::new();
    core::iter::from_fn(|| connection.recv(&mut buf).then(|| core::mem::take(&mut buf))).collect()
}

/// Sends messages `next..end`, as `make` makes them, as far as they go in now.
pub(crate) fn send(connection: &mut Connection, now: Instant, next: &mut u32, end: u32, make: fn(u32) -> Vec<u8>) {
    while *next < end {
        match connection.send(now, &make(*next), SendOptions::default()) {
            Ok(()) => *next += 1,
            Err(SendError::QueueFull { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// All messages go out and come back, each once and as it was.
fn exchange_echoes(ours: &mut Dccp, id: ConnectionId) {
    let (mut next, mut back) = (0, vec![false; COUNT as usize]);
    let mut came = 0;
    ours.until(LIMIT, "echoes", |ours| {
        let it = ours.with(id, |connection, now| {
            send(connection, now, &mut next, COUNT.min(came + ON_THE_WAY), message);
            for bytes in received(connection) {
                let seq = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
                assert!(bytes == message(seq), "message {seq} came back different");
                assert!(!core::mem::replace(&mut back[seq as usize], true), "message {seq} came twice");
                came += 1;
            }
        });
        assert!(it.is_some(), "{:?}", ours.events);
        came == COUNT
    });
}

/// Takes `dccp_peer`'s messages until there are `count`: none is missing, none comes twice.
fn take(ours: &mut Dccp, id: ConnectionId, count: u32) {
    let mut expected = 0;
    ours.until(LIMIT, "messages of Linux", |ours| {
        for bytes in ours.with(id, |connection, _| received(connection)).unwrap_or_default() {
            assert_eq!(number_of(&bytes), expected, "a message is missing, or came twice");
            expected += 1;
        }
        expected >= count
    });
}

/// Sends `count` messages.
pub(crate) fn give(ours: &mut Dccp, id: ConnectionId, count: u32) {
    let mut next = 0;
    ours.until(LIMIT, "sending", |ours| {
        ours.with(id, |connection, now| send(connection, now, &mut next, count, message));
        let waiting = ours.with(id, |connection, now| connection.report(now).queued_messages);
        next == count && waiting == Some(0)
    });
}

/// What Linux counted of our messages: all, in order.
fn counted(said: &str) {
    let bytes: usize = (0..COUNT).map(|seq| message(seq).len()).sum();
    assert_eq!(number(said, "rx_pkts"), u64::from(COUNT), "{said}");
    assert_eq!(number(said, "rx_bytes"), bytes as u64, "{said}");
    assert_eq!((number(said, "gaps"), number(said, "late")), (0, 0), "{said}");
}

/// The version of IP below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ip {
    V4,
    V6,
}

impl Ip {
    const fn ours(self) -> fn(Options) -> Dccp {
        match self {
            Self::V4 => Dccp::new,
            Self::V6 => Dccp::over_ipv6,
        }
    }

    /// What makes `dccp_peer -l` listen there.
    const fn flag(self) -> &'static str {
        match self {
            Self::V4 => "",
            Self::V6 => "-6",
        }
    }
}

fn we_connect(guest: &Guest, ip: Ip, ccid: Ccid) {
    let number = u16::from(ccid.number());
    let modes = ["sink", "echo", "source"];
    let start: Vec<String> = (0..)
        .zip(modes)
        .map(|(n, mode)| {
            let port = 5000 + number * 10 + n;
            format!("lp-start {mode} dccp_peer -l {} -p {port} -m {mode} -C {number} -S TEST -Q -q 64", ip.flag())
        })
        .collect();
    let (said, status) = guest.shell(&start.join("; "));
    assert!(status.success(), "{said}");
    let mut ours = ip.ours()(options(&[ccid]));
    let ids: Vec<_> = (0..).zip(modes).map(|(n, _)| connect(&mut ours, 5000 + number * 10 + n)).collect();
    for &id in &ids {
        let report = ours.with(id, |connection, now| connection.report(now)).unwrap();
        assert_eq!((report.sending, report.receiving), (ccid, ccid));
    }
    give(&mut ours, ids[0], COUNT);
    exchange_echoes(&mut ours, ids[1]);
    take(&mut ours, ids[2], COUNT);
    for &id in &ids {
        ours.with(id, |connection, now| connection.close(now));
        until_closed(&mut ours, id);
    }
    let (said, _) = guest.shell("lp-stop sink; echo ---; lp-stop echo; lp-stop source > /dev/null");
    let (sink, echo) = said.split_once("---").unwrap_or_else(|| panic!("{said}"));
    counted(sink);
    counted(echo);
}

fn linux_connects(guest: &Guest, ip: Ip, ccid: Ccid) {
    let mut ours = ip.ours()(options(&[ccid]));
    for port in [6001, 6002, 6003] {
        ours.listen(port, SERVICE);
    }
    let n = ccid.number();
    // Linux sends and closes. Paced, as it drops what waits in its queue when it closes, which is
    // five messages at most.
    let mut expected = 0;
    linux_client(&mut ours, guest, &format!("-p 6001 -m source -n 100 -b 800000 -C {n} -Q"), |ours| {
        for id in ours.at_port(6001) {
            for bytes in ours.with(id, |connection, _| received(connection)).unwrap_or_default() {
                assert_eq!(number_of(&bytes), expected);
                expected += 1;
            }
        }
    });
    assert!((95..=100).contains(&expected), "{expected} messages");
    // Linux sends, and takes it back.
    let mut echoed = 0;
    let said = linux_client(&mut ours, guest, &format!("-p 6002 -m ping -n 100 -b 800000 -C {n} -Q"), |ours| {
        for id in ours.at_port(6002) {
            ours.with(id, |connection, now| {
                for bytes in received(connection) {
                    if connection.send(now, &bytes, SendOptions::default()).is_ok() {
                        echoed += 1;
                    }
                }
            });
        }
    });
    assert!((95..=100).contains(&echoed), "{echoed} messages");
    assert_eq!((number(&said, "rx_pkts"), number(&said, "gaps")), (echoed, 0), "{said}");
    // We send, and close.
    let (mut next, mut ended) = (0, false);
    let said = linux_client(&mut ours, guest, &format!("-p 6003 -m sink -C {n} -Q"), |ours| {
        for id in ours.at_port(6003) {
            ours.with(id, |connection, now| {
                if ended {
                    return;
                }
                send(connection, now, &mut next, COUNT, message);
                if next == COUNT {
                    connection.close(now);
                    ended = true;
                }
            });
        }
    });
    counted(&said);
}

pub(crate) fn all(guest: &Guest) {
    // What is below changes nothing of a CCID's own: one is enough over IPv6.
    for (ip, ccid) in [(Ip::V4, Ccid::Two), (Ip::V4, Ccid::Three), (Ip::V6, Ccid::Three)] {
        println!("{ccid}, {ip:?}: we connect");
        we_connect(guest, ip, ccid);
        println!("{ccid}, {ip:?}: Linux connects");
        linux_connects(guest, ip, ccid);
    }
}
