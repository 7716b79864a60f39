use super::guest::{Guest, Kept};
use super::outputs::Outputs;
use crate::cmd::neighbour::Figures;
use crate::cmd::watch::{Meter, Pulse};
use braidcast_core::Instant;
use braidcast_sctp::CloseReason;
use braidcast_session::Report;

/// One channel: its outputs, and how its streams went.
pub(super) struct Room {
    /// Empty if there is only one.
    pub(super) name: String,
    /// What was asked for, for people.
    pub(super) to: String,
    pub(super) outputs: Outputs,
    /// For the figures of pages, and for the statistics.
    pub(super) meters: [Meter; 2],
    /// For the terminal.
    pub(super) pulse: Pulse,
    /// The present stream is a neighbour's.
    pub(super) guest: Option<Guest>,
    /// The last stream was a neighbour's, and this is how it went.
    pub(super) last_guest: Option<Kept>,
    pub(super) connected: bool,
    pub(super) reliable: bool,
    /// An output failed; it is opened again for the next stream.
    pub(super) failed: bool,
    /// The application was asked to put everything where it stays.
    pub(super) flush_asked: bool,
    pub(super) complete: u64,
    pub(super) broken: u64,
    /// How the last stream ended.
    pub(super) end: Option<(bool, CloseReason)>,
}

impl Room {
    pub(super) fn new(name: &str, to: String, outputs: Outputs) -> Self {
        Self {
            name: name.into(),
            to,
            outputs,
            meters: Default::default(),
            pulse: Pulse::default(),
            guest: None,
            last_guest: None,
            connected: false,
            reliable: false,
            failed: false,
            flush_asked: false,
            complete: 0,
            broken: 0,
            end: None,
        }
    }

    /// How the present or last stream goes, if it is a neighbour's.
    pub(super) fn guest_report(&self, now: Instant) -> Option<Report> {
        let present = self.guest.as_ref().map(|guest| guest.report(now));
        present.or_else(|| self.last_guest.as_ref().map(|it| it.report.clone()))
    }

    /// Figures of the neighbour that sends, or sent last.
    pub(super) fn source(&self) -> Option<Figures> {
        let present = self.guest.as_ref().map(Guest::figures);
        present.or_else(|| self.last_guest.as_ref().map(|it| it.figures.clone()))
    }

    /// Figures of all its neighbours: the one that sends, and those that are outputs.
    pub(super) fn neighbours(&self) -> Vec<Figures> {
        self.source().into_iter().chain(self.outputs.neighbours()).collect()
    }

    /// How a neighbour's stream is protected, for people.
    pub(super) fn guest_protection(&self) -> Option<String> {
        let present = self.guest.as_ref().map(Guest::protection);
        present.or_else(|| self.last_guest.as_ref().map(|it| it.protection.clone()))
    }

    /// What stands before a message about it.
    pub(super) fn prefix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) }
    }
}
