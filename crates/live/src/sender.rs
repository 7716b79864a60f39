use crate::error::check_latency;
use crate::port::Port;
use crate::protected::{protected, secured};
use crate::sending::{Order, Sending};
use crate::wire::Wire;
use crate::{AccessUnit, Coding, Error, Track};
use braidcast_core::{Instant, Rng};
use braidcast_driver::entropy;
use braidcast_media::ts::Mux;
use braidcast_session::{RateLimits, RateReport, Report, Sender, SenderOptions};
use braidcast_socket::{CloseReason, Identity, Path, Protection, Secured, Trust};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a [`MediaSender`] reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SenderEvent {
    /// A receiver takes the stream from here on: a good moment for a key frame.
    Connected,
    /// The receiver is gone, and is tried again until it is back. What is sent meanwhile is
    /// discarded when it is too late.
    Lost {
        /// Why.
        reason: CloseReason,
    },
    /// Another stream is being received; this one has its turn after it.
    InLine,
    /// A path carries data: it joined, or came back.
    PathUp {
        /// Its name, or the address that it leads to.
        name: String,
        /// Where it leads.
        remote: SocketAddr,
    },
    /// A path no longer answers; data goes over the others.
    PathDown {
        /// Its name, or the address that it leads to.
        name: String,
        /// Where it leads.
        remote: SocketAddr,
    },
    /// Of a sender that listens: who called has another key, or none.
    Refused {
        /// Why it was refused.
        reason: CloseReason,
    },
    /// What did not go as asked, in words, for example a name without an address.
    Warning(String),
    /// It is over. Nothing follows.
    Ended {
        /// `true` if the receiver has all that was not too late, and the end.
        complete: bool,
        /// How the connection ended.
        reason: CloseReason,
    },
}

/// How to send; [`call`](Self::call) or [`listen`](Self::listen) begins.
#[derive(Clone, Debug)]
#[must_use = "it begins nothing before `call` or `listen`"]
pub struct MediaSenderBuilder {
    protection: Protection,
    options: SenderOptions,
}

impl MediaSenderBuilder {
    protected!("sent to ([`Protection::Key`]). Default: encrypted, to anybody.");

    /// How long after its capture each access unit, or packet, comes out at the other end, 1 ms to 71 minutes:
    /// at least the longest round trip and what losses take to be repeated. Default: 500 ms.
    pub fn latency(self, latency: Duration) -> Self {
        self.options(|it| it.latency = latency)
    }

    /// What the receiver knows the stream by: 1 to 64 bytes, letters, digits and `. _ -` and space. Default: no
    /// name.
    pub fn name(self, name: &str) -> Self {
        self.options(|it| it.name = name.into())
    }

    /// The rates that the encoder is able to make ([`MediaSender::rate_report`]). Default: 100 kbit/s to
    /// 50 Mbit/s.
    pub fn encoder(self, limits: RateLimits) -> Self {
        self.options(|it| it.encoder = limits)
    }

    /// How long there may be no receiver that answers before the session ends. Default: `None`, it
    /// goes on trying for ever.
    pub fn give_up(self, limit: Option<Duration>) -> Self {
        self.options(|it| it.give_up = limit)
    }

    /// Changes any option of the session. A live one it is in any case, and [`SenderOptions::security`] is set by
    /// [`protection`](Self::protection).
    pub fn options(mut self, change: impl FnOnce(&mut SenderOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Begins to send to the receiver that these paths lead to, and tries until there is one.
    ///
    /// # Errors
    /// [`Error::Setup`]: a key or a path cannot be used; [`Error::Name`], [`Error::Latency`], [`Error::Start`],
    /// [`Error::Io`].
    pub fn call(self, paths: &[Path]) -> Result<MediaSender, Error> {
        let (wire, warnings) = Wire::dial(paths)?;
        self.begin(wire, Vec::new(), warnings)
    }

    /// Begins to send to whichever receiver calls at one of these addresses ([`MediaReceiverBuilder::call`]); port
    /// 0 takes any that is free. Each address makes a path.
    ///
    /// [`MediaReceiverBuilder::call`]: crate::MediaReceiverBuilder::call
    ///
    /// # Errors
    /// [`Error::NoAddress`], and as [`call`](Self::call).
    pub fn listen(self, addrs: &[SocketAddr]) -> Result<MediaSender, Error> {
        let (wire, bound) = Wire::listen(addrs)?;
        self.begin(wire, bound, Vec::new())
    }

    fn begin(self, mut wire: Wire, bound: Vec<SocketAddr>, mut warnings: Vec<String>) -> Result<MediaSender, Error> {
        let mut options = self.options;
        if !options.name.is_empty() {
            braidcast_session::wire::check_name(&options.name).map_err(Error::Name)?;
        }
        check_latency(options.latency)?;
        let secured = secured(&self.protection, &mut warnings)?;
        options.security = secured.options();
        options.reliable = false;
        // A receiver may acknowledge what it never got.
        options.skip_tsns = true;
        let (now, port, rng) = (wire.driver.now(), options.local_port, Rng::from_entropy(entropy()?));
        let sender = match &bound[..] {
            [] => Sender::new(now, options.clone(), rng, port, &wire.routes())?,
            _ => Sender::listen(now, options.clone(), rng).map_err(braidcast_session::StartError::from)?,
        };
        let port = Arc::new(Port::new(&mut wire.driver)?);
        warnings.into_iter().for_each(|words| port.report(SenderEvent::Warning(words)));
        let report = Arc::<Mutex<Report>>::default();
        let sending = Sending::new(Arc::clone(&port), wire, sender, Arc::clone(&report));
        let thread = port.run("braidcast-send", move || sending.run())?;
        let feed = Mutex::default();
        Ok(MediaSender(Arc::new(Inner { port, options, secured, bound, feed, report, thread: Some(thread) })))
    }
}

/// What a sender takes.
#[derive(Debug, Default)]
struct Feed {
    tracks: Vec<Track>,
    /// It takes a transport stream.
    bytes: bool,
}

#[derive(Debug)]
struct Inner {
    port: Arc<Port<Order, SenderEvent>>,
    options: SenderOptions,
    secured: Secured,
    bound: Vec<SocketAddr>,
    feed: Mutex<Feed>,
    /// As it was at the end.
    report: Arc<Mutex<Report>>,
    thread: Option<JoinHandle<()>>,
}

impl Inner {
    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the session at once; the receiver is told.
impl Drop for Inner {
    fn drop(&mut self) {
        _ = self.port.order(Order::Abort);
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Sends live media: a transport stream, or access units of several tracks. It runs in a thread of its own, and each of
/// the program's threads may use it by a clone. When the last one is dropped, the session ends at once;
/// [`finish`](Self::finish) first lets everything arrive.
///
/// See the crate's page for an example.
#[derive(Clone, Debug)]
pub struct MediaSender(Arc<Inner>);

impl MediaSender {
    /// How to send.
    pub fn builder() -> MediaSenderBuilder {
        MediaSenderBuilder { protection: Protection::default(), options: SenderOptions::default() }
    }

    /// What it was made with.
    #[must_use]
    pub fn options(&self) -> &SenderOptions {
        &self.0.options
    }

    /// The addresses that it [listens](MediaSenderBuilder::listen) at; none if it calls.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.0.bound
    }

    /// Takes the next bytes of a transport stream, captured now; they may begin and end anywhere. Never waits.
    ///
    /// # Errors
    /// [`Error::Mixed`], [`Error::Full`], [`Error::Over`], [`Error::Broken`].
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let at = self.now();
        let mut feed = self.0.feed();
        if !feed.tracks.is_empty() {
            return Err(Error::Mixed { units: true });
        }
        feed.bytes = true;
        // In the order of the calls.
        self.0.port.order(Order::Bytes(at, bytes.to_vec()))
    }

    /// Adds a track for access units.
    ///
    /// # Errors
    /// [`Error::TooManyTracks`], [`Error::Channels`], [`Error::Mixed`], [`Error::Over`], [`Error::Broken`].
    pub fn add_track(&self, coding: Coding) -> Result<Track, Error> {
        let mut feed = self.0.feed();
        match coding {
            _ if feed.bytes => return Err(Error::Mixed { units: false }),
            _ if feed.tracks.len() >= Mux::MOST_STREAMS => return Err(Error::TooManyTracks),
            Coding::Opus { channels: channels @ (0 | 9..) } => return Err(Error::Channels(channels)),
            _ => {}
        }
        let track = Track { pid: 0x100 + feed.tracks.len() as u16, coding };
        self.0.port.order(Order::Track(track))?;
        feed.tracks.push(track);
        Ok(track)
    }

    /// Takes an access unit, captured now. Units of a track come in the order in which they are decoded. Never waits;
    /// what comes too late at the other end is discarded, the highest layers first.
    ///
    /// # Errors
    /// [`Error::Unit`], [`Error::NoTrack`], [`Error::Full`], [`Error::Over`], [`Error::Broken`].
    pub fn send(&self, unit: AccessUnit) -> Result<(), Error> {
        unit.check()?;
        let at = self.now();
        let feed = self.0.feed();
        if !feed.tracks.contains(&unit.track) {
            return Err(Error::NoTrack(unit.track));
        }
        self.0.port.order(Order::Unit(at, unit))
    }

    /// How many bits the next frame may have to come in time, and which rate will hold for the next
    /// second. Ask before each frame. While no path is full it grows only as far as it is used; while
    /// no receiver is connected it stays as it was, 1 Mbit/s at first.
    ///
    /// # Errors
    /// [`Error::Over`], [`Error::Broken`].
    pub fn rate_report(&self) -> Result<RateReport, Error> {
        self.ask(|sending, now| sending.rate_report(now))
    }

    /// What has been done so far: units by their kinds and what became of them, and the paths.
    /// After the end it is as it was then.
    #[must_use]
    pub fn report(&self) -> Report {
        let last = || self.0.report.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.ask(|sending, now| sending.report(now)).unwrap_or_else(|_| last())
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Sending, Instant) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (say, hear) = sync_channel(1);
        let question = move |sending: &Sending, now: Instant| _ = say.send(question(sending, now));
        self.0.port.order(Order::Ask(Box::new(question)))?;
        hear.recv().map_err(|_| Error::Over)
    }

    /// Waits for the next event for at most `timeout`, or for ever. `None`: nothing happened in that time, or until
    /// [`interrupt`](Self::interrupt).
    ///
    /// # Errors
    /// [`Error::Over`] after [`SenderEvent::Ended`], [`Error::Broken`].
    pub fn poll(&self, timeout: Option<Duration>) -> Result<Option<SenderEvent>, Error> {
        self.0.port.poll(timeout)
    }

    /// Waits for the next event. Dropping the future loses none.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[cfg(feature = "tokio")]
    pub async fn next(&self) -> Result<SenderEvent, Error> {
        self.0.port.next().await
    }

    /// The events, as a stream. Each comes once, to whoever asks first; dropping the stream loses none.
    #[cfg(feature = "tokio")]
    pub fn events(&self) -> crate::SenderEvents {
        crate::SenderEvents::new(self.clone())
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn port(&self) -> &Port<Order, SenderEvent> {
        &self.0.port
    }

    /// Ends the waits that other threads are in, with `None`.
    pub fn interrupt(&self) {
        self.0.port.interrupt();
    }

    /// How often [`interrupt`](Self::interrupt) was called. By it a program that waits in short
    /// slices knows an interrupt from the end of a slice.
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.0.port.interrupts()
    }

    /// The stream has ended. Waits for at most `timeout` until what is not too late has arrived, and the end. Returns
    /// `false` if that was not so by then; [`SenderEvent::Ended`] may still follow.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub fn finish(&self, timeout: Duration) -> Result<bool, Error> {
        match self.0.port.order(Order::Finish) {
            Ok(()) | Err(Error::Over) => {}
            Err(error) => return Err(error),
        }
        if !self.0.port.wait_for_end(timeout) {
            return Ok(false);
        }
        self.0.port.was_complete()
    }

    /// Lets in other receivers from now on, or is content with others.
    ///
    /// # Errors
    /// [`Error::Setup`] if it was made without an identity.
    pub fn set_trust(&self, trust: Trust) -> Result<(), Error> {
        Ok(self.0.secured.set_trust(trust)?)
    }

    fn now(&self) -> Instant {
        self.0.port.clock().now()
    }
}

/// Readable while [`poll`](MediaSender::poll) has an event, for event loops. Do not read from it.
impl AsFd for MediaSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.port.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_testing::assert_runs_as_documented;

    #[test]
    fn a_sender_runs_as_documented() {
        let sender = MediaSender::builder().call(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        let options = sender.options();
        assert_runs_as_documented!("`MediaSender`", options.transport(), options.redundancy);
    }
}
