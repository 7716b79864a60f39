//! Calls that are refused (THESIS §4.9): who begins one while no more fit is not carried.

use super::class::Class;
use super::event::TunnelEvent;
use super::machine::{LinkId, Tunnel};
use braidcast_core::{Instant, Route};
use braidcast_dccp::{Admission, Verdict};

impl Tunnel {
    /// Returns `true` if a datagram of an application at `from` is carried to the end `link`, where calls are counted
    /// ([`Settings::admission`](super::Settings::admission)).
    pub(super) fn is_admitted(&mut self, now: Instant, link_id: LinkId, from: Route, class: Class) -> bool {
        let is_call = class.priority.is_none_or(|priority| priority.get() == 0);
        let Some(call) = self.settings.admission.filter(|_| is_call) else { return true };
        let Some(link) = self.links.get_mut(&link_id) else { return true };
        // Without a connection it is dropped as all is.
        let Some(connection) = link.connection else { return true };
        let (endpoint, most) = (&self.endpoint, self.settings.wanted.max.unwrap_or(f64::INFINITY));
        let allowed = || {
            let mut report = endpoint.report(now, connection)?;
            report.ccid.allowed_rate = report.ccid.allowed_rate.map(|rate| rate.min(most));
            Some((report.sending, report.ccid))
        };
        let calls = link.calls.get_or_insert_with(|| Admission::new(call));
        let verdict = calls.take(now, (from.socket, from.remote), allowed);
        if verdict == Verdict::NewlyRefused {
            self.events.push_back(TunnelEvent::CallRefused(link_id, from.remote));
        }
        let admitted = verdict == Verdict::Carried;
        link.dropped.refused_calls += u64::from(!admitted);
        admitted
    }
}
