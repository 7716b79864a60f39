//! Traces of ns-2 (the ns Manual, §26.4): a line for each packet at each queue and node, in the order of time.

use crate::qlog::ReadError;
use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, Read};
use std::net::IpAddr;

/// The longest line; ns-2's have some 70 bytes.
const LONGEST: u64 = 4096;
/// Paths are numbers of a byte.
const MOST_PATHS: usize = 250;

/// Which packets belong together: those of a protocol with one flow number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowName {
    /// `sctp`, `tcp`, `tfrc`, `dccp`, or the type as it stands there, for example `cbr`.
    pub protocol: String,
    /// `fid_`.
    pub number: u32,
}

impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.protocol, self.number)
    }
}

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cargo {
    /// Data that was not sent before.
    Data,
    /// Data that was.
    DataAgain,
    /// An acknowledgement.
    Acknowledgement,
    /// Anything else.
    Control,
}

/// A packet that went from one end to the other, or was lost in flight.
#[derive(Clone, PartialEq, Debug)]
pub struct Passage {
    /// Of which flow.
    pub flow: FlowName,
    /// When it was handed to the first queue.
    pub sent: Instant,
    /// When it came to the node that it is addressed to; `None`: it did not, or the trace ends before.
    pub arrived: Option<Instant>,
    /// It was dropped, or is overdue by more than any other was.
    pub lost: bool,
    /// How long it stood in queues, as far as they are traced.
    pub queued: Duration,
    /// It goes towards the end that spoke first between these nodes.
    pub back: bool,
    /// The path: pairs of nodes in the order in which they appear, from 0.
    pub path: u8,
    /// The TSN, or the sequence number; `None` of what has none.
    pub number: Option<u32>,
    /// The stream of SCTP.
    pub stream: Option<u16>,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// What it carries.
    pub cargo: Cargo,
}

/// Reads such a trace, packet by packet, in the order in which they arrive or are lost. Keeps the
/// packets that are under way and which numbers were sent.
#[derive(Debug)]
pub struct Ns2Reader<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    now: Instant,
    cut_off: bool,
    under_way: BTreeMap<(u64, u32), UnderWay>,
    paths: HashMap<(u64, u64), (u8, u64)>,
    seen: HashSet<(FlowName, u64, u32)>,
    longest: Duration,
    ended: bool,
}

/// A packet that has not arrived.
#[derive(Debug)]
struct UnderWay {
    passage: Passage,
    /// When it came into the queue in which it is.
    enqueued: Option<Instant>,
}

/// A line about a packet.
struct Line<'a> {
    operation: u8,
    at: Instant,
    to: u64,
    kind: &'a str,
    bytes: u32,
    flags: &'a str,
    flow: u32,
    source: &'a str,
    destination: &'a str,
    number: u32,
    id: u64,
    stream: Option<u16>,
}

impl<R: BufRead> Ns2Reader<R> {
    /// Begins to read.
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            number: 0,
            now: Instant::ZERO,
            cut_off: false,
            under_way: BTreeMap::new(),
            paths: HashMap::new(),
            seen: HashSet::new(),
            longest: Duration::ZERO,
            ended: false,
        }
    }

    /// Returns `true` if a file that begins so looks like such a trace.
    pub fn recognises(start: &[u8]) -> bool {
        let text = core::str::from_utf8(start)
            .unwrap_or_else(|e| core::str::from_utf8(&start[..e.valid_up_to()]).unwrap_or(""));
        let first = text.lines().find(|line| !is_passed_over(line));
        first.is_some_and(|line| parse(line).is_ok())
    }

    /// Returns `true` if the trace breaks off within a line.
    pub const fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// The next packet that arrived or was lost; those still under way come last.
    ///
    /// # Errors
    /// [`ReadError`]. Nothing more can be read then.
    pub fn next_passage(&mut self) -> Result<Option<Passage>, ReadError> {
        while !self.ended {
            self.number += 1;
            self.line.clear();
            let read = self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.line)?;
            let whole = self.line.last() == Some(&b'\n');
            if !whole && read as u64 == LONGEST {
                return Err(self.wrong(format!("it has more than {LONGEST} bytes, as no line of ns-2 has")));
            }
            if read == 0 {
                self.ended = true;
                break;
            }
            let line = core::mem::take(&mut self.line);
            let taken = self.take(&line);
            self.line = line;
            match taken {
                Ok(Some(passage)) => return Ok(Some(passage)),
                Ok(None) => {}
                Err(_) if !whole => {
                    self.cut_off = true;
                    self.ended = true;
                }
                Err(what) => return Err(self.wrong(what)),
            }
        }
        Ok(self.under_way.pop_first().map(|(_, it)| {
            let lost = !self.longest.is_zero() && self.now.since(it.passage.sent) > 2 * self.longest;
            Passage { lost, ..it.passage }
        }))
    }

    fn wrong(&self, what: String) -> ReadError {
        ReadError::Record { line: self.number, what }
    }

    /// Takes a line. Returns the packet whose end it records.
    fn take(&mut self, line: &[u8]) -> Result<Option<Passage>, String> {
        let text = core::str::from_utf8(line).map_err(|_| "it is not text".to_owned())?.trim_end();
        if is_passed_over(text) {
            return Ok(None);
        }
        let it = parse(text)?;
        if it.at < self.now {
            return Err(format!("time goes back, from {} s to {} s", self.now.as_secs_f64(), it.at.as_secs_f64()));
        }
        self.now = it.at;
        let key = (it.id, it.number);
        match it.operation {
            b'+' => {
                if let Some(under_way) = self.under_way.get_mut(&key) {
                    under_way.enqueued = Some(it.at);
                } else {
                    let passage = self.begin(&it)?;
                    self.under_way.insert(key, UnderWay { passage, enqueued: Some(it.at) });
                }
            }
            b'-' => {
                if let Some(under_way) = self.under_way.get_mut(&key)
                    && let Some(since) = under_way.enqueued.take()
                {
                    under_way.passage.queued += it.at.since(since);
                }
            }
            b'r' if node(it.destination)? == it.to => {
                if let Some(UnderWay { passage, .. }) = self.under_way.remove(&key) {
                    self.longest = self.longest.max(it.at.since(passage.sent));
                    return Ok(Some(Passage { arrived: Some(it.at), ..passage }));
                }
            }
            b'd' => {
                if let Some(UnderWay { passage, .. }) = self.under_way.remove(&key) {
                    return Ok(Some(Passage { lost: true, ..passage }));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn begin(&mut self, it: &Line<'_>) -> Result<Passage, String> {
        let (protocol, cargo, numbered) = classify(it);
        let flow = FlowName { protocol: protocol.to_owned(), number: it.flow };
        let (from, to) = (node(it.source)?, node(it.destination)?);
        let count = self.paths.len();
        let pair = self.paths.entry((from.min(to), from.max(to))).or_insert((count.min(MOST_PATHS) as u8, from));
        let (path, left) = *pair;
        let number = numbered.then_some(it.number);
        let data = cargo == Cargo::Data;
        // An SCTP association has several pairs of nodes, and one sequence of numbers in each
        // direction.
        let sender = if flow.protocol == "sctp" { u64::from(from != left) } else { from };
        let again = data && number.is_some_and(|number| !self.seen.insert((flow.clone(), sender, number)));
        Ok(Passage {
            flow,
            sent: it.at,
            arrived: None,
            lost: false,
            queued: Duration::ZERO,
            back: from != left,
            path,
            number,
            stream: it.stream,
            bytes: it.bytes,
            cargo: if again { Cargo::DataAgain } else { cargo },
        })
    }
}

/// A field as it may stand in a message: nothing in it that a terminal would obey.
fn quoted(text: &str) -> String {
    format!("'{}'", text.chars().take(40).flat_map(char::escape_debug).collect::<String>())
}

/// Comments, and values of variables among the packets.
fn is_passed_over(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line.starts_with("v ")
}

fn parse(line: &str) -> Result<Line<'_>, String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(32).collect();
    let [operation, at, from, to, kind, bytes, flags, flow, source, destination, rest @ ..] = &fields[..] else {
        return Err(format!("it has {} fields, a line of ns-2's wired trace 12 or more", fields.len()));
    };
    let operation = match operation.as_bytes() {
        &[it] if b"+-rdhe".contains(&it) => it,
        _ if at.starts_with('-') => {
            return Err("it is of nam or of ns-2's wireless trace; give the wired one (trace-all)".to_owned());
        }
        _ => return Err(format!("{} is none of + - r d h e", quoted(operation))),
    };
    let seconds = at.parse::<f64>().ok().filter(|it| (0.0..1e9).contains(it));
    let seconds = seconds.ok_or_else(|| format!("{} is not a time in seconds", quoted(at)))?;
    let number = |text: &str, what: &str| text.parse::<u64>().map_err(|_| format!("{} is not a {what}", quoted(text)));
    number(from, "node")?;
    // SCTP's header, if it is shown: the chunks of the packet, the TSN, the packet, the stream, the place in it.
    let (sequence, id, stream) = match (*kind, rest) {
        ("sctp", [_chunks, tsn, id, stream, _, ..]) => (*tsn, *id, stream.parse().ok().filter(|&it| it != u16::MAX)),
        (_, [sequence, id, ..]) => (*sequence, *id, None),
        _ => return Err("sequence number and packet number are missing".to_owned()),
    };
    Ok(Line {
        operation,
        at: Instant::from_nanos((seconds * 1e9).round() as u64),
        to: number(to, "node")?,
        kind,
        bytes: u32::try_from(number(bytes, "size")?).map_err(|_| format!("{bytes} bytes are too many for a packet"))?,
        flags,
        flow: u32::try_from(number(flow, "flow number")?)
            .map_err(|_| format!("{} is not a flow number", quoted(flow)))?,
        source,
        destination,
        // -1 is none.
        number: sequence.parse::<i64>().map_err(|_| format!("{} is not a sequence number", quoted(sequence)))? as u32,
        id: number(id, "packet number")?,
        stream,
    })
}

/// The node of an address NODE.PORT; of a hierarchical one all but the port, as one number.
fn node(address: &str) -> Result<u64, String> {
    let wrong = || format!("{} is not an address", quoted(address));
    let (node, _port) = address.rsplit_once('.').ok_or_else(wrong)?;
    let parts: Vec<&str> = node.split('.').collect();
    match &parts[..] {
        [flat] => flat.parse().map_err(|_| wrong()),
        _ => {
            let dotted = node.parse::<IpAddr>().is_ok() || parts.iter().all(|part| part.parse::<u16>().is_ok());
            let fold = || parts.iter().fold(0u64, |sum, part| (sum << 16) + part.parse::<u64>().unwrap_or(0) + 1);
            if dotted && parts.len() <= 3 { Ok(fold()) } else { Err(wrong()) }
        }
    }
}

/// Protocol and cargo of a packet, and whether its number counts.
fn classify<'a>(it: &Line<'a>) -> (&'a str, Cargo, bool) {
    let mark = it.flags.as_bytes().last().copied().unwrap_or(b'-');
    match it.kind {
        "sctp" => match mark {
            b'D' => ("sctp", Cargo::Data, true),
            b'S' => ("sctp", Cargo::Acknowledgement, false),
            _ => ("sctp", Cargo::Control, false),
        },
        "tcp" => ("tcp", Cargo::Data, true),
        "ack" => ("tcp", Cargo::Acknowledgement, false),
        "tcpFriend" => ("tfrc", Cargo::Data, true),
        "tcpFriendCtl" => ("tfrc", Cargo::Acknowledgement, false),
        kind if kind.starts_with("DCCP_") => match &kind[5..] {
            "Data" | "DataAck" | "data" | "dataack" => ("dccp", Cargo::Data, true),
            "Ack" | "ack" => ("dccp", Cargo::Acknowledgement, false),
            _ => ("dccp", Cargo::Control, false),
        },
        other => (other, Cargo::Data, true),
    }
}
