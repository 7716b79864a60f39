//! What stdin says.

use serde::Deserialize;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What an encoder may make: what is of use here of a line of `--rate-report`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Allowance {
    /// The next frame, its share of the transport stream included.
    pub next_frame_bits: u64,
    #[serde(rename = "video_bits_per_second")]
    pub video_rate: f64,
    #[serde(rename = "smoothed_bits_per_second")]
    pub smoothed_rate: f64,
    /// `true` if there is a receiver.
    pub connected: bool,
}

/// The latest, and when it came.
#[derive(Clone, Debug, Default)]
pub struct Told(Arc<Mutex<Option<(Allowance, Instant)>>>);

impl Told {
    /// Reads lines until they end. What makes no sense is left out: the next line comes soon.
    pub fn read(&self, lines: impl BufRead) {
        for line in lines.lines().map_while(Result::ok) {
            if let Ok(allowance) = serde_json::from_str(&line) {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((allowance, Instant::now()));
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
