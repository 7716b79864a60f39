//! Recorded links: when each may pass 1500 bytes.

use std::fs;
use std::path::Path;

/// Bytes that one chance lets pass.
pub(crate) const CHANCE: u64 = 1500;
/// Payload of those: without IP and UDP (28), SCTP (12), I-DATA (20); what is left holds parts of
/// messages, which stand for packets of the transport stream with four bytes more.
pub(crate) const PAYLOAD: u64 = (CHANCE - 60) * 188 / 184;

/// The chances of a link over a whole run, in ms after its start; from a recording that is turned
/// so that it begins at `from`, ms, and goes round. `path`: mahimahi's format, lines of "seconds
/// Mbit/s" (.txt), or a number of kbit/s in place of a file.
pub(crate) fn chances(path: &str, from: u64, length: u64) -> Result<Vec<u32>, String> {
    let (recorded, period) = if let Ok(kbit) = path.parse::<u64>() {
        let steps = [(0, kbit as f64 / 1000.0)];
        (steady(&steps, 60_000), 60_000)
    } else {
        read(Path::new(path))?
    };
    let from = from % period;
    let mut all = Vec::new();
    for round in 0..=(from + length) / period + 1 {
        for at in &recorded {
            let at = at + round * period;
            if at >= from && at - from < length {
                all.push(u32::try_from(at - from).unwrap_or(u32::MAX));
            }
        }
    }
    if all.is_empty() { Err(format!("{path}: nothing passes within {length} ms")) } else { Ok(all) }
}

fn read(path: &Path) -> Result<(Vec<u64>, u64), String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
    let bad = |n: usize| format!("{name}, line {}: neither a time nor \"seconds Mbit/s\"", n + 1);
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    if path.extension().is_some_and(|it| it == "txt") {
        let step = |(n, line): (usize, &str)| {
            let mut words = line.split_whitespace().map(str::parse::<f64>);
            match (words.next(), words.next()) {
                (Some(Ok(at)), Some(Ok(mbit))) if at >= 0.0 && mbit >= 0.0 => Ok(((at * 1000.0) as u64, mbit)),
                _ => Err(bad(n)),
            }
        };
        let steps: Vec<(u64, f64)> = lines().map(step).collect::<Result<_, _>>()?;
        let end = steps.last().ok_or(format!("{name} is empty"))?.0 + 1000;
        return Ok((steady(&steps, end), end));
    }
    let times: Vec<u64> = lines().map(|(n, line)| line.trim().parse().map_err(|_| bad(n))).collect::<Result<_, _>>()?;
    let period = times.last().filter(|last| **last > 0).ok_or(format!("{name} is empty"))? + 1;
    Ok((times, period))
}

/// Chances of a rate that changes by steps.
fn steady(steps: &[(u64, f64)], end: u64) -> Vec<u64> {
    let (mut chances, mut owed) = (Vec::new(), 0.0);
    for (n, (at, mbit)) in steps.iter().enumerate() {
        let until = steps.get(n + 1).map_or(end, |(next, _)| *next);
        for ms in *at..until {
            // Mbit/s are kbit in a millisecond.
            owed += mbit * 1000.0 / 8.0;
            while owed >= CHANCE as f64 {
                owed -= CHANCE as f64;
                chances.push(ms);
            }
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_turned_and_goes_round() {
        let steady = chances("12000", 0, 10).unwrap();
        assert_eq!(steady, (0..10).collect::<Vec<u32>>(), "1500 bytes each millisecond");
        let path = std::env::temp_dir().join("braidcast-trial-link.up");
        fs::write(&path, "1\n3\n3\n").unwrap();
        assert_eq!(chances(&path.display().to_string(), 2, 9).unwrap(), [1, 1, 3, 5, 5, 7]);
        fs::write(&path, "x\n").unwrap();
        assert!(chances(&path.display().to_string(), 0, 9).unwrap_err().contains("line 1"));
    }
}
