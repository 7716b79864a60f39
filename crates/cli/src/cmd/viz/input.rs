//! What can be shown, known by its content: our traces, those of ns-2, captures.

use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::events::{SctpEvent, TraceEvent};
use braidcast_trace::{CaptureReader, FlowName, Ns2Reader, QlogReader, ReadError};
use braidcast_viz::{Exchange, Listener};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Bytes at the start of a file that are read to recognize its kind.
const START: usize = 1 << 18;

/// The two numbers of an association, the smaller one first.
pub(super) type Association = (u32, u32);

/// What is in a file.
enum Input {
    Trace(QlogReader<BufReader<File>>),
    Ns2,
    Capture(CaptureReader),
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn failed(path: &Path, error: &ReadError) -> Failure {
    let hint = match error {
        ReadError::Io(_) => "check the file's name",
        ReadError::Foreign(_) => {
            "give what --trace or --pcap wrote, a capture (pcapng, pcap), or a wired trace of ns-2"
        }
        ReadError::Record { .. } => "the lines before it are good: cut the file there (`head -n`)",
        ReadError::Block { .. } => "what was before it is good: `editcap` repairs captures",
    };
    Failure::new(format!("cannot read {}: {error}", path.display()), hint)
}

fn file(path: &Path) -> Outcome<BufReader<File>> {
    let file = File::open(path).map_err(|e| failed(path, &e.into()))?;
    Ok(BufReader::with_capacity(START, file))
}

fn open(path: &Path) -> Outcome<Input> {
    let mut reader = file(path)?;
    let start = reader.fill_buf().map_err(|e| failed(path, &e.into()))?;
    if CaptureReader::recognises(start) {
        return CaptureReader::new(reader).map(Input::Capture).map_err(|e| failed(path, &e));
    }
    if Ns2Reader::<io::Empty>::recognises(start) {
        return Ok(Input::Ns2);
    }
    QlogReader::new(reader).map(Input::Trace).map_err(|e| failed(path, &e))
}

/// The first association in a trace or a capture, the same at both ends. A trace of ns-2 has both
/// ends, and needs no other.
pub(super) fn association(path: &Path) -> Outcome<Option<Association>> {
    match open(path)? {
        Input::Trace(mut reader) => {
            while let Some(record) = reader.next_record().map_err(|e| failed(path, &e))? {
                match record.event {
                    TraceEvent::Sctp(SctpEvent::Opened { local_tag, peer_tag }) => {
                        return Ok(Some((local_tag.min(peer_tag), local_tag.max(peer_tag))));
                    }
                    TraceEvent::Dccp(_) => return Ok(Some((record.connection, record.connection))),
                    _ => {}
                }
            }
            Ok(None)
        }
        Input::Capture(mut reader) => {
            let mut listener = Listener::default();
            let mut found = None;
            while let Some(packet) = reader.next_packet().map_err(|e| failed(path, &e))? {
                listener.hear(&packet, &mut |record| match record.event {
                    TraceEvent::Sctp(SctpEvent::Opened { local_tag, peer_tag }) => {
                        found.get_or_insert((local_tag.min(peer_tag), local_tag.max(peer_tag)));
                    }
                    TraceEvent::Dccp(_) => _ = found.get_or_insert((record.connection, record.connection)),
                    _ => {}
                });
                if found.is_some() {
                    break;
                }
            }
            Ok(found)
        }
        Input::Ns2 => Ok(None),
    }
}

/// Reads the file in `path` into `exchange`. Returns `true` if it was simulated.
pub(super) fn read(path: &Path, exchange: &mut Exchange, flow: Option<&FlowName>, live: &Live) -> Outcome<bool> {
    match open(path)? {
        Input::Trace(mut reader) => {
            let end = exchange.add_end(reader.vantage());
            while let Some(record) = reader.next_record().map_err(|e| failed(path, &e))? {
                exchange.take(end, &record);
            }
            if reader.is_cut_off() {
                live.warn(cut_off(path, "an event"));
            }
            if reader.unknown() > 0 {
                let unknown = reader.unknown();
                live.note(format!("{} has {unknown} events of other kinds, which are left out", path.display()));
            }
            Ok(reader.is_simulated())
        }
        Input::Ns2 => read_ns2(path, exchange, flow, live).map(|()| true),
        Input::Capture(mut reader) => {
            let end = exchange.add_end("capture");
            let mut listener = Listener::default();
            while let Some(packet) = reader.next_packet().map_err(|e| failed(path, &e))? {
                listener.hear(&packet, &mut |record| exchange.take(end, record));
            }
            if reader.is_cut_off() {
                live.warn(cut_off(path, "a packet"));
            }
            if listener.encrypted() > 0 {
                live.warn(format!(
                    "{} packets of {} are encrypted: what is in them cannot be shown; a trace (--trace) can",
                    listener.encrypted(),
                    path.display()
                ));
            }
            if listener.foreign() > 0 {
                live.note(format!(
                    "{} packets of {} are neither SCTP nor DCCP, and are left out",
                    listener.foreign(),
                    path.display()
                ));
            }
            Ok(false)
        }
    }
}

fn cut_off(path: &Path, within: &str) -> String {
    format!("{} breaks off within {within}; showing what came before", path.display())
}

/// Takes one flow of a trace of ns-2: that which is asked for, or the one of SCTP, else of any, with the most bytes.
fn read_ns2(path: &Path, exchange: &mut Exchange, flow: Option<&FlowName>, live: &Live) -> Outcome {
    let mut flows: BTreeMap<FlowName, u64> = BTreeMap::new();
    let mut reader = Ns2Reader::new(file(path)?);
    while let Some(it) = reader.next_passage().map_err(|e| failed(path, &e))? {
        *flows.entry(it.flow).or_default() += u64::from(it.bytes);
    }
    if reader.is_cut_off() {
        live.warn(cut_off(path, "a line"));
    }
    let largest = flows.iter().max_by_key(|(name, bytes)| (name.protocol == "sctp", **bytes)).map(|(name, _)| name);
    let Some(shown) = flow.or(largest) else { return Ok(()) };
    let all = || flows.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !flows.contains_key(shown) {
        return Err(Failure::usage(
            format!("{} has no flow {shown}", path.display()),
            format!("its flows are {}", all()),
        ));
    }
    if flows.len() > 1 && flow.is_none() {
        live.note(format!("{} has the flows {}; showing {shown}: --flow chooses another", path.display(), all()));
    }
    let ends = ["near", "far"].map(|end| exchange.add_end(end));
    let mut reader = Ns2Reader::new(file(path)?);
    while let Some(it) = reader.next_passage().map_err(|e| failed(path, &e))? {
        if it.flow == *shown {
            exchange.take_passage(ends, &it);
        }
    }
    Ok(())
}
