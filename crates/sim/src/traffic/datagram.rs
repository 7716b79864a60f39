use super::{Emission, FlowMeter, Kind, Source, Traffic};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Reader, Rng, Route, Transmit, Writer};
use core::cmp::Reverse;
use core::convert::Infallible;
use core::fmt;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;

/// Bytes at the start of each datagram's payload, part of what the source asked for: flow (2), kind (1), check (1),
/// sequence number (4), time of sending in nanoseconds (8). Shorter payloads are made this long.
///
/// The check is such that all bytes together have the exclusive or 0, which finds any bit that a link flipped: it
/// stands for the UDP checksum.
pub const HEADER_BYTES: usize = 16;

/// Largest payload in one datagram: 1500 bytes less IPv4 and UDP headers.
const MAX_PAYLOAD: usize = 1472;

/// Bulk traffic has no pace of its own, so datagrams without congestion control cannot carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greedy;

impl fmt::Display for Greedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bulk traffic has no pace of its own, which datagrams need; write for example cbr:1mbit,1000B")
    }
}

impl core::error::Error for Greedy {}

/// A stream as a sink distinguishes it: each kind of data of each flow is numbered by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamId {
    /// Where it comes from.
    pub remote: SocketAddr,
    /// The flow.
    pub flow: u16,
    /// The kind of data.
    pub kind: Kind,
}

#[derive(Debug)]
struct Flow {
    route: Route,
    first_flow: u16,
    start: Instant,
    source: Box<dyn Source>,
    /// What is handed over next, with the bytes that are not sent yet.
    next: Emission,
    /// `true` if a part of it is.
    begun: bool,
}

/// Sends what sources emit, at once and without any control: UDP.
#[derive(Debug)]
pub struct DatagramSender {
    /// What is longer goes in parts.
    max_payload: usize,
    /// Factor by which the next emissions are larger than their source says.
    scale: f64,
    flows: Vec<Flow>,
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Packets sent by flow and kind.
    sent: BTreeMap<(u16, Kind), u32>,
}

impl Default for DatagramSender {
    fn default() -> Self {
        Self::with_max_payload(MAX_PAYLOAD)
    }
}

impl DatagramSender {
    /// A sender without sources that hands over at most `max_payload` bytes at a time; [`Default`]
    /// has 1472.
    pub fn with_max_payload(max_payload: usize) -> Self {
        Self {
            max_payload: max_payload.max(HEADER_BYTES),
            scale: 1.0,
            flows: Vec::new(),
            due: BinaryHeap::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Adds a source that starts at `start` and whose flows are numbered from `first_flow` on. Use
    /// different numbers for sources to the same sink.
    ///
    /// # Errors
    /// If the traffic is bulk.
    pub fn add(
        &mut self,
        route: Route,
        first_flow: u16,
        traffic: &Traffic,
        rng: Rng,
        start: Instant,
    ) -> Result<(), Greedy> {
        if matches!(traffic, Traffic::Bulk(_)) {
            return Err(Greedy);
        }
        let mut source = traffic.source(rng);
        if let Some(next) = source.next() {
            self.due.push(Reverse((start + next.at, self.flows.len())));
            self.flows.push(Flow { route, first_flow, start, source, next, begun: false });
        }
        Ok(())
    }

    /// From now on what sources emit is `factor` times as large as they say, a byte at least: an
    /// encoder whose rate is changed. What is handed over in part already stays as it is.
    pub const fn scale(&mut self, factor: f64) {
        self.scale = factor;
    }

    /// Datagrams sent of a flow and kind.
    pub fn sent(&self, flow: u16, kind: Kind) -> u64 {
        self.sent.get(&(flow, kind)).map_or(0, |sent| u64::from(*sent))
    }

    /// The flows and kinds that sent something, in order, with the datagrams sent.
    pub fn streams(&self) -> impl Iterator<Item = (u16, Kind, u64)> + '_ {
        self.sent.iter().map(|(&(flow, kind), &sent)| (flow, kind, u64::from(sent)))
    }
}

impl Machine for DatagramSender {
    type Event = Infallible;

    fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let &Reverse((_, index)) = self.due.peek().filter(|Reverse((at, _))| *at <= now)?;
        let flow = &mut self.flows[index];
        let (number, kind) = (flow.first_flow.wrapping_add(flow.next.flow), flow.next.kind);
        if !core::mem::replace(&mut flow.begun, true) && self.scale != 1.0 {
            flow.next.bytes = ((flow.next.bytes as f64 * self.scale) as usize).max(1);
        }
        let size = flow.next.bytes.min(self.max_payload);
        flow.next.bytes -= size;
        let sent = self.sent.entry((number, kind)).or_default();
        Stamp { flow: number, kind, sequence: *sent, sent: now }.write(buf, size);
        *sent = sent.wrapping_add(1);
        if flow.next.bytes == 0 {
            self.due.pop();
            if let Some(next) = flow.source.next() {
                (flow.next, flow.begun) = (next, false);
                self.due.push(Reverse((flow.start + next.at, index)));
            }
        }
        Some(Transmit { route: flow.route, ecn: Ecn::NotEct, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
}

/// What stands at the beginning of each payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The flow.
    pub flow: u16,
    /// The kind of data.
    pub kind: Kind,
    /// Number in that flow and kind, from 0.
    pub sequence: u32,
    /// When it was sent.
    pub sent: Instant,
}

impl Stamp {
    /// Makes `buf` a payload of `size` bytes, or of [`HEADER_BYTES`] if that is less, that begins with this.
    pub fn write(&self, buf: &mut Vec<u8>, size: usize) {
        buf.clear();
        let mut writer = Writer::new(buf);
        writer.u16(self.flow);
        writer.u8(self.kind.code());
        writer.u8(0);
        writer.u32(self.sequence);
        writer.u64(self.sent.as_nanos());
        writer.zeros(size.saturating_sub(HEADER_BYTES));
        buf[3] = check(&buf[..HEADER_BYTES]);
    }

    /// What a payload begins with, if it is one of ours and whole.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if check(payload) != 0 {
            return None;
        }
        let mut reader = Reader::new(payload);
        let flow = reader.u16().ok()?;
        let kind = Kind::from_code(reader.u8().ok()?)?;
        reader.u8().ok()?;
        Some(Self { flow, kind, sequence: reader.u32().ok()?, sent: Instant::from_nanos(reader.u64().ok()?) })
    }
}

fn check(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |all, byte| all ^ byte)
}

/// Takes what [`DatagramSender`]s send and measures each stream.
#[derive(Debug, Default)]
pub struct DatagramSink {
    /// What the meter of a new stream starts as.
    meter: FlowMeter,
    meters: BTreeMap<StreamId, FlowMeter>,
    malformed: u64,
}

impl DatagramSink {
    /// A sink that measures each stream with a copy of `meter`.
    pub fn with_meter(meter: FlowMeter) -> Self {
        Self { meter, ..Self::default() }
    }

    /// A datagram arrived before anything counts; it and those before it are not missing.
    pub fn leave_out(&mut self, datagram: Datagram<'_>) {
        if let Some(Stamp { flow, kind, sequence, .. }) = Stamp::read(datagram.payload) {
            let id = StreamId { remote: datagram.route.remote, flow, kind };
            self.meters.entry(id).or_insert_with(|| self.meter.clone()).leave_out(u64::from(sequence));
        }
    }

    /// What was measured, by stream.
    pub const fn meters(&self) -> &BTreeMap<StreamId, FlowMeter> {
        &self.meters
    }

    /// Datagrams that were damaged or nothing of ours.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl Machine for DatagramSink {
    type Event = Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some(Stamp { flow, kind, sequence, sent }) = Stamp::read(datagram.payload) else {
            self.malformed += 1;
            return;
        };
        let id = StreamId { remote: datagram.route.remote, flow, kind };
        let meter = self.meters.entry(id).or_insert_with(|| self.meter.clone());
        meter.record(now, u64::from(sequence), sent, datagram.payload.len());
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
}
