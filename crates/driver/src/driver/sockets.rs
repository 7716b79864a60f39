//! The sockets of a driver: its own, and those that a program brings.

use super::{Driver, socket_token};
use crate::bind::{Bind, BindError};
use crate::socket::Socket;
use braidcast_core::SocketId;
use mio::Interest;
use mio::unix::SourceFd;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// What a program does to each socket before anything is sent through it.
#[derive(Default)]
pub(super) struct OnOpen(Option<Prepare>);

type Prepare = Box<dyn FnMut(BorrowedFd<'_>) -> io::Result<()> + Send>;

impl fmt::Debug for OnOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnOpen").field(&self.0.is_some()).finish()
    }
}

impl Driver {
    /// Opens a socket. Ids count up from 0. After 65,535 they begin at 0 again, without those of
    /// sockets that are open.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(&mut self, bind: &Bind) -> Result<SocketId, BindError> {
        let os = |source| BindError::Os { bind: bind.clone(), source };
        let id = self.free_id()?;
        let socket = Socket::open(bind)?;
        if let Some(prepare) = &mut self.on_open.0 {
            prepare(socket.as_fd()).map_err(os)?;
        }
        self.add(id, socket).map_err(os)
    }

    /// Opens a socket beside the socket `id` of `other`, which was opened by the same `bind`. What comes to their
    /// address and port is shared out among them, by where it comes from (`SO_REUSEPORT`). It is for a program that
    /// has a driver for each of its threads; the sockets know the same of remotes.
    ///
    /// Another program that wants the port is refused, as the first socket was opened alone.
    ///
    /// # Errors
    /// [`BindError`], also if `other` has no such socket.
    pub fn bind_beside(&mut self, other: &mut Self, id: SocketId, bind: &Bind) -> Result<SocketId, BindError> {
        let os = |source| BindError::Os { bind: bind.clone(), source };
        let first = other.sockets.get_mut(&id).ok_or_else(|| os(io::ErrorKind::NotFound.into()))?;
        let sources = first.share().map_err(os)?;
        let own = self.free_id()?;
        let mut socket = Socket::open(&Bind { port: first.local_addr().port(), shared: true, ..bind.clone() })?;
        socket.use_sources(sources);
        self.add(own, socket).map_err(os)
    }

    /// Takes over a UDP socket that is bound, for example one that systemd has opened. It becomes
    /// non-blocking.
    ///
    /// # Errors
    /// [`BindError`], also if it is another kind of file.
    pub fn adopt(&mut self, socket: OwnedFd) -> Result<SocketId, BindError> {
        let os = |source| BindError::Os { bind: Bind::default(), source };
        let id = self.free_id()?;
        let socket = Socket::adopt(socket).map_err(os)?;
        self.add(id, socket).map_err(os)
    }

    /// Calls `prepare` with each socket that is opened from now on, before anything is sent through
    /// it: to set a mark, or to keep it out of a VPN. If that fails, the socket is not used.
    pub fn on_open(&mut self, prepare: impl FnMut(BorrowedFd<'_>) -> io::Result<()> + Send + 'static) {
        self.on_open = OnOpen(Some(Box::new(prepare)));
    }

    fn free_id(&self) -> Result<SocketId, BindError> {
        let ids = (1..=u16::MAX).chain([0]).map(|ahead| SocketId(self.last_socket.wrapping_add(ahead)));
        ids.into_iter().find(|id| !self.sockets.contains_key(id)).ok_or(BindError::TooMany)
    }

    fn add(&mut self, id: SocketId, socket: Socket) -> io::Result<SocketId> {
        self.poll.registry().register(&mut SourceFd(&socket.raw_fd()), socket_token(id), Interest::READABLE)?;
        self.last_socket = id.0;
        self.sockets.insert(id, socket);
        Ok(id)
    }
}
