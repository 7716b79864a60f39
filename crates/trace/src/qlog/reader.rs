use super::names::{condition, dccp_type, frame_kind, loss, purpose, reduction, sending, unsent};
use super::{FILE_SCHEMA, SEPARATOR, SIMULATED};
use braidcast_core::events::{DccpEvent, DccpMetrics, MediaEvent, PacketContent, PathMetrics, SctpEvent, TraceEvent};
use braidcast_core::{Instant, PathId, Route, SocketId};
use core::fmt;
use core::time::Duration;
use serde::Deserialize;
use std::io::{self, BufRead, Read};

/// The longest record; ours have some 400 bytes.
const LONGEST: u64 = 64 * 1024;

/// Why a trace cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The reader failed.
    Io(io::Error),
    /// It is no trace of ours.
    Foreign(&'static str),
    /// A record makes no sense: in which line, and what is wrong.
    Record {
        /// Counted from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A block of a capture makes no sense: after how many packets, and what is wrong.
    Block {
        /// Packets before it.
        packets: u64,
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Foreign(what) => write!(f, "it is not a trace: {what}"),
            Self::Record { line, what } => write!(f, "line {line}: {what}"),
            Self::Block { packets, what } => write!(f, "after {packets} packets: {what}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// An event, when and to whom it happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// When, by the clock of who wrote the trace.
    pub at: Instant,
    /// To which connection, association or stream.
    pub connection: u32,
    /// What.
    pub event: TraceEvent,
}

/// Reads a trace, record by record. Events that it does not know are passed over and counted. Memory: one record.
#[derive(Debug)]
pub struct QlogReader<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    title: String,
    vantage: String,
    wall_clock: Option<String>,
    simulated: bool,
    unknown: u64,
    cut_off: bool,
}

#[derive(Deserialize)]
struct Header {
    file_schema: String,
    #[serde(default)]
    title: String,
    trace: Trace,
}

#[derive(Deserialize)]
struct Trace {
    vantage_point: Option<Vantage>,
    common_fields: Option<Common>,
}

#[derive(Deserialize)]
struct Vantage {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Common {
    reference_time: Option<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    wall_clock_time: Option<String>,
    clock_type: Option<String>,
}

impl<R: BufRead> QlogReader<R> {
    /// Reads the header of the trace in `input`.
    ///
    /// # Errors
    /// [`ReadError`]: it is no trace, or cannot be read.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let (title, vantage) = (String::new(), String::new());
        let mut it = Self {
            input,
            line: Vec::new(),
            number: 0,
            title,
            vantage,
            wall_clock: None,
            simulated: false,
            unknown: 0,
            cut_off: false,
        };
        let Some(text) = it.next_text()? else { return Err(ReadError::Foreign("it is empty")) };
        let header: Header = serde_json::from_slice(text)
            .map_err(|_| ReadError::Foreign("its first record is not the header of a qlog file"))?;
        if header.file_schema != FILE_SCHEMA {
            return Err(ReadError::Foreign("it is a qlog file, but no sequence of JSON texts (RFC 7464)"));
        }
        it.title = header.title;
        it.vantage = header.trace.vantage_point.map(|it| it.name).unwrap_or_default();
        let reference = header.trace.common_fields.and_then(|it| it.reference_time);
        if let Some(Reference { wall_clock_time, clock_type }) = reference {
            it.simulated = clock_type.as_deref() == Some(SIMULATED);
            it.wall_clock = wall_clock_time;
        }
        Ok(it)
    }

    /// What was run.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the end that recorded it.
    pub fn vantage(&self) -> &str {
        &self.vantage
    }

    /// The time of day at the clock's origin, as RFC 3339 writes it.
    pub fn wall_clock(&self) -> Option<&str> {
        self.wall_clock.as_deref()
    }

    /// Returns `true` if the clock is a simulator's, which all of its hosts share.
    pub const fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// Events passed over as they are of no kind that is known here.
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Returns `true` if the trace breaks off within a record, as when its writer was killed.
    pub const fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`]. Nothing more can be read then.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            let Some(text) = self.next_text()? else { return Ok(None) };
            let parsed = serde_json::from_slice::<Line<'_>>(text)
                .map_err(|error| error.to_string())
                .and_then(|line| Ok((line.time()?, line.group()?, line.event()?)));
            match parsed {
                Ok((at, connection, Some(event))) => return Ok(Some(Record { at, connection, event })),
                Ok((_, _, None)) => self.unknown += 1,
                Err(_) if self.cut_off => return Ok(None),
                Err(what) => return Err(ReadError::Record { line: self.number, what }),
            }
        }
    }

    /// The next record's text.
    fn next_text(&mut self) -> Result<Option<&[u8]>, ReadError> {
        loop {
            self.line.clear();
            self.number += 1;
            let read = self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            let whole = self.line.last() == Some(&b'\n');
            if !whole && read as u64 == LONGEST {
                let what = format!("it has more than {LONGEST} bytes, as no event has");
                return Err(if self.number == 1 {
                    ReadError::Foreign("its first line is too long for a header")
                } else {
                    ReadError::Record { line: self.number, what }
                });
            }
            self.cut_off = !whole;
            if self.line.iter().all(|&byte| byte == SEPARATOR || byte.is_ascii_whitespace()) {
                continue;
            }
            let start = self.line.iter().take_while(|&&byte| byte == SEPARATOR).count();
            return Ok(Some(&self.line[start..]));
        }
    }
}

/// A record as it stands there.
#[derive(Deserialize)]
struct Line<'a> {
    time: f64,
    #[serde(borrow)]
    name: &'a str,
    #[serde(borrow, default)]
    group_id: &'a str,
    #[serde(borrow, default)]
    path: Option<&'a str>,
    #[serde(borrow, default)]
    data: Data<'a>,
}

/// The data of all events together.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Data<'a> {
    #[serde(borrow)]
    local_tag: &'a str,
    #[serde(borrow)]
    peer_tag: &'a str,
    socket: u16,
    #[serde(borrow)]
    remote: &'a str,
    #[serde(borrow)]
    state: &'a str,
    cwnd_bytes: usize,
    ssthresh_bytes: Option<usize>,
    in_flight_bytes: usize,
    srtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
    rto_ms: Option<f64>,
    queued_ms: f64,
    mtu_bytes: usize,
    #[serde(borrow)]
    cause: &'a str,
    bytes: u32,
    #[serde(borrow)]
    purpose: &'a str,
    sack: bool,
    redundancy: bool,
    marked: bool,
    message: Option<u64>,
    stream: u16,
    deadline: Option<f64>,
    sent: bool,
    #[serde(borrow)]
    why: &'a str,
    tsn: u32,
    #[serde(borrow)]
    sending: &'a str,
    spurious: bool,
    new: bool,
    first: u32,
    count: u16,
    cumulative: u32,
    gaps: u16,
    window_bytes: u32,
    frame: u32,
    #[serde(borrow)]
    kind: &'a str,
    reference: bool,
    parts: u16,
    captured: f64,
    due: f64,
    on_time: bool,
    pts: Option<u64>,
    ccid: u8,
    seq: u64,
    #[serde(borrow)]
    r#type: &'a str,
    ack: Option<u64>,
    cwnd_packets: Option<u32>,
    pipe_packets: Option<u32>,
    allowed_bytes_per_second: Option<f64>,
    received_bytes_per_second: Option<f64>,
    fair_bytes_per_second: Option<f64>,
    segment_bytes: Option<f64>,
    ssthresh_packets: Option<u32>,
    ack_ratio: Option<u16>,
    acked_packets: u64,
    marked_packets: u64,
    loss_event_rate: Option<f64>,
    queued_messages: u32,
    lost_packets: u64,
    loss_events: u64,
    timeouts: u64,
}

/// Milliseconds as a point in time.
fn time(ms: f64) -> Result<Instant, String> {
    // A hundred years; beyond, doubles would not tell nanoseconds apart anyway.
    if !(0.0..3.2e12).contains(&ms) {
        return Err(format!("{ms:?} ms is not a time of a trace"));
    }
    Ok(Instant::from_nanos((ms * 1e6).round() as u64))
}

/// Milliseconds as a time span.
fn span(ms: f64) -> Result<Duration, String> {
    time(ms).map(|at| at.since(Instant::ZERO))
}

fn hex(word: &str) -> Result<u32, String> {
    u32::from_str_radix(word, 16).map_err(|_| format!("`{}` is not the number of a connection", word.escape_default()))
}

/// A word that must be known.
fn word<T>(find: impl Fn(&str) -> Option<T>, word: &str) -> Result<T, String> {
    find(word).ok_or_else(|| format!("`{}` means nothing here", word.escape_default()))
}

impl Line<'_> {
    fn time(&self) -> Result<Instant, String> {
        time(self.time)
    }

    fn group(&self) -> Result<u32, String> {
        if self.group_id.is_empty() { Ok(0) } else { hex(self.group_id) }
    }

    fn known_path(&self) -> Result<PathId, String> {
        self.maybe_path()?.ok_or_else(|| "the event names no path".into())
    }

    fn maybe_path(&self) -> Result<Option<PathId>, String> {
        let number = |text: &str| text.parse().map(PathId);
        self.path.map(number).transpose().map_err(|_| "the path is not a number below 65,536".into())
    }

    fn route(&self) -> Result<Route, String> {
        let remote = self.data.remote.parse();
        let wrong = |_| format!("`{}` is not an address with a port", self.data.remote.escape_default());
        Ok(Route::new(SocketId(self.data.socket), remote.map_err(wrong)?))
    }

    fn bytes(&self) -> Result<u16, String> {
        u16::try_from(self.data.bytes).map_err(|_| format!("a chunk cannot have {} bytes", self.data.bytes))
    }

    fn event(&self) -> Result<Option<TraceEvent>, String> {
        let Some((namespace, name)) = self.name.split_once(':') else { return Ok(None) };
        Ok(match namespace {
            "sctp" => self.sctp(name)?.map(Into::into),
            "dccp" => self.dccp(name)?.map(Into::into),
            "media" => self.media(name)?.map(Into::into),
            _ => None,
        })
    }

    fn sctp(&self, name: &str) -> Result<Option<SctpEvent>, String> {
        use SctpEvent as E;
        let it = &self.data;
        let (tsn, message, stream) = (it.tsn, it.message.unwrap_or(u64::MAX), it.stream);
        let (cumulative, gaps, window) = (it.cumulative, it.gaps, it.window_bytes);
        let path = || self.known_path();
        Ok(Some(match name {
            "association_opened" => E::Opened { local_tag: hex(it.local_tag)?, peer_tag: hex(it.peer_tag)? },
            "association_closed" => E::Closed,
            "path_added" => E::PathAdded { path: path()?, route: self.route()? },
            "path_removed" => E::PathRemoved { path: path()? },
            "path_state" => E::PathState { path: path()?, state: word(condition, it.state)? },
            "path_metrics" => E::PathMetrics { path: path()?, metrics: self.metrics()? },
            "window_reduced" => E::WindowReduced { path: path()?, cause: word(reduction, it.cause)? },
            "packet_sent" => {
                let purpose = word(purpose, it.purpose)?;
                let content = PacketContent { purpose, sack: it.sack, redundancy: it.redundancy };
                E::PacketSent { path: path()?, bytes: it.bytes, content }
            }
            "packet_received" => E::PacketReceived { path: path()?, bytes: it.bytes, marked: it.marked },
            "message_queued" => {
                E::MessageQueued { message, stream, bytes: it.bytes, deadline: it.deadline.map(time).transpose()? }
            }
            "message_abandoned" => E::MessageAbandoned { message, stream, sent: it.sent, why: word(unsent, it.why)? },
            "chunk_sent" => {
                let sending = word(sending, it.sending)?;
                E::ChunkSent { path: path()?, tsn, bytes: self.bytes()?, stream, message, sending }
            }
            "chunk_acked" => E::ChunkAcked { path: self.maybe_path()?, tsn, spurious: it.spurious },
            "chunk_lost" => E::ChunkLost { path: self.maybe_path()?, tsn, cause: word(loss, it.cause)? },
            "chunk_received" => E::ChunkReceived { path: path()?, tsn, bytes: self.bytes()?, new: it.new },
            "chunk_recovered" => E::ChunkRecovered { path: path()?, tsn },
            "redundancy_sent" => {
                E::RedundancySent { path: path()?, first: it.first, count: it.count, bytes: self.bytes()? }
            }
            "redundancy_received" => E::RedundancyReceived { path: path()?, first: it.first, count: it.count },
            "sack_sent" => E::SackSent { path: path()?, cumulative, gaps, window },
            "sack_received" => E::SackReceived { path: path()?, cumulative, gaps, window },
            "forward_sent" => E::ForwardSent { path: path()?, tsn },
            "forward_received" => E::ForwardReceived { path: path()?, tsn },
            _ => return Ok(None),
        }))
    }

    fn metrics(&self) -> Result<PathMetrics, String> {
        let it = &self.data;
        Ok(PathMetrics {
            cwnd: it.cwnd_bytes,
            ssthresh: it.ssthresh_bytes,
            in_flight: it.in_flight_bytes,
            srtt: it.srtt_ms.map(span).transpose()?,
            min_rtt: it.min_rtt_ms.map(span).transpose()?,
            rto: span(it.rto_ms.unwrap_or_default())?,
            queued: span(it.queued_ms)?,
            mtu: it.mtu_bytes,
        })
    }

    fn dccp(&self, name: &str) -> Result<Option<DccpEvent>, String> {
        let it = &self.data;
        Ok(Some(match name {
            "connection_opened" => DccpEvent::Opened { route: self.route()?, ccid: it.ccid },
            "connection_closed" => DccpEvent::Closed,
            "packet_sent" => {
                DccpEvent::PacketSent { seq: it.seq, kind: word(dccp_type, it.r#type)?, ack: it.ack, bytes: it.bytes }
            }
            "packet_received" => {
                let kind = word(dccp_type, it.r#type)?;
                DccpEvent::PacketReceived { seq: it.seq, kind, ack: it.ack, bytes: it.bytes }
            }
            "metrics" => DccpEvent::Metrics(DccpMetrics {
                cwnd: it.cwnd_packets,
                pipe: it.pipe_packets,
                allowed_rate: it.allowed_bytes_per_second,
                recv_rate: it.received_bytes_per_second,
                fair_rate: it.fair_bytes_per_second,
                segment: it.segment_bytes,
                rto: it.rto_ms.map(span).transpose()?,
                ssthresh: it.ssthresh_packets,
                ack_ratio: it.ack_ratio,
                acked: it.acked_packets,
                marked: it.marked_packets,
                loss_event_rate: it.loss_event_rate,
                srtt: it.srtt_ms.map(span).transpose()?,
                queued: it.queued_messages,
                lost: it.lost_packets,
                loss_events: it.loss_events,
                timeouts: it.timeouts,
            }),
            "message_discarded" => DccpEvent::MessageDiscarded { message: it.message, why: word(unsent, it.why)? },
            _ => return Ok(None),
        }))
    }

    fn media(&self, name: &str) -> Result<Option<MediaEvent>, String> {
        let it = &self.data;
        let (frame, reference, bytes, pts) = (it.frame, it.reference, it.bytes, it.pts);
        let kind = || word(frame_kind, it.kind);
        Ok(Some(match name {
            "frame_captured" => MediaEvent::FrameCaptured {
                frame,
                kind: kind()?,
                reference,
                bytes,
                parts: it.parts,
                captured: time(it.captured)?,
                deadline: it.deadline.map(time).transpose()?,
                pts,
            },
            "frame_unsent" => MediaEvent::FrameUnsent { frame, kind: kind()? },
            "frame_arrived" => MediaEvent::FrameArrived {
                frame,
                kind: kind()?,
                reference,
                bytes,
                path: self.known_path()?,
                captured: time(it.captured)?,
                due: time(it.due)?,
                on_time: it.on_time,
                pts,
            },
            _ => return Ok(None),
        }))
    }
}
