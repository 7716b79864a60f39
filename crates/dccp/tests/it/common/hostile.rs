//! The packets of who has no key: of strangers, who ask a server for connections of their own, and of somebody
//! who sees what a member and its server send each other.

use super::{PORT, SERVICE, packet_between};
use braidcast_core::{Rng, Route, SocketId, Writer};
use braidcast_dccp::wire::{Kind, Packet, Reset, ResetCode, option};
use std::net::SocketAddr;

/// Strangers that go on talking.
const STRANGERS: usize = 3000;
const NUMBERS: u64 = (1 << 48) - 1;

/// Somebody without a key: what it knows of its connection, if it has one.
pub(crate) struct Stranger {
    pub(crate) route: Route,
    pub(crate) port: u16,
    pub(crate) seq: u64,
    /// The last number that the server sent it.
    pub(crate) theirs: u64,
    /// The Init Cookie options of the Response, as they are.
    pub(crate) cookie: Vec<u8>,
    /// Where its key messages are.
    place: u32,
}

impl Stranger {
    pub(crate) const fn new(route: Route, port: u16, seq: u64) -> Self {
        Self { route, port, seq, theirs: 0, cookie: Vec::new(), place: 0 }
    }
}

/// All of them, and what they know of a member.
pub(crate) struct Hostile {
    pub(crate) rng: Rng,
    pub(crate) strangers: Vec<Stranger>,
    /// The member's address.
    member: SocketAddr,
    /// Number and source port of the last packet to the server and to the member.
    last: [(u64, u16); 2],
    /// Options of the member's Request.
    pub(crate) asks: Vec<u8>,
    /// Data of packets to the server: records, once there are keys.
    pub(crate) data: Vec<Vec<u8>>,
    /// What a client of another server with the same keys sent there.
    pub(crate) others: Vec<Vec<u8>>,
}

/// The Init Cookie options of a packet, as they are.
fn cookies(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let cookies = packet.options.iter().flatten().filter(|it| it.raw.kind == option::kind::INIT_COOKIE);
    cookies.for_each(|it| it.raw.emit(&mut Writer::new(&mut bytes)));
    bytes
}

impl Hostile {
    pub(crate) fn new(rng: Rng, member: SocketAddr) -> Self {
        let (strangers, last, asks) = (Vec::new(), [(0, 0); 2], Vec::new());
        Self { rng, strangers, member, last, asks, data: Vec::new(), others: Vec::new() }
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.rng.below(most)
    }

    fn any(&mut self) -> usize {
        self.below(self.strangers.len() as u64) as usize
    }

    /// The member sent this.
    pub(crate) fn see(&mut self, packet: &Packet<'_>) {
        self.last[0] = (packet.header.seq, packet.header.source_port);
        if let Kind::Request { .. } = packet.header.kind {
            self.asks = packet.options.as_bytes().to_vec();
        }
        if self.data.len() < 64 && !packet.payload.is_empty() {
            self.data.push(packet.payload.to_vec());
        }
    }

    /// The server sent this over `route`. Returns `false` if no stranger is there.
    pub(crate) fn answered(&mut self, route: Route, packet: &Packet<'_>) -> bool {
        let port = packet.header.destination_port;
        let Some(stranger) = self.strangers.iter_mut().find(|it| it.route == route && it.port == port) else {
            if route.remote == self.member {
                self.last[1] = (packet.header.seq, packet.header.source_port);
            }
            return false;
        };
        stranger.theirs = packet.header.seq;
        let cookie = cookies(packet);
        if !cookie.is_empty() {
            stranger.cookie = cookie;
        }
        true
    }

    /// A Request, perhaps from the member's address.
    pub(crate) fn come(&mut self) -> Option<(Route, Vec<u8>)> {
        let networks = 1 + self.below(400);
        let [high, low] = (self.below(networks) as u16).to_be_bytes();
        let far = SocketAddr::from(([172, high, low, 1], 1000 + self.below(60_000) as u16));
        let remote = if self.below(20) == 0 { self.member } else { far };
        let (route, port, seq) =
            (Route::new(SocketId(0), remote), 1024 + self.below(60_000) as u16, self.below(1 << 48));
        if port == self.last[0].1 {
            return None;
        }
        if self.strangers.len() > STRANGERS {
            self.strangers.remove(0);
        }
        self.strangers.push(Stranger::new(route, port, seq));
        let request = packet_between((port, PORT), seq, Kind::Request { service: SERVICE }, &self.asks, &[]);
        Some((route, request))
    }

    /// A stranger's packet: the cookie comes back, perhaps from elsewhere, with key messages that
    /// never end, far ahead, or with anything.
    pub(crate) fn go_on(&mut self) -> Option<(Route, Vec<u8>)> {
        if self.strangers.is_empty() {
            return None;
        }
        let (of, from) = (self.any(), self.any());
        let (ahead, sort) = (self.below(40) as u32 * 900, self.below(8));
        let elsewhere = self.below(10) == 0;
        let stranger = &mut self.strangers[of];
        stranger.seq = (stranger.seq + 1) & NUMBERS;
        let mut data = vec![22];
        data.extend_from_slice(&0_u32.to_be_bytes());
        data.extend_from_slice(&(stranger.place + ahead).to_be_bytes());
        data.extend_from_slice(&[60; 900]);
        if ahead == 0 {
            stranger.place += 900;
        }
        match sort {
            0 => data.clear(),
            1 => data[0] = 48,
            2 => data.truncate(9),
            _ => {}
        }
        let kind =
            if data.is_empty() { Kind::Ack { ack: stranger.theirs } } else { Kind::DataAck { ack: stranger.theirs } };
        let bytes = packet_between((stranger.port, PORT), stranger.seq, kind, &stranger.cookie, &data);
        Some((self.strangers[if elsewhere { from } else { of }].route, bytes))
    }

    /// Ends in clear, with the numbers and ports of the member and its server: to the server or to the member.
    pub(crate) fn end_in_clear(&mut self, to_server: bool) -> Vec<u8> {
        let ((ours, port), (theirs, other)) = self.numbers(to_server);
        let code = [ResetCode::NO_CONNECTION, ResetCode::CLOSED, ResetCode::ABORTED][self.below(3) as usize];
        let kinds = [
            Kind::Reset { ack: theirs, reset: Reset::new(code) },
            Kind::Close { ack: theirs },
            Kind::CloseReq { ack: theirs },
            Kind::Sync { ack: theirs },
        ];
        let (kind, ahead) = (kinds[self.below(4) as usize], self.below(3));
        packet_between((port, other), (ours + ahead) & NUMBERS, kind, &[], b"go away")
    }

    /// A record of the other client, in the member's next packet.
    pub(crate) fn splice(&mut self) -> Vec<u8> {
        let ((ours, port), (theirs, other)) = self.numbers(true);
        let (n, ahead) = (self.below(self.others.len() as u64) as usize, self.below(4));
        let kind = Kind::DataAck { ack: theirs };
        packet_between((port, other), (ours + ahead) & NUMBERS, kind, &[], &self.others[n])
    }

    /// Number and port of the last packet in that direction, and of the last in the other one.
    fn numbers(&self, to_server: bool) -> ((u64, u16), (u64, u16)) {
        let [server, member] = self.last;
        let member = (member.0, if member.1 == 0 { PORT } else { member.1 });
        if to_server { (server, member) } else { (member, server) }
    }
}
