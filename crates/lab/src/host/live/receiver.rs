use super::AFTER;
use crate::clip::{Shot, Timeline};
use crate::host::window::Window;
use crate::scenario::FlowSpec;
use braidcast_core::{Datagram, Instant, Machine, PathId, Rng, Transmit};
use braidcast_media::ts::PACKET;
use braidcast_session::{ChannelId, LogEntry, Receiver, ReceiverOptions, Report};
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// The only channel of a receiver that takes one stream.
const CHANNEL: ChannelId = ChannelId(0);

/// What came out of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Came {
    /// Packets.
    pub packets: u32,
    /// The longest that one of them took, from its coming out of the encoder to its coming out here.
    pub slowest: Duration,
    /// When all of it had arrived, be it too late, and over which path the last of it came.
    pub whole: Option<(Instant, PathId)>,
}

/// What receives a clip, and the screen that notes when each packet comes out.
pub struct LiveReceiver {
    receiver: Receiver,
    window: Window,
    begin: Instant,
    timeline: Arc<Timeline>,
    /// What came of each frame of the timeline.
    pub came: Vec<Came>,
    /// What became of each unit, if an encoder that follows makes them in place of a timeline.
    pub log: Option<Vec<LogEntry>>,
    buffer: Vec<u8>,
    closing: bool,
}

impl fmt::Debug for LiveReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveReceiver({:?})", self.window)
    }
}

impl LiveReceiver {
    /// Returns a host that takes `timeline`, which begins at `begin`, or for `duration` the frames of
    /// an encoder that follows.
    pub fn host(flow: &FlowSpec, timeline: Arc<Timeline>, duration: Duration, begin: Instant, rng: &Rng) -> Self {
        let events = flow.live.sender.events.clone();
        let options = ReceiverOptions::default().with(|it| {
            it.early = flow.live.early;
            it.log = true;
            it.events = events;
        });
        // How `[sctp]` has the acknowledgements is the receiver's affair.
        let transport = options.transport().with(|it| it.sack = flow.sctp.sack);
        let log = flow.live.encoder.is_some().then(Vec::new);
        let length = if log.is_some() { duration } else { timeline.end() };
        let mut window = Window::new(Duration::ZERO, length + flow.live.sender.latency + AFTER);
        window.begin(begin);
        Self {
            receiver: Receiver::with_transport(options, transport, rng.stream("receiver")).expect("its options work"),
            window,
            begin,
            log,
            came: vec![Came::default(); timeline.shots().len()],
            timeline,
            buffer: Vec::new(),
            closing: false,
        }
    }

    /// When it counts.
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The frames that were sent.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The session's own report.
    pub fn report(&self) -> Report {
        self.receiver.report(self.window.closes().unwrap_or(self.begin), CHANNEL)
    }

    fn work(&mut self, now: Instant) {
        while self.receiver.poll_output(now, CHANNEL, &mut self.buffer) {
            for packet in self.buffer.chunks_exact(PACKET) {
                let Some(number) = Shot::number(packet) else { continue };
                let Some(place) = self.timeline.place(number) else { continue };
                let shot = &self.timeline.shots()[place];
                let left = self.begin + shot.packet((number - shot.first) as u32);
                let came = &mut self.came[place];
                came.packets += 1;
                came.slowest = came.slowest.max(now.since(left));
            }
        }
        for entry in self.receiver.take_log() {
            // Units are numbered in the order in which they were pushed, which is that in which they are ready.
            if let Some(place) = self.timeline.ready_place(entry.sequence as usize) {
                self.came[place].whole = Some((entry.arrived, entry.path));
            }
            if let Some(log) = &mut self.log {
                log.push(entry);
            }
        }
        while self.receiver.poll_event().is_some() {}
        self.closing |= self.window.is_over(now);
    }
}

impl Machine for LiveReceiver {
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.receiver.handle_datagram(now, datagram);
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            self.receiver.handle_timeout(now);
        }
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.receiver.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let closes = self.window.closes().filter(|_| !self.closing);
        [self.receiver.poll_timeout(), closes].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
