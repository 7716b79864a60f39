//! "DCCP Probe": the inner state of connections, a line of CSV for each packet that leaves or
//! comes; the events of a trace as a table. docs/tools.md has the columns.

use super::watch::lock;
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_core::events::{DccpEvent, DccpMetrics, EventSink, TraceEvent};
use braidcast_dccp::wire::Kind;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The first line of the file.
const HEAD: &str = "time_s,connection,direction,type,seq,ack,payload_bytes,queued_messages,allowed_rate_Bps,fair_rate_Bps,\
    recv_rate_Bps,segment_bytes,srtt_ms,rto_ms,loss_event_rate,loss_events,cwnd_packets,ssthresh_packets,pipe_packets,\
    ack_ratio,acked_packets,lost_packets,marked_packets,timeouts";

/// Destination of the lines.
#[derive(Clone)]
pub(crate) struct Probe {
    path: PathBuf,
    table: Arc<Mutex<Table>>,
}

struct Table {
    file: BufWriter<File>,
    failed: Option<io::Error>,
    /// What connections are called, from 1, and what is known of each.
    connections: BTreeMap<u32, (u64, DccpMetrics)>,
    named: u64,
    /// The last packet: what is known after it may come yet.
    last: Option<(Instant, u32, Packet)>,
}

/// A packet that left or came.
#[derive(Clone, Copy)]
struct Packet {
    sent: bool,
    kind: u8,
    seq: u64,
    ack: Option<u64>,
    bytes: u32,
}

impl Probe {
    /// Makes the file anew.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        let mut file = BufWriter::new(File::create(path).map_err(|e| refused(path, &e))?);
        writeln!(file, "{HEAD}").map_err(|e| refused(path, &e))?;
        let table = Table { file, failed: None, connections: BTreeMap::new(), named: 0, last: None };
        Ok(Self { path: path.to_owned(), table: Arc::new(Mutex::new(table)) })
    }

    /// What is to be told.
    pub(crate) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(self.clone())
    }

    /// Returns `true` if all could be written.
    pub(crate) fn check(&self) -> Outcome {
        lock(&self.table).failed.take().map_or(Ok(()), |error| Err(refused(&self.path, &error)))
    }

    /// Writes what is still in memory.
    pub(crate) fn finish(&self) -> Outcome {
        lock(&self.table).write_last();
        self.check()?;
        lock(&self.table).file.flush().map_err(|e| refused(&self.path, &e))
    }
}

impl EventSink for Probe {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        let TraceEvent::Dccp(event) = *event else { return };
        let mut table = lock(&self.table);
        match event {
            DccpEvent::PacketSent { seq, kind, ack, bytes } => {
                table.packet(now, connection, Packet { sent: true, kind, seq, ack, bytes });
            }
            DccpEvent::PacketReceived { seq, kind, ack, bytes } => {
                table.packet(now, connection, Packet { sent: false, kind, seq, ack, bytes });
            }
            DccpEvent::Metrics(metrics) => table.connection(connection).1 = metrics,
            DccpEvent::Closed => {
                table.write_last();
                table.connections.remove(&connection);
            }
            _ => {}
        }
    }
}

impl Table {
    fn connection(&mut self, connection: u32) -> &mut (u64, DccpMetrics) {
        let named = &mut self.named;
        self.connections.entry(connection).or_insert_with(|| {
            *named += 1;
            (*named, DccpMetrics::default())
        })
    }

    fn packet(&mut self, now: Instant, connection: u32, packet: Packet) {
        self.write_last();
        self.last = Some((now, connection, packet));
    }

    fn write_last(&mut self) {
        if let Some((at, connection, packet)) = self.last.take() {
            let (number, metrics) = *self.connection(connection);
            if let Err(error) = self.write(at, number, &packet, &metrics) {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn write(&mut self, at: Instant, connection: u64, packet: &Packet, it: &DccpMetrics) -> io::Result<()> {
        let Packet { seq, bytes, .. } = packet;
        let (at, queued) = (at.as_secs_f64(), it.queued);
        let direction = if packet.sent { "sent" } else { "received" };
        let kind = Kind::NAMES.get(usize::from(packet.kind)).copied().unwrap_or("unknown");
        let ms = |time: std::time::Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let rate = |rate: f64| format!("{rate:.0}");
        write!(self.file, "{at:.6},{connection},{direction},{kind},{seq},{},{bytes},{queued}", cell(packet.ack))?;
        write!(
            self.file,
            ",{},{},{},{},{},{},{},{}",
            cell(it.allowed_rate.map(rate)),
            cell(it.fair_rate.map(rate)),
            cell(it.recv_rate.map(rate)),
            cell(it.segment.map(rate)),
            cell(it.srtt.map(ms)),
            cell(it.rto.map(ms)),
            cell(it.loss_event_rate.map(|p| format!("{p:.6}"))),
            it.loss_events,
        )?;
        writeln!(
            self.file,
            ",{},{},{},{},{},{},{},{}",
            cell(it.cwnd),
            cell(it.ssthresh),
            cell(it.pipe),
            cell(it.ack_ratio),
            it.acked,
            it.lost,
            it.marked,
            it.timeouts,
        )
    }
}

/// What a CCID does not have is an empty cell.
fn cell(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()), "choose another file for --probe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_cell_for_each_column_and_what_is_known_after_its_packet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("probe.csv");
        let probe = Probe::create(&path).unwrap();
        let tell = |ms, connection, event: DccpEvent| probe.tell(Instant::from_millis(ms), connection, &event.into());
        tell(1500, 77, DccpEvent::PacketSent { seq: 7, kind: 2, ack: None, bytes: 160 });
        tell(1500, 77, DccpEvent::Metrics(DccpMetrics { queued: 2, cwnd: Some(3), ..DccpMetrics::default() }));
        tell(1600, 88, DccpEvent::PacketReceived { seq: 9, kind: 3, ack: Some(7), bytes: 0 });
        tell(1700, 77, DccpEvent::Closed);
        // The same number again is another connection.
        tell(1800, 77, DccpEvent::PacketSent { seq: 1, kind: 0, ack: None, bytes: 0 });
        probe.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let columns = |line: &str| line.split(',').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{text}");
        assert!(lines[1].starts_with("1.500000,1,sent,Data,7,,160,2,,"), "{text}");
        assert!(lines[1].ends_with(",3,,,,0,0,0,0"), "{text}");
        assert!(lines[2].starts_with("1.600000,2,received,Ack,9,7,0,0,"), "{text}");
        assert!(lines[3].starts_with("1.800000,3,sent,Request,1,,0,0,"), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let refused = Probe::create(Path::new("/nowhere/probe.csv"));
        assert!(refused.is_err_and(|e| e.to_string().contains("/nowhere/probe.csv")));
    }
}
