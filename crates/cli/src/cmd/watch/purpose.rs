//! What packets are for, in words, by the events that are told while they are made.

use braidcast_core::events::{FrameKind, SctpEvent, Sending, TraceEvent};
use braidcast_trace::Protocol;
use std::collections::VecDeque;
use std::fmt::Write;

/// Packets whose words wait for them; a turn of the driver makes fewer.
const MOST_WAITING: usize = 4096;
/// Bytes that encryption adds to a packet at most.
const MOST_ADDED: u32 = 64;
/// Words of a packet at most, in bytes.
const MOST_WORDS: usize = 1000;

/// Words for the packets that are being made.
#[derive(Debug, Default)]
pub(super) struct Purposes {
    /// Of the packet that is being made, or dealt with.
    sending: String,
    receiving: String,
    /// Bytes and words of the packets of SCTP that are made.
    waiting: VecDeque<(u32, String)>,
}

impl Purposes {
    pub(super) fn tell(&mut self, event: &TraceEvent) {
        use SctpEvent as E;
        let TraceEvent::Sctp(event) = event else { return };
        match *event {
            E::ChunkSent { tsn, message, sending, .. } => {
                let again = match sending {
                    Sending::New => String::new(),
                    Sending::Again(cause) => format!(" again ({})", cause.name()),
                    Sending::Copy => " as a copy".to_owned(),
                };
                say(&mut self.sending, format_args!("TSN {tsn}{}{again}", frame(message)));
            }
            E::RedundancySent { first, count, .. } => {
                let last = first.wrapping_add(u32::from(count).saturating_sub(1));
                say(&mut self.sending, format_args!("redundancy for TSN {first} to {last}"));
            }
            E::SackSent { cumulative, gaps, .. } => {
                say(&mut self.sending, format_args!("SACK of TSN {cumulative} and {gaps} blocks"));
            }
            E::ForwardSent { tsn, .. } => say(&mut self.sending, format_args!("nothing up to TSN {tsn} will come")),
            E::PacketSent { bytes, content, .. } => {
                let mut words = content.purpose.name().to_owned();
                if !self.sending.is_empty() {
                    words = format!("{words}: {}", self.sending);
                }
                self.sending.clear();
                if self.waiting.len() == MOST_WAITING {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((bytes, words));
            }
            E::ChunkReceived { tsn, new, .. } => {
                say(&mut self.receiving, format_args!("TSN {tsn}{}", if new { "" } else { ", which had come before" }));
            }
            E::ChunkRecovered { tsn, .. } => say(&mut self.receiving, format_args!("which repairs TSN {tsn}")),
            E::ChunkLost { tsn, cause, .. } => {
                say(&mut self.receiving, format_args!("TSN {tsn} is taken for lost ({})", cause.name()));
            }
            E::RedundancyReceived { first, count, .. } => {
                let last = first.wrapping_add(u32::from(count).saturating_sub(1));
                say(&mut self.receiving, format_args!("redundancy for TSN {first} to {last}"));
            }
            E::SackReceived { cumulative, gaps, .. } => {
                say(&mut self.receiving, format_args!("SACK of TSN {cumulative} and {gaps} blocks"));
            }
            E::ForwardReceived { tsn, .. } => {
                say(&mut self.receiving, format_args!("nothing up to TSN {tsn} will come"))
            }
            _ => {}
        }
    }

    /// Returns the words for a packet that leaves. Packets without an association, for example
    /// answers to a first packet, have none.
    pub(super) fn of_sent(&mut self, protocol: Protocol, payload: &[u8]) -> String {
        if protocol == Protocol::Dccp {
            return dccp(payload).unwrap_or_default();
        }
        let bytes = payload.len() as u32;
        match self.waiting.iter().position(|(len, _)| (*len..=len + MOST_ADDED).contains(&bytes)) {
            Some(place) => {
                self.waiting.drain(..place);
                self.waiting.pop_front().map_or_else(String::new, |(_, words)| words)
            }
            None => String::new(),
        }
    }

    /// The words for the packet that came last.
    pub(super) fn of_received(&mut self) -> String {
        core::mem::take(&mut self.receiving)
    }
}

/// ` of frame 308 (P)`.
fn frame(message: u64) -> String {
    if message == u64::MAX {
        return String::new();
    }
    format!(" of frame {} ({})", message >> 8, FrameKind::of((message & 0xff) as usize).name())
}

fn say(words: &mut String, more: std::fmt::Arguments<'_>) {
    if words.len() < MOST_WORDS {
        // A text in memory takes everything.
        let _ = write!(words, "{}{more}", if words.is_empty() { "" } else { "; " });
    }
}

/// Type and number of a packet of DCCP (RFC 4340 §5.1).
fn dccp(packet: &[u8]) -> Option<String> {
    let parsed = braidcast_dccp::wire::Packet::parse(packet, braidcast_dccp::wire::Checksum::Udp).ok()?;
    let (name, seq, bytes) = (parsed.header.kind.name(), parsed.header.seq, parsed.payload.len());
    Some(format!("{name} {seq} with {bytes} bytes"))
}
