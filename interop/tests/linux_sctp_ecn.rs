//! ECN with Linux's SCTP: a link that marks instead of losing, in both directions, native and in
//! UDP.

use braidcast_driver::Bind;
use braidcast_interop::Ours;
use braidcast_interop::linux::{GUEST, Guest, HOST, with_guest};
use braidcast_sctp::{CloseReason, Options, PathReport, SendError, SendOptions};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Messages that go there and come back.
const MESSAGES: usize = 300;
/// Messages in flight at once: a window large enough to be reduced.
const AT_ONCE: usize = 60;
const UDP_PORT: u16 = 9899;

/// Sends messages to Linux's echo over the first link and takes them back. Returns the report of
/// the path then.
fn echo(guest: &Guest, in_udp: bool) -> PathReport {
    guest.start("peer", "sctp_peer -l -p 5001 -m echo -D -Q -w 1000000 -W 1000000");
    let host: IpAddr = HOST[0].parse().unwrap();
    let (bind, port) = match in_udp {
        true => (Bind::to_addr(SocketAddr::new(host, UDP_PORT)), UDP_PORT),
        false => (Bind::to_ip(host, 132), 0),
    };
    // A message to a packet: virtio leaves the IP header of larger ones where netem does not see
    // it, so it drops them instead.
    let options = Options::default().with(|it| {
        it.congestion.ecn = true;
        it.paths.max_mtu = Options::default().paths.base_mtu;
    });
    let mut ours = Ours::on(options, &[bind]);
    let id = ours.connect_to(5001, &[SocketAddr::new(GUEST[0].parse().unwrap(), port)]);
    let (mut sent, mut came, mut buf) = (0, 0, Vec::new());
    ours.until(Duration::from_secs(60), "echo", |ours| {
        ours.with(id, |association, now| {
            while sent < MESSAGES && sent < came + AT_ONCE {
                match association.send(now, &[sent as u8; 1000], SendOptions::default()) {
                    Ok(()) => sent += 1,
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            while association.recv(now, &mut buf).is_some() {
                assert_eq!(buf, [came as u8; 1000]);
                came += 1;
            }
        })
        .expect("the association stays");
        came == MESSAGES
    });
    let report = ours.with(id, |association, now| {
        let report = association.paths().next().unwrap();
        association.shutdown(now);
        report
    });
    ours.until(Duration::from_secs(20), "shutdown", |ours| ours.closed(id).is_some());
    assert_eq!(ours.closed(id), Some(&CloseReason::Shutdown), "{:?}", ours.events);
    guest.stop("peer");
    report.unwrap()
}

#[test]
fn linux_guest_hears_our_marks_and_we_hear_its() {
    with_guest(
        "linux_guest_hears_our_marks_and_we_hear_its",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/linux-peer"),
        |guest| {
            guest.take_in_through_ifb0();
            guest.run("sysctl -w net.sctp.ecn_enable=1");
            // With `ecn`, netem marks what it would lose if it may. The handshake may not, so it comes first.
            for in_udp in [false, true] {
                if in_udp {
                    guest.run(&format!("sysctl -w net.sctp.udp_port={UDP_PORT}"));
                }
                guest.run("tc qdisc replace dev net1 root netem delay 10ms");
                guest.run("tc qdisc replace dev ifb0 root netem delay 10ms loss 3% ecn");
                let there = echo(guest, in_udp);
                println!("marks on the forward path, in UDP {in_udp}: {there:?}");
                assert!(there.mark_reductions > 0 && there.lost_chunks == 0, "{there:?}");
                guest.run("tc qdisc replace dev ifb0 root netem delay 10ms");
                guest.run("tc qdisc replace dev net1 root netem delay 10ms loss 3% ecn");
                let back = echo(guest, in_udp);
                println!("marks on the reverse path: {back:?}");
                assert!(back.marked_packets > 0, "{back:?}");
                assert_eq!(back.mark_reductions, 0);
            }
            guest.run("sysctl -w net.sctp.ecn_enable=0");
            guest.run("tc qdisc replace dev net1 root netem delay 10ms");
            guest.run("tc qdisc replace dev ifb0 root netem delay 10ms loss 3% ecn");
            let deaf = echo(guest, true);
            assert_eq!((deaf.mark_reductions, deaf.marked_packets), (0, 0), "Linux declined: {deaf:?}");
        },
    );
}
