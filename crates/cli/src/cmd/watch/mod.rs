//! What lets one see inside a command while it runs.

mod access;
mod background;
mod figures;
mod load;
mod meter;
pub(crate) mod metrics;
mod pcap;
mod plain;
mod purpose;
mod site;
mod state;
mod stats;
pub(crate) mod thumbnail;
mod trace;
pub(crate) mod words;

pub(crate) use figures::{FlowFigures, Health, OutputFigures, PathFigures, StreamFigures};
pub(crate) use load::{Advice, Load};
pub(crate) use meter::Meter;
pub(crate) use state::{Pulse, State, Stream};

use crate::args::values::StatsTarget;
use crate::args::{FiguresArgs, WatchArgs};
use crate::failure::{Failure, Outcome};
use crate::out::json::round;
use crate::out::live::Live;
use access::Access;
pub(crate) use background::lock;
use braidcast_core::events::Tracer;
use braidcast_core::{Instant, SocketId};
use braidcast_driver::Driver;
pub(crate) use braidcast_trace::Protocol as Carried;
use figures::{Figures, VERSION};
use pcap::PcapFile;
use site::Hub;
pub(crate) use site::{Lines, Pages, serve};
pub(crate) use stats::StatsFile;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use thumbnail::{Gallery, Thumbnail};
use trace::TraceFile;

/// Interval at which the web page and the metrics are updated.
const EACH: Duration = Duration::from_secs(1);

/// All that listens to a command's machines.
pub(crate) struct Watch {
    command: &'static str,
    began: Instant,
    trace: Option<TraceFile>,
    pcap: Option<PcapFile>,
    stats: Option<(StatsFile, Pace)>,
    hub: Option<(Arc<Hub>, Pace)>,
    gallery: Arc<Gallery>,
}

/// When something is due again.
#[derive(Clone, Copy, Debug)]
struct Pace {
    each: Duration,
    last: Instant,
}

impl Pace {
    fn next(self) -> Instant {
        self.last + self.each
    }

    /// Since when it was due, if it is. What was missed while the process stood still is not made up for.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        let since = now.since(self.last);
        if since < self.each {
            return None;
        }
        self.last = if since < 2 * self.each { self.next() } else { now };
        Some(since)
    }
}

impl Watch {
    /// Opens what the flags ask for, and has `driver` tell of its packets, which are of `protocol`.
    /// `command`: what it calls itself.
    pub(crate) fn open(
        args: &WatchArgs,
        command: &'static str,
        driver: &mut Driver,
        protocol: Carried,
    ) -> Outcome<Self> {
        let now = driver.now();
        let trace = args.trace.as_deref().map(|path| TraceFile::create(path, command, now)).transpose()?;
        let pcap = args.pcap.as_deref().map(|path| PcapFile::create(path, protocol, now, args.pcap_decrypted));
        let pcap = pcap.transpose()?;
        if let Some(pcap) = &pcap {
            driver.listen_in(pcap.tap());
        }
        Ok(Self { command, began: now, trace, pcap, stats: None, hub: None, gallery: Arc::default() })
    }

    /// What passes this socket is not captured: it is none of the protocol's.
    pub(crate) fn leave_out(&self, socket: SocketId) {
        if let Some(pcap) = &self.pcap {
            pcap.leave_out(socket);
        }
    }

    /// Opens the outputs of figures while it runs. `stdout`: what else goes there.
    pub(crate) fn open_figures(&mut self, args: &FiguresArgs, stdout: Option<&str>, live: &Live) -> Outcome {
        let last = self.began;
        if let Some(stats) = &args.stats {
            if let (StatsTarget::Stdout, Some(other)) = (&stats.target, stdout) {
                return Err(Failure::usage(
                    format!("--stats and {other} cannot both go to stdout"),
                    "give it a file: --stats 1s,FILE",
                ));
            }
            self.stats =
                Some((StatsFile::open(&stats.target, "statistics", "--stats")?, Pace { each: stats.each, last }));
        }
        if args.metrics.is_none() && args.web.is_none() {
            return Ok(());
        }
        let hub = Arc::new(Hub::default());
        if let Some(addr) = args.metrics {
            let at = serve(addr, None, Pages::Metrics(Arc::clone(&hub)), "--metrics")?;
            live.note(format!("metrics at http://{at}/metrics"));
        }
        if let Some(addr) = args.web {
            let access = Access::of(args.web_password.as_deref(), addr.ip())?;
            let at = serve(addr, access.password(), Pages::Web(Arc::clone(&hub), Arc::clone(&self.gallery)), "--web")?;
            live.note(format!("figures at http://{at}/{}", access.words()));
            if let Access::Open = access
                && !at.ip().is_loopback()
            {
                live.warn("whoever reaches that address sees the figures: there is no password");
            }
        }
        self.hub = Some((hub, Pace { each: EACH, last }));
        Ok(())
    }

    /// The newest images of streams, for the page.
    pub(crate) const fn gallery(&self) -> &Arc<Gallery> {
        &self.gallery
    }

    /// What machines are to tell.
    pub(crate) fn tracer(&self) -> Tracer {
        let files = [self.trace.as_ref().map(TraceFile::sink), self.pcap.as_ref().map(PcapFile::sink)];
        words::with_words(files.into_iter().flatten())
    }

    /// When figures are due next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let stats = self.stats.as_ref().map(|(_, pace)| pace.next());
        stats.into_iter().chain(self.hub.as_ref().map(|(_, pace)| pace.next())).min()
    }

    /// Publishes figures if they are due. `streams` makes those of the streams, of what happened
    /// since its last call with the same argument: `true` for the statistics, `false` for page and
    /// metrics.
    pub(crate) fn tell(&mut self, now: Instant, mut streams: impl FnMut(bool) -> Vec<StreamFigures>) {
        let (command, uptime_seconds) = (self.command, round(now.since(self.began).as_secs_f64()));
        let mut figures = |stats, since: Duration| Figures {
            version: VERSION,
            command,
            time: jiff::Timestamp::now().to_string(),
            uptime_seconds,
            interval_seconds: round(since.as_secs_f64()),
            streams: streams(stats),
        };
        if let Some((file, pace)) = &mut self.stats
            && let Some(since) = pace.take(now)
        {
            file.tell(&figures(true, since));
        }
        if let Some((hub, pace)) = &mut self.hub
            && let Some(since) = pace.take(now)
        {
            hub.publish(figures(false, since));
        }
    }

    /// Says what has failed, once. Nothing of it ends the stream.
    pub(crate) fn check(&self, live: &Live) {
        let trace = self.trace.as_ref().and_then(TraceFile::take_failure);
        let stats = self.stats.as_ref().and_then(|(file, _)| file.take_failure());
        let pcap = self.pcap.as_ref().and_then(PcapFile::take_failure);
        trace.into_iter().chain(pcap).chain(stats).for_each(|words| live.warn(words));
    }

    /// Writes what is still in memory.
    pub(crate) fn finish(&mut self, live: &Live) {
        if let Some(trace) = &mut self.trace {
            trace.finish();
        }
        if let Some(pcap) = &mut self.pcap {
            pcap.finish();
        }
        if let Some((file, _)) = &mut self.stats {
            file.finish();
        }
        self.check(live);
    }
}
