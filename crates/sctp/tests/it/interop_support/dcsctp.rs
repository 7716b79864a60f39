use super::{Message, PORT, Stack, Told, reply, to_us};
use braidcast_core::{Datagram, Instant, Machine, Transmit};
use braidcast_sctp::Reliability;
use core::time::Duration;
use dcsctp::api::{DcSctpSocket, ErrorKind, Options, PpId, SendOptions, Socket, SocketEvent, SocketTime, StreamId};
use std::collections::VecDeque;

/// dcSCTP, the stack of WebRTC, in its Rust form.
pub(crate) struct Dcsctp {
    socket: Socket,
    packets: VecDeque<Vec<u8>>,
    events: VecDeque<Told>,
    queued: usize,
}

impl Dcsctp {
    /// A socket that waits for an association.
    pub(crate) fn waiting(interleaving: bool) -> Self {
        let options = Options {
            local_port: PORT,
            remote_port: PORT,
            enable_message_interleaving: interleaving,
            max_message_size: 1 << 20,
            ..Options::default()
        };
        let socket = Socket::new("dcsctp", &options);
        Self { socket, packets: VecDeque::new(), events: VecDeque::new(), queued: 0 }
    }

    pub(crate) fn connecting(now: Instant, interleaving: bool) -> Self {
        let mut dcsctp = Self::waiting(interleaving);
        dcsctp.socket.advance_time(at(now));
        dcsctp.socket.connect();
        dcsctp
    }

    /// Takes over what the socket has to say.
    fn drain(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.packets.push_back(packet),
                SocketEvent::OnConnected() => self.events.push_back(Told::Connected),
                SocketEvent::OnConnectionRestarted() => self.events.push_back(Told::Restarted),
                SocketEvent::OnClosed() => self.events.push_back(Told::Closed),
                SocketEvent::OnAborted(kind, what) => {
                    eprintln!("dcSCTP: aborted: {kind:?} {what}");
                    self.events.push_back(Told::Failed);
                }
                // Packets of an association that is over still arrive.
                SocketEvent::OnError(ErrorKind::ParseFailed, what) if what.contains("verification tag") => {}
                SocketEvent::OnError(ErrorKind::NotConnected, _) => {}
                SocketEvent::OnError(kind, what) => panic!("dcSCTP complains: {kind:?} {what}"),
                _ => {}
            }
        }
    }
}

fn at(now: Instant) -> SocketTime {
    SocketTime::zero() + Duration::from_nanos(now.as_nanos())
}

impl Machine for Dcsctp {
    type Event = Told;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.socket.advance_time(at(now));
        self.socket.handle_input(datagram.payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.socket.advance_time(at(now));
    }

    fn poll_transmit(&mut self, _now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.drain();
        *buf = self.packets.pop_front()?;
        Some(reply(to_us()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.socket.poll_timeout();
        // Rounded up: it must be past when the timer is handled.
        (due != SocketTime::infinite_future()).then(|| {
            let nanos = (due - SocketTime::zero()).as_nanos();
            Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        })
    }

    fn poll_event(&mut self) -> Option<Told> {
        self.drain();
        self.events.pop_front()
    }
}

impl Stack for Dcsctp {
    fn send(&mut self, now: Instant, message: &Message, unordered: bool, reliability: Reliability) -> bool {
        self.socket.advance_time(at(now));
        let (lifetime, max_retransmissions) = match reliability {
            Reliability::Reliable | Reliability::Priority(_) => (None, None),
            Reliability::Lifetime(lifetime) => (Some(lifetime), None),
            Reliability::Retransmissions(count) => (None, Some(count)),
        };
        let how = SendOptions { unordered, lifetime, max_retransmissions, lifecycle_id: None };
        let stream = StreamId(message.stream);
        if self.socket.buffered_amount(stream) > 500_000 {
            return false;
        }
        let message = dcsctp::api::Message::new(stream, PpId(message.ppid), message.payload.clone());
        self.socket.send(message, &how).is_ok()
    }

    fn recv(&mut self, now: Instant) -> Option<Message> {
        self.socket.advance_time(at(now));
        let message = self.socket.get_next_message()?;
        Some(Message { stream: message.stream_id.0, ppid: message.ppid.0, payload: message.payload })
    }

    fn shutdown(&mut self, now: Instant) {
        self.socket.advance_time(at(now));
        self.socket.shutdown();
    }

    fn buffered(&self) -> usize {
        let waiting: usize = (0..8).map(|stream| self.socket.buffered_amount(StreamId(stream))).sum();
        waiting + self.socket.get_metrics().map_or(0, |metrics| metrics.unack_data_count)
    }
}
