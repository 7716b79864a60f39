//! How a session is going, for people.

use super::style::Style;
use super::table::{Table, Tone};
use super::units;
use braidcast_media::Kind;
use braidcast_session::{PathReport, Report};
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

/// The units of each kind since the stream began, and what became of them: what is captured is the
/// sum of the columns behind it. What nobody knows yet has a column if there is any.
pub(crate) fn kinds(report: &Report, style: Style) -> Table {
    let open = report.kinds.iter().any(|kind| kind.not_known_yet > 0);
    let mut head = vec!["frames", "captured", "on time", "late", "dropped", "missing"];
    head.extend(open.then_some("not known yet"));
    head.push("share");
    let mut table = Table::new(&head, style);
    for kind in &report.kinds {
        let of_use = if kind.late_of_use > 0 { format!(" ({} useful)", kind.late_of_use) } else { String::new() };
        let late = format!("{}{of_use}", kind.late);
        let mut counts = vec![kind.kind.to_owned(), kind.captured.to_string(), kind.on_time.to_string(), late];
        counts.extend([kind.given_up, kind.missing].map(|count| count.to_string()));
        counts.extend(open.then(|| kind.not_known_yet.to_string()));
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
pub(crate) fn line(report: &Report, end: End, name: impl Fn(&PathReport) -> String) -> String {
    let paths = report.paths.iter().filter(|path| path.state != "left");
    let paths = paths.map(|path| {
        let rtt = path
            .rtt_ms
            .filter(|_| end == End::Sender)
            .map_or_else(String::new, |ms| format!(", RTT {}", units::time(Duration::from_secs_f64(ms / 1e3))));
        format!(" | {}: {}, {}{rtt}", name(path), path.state, units::rate(rate(path, end)))
    });
    headline(report, end) + &paths.collect::<String>()
}

/// Time and rate of the whole, and what was on time, of all and of the last ten seconds.
pub(crate) fn headline(report: &Report, end: End) -> String {
    // A sum of nothing is -0.
    let total = report.paths.iter().map(|path| rate(path, end)).sum::<f64>() + 0.0;
    let lately = on_time_lately(report, end);
    let (dropped, redundancy) = (dropped(report), redundancy(report));
    format!("{:.0} s, {}{lately}{dropped}{redundancy}", report.seconds, units::rate(total))
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
        None if report.recovered_chunks > 0 => format!(", {} packets made up for", report.recovered_chunks),
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

/// Silence of the other end from which it is worth a word.
const OLD_WORD: f64 = 3.0;

/// The share of the frames on time of all whose outcome is known, as the summary has it, and those of the last ten
/// seconds, of video apart from audio: `, 97.3 % on time (last 10 s: video 98.2 %, audio 100 %)`. If the
/// other end has been silent for long, it says so: the figures are as old.
fn on_time_lately(report: &Report, end: End) -> String {
    let share = |is_of: fn(Kind) -> bool| {
        let kinds =
            report.recent.iter().filter(|it| Kind::ALL.iter().any(|kind| is_of(*kind) && kind.name() == it.kind));
        let (on_time, all) = kinds.fold((0, 0), |(on_time, all), it| (on_time + it.on_time, all + it.captured));
        (all > 0).then(|| units::share(on_time as f64 / all as f64))
    };
    type Group = (&'static str, fn(Kind) -> bool);
    let groups: [Group; 3] =
        [("video ", Kind::is_video), ("audio ", |kind| kind == Kind::Audio), ("data ", |kind| kind == Kind::Data)];
    let shares: Vec<String> =
        groups.iter().filter_map(|(name, is_of)| share(*is_of).map(|share| format!("{name}{share}"))).collect();
    let span = report.recent_seconds.round().min(10.0);
    let (on_time, known) = report.kinds.iter().fold((0, 0), |(on_time, known), it| {
        (on_time + it.on_time, known + it.captured.saturating_sub(it.not_known_yet))
    });
    let whole = if known > 0 { on_time as f64 / known as f64 } else { 0.0 };
    let lately = match shares.as_slice() {
        [] => String::new(),
        shares => format!(", {} on time (last {span} s: {})", units::share(whole), shares.join(", ")),
    };
    let silent = report.unheard_seconds.filter(|seconds| *seconds >= OLD_WORD).map_or_else(String::new, |seconds| {
        let whole = Duration::from_secs(seconds as u64);
        let silence = if seconds < 120.0 { format!("{seconds:.0} s") } else { units::time(whole) };
        match end {
            End::Sender => format!(", the receiver's last word is {silence} old"),
            End::Receiver => format!(", nothing from the sender for {silence}"),
        }
    });
    lately + &silent
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
    use braidcast_session::{KindReport, RecentKind};

    fn report() -> Report {
        let mut kind = KindReport::default();
        (kind.kind, kind.captured, kind.on_time, kind.late, kind.missing) = ("P", 10, 6, 3, 1);
        let mut report = Report::default();
        report.kinds = vec![kind];
        report
    }

    #[test]
    fn late_units_of_use_are_told_apart_and_the_columns_add_up() {
        let mut report = report();
        report.kinds[0].late_of_use = 2;
        let table = kinds(&report, Style::of(false)).to_string();
        assert!(table.contains("3 (2 useful)") && !table.contains("not known yet"), "{table}");
        (report.kinds[0].captured, report.kinds[0].not_known_yet) = (14, 4);
        assert!(kinds(&report, Style::of(false)).to_string().contains("not known yet"));
    }

    #[test]
    fn a_line_has_the_last_ten_seconds_and_says_how_old_the_last_word_is() {
        let recent = |kind, captured, on_time| {
            let mut recent = RecentKind::default();
            (recent.kind, recent.captured, recent.on_time) = (kind, captured, on_time);
            recent
        };
        let recent = vec![recent("tables", 50, 0), recent("audio", 40, 40), recent("I", 2, 1), recent("P", 6, 6)];
        let mut report = report();
        (report.recent, report.recent_seconds, report.unheard_seconds) = (recent, 10.2, Some(1.0));
        assert_eq!(
            headline(&report, End::Sender),
            "0 s, 0 bit/s, 60.0 % on time (last 10 s: video 87.5 %, audio 100.0 %)"
        );
        report.unheard_seconds = Some(31.2);
        assert!(headline(&report, End::Sender).ends_with(", the receiver's last word is 31 s old"));
        report.recent.clear();
        assert_eq!(headline(&report, End::Receiver), "0 s, 0 bit/s, nothing from the sender for 31 s");
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
}
