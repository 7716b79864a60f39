use super::{DatagramSender, DatagramSink};
use crate::tcp;
use braidcast_core::{Datagram, Instant, Machine, Transmit};
use core::convert::Infallible;

/// Any of the simulator's own traffic agents, so that one network can have them all. They have no events.
#[derive(Debug)]
pub enum Agent {
    /// Sends datagrams.
    Sender(DatagramSender),
    /// Measures datagrams.
    Sink(Box<DatagramSink>),
    /// Sends and receives over TCP.
    Tcp(tcp::Host),
}

impl Agent {
    /// The datagram sender, if it is one.
    pub const fn as_sender(&self) -> Option<&DatagramSender> {
        if let Self::Sender(sender) = self { Some(sender) } else { None }
    }

    /// The datagram sink, if it is one.
    pub const fn as_sink(&self) -> Option<&DatagramSink> {
        if let Self::Sink(sink) = self { Some(sink) } else { None }
    }

    /// The TCP host, if it is one.
    pub const fn as_tcp(&self) -> Option<&tcp::Host> {
        if let Self::Tcp(host) = self { Some(host) } else { None }
    }
}

impl Machine for Agent {
    type Event = Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Sender(agent) => agent.handle_datagram(now, datagram),
            Self::Sink(agent) => agent.handle_datagram(now, datagram),
            Self::Tcp(agent) => agent.handle_datagram(now, datagram),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Sender(agent) => agent.handle_timeout(now),
            Self::Sink(agent) => agent.handle_timeout(now),
            Self::Tcp(agent) => agent.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Sender(agent) => agent.poll_transmit(now, buf),
            Self::Sink(agent) => agent.poll_transmit(now, buf),
            Self::Tcp(agent) => agent.poll_transmit(now, buf),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Sender(agent) => agent.poll_timeout(),
            Self::Sink(agent) => agent.poll_timeout(),
            Self::Tcp(agent) => agent.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
}
