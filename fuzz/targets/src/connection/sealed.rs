//! Packets of a protected connection as one with its keys sees and makes them.

use crate::tap::Tap;
use arbitrary::{Result, Unstructured};
use braidcast_dccp::wire::{Kind, Packet, binding};
use braidcast_secure::{Carrier, Content, Offer, Opener, Transcript};
use std::collections::VecDeque;

/// First byte of a fragment of key messages, and bytes before its own.
const FRAGMENT: u8 = 22;
/// Records that the honest end may have sealed since the last forged one, so that the numbers of
/// neither shut out the other's.
const AHEAD: usize = 40;

/// Connections whose keys are kept: a Request that comes again may begin one of its own, with the
/// same keys where all that follows comes again too. That these are the same is a matter of this
/// method, which draws nothing at random.
const CONNECTIONS: usize = 4;

/// What both ends offered, and the keys that follow, of the last few connections.
#[derive(Default)]
pub(crate) struct Spy {
    offered: Option<Offer>,
    bound: [u8; 16],
    /// The last one is that of the last record.
    taps: VecDeque<Tap>,
}

/// What a packet offers: Mandatory, the option's type, its length, the offer.
fn offer(header: &[u8]) -> Option<Offer> {
    let at = header.windows(2).position(|it| it == [1, 120])? + 2;
    let len = usize::from(*header.get(at)?).checked_sub(2)?;
    Offer::parse(header.get(at + 1..at + 1 + len)?).ok()
}

/// All of the header but for ports and checksum.
fn authenticated(header: &[u8]) -> Vec<u8> {
    let mut before = header.to_vec();
    before[0..4].fill(0);
    before[6..8].fill(0);
    before
}

impl Spy {
    /// A packet that `end` sent. Returns `true` if it is in clear, if that is allowed, or opens.
    pub(crate) fn see(&mut self, end: usize, packet: &Packet<'_>) -> bool {
        let bytes = packet.as_bytes();
        let header = &bytes[..bytes.len() - packet.payload.len()];
        match packet.header.kind {
            Kind::Request { service } => {
                self.offered = offer(header);
                self.bound = binding(service, &packet.options);
            }
            Kind::Response { .. } => {
                if let (Some(client), Some(server)) = (self.offered, offer(header)) {
                    self.begin(client, server);
                }
            }
            _ => {}
        }
        if self.taps.is_empty() || Opener::low_bits(packet.payload).is_none() {
            return true;
        }
        let before = authenticated(header);
        let opened = self.taps.iter_mut().rposition(|tap| tap.open(end, Some(&before), packet.payload).is_some());
        if let Some(tap) = opened.and_then(|place| self.taps.remove(place)) {
            self.taps.push_back(tap);
        }
        opened.is_some()
    }

    fn begin(&mut self, client: Offer, server: Offer) {
        if self.taps.len() == CONNECTIONS {
            self.taps.pop_front();
        }
        let transcript = Transcript { carrier: Carrier::Dccp, client, server, bound: self.bound };
        self.taps.push_front(Tap::new(transcript, 0));
    }

    /// Puts an authentic record of `end` in place of the data of the packet `bytes`, whose data are
    /// three bytes: data, or a fragment of key messages. Some packets stay as they are.
    pub(crate) fn forge(&mut self, end: usize, bytes: &mut Vec<u8>, input: &mut Unstructured<'_>) -> Result<()> {
        let Some(tap) = self.taps.back_mut().filter(|_| !input.ratio(1, 8).unwrap_or(true)) else { return Ok(()) };
        let content = if input.arbitrary()? { Content::Handshake } else { Content::Application };
        let len = usize::from(input.arbitrary::<u8>()?).min(input.len());
        let mut text = input.bytes(len)?.to_vec();
        if content == Content::Handshake
            && let Some(first) = text.first_mut()
            && *first < 0xF0
        {
            *first = FRAGMENT;
        }
        bytes.truncate(bytes.len() - 3);
        let (before, epoch) = (authenticated(bytes), tap.epoch(end));
        // The numbers of the honest end are in use.
        for _ in 0..AHEAD {
            tap.seal(end, epoch, Some(&before), content, &[]);
        }
        let record = tap.seal(end, epoch, Some(&before), content, &text);
        bytes.extend_from_slice(&record);
        Ok(())
    }
}
