//! Loss, delay and data in both directions, CCID 2 and 3 at once.

use super::flows::{number_of, plain, received, send};
use super::link::{self, Ends};
use super::{LIMIT, connect, number, options};
use braidcast_dccp::{Ccid, Connection, ConnectionId, Report};
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::Guest;
use std::time::Duration;

/// How long data flows.
const FLOW: Duration = Duration::from_secs(6);
/// Messages per second that each direction carries at least. The formula of RFC 5348 §3.1 gives 120
/// at 2 % and 70 ms; in slow start and on a busy machine it may be much less.
const LEAST: f64 = 20.0;

/// A connection with a server that sends as fast as it may.
struct Flow {
    id: ConnectionId,
    /// Our next message.
    next: u32,
    /// Linux's messages that came, and the greatest number among them.
    came: u32,
    newest: u32,
    report: Option<Report>,
}

impl Flow {
    fn go_on(&mut self, connection: &mut Connection, now: braidcast_core::Instant) {
        send(connection, now, &mut self.next, u32::MAX, plain);
        for bytes in received(connection) {
            let seq = number_of(&bytes);
            // Nothing overtakes on this link, so what comes again would be less than the newest.
            assert!(self.came == 0 || seq > self.newest, "message {seq} after {}", self.newest);
            (self.came, self.newest) = (self.came + 1, seq);
        }
        self.report = Some(connection.report(now));
    }

    /// What the three counts of losses of our messages say: Linux's gaps, and what we were told by `ccid`.
    fn judge(&self, ccid: Ccid, said: &str) {
        let report = self.report.unwrap();
        let (sent, taken) = (report.stats.sent_messages, number(said, "rx_pkts"));
        let gaps = number(said, "gaps");
        println!("  {ccid}: {sent} sent, {taken} taken, {gaps} missing; {} came of {}", self.came, self.newest + 1);
        println!("  {:?}", report.ccid);
        let least = (LEAST * FLOW.as_secs_f64()) as u64;
        assert!(taken > least && u64::from(self.came) > least);
        assert_eq!(number(said, "late"), 0, "{said}");
        assert!(taken + gaps <= sent, "{said}");
        let lost_by_us = u64::from(self.newest + 1 - self.came);
        // Losses in a row make one hole, and so may a lost acknowledgement of Linux's.
        assert!(report.stats.holes > 0 && report.stats.holes <= 2 * lost_by_us + 20, "{report:?}");
        if ccid == Ccid::Two {
            // A timeout takes packets in flight for lost; the last losses are not known yet.
            let counted = report.ccid.lost as i64 - gaps as i64;
            let timeouts = report.ccid.timeouts as i64;
            assert!((-15..=15 + 5 * timeouts).contains(&counted), "{gaps} missing, {report:?}");
        } else {
            let p = report.ccid.loss_event_rate.unwrap();
            assert!((0.002..0.2).contains(&p), "{report:?}");
        }
    }
}

pub(crate) fn all(guest: &Guest) {
    link::prepare(guest, Ends::Ours);
    link::emulate(guest, Ends::Ours, "delay 30ms loss 2%");
    let listen = |n| format!("lp-start ccid{n} dccp_peer -l -p 540{n} -1 -m source -C {n} -S TEST -Q");
    let (said, status) = guest.shell(&format!("{}; {}", listen(2), listen(3)));
    assert!(status.success(), "{said}");
    // Linux's CCIDs are fixed, so both connections can be had from one endpoint.
    let mut ours = Dccp::new(options(&[Ccid::Two, Ccid::Three]));
    let mut flows = [5402, 5403].map(|port| {
        let id = connect(&mut ours, port);
        Flow { id, next: 0, came: 0, newest: 0, report: None }
    });
    let end = ours.now() + FLOW;
    ours.until(FLOW + LIMIT, "flows", |ours| {
        for flow in &mut flows {
            let alive = ours.with(flow.id, |it, now| flow.go_on(it, now));
            assert!(alive.is_some(), "{:?}", ours.events.last());
        }
        ours.now() >= end
    });
    for (flow, ccid) in flows.iter().zip([Ccid::Two, Ccid::Three]) {
        flow.judge(ccid, &guest.stop(&ccid.to_string()));
    }
}
