//! Two machines on the sockets of one driver.

use braidcast_core::{Datagram, Heard, Instant, Machine, SocketId, Transmit};

/// `second` has the sockets `sockets`, and `first` all others.
#[derive(Debug)]
pub struct Beside<'a, A, B> {
    first: &'a mut A,
    second: &'a mut B,
    sockets: &'a [SocketId],
    /// The last datagram was for the second.
    was_second: bool,
}

impl<'a, A: Machine, B: Machine> Beside<'a, A, B> {
    /// The two as one machine. Its events are those of the first; ask the second for its own.
    pub const fn new(first: &'a mut A, second: &'a mut B, sockets: &'a [SocketId]) -> Self {
        Self { first, second, sockets, was_second: false }
    }
}

impl<A: Machine, B: Machine> Machine for Beside<'_, A, B> {
    type Event = A::Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.was_second = self.sockets.contains(&datagram.route.socket);
        if self.was_second {
            self.second.handle_datagram(now, datagram);
        } else {
            self.first.handle_datagram(now, datagram);
        }
    }

    fn heard(&self) -> Heard {
        if self.was_second { self.second.heard() } else { self.first.heard() }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.first.poll_timeout().is_some_and(|at| at <= now) {
            self.first.handle_timeout(now);
        }
        if self.second.poll_timeout().is_some_and(|at| at <= now) {
            self.second.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.first.poll_transmit(now, buf).or_else(|| self.second.poll_transmit(now, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Instant::first_of([self.first.poll_timeout(), self.second.poll_timeout()])
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.first.poll_event()
    }
}
