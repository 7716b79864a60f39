//! Programs as processes of their own over lossy networks; also of `bindings/c`'s tests.

use braidcast_core::{Instant, Rng};
use braidcast_emulate::Emulator;
use braidcast_sim::link::{LinkModel, Loss};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A program, and the lines that it has printed.
pub(crate) struct Program {
    pub(crate) process: Child,
    printed: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let printed = Arc::<(Mutex<Vec<String>>, Condvar)>::default();
        let (out, kept) = (process.stdout.take().unwrap(), printed.clone());
        let name = command.get_program().to_string_lossy().rsplit('/').next().unwrap_or_default().to_owned();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                println!("{name}: {line}");
                kept.0.lock().unwrap().push(line);
                kept.1.notify_all();
            }
        });
        Self { process, printed }
    }

    /// Waits for lines in which `wanted` finds something.
    pub(crate) fn wait<T>(&self, what: &str, wanted: impl Fn(&[String]) -> Option<T>) -> T {
        let mut lines = self.printed.0.lock().unwrap();
        loop {
            if let Some(found) = wanted(&lines) {
                return found;
            }
            let (locked, waited) = self.printed.1.wait_timeout(lines, Duration::from_secs(60)).unwrap();
            lines = locked;
            assert!(!waited.timed_out(), "nothing says {what} in {lines:?}");
        }
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |lines| lines.iter().any(|line| line.contains(text)).then_some(()));
    }

    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A lossy network to `server`, until `goes_on` is false.
fn network(server: SocketAddr, seed: u64, goes_on: &Arc<AtomicBool>) -> SocketAddr {
    let model = LinkModel { loss: Loss::Uniform(0.03), ..LinkModel::wire(1_500_000, Duration::from_millis(20)) };
    let listen = "127.0.0.1:0".parse().unwrap();
    let mut emulator = Emulator::new(listen, server, model.clone(), model, &Rng::from_seed(seed)).unwrap();
    let (at, goes_on) = (emulator.listen_addr(), Arc::clone(goes_on));
    std::thread::spawn(move || {
        while goes_on.load(Relaxed) {
            let until: Instant = emulator.now() + Duration::from_millis(50);
            emulator.run(Some(until)).unwrap();
        }
        // Its sockets stay, so that nobody hears that the port is closed.
        loop {
            std::thread::park();
        }
    });
    at
}

/// A server's two addresses, and lossy networks to them, each until its `alive` is false.
pub(crate) struct Networks {
    pub(crate) ports: [String; 2],
    pub(crate) alive: [Arc<AtomicBool>; 2],
    pub(crate) through: [String; 2],
}

impl Networks {
    /// Those of a program that prints where it listens.
    pub(crate) fn to(server: &Program) -> Self {
        let at = |line: &String| line.strip_prefix("listening at ").map(str::to_owned);
        let port = |nth| server.wait("listening at", |lines| lines.iter().filter_map(at).nth(nth));
        let (ports, alive) = ([0, 1].map(port), [(); 2].map(|()| Arc::new(AtomicBool::new(true))));
        let through = [0, 1].map(|nth| network(ports[nth].parse().unwrap(), nth as u64, &alive[nth]).to_string());
        Self { ports, alive, through }
    }
}

/// A folder for a test, which goes with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("braidcast-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
