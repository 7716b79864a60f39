//! Files from the field to home, one after the other, whose ends are killed, stopped and started again.

use crate::live::End;
use crate::networks::Networks;
use braidcast_core::Rng;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) struct Files {
    pub(crate) tx: End,
    pub(crate) rx: End,
    port: u16,
    rng: Rng,
    number: u64,
    bytes: Vec<u8>,
    had: u64,
    /// When the file at home grew last, or something ended.
    pub(crate) moved: Instant,
    /// Since when the receiver has everything and has ended.
    received: Option<Instant>,
    pub(crate) whole: u64,
    pub(crate) whole_bytes: u64,
    /// Transfers whose sender was not told of their end because the receiver had gone by then.
    pub(crate) untold: u64,
}

/// How long a sender may go on after its receiver has ended well, while the networks work.
const TOLD: Duration = Duration::from_secs(10);

impl Files {
    /// Begins with the first one, of some random number of bytes.
    pub(crate) fn start(networks: &Networks, dir: &Path, port: u16, rng: Rng) -> Self {
        let mut files = Self {
            tx: End::new(dir, "file-send"),
            rx: End::new(dir, "file-receive"),
            port,
            rng,
            number: 0,
            bytes: Vec::new(),
            had: 0,
            moved: Instant::now(),
            received: None,
            whole: 0,
            whole_bytes: 0,
            untold: 0,
        };
        files.next(networks, dir);
        files
    }

    fn input(&self, dir: &Path) -> PathBuf {
        dir.join(format!("in-{}.bin", self.number))
    }

    fn output(&self, dir: &Path) -> PathBuf {
        dir.join(format!("out-{}.bin", self.number))
    }

    fn next(&mut self, networks: &Networks, dir: &Path) {
        self.number += 1;
        // Short ones as often as long ones: 10 kB to 30 MB.
        self.bytes = vec![0; (10_000.0 * 3000_f64.powf(self.rng.f64())) as usize];
        self.rng.fill(&mut self.bytes);
        std::fs::write(self.input(dir), &self.bytes).unwrap();
        (self.had, self.moved, self.received) = (0, Instant::now(), None);
        self.start_receiver(dir);
        self.start_sender(networks, dir);
    }

    fn start_receiver(&mut self, dir: &Path) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_braidcast"));
        let args = format!("receive {} out-{}.bin --give-up never", self.port, self.number);
        command.args(args.split(' ')).current_dir(dir);
        self.rx.start(command);
    }

    fn start_sender(&mut self, networks: &Networks, dir: &Path) {
        let args = format!("send in-{}.bin --reliable {}", self.number, networks.paths(self.port));
        self.tx.start(networks.in_the_field(dir, &args));
    }

    /// Starts and wakes who is due, looks at what has come, and begins with the next file when one is whole.
    pub(crate) fn tend(&mut self, networks: &Networks, dir: &Path, good: Option<Instant>) {
        let had = self.output(dir).metadata().map_or(0, |file| file.len());
        if had != self.had {
            (self.had, self.moved) = (had, Instant::now());
        }
        if let Some(status) = self.rx.process().and_then(|rx| rx.status())
            && self.received.is_none()
        {
            assert_eq!(status, 0, "the receiver of a file: {}", self.rx.last_words());
            self.received = Some(Instant::now());
            // What is in flight to the sender still is.
            self.rx.put_away();
        }
        let told = match self.tx.process().and_then(|tx| tx.status()) {
            Some(0) => true,
            _ => {
                self.tx.must_run("the sender of a file");
                false
            }
        };
        let waited = self.received.zip(good).is_some_and(|(at, good)| at.max(good).elapsed() > TOLD);
        if told || waited {
            self.untold += u64::from(!told);
            if !told {
                eprintln!("file {} is there, and its sender was not told: {}", self.number, self.tx.last_words());
            }
            self.finish(networks, dir);
        }
        if self.received.is_none() && self.rx.is_due() {
            self.start_receiver(dir);
        }
        if self.tx.is_due() {
            self.start_sender(networks, dir);
        }
    }

    /// Each byte is there, once.
    fn finish(&mut self, networks: &Networks, dir: &Path) {
        let came = std::fs::read(self.output(dir)).unwrap_or_default();
        let same = came.iter().zip(&self.bytes).take_while(|(a, b)| a == b).count();
        assert!(
            came == self.bytes,
            "file {}: {} of {} bytes came, the same up to {same}; sender: {}; receiver: {}",
            self.number,
            came.len(),
            self.bytes.len(),
            self.tx.last_words(),
            self.rx.last_words()
        );
        self.whole += 1;
        self.whole_bytes += came.len() as u64;
        self.tx.put_away();
        self.rx.put_away();
        for old in [self.input(dir), self.output(dir), dir.join(format!("out-{}.bin.braidcast", self.number))] {
            let _may_not_be_there = std::fs::remove_file(old);
        }
        self.next(networks, dir);
    }

    pub(crate) fn state(&self) -> String {
        format!("file {}: {} of {} bytes", self.number, self.had, self.bytes.len())
    }
}
