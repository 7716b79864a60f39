//! A file beside telemetry over one link: what a stream's priority is worth, over the simulator.

use super::model::{Process, ms};
use super::{Hub, SendOptions};
use crate::ConnectionId;
use crate::event::Event;
use crate::socket::usual_options;
use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_sctp::Options;
use braidcast_sim::link::LinkModel;
use braidcast_sim::{Duplex, Network, NodeId};
use std::time::Duration;

const DEADLINE: Duration = ms(200);
const TELEMETRY: u16 = 1;
const FILE: u16 = 2;

/// A car that sends 50 readings of 1000 bytes a second, 400 kbit/s, and a file as fast as it goes,
/// over 600 kbit/s.
struct Drive {
    net: Network<Process>,
    car: NodeId,
    home: NodeId,
    /// Bytes of the file that came.
    file: usize,
    /// Readings that came in time.
    in_time: usize,
}

impl Drive {
    fn new(delay: Duration) -> Self {
        let mut net = Network::new(1);
        let mut rng = Rng::from_seed(1);
        let mut node = |address| {
            let hub = Hub::new(usual_options(Options::live()), rng.fork()).unwrap();
            net.add(Process(Some(hub)), [address])
        };
        let (car, home) = (node("10.0.0.1:9899"), node("10.0.0.2:9899"));
        let rate = "600kbit".parse().unwrap();
        let model = LinkModel { rate, delay, queue: "100ms".parse().unwrap(), ..LinkModel::default() };
        net.connect((car, 0), (home, 0), Duplex::both(model));
        Self { net, car, home, file: 0, in_time: 0 }
    }

    fn on<R>(&mut self, node: NodeId, call: impl FnOnce(&mut Hub, Instant) -> R) -> R {
        self.net.with(node, |process, now| call(process.0.as_mut().expect("it is alive"), now))
    }

    /// What `node` is told of since the last call.
    fn events(&mut self, node: NodeId) -> Vec<(ConnectionId, Event)> {
        self.on(node, |hub, now| {
            hub.collect(now, |_, route| route.remote.to_string());
            std::iter::from_fn(|| hub.next_event()).collect()
        })
    }

    /// A millisecond passes; the other end reads what came. Readings carry when they were sent.
    fn go_on(&mut self) {
        self.net.run_for(ms(1));
        let now = self.net.now();
        let mut message = Vec::new();
        for (id, _) in self.events(self.home) {
            while let Some(received) = self.on(self.home, |hub, now| hub.recv(now, id, &mut message)).unwrap() {
                if received.stream == FILE {
                    self.file += message.len();
                    continue;
                }
                let sent = u64::from_be_bytes(message[..8].try_into().unwrap());
                self.in_time += usize::from(now <= Instant::from_micros(sent) + DEADLINE);
            }
        }
    }

    /// Drives for 30 s. Returns the share of readings that were discarded or came late.
    fn late(&mut self, priority: i8) -> f64 {
        self.on(self.home, |hub, _| hub.endpoint.listen());
        let route = Route::new(SocketId(0), "10.0.0.2:9899".parse().unwrap());
        let id = self.on(self.car, |hub, now| hub.connect(now, &[route])).unwrap();
        while !self.events(self.car).contains(&(id, Event::Connected)) {
            assert!(self.net.now() < Instant::from_millis(5_000), "they do not connect");
            self.go_on();
        }
        let reading = SendOptions::new().stream(TELEMETRY).unordered().deadline(DEADLINE).priority(priority);
        let piece = SendOptions::new().stream(FILE);
        let begun = self.net.now();
        let mut readings = 0;
        while self.net.now() < begun + Duration::from_secs(30) {
            if self.net.now() >= begun + ms(20) * readings {
                readings += 1;
                let mut text = [7; 1000];
                text[..8].copy_from_slice(&self.net.now().as_micros().to_be_bytes());
                self.on(self.car, |hub, now| hub.send(now, id, &text, &reading)).unwrap();
            }
            // The file always has something to send, and leaves room for readings.
            let waits = |hub: &mut Hub, _| hub.association(id).unwrap().unwrap().buffered();
            while self.on(self.car, waits) < 1 << 20 {
                self.on(self.car, |hub, now| hub.send(now, id, &[8; 16_384], &piece)).unwrap();
            }
            self.go_on();
            self.events(self.car);
        }
        (f64::from(readings) - self.in_time as f64) / f64::from(readings)
    }
}

#[test]
fn a_file_does_not_hold_up_telemetry_of_a_higher_priority() {
    for delay in [5, 15, 30].map(ms) {
        let (mut with, mut without) = (Drive::new(delay), Drive::new(delay));
        let late = [with.late(1), without.late(0)];
        assert!(late[0] <= 0.03, "with priority, {delay:?}: {late:?}");
        assert!(late[1] >= 0.1, "without, {delay:?}: {late:?}");
        // It has what is left of 75 kB/s, not nothing.
        assert!(with.file > 300_000, "{delay:?}: {} bytes", with.file);
    }
}
