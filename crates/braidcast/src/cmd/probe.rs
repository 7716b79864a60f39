//! "DCCP Probe": the inner state of connections, a line of CSV for each packet that leaves or comes. docs/tools.md has the columns.

use crate::failure::{Failure, Outcome};
use braidcast_dccp::Sample;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The first line of the file.
const HEAD: &str = "time_s,connection,direction,type,seq,ack,payload_bytes,queued_messages,allowed_rate_Bps,fair_rate_Bps,\
    recv_rate_Bps,segment_bytes,srtt_ms,rto_ms,loss_event_rate,loss_events,cwnd_packets,ssthresh_packets,pipe_packets,\
    ack_ratio,acked_packets,lost_packets,marked_packets,timeouts";

/// Where samples go.
pub(crate) struct Probe {
    path: PathBuf,
    file: BufWriter<File>,
    failed: Option<io::Error>,
}

impl Probe {
    /// Makes the file anew.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        let file = File::create(path).map_err(|e| refused(path, &e))?;
        let mut probe = Self { path: path.to_owned(), file: BufWriter::new(file), failed: None };
        writeln!(probe.file, "{HEAD}").map_err(|e| refused(path, &e))?;
        Ok(probe)
    }

    /// Writes a sample of the connection with this number; [`check`](Self::check) tells of errors.
    pub(crate) fn note(&mut self, connection: u64, sample: &Sample) {
        if let Err(error) = self.write(connection, sample) {
            self.failed.get_or_insert(error);
        }
    }

    /// Whether all could be written.
    pub(crate) fn check(&mut self) -> Outcome {
        self.failed.take().map_or(Ok(()), |error| Err(refused(&self.path, &error)))
    }

    fn write(&mut self, connection: u64, sample: &Sample) -> io::Result<()> {
        let Sample { kind, seq, payload, queued, ccid, .. } = sample;
        let at = sample.at.as_secs_f64();
        let direction = if sample.sent { "sent" } else { "received" };
        let ms = |time: std::time::Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let rate = |rate: f64| format!("{rate:.0}");
        // Before the first loss there is no threshold.
        let ssthresh = ccid.ssthresh.filter(|&packets| packets != u32::MAX);
        write!(self.file, "{at:.6},{connection},{direction},{kind},{seq},{},{payload},{queued}", cell(sample.ack))?;
        write!(
            self.file,
            ",{},{},{},{},{},{},{},{}",
            cell(ccid.allowed_rate.map(rate)),
            cell(ccid.fair_rate.map(rate)),
            cell(ccid.recv_rate.map(rate)),
            cell(ccid.segment_size.map(rate)),
            cell(ccid.srtt.map(ms)),
            cell(ccid.rto.map(ms)),
            cell(ccid.loss_event_rate.map(|p| format!("{p:.6}"))),
            ccid.loss_events,
        )?;
        writeln!(
            self.file,
            ",{},{},{},{},{},{},{},{}",
            cell(ccid.cwnd),
            cell(ssthresh),
            cell(ccid.pipe),
            cell(ccid.ack_ratio),
            ccid.acked,
            ccid.lost,
            ccid.marked,
            ccid.timeouts,
        )
    }

    /// Writes what is still in memory.
    pub(crate) fn finish(&mut self) -> Outcome {
        self.check()?;
        self.file.flush().map_err(|e| refused(&self.path, &e))
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
    use braidcast_core::Instant;
    use braidcast_dccp::CcidReport;

    #[test]
    fn each_line_has_a_cell_for_each_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("probe.csv");
        let mut probe = Probe::create(&path).unwrap();
        let (at, kind, ccid) = (Instant::from_millis(1500), "Data", CcidReport::default());
        let sample = Sample { at, sent: true, kind, seq: 7, ack: None, payload: 160, queued: 2, ccid };
        probe.write(1, &sample).unwrap();
        probe.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, line) = text.trim_end().split_once('\n').unwrap();
        assert_eq!(head.split(',').count(), line.split(',').count(), "{text}");
        assert!(line.starts_with("1.500000,1,sent,Data,7,,160,2,,"), "{line}");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        assert!(
            Probe::create(Path::new("/nowhere/probe.csv")).is_err_and(|e| e.to_string().contains("/nowhere/probe.csv"))
        );
    }
}
