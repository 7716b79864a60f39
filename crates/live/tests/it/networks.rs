//! Networks that lose packets, and what tests wait for.

use braidcast_core::{Instant, Rng};
use braidcast_emulate::Emulator;
use braidcast_live::{MediaReceiver, MediaSender, Path, ReceiverEvent, SenderEvent};
use braidcast_sim::link::{LinkModel, Loss};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const KEY: &str = "a passphrase that both ends know";
const LONG: Duration = Duration::from_secs(30);

pub(crate) fn localhost() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A way to `server` over a network that loses 3 % and carries 3 Mbit/s, as long as the process lives.
pub(crate) fn lossy(server: SocketAddr, seed: u64) -> Path {
    let model = LinkModel { loss: Loss::Uniform(0.03), ..LinkModel::wire(3_000_000, Duration::from_millis(20)) };
    let mut emulator = Emulator::new(localhost(), server, model.clone(), model, &Rng::from_seed(seed)).unwrap();
    let at = emulator.listen_addr();
    std::thread::spawn(move || {
        loop {
            let until: Instant = emulator.now() + Duration::from_millis(50);
            emulator.run(Some(until)).unwrap();
        }
    });
    Path::to(at)
}

pub(crate) fn paths(addrs: &[SocketAddr]) -> Vec<Path> {
    addrs.iter().map(|at| Path::to(*at)).collect()
}

/// Waits for an event of a sender in which `wanted` finds something.
pub(crate) fn wait_sender<T>(sender: &MediaSender, wanted: impl Fn(&SenderEvent) -> Option<T>) -> T {
    let mut seen = Vec::new();
    while let Some(event) = sender.poll(Some(LONG)).unwrap_or_else(|error| panic!("{error} after {seen:?}")) {
        if let Some(found) = wanted(&event) {
            return found;
        }
        seen.push(event);
    }
    panic!("only {seen:?}")
}

/// The same of a receiver.
pub(crate) fn wait_receiver<T>(receiver: &MediaReceiver, mut wanted: impl FnMut(&ReceiverEvent) -> Option<T>) -> T {
    let mut seen = Vec::new();
    while let Some(event) = receiver.poll(Some(LONG)).unwrap_or_else(|error| panic!("{error} after {seen:?}")) {
        if let Some(found) = wanted(&event) {
            return found;
        }
        if !matches!(event, ReceiverEvent::Bytes { .. } | ReceiverEvent::Unit { .. }) {
            seen.push(event);
        }
    }
    panic!("only {seen:?}")
}
