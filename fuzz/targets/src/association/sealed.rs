//! Packets of a protected association as one with its keys sees and makes them.

use crate::tap::Tap;
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::wire::{Chunk, Header, Packet, Parameters, RawChunk, begin, binding, padded, seal};
use braidcast_secure::{Carrier, Content, Offer, Role, Transcript};

/// What both ends offered, and the keys that follow.
#[derive(Default)]
pub(crate) struct Spy {
    /// Of who sent INIT, and who that is.
    first: Option<(usize, Offer)>,
    init: Vec<u8>,
    tap: Option<Tap>,
    /// An end asks by another association who is there; its records have keys that are not ours.
    several: bool,
}

fn offer(parameters: Parameters<'_>) -> Option<Offer> {
    let raw = parameters.iter().flatten().find(|raw| raw.kind == Offer::PARAMETER)?;
    Offer::parse(raw.value).ok()
}

impl Spy {
    /// The epoch that `end` seals in; `None` before there are keys.
    pub(crate) fn epoch(&self, end: usize) -> Option<u64> {
        self.tap.as_ref().map(|tap| tap.epoch(end))
    }

    /// Returns `true` if there was more than one association.
    pub(crate) const fn saw_several(&self) -> bool {
        self.several
    }

    /// What `end` sent, in clear, and the epoch that it was sealed in. `None` if the record cannot be opened.
    pub(crate) fn uncover(&mut self, end: usize, datagram: &[u8]) -> Option<(Vec<u8>, Option<u64>)> {
        let packet = Packet::parse(datagram).expect("a valid packet");
        let raw = packet.chunks().next().expect("a chunk").expect("framed");
        if raw.kind != kind::DTLS {
            self.learn(end, raw);
            return Some((datagram.to_vec(), None));
        }
        let (epoch, _, text) = self.tap.as_mut()?.open(end, None, &raw.value[1..])?;
        let mut clear = Vec::new();
        begin(&mut clear, packet.header);
        clear.extend_from_slice(&text);
        seal(&mut clear);
        Some((clear, Some(epoch)))
    }

    fn learn(&mut self, end: usize, raw: RawChunk<'_>) {
        match (Chunk::parse(raw).expect("a valid chunk"), self.first) {
            (Chunk::Init(_), _) if self.tap.is_some() && self.init != raw.bytes => self.several = true,
            (Chunk::InitAck(_), _) if self.several => {}
            (Chunk::Init(init), _) => {
                self.first = offer(init.parameters).map(|offer| (end, offer));
                self.init = raw.bytes.to_vec();
            }
            (Chunk::InitAck(init), Some((from, theirs))) if from != end => {
                let Some(ours) = offer(init.parameters) else { return };
                let Ok((role, _)) = ours.agree(&theirs) else { return };
                let (tls_client, client, server) =
                    if role == Role::Client { (end, ours, theirs) } else { (from, theirs, ours) };
                let bound = binding(&self.init, raw.bytes);
                self.tap = Some(Tap::new(Transcript { carrier: Carrier::Sctp, client, server, bound }, tls_client));
            }
            _ => {}
        }
    }

    /// The packet as `end` would send it under the keys of `epoch`.
    pub(crate) fn cover(&mut self, end: usize, epoch: Option<u64>, packet: &[u8]) -> Vec<u8> {
        let (Some(tap), Some(epoch)) = (&mut self.tap, epoch) else { return packet.to_vec() };
        let (header, chunks) = packet.split_at(Header::LEN);
        let record = tap.seal(end, epoch, None, Content::Application, chunks);
        let len = 5 + record.len();
        let [high, low] = (len as u16).to_be_bytes();
        let mut covered = [header, &[kind::DTLS, 0, high, low, 0], &record].concat();
        covered.resize(Header::LEN + padded(len), 0);
        seal(&mut covered);
        covered
    }
}
