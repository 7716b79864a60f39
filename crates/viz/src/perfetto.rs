//! The same for Perfetto and other viewers of Chrome's trace format (JSON object format): a process
//! for each end, a thread for each path, an arrow for each packet that came, a bar for each frame.

use crate::exchange::Exchange;
use crate::rows::{Known, NONE, Outcome, PacketOutcome, Sent, What};
use braidcast_core::events::FrameKind;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// How long the slice of a packet is, in µs: long enough for an arrow to begin at, too short to be seen.
const SLICE: f64 = 0.1;
/// The process that frames stand in, and those of the ends from 1 on.
const FRAMES: usize = 1000;

impl Exchange {
    /// Writes it in Chrome's trace format. Nothing can be taken any more. Times are microseconds.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn perfetto(mut self, title: &str, out: impl Write) -> io::Result<()> {
        self.join();
        let left = self.left();
        let mut events = Events { out, first: true, last: HashMap::new() };
        write!(
            events.out,
            "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[",
            json!({ "title": title })
        )?;
        for (end, name) in self.ends.iter().enumerate() {
            events.name("process_name", end + 1, 0, name)?;
        }
        if self.ends.len() == 1 {
            events.name("process_name", 2, 0, "the other end")?;
        }
        let mut tracks: Vec<(usize, u32)> = self.sent.iter().map(|row| (row.end.min(1), row.path)).collect();
        tracks.sort_unstable();
        tracks.dedup();
        for end in 1..=2 {
            let mut paths: Vec<u32> = tracks.iter().map(|(_, path)| *path).collect();
            paths.dedup();
            for path in paths {
                events.name("thread_name", end, path, &format!("path {path}"))?;
            }
        }
        // Slices of a track come in the order of time, so that they do not overlap.
        let mut sides: Vec<(f64, bool, usize)> = Vec::new();
        for (place, row) in self.sent.iter().enumerate() {
            sides.push((row.sent, true, place));
            if !row.arrived.is_nan() && row.end != usize::MAX {
                sides.push((row.arrived, false, place));
            }
        }
        sides.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, leaves, place) in sides {
            events.packet(at, leaves, place, &self.sent[place], &self.frames.rows)?;
        }
        for it in self.known.iter().filter(|it| it.end == left) {
            events.known(it)?;
        }
        self.frame_events(&mut events)?;
        events.out.write_all(b"]}\n")?;
        events.out.flush()
    }

    fn frame_events(&self, events: &mut Events<impl Write>) -> io::Result<()> {
        if self.frames.rows.is_empty() {
            return Ok(());
        }
        events.name("process_name", FRAMES, 0, "frames")?;
        for (place, it) in self.frames.rows.iter().enumerate() {
            let until =
                [it.deadline, it.arrived, it.given_up].into_iter().filter(|t| !t.is_nan()).fold(it.captured, f64::max);
            let outcome = match it.outcome {
                Outcome::Unknown => "unknown",
                Outcome::OnTime => "on time",
                Outcome::Late => "late",
                Outcome::Unsent => "never sent",
                Outcome::GivenUp => "abandoned in flight",
                Outcome::Missing => "missing",
            };
            let kind = FrameKind::of(usize::from(it.kind)).name();
            let name = format!("frame {} ({kind}), {outcome}", it.number);
            let args =
                json!({ "bytes": it.bytes, "arrived_ms": number(it.arrived), "deadline_ms": number(it.deadline) });
            let both = [("b", it.captured), ("e", until)];
            for (phase, at) in both {
                events.write(&json!({
                    "ph": phase, "cat": "frame", "id": place, "name": name, "pid": FRAMES, "tid": 0, "ts": at * 1e3, "args": args,
                }))?;
            }
        }
        Ok(())
    }
}

/// `null` for what is not known.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

struct Events<W> {
    out: W,
    first: bool,
    /// When the last slice of each track ended.
    last: HashMap<(usize, u32), f64>,
}

impl<W: Write> Events<W> {
    fn write(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if core::mem::take(&mut self.first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut self.out, event).map_err(io::Error::from)
    }

    fn name(&mut self, what: &str, process: usize, thread: u32, name: &str) -> io::Result<()> {
        self.write(&json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } }))
    }

    /// A packet leaves or comes: a slice, and an end of its arrow.
    fn packet(
        &mut self,
        at: f64,
        leaves: bool,
        place: usize,
        row: &Sent,
        frames: &[crate::rows::Frame],
    ) -> io::Result<()> {
        let sender = row.end.min(1);
        let process = if leaves { sender + 1 } else { 2 - sender };
        let last = self.last.entry((process, row.path)).or_insert(f64::NEG_INFINITY);
        let ts = (at * 1e3).max(*last);
        *last = ts + SLICE;
        let what = match row.what {
            What::New => "new",
            What::Repeat => "again",
            What::Copy => "copy",
            What::Redundancy => "redundancy",
            What::Sack => "SACK",
            What::Forward => "FORWARD-TSN",
            What::Control => "control",
        };
        let outcome = match row.outcome {
            PacketOutcome::Unknown => "unknown",
            PacketOutcome::Arrived => "arrived",
            PacketOutcome::Lost => "lost",
            PacketOutcome::Recovered => "lost, made up for by redundancy",
            PacketOutcome::Duplicate => "came twice",
        };
        let frame = frames.get(row.frame as usize).filter(|_| row.frame != NONE).map(|it| it.number);
        let name = if row.number.is_nan() { what.to_owned() } else { format!("{what} {}", row.number) };
        let args = json!({ "bytes": row.bytes, "outcome": outcome, "frame": frame, "reckoned": row.reckoned });
        let (pid, tid) = (process, row.path);
        self.write(&json!({ "ph": "X", "cat": what, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": SLICE, "args": args }))?;
        if row.arrived.is_nan() || row.end == usize::MAX {
            return Ok(());
        }
        let phase = if leaves { "s" } else { "f" };
        self.write(&json!({ "ph": phase, "bp": "e", "cat": "transit", "name": "transit", "id": place, "pid": pid, "tid": tid, "ts": ts }))
    }

    fn known(&mut self, it: &Known) -> io::Result<()> {
        let values = [
            ("window, bytes", it.cwnd),
            ("in flight, bytes", it.in_flight),
            ("smoothed RTT, ms", it.srtt),
            ("in queues, ms", it.queued),
        ];
        for (name, value) in values.into_iter().filter(|(_, value)| !value.is_nan()) {
            let name = format!("path {}: {name}", it.path);
            self.write(&json!({ "ph": "C", "name": name, "pid": it.end.min(1) + 1, "tid": 0, "ts": it.at * 1e3, "args": { "value": value } }))?;
        }
        Ok(())
    }
}
