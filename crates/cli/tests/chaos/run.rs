//! A stream and files over networks that fail, and what must hold whatever happens to them.

use crate::files::Files;
use crate::live::{Blow, End, Live};
use crate::networks::{Fault, Networks};
use crate::process::Stalls;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How soon after the first network works a whole frame must have come out: two seconds, the
/// latency, and the frames before and after it.
pub(crate) const BACK: Duration = Duration::from_millis(2000 + 500 + 80);
/// How soon a file must grow: what got lost before comes first, over networks that another stream uses too.
const FILE_BACK: Duration = Duration::from_secs(30);
/// How much a process may grow after its first half minute, and how large it may be at all, KiB.
const GROWTH: u64 = 12 << 10;
const SIZE: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Who {
    LiveSender,
    LiveReceiver,
    FileSender,
    FileReceiver,
}

impl Who {
    pub(crate) const ALL: [Self; 4] = [Self::LiveSender, Self::LiveReceiver, Self::FileSender, Self::FileReceiver];
}

pub(crate) struct Run {
    pub(crate) networks: Networks,
    dir: PathBuf,
    pub(crate) live: Live,
    pub(crate) files: Option<Files>,
    stalls: Stalls,
    begun: Instant,
    /// What ails each network, and until when.
    faults: Vec<Option<(Fault, Instant)>>,
    /// Since when a network has carried packets of some size.
    works: Vec<Option<Instant>>,
    /// The longest time without output while all that is needed worked: since the last event, and ever.
    pub(crate) pause: Duration,
    pub(crate) worst: Duration,
    worst_file: Duration,
    sampled: Instant,
}

impl Run {
    pub(crate) fn new(dir: &Path, rates: &[&'static str]) -> Self {
        let networks = Networks::new(rates);
        let live = Live::start(&networks, dir, 9000, 20);
        let begun = Instant::now();
        Self {
            live,
            files: None,
            dir: dir.into(),
            stalls: Stalls::watch(),
            begun,
            faults: vec![None; rates.len()],
            works: vec![Some(begun); rates.len()],
            pause: Duration::ZERO,
            worst: Duration::ZERO,
            worst_file: Duration::ZERO,
            sampled: begun,
            networks,
        }
    }

    /// Sends files beside the stream, their number and bytes by this generator.
    pub(crate) fn send_files(&mut self, rng: braidcast_core::Rng) {
        self.files = Some(Files::start(&self.networks, &self.dir, 9001, rng));
    }

    /// Begins a fault on a network, unless it has one.
    pub(crate) fn begin(&mut self, n: usize, fault: Fault, lasts: Duration) {
        if self.faults[n].is_some() {
            return;
        }
        self.networks.begin(n, fault);
        let now = Instant::now();
        self.faults[n] = Some((fault, now + lasts));
        self.works[n] = fault.lets_through().then_some(now);
    }

    fn end(&mut self, n: usize) {
        let Some((fault, _)) = self.faults[n].take() else { return };
        self.networks.end(n, fault);
        // One that let something through goes on with what it was found to carry.
        self.works[n].get_or_insert_with(Instant::now);
    }

    fn is_over(&mut self, n: usize) -> bool {
        self.faults[n].is_some_and(|(_, until)| until <= Instant::now())
    }

    pub(crate) fn who(&mut self, who: Who) -> Option<&mut End> {
        match who {
            Who::LiveSender => Some(&mut self.live.tx),
            Who::LiveReceiver => Some(&mut self.live.rx),
            Who::FileSender => self.files.as_mut().map(|files| &mut files.tx),
            Who::FileReceiver => self.files.as_mut().map(|files| &mut files.rx),
        }
    }

    /// Kills or stops an end, for the time `lasts`.
    pub(crate) fn blow(&mut self, who: Who, blow: Blow, lasts: Duration) {
        if let Some(end) = self.who(who) {
            end.blow(blow, Instant::now() + lasts);
        }
    }

    /// Since when a network has worked, and both of these ends have run.
    fn good(&self, tx: &End, rx: &End) -> Option<Instant> {
        let network = self.works.iter().flatten().min()?;
        Some(tx.since?.max(rx.since?).max(*network))
    }

    /// Runs for `time`, and checks all the while that everything is as it must be.
    pub(crate) fn go_on(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn step(&mut self) {
        for n in 0..self.faults.len() {
            if self.is_over(n) {
                self.end(n);
            }
        }
        self.live.tend(&self.networks, &self.dir);
        let good = self.good(&self.live.tx, &self.live.rx);
        if let Some(files) = &mut self.files {
            let network = self.works.iter().flatten().min().copied();
            files.tend(&self.networks, &self.dir, network);
        }
        if let Some(good) = good {
            let since = good.max(self.live.came());
            let pause = since.elapsed().saturating_sub(2 * self.stalls.since(since));
            self.pause = self.pause.max(pause);
            self.worst = self.worst.max(pause);
            assert!(pause <= BACK, "no video for {pause:?} though it could come: {}", self.state());
        }
        if let Some(files) = &self.files
            && let Some(good) = self.good(&files.tx, &files.rx)
        {
            let since = good.max(files.moved);
            let pause = since.elapsed().saturating_sub(2 * self.stalls.since(since));
            self.worst_file = self.worst_file.max(pause);
            assert!(pause <= FILE_BACK, "no byte of a file for {pause:?} though it could come: {}", self.state());
        }
        if self.sampled.elapsed() > Duration::from_secs(1) {
            self.sampled = Instant::now();
            self.sample();
        }
    }

    fn sample(&mut self) {
        for who in Who::ALL {
            let Some(end) = self.who(who) else { continue };
            end.sample();
            let (most, grown) = (end.most.most, end.grown);
            assert!(most < SIZE && grown < GROWTH, "{who:?} has {most} KiB, {grown} more than at first");
        }
    }

    fn state(&self) -> String {
        let files = self.files.as_ref();
        let words = |end: Option<&End>| end.map_or_else(String::new, End::last_words);
        format!(
            "at {:.1?}; faults {:?}; stalls of this machine {:.1?}; {}\n-- live sender\n{}\n-- live receiver\n{}\n-- file sender\n{}\n-- file receiver\n{}",
            self.begun.elapsed(),
            self.faults.iter().map(|fault| fault.map(|(fault, _)| fault)).collect::<Vec<_>>(),
            self.stalls.since(self.begun),
            files.map_or_else(String::new, Files::state),
            self.live.tx.last_words(),
            self.live.rx.last_words(),
            words(files.map(|files| &files.tx)),
            words(files.map(|files| &files.rx)),
        )
    }

    /// What was seen, in a few lines.
    pub(crate) fn report(&mut self) -> String {
        let (packets, frames) = self.live.amount();
        let mut lines = vec![format!(
            "{:.0?}: {packets} packets and {frames} frames of video came whole, {} packets did not; at most {:.2?} without a frame while they could come; the machine stood still for {:.1?}",
            self.begun.elapsed(),
            self.live.missing(),
            self.worst,
            self.stalls.since(self.begun),
        )];
        if let Some(files) = &self.files {
            lines.push(format!(
                "{} files of {:.1} MB together came whole, {} senders were not told; at most {:.1?} without a byte",
                files.whole,
                files.whole_bytes as f64 / 1e6,
                files.untold,
                self.worst_file
            ));
        }
        for who in Who::ALL {
            if let Some(end) = self.who(who) {
                lines.push(format!(
                    "{who:?}: started {} times, {:.1} MiB at most, at most {:.1} MiB more than in its first 30 s",
                    end.starts,
                    end.most.most as f64 / 1024.0,
                    end.grown as f64 / 1024.0
                ));
            }
        }
        lines.join("\n")
    }
}
