//! Numbers as people read them.

use std::time::Duration;

/// `bits` per second: `2.13 Mbit/s`.
pub(crate) fn rate(bits: f64) -> String {
    scaled(bits, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// `bytes`: `1.50 MB`, in powers of 1000.
pub(crate) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB"])
}

/// Three digits and the unit that makes them readable.
fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

/// A time span: `850 µs`, `18.3 ms`, `1.20 s`, `2 min 05 s`.
pub(crate) fn time(span: Duration) -> String {
    let secs = span.as_secs_f64();
    match secs {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 99.95e-3 => format!("{:.1} ms", s * 1e3),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 59.95 => format!("{s:.1} s"),
        s => format!("{} min {:02} s", s.round() as u64 / 60, s.round() as u64 % 60),
    }
}

/// A time as a clock shows it: `1:02:03`.
pub(crate) fn clock(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A share from 0 to 1 as per cent; `100 %` only when nothing is missing.
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 99.95 && share < 1.0 { "99.9 %".into() } else { format!("{percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_is_shown_as_by_a_clock() {
        let clocks = [0, 65, 3599, 3600, 90_061].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(clocks, ["0:00", "1:05", "59:59", "1:00:00", "25:01:01"]);
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(rate(2_134_000.0), "2.13 Mbit/s");
        assert_eq!(rate(999_600.0), "1.00 Mbit/s");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(15_040_000), "15.0 MB");
        assert_eq!(time(Duration::from_micros(18_345)), "18.3 ms");
        assert_eq!(time(Duration::from_secs(125)), "2 min 05 s");
        assert_eq!(share(0.99999), "99.9 %");
        assert_eq!(share(1.0), "100.0 %");
    }
}
