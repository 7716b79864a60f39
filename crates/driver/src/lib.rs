//! Runs Braidcast's machines, which do no I/O, on real sockets (UDP, or IP itself), timers and
//! network interfaces.
//!
//! [`Driver`] is the event loop: it moves datagrams and time between the operating system and any
//! [`Machine`](braidcast_core::Machine); [`Links`] are its sockets on interfaces that come and go.
//! This is the only crate that makes system calls or reads the real clock. It does so through safe
//! libraries if they have the call. It needs Linux (epoll, timerfd, netlink).
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tokio")]
mod async_driver;
mod bind;
mod clock;
mod datagrams;
mod driver;
pub mod http;
mod links;
mod netlink;
mod outbox;
mod outgoing;
mod routing;
mod signal;
mod socket;
mod socket_pool;
mod sources;
mod tap;
mod trouble;
#[cfg(feature = "tokio")]
mod waiting;
mod watch;

#[cfg(feature = "tokio")]
pub use async_driver::{AsyncDriver, ReadyFd};
pub use bind::{Bind, BindError, Carrier};
pub use clock::Clock;
pub use datagrams::{Batch, DatagramReader, DatagramWriter};
pub use driver::{Direction, Driver, InputId, Wake, Waker};
pub use links::{Link, LinkChange, LinkTrouble, Links, LinksError, Target, Via, source_address};
pub use outbox::Outbox;
pub use routing::{LinkState, Missing, Range, Routing, TableRoute, TableRule};
pub use signal::interrupt_flag;
pub use socket::{Socket, SocketStats};
pub use socket_pool::SocketPool;
pub use tap::Tap;
pub use trouble::Trouble;
#[cfg(feature = "tokio")]
pub use waiting::Waiting;
pub use watch::{InterfaceChange, Interfaces};

/// 32 bytes of the operating system's randomness, for
/// [`Rng::from_entropy`](braidcast_core::Rng::from_entropy).
///
/// Fails only if the system has none to give, for example in a chroot without `getrandom` and
/// `/dev/urandom`.
pub fn entropy() -> std::io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(seed)
}
