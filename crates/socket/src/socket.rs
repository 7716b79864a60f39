use crate::path::{Path, PathReport};
use crate::{Error, Event, Protection};
use braidcast_core::{Instant, Machine, Rng, Route};
use braidcast_driver::{Bind, Carrier, Driver, LinkChange, Links, Wake, entropy};
use braidcast_sctp::{
    AssociationId, Endpoint, Options, Profile, RateLimits, RateOptions, RateReport, RedundancyChooser, Reliability,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// A connection of a [`Socket`]; numbers count up from 1 and are not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// How to send a message. The default: in order on stream 0, delivered however long it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// Messages of a stream are in order; streams do not wait for each other. 0 to 63 by default of
    /// both ends.
    pub stream: u16,
    /// Deliver it as soon as it is complete, whatever its stream waits for.
    pub unordered: bool,
    /// How long after now it must be at the other end. What would be later, by the delay of the
    /// quickest path, is neither sent nor repeated: [`Event::Discarded`]. `None`: it is never too
    /// late.
    pub deadline: Option<Duration>,
    /// Maximum number of retransmissions (RFC 7496 §3.1). `None`: no limit.
    pub max_retransmissions: Option<u16>,
    /// What the other end gets to know of its kind ([`Received::ppid`]).
    pub ppid: u32,
    /// Comes back in [`Event::Discarded`]; not sent.
    pub context: u64,
}

/// What is said of a message that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Received {
    /// The stream it came on.
    pub stream: u16,
    /// `true` if it was sent outside the order of its stream.
    pub unordered: bool,
    /// What the sender said of its kind ([`SendOptions::ppid`]).
    pub ppid: u32,
}

#[derive(Debug)]
struct Connection {
    association: AssociationId,
    /// Of one that was begun here.
    links: Option<Links>,
    /// From the first message with a deadline on.
    chooser: Option<RedundancyChooser>,
}

/// Messages over several networks at once. See the crate's page for an example.
///
/// Nothing happens by itself: all that is to leave and to come does so within [`poll`](Self::poll).
/// A program with an event loop of its own waits until the socket's file descriptor is readable
/// ([`AsRawFd`]), then calls `poll(Some(Duration::ZERO))` until that returns `None`; so too after
/// it has sent something.
pub struct Socket {
    driver: Driver,
    endpoint: Endpoint,
    /// The SCTP port of both ends.
    port: u16,
    connections: BTreeMap<ConnectionId, Connection>,
    by_association: BTreeMap<AssociationId, ConnectionId>,
    events: VecDeque<(ConnectionId, Event)>,
    /// The last connection's number.
    last: u64,
    /// The application changed something that the driver has not seen.
    touched: bool,
    warnings: Vec<String>,
}

impl Socket {
    /// Returns a socket for live data, [`Profile::Live`].
    ///
    /// # Errors
    /// [`Error::Key`] if the key cannot be one; [`Error::Io`] if the system has no file descriptors
    /// left.
    pub fn new(protection: &Protection) -> Result<Self, Error> {
        Self::with_profile(Profile::Live, protection)
    }

    /// Returns a socket whose messages are as `profile` says. Both ends may have different ones.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_profile(profile: Profile, protection: &Protection) -> Result<Self, Error> {
        Self::with_options(Options { security: protection.options()?, ..Options::of(profile) })
    }

    /// Returns the options of the transport.
    pub fn options(&self) -> &Options {
        self.endpoint.options()
    }

    /// Returns a socket with these options of the transport, for example [`Options::of`] a profile
    /// with another scheduler; [`Options::security`] says how it is protected. Both ends must have
    /// the same [`Options::local_port`]. If they take redundancy and name no code, messages with
    /// deadlines get as much as the paths' losses ask for.
    ///
    /// # Errors
    /// [`Error::Options`], [`Error::Io`].
    pub fn with_options(options: Options) -> Result<Self, Error> {
        let port = options.local_port;
        Ok(Self {
            driver: Driver::new()?,
            endpoint: Endpoint::new(options, Rng::from_entropy(entropy()?))?,
            port,
            connections: BTreeMap::new(),
            by_association: BTreeMap::new(),
            events: VecDeque::new(),
            last: 0,
            touched: false,
            warnings: Vec::new(),
        })
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

    /// Accepts connections from now on. The first event of a new one is [`Event::Connected`].
    pub fn listen(&mut self) {
        self.endpoint.listen();
    }

    /// Begins a connection over these paths, each with a local port of its own.
    /// [`Event::Connected`] or [`Event::Closed`] follows.
    ///
    /// # Errors
    /// [`Error::Links`] if none of the paths can be used now, or one cannot be opened;
    /// [`Error::Connect`].
    pub fn connect(&mut self, paths: &[Path]) -> Result<ConnectionId, Error> {
        if paths.is_empty() {
            return Err(braidcast_sctp::ConnectError::NoRoute.into());
        }
        let (links, mut warnings) =
            Links::open(paths.iter().map(Path::link).collect(), Carrier::Udp, &mut self.driver)?;
        self.warnings.append(&mut warnings);
        let now = self.driver.now();
        let association = match self.endpoint.connect(now, self.port, &links.routes()) {
            Ok(association) => association,
            Err(error) => {
                self.close_sockets(&links);
                return Err(error.into());
            }
        };
        self.touched = true;
        Ok(self.insert(association, Some(links)))
    }

    /// Adds a path to a connection that was begun here; [`Event::PathUp`] follows when it carries
    /// data. One whose interface is not there joins when that appears.
    ///
    /// # Errors
    /// [`Error::NoConnection`], also of one that the other end began; [`Error::Links`],
    /// [`Error::Join`].
    pub fn join(&mut self, connection: ConnectionId, path: &Path) -> Result<(), Error> {
        let entry = self.connections.get_mut(&connection).ok_or(Error::NoConnection(connection))?;
        let links = entry.links.as_mut().ok_or(Error::NoConnection(connection))?;
        let added = links.add(path.link(), &mut self.driver)?;
        self.touched = true;
        let Some(LinkChange::Joined { route, warning, .. }) = added else { return Ok(()) };
        self.warnings.extend(warning);
        let now = self.driver.now();
        let association = self.endpoint.association_mut(entry.association).ok_or(Error::NoConnection(connection))?;
        association.join(now, route)?;
        Ok(())
    }

    /// Takes a path out of a connection that was begun here, by its name in [`PathReport`]. Returns
    /// whether there was one.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn leave(&mut self, connection: ConnectionId, name: &str) -> Result<bool, Error> {
        let entry = self.connections.get_mut(&connection).ok_or(Error::NoConnection(connection))?;
        let Some(route) = entry.links.as_mut().and_then(|links| links.remove(name)) else { return Ok(false) };
        let now = self.driver.now();
        if let Some(association) = self.endpoint.association_mut(entry.association) {
            association.leave(now, route);
        }
        self.driver.unbind(route.socket);
        self.touched = true;
        Ok(true)
    }

    /// Takes a message to be sent. It leaves in the next [`poll`](Self::poll), or when the paths
    /// have room.
    ///
    /// # Errors
    /// [`Error::Send`]: nothing was taken; [`Error::NoConnection`].
    pub fn send(&mut self, connection: ConnectionId, message: &[u8], options: &SendOptions) -> Result<(), Error> {
        let now = self.driver.now();
        let how = braidcast_sctp::SendOptions {
            stream: options.stream,
            ppid: options.ppid,
            unordered: options.unordered,
            deadline: options.deadline.map(|deadline| now + deadline),
            reliability: options.max_retransmissions.map_or(Reliability::Reliable, Reliability::Retransmissions),
            context: options.context,
            ..braidcast_sctp::SendOptions::default()
        };
        let takes = self.endpoint.options().redundancy;
        let entry = self.connections.get_mut(&connection).ok_or(Error::NoConnection(connection))?;
        let association = self.endpoint.association_mut(entry.association);
        let association = association.ok_or(Error::NoConnection(connection))?;
        association.send(now, message, how)?;
        if let Some(deadline) = options.deadline.filter(|_| takes.fec_receive && takes.fec.is_none()) {
            let chooser = entry.chooser.get_or_insert_with(|| RedundancyChooser::new(Some(deadline)));
            chooser.on_deadline(deadline);
            chooser.update(now, association);
        }
        self.touched = true;
        Ok(())
    }

    /// The next message of a connection, into `buf`, which is replaced; `None` if there is none
    /// now.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn recv(&mut self, connection: ConnectionId, buf: &mut Vec<u8>) -> Result<Option<Received>, Error> {
        let now = self.driver.now();
        let received = self.association(connection)?.recv(now, buf);
        // The other end gets to know that there is room.
        self.touched |= received.is_some();
        Ok(received.map(|it| Received { stream: it.stream, unordered: it.unordered, ppid: it.ppid }))
    }

    /// Waits for the next event for at most `timeout`, or for ever; meanwhile everything runs.
    /// `None`: nothing happened in that time.
    ///
    /// # Errors
    /// [`Error::Io`] if polling fails, [`Error::Links`] if a path cannot be opened whose interface
    /// has appeared.
    pub fn poll(&mut self, timeout: Option<Duration>) -> Result<Option<(ConnectionId, Event)>, Error> {
        let no_wait = timeout == Some(Duration::ZERO);
        let until = timeout.filter(|_| !no_wait).map(|timeout| self.driver.now() + timeout);
        loop {
            if std::mem::take(&mut self.touched) {
                // What the application did leaves before it waits for anything.
                let wake = self.driver.try_drive(&mut self.endpoint, None)?;
                self.take(wake.as_ref())?;
            }
            if let Some(event) = self.next_event() {
                return Ok(Some(event));
            }
            let wake = match no_wait {
                true => self.driver.try_drive(&mut self.endpoint, None)?,
                false => Some(self.driver.drive(&mut self.endpoint, until)?),
            };
            self.take(wake.as_ref())?;
            if matches!(wake, None | Some(Wake::Until)) {
                return Ok(self.next_event());
            }
        }
    }

    /// Ends a connection once everything that was sent is delivered, in both directions.
    /// [`Event::Closed`] follows.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn shutdown(&mut self, connection: ConnectionId) -> Result<(), Error> {
        let now = self.driver.now();
        self.association(connection)?.shutdown(now);
        self.touched = true;
        Ok(())
    }

    /// Ends a connection at once; the other end is told `reason`. [`Event::Closed`] follows.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn abort(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Error> {
        let now = self.driver.now();
        self.association(connection)?.abort(now, reason);
        self.touched = true;
        Ok(())
    }

    /// Ends all connections once everything that was sent is delivered, and waits for that.
    /// Messages that still come are lost. Returns whether all ended within `timeout`.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn close(&mut self, timeout: Duration) -> Result<bool, Error> {
        self.endpoint.stop_listening();
        let until = self.driver.now() + timeout;
        for connection in self.connections().collect::<Vec<_>>() {
            self.shutdown(connection)?;
        }
        while !self.connections.is_empty() {
            let left = until - self.driver.now();
            if left.is_zero() {
                return Ok(false);
            }
            self.poll(Some(left))?;
            // What nobody reads would hold up the end.
            let mut message = Vec::new();
            for connection in self.connections().collect::<Vec<_>>() {
                while self.recv(connection, &mut message).is_ok_and(|it| it.is_some()) {}
            }
        }
        Ok(true)
    }

    /// The connections that there are, oldest first.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.keys().copied()
    }

    /// The paths of a connection as they are now.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn paths(&self, connection: ConnectionId) -> Result<Vec<PathReport>, Error> {
        let entry = self.connections.get(&connection).ok_or(Error::NoConnection(connection))?;
        let association = self.endpoint.association(entry.association).ok_or(Error::NoConnection(connection))?;
        let report = |path: braidcast_sctp::PathReport| PathReport {
            name: name(entry.links.as_ref(), path.route),
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
        self.association(connection)?.follow_rate(now, options);
        Ok(())
    }

    /// Other rates that the application is able to make. What is known of the paths stays.
    ///
    /// # Errors
    /// [`Error::NoConnection`].
    pub fn set_rate_limits(&mut self, connection: ConnectionId, limits: RateLimits) -> Result<(), Error> {
        self.association(connection)?.set_rate_limits(limits);
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
        let entry = self.connections.get(&connection).ok_or(Error::NoConnection(connection))?;
        let association = self.endpoint.association(entry.association).ok_or(Error::NoConnection(connection))?;
        Ok(association.rate_report(self.driver.now()))
    }

    /// Takes what did not go as asked since the last call, in words, for example a binding to an
    /// address in place of an interface.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The time now, since the socket was made.
    pub fn now(&self) -> Instant {
        self.driver.now()
    }

    fn association(&mut self, connection: ConnectionId) -> Result<&mut braidcast_sctp::Association, Error> {
        let entry = self.connections.get(&connection).ok_or(Error::NoConnection(connection))?;
        self.endpoint.association_mut(entry.association).ok_or(Error::NoConnection(connection))
    }

    fn insert(&mut self, association: AssociationId, links: Option<Links>) -> ConnectionId {
        self.last += 1;
        let id = ConnectionId(self.last);
        self.connections.insert(id, Connection { association, links, chooser: None });
        self.by_association.insert(association, id);
        id
    }

    /// The driver woke up: collects events, and has paths join and leave.
    fn take(&mut self, wake: Option<&Wake>) -> Result<(), Error> {
        while let Some((association, event)) = self.endpoint.poll_event() {
            let known = self.by_association.get(&association).copied();
            let id = known.unwrap_or_else(|| self.insert(association, None));
            let links = self.connections.get(&id).and_then(|it| it.links.as_ref());
            let Some(event) = Event::of(event, |route| name(links, route)) else { continue };
            if let Event::Closed(_) = event {
                self.by_association.remove(&association);
                if let Some(links) = self.connections.remove(&id).and_then(|it| it.links) {
                    self.close_sockets(&links);
                }
            }
            self.events.push_back((id, event));
        }
        if matches!(wake, Some(Wake::Interfaces(_))) {
            self.refresh()?;
        }
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), Error> {
        let Self { driver, endpoint, connections, warnings, .. } = self;
        for Connection { association, links, .. } in connections.values_mut() {
            let Some(links) = links else { continue };
            for change in links.refresh(driver)? {
                let now = driver.now();
                let association = endpoint.association_mut(*association);
                match change {
                    LinkChange::Joined { route, warning, .. } => {
                        warnings.extend(warning);
                        if let Some(association) = association
                            && let Err(error) = association.join(now, route)
                        {
                            warnings.push(format!("the path to {} cannot join: {error}", route.remote));
                        }
                    }
                    LinkChange::Left { route, .. } => {
                        if let Some(association) = association {
                            association.leave(now, route);
                        }
                        driver.unbind(route.socket);
                    }
                    _ => {}
                }
            }
        }
        self.touched = true;
        Ok(())
    }

    fn close_sockets(&mut self, links: &Links) {
        links.routes().iter().for_each(|route| self.driver.unbind(route.socket));
    }

    fn next_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.events.pop_front()
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
        f.debug_struct("Socket").field("connections", &self.connections).finish_non_exhaustive()
    }
}

/// What the path over `route` is called.
fn name(links: Option<&Links>, route: Route) -> String {
    let known = links.and_then(|links| links.name(route.socket));
    known.map_or_else(|| route.remote.to_string(), str::to_owned)
}
