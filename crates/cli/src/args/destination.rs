//! `--to`: where a stream goes.

use super::values::{self, Remote};
use braidcast_relay::Ticket;
use std::path::PathBuf;

/// An address, or a ticket that has all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum To {
    Remote(Remote),
    Ticket(Box<Ticket>),
    /// A ticket in a file.
    File(PathBuf),
}

/// `HOST:PORT`, `braid:…` or `@FILE`.
pub(crate) fn to(text: &str) -> Result<To, String> {
    if let Some(path) = text.strip_prefix('@') {
        return if path.is_empty() { Err("a file is missing behind @".into()) } else { Ok(To::File(path.into())) };
    }
    if Ticket::is_meant(text) {
        return text.parse().map(|ticket| To::Ticket(Box::new(ticket))).map_err(|error| error.to_string());
    }
    values::peer(text).map(To::Remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_tickets_and_files_are_told_apart() {
        assert!(matches!(to("home.example:9000"), Ok(To::Remote(_))));
        assert_eq!(to("@ticket.txt"), Ok(To::File("ticket.txt".into())));
        assert!(to("@").unwrap_err().contains("a file is missing"));
        assert!(to("braid:abc").unwrap_err().contains("cut off"));
        assert!(to("braid:ABC1").unwrap_err().contains("character 10"));
        // A host of that name has a port.
        assert!(to("braidcast.example:9000").is_ok());
    }
}
