use super::{AFTER, Camera};
use crate::clip::Timeline;
use crate::host::samples::Samples;
use crate::host::window::Window;
use crate::scenario::FlowSpec;
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, Transmit};
use braidcast_sctp::{Options, PathReport, Stats};
use braidcast_session::{Report, Sender, SenderOptions};
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// The state of a live sender at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveSample {
    /// When.
    pub at: Instant,
    /// Its paths.
    pub paths: Vec<PathReport>,
}

/// A camera and what sends its frames.
pub struct LiveSender {
    options: SenderOptions,
    sctp: Options,
    rng: Rng,
    routes: Vec<Route>,
    /// When the session begins; the clip does later.
    connect: Instant,
    window: Window,
    begin: Instant,
    timeline: Arc<Timeline>,
    /// Frames of a size that follows, in place of a clip.
    camera: Option<Camera>,
    sender: Option<Sender>,
    /// Units that were pushed.
    pushed: usize,
    finished: bool,
    /// The state at regular times, if the scenario asks for it.
    pub samples: Samples<LiveSample>,
}

impl fmt::Debug for LiveSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveSender({} of {} units)", self.pushed, self.timeline.shots().len())
    }
}

impl LiveSender {
    /// Returns a host that connects at `connect`, and from `begin` on sends `timeline`, or for
    /// `duration` the frames of an encoder that follows.
    pub fn host(
        flow: &FlowSpec,
        timeline: Arc<Timeline>,
        duration: Duration,
        connect: Instant,
        begin: Instant,
        rng: &Rng,
    ) -> Self {
        let camera = flow.live.encoder.as_ref().map(|it| Camera::new(it, begin, duration, rng));
        let length = if camera.is_some() { duration } else { timeline.end() };
        let mut window = Window::new(Duration::ZERO, length + flow.live.sender.latency + AFTER);
        window.begin(begin);
        Self {
            options: flow.live.sender.clone(),
            sctp: flow.sctp.clone(),
            rng: rng.clone(),
            routes: Vec::new(),
            connect,
            window,
            begin,
            timeline,
            camera,
            sender: None,
            pushed: 0,
            finished: false,
            samples: Samples::new(flow.traffic.sample),
        }
    }

    /// Sets the host's routes.
    pub(in crate::host) fn open(&mut self, routes: &[Route]) {
        self.routes = routes.to_vec();
    }

    /// The camera, if its encoder follows.
    pub const fn camera(&self) -> Option<&Camera> {
        self.camera.as_ref()
    }

    /// When it counts.
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The session's own report; none before it began.
    pub fn report(&self) -> Option<Report> {
        let end = self.begin + self.timeline.end();
        self.sender.as_ref().map(|sender| sender.report(end))
    }

    /// SCTP's counts over all associations; none before it began.
    pub fn stats(&self) -> Option<Stats> {
        let endpoint = self.sender.as_ref()?.endpoint();
        endpoint.associations().filter_map(|id| endpoint.association(id)).map(|it| it.stats()).last()
    }

    fn work(&mut self, now: Instant) {
        if self.sender.is_none() && now >= self.connect {
            let (options, sctp) = (self.options.clone(), self.sctp.clone());
            let (rng, port) = (self.rng.stream("sender"), self.options.local_port);
            let made = Sender::with_transport(now, options, sctp, rng, port, &self.routes);
            self.sender = Some(made.expect("scenarios check their options and paths"));
        }
        let Some(sender) = &mut self.sender else { return };
        while let Some(shot) = self.timeline.ready(self.pushed)
            && self.begin + shot.ready <= now
        {
            self.pushed += 1;
            // Only reliable sessions give units back.
            let _none = sender.push(now, shot.unit(self.begin));
        }
        if let Some(camera) = &mut self.camera {
            camera.work(now, sender);
        }
        let is_over = self.camera.as_ref().is_none_or(Camera::is_over) && self.pushed == self.timeline.shots().len();
        if is_over && !self.finished {
            self.finished = true;
            sender.finish(now);
        }
        while sender.poll_event().is_some() {}
        if now >= self.begin {
            let endpoint = sender.endpoint();
            let paths = || endpoint.associations().filter_map(|id| endpoint.association(id)).last();
            self.samples
                .take(now, || LiveSample { at: now, paths: paths().map_or_else(Vec::new, |it| it.paths().collect()) });
        }
        if self.window.is_over(now) {
            self.samples.stop();
        }
    }

    /// When the host itself has something to do.
    fn next(&self) -> Option<Instant> {
        if self.sender.is_none() {
            return Some(self.connect);
        }
        let unit = self.timeline.ready(self.pushed).map(|shot| self.begin + shot.ready);
        let closes = self.window.closes().filter(|_| self.finished);
        let camera = self.camera.as_ref().and_then(Camera::due);
        [unit, camera, self.samples.next(), closes].into_iter().flatten().min()
    }
}

impl Machine for LiveSender {
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if let Some(sender) = &mut self.sender {
            sender.handle_datagram(now, datagram);
        }
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(sender) = &mut self.sender
            && sender.poll_timeout().is_some_and(|at| at <= now)
        {
            sender.handle_timeout(now);
        }
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.sender.as_mut()?.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let machine = self.sender.as_ref().and_then(Machine::poll_timeout);
        [machine, self.next()].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
