//! What stdin says.

use braidcast_rate::Allowance;
use serde::Deserialize;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What an encoder needs of a line of `--rate-report`.
#[derive(Deserialize)]
struct Line {
    next_frame_bits: u64,
    video_bits_per_second: f64,
    smoothed_bits_per_second: f64,
    connected: bool,
}

impl From<Line> for Allowance {
    fn from(line: Line) -> Self {
        Self {
            next_frame_bits: line.next_frame_bits,
            video_rate: line.video_bits_per_second,
            smoothed_rate: line.smoothed_bits_per_second,
            connected: line.connected,
        }
    }
}

/// The latest, and when it came.
#[derive(Clone, Debug, Default)]
pub struct Told(Arc<Mutex<Option<(Allowance, Instant)>>>);

impl Told {
    /// Reads lines until they end. What makes no sense is left out: the next line comes soon.
    pub fn read(&self, lines: impl BufRead) {
        for line in lines.lines().map_while(Result::ok) {
            if let Ok(line) = serde_json::from_str::<Line>(&line) {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((line.into(), Instant::now()));
            }
        }
    }

    pub fn latest(&self) -> Option<(Allowance, Instant)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_makes_sense_counts() {
        let told = Told::default();
        let line = |bits: u64| {
            format!(
                "{{\"version\":1,\"next_frame_bits\":{bits},\"video_bits_per_second\":5.5,\"smoothed_bits_per_second\":6,\"connected\":true,\"more\":[]}}\n"
            )
        };
        told.read(format!("{}{}nonsense\n{{}}\n", line(1), line(2)).as_bytes());
        assert_eq!(told.latest().map(|(it, _)| (it.next_frame_bits, it.video_rate)), Some((2, 5.5)));
    }
}
