//! How a session is going, for people.

use super::style::Style;
use super::table::{Table, Tone};
use super::units;
use braidcast_core::Instant;
use braidcast_session::{KindReport, PathReport, Report};
use std::collections::VecDeque;
use std::time::Duration;

/// The end that reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// The paths: state, rate, what they could carry, RTT, loss, share of units on time.
pub(crate) fn paths(report: &Report, end: End, name: impl Fn(&PathReport) -> String, style: Style) -> Table {
    let head: &[&str] = match end {
        End::Sender => &["path", "state", "rate", "carries", "RTT", "loss", "sent"],
        End::Receiver => &["path", "state", "rate", "on time", "received"],
    };
    let mut table = Table::new(head, style);
    for path in &report.paths {
        let cells = [(name(path), Tone::Plain), state(path), (units::rate(rate(path, end)), Tone::Plain)];
        let rest: Vec<(String, Tone)> = match end {
            End::Sender => vec![
                (carries(path), Tone::Plain),
                (path.rtt_ms.map_or_else(dash, |ms| units::time(Duration::from_secs_f64(ms / 1e3))), Tone::Plain),
                path.loss_share.map_or_else(|| (dash(), Tone::Plain), |loss| (units::share(loss), loss_tone(loss))),
                (units::bytes(path.sent_bytes), Tone::Plain),
            ],
            End::Receiver => vec![on_time(path.on_time_share), (units::bytes(path.received_bytes), Tone::Plain)],
        };
        table.row(cells.into_iter().chain(rest));
    }
    table
}

/// The units of each kind and how many of them were on time.
pub(crate) fn kinds(report: &Report, style: Style) -> Table {
    let mut table = Table::new(&["frames", "captured", "on time", "late", "missing", "share"], style);
    for kind in &report.kinds {
        let of_use = if kind.late_of_use > 0 { format!(" ({} useful)", kind.late_of_use) } else { String::new() };
        let [captured, timely, missing] = [kind.captured, kind.on_time, kind.missing].map(|n| n.to_string());
        let counts = [kind.kind.to_owned(), captured, timely, format!("{}{of_use}", kind.late), missing];
        let cells = counts.into_iter().map(|text| (text, Tone::Plain));
        table.row(cells.chain([on_time(kind.on_time_share)]));
    }
    table
}

/// Seconds of silence after which a path is left out while others carry the stream.
const DEAD: f64 = 15.0;

/// Leaves out what people need not see while a stream runs: paths long dead beside one that works.
/// Most often that is the address that a NAT gave before; a receiver cannot know. The summary and
/// figures for programs have them.
pub(crate) fn leave_out_dead(report: &mut Report) {
    if report.paths.iter().any(|path| path.state == "active") {
        report.paths.retain(|path| !is_long_dead(path.state, path.state_seconds));
    }
}

fn is_long_dead(state: &str, seconds: f64) -> bool {
    state == "inactive" && seconds >= DEAD
}

/// Everything in one line.
pub(crate) fn line(report: &Report, end: End, share: Option<f64>, name: impl Fn(&PathReport) -> String) -> String {
    let paths = report.paths.iter().filter(|path| path.state != "left");
    let paths = paths.map(|path| {
        let rtt = path
            .rtt_ms
            .filter(|_| end == End::Sender)
            .map_or_else(String::new, |ms| format!(", RTT {}", units::time(Duration::from_secs_f64(ms / 1e3))));
        format!(" | {}: {}, {}{rtt}", name(path), path.state, units::rate(rate(path, end)))
    });
    headline(report, end, share) + &paths.collect::<String>()
}

/// Time, rate and share on time of the whole.
pub(crate) fn headline(report: &Report, end: End, share: Option<f64>) -> String {
    let total: f64 = report.paths.iter().map(|path| rate(path, end)).sum();
    let share = share.map_or_else(String::new, |share| format!(", {} on time", units::share(share)));
    let (dropped, redundancy) = (dropped(report), redundancy(report));
    format!("{:.0} s, {}{share}{dropped}{redundancy}", report.seconds, units::rate(total))
}

/// What a path could carry; with a sign before it, it was never full of late, and may carry more.
fn carries(path: &PathReport) -> String {
    let sign = if path.capacity_is_floor { "≥ " } else { "" };
    path.capacity.map_or_else(dash, |capacity| format!("{sign}{}", units::rate(capacity)))
}

/// Returns the frames that were discarded, by kind.
fn dropped(report: &Report) -> String {
    let counts = report.kinds.iter().map(|kind| (kind.kind, kind.unsent + kind.abandoned));
    let counts: Vec<_> =
        counts.filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{kind} {count}")).collect();
    if counts.is_empty() { String::new() } else { format!(", dropped {}", counts.join(", ")) }
}

/// The code in use, and how much of what was sent it made; at the receiver, what it made up for.
fn redundancy(report: &Report) -> String {
    let sum = |count: fn(&PathReport) -> u64| report.paths.iter().map(count).sum::<u64>();
    let (extra, all) = (sum(|path| path.redundancy_chunks), sum(|path| path.redundancy_chunks + path.sent_chunks));
    match &report.redundancy {
        Some(code) => format!(", {code} ({} of the packets)", units::share(extra as f64 / all.max(1) as f64)),
        None if report.recovered_chunks > 0 => format!(", {} packets repaired", report.recovered_chunks),
        None => String::new(),
    }
}

/// How much of a file the receiver has written, and how long the rest takes at the present rate:
/// `37 % written, 1 min 12 s left, `.
pub(crate) fn progress(report: &Report, written: u64, size: u64) -> String {
    let rate: f64 = report.paths.iter().map(|path| path.send_rate).sum();
    let left = size.saturating_sub(written) as f64 * 8.0 / rate;
    let left = Duration::try_from_secs_f64(left).ok().filter(|left| *left < Duration::from_secs(100 * 3600));
    let left = left.map_or_else(String::new, |left| format!("{} left, ", units::time(left)));
    // Down, so that 100 % means all of it.
    let percent = (u128::from(written.min(size)) * 100).checked_div(u128::from(size)).unwrap_or(100);
    format!("{percent} % written, {left}")
}

/// Follows the share of units on time while a stream runs.
///
/// Units captured a moment ago are still in flight, and the other end's count of them comes even
/// later: they count once they are [`SETTLED`] or known to be on time or late.
#[derive(Default)]
pub(crate) struct Share {
    captured: VecDeque<(Instant, u64)>,
}

/// Age at which a unit is known to be on time, late, or lost.
const SETTLED: Duration = Duration::from_secs(3);

impl Share {
    /// The share so far, by the report of `now`; `None` while nothing is known.
    pub(crate) fn update(&mut self, now: Instant, report: &Report) -> Option<f64> {
        let sum = |count: fn(&KindReport) -> u64| report.kinds.iter().map(count).sum::<u64>();
        self.captured.push_back((now, sum(|kind| kind.captured)));
        while self.captured.get(1).is_some_and(|(at, _)| now.since(*at) >= SETTLED) {
            self.captured.pop_front();
        }
        let settled =
            self.captured.front().filter(|(at, _)| now.since(*at) >= SETTLED).map_or(0, |(_, captured)| *captured);
        let (on_time, late) = (sum(|kind| kind.on_time), sum(|kind| kind.late));
        let known = settled.max(on_time + late);
        (known > 0).then(|| on_time as f64 / known as f64)
    }
}

fn rate(path: &PathReport, end: End) -> f64 {
    match end {
        End::Sender => path.send_rate,
        End::Receiver => path.receive_rate,
    }
}

fn state(path: &PathReport) -> (String, Tone) {
    let tone = match path.state {
        "active" => Tone::Good,
        "inactive" => Tone::Bad,
        "left" => Tone::Plain,
        _ => Tone::Doubtful,
    };
    // Of what has been so for ever, the time since is of no interest.
    let since = (tone == Tone::Doubtful || tone == Tone::Bad).then(|| Duration::from_secs_f64(path.state_seconds));
    let since = since.filter(|since| !since.is_zero());
    (since.map_or_else(|| path.state.to_owned(), |since| format!("{} {}", path.state, units::time(since))), tone)
}

fn on_time(share: Option<f64>) -> (String, Tone) {
    let tone = |share| match share {
        s if s >= 0.99 => Tone::Good,
        s if s >= 0.9 => Tone::Doubtful,
        _ => Tone::Bad,
    };
    share.map_or_else(|| (dash(), Tone::Plain), |share| (units::share(share), tone(share)))
}

fn loss_tone(loss: f64) -> Tone {
    if loss > 0.1 {
        Tone::Bad
    } else if loss > 0.02 {
        Tone::Doubtful
    } else {
        Tone::Plain
    }
}

fn dash() -> String {
    "–".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(captured: u64, on_time: u64, late: u64) -> Report {
        let kind = KindReport {
            kind: "audio",
            captured,
            on_time,
            late,
            missing: captured - on_time - late,
            ..KindReport::default()
        };
        Report { kinds: vec![kind], ..Report::default() }
    }

    #[test]
    fn late_units_of_use_are_told_apart() {
        let mut report = report(10, 6, 3);
        report.kinds[0].late_of_use = 2;
        assert!(kinds(&report, Style::of(false)).to_string().contains("3 (2 useful)"));
    }

    #[test]
    fn only_paths_that_have_been_dead_for_long_are_left_out() {
        let shown = [("inactive", 14.9), ("potentially failed", 60.0), ("active", 60.0), ("unconfirmed", 60.0)];
        assert!(shown.iter().all(|&(state, seconds)| !is_long_dead(state, seconds)));
        assert!(is_long_dead("inactive", DEAD));
    }

    #[test]
    fn a_file_says_how_much_is_written_and_how_long_the_rest_takes() {
        let none = Report::default();
        assert_eq!(progress(&none, 0, 1000), "0 % written, ", "at no rate there is no time left to tell");
        assert_eq!(progress(&none, 999, 1000), "99 % written, ");
        assert_eq!(progress(&none, 0, 0), "100 % written, ");
    }

    #[test]
    fn units_on_their_way_do_not_count_until_they_should_be_there() {
        let mut share = Share::default();
        let at = Instant::from_millis;
        assert_eq!(share.update(at(0), &report(10, 0, 0)), None);
        assert_eq!(share.update(at(1000), &report(40, 30, 0)), Some(1.0));
        assert_eq!(share.update(at(2000), &report(70, 45, 15)), Some(0.75));
        // Ten of the forty that were there three seconds ago have not come.
        assert_eq!(share.update(at(4000), &report(130, 30, 0)), Some(0.75));
    }
}
