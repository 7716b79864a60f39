use super::{Message, OURS, PORT, Stack, Told, reply, to_us};
use braidcast_core::{Datagram, Instant, Machine, Transmit};
use braidcast_sctp::Reliability;
use bytes::Bytes;
use core::time::Duration;
use sctp_proto::{
    Association, AssociationError, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ReliabilityType, ServerConfig, StreamEvent, TransportConfig,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// sctp-proto, the stack of str0m.
pub(crate) struct Proto {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    /// What stands for the simulator's zero. The crate takes the system's time for granted.
    base: std::time::Instant,
    /// Packets cut out of what the association wants sent.
    packets: VecDeque<Bytes>,
    events: VecDeque<Told>,
    readable: BTreeSet<u16>,
    shutting_down: bool,
}

impl Proto {
    #[expect(clippy::disallowed_methods, reason = "the crate reads the system's clock itself when it connects")]
    pub(crate) fn waiting(now: Instant) -> Self {
        let mut server = ServerConfig::new();
        server.transport = transport();
        Self {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::new()), Some(Arc::new(server))),
            association: None,
            base: std::time::Instant::now() - Duration::from_nanos(now.as_nanos()),
            packets: VecDeque::new(),
            events: VecDeque::new(),
            readable: BTreeSet::new(),
            shutting_down: false,
        }
    }

    pub(crate) fn connecting(now: Instant) -> Self {
        let mut proto = Self::waiting(now);
        let mut config = ClientConfig::new();
        config.transport = transport();
        proto.association = Some(proto.endpoint.connect(config, OURS.parse().unwrap()).unwrap());
        proto
    }

    fn at(&self, now: Instant) -> std::time::Instant {
        self.base + Duration::from_nanos(now.as_nanos())
    }

    fn drain(&mut self) {
        let Some((handle, association)) = &mut self.association else { return };
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => self.events.push_back(Told::Connected),
                Event::AssociationLost { reason } => {
                    let peaceful = reason == AssociationError::AssociationClosed;
                    self.events.push_back(if peaceful { Told::Closed } else { Told::Failed });
                }
                Event::HandshakeFailed { .. } => self.events.push_back(Told::Failed),
                Event::Stream(StreamEvent::Readable { id } | StreamEvent::Opened { id }) => {
                    self.readable.insert(id);
                }
                _ => {}
            }
        }
        while association.accept_stream().is_some() {}
        // It is told that the association is drained when the shutdown only begins; wait for its end.
        if association.is_closed() {
            while let Some(event) = association.poll_endpoint_event() {
                self.endpoint.handle_event(*handle, event);
            }
        }
    }
}

fn transport() -> Arc<TransportConfig> {
    let config = TransportConfig::default().with_local_port(PORT).with_remote_port(PORT);
    let config = config.with_rto_initial_ms(500).with_rto_min_ms(200).with_rto_max_ms(3000);
    Arc::new(config.with_max_send_message_size(1 << 20).with_max_receive_message_size(1 << 20))
}

impl Machine for Proto {
    type Event = Told;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let payload = Bytes::copy_from_slice(datagram.payload);
        match self.endpoint.handle(self.at(now), datagram.route.remote, None, None, payload) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association = Some((handle, association))
            }
            Some((handle, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = self.association.as_mut().filter(|(known, _)| *known == handle) {
                    association.handle_event(event);
                }
            }
            None => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.at(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let at = self.at(now);
        while self.packets.is_empty() {
            let transmit = match &mut self.association {
                Some((_, association)) => association.poll_transmit(at),
                None => None,
            };
            let transmit = transmit.or_else(|| self.endpoint.poll_transmit())?;
            if let Payload::RawEncode(packets) = transmit.payload {
                self.packets.extend(packets);
            }
        }
        buf.clear();
        buf.extend_from_slice(&self.packets.pop_front()?);
        Some(reply(to_us()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.association.as_ref()?.1.poll_timeout()?;
        let nanos = due.saturating_duration_since(self.base).as_nanos();
        // Its timers run out after their time, not at it.
        Some(Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX - 1) + 1))
    }

    fn poll_event(&mut self) -> Option<Told> {
        self.drain();
        self.events.pop_front()
    }
}

impl Stack for Proto {
    /// 0.10.8 sends SHUTDOWN COMPLETE and stays in SHUTDOWN-SENT for ever.
    const TELLS_ITS_END: bool = false;

    fn send(&mut self, _now: Instant, message: &Message, unordered: bool, reliability: Reliability) -> bool {
        let Some((_, association)) = &mut self.association else { return false };
        let (kind, value) = match reliability {
            Reliability::Reliable | Reliability::Priority(_) => (ReliabilityType::Reliable, 0),
            Reliability::Lifetime(lifetime) => (ReliabilityType::Timed, lifetime.as_millis() as u32),
            Reliability::Retransmissions(count) => (ReliabilityType::Rexmit, u32::from(count)),
        };
        let ppid = PayloadProtocolIdentifier::Binary;
        if association.stream(message.stream).is_err() {
            association.open_stream(message.stream, ppid).unwrap();
        }
        let mut stream = association.stream(message.stream).unwrap();
        if stream.buffered_amount().unwrap() > 500_000 {
            return false;
        }
        stream.set_reliability_params(unordered, kind, value).unwrap();
        stream.write_with_ppi(&message.payload, ppid).is_ok()
    }

    fn recv(&mut self, _now: Instant) -> Option<Message> {
        self.drain();
        let (_, association) = self.association.as_mut()?;
        while let Some(&id) = self.readable.first() {
            if let Some(chunks) = association.stream(id).ok().and_then(|mut stream| stream.read_sctp().ok().flatten()) {
                let mut payload = vec![0; chunks.len()];
                chunks.read(&mut payload).unwrap();
                return Some(Message { stream: id, ppid: chunks.ppi as u32, payload });
            }
            self.readable.remove(&id);
        }
        None
    }

    fn shutdown(&mut self, _now: Instant) {
        if let Some((_, association)) = &mut self.association {
            association.shutdown().unwrap();
        }
    }

    fn buffered(&self) -> usize {
        0
    }
}
