//! Reads captures: pcapng, and the older pcap.

use crate::qlog::ReadError;
use braidcast_core::Instant;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use etherparse::{LinkSlice, LinuxSllPacketType, SlicedPacket, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Linktype, OptionCode, PcapBlockOwned, PcapError};
use std::io::Read;

/// The longest block, which is held in memory: a packet of 256 KiB and its options.
const LONGEST: usize = 1 << 20;
/// Interfaces of a capture at most.
const MOST_INTERFACES: usize = 4096;

/// What a packet stands in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// IP alone, with this protocol number.
    Ip(u8),
    /// UDP.
    Udp,
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// When, since the first packet of the capture.
    pub at: Instant,
    /// It left the machine that captured, or came; `None`: the capture does not say.
    pub outgoing: Option<bool>,
    /// Where it came from; the port is 0 if there is no UDP.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// What it stands in.
    pub carrier: Carrier,
    /// What stands in that.
    pub payload: &'a [u8],
    /// Bytes that were not captured.
    pub missing: u32,
    /// The interface that it passed, by its place in the capture.
    pub interface: u32,
}

/// An interface's link type, and the unit of its times: a power of ten, or of two.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    unit: u8,
    offset_s: i64,
}

/// Reads a capture, packet by packet. Packets that are not IP are passed over. Memory: a packet.
pub struct CaptureReader {
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    /// What was read of `reader`, and is done with.
    done: usize,
    origin: Option<u128>,
    packets: u64,
    cut_off: bool,
    packet: Vec<u8>,
}

impl core::fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CaptureReader({} packets)", self.packets)
    }
}

/// A packet as it stands in the file: the interface, its time in ns, its direction and how much of it is missing.
struct Raw {
    link: Linktype,
    at: u128,
    outgoing: Option<bool>,
    missing: u32,
    interface: u32,
}

impl CaptureReader {
    /// Begins to read.
    ///
    /// # Errors
    /// [`ReadError`]: it is no capture, or cannot be read.
    pub fn new(input: impl Read + Send + 'static) -> Result<Self, ReadError> {
        let reader = pcap_parser::create_reader(LONGEST, input).map_err(|error| match error {
            PcapError::Eof => ReadError::Foreign("it is empty"),
            PcapError::ReadError => ReadError::Io(std::io::ErrorKind::Other.into()),
            _ => ReadError::Foreign("it is not a capture"),
        })?;
        let interfaces = Vec::new();
        Ok(Self { reader, interfaces, done: 0, origin: None, packets: 0, cut_off: false, packet: Vec::new() })
    }

    /// Returns `true` if a file that begins so is a capture.
    pub fn recognises(start: &[u8]) -> bool {
        const MAGIC: [[u8; 4]; 5] = [
            [0x0a, 0x0d, 0x0d, 0x0a],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0xa1, 0xb2, 0xc3, 0xd4],
            [0x4d, 0x3c, 0xb2, 0xa1],
            [0xa1, 0xb2, 0x3c, 0x4d],
        ];
        MAGIC.iter().any(|magic| start.starts_with(magic))
    }

    /// Returns `true` if the capture breaks off within a packet.
    pub const fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// The next packet over IP; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`]. Nothing more can be read then.
    pub fn next_packet(&mut self) -> Result<Option<Heard<'_>>, ReadError> {
        loop {
            let Some(raw) = self.next_raw()? else { return Ok(None) };
            self.packets += 1;
            let origin = *self.origin.get_or_insert(raw.at);
            // Interfaces may tell times a little out of order; before the first packet there is nothing.
            let at = u64::try_from(raw.at.saturating_sub(origin)).unwrap_or(u64::MAX);
            if slice(raw.link, &self.packet).is_some() {
                let found = slice(raw.link, &self.packet).map(|it| Heard {
                    at: Instant::from_nanos(at),
                    outgoing: raw.outgoing.or(it.outgoing),
                    missing: raw.missing,
                    interface: raw.interface,
                    ..it
                });
                return Ok(found);
            }
        }
    }

    /// The next packet of any kind, into `packet`.
    fn next_raw(&mut self) -> Result<Option<Raw>, ReadError> {
        let mut stuck = 0;
        loop {
            self.reader.consume(core::mem::take(&mut self.done));
            let wrong = |what: String| ReadError::Block { packets: self.packets, what };
            let needed = match self.reader.next() {
                Ok((len, block)) => {
                    self.done = len;
                    stuck = 0;
                    if let Some(raw) = take(&mut self.interfaces, &mut self.packet, block).map_err(wrong)? {
                        return Ok(Some(raw));
                    }
                    continue;
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(needed)) => needed,
                Err(PcapError::UnexpectedEof) => {
                    self.cut_off = true;
                    return Ok(None);
                }
                Err(PcapError::BufferTooSmall) => return Err(wrong(format!("a block has more than {LONGEST} bytes"))),
                Err(PcapError::ReadError) => return Err(ReadError::Io(std::io::ErrorKind::Other.into())),
                Err(_) => return Err(wrong("what follows is not a block of a capture".to_owned())),
            };
            if needed > LONGEST || self.reader.data().len() >= LONGEST {
                return Err(wrong(format!("a block has more than {LONGEST} bytes")));
            }
            let before = self.reader.data().len();
            self.reader.refill().map_err(|_| ReadError::Io(std::io::ErrorKind::Other.into()))?;
            stuck = if self.reader.data().len() == before { stuck + 1 } else { 0 };
            if stuck > 1 || (stuck == 1 && self.reader.reader_exhausted()) {
                self.cut_off = before > 0;
                return Ok(None);
            }
        }
    }
}

/// Takes a block: the packet in it, which goes into `packet`.
fn take(
    interfaces: &mut Vec<Interface>,
    packet: &mut Vec<u8>,
    block: PcapBlockOwned<'_>,
) -> Result<Option<Raw>, String> {
    let mut keep = |bytes: &[u8]| {
        packet.clear();
        packet.extend_from_slice(bytes);
    };
    match block {
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(it)) => {
            if interfaces.len() >= MOST_INTERFACES {
                return Err(format!("there are more than {MOST_INTERFACES} interfaces"));
            }
            interfaces.push(Interface { link: it.linktype, unit: it.if_tsresol, offset_s: it.if_tsoffset });
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(it)) => {
            let interface = interfaces.get(it.if_id as usize).copied();
            let interface =
                interface.ok_or_else(|| format!("a packet is of interface {}, which there is not", it.if_id))?;
            let ticks = u128::from(u64::from(it.ts_high) << 32 | u64::from(it.ts_low));
            let flags = it.options.iter().find(|option| option.code == OptionCode(2)).and_then(|it| it.value.first());
            let outgoing = match flags.map(|it| it & 3) {
                Some(1) => Some(false),
                Some(2) => Some(true),
                _ => None,
            };
            let len = (it.caplen as usize).min(it.data.len());
            keep(&it.data[..len]);
            let at = interface.nanos(ticks)?;
            return Ok(Some(Raw {
                link: interface.link,
                at,
                outgoing,
                missing: it.origlen.saturating_sub(it.caplen),
                interface: it.if_id,
            }));
        }
        PcapBlockOwned::LegacyHeader(it) => {
            let unit = if it.is_nanosecond_precision() { 9 } else { 6 };
            interfaces.push(Interface { link: it.network, unit, offset_s: 0 });
        }
        PcapBlockOwned::Legacy(it) => {
            let Some(interface) = interfaces.first().copied() else { return Ok(None) };
            let len = (it.caplen as usize).min(it.data.len());
            keep(&it.data[..len]);
            let fraction = if interface.unit == 9 { 1 } else { 1000 };
            let at = u128::from(it.ts_sec) * 1_000_000_000 + u128::from(it.ts_usec) * fraction;
            let missing = it.origlen.saturating_sub(it.caplen);
            return Ok(Some(Raw { link: interface.link, at, outgoing: None, missing, interface: 0 }));
        }
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}

impl Interface {
    /// Converts `ticks` to ns.
    fn nanos(self, ticks: u128) -> Result<u128, String> {
        const SECOND: u128 = 1_000_000_000;
        let (two, power) = (self.unit & 0x80 != 0, u32::from(self.unit & 0x7f));
        if power > if two { 63 } else { 18 } {
            return Err(format!("the unit of its times, {:#04x}, is too small", self.unit));
        }
        let per_second = if two { 1u128 << power } else { 10u128.pow(power) };
        let offset = Duration::from_secs(self.offset_s.unsigned_abs()).as_nanos();
        let at = ticks * SECOND / per_second;
        Ok(if self.offset_s < 0 { at.saturating_sub(offset) } else { at + offset })
    }
}

/// The IP packet in a frame of this link type; its time is not known here.
fn slice(link: Linktype, frame: &[u8]) -> Option<Heard<'_>> {
    let sliced = match link {
        Linktype::ETHERNET => SlicedPacket::from_ethernet(frame),
        Linktype::LINUX_SLL => SlicedPacket::from_linux_sll(frame),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12) => SlicedPacket::from_ip(frame),
        // The address family before the packet.
        Linktype::NULL | Linktype::LOOP => SlicedPacket::from_ip(frame.get(4..)?),
        // LINUX_SLL2: protocol, interface, type of the packet at 10, up to the address.
        Linktype(276) => SlicedPacket::from_ip(frame.get(20..)?),
        _ => return None,
    };
    let sliced = sliced.ok()?;
    let payload = sliced.ip_payload()?;
    if payload.fragmented {
        return None;
    }
    let [from, to] = match sliced.net.as_ref()? {
        etherparse::NetSlice::Ipv4(it) => [it.header().source_addr(), it.header().destination_addr()].map(IpAddr::V4),
        etherparse::NetSlice::Ipv6(it) => [it.header().source_addr(), it.header().destination_addr()].map(IpAddr::V6),
        etherparse::NetSlice::Arp(_) => return None,
    };
    let outgoing = match (&sliced.link, link) {
        (Some(LinkSlice::LinuxSll(it)), _) => Some(it.packet_type() == LinuxSllPacketType::OUTGOING),
        (_, Linktype(276)) => frame.get(10).map(|it| *it == 4),
        _ => None,
    };
    let (carrier, ports, bytes) = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => (Carrier::Udp, [udp.source_port(), udp.destination_port()], udp.payload()),
        Some(_) => return None,
        None => (Carrier::Ip(payload.ip_number.0), [0, 0], payload.payload),
    };
    let (from, to) = (SocketAddr::new(from, ports[0]), SocketAddr::new(to, ports[1]));
    Some(Heard { at: Instant::ZERO, outgoing, from, to, carrier, payload: bytes, missing: 0, interface: 0 })
}
