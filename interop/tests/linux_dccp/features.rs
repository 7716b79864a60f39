//! What both ends agree on.

use super::flows::{give, received};
use super::{LIMIT, LINUX_WINDOW, SERVICE, connect, linux_client, number, options, trail, until_closed};
use braidcast_dccp::wire::Opt;
use braidcast_dccp::wire::option::{Ccid3Option, FeatureOption, Side};
use braidcast_dccp::{Ccid, ConnectionId, SendOptions};
use braidcast_interop::dccp::{Dccp, Seen};
use braidcast_interop::linux::Guest;

use Ccid::{Three, Two};

/// Our CCIDs, Linux's as `dccp_peer` takes them, and what we send and get by.
type Case = (&'static [Ccid], &'static str, (Ccid, Ccid));

const LINUX_SERVES: [Case; 4] = [
    // The server's preferences win, and Linux lists 2 before 3.
    (&[Three, Two], "", (Two, Two)),
    (&[Three], "", (Three, Three)),
    (&[Two, Three], "-C 3", (Three, Three)),
    (&[Two, Three], "-T 2 -R 3", (Three, Two)),
];
const WE_SERVE: [Case; 4] = [
    (&[Three, Two], "", (Three, Three)),
    (&[Two, Three], "", (Two, Two)),
    (&[Two, Three], "-C 3", (Three, Three)),
    (&[Three, Two], "-T 3 -R 2", (Two, Three)),
];

fn agreed(ours: &mut Dccp, id: ConnectionId) -> Option<(Ccid, Ccid)> {
    ours.with(id, |it, now| it.report(now)).map(|report| (report.sending, report.receiving))
}

/// Counts the packets that left, or came, and have an option that `which` looks for.
fn count(ours: &Dccp, sent: bool, which: impl Fn(&Opt<'_>) -> bool) -> usize {
    let has =
        |seen: &&Seen| seen.sent == sent && seen.packet().is_some_and(|it| it.options.known().any(|it| which(&it)));
    ours.seen().iter().filter(has).count()
}

fn ccid3<'a>(opt: &Opt<'a>) -> Option<Ccid3Option<'a>> {
    if let Opt::Ccid(raw) = *opt { Ccid3Option::parse(raw) } else { None }
}

/// RFC 4341 §4: data by CCID 2 is acknowledged with Ack Vectors. RFC 4342 §8: data by CCID 3 with a
/// Loss Event Rate, which both ask for, and ours with Loss Intervals; Linux has none.
fn assert_options(ours: &Dccp, agreed: (Ccid, Ccid)) {
    for (ccid, sent) in [(agreed.0, false), (agreed.1, true)] {
        let vectors = count(ours, sent, |opt| matches!(opt, Opt::AckVector(_)));
        let rates = count(ours, sent, |opt| matches!(ccid3(opt), Some(Ccid3Option::ReceiveRate(_))));
        let losses = count(ours, sent, |opt| matches!(ccid3(opt), Some(Ccid3Option::LossEventRate(_))));
        let intervals = count(ours, sent, |opt| matches!(ccid3(opt), Some(Ccid3Option::LossIntervals(_))));
        // Whoever has both CCIDs to offer asks for Ack Vectors too, and CCID 3 may have them.
        assert!(vectors > 0 || ccid == Three, "sent: {sent}");
        assert_eq!((rates > 0, losses > 0), (ccid == Three, ccid == Three), "sent: {sent}");
        assert_eq!(intervals > 0, ccid == Three && sent, "sent: {sent}");
    }
}

/// Returns `true` if a Confirm of Sequence Window `window` left, or came.
fn confirmed_window(ours: &Dccp, sent: bool, window: u64) -> bool {
    let value = &window.to_be_bytes()[2..];
    count(
        ours,
        sent,
        |opt| matches!(opt, Opt::Feature(FeatureOption { confirm: true, side: Side::Remote, feature: 3, values }) if *values == value),
    ) > 0
}

fn linux_serves(guest: &Guest) {
    let listen = |(n, (_, linux, _)): (usize, &Case)| {
        format!("lp-start f{n} dccp_peer -l -p {} -S TEST -m echo -q 64 {linux} -Q", 5200 + n)
    };
    let start: Vec<String> = LINUX_SERVES.iter().enumerate().map(listen).collect();
    let (said, status) = guest.shell(&start.join("; "));
    assert!(status.success(), "{said}");
    for (n, (ccids, linux, expected)) in (0..).zip(LINUX_SERVES) {
        println!("{ccids:?} with a server of {linux:?}");
        let mut ours = Dccp::new(options(ccids));
        let id = connect(&mut ours, 5200 + n);
        ours.until(LIMIT, "agreement", |ours| agreed(ours, id) == Some(expected));
        let mut back = 0;
        give(&mut ours, id, 20);
        ours.until(LIMIT, "echoes", |ours| {
            back += ours.with(id, |it, _| received(it)).map_or(0, |all| all.len());
            back == 20
        });
        ours.with(id, |it, now| it.close(now));
        until_closed(&mut ours, id);
        assert_options(&ours, expected);
        assert!(confirmed_window(&ours, false, 1000));
    }
    println!("no CCID in common, with a server");
    let mut ours = Dccp::new(options(&[Two]));
    let id = ours.connect(5202, SERVICE);
    ours.until(LIMIT, "refusal", |ours| ours.closed(id).is_some());
    trail(&ours, 5202, &[">Request", "<Response", ">Reset 6"]);
}

fn we_serve(guest: &Guest) {
    for (ccids, linux, expected) in WE_SERVE {
        println!("{ccids:?} with a client of {linux:?}");
        let mut ours = Dccp::new(options(ccids));
        ours.listen(6201, SERVICE);
        let mut found = None;
        let said = linux_client(&mut ours, guest, &format!("-p 6201 -m ping -n 20 -b 800000 {linux} -Q"), |ours| {
            for id in ours.at_port(6201) {
                ours.with(id, |it, now| {
                    for message in received(it) {
                        it.send(now, &message, SendOptions::default()).expect("room");
                    }
                });
                found = agreed(ours, id);
            }
        });
        assert!((15..=20).contains(&number(&said, "rx_pkts")), "{said}");
        assert_eq!(found, Some(expected));
        assert_options(&ours, expected);
        assert!(confirmed_window(&ours, false, 1000) && confirmed_window(&ours, true, LINUX_WINDOW));
    }
    println!("no CCID in common, with a client");
    let mut ours = Dccp::new(options(&[Two]));
    ours.listen(6201, SERVICE);
    let said = linux_client(&mut ours, guest, "-p 6201 -m ping -n 5 -C 3 -Q", |_| {});
    assert_eq!(said.trim(), "error=connect err=\"Operation not supported\"");
    trail(&ours, 6201, &["<Request", ">Reset 6"]);
}

pub(crate) fn all(guest: &Guest) {
    linux_serves(guest);
    we_serve(guest);
}
