use braidcast_core::Misuse;
use braidcast_sctp::ConnectError;

/// Why [`Sender::new`](crate::Sender::new) did not begin a session.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The options cannot work.
    #[error(transparent)]
    Options(#[from] Misuse),
    /// The routes or the port cannot be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}
