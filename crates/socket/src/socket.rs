use crate::builder::SocketBuilder;
use crate::hub::Hub;
use crate::message::{ConnectionId, Received, SendOptions};
use crate::path::{Path, PathReport};
use crate::{CloseReason, Error, Event, Peer, Protection, Refused, Secured, Trust};
use braidcast_core::{Dials, Instant, Reason, Rng, Route};
use braidcast_driver::{Bind, Carrier, Clock, Driver, LinkChange, Links, Wake, Waker, entropy};
use braidcast_sctp::{Options, RateLimits, RateOptions, RateReport};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

mod links;

use links::Dialling;

/// Messages over several networks at once. See the crate's page for an example.
///
/// Nothing happens by itself: all that is to leave and to come does so within [`poll`](Self::poll).
/// A program with an event loop of its own waits until the socket's file descriptor is readable
/// ([`AsRawFd`]), then calls `poll(Some(Duration::ZERO))` until that returns `None`; so too after
/// it has sent something.
///
/// Whoever is still connected when a socket is dropped is told so; [`close`](Self::close) first
/// lets everything arrive.
pub struct Socket {
    driver: Driver,
    hub: Hub,
    /// Of connections that were begun here.
    links: BTreeMap<ConnectionId, Links>,
    /// Unless it was made with options of the transport alone.
    secured: Option<Secured>,
    /// The application changed something that the driver has not seen.
    touched: bool,
    warnings: Warnings,
}

/// What did not go as asked, in words.
#[derive(Debug, Default)]
struct Warnings(Vec<String>);

impl Warnings {
    /// That wait to be taken, at most: an interface that comes and goes makes some each time.
    const MOST: usize = 64;

    fn add(&mut self, words: impl IntoIterator<Item = String>) {
        let room = Self::MOST - self.0.len();
        self.0.extend(words.into_iter().take(room));
    }
}

impl Socket {
    /// How long nothing may be heard from the other end before a connection of [`new`](Self::new)
    /// ends: [`CloseReason::PathsFailed`]. An end that has nothing to send says so each second.
    pub const LONGEST_SILENCE: Duration = Duration::from_secs(30);

    /// What the other end is told when a socket is dropped.
    const DROPPED: &str = "the program ended the connection";

    /// A socket with the transport's options for live data, [`Options::live`]. A connection whose
    /// other end is silent for [`LONGEST_SILENCE`](Self::LONGEST_SILENCE) is over.
    ///
    /// # Errors
    /// [`Error::Key`] if the key cannot be one; [`Error::Io`] if the system has no file descriptors
    /// left.
    pub fn new(protection: &Protection) -> Result<Self, Error> {
        Self::builder().protection(protection.clone()).build()
    }

    /// Makes a socket with other options than the usual ones.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// A socket with these options of the transport; [`Options::security`] says how it is
    /// protected. Both ends must have the same [`Options::local_port`].
    ///
    /// # Errors
    /// [`Error::Options`], [`Error::Io`].
    pub fn with_options(options: Options) -> Result<Self, Error> {
        Ok(Self {
            driver: Driver::new()?,
            hub: Hub::new(options, Rng::from_entropy(entropy()?))?,
            links: BTreeMap::new(),
            secured: None,
            touched: false,
            warnings: Warnings::default(),
        })
    }

    /// The transport's options that it was made with.
    pub fn options(&self) -> &Options {
        self.hub.endpoint.options()
    }

    /// It was made with this protection.
    pub(crate) fn is_secured(&mut self, secured: Secured) {
        self.warnings.add(secured.warning().map(str::to_owned));
        self.secured = Some(secured);
    }

    /// Lets in others from now on. Connections that there are stay: [`peer`](Self::peer) says who is
    /// there, [`abort`](Self::abort) ends them.
    ///
    /// # Errors
    /// [`Error::NoIdentity`].
    pub fn set_trust(&mut self, trust: Trust) -> Result<(), Error> {
        self.secured.as_ref().ok_or(Error::NoIdentity)?.set_trust(trust)
    }

    /// Who is at the other end of a connection, from [`Event::Connected`] until [`Event::Closed`].
    /// `None` before, and if nothing is encrypted.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn peer(&self, connection: ConnectionId) -> Result<Option<Peer>, Error> {
        self.hub.peer(connection)
    }

    /// Opens a local UDP address that others may connect to; port 0 takes any that is free. Returns
    /// the address with its port. Each address makes a path for clients that know it.
    ///
    /// # Errors
    /// [`Error::Bind`].
    pub fn bind(&mut self, addr: SocketAddr) -> Result<SocketAddr, Error> {
        let id = self.driver.bind(&Bind::to_addr(addr))?;
        Ok(self.driver.socket(id).map_or(addr, |socket| socket.local_addr()))
    }

    /// Takes over a UDP socket that is bound, for others to connect to, for example one that systemd
    /// has opened. Returns its address.
    ///
    /// # Errors
    /// [`Error::Bind`], also if it is another kind of file.
    pub fn adopt(&mut self, socket: impl Into<OwnedFd>) -> Result<SocketAddr, Error> {
        let id = self.driver.adopt(socket.into())?;
        let unknown = || SocketAddr::from(([0; 4], 0));
        Ok(self.driver.socket(id).map_or_else(unknown, |socket| socket.local_addr()))
    }

    /// Calls `prepare` with each UDP socket that is opened from now on, before anything is sent
    /// through it: to set a mark, or to keep it out of a VPN. If that fails, the path is not opened.
    pub fn on_open(&mut self, prepare: impl FnMut(BorrowedFd<'_>) -> io::Result<()> + Send + 'static) {
        self.driver.on_open(prepare);
    }

    /// Accepts connections from now on. The first event of a new one is [`Event::Connected`].
    /// Those who are turned away are reported by [`next_refused`](Self::next_refused) alone.
    pub fn listen(&mut self) {
        self.hub.endpoint.listen();
    }

    /// Begins a connection over these paths, each with a local port of its own.
    /// [`Event::Connected`] or [`Event::Closed`] follows. Names of hosts are asked for meanwhile;
    /// until one has an address, [`send`](Self::send) finds no room.
    ///
    /// # Errors
    /// [`Error::Links`] if none of the paths can be used now though its address is known, or one
    /// cannot be opened; [`Error::Nowhere`], [`Error::Connect`].
    pub fn connect(&mut self, paths: &[Path]) -> Result<ConnectionId, Error> {
        if paths.is_empty() {
            return Err(braidcast_sctp::ConnectError::NoRoute.into());
        }
        let (links, warnings) =
            Links::begin(paths.iter().map(Path::link).collect::<Result<_, _>>()?, Carrier::Udp, &mut self.driver)?;
        self.warnings.add(warnings);
        self.touched = true;
        let routes = links.routes();
        if routes.is_empty() {
            let id = self.hub.resolve();
            self.links.insert(id, links);
            return Ok(id);
        }
        let connected = self.hub.connect(self.driver.now(), &routes);
        match connected {
            Ok(id) => _ = self.links.insert(id, links),
            Err(_) => close_sockets(&mut self.driver, &links),
        }
        connected
    }

    /// Adds a path to a connection that was begun here; [`Event::PathUp`] follows when it carries
    /// data. One whose interface is not there joins when that appears, one whose name has no address
    /// yet when that is known.
    ///
    /// # Errors
    /// [`Error::NoConnection`], also of one that the other end began; [`Error::Links`],
    /// [`Error::Nowhere`], [`Error::Join`].
    pub fn join(&mut self, connection: ConnectionId, path: &Path) -> Result<(), Error> {
        self.hub.check(connection)?;
        let links = self.links.get_mut(&connection).ok_or(Error::NoConnection(connection))?;
        let added = links.add(path.link()?, &mut self.driver)?;
        self.touched = true;
        let Some(LinkChange::Joined { route, warning, .. }) = added else { return Ok(()) };
        self.warnings.add(warning);
        let joined = Dialling { hub: &mut self.hub, id: connection }.try_join(self.driver.now(), route);
        if joined.is_err() {
            links.forget(route);
            self.driver.unbind(route.socket);
        }
        joined
    }

    /// Takes a path out of a connection that was begun here, by its name in [`PathReport`]. Returns
    /// whether there was one.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn leave(&mut self, connection: ConnectionId, name: &str) -> Result<bool, Error> {
        self.hub.check(connection)?;
        let Some(routes) = self.links.get_mut(&connection).and_then(|links| links.remove(name)) else {
            return Ok(false);
        };
        let now = self.driver.now();
        for route in routes {
            Dialling { hub: &mut self.hub, id: connection }.leave(now, route);
            self.driver.unbind(route.socket);
        }
        self.touched = true;
        Ok(true)
    }

    /// Takes a message to be sent. It leaves in the next [`poll`](Self::poll), or when the paths
    /// have room.
    ///
    /// # Errors
    /// [`Error::Send`]: nothing was taken; [`Error::NoConnection`].
    pub fn send(&mut self, connection: ConnectionId, message: &[u8], options: &SendOptions) -> Result<(), Error> {
        self.hub.send(self.driver.now(), connection, message, options)?;
        self.touched = true;
        Ok(())
    }

    /// The next message of a connection, into `buf`, which is replaced; `None` if there is none
    /// now, also of a connection that is over.
    ///
    /// # Errors
    /// [`Error::NoConnection`] of one that there never was.
    pub fn recv(&mut self, connection: ConnectionId, buf: &mut Vec<u8>) -> Result<Option<Received>, Error> {
        let received = self.hub.recv(self.driver.now(), connection, buf)?;
        // The other end gets to know that there is room.
        self.touched |= received.is_some();
        Ok(received)
    }

    /// Waits for the next event for at most `timeout`, or for ever; meanwhile everything runs.
    /// `None`: nothing happened in that time, or until a [`Waker`] was called.
    ///
    /// # Errors
    /// [`Error::Io`] if polling fails.
    pub fn poll(&mut self, timeout: Option<Duration>) -> Result<Option<(ConnectionId, Event)>, Error> {
        let no_wait = timeout == Some(Duration::ZERO);
        let end = timeout.filter(|_| !no_wait).map(|timeout| self.driver.now() + timeout);
        loop {
            let mut called = false;
            if std::mem::take(&mut self.touched) {
                // What the application did leaves before it waits for anything.
                let wake = self.driver.try_drive(&mut self.hub.endpoint, None)?;
                self.take(wake.as_ref());
                called = wake == Some(Wake::Called);
            }
            // Who does not wait calls until there is nothing more to do.
            if let (event, true) | (event @ Some(_), false) = (self.hub.next_event(), called && !no_wait) {
                return Ok(event);
            }
            let due = self.links.values().filter_map(Links::next).min();
            let wake = match no_wait {
                true => self.driver.try_drive(&mut self.hub.endpoint, due)?,
                false => Some(self.driver.drive(&mut self.hub.endpoint, end.into_iter().chain(due).min())?),
            };
            self.take(wake.as_ref());
            let is_over = match wake {
                None => true,
                Some(Wake::Until) => end.is_some_and(|end| end <= self.driver.now()),
                Some(Wake::Called) => !no_wait,
                Some(_) => false,
            };
            if is_over {
                return Ok(self.hub.next_event());
            }
        }
    }

    /// Ends a connection once everything that was sent is acknowledged, in both directions.
    /// [`Event::Closed`] follows once all that came is read.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn shutdown(&mut self, connection: ConnectionId) -> Result<(), Error> {
        self.hub.shutdown(self.driver.now(), connection)?;
        self.touched = true;
        Ok(())
    }

    /// Ends a connection at once; what came and was not read is lost. The other end is told `code`,
    /// which means what the two programs agree on, and `reason`
    /// ([`CloseReason::ByPeer`]), some [`CloseReason::MAX_TEXT`] bytes of it at most.
    /// [`Event::Closed`] follows.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn abort(&mut self, connection: ConnectionId, code: u32, reason: impl AsRef<[u8]>) -> Result<(), Error> {
        self.hub.abort(self.driver.now(), connection, Reason::new(code, reason))?;
        self.touched = true;
        Ok(())
    }

    /// Ends all connections once everything that was sent is acknowledged, and waits for that.
    /// Messages that still come are lost, and so are events. Returns whether all ended in good
    /// order within `timeout`: whatever was sent was acknowledged, or discarded as it was too late
    /// or repeated too often.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn close(&mut self, timeout: Duration) -> Result<bool, Error> {
        self.begin_close()?;
        let (until, mut orderly) = (self.driver.now() + timeout, true);
        while !self.hub.is_empty() {
            let left = until - self.driver.now();
            if left.is_zero() {
                return Ok(false);
            }
            let event = self.poll(Some(left))?;
            orderly &= is_orderly(event.as_ref());
            self.discard_received();
        }
        Ok(orderly)
    }

    /// Accepts no more connections, and shuts those down that there are.
    pub(crate) fn begin_close(&mut self) -> Result<(), Error> {
        self.hub.endpoint.stop_listening();
        let now = self.driver.now();
        for connection in self.connections().collect::<Vec<_>>() {
            self.hub.shutdown(now, connection)?;
        }
        self.touched = true;
        self.discard_received();
        Ok(())
    }

    /// Drops what was received: what nobody reads would hold up the end. Returns whether there was
    /// anything.
    pub(crate) fn discard_received(&mut self) -> bool {
        let mut any = false;
        for connection in self.connections().collect::<Vec<_>>() {
            any |= self.discard_received_of(connection);
        }
        any
    }

    /// The same of one connection.
    pub(crate) fn discard_received_of(&mut self, connection: ConnectionId) -> bool {
        let (mut message, mut any) = (Vec::new(), false);
        while self.recv(connection, &mut message).is_ok_and(|it| it.is_some()) {
            any = true;
        }
        any
    }

    /// The connections that there are, oldest first: those of which [`Event::Closed`] has not been
    /// handed out.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.hub.connections()
    }

    /// Who asked for a connection and was turned away since the last call, the oldest first. Of
    /// more than eight that wait the later ones are forgotten.
    #[must_use]
    pub fn next_refused(&mut self) -> Option<Refused> {
        self.hub.next_refused()
    }

    /// Bytes of messages to the other end that wait or are not acknowledged yet; 0 of a connection
    /// that is over.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn buffered(&self, connection: ConnectionId) -> Result<usize, Error> {
        Ok(self.hub.association(connection)?.map_or(0, |it| it.buffered()))
    }

    /// The paths of a connection as they are now.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn paths(&self, connection: ConnectionId) -> Result<Vec<PathReport>, Error> {
        let Some(association) = self.hub.association(connection)? else { return Ok(Vec::new()) };
        let links = self.links.get(&connection);
        let report = |path: braidcast_sctp::PathReport| PathReport {
            name: name(links, path.route),
            remote: path.route.remote,
            state: path.state,
            rtt: path.srtt,
            capacity: path.capacity.map(|bytes| bytes * 8),
            sent_bytes: path.sent_bytes,
            received_bytes: path.received_bytes,
            lost_chunks: path.lost_chunks,
        };
        Ok(association.paths().map(report).collect())
    }

    /// Says from now on what messages of a connection may have, in
    /// [`rate_report`](Self::rate_report). Called again, it begins anew. It takes some 10 kB, and
    /// nothing that is sent depends on it.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn follow_rate(&mut self, connection: ConnectionId, options: &RateOptions) -> Result<(), Error> {
        let now = self.driver.now();
        if let Some(association) = self.hub.association_mut(connection)? {
            association.follow_rate(now, options);
        }
        Ok(())
    }

    /// Other rates that the application is able to make. What is known of the paths stays.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn set_rate_limits(&mut self, connection: ConnectionId, limits: RateLimits) -> Result<(), Error> {
        if let Some(association) = self.hub.association_mut(connection)? {
            association.set_rate_limits(limits);
        }
        Ok(())
    }

    /// Returns how many bits the next message to the other end may have to come in time with what
    /// waits before it, and which rate will hold for the next second. While no path is full it
    /// grows only as far as it is used, from 1 Mbit/s on. Ask before each message. `None` before
    /// [`follow_rate`](Self::follow_rate), before [`Event::Connected`], and after
    /// [`shutdown`](Self::shutdown).
    ///
    /// If both ends send as much as one path carries, acknowledgements come late behind what the
    /// other end sends, and the rate stays below what the forward direction carries.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn rate_report(&self, connection: ConnectionId) -> Result<Option<RateReport>, Error> {
        let association = self.hub.association(connection)?;
        Ok(association.and_then(|it| it.rate_report(self.driver.now())))
    }

    /// What another thread ends a wait in [`poll`](Self::poll) with.
    /// [`SharedSocket`](crate::SharedSocket) makes the whole socket usable from several threads.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no file descriptors left.
    pub fn waker(&mut self) -> Result<Waker, Error> {
        Ok(self.driver.waker()?)
    }

    pub(crate) fn clock(&self) -> Clock {
        self.driver.clock()
    }

    /// Takes what did not go as asked since the last call, in words, for example a binding to an
    /// address in place of an interface. Of more than 64 that wait the later ones are forgotten.
    #[must_use]
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings.0)
    }

    /// The time now, since the socket was made.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.driver.now()
    }

    /// The driver woke up: collects events, and has paths join and leave.
    fn take(&mut self, wake: Option<&Wake>) {
        let Self { driver, hub, links, .. } = self;
        hub.collect(driver.now(), |id, route| name(links.get(&id), route));
        for id in hub.take_ended() {
            links.remove(&id).iter().for_each(|links| close_sockets(driver, links));
        }
        for (id, route) in hub.take_downs() {
            links.get_mut(&id).into_iter().for_each(|links| links.down(driver.now(), route));
        }
        self.settle();
        self.tend();
        if matches!(wake, Some(Wake::Interfaces(_))) {
            self.refresh();
        }
    }
}

/// Aborts the connections that there are, so that their other ends know. What was sent and has not
/// arrived may be lost.
impl Drop for Socket {
    fn drop(&mut self) {
        let (now, all) = (self.driver.now(), self.connections().collect::<Vec<_>>());
        for &connection in &all {
            _ = self.hub.abort(now, connection, Self::DROPPED);
        }
        // A few packets for each; a turn of the driver sends dozens.
        for _ in 0..all.len().min(1024) {
            if !matches!(self.driver.try_drive(&mut self.hub.endpoint, None), Ok(Some(_))) {
                break;
            }
        }
    }
}

/// Readable when [`poll`](Socket::poll) has something to do. It is the socket's; do not close or
/// change it.
impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.driver.as_fd()
    }
}

/// The same as [`AsFd`] has it.
impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.driver.as_raw_fd()
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// The transport's `options` as a socket has them, without protection.
pub(crate) fn usual_options(mut options: Options) -> Options {
    // The handshake goes over all networks at once: the first that works does it.
    options.timers.open_over_all = Some(Duration::from_secs(1));
    options.timers.give_up = Some(Socket::LONGEST_SILENCE);
    options.redundancy.fec_receive = true;
    options.timed_messages = true;
    options
}

/// Returns `false` for the end of a connection that may have lost something.
pub(crate) fn is_orderly(event: Option<&(ConnectionId, Event)>) -> bool {
    !matches!(event, Some((_, Event::Closed { reason, .. })) if *reason != CloseReason::Shutdown)
}

fn close_sockets(driver: &mut Driver, links: &Links) {
    links.routes().iter().for_each(|route| driver.unbind(route.socket));
}

/// What the path over `route` is called.
fn name(links: Option<&Links>, route: Route) -> String {
    let known = links.and_then(|links| links.name(route.socket));
    known.map_or_else(|| route.remote.to_string(), str::to_owned)
}
