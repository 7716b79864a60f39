use crate::error::check_latency;
use crate::port::Port;
use crate::protected::{protected, secured};
use crate::receiving::{Order, Receiving};
use crate::wire::Wire;
use crate::{AccessUnit, Error};
use braidcast_core::{Instant, Rng};
use braidcast_driver::entropy;
use braidcast_secure::Fingerprint;
use braidcast_session::{Admission, ChannelId, Farewell, Permit, Receiver, ReceiverOptions, Report};
use braidcast_socket::{CloseReason, Identity, Insecurity, Path, Protection, Secured, Trust};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// What a [`MediaReceiver`] hands out and reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// A sender is there, and its stream is played from here on.
    Connected {
        /// The stream, as all that follows of it has it.
        stream: ChannelId,
        /// Its name; empty without one.
        name: String,
        /// The key that the sender proved, if it is one that this end insisted on; all who share a key have the same.
        key: Option<Fingerprint>,
    },
    /// Bytes of a stream that are due: whole packets of a transport stream, or one message of a
    /// sender that sends something else.
    Bytes {
        /// Of which stream.
        stream: ChannelId,
        /// At most [`MediaReceiver::LONGEST`] bytes, unless it is one message.
        data: Vec<u8>,
    },
    /// An access unit of a stream that is due ([`MediaReceiverBuilder::units`]).
    Unit {
        /// Of which stream.
        stream: ChannelId,
        /// What came.
        unit: AccessUnit,
    },
    /// The sender is gone, and is waited for.
    Lost {
        /// Of which stream.
        stream: ChannelId,
        /// Why.
        reason: CloseReason,
    },
    /// The sender is back; its stream goes on.
    Back {
        /// Of which stream.
        stream: ChannelId,
    },
    /// Another sender, or the same one started anew, took the place of one that fell silent.
    Restarted {
        /// In which stream.
        stream: ChannelId,
    },
    /// The sender's clock jumped; the playout follows it.
    ClockJumped {
        /// Of which stream.
        stream: ChannelId,
    },
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
    /// A sender was turned away. Anybody can ask, from any address.
    Refused {
        /// What its stream is called; may be empty.
        name: String,
        /// What it was told, if it had proved its key.
        farewell: Option<Farewell>,
        /// Why it would not be secure, if that was the reason.
        insecure: Option<Insecurity>,
        /// Why, in words.
        why: String,
    },
    /// What did not go as asked, in words.
    Warning(String),
    /// A stream is over, and all of it was handed out. The next one may follow.
    Ended {
        /// Which stream.
        stream: ChannelId,
        /// `true` if the sender said that this was all.
        complete: bool,
        /// How its connection ended.
        reason: CloseReason,
    },
}

/// How to receive; [`listen`](Self::listen) or [`call`](Self::call) begins.
#[derive(Clone, Debug)]
#[must_use = "it begins nothing before `listen` or `call`"]
pub struct MediaReceiverBuilder {
    protection: Protection,
    options: ReceiverOptions,
    units: bool,
}

impl MediaReceiverBuilder {
    protected!("let in ([`Protection::Key`]). Default: encrypted, with anybody.");

    /// Each end has a key of its own, and only these senders are let in, each with the name that its stream then has.
    pub fn senders(self, own: Identity, senders: BTreeMap<Fingerprint, Permit>) -> Self {
        let trust = Trust::Only(senders.keys().copied().collect());
        self.identity(own, trust).options(|it| it.permits = Some(senders))
    }

    /// Hands out access units, as [`ReceiverEvent::Unit`]. Default: bytes of a transport stream,
    /// [`ReceiverEvent::Bytes`].
    pub fn units(self) -> Self {
        Self { units: true, ..self }
    }

    /// Takes streams of these names, all at the same time, and no others. Default: one stream at a
    /// time, of any name.
    pub fn named<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.options(|it| it.admission = Admission::Named(names))
    }

    /// Takes each stream that has a name, so many at the same time at most.
    pub fn each(self, most: usize) -> Self {
        self.options(|it| it.admission = Admission::Each(most))
    }

    /// A second sender of the same name waits for the first to end, in place of being turned away.
    pub fn keep(self, keep: bool) -> Self {
        self.options(|it| it.keep = keep)
    }

    /// Hands out what is there as soon as all before it is: the sender's latency is then a bound
    /// and no constant wait. Default: no.
    pub fn early(self, early: bool) -> Self {
        self.options(|it| it.early = early)
    }

    /// How long a sender may be gone before its stream is over. Default: `None`, it is waited for for ever.
    pub fn give_up(self, limit: Option<Duration>) -> Self {
        self.options(|it| it.give_up = limit)
    }

    /// Changes any option of the session. [`ReceiverOptions::security`] is set by [`protection`](Self::protection).
    pub fn options(mut self, change: impl FnOnce(&mut ReceiverOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Waits for senders at these addresses; port 0 takes any that is free. Each makes a path for senders that know
    /// it.
    ///
    /// # Errors
    /// [`Error::NoAddress`], [`Error::Setup`]: a key or an address cannot be used; [`Error::Name`], [`Error::Latency`],
    /// [`Error::Start`], [`Error::Io`].
    pub fn listen(self, addrs: &[SocketAddr]) -> Result<MediaReceiver, Error> {
        let (wire, bound) = Wire::listen(addrs)?;
        self.begin(wire, bound, Vec::new())
    }

    /// Calls the sender that [listens](crate::MediaSenderBuilder::listen) at the other end of these paths, and again
    /// when it is lost.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn call(self, paths: &[Path]) -> Result<MediaReceiver, Error> {
        let (wire, warnings) = Wire::dial(paths)?;
        self.begin(wire, Vec::new(), warnings)
    }

    fn begin(self, mut wire: Wire, bound: Vec<SocketAddr>, mut warnings: Vec<String>) -> Result<MediaReceiver, Error> {
        let mut options = self.options;
        if let Admission::Named(names) = &options.admission {
            names.iter().try_for_each(|name| braidcast_session::wire::check_name(name)).map_err(Error::Name)?;
        }
        if !options.name.is_empty() {
            braidcast_session::wire::check_name(&options.name).map_err(Error::Name)?;
        }
        options.latency.map_or(Ok(()), check_latency)?;
        let secured = secured(&self.protection, &mut warnings)?;
        options.security = secured.options();
        options.output_size = MediaReceiver::LONGEST;
        let (now, port, rng) = (wire.driver.now(), options.local_port, Rng::from_entropy(entropy()?));
        let receiver = match &bound[..] {
            [] => Receiver::call(now, options, rng, port, &wire.routes())?,
            _ => Receiver::new(options, rng).map_err(braidcast_session::StartError::from)?,
        };
        let port = Arc::new(Port::new(&mut wire.driver)?);
        warnings.into_iter().for_each(|words| port.report(ReceiverEvent::Warning(words)));
        let receiving = Receiving::new(Arc::clone(&port), wire, receiver, self.units);
        let thread = port.run("braidcast-receive", move || receiving.run())?;
        Ok(MediaReceiver(Arc::new(Inner { port, secured, bound, thread: Some(thread) })))
    }
}

#[derive(Debug)]
struct Inner {
    port: Arc<Port<Order, ReceiverEvent>>,
    secured: Secured,
    bound: Vec<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

/// Ends all streams at once; their senders are told.
impl Drop for Inner {
    fn drop(&mut self) {
        _ = self.port.order(Order::Abort);
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Receives live media, and hands each piece out on time: as a transport stream, or as access
/// units. It runs in a thread of its own, and each of the program's threads may use it by a
/// clone. When the last one is dropped, its senders are told that the receiver was stopped.
///
/// What is not taken waits in memory, 8 MiB of it; more stays in the session and is too late at some point.
///
/// See the crate's page for an example.
#[derive(Clone, Debug)]
pub struct MediaReceiver(Arc<Inner>);

impl MediaReceiver {
    /// Bytes of the longest piece of a transport stream that is handed out: 64 packets.
    pub const LONGEST: usize = 64 * 188;

    /// How to receive.
    pub fn builder() -> MediaReceiverBuilder {
        let options = ReceiverOptions::default();
        MediaReceiverBuilder { protection: Protection::default(), options, units: false }
    }

    /// The addresses that it [listens](MediaReceiverBuilder::listen) at; none if it calls.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.0.bound
    }

    /// Waits for the next event for at most `timeout`, or for ever. `None`: nothing happened in that time, or until
    /// [`interrupt`](Self::interrupt).
    ///
    /// # Errors
    /// [`Error::Over`] once it has [stopped](Self::stop) and all was handed out, [`Error::Broken`].
    pub fn poll(&self, timeout: Option<Duration>) -> Result<Option<ReceiverEvent>, Error> {
        self.0.port.poll(timeout)
    }

    /// Waits for the next event. Dropping the future loses none.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[cfg(feature = "tokio")]
    pub async fn next(&self) -> Result<ReceiverEvent, Error> {
        self.0.port.next().await
    }

    /// The events, as a stream. Each comes once, to whoever asks first; dropping the stream loses none.
    #[cfg(feature = "tokio")]
    pub fn events(&self) -> crate::ReceiverEvents {
        crate::ReceiverEvents::new(self.clone())
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn port(&self) -> &Port<Order, ReceiverEvent> {
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

    /// What has come of a stream: units by their kinds and what became of them, and the paths.
    ///
    /// # Errors
    /// [`Error::Over`], [`Error::Broken`].
    pub fn report(&self, stream: ChannelId) -> Result<Report, Error> {
        self.ask(move |receiver, now| receiver.report(now, stream))
    }

    /// How long after its capture what is handed out of a stream is so, as its sender has it; `None` before anything
    /// came.
    ///
    /// # Errors
    /// [`Error::Over`], [`Error::Broken`].
    pub fn latency(&self, stream: ChannelId) -> Result<Option<Duration>, Error> {
        self.ask(move |receiver, _| receiver.latency(stream))
    }

    /// Lets in other senders from now on. Streams of those who no longer are end; their senders are told.
    ///
    /// # Errors
    /// [`Error::Setup`] if it was made without an identity, [`Error::Over`], [`Error::Broken`].
    pub fn set_senders(&self, senders: BTreeMap<Fingerprint, Permit>) -> Result<(), Error> {
        self.0.secured.set_trust(Trust::Only(senders.keys().copied().collect()))?;
        self.ask(move |receiver, now| receiver.set_permits(now, senders))
    }

    /// Ends all streams. What has arrived is still handed out when it is due; then
    /// [`poll`](Self::poll) says that it is over.
    pub fn stop(&self) {
        // It may have ended before.
        _ = self.0.port.order(Order::Stop);
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Receiver, Instant) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (say, hear) = sync_channel(1);
        let question = move |receiver: &mut Receiver, now: Instant| _ = say.send(question(receiver, now));
        self.0.port.order(Order::Ask(Box::new(question)))?;
        hear.recv().map_err(|_| Error::Over)
    }
}

/// Readable while [`poll`](MediaReceiver::poll) has an event, for event loops. Do not read from it.
impl AsFd for MediaReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.port.as_fd()
    }
}
