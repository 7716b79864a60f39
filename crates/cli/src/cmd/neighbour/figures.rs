//! How a neighbour's connection goes, for programs.

use super::shown;
use crate::cmd::rtp::Network;
use braidcast_gateway::srt::Report;
use braidcast_gateway::srtla::LinkReport;
use serde::Serialize;
use std::time::Duration;

/// What `--json` and `--stats` print of a neighbour.
#[derive(Clone, Serialize, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) protocol: &'static str,
    pub(crate) remote: Option<String>,
    /// Of a sender over several links, or of networks that bring the same packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<LinkFigures>,
    pub(crate) connected: bool,
    pub(crate) stream_id: String,
    /// 0: not encrypted.
    pub(crate) key_bytes: usize,
    pub(crate) latency_ms: f64,
    pub(crate) peer_latency_ms: f64,
    /// From when a source sends until its stream is played where we send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_latency_ms: Option<f64>,
    pub(crate) rtt_ms: f64,
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) missing_packets: u64,
    pub(crate) recovered_packets: u64,
    pub(crate) skipped_packets: u64,
    pub(crate) undecrypted_packets: u64,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) repeated_packets: u64,
    pub(crate) dropped_packets: u64,
}

/// Of one link of several.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct LinkFigures {
    pub(crate) remote: String,
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
}

impl LinkFigures {
    /// Of a network that brings packets of RTP.
    pub(crate) fn of_network(network: &Network) -> Self {
        Self { remote: network.name.clone(), received_packets: network.packets, received_bytes: network.bytes }
    }

    fn of(link: &LinkReport) -> Self {
        Self { remote: link.remote.to_string(), received_packets: link.packets, received_bytes: link.bytes }
    }
}

/// A connection as it was when it was looked at last.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) report: Report,
    /// Of a sender over several links.
    pub(crate) links: Vec<LinkReport>,
}

impl Seen {
    /// Figures of a connection, or of none so far.
    pub(crate) fn figures(seen: Option<&Self>, protocol: &'static str, connected: bool) -> Figures {
        let Some(Self { report, links }) = seen else { return Figures { protocol, ..Figures::default() } };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (received, sent) = (&report.received, &report.sent);
        Figures {
            protocol,
            remote: (protocol != "srtla").then(|| report.peer.to_string()),
            links: links.iter().map(LinkFigures::of).collect(),
            connected,
            stream_id: shown(&report.stream_id),
            key_bytes: report.key_bytes,
            latency_ms: ms(report.latency),
            peer_latency_ms: ms(report.peer_latency),
            total_latency_ms: None,
            rtt_ms: ms(report.rtt),
            received_packets: received.packets,
            received_bytes: received.bytes,
            missing_packets: received.missing,
            recovered_packets: received.recovered,
            skipped_packets: received.skipped,
            undecrypted_packets: received.undecrypted,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            repeated_packets: sent.repeated,
            dropped_packets: sent.dropped,
        }
    }
}
