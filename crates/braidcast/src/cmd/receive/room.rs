use super::outputs::Outputs;
use crate::cmd::watch::{Meter, Pulse};
use braidcast_sctp::CloseReason;

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
            connected: false,
            reliable: false,
            failed: false,
            flush_asked: false,
            complete: 0,
            broken: 0,
            end: None,
        }
    }

    /// What stands before a message about it.
    pub(super) fn prefix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) }
    }
}
