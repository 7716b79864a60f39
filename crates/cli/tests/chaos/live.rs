//! A live stream from the field to home, whose ends are killed, stopped and started again.

use crate::networks::Networks;
use crate::process::{Memory, Process};
use crate::ts::{FRAME, Sink, Source};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How soon a sender that found no interface is started again.
const AGAIN: Duration = Duration::from_millis(300);

/// One end: a process, and since when it has been running undisturbed.
pub(crate) struct End {
    process: Option<Process>,
    said: PathBuf,
    pub(crate) since: Option<Instant>,
    /// When it is to be started or woken again.
    pub(crate) again: Option<Instant>,
    stopped: bool,
    pub(crate) most: Memory,
    /// By how much a process had more than in its first half minute, at most, KiB.
    pub(crate) grown: u64,
    pub(crate) starts: u32,
}

/// What is done to an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Blow {
    /// kill -9, and a new start.
    Killed,
    /// SIGSTOP, and SIGCONT.
    Stopped,
}

impl End {
    pub(crate) fn new(dir: &Path, name: &str) -> Self {
        let said = dir.join(format!("{name}.said"));
        Self {
            process: None,
            said,
            since: None,
            again: None,
            stopped: false,
            most: Memory::default(),
            grown: 0,
            starts: 0,
        }
    }

    pub(crate) fn start(&mut self, command: Command) -> &mut Process {
        self.since = Some(Instant::now());
        self.again = None;
        self.starts += 1;
        self.process.insert(Process::start(command, &self.said))
    }

    /// The process, unless it is killed at the moment.
    pub(crate) fn process(&mut self) -> Option<&mut Process> {
        self.process.as_mut()
    }

    pub(crate) fn blow(&mut self, blow: Blow, until: Instant) {
        let Some(process) = self.process.as_mut().filter(|_| self.since.is_some()) else { return };
        if blow == Blow::Stopped {
            process.signal(Signal::STOP);
            self.stopped = true;
        } else {
            process.kill();
            self.process = None;
        }
        self.since = None;
        self.again = Some(until);
    }

    /// Returns `true` if it is time to start it again; wakes it by itself if it only stands still.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.again.is_none_or(|at| at > Instant::now()) {
            return false;
        }
        if let Some(process) = self.process.as_ref().filter(|_| self.stopped) {
            process.signal(Signal::CONT);
            (self.stopped, self.again, self.since) = (false, None, Some(Instant::now()));
            return false;
        }
        true
    }

    /// It is not needed any more.
    pub(crate) fn put_away(&mut self) {
        (self.process, self.since, self.again, self.stopped) = (None, None, None, false);
    }

    pub(crate) fn sample(&mut self) {
        if let Some(process) = &mut self.process {
            let memory = process.sample();
            self.most.most = self.most.most.max(memory.most);
            self.most.early = self.most.early.max(memory.early);
            self.grown = self.grown.max(memory.most - memory.early);
        }
    }

    /// Fails if it ended by itself. A sender that was started while none of its interfaces was
    /// there says so and ends: whoever looks after services starts it again.
    pub(crate) fn must_run(&mut self, name: &str) {
        let Some(process) = &mut self.process else { return };
        let Some(status) = process.status() else { return };
        let words = process.last_words();
        let hint = "give --via an interface or address that is there";
        let nowhere = words.lines().last().is_some_and(|line| line.contains(hint));
        assert!(nowhere && status == 1, "{name} ended by itself, status {status}: {words}");
        self.put_away();
        self.again = Some(Instant::now() + AGAIN);
    }

    pub(crate) fn last_words(&self) -> String {
        self.process.as_ref().map_or_else(|| "not running".into(), Process::last_words)
    }
}

pub(crate) struct Live {
    pub(crate) tx: End,
    pub(crate) rx: End,
    port: u16,
    /// What the sender is told of where to.
    to: String,
    begun: Instant,
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    sink: Arc<Mutex<Sink>>,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Live {
    /// Starts a stream of `packets` packets a frame, on a port of all networks.
    pub(crate) fn start(networks: &Networks, dir: &Path, port: u16, packets: u64) -> Self {
        Self::start_to(networks, dir, ("live", port, packets), networks.paths(port))
    }

    /// The same with a name, and to wherever these arguments say.
    pub(crate) fn start_to(
        networks: &Networks,
        dir: &Path,
        (name, port, packets): (&str, u16, u64),
        to: String,
    ) -> Self {
        let begun = Instant::now();
        let mut live = Self {
            tx: End::new(dir, &format!("{name}-send")),
            rx: End::new(dir, &format!("{name}-receive")),
            port,
            to,
            begun,
            stdin: Arc::default(),
            sink: Arc::default(),
            over: Arc::default(),
            reader: None,
        };
        live.start_receiver(dir);
        live.rx.process().unwrap().wait_for("listening");
        live.start_sender(networks, dir);
        feed(packets, begun, live.stdin.clone(), live.over.clone());
        live
    }

    fn start_receiver(&mut self, dir: &Path) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_braidcast"));
        let args = format!("receive {} - --keep", self.port);
        command.args(args.split(' ')).current_dir(dir);
        let stdout = self.rx.start(command).stdout();
        // What the old one has written comes first.
        self.reader.take().into_iter().for_each(|reader| reader.join().unwrap());
        self.sink.lock().unwrap().anew();
        self.reader = Some(drain(stdout, self.begun, self.sink.clone()));
    }

    fn start_sender(&mut self, networks: &Networks, dir: &Path) {
        let command = networks.in_the_field(dir, &format!("send - {}", self.to));
        let stdin = self.tx.start(command).stdin();
        *self.stdin.lock().unwrap() = Some(stdin);
    }

    /// Starts and wakes who is due.
    pub(crate) fn tend(&mut self, networks: &Networks, dir: &Path) {
        self.tx.must_run("the live sender");
        self.rx.must_run("the live receiver");
        if self.rx.is_due() {
            self.start_receiver(dir);
        }
        if self.tx.is_due() {
            self.start_sender(networks, dir);
        }
        let wrong = self.sink.lock().unwrap().wrong.take();
        assert!(wrong.is_none(), "{wrong:?}");
    }

    /// When a whole frame came out last.
    pub(crate) fn came(&self) -> Instant {
        self.begun + self.sink.lock().unwrap().at
    }

    /// Packets that came out, and whole frames.
    pub(crate) fn amount(&self) -> (u64, u64) {
        let sink = self.sink.lock().unwrap();
        (sink.packets, sink.frames)
    }

    /// Packets that did not, of those that were made before the last one that did.
    pub(crate) fn missing(&self) -> u64 {
        self.sink.lock().unwrap().gaps.iter().map(|gap| gap.packets).sum()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Writes a frame each 40 ms to whoever is the sender. Frames that are made while it does not read
/// are late, as a camera's are.
pub(crate) fn feed(packets: u64, begun: Instant, to: Arc<Mutex<Option<ChildStdin>>>, over: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let (mut source, mut frame, mut next) = (Source::new(packets), Vec::new(), Instant::now());
        while !over.load(Ordering::Relaxed) {
            frame.clear();
            source.frame(begun.elapsed(), &mut frame);
            let mut to = to.lock().unwrap();
            if let Some(stdin) = to.as_mut()
                && stdin.write_all(&frame).is_err()
            {
                *to = None;
            }
            drop(to);
            next = (next + FRAME).max(Instant::now() - FRAME);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
}

fn drain(mut from: ChildStdout, begun: Instant, sink: Arc<Mutex<Sink>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            sink.lock().unwrap().read(begun.elapsed(), &buffer[..len]);
        }
    })
}
