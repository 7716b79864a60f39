//! What a capture shows of SCTP and DCCP, as the events that the end which captured would have told.

use braidcast_core::events::{DccpEvent, Loss, SctpEvent, Sending, TraceEvent};
use braidcast_core::{Instant, PathId};
use braidcast_dccp::wire::{Checksum, Packet as DccpPacket};
use braidcast_sctp::wire::Packet;
use braidcast_sctp::wire::chunk::{Chunk, ForwardTsn, IForwardTsn, NrSack, Sack, kind};
use braidcast_trace::{Carrier, Heard, Record};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Protocol numbers (RFC 9260 §14, RFC 4340 §19).
const SCTP: u8 = 132;
const DCCP: u8 = 33;
/// DCCP's port over UDP (RFC 6773 §3.8).
const DCCP_UDP: u16 = 6511;
/// Connections that are told apart at most: a capture has few, and each costs some hundred bytes.
const MOST_CONNECTIONS: usize = 10_000;

/// Listens to the packets of a capture.
///
/// Which packets left is what the capture says; if it does not, those of the end that spoke
/// first did. What was lost is known by what was sent again.
#[derive(Debug, Default)]
pub struct Listener {
    associations: Vec<Association>,
    /// By the tag in the packets of one direction, or of the other: the place in `associations`,
    /// and whether those packets left.
    by_tag: HashMap<u32, (usize, bool)>,
    /// Addresses here, if the capture does not say what left.
    here: HashSet<IpAddr>,
    dccp: HashMap<(SocketAddr, SocketAddr, u16, u16), u32>,
    encrypted: u64,
    foreign: u64,
}

/// An SCTP association.
#[derive(Debug)]
struct Association {
    /// SCTP ports, ours first.
    ports: (u16, u16),
    local_tag: Option<u32>,
    peer_tag: Option<u32>,
    opened: bool,
    /// Addresses here and there; packets of one path pass one interface.
    paths: Vec<(SocketAddr, SocketAddr, u32)>,
    /// What was sent from here and is not cumulatively acknowledged, by its number from the first
    /// on: over which path, and whether a gap block acknowledged it.
    out: BTreeMap<i64, (u16, bool)>,
    first_out: Option<u32>,
    acknowledged: i64,
    /// What came above the highest number below which all came.
    came: HashSet<u32>,
    cumulative: Option<u32>,
}

impl Association {
    fn new(ports: (u16, u16)) -> Self {
        Self {
            ports,
            local_tag: None,
            peer_tag: None,
            opened: false,
            paths: Vec::new(),
            out: BTreeMap::new(),
            first_out: None,
            acknowledged: -1,
            came: HashSet::new(),
            cumulative: None,
        }
    }

    fn path(&mut self, path: (SocketAddr, SocketAddr, u32)) -> PathId {
        let known = self.paths.iter().position(|known| *known == path);
        let place = known.unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        });
        PathId(place.min(250) as u16)
    }

    /// The number from the first one on.
    fn relative(&mut self, tsn: u32) -> i64 {
        let first = *self.first_out.get_or_insert(tsn);
        i64::from(tsn.wrapping_sub(first) as i32)
    }

    fn tsn(&self, relative: i64) -> u32 {
        self.first_out.unwrap_or(0).wrapping_add(relative as u32)
    }

    /// Data leaves.
    fn sent(&mut self, path: PathId, (tsn, bytes, stream): (u32, u16, u16), tell: &mut dyn FnMut(SctpEvent)) {
        let number = self.relative(tsn);
        let before = self.out.insert(number, (path.0, false));
        if let Some((before, _)) = before {
            tell(SctpEvent::ChunkLost { path: Some(PathId(before)), tsn, cause: Loss::Reported });
        }
        let again = before.is_some() || number <= self.acknowledged;
        let sending = if again { Sending::Again(Loss::Reported) } else { Sending::New };
        tell(SctpEvent::ChunkSent { path, tsn, bytes, stream, message: u64::MAX, sending });
    }

    /// An acknowledgement came.
    fn acked(&mut self, sack: &Sack<'_>, tell: &mut dyn FnMut(SctpEvent)) {
        let Some(first) = self.first_out else { return };
        let cumulative = i64::from(sack.cumulative_tsn.wrapping_sub(first) as i32);
        while let Some(entry) = self.out.first_entry().filter(|it| *it.key() <= cumulative) {
            let (number, (path, told)) = entry.remove_entry();
            if !told {
                tell(SctpEvent::ChunkAcked { path: Some(PathId(path)), tsn: self.tsn(number), spurious: false });
            }
        }
        self.acknowledged = self.acknowledged.max(cumulative);
        let base = self.first_out.unwrap_or(0);
        for gap in sack.gaps.iter().filter(|gap| gap.start <= gap.end) {
            let (from, to) = (cumulative + i64::from(gap.start), cumulative + i64::from(gap.end));
            for (number, (path, told)) in self.out.range_mut(from..=to).filter(|(_, (_, told))| !told) {
                *told = true;
                let tsn = base.wrapping_add(*number as u32);
                tell(SctpEvent::ChunkAcked { path: Some(PathId(*path)), tsn, spurious: false });
            }
        }
    }

    /// Returns `true` if data that came is new.
    fn is_new(&mut self, tsn: u32) -> bool {
        let cumulative = self.cumulative.get_or_insert(tsn.wrapping_sub(1));
        if tsn.wrapping_sub(*cumulative) as i32 <= 0 || !self.came.insert(tsn) {
            return false;
        }
        while self.came.remove(&cumulative.wrapping_add(1)) {
            *cumulative = cumulative.wrapping_add(1);
        }
        true
    }
}

impl Listener {
    /// Packets whose content is encrypted.
    pub const fn encrypted(&self) -> u64 {
        self.encrypted
    }

    /// Packets that are neither SCTP nor DCCP, or of which a part is missing.
    pub const fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Hears a packet, and calls `tell` with each record that it shows.
    pub fn hear(&mut self, heard: &Heard<'_>, tell: &mut dyn FnMut(&Record)) {
        let known = match heard.carrier {
            Carrier::Ip(SCTP) => self.hear_sctp(heard, tell),
            Carrier::Ip(DCCP) => self.hear_dccp(heard, Checksum::Ip(heard.from.ip(), heard.to.ip()), tell),
            Carrier::Ip(_) => false,
            Carrier::Udp => self.hear_sctp(heard, tell) || self.hear_dccp(heard, Checksum::Udp, tell),
        };
        self.foreign += u64::from(!known);
    }

    fn hear_sctp(&mut self, heard: &Heard<'_>, tell: &mut dyn FnMut(&Record)) -> bool {
        let Ok(packet) = Packet::parse(heard.payload) else { return false };
        let tag = packet.header.verification_tag;
        let ports = (packet.header.source_port, packet.header.destination_port);
        let place = self.by_tag.get(&tag).copied().filter(|_| tag != 0);
        let outgoing = heard.outgoing.or(place.map(|(_, out)| out)).unwrap_or_else(|| self.is_from_here(heard));
        let (here, there) = if outgoing { (heard.from, heard.to) } else { (heard.to, heard.from) };
        let ports = if outgoing { ports } else { (ports.1, ports.0) };
        let place = match place {
            Some((place, _)) => place,
            None => match self.place_for(tag, ports, outgoing) {
                Some(place) => place,
                None => return true,
            },
        };
        let mut encrypted = false;
        for raw in packet.chunks().map_while(Result::ok) {
            encrypted |= raw.kind == kind::DTLS;
            let Ok(chunk) = Chunk::parse(raw) else { continue };
            if let Chunk::Init(init) | Chunk::InitAck(init) = chunk {
                // Packets to who says this carry the tag.
                let it = &mut self.associations[place];
                if outgoing {
                    it.local_tag = Some(init.initiate_tag)
                } else {
                    it.peer_tag = Some(init.initiate_tag)
                };
                self.by_tag.insert(init.initiate_tag, (place, !outgoing));
            }
            self.associations[place].hear(heard.at, (here, there, heard.interface), outgoing, &chunk, tell);
        }
        self.encrypted += u64::from(encrypted);
        true
    }

    /// The association of a packet with a tag that was not seen before: one whose tag in this
    /// direction is not known, or a new one.
    fn place_for(&mut self, tag: u32, ports: (u16, u16), outgoing: bool) -> Option<usize> {
        let lacks = |it: &&Association| if outgoing { it.peer_tag.is_none() } else { it.local_tag.is_none() };
        let found = self.associations.iter().rev().position(|it| it.ports == ports && lacks(&it) && tag != 0);
        let place = match found {
            Some(from_end) => self.associations.len() - 1 - from_end,
            None if self.associations.len() >= MOST_CONNECTIONS => return None,
            None => {
                self.associations.push(Association::new(ports));
                self.associations.len() - 1
            }
        };
        if tag != 0 {
            let it = &mut self.associations[place];
            if outgoing {
                it.peer_tag = Some(tag)
            } else {
                it.local_tag = Some(tag)
            };
            self.by_tag.insert(tag, (place, outgoing));
        }
        Some(place)
    }

    fn is_from_here(&mut self, heard: &Heard<'_>) -> bool {
        if self.here.contains(&heard.to.ip()) && !self.here.contains(&heard.from.ip()) {
            return false;
        }
        self.here.insert(heard.from.ip());
        true
    }

    fn hear_dccp(&mut self, heard: &Heard<'_>, checksum: Checksum, tell: &mut dyn FnMut(&Record)) -> bool {
        let Ok(packet) = DccpPacket::parse(heard.payload, checksum) else { return false };
        let header = packet.header;
        let key = if (heard.from, header.source_port) < (heard.to, header.destination_port) {
            (heard.from, heard.to, header.source_port, header.destination_port)
        } else {
            (heard.to, heard.from, header.destination_port, header.source_port)
        };
        let (seq, kind) = (header.seq, header.kind.code());
        let request = kind == 0;
        let by_port = heard.from.port() == DCCP_UDP || heard.to.port() == DCCP_UDP;
        // Many a datagram looks like DCCP: what is on another port must have begun with a Request.
        if checksum == Checksum::Udp && !(request || by_port || self.dccp.contains_key(&key)) {
            return false;
        }
        if self.dccp.len() >= MOST_CONNECTIONS && !self.dccp.contains_key(&key) {
            return true;
        }
        let outgoing = heard.outgoing.unwrap_or_else(|| self.is_from_here(heard));
        // Named by the client's first number, as in traces.
        let connection = *self.dccp.entry(key).or_insert(seq as u32);
        let (ack, bytes) = (header.kind.ack(), packet.payload.len() as u32);
        let event = if outgoing {
            DccpEvent::PacketSent { seq, kind, ack, bytes }
        } else {
            DccpEvent::PacketReceived { seq, kind, ack, bytes }
        };
        tell(&Record { at: heard.at, connection, event: TraceEvent::Dccp(event) });
        true
    }
}

impl Association {
    fn hear(
        &mut self,
        at: Instant,
        path: (SocketAddr, SocketAddr, u32),
        outgoing: bool,
        chunk: &Chunk<'_>,
        tell: &mut dyn FnMut(&Record),
    ) {
        let (Some(local_tag), Some(peer_tag)) = (self.local_tag, self.peer_tag) else { return };
        let mut tell = |event| tell(&Record { at, connection: local_tag, event: TraceEvent::Sctp(event) });
        if !self.opened {
            self.opened = true;
            tell(SctpEvent::Opened { local_tag, peer_tag });
        }
        let path = self.path(path);
        let mut data = |it: &mut Self, tsn, payload: &[u8], stream| {
            let bytes = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            if outgoing {
                it.sent(path, (tsn, bytes, stream), &mut tell);
            } else {
                let new = it.is_new(tsn);
                tell(SctpEvent::ChunkReceived { path, tsn, bytes, new });
            }
        };
        match chunk {
            Chunk::Data(it) => data(self, it.tsn, it.payload, it.stream),
            Chunk::IData(it) => data(self, it.tsn, it.payload, it.stream),
            Chunk::Sack(sack) | Chunk::NrSack(NrSack { sack, .. }) => {
                let (cumulative, window) = (sack.cumulative_tsn, sack.a_rwnd);
                let gaps = u16::try_from(sack.gaps.len()).unwrap_or(u16::MAX);
                if outgoing {
                    tell(SctpEvent::SackSent { path, cumulative, gaps, window });
                } else {
                    self.acked(sack, &mut tell);
                    tell(SctpEvent::SackReceived { path, cumulative, gaps, window });
                }
            }
            Chunk::ForwardTsn(ForwardTsn { new_cumulative_tsn: tsn, .. })
            | Chunk::IForwardTsn(IForwardTsn { new_cumulative_tsn: tsn, .. }) => {
                let tsn = *tsn;
                tell(if outgoing {
                    SctpEvent::ForwardSent { path, tsn }
                } else {
                    SctpEvent::ForwardReceived { path, tsn }
                });
            }
            Chunk::Redundancy(it) => {
                let (first, count, bytes) = (it.first_tsn, it.count, it.coded.len() as u16);
                tell(if outgoing {
                    SctpEvent::RedundancySent { path, first, count, bytes }
                } else {
                    SctpEvent::RedundancyReceived { path, first, count }
                });
            }
            _ => {}
        }
    }
}
