//! The two applications: one sends the call's packets when they are due, the other notes when each of them comes.

use super::media::{Call, Packet, STREAMS, sequence_number};
use braidcast_media::voice::{Codec, Conditions, EModel, Form};
use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One-way delay after which a packet is too late for a call (SBPN §4.6.1).
pub(crate) const ON_TIME: Duration = Duration::from_millis(200);

/// How a stream arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    sent: usize,
    /// How long each packet that came took.
    delays: Vec<Duration>,
}

impl Arrivals {
    fn on_time(&self) -> impl Iterator<Item = Duration> + '_ {
        self.delays.iter().copied().filter(|delay| *delay <= ON_TIME)
    }

    /// Of all that were sent.
    pub(crate) fn share_on_time(&self) -> f64 {
        self.on_time().count() as f64 / self.sent as f64
    }

    /// Of all that were sent.
    pub(crate) fn share_that_came(&self) -> f64 {
        self.delays.len() as f64 / self.sent as f64
    }

    /// Returns the delay that the share `share` of what came had at most.
    pub(crate) fn delay(&self, share: f64) -> Option<Duration> {
        let mut delays = self.delays.clone();
        delays.sort();
        delays.get(((delays.len() as f64 * share) as usize).min(delays.len().saturating_sub(1))).copied()
    }

    /// What a listener would say who hears what was on time, with its mean delay (SBPN eq. 4.1 to
    /// 4.5). Opus has no parameters; these are G.711's, as SBPN has them.
    pub(crate) fn mos(&self) -> f64 {
        let heard = self.on_time().count();
        let delay = self.on_time().sum::<Duration>() / u32::try_from(heard.max(1)).unwrap();
        let conditions = Conditions { delay, loss: 1.0 - self.share_on_time(), burst_ratio: 1.0 };
        EModel::new(Form::Sbpn, Codec::G711).rate(&conditions).mos
    }
}

/// Holds the call: packets go to `entrances` and are expected at `exits`. Returns how each stream
/// arrived, and what was on time.
pub(crate) fn hold<'a>(
    call: &'a Call,
    entrances: [u16; 2],
    exits: &[UdpSocket; 2],
) -> ([Arrivals; 2], Vec<&'a Packet>) {
    let over = AtomicBool::new(false);
    let (sent, came) = std::thread::scope(|scope| {
        let listeners = exits.each_ref().map(|exit| scope.spawn(|| listen(exit, &over)));
        let sent = speak(call, entrances);
        // Packets in flight may still come; they are late in any case.
        std::thread::sleep(Duration::from_secs(1));
        over.store(true, Ordering::Relaxed);
        (sent, listeners.map(|listener| listener.join().unwrap()))
    });
    let mut arrivals = [0, 1].map(|stream| Arrivals { sent: call.count(stream), delays: Vec::new() });
    let mut on_time = Vec::new();
    for (packet, left) in call.packets.iter().zip(sent) {
        if let Some(at) = came[packet.stream].get(&sequence_number(&packet.bytes)) {
            let delay = at.saturating_duration_since(left);
            arrivals[packet.stream].delays.push(delay);
            on_time.extend((delay <= ON_TIME).then_some(packet));
        }
    }
    (arrivals, on_time)
}

/// Sends all packets when they are due; when each of them left.
fn speak(call: &Call, entrances: [u16; 2]) -> Vec<Instant> {
    let sockets = entrances.map(|port| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket
    });
    let began = Instant::now();
    let send = |packet: &Packet| {
        std::thread::sleep(packet.at.saturating_sub(began.elapsed()));
        let now = Instant::now();
        sockets[packet.stream]
            .send(&packet.bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", STREAMS[packet.stream]));
        now
    };
    call.packets.iter().map(send).collect()
}

/// When the packet of each number came first.
fn listen(socket: &UdpSocket, over: &AtomicBool) -> HashMap<u16, Instant> {
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (mut came, mut buf) = (HashMap::new(), [0; 2048]);
    while !over.load(Ordering::Relaxed) {
        if let Ok(len) = socket.recv(&mut buf) {
            came.entry(sequence_number(&buf[..len])).or_insert_with(Instant::now);
        }
    }
    came
}
