//! Tickets: made, kept and shown by receivers, used by senders.

mod held;
mod store;
mod used;

pub(crate) use held::Held;
pub(crate) use store::{list, revoke, show};
pub(crate) use used::Towards;

use crate::args::values::Remote;
use braidcast_relay::Reach;
use jiff::civil::Date;

/// A place of a ticket.
fn reach(remote: &Remote, is_relay: bool) -> Reach {
    Reach { is_relay, host: remote.host.clone(), port: remote.port }
}

/// The last second of a day here, in s since 1970.
fn end_of(day: Date) -> Option<u64> {
    let next = day.tomorrow().ok()?.to_zoned(jiff::tz::TimeZone::system()).ok()?;
    u64::try_from(next.timestamp().as_second()).ok()
}

/// Returns `true` if that time, in s since 1970, has come.
fn is_over(until: Option<u64>) -> bool {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default();
    until.is_some_and(|until| until <= now)
}

/// That time, for people.
fn moment(until: u64) -> String {
    let at = i64::try_from(until).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    at.map_or_else(
        || "then".into(),
        |at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}
