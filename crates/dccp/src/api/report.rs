use super::ReorderReport;
use crate::ccid::{Ccid, CcidReport};
use core::fmt;
use core::time::Duration;

/// The states of RFC 4340 §4.3; LISTEN and TIMEWAIT belong to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// A client that has asked.
    Request,
    /// A server that has answered.
    Respond,
    /// A client that has its answer, but does not know whether the server knows.
    PartOpen,
    /// Data flows.
    Open,
    /// A server that has asked its client to close.
    CloseReq,
    /// An end that has closed and waits for the Reset.
    Closing,
    /// Over.
    Closed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "REQUEST",
            Self::Respond => "RESPOND",
            Self::PartOpen => "PARTOPEN",
            Self::Open => "OPEN",
            Self::CloseReq => "CLOSEREQ",
            Self::Closing => "CLOSING",
            Self::Closed => "CLOSED",
        })
    }
}

/// Counts over the life of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// Messages among them.
    pub sent_messages: u64,
    /// Packets that came, valid or not.
    pub received_packets: u64,
    /// Messages handed to the application, or waiting for it.
    pub received_messages: u64,
    /// Messages that were discarded unsent ([`SendOptions::deadline`](crate::SendOptions)).
    pub expired: u64,
    /// Messages that made room for others in a full queue, or found none.
    pub crowded_out: u64,
    /// Packets of padding sent ([`Options::padding`](crate::Options)).
    pub padding: u64,
    /// Messages that were discarded unsent as the path does not carry them any more.
    pub outgrown: u64,
    /// Packets whose numbers lay outside of the windows (RFC 4340 §7.5).
    pub invalid_packets: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Messages that came and were not handed over: buffer full, corrupt, too little coverage, nobody listening.
    pub dropped: u64,
    /// Holes in the numbers that came; some may have been filled later.
    pub holes: u64,
    /// Holes that are known to have held data, by NDP Count (RFC 4340 §7.7.1).
    pub data_holes: u64,
}

/// A connection as it is now.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Its state.
    pub state: State,
    /// Congestion control of what we send.
    pub sending: Ccid,
    /// Congestion control of what we get.
    pub receiving: Ccid,
    /// How the former is doing.
    pub ccid: CcidReport,
    /// The reordering buffer, if there is one.
    pub reorder: Option<ReorderReport>,
    /// Best guess of the round-trip time.
    pub rtt: Option<Duration>,
    /// Messages that wait to be sent.
    pub queued_messages: usize,
    /// Bytes in them.
    pub queued_bytes: usize,
    /// Sequence Window of ours (RFC 4340 §7.5.2).
    pub sequence_window: u64,
    /// The peer says that it is slow (RFC 4340 §11.6) in the last packet that said anything about what we send.
    pub peer_is_slow: bool,
    /// Counts.
    pub stats: Stats,
}
