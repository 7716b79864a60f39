use braidcast_core::{Datagram, Instant, Transmit};
use core::fmt;
use core::net::SocketAddr;

/// Hears every datagram that leaves or comes, for example for a capture. It is called in the middle
/// of the driver's work, and should be quick.
pub trait Tap: fmt::Debug + Send {
    /// A datagram, or several of equal size in a row, leaves the socket that is bound to `local`.
    fn sent(&mut self, now: Instant, local: SocketAddr, transmit: &Transmit, payload: &[u8]);

    /// A datagram came to the socket that is bound to `local`; the machine gets it next.
    fn received(&mut self, now: Instant, local: SocketAddr, datagram: &Datagram<'_>);
}
