//! Calls that are refused (THESIS §4.9): who begins one while no more fit is not carried.

use super::class::Class;
use super::event::TunnelEvent;
use super::machine::{LinkId, Tunnel};
use braidcast_core::{Instant, Route};
use braidcast_dccp::{Admission, Call, Verdict};

impl Tunnel {
    /// Whether a datagram of an application at `from` is carried to the end `link`, where calls are counted
    /// ([`Settings::admission`](super::Settings::admission)).
    pub(super) fn is_admitted(&mut self, now: Instant, link_id: LinkId, from: Route, class: Class) -> bool {
        let is_call = class.priority.is_none_or(|priority| priority.get() == 0);
        let Some(call) = self.settings.admission.filter(|_| is_call) else { return true };
        let Some(link) = self.links.get_mut(&link_id) else { return true };
        // Without a connection it is dropped as all is.
        let Some(report) = link.connection.and_then(|id| self.endpoint.report(now, id)) else { return true };
        let most = self.settings.wanted.max.unwrap_or(f64::INFINITY);
        let mut ccid = report.ccid;
        ccid.allowed_rate = ccid.allowed_rate.map(|rate| rate.min(most));
        let calls = link.calls.get_or_insert_with(|| Admission::new(call));
        let more = |call: &Call, carried| call.more_that_fit(report.sending, &ccid, carried);
        let verdict = calls.take(now, (from.socket, from.remote), more);
        if verdict == Verdict::NewlyRefused {
            self.events.push_back(TunnelEvent::CallRefused(link_id, from.remote));
        }
        let admitted = verdict == Verdict::Carried;
        link.dropped.refused_calls += u64::from(!admitted);
        admitted
    }
}
