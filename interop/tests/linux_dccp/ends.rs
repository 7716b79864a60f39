//! Who ends a connection, and how; and who is not let in.

use super::flows::give;
use super::{LIMIT, SERVICE, connect, linux_client, options, trail, until_closed, value};
use braidcast_dccp::wire::ResetCode;
use braidcast_dccp::{Ccid, CloseReason, ConnectionId, Event, Options, SendOptions, ServiceCode};
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::{Guest, HOST};

const OTHER_SERVICE: ServiceCode = ServiceCode(0x4f54_4852);
/// A few messages at a leisurely pace, then the end: Linux drops what waits in its queue when it closes.
const FEW: &str = "-m source -n 10 -b 400000 -C 2 -Q";

/// How `id` ended.
fn ended(ours: &mut Dccp, id: ConnectionId) -> CloseReason {
    ours.until(LIMIT, "the end", |ours| ours.closed(id).is_some());
    ours.closed(id).unwrap().clone()
}

/// The connection was reset by Linux for this reason.
fn assert_reset(reason: &CloseReason, code: ResetCode) {
    assert!(matches!(reason, CloseReason::Reset(reset, _) if reset.code == code), "{reason:?}");
}

/// Runs a bit longer, for what may still come.
fn linger(ours: &mut Dccp) {
    let end = ours.now() + core::time::Duration::from_millis(100);
    ours.until(LIMIT, "a pause", |ours| ours.now() >= end);
}

fn linux_serves(guest: &Guest) {
    let start = [
        "lp-start a dccp_peer -l -p 5101 -S TEST -Q".to_owned(),
        format!("lp-start b dccp_peer -l -p 5102 -S TEST {FEW}"),
        "lp-start d dccp_peer -l -p 5104 -S TEST -1 -Q".to_owned(),
    ];
    let (said, status) = guest.shell(&start.join("; "));
    assert!(status.success(), "{said}");
    let mut ours = Dccp::new(options(&[Ccid::Two]));

    println!("a client closes: we");
    let id = connect(&mut ours, 5101);
    give(&mut ours, id, 10);
    ours.with(id, |it, now| it.close(now));
    until_closed(&mut ours, id);
    trail(&ours, 5101, &[">Request", "<Response", ">Close", "<Reset 1"]);
    ours.forget_seen();

    println!("a server closes: Linux");
    let id = connect(&mut ours, 5102);
    until_closed(&mut ours, id);
    trail(&ours, 5102, &[">Request", "<Response", "<CloseReq", ">Close", "<Reset 1"]);

    println!("we abort");
    let id = connect(&mut ours, 5101);
    give(&mut ours, id, 1);
    ours.with(id, |it, _| it.abort());
    assert_eq!(ended(&mut ours, id), CloseReason::Aborted);
    linger(&mut ours);
    trail(&ours, 5101, &[">Request", "<Response", ">Reset 2"]);
    ours.forget_seen();

    println!("Linux aborts");
    let id = connect(&mut ours, 5104);
    // A program that ends with data unread.
    guest.shell("kill -STOP $(cat /tmp/d.pid)");
    give(&mut ours, id, 10);
    ours.meanwhile(|| guest.shell("kill -KILL $(cat /tmp/d.pid)"), |_| {});
    assert_reset(&ended(&mut ours, id), ResetCode::ABORTED);
    trail(&ours, 5104, &[">Request", "<Response", "<Reset 2"]);

    println!("the service is another, or nobody listens");
    let id = ours.connect(5101, OTHER_SERVICE);
    assert_reset(&ended(&mut ours, id), ResetCode::BAD_SERVICE_CODE);
    let id = ours.connect(5199, SERVICE);
    // RFC 4340 §5.6 has Connection Refused for that, which Linux never sends.
    assert_reset(&ended(&mut ours, id), ResetCode::NO_CONNECTION);
}

fn we_serve(guest: &Guest) {
    let mut ours = Dccp::new(options(&[Ccid::Two]));
    ours.listen(6101, SERVICE);
    ours.listen(6102, OTHER_SERVICE);

    println!("a client closes: Linux");
    let said = linux_client(&mut ours, guest, &format!("-p 6101 {FEW}"), |_| {});
    assert_eq!(value(&said, "tx_pkts"), "10");
    trail(&ours, 6101, &["<Request", ">Response", "<Close", ">Reset 1"]);
    ours.forget_seen();

    println!("a server closes: we");
    let said = close_what_comes(&mut ours, guest);
    assert_eq!(value(&said, "why"), "\"eof\"");
    trail(&ours, 6101, &["<Request", ">Response", ">CloseReq", "<Close", ">Reset 1"]);
    ours.forget_seen();

    println!("we abort");
    linux_client(&mut ours, guest, "-p 6101 -m sink -Q", |ours| {
        for id in established(ours) {
            ours.with(id, |it, _| it.abort());
        }
    });
    trail(&ours, 6101, &["<Request", ">Response", ">Reset 2"]);
    ours.forget_seen();

    println!("Linux aborts");
    let client = format!("dccp_peer -h {} -p 6101 -S TEST -m sink -Q", HOST[0]);
    let script = format!("{client} & sleep 1; kill -STOP $!; sleep 0.5; kill -KILL $!");
    let unread = |ours: &mut Dccp| {
        for id in established(ours) {
            // Refused while much waits.
            ours.with(id, |it, now| it.send(now, b"unread", SendOptions::default()).ok());
        }
    };
    ours.meanwhile(|| guest.shell(&script), unread);
    linger(&mut ours);
    let Some((_, Event::Closed(reason))) = ours.events.last() else { panic!("{:?}", ours.events) };
    assert_reset(reason, ResetCode::ABORTED);

    println!("the service is another, or nobody listens");
    for (port, error) in [(6102, "Invalid request code"), (6199, "Connection refused")] {
        let said = linux_client(&mut ours, guest, &format!("-p {port} -m sink -Q"), |_| {});
        assert_eq!(said.trim(), format!("error=connect err=\"{error}\""));
    }
    trail(&ours, 6102, &["<Request", ">Reset 8"]);
    trail(&ours, 6199, &["<Request", ">Reset 7"]);
    drop(ours);

    println!("a server closes and keeps TIMEWAIT: we");
    let mut ours = Dccp::new(Options { server_holds_time_wait: true, ..options(&[Ccid::Two]) });
    ours.listen(6101, SERVICE);
    close_what_comes(&mut ours, guest);
    trail(&ours, 6101, &["<Request", ">Response", ">Close", "<Reset 1"]);
}

/// The connections that Linux has with us.
fn established(ours: &Dccp) -> Vec<ConnectionId> {
    ours.at_port(6101).into_iter().filter(|&id| ours.is_connected(id)).collect()
}

/// Linux connects, and we close.
fn close_what_comes(ours: &mut Dccp, guest: &Guest) -> String {
    linux_client(ours, guest, "-p 6101 -m sink -Q", |ours| {
        for id in established(ours) {
            ours.with(id, |it, now| it.close(now));
        }
    })
}

pub(crate) fn all(guest: &Guest) {
    linux_serves(guest);
    we_serve(guest);
}
