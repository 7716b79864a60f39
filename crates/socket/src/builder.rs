use crate::socket::usual_options;
use crate::{Error, Protection, Socket};
use braidcast_sctp::Options;
use std::time::Duration;

/// What a [`Socket`] is made with, of [`Socket::builder`].
///
/// ```
/// use braidcast_socket::Socket;
/// use std::time::Duration;
///
/// let socket = Socket::builder()
///     .key("a passphrase that both ends know")
///     .longest_silence(Some(Duration::from_secs(5)))
///     .buffers(1 << 20, 1 << 20)
///     .max_message(100_000)
///     .options(|it| it.paths.max_paths = 2)
///     .build()?;
/// # drop(socket);
/// # Ok::<(), braidcast_socket::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it makes nothing before `build`"]
pub struct SocketBuilder {
    protection: Protection,
    options: Options,
}

impl SocketBuilder {
    pub(crate) fn new() -> Self {
        Self { protection: Protection::default(), options: usual_options() }
    }

    /// Only who has the same key gets in ([`Protection::Key`]). Default: encrypted, with anybody.
    pub fn key(self, key: &str) -> Self {
        self.protection(Protection::Key(key.to_owned()))
    }

    /// How all that goes over it is protected.
    pub fn protection(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// How long nothing may be heard from the other end before a connection ends, at least 1 ms.
    /// `None`: for ever. Default [`Socket::LONGEST_SILENCE`].
    pub fn longest_silence(self, limit: Option<Duration>) -> Self {
        self.options(|it| it.timers.give_up = limit)
    }

    /// Bytes of messages that each connection holds at most, to be sent and to be received, 1500
    /// bytes to 1 GiB. Default 4 MiB each.
    pub fn buffers(self, send: usize, receive: usize) -> Self {
        self.options(|it| (it.limits.send_buffer, it.limits.receive_buffer) = (send, receive))
    }

    /// Bytes of the longest message, at most as many as each buffer has. Default 2 MiB.
    pub fn max_message(self, bytes: usize) -> Self {
        self.options(|it| it.limits.max_message = bytes)
    }

    /// Connections that others may begin; 0 refuses them all. One more takes the place of one that
    /// is silent. Default 1024.
    pub fn max_connections(self, most: usize) -> Self {
        self.options(|it| it.limits.max_associations = most)
    }

    /// Changes any option of the transport. [`Options::security`] is set by
    /// [`protection`](Self::protection).
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Makes the socket.
    ///
    /// # Errors
    /// [`Error::Options`] if options contradict each other, and as [`Socket::new`].
    pub fn build(self) -> Result<Socket, Error> {
        Socket::with_options(Options { security: self.protection.options()?, ..self.options })
    }
}
