use super::style::Style;
use super::units;
use braidcast_core::Instant;
use console::{Term, truncate_str};
use std::cell::Cell;
use std::fmt::Display;
use std::time::Duration;

/// How often the table on a terminal is drawn anew.
const REDRAW: Duration = Duration::from_millis(250);
/// A warning that strangers can bring about is not repeated before.
const AGAIN: Duration = Duration::from_secs(10);
/// And of several such no more are given in that time.
const MAX_RARE: usize = 8;
/// Lines about what a peer may bring about as often as it likes: so many at once, then one in a
/// while.
const BURST: u32 = 20;
const PACE: Duration = Duration::from_secs(2);
/// How often a line is written if there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// Everything that a command says on stderr while it runs: a table that stays in place on a terminal, a line
/// now and then elsewhere, and notes and warnings above it.
pub(crate) struct Live {
    style: Style,
    quiet: bool,
    /// Terminal of the table, if stderr is one.
    terminal: Option<Term>,
    /// Lines of the table on the screen.
    drawn: Cell<usize>,
    next: Instant,
    /// How long the command has run.
    uptime: Duration,
    /// Warnings that anybody can bring about, and when they were given.
    rare: Vec<(String, Instant)>,
    /// When [`BURST`] lines may come at once again, and how many were left out.
    paced: (Instant, u64),
}

impl Live {
    /// Nothing but warnings if `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        // A terminal that cannot move its cursor gets lines, as a file does; lines that come at any
        // time would tear a table apart.
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let lines_only = quiet || dumb || crate::cmd::watch::words::is_on();
        let terminal = Some(Term::stderr()).filter(|term| !lines_only && term.is_term());
        Self {
            style: Style::stderr(),
            quiet,
            terminal,
            drawn: Cell::new(0),
            next: Instant::ZERO,
            uptime: Duration::ZERO,
            rare: Vec::new(),
            paced: (Instant::ZERO, 0),
        }
    }

    /// How stderr looks.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Something worth knowing.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text.as_ref());
        }
    }

    /// Something that the user may have to fix; said even when quiet.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        self.line(&format!("{} {}", self.style.yellow("warning:"), text.as_ref()));
    }

    /// The same for what strangers can bring about as often as they like: each text once in a while, and few at a time.
    pub(crate) fn warn_rarely(&mut self, now: Instant, text: String) {
        self.rare.retain(|(_, at)| now.since(*at) < AGAIN);
        if self.rare.len() < MAX_RARE && self.rare.iter().all(|(said, _)| *said != text) {
            self.warn(&text);
            self.rare.push((text, now));
        }
    }

    /// Says something that a peer may bring about as often as it likes, unless it does so too often.
    pub(crate) fn say_paced(&mut self, now: Instant, is_warning: bool, text: &str) {
        let Some(left_out) = pace(&mut self.paced, now) else { return };
        let more = if left_out > 0 { format!(" ({left_out} more lines were left out)") } else { String::new() };
        if is_warning {
            self.warn(format!("{text}{more}"));
        } else {
            self.note(format!("{text}{more}"));
        }
    }

    /// When [`due`](Self::due) next has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        (!self.quiet).then_some(self.next)
    }

    /// Returns `true` if it is time to show something new.
    pub(crate) fn due(&mut self, now: Instant) -> bool {
        if self.quiet || now < self.next {
            return false;
        }
        let first = self.next == Instant::ZERO;
        self.uptime = now.since(Instant::ZERO);
        self.next = now + if self.terminal.is_some() { REDRAW } else { LINE };
        // A first line without a measurement behind it would say nothing.
        self.terminal.is_some() || !first
    }

    /// Shows the state of affairs: `line` if there is no terminal, else `headline` and the table under it.
    pub(crate) fn show(&self, line: &str, headline: &str, table: &impl Display) {
        let Some(term) = &self.terminal else {
            say!("{line}");
            return;
        };
        let (height, width) = term.size();
        let text = format!("up {}: {headline}\n{table}", units::clock(self.uptime));
        // A line that wraps, or a table longer than the screen, could not be taken back.
        let lines = text.lines().take(usize::from(height).saturating_sub(1));
        let lines: Vec<_> = lines.map(|line| truncate_str(line, usize::from(width), "…").into_owned()).collect();
        self.clear();
        self.drawn.set(lines.len());
        // A terminal that went away shows nothing; the stream goes on.
        let _ = term.write_line(&lines.join("\n"));
    }

    /// Takes the table off the screen; what follows is printed as usual.
    pub(crate) fn close(&mut self) {
        self.clear();
        self.terminal = None;
    }

    fn clear(&self) {
        if let Some(term) = &self.terminal {
            let _ = term.clear_last_lines(self.drawn.take());
        }
    }

    /// Prints a line above the table, which the next [`show`](Self::show) draws again.
    fn line(&self, text: &str) {
        self.clear();
        say!("{text}");
    }
}

/// Returns how many lines were left out before this one; `None`: it is left out as well.
fn pace((full, left_out): &mut (Instant, u64), now: Instant) -> Option<u64> {
    let next = now.max(*full) + PACE;
    if next.since(now) > PACE * BURST {
        *left_out += 1;
        return None;
    }
    *full = next;
    Some(std::mem::take(left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_changes_paths_fills_no_log() {
        let mut paced = (Instant::ZERO, 0);
        // Ten thousand changes of paths in 40 s: the burst, and a line every 2 s.
        let said = (0..10_000).filter(|n| pace(&mut paced, Instant::from_millis(n * 4)).is_some()).count();
        assert!((38..=42).contains(&said), "{said}");
        let left_out = pace(&mut paced, Instant::from_millis(60_000));
        assert!(left_out.is_some_and(|count| count > 0));
        assert_eq!(pace(&mut paced, Instant::from_millis(60_000)), Some(0));
    }
}
