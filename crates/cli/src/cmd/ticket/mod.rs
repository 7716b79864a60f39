//! Tickets: made, kept and shown by receivers, used by senders.

mod held;
mod store;
mod used;

pub(crate) use held::{ENDED, Held, LOOK_AT_TICKET, Meeting};
pub(crate) use store::{list, revoke, show};
pub(crate) use used::Towards;

use crate::args::values::Remote;
use crate::failure::Outcome;
use crate::out::text;
use braidcast_relay::Reach;
use jiff::civil::Date;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use std::io::{self, IsTerminal};

/// Prints a ticket on stdout: a line, and on a terminal a QR code of it for who has a camera there.
fn print(line: &str) -> Outcome {
    text::print(line)?;
    if io::stdout().is_terminal() {
        // It fits: a ticket is shorter than any QR code's limit.
        return qr(line).map_or(Ok(()), |code| text::print(&code));
    }
    Ok(())
}

/// The QR code of a ticket, light on dark as terminals are. Capital letters make it smaller, and a ticket with them is
/// the same.
fn qr(line: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(line.to_uppercase(), EcLevel::L).ok()?;
    Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_of_many_places_still_fits_on_a_screen() {
        let code = |places: usize| qr(&format!("braid:{}", "a".repeat(130 + 35 * places))).unwrap();
        let lines = code(1).lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        assert!(lines.len() <= 25 && lines.iter().all(|width| *width == lines[0] && *width <= 49), "{lines:?}");
        assert!(code(8).lines().count() < 40);
    }
}
