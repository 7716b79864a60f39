use crate::{CloseReason, ConnectionId};
use braidcast_driver::{BindError, LinksError, Target};
use braidcast_sctp::{ConnectError, JoinError, Misuse, SendError};
use braidcast_secure::SecretError;
use std::io;
use std::path::PathBuf;

/// Why a [`Socket`](crate::Socket) did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such connection, or it is over.
    #[error("there is no connection {}", .0.0)]
    NoConnection(ConnectionId),
    /// Nothing was taken. Of those, [`SendError::BufferFull`] and [`SendError::QueueFull`] pass:
    /// wait for [`Event::Writable`](crate::Event::Writable).
    #[error(transparent)]
    Send(#[from] SendError),
    /// Nobody can be there: the port is 0, or the address is the unspecified one.
    #[error("{0} leads nowhere; give an address and a port of the other end")]
    Nowhere(Target),
    /// The connection was not begun.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The path cannot join.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A local address cannot be used.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The paths cannot be opened.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// The key cannot be used.
    #[error("the key: {0}")]
    Key(#[from] SecretError),
    /// The cryptographic library has no randomness or no memory.
    #[error("no randomness or no memory for keys")]
    NoKey,
    /// The file of an identity cannot be used.
    #[error("the identity in {}: {what}; `braidcast key identity FILE` makes one", file.display())]
    Identity {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// This is no fingerprint of a key.
    #[error("'{0}' is not a fingerprint of 64 hexadecimal digits, as `braidcast key identity FILE` prints it")]
    Fingerprint(String),
    /// The socket has no identity, so nobody is let in by a list.
    #[error("this socket was made without an identity; give one to Socket::builder()")]
    NoIdentity,
    /// Options contradict each other.
    #[error(transparent)]
    Options(#[from] Misuse),
    /// A call of a [`SharedSocket`](crate::SharedSocket) panicked: it can only be dropped.
    #[error("a bug in the library broke this socket: it can only be dropped")]
    Broken,
    /// The connection is over before it was done.
    #[error("the connection is over: {0}")]
    Closed(CloseReason),
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
