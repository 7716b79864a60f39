//! The text of a ticket: anything may be pasted. What is taken for one comes back as it was.

use braidcast_relay::Ticket;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let Ok(ticket) = text.parse::<Ticket>() else { return };
    let again = ticket.text();
    assert_eq!(again.parse(), Ok(ticket));
    assert_eq!(again, text.trim().to_ascii_lowercase());
}
