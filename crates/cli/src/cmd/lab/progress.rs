//! How far the runs are: a bar with the time left if stderr is a terminal, else a line for each
//! tenth.

use braidcast_lab::results::Results;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Lines if there is no bar.
const LINES: u64 = 10;

/// How far the runs are. May be told from any thread.
pub(super) struct Progress {
    /// The bar, if stderr is a terminal.
    bar: Option<ProgressBar>,
    quiet: bool,
    runs: u64,
    done: AtomicU64,
}

impl Progress {
    /// None of `runs` is done yet. Says nothing if `quiet`.
    pub(super) fn new(quiet: bool, runs: usize) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| bar(runs as u64));
        Self { bar, quiet, runs: runs as u64, done: AtomicU64::new(0) }
    }

    /// One more is done.
    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => bar.set_position(done),
            None if !self.quiet && done * LINES / self.runs > (done - 1) * LINES / self.runs => {
                say!("{done} of {} runs", self.runs);
            }
            None => {}
        }
    }

    /// An experiment is over.
    pub(super) fn note(&self, name: &str, results: &Results) {
        if let Some(bar) = &self.bar {
            let lost = results.lost_runs.len();
            let lost = if lost == 0 { String::new() } else { format!(", {lost} runs lost") };
            bar.println(format!("{name}: {} means{lost}", results.rows.len()));
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// How many are done, and how many were to be.
    pub(super) fn done(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.runs)
    }
}

fn bar(runs: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("[{bar:30}] {pos}/{len} runs, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
