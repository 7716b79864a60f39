//! Hosts: a protocol endpoint with its traffic and its measures, as one machine, so that the same host runs in the
//! simulator and on real sockets.

mod sctp;
mod window;

pub use sctp::{Delivered, SctpHost, SctpReceiver, SctpSender, Snapshot};
pub use window::Window;

use braidcast_core::{Datagram, Instant, Machine, Route, Transmit};

/// Any host of an experiment.
#[derive(Debug)]
pub enum Host {
    /// Sends over SCTP.
    SctpSender(Box<SctpHost<SctpSender>>),
    /// Takes what comes over SCTP.
    SctpReceiver(Box<SctpHost<SctpReceiver>>),
}

/// Does the same with whichever host it is.
macro_rules! each {
    ($host:expr, $it:ident => $do:expr) => {
        match $host {
            Host::SctpSender($it) => $do,
            Host::SctpReceiver($it) => $do,
        }
    };
}

impl Host {
    /// Tells the host its routes, one for each of its paths. Called once, before anything else.
    pub fn open(&mut self, routes: &[Route]) {
        each!(self, it => it.open(routes));
    }

    /// Whether it has measured all that it is to measure.
    pub fn is_finished(&self, now: Instant) -> bool {
        each!(self, it => it.window().is_over(now))
    }

    /// The SCTP sender that it is, if it is one.
    pub fn sctp_sender(&self) -> Option<&SctpSender> {
        match self {
            Self::SctpSender(host) => Some(host.part()),
            Self::SctpReceiver(_) => None,
        }
    }

    /// What it took from the network, if it is a receiver.
    pub fn delivered(&self) -> Option<&Delivered> {
        match self {
            Self::SctpReceiver(host) => Some(&host.part().delivered),
            Self::SctpSender(_) => None,
        }
    }
}

impl Machine for Host {
    /// Hosts keep their measures until the end and tell nothing before.
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        each!(self, it => it.handle_datagram(now, datagram));
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, it => it.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        each!(self, it => it.poll_transmit(now, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, it => it.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
