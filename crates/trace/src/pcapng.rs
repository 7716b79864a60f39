use crate::block::{self, Block};
use crate::headers::{self, Ports, Protocol};
use braidcast_core::{Ecn, Instant};
use std::io::{self, Write};
use std::net::SocketAddr;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Packets begin with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// Ten to the minus nine seconds.
const NANOSECONDS: u8 = 9;

/// An interface of one capture, as [`PcapWriter::interface`] numbered it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InterfaceId(u32);

/// `true` if a datagram reached an interface or left from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It arrived.
    In,
    /// It was sent.
    Out,
}

/// A datagram to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When it passed.
    pub at: Instant,
    /// Where it passed.
    pub interface: InterfaceId,
    /// Which way it went there.
    pub direction: Direction,
    /// Where it came from; port 0 at both ends stands for straight over IP.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// How it is marked.
    pub ecn: Ecn,
    /// The bytes above UDP, or above IP if both ports are 0.
    pub payload: &'a [u8],
    /// A word for the reader, for example why it was dropped; empty for none.
    pub comment: &'a str,
}

/// Writes datagrams as a pcapng capture with nanosecond times, which count from [`Instant`]'s zero.
///
/// Each packet is one write: give it a buffered writer. Keeps nothing but two buffers of a packet's size.
#[derive(Debug)]
pub struct PcapWriter<W> {
    out: W,
    shown: (Protocol, Ports),
    interfaces: u32,
    packet: Vec<u8>,
    block: Block,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a capture of SCTP in `out`.
    pub fn new(out: W, ports: Ports) -> io::Result<Self> {
        Self::of(Protocol::Sctp, out, ports)
    }

    /// Begins a capture of `protocol` in `out`.
    pub fn of(protocol: Protocol, mut out: W, ports: Ports) -> io::Result<Self> {
        let mut block = Block::default();
        block.begin(SECTION_HEADER).u32(BYTE_ORDER_MAGIC).u16(1).u16(0); // format version 1.0
        block.u32(u32::MAX).u32(u32::MAX); // the section's length is not known yet
        block.option(block::SHB_USERAPPL, concat!("braidcast ", env!("CARGO_PKG_VERSION")).as_bytes());
        out.write_all(block.end())?;
        Ok(Self { out, shown: (protocol, ports), interfaces: 0, packet: Vec::new(), block })
    }

    /// Adds an interface under a name for people: one for each socket, or for each simulated node.
    pub fn interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.interfaces);
        // reserved; no limit to a packet's length
        self.block.begin(INTERFACE_DESCRIPTION).u16(LINKTYPE_RAW).u16(0).u32(0);
        self.block.option(block::IF_NAME, name.as_bytes()).option(block::IF_TSRESOL, &[NANOSECONDS]);
        self.out.write_all(self.block.end())?;
        self.interfaces += 1;
        Ok(id)
    }

    /// Records one datagram. Besides the writer's own errors: `InvalidInput` if it is too long for UDP over IP.
    pub fn packet(&mut self, captured: &Captured<'_>) -> io::Result<()> {
        headers::wrap(&mut self.packet, self.shown, captured.from, captured.to, captured.ecn, captured.payload)?;
        let at = captured.at.as_nanos();
        let len = self.packet.len() as u32;
        self.block.begin(ENHANCED_PACKET).u32(captured.interface.0).u32((at >> 32) as u32).u32(at as u32);
        self.block.u32(len).u32(len).padded(&self.packet);
        let flags: u32 = match captured.direction {
            Direction::In => 1,
            Direction::Out => 2,
        };
        self.block.option(block::EPB_FLAGS, &flags.to_le_bytes());
        if !captured.comment.is_empty() {
            self.block.option(block::COMMENT, captured.comment.as_bytes());
        }
        self.out.write_all(self.block.end())
    }

    /// Writes out what `out` still buffers.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What is written to.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The writer, with the capture whole in it.
    pub fn into_inner(self) -> W {
        self.out
    }
}
