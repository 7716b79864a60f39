//! The thread of a receiver: a session over all paths in, each piece of media out when it is due.

use crate::ReceiverEvent;
use crate::port::{Port, Weight};
use crate::wire::Wire;
use braidcast_core::{Instant, Machine};
use braidcast_driver::Wake;
use braidcast_media::ts::Elementary;
use braidcast_secure::Fingerprint;
use braidcast_session::{ChannelId, Content, Event, Farewell, Offer, Receiver};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that may wait for the program; then they stay in the session.
const MOST_WAITING: usize = 8 << 20;

/// What is asked of the session in its thread.
type Question = Box<dyn FnOnce(&mut Receiver, Instant) + Send>;

/// What the thread is to do.
pub(crate) enum Order {
    Ask(Question),
    Stop,
    /// Stop, and hand out nothing more.
    Abort,
}

impl Weight for Order {}

impl Weight for ReceiverEvent {
    fn weight(&self) -> usize {
        match self {
            Self::Bytes { data, .. } => data.len(),
            Self::Unit { unit, .. } => unit.data.len(),
            _ => 0,
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self, Self::Bytes { .. } | Self::Unit { .. } | Self::Connected { .. } | Self::Ended { .. })
    }
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ask(_) => "Ask",
            Self::Stop => "Stop",
            Self::Abort => "Abort",
        })
    }
}

/// What is known of a stream.
#[derive(Default)]
struct Stream {
    name: String,
    key: Option<Fingerprint>,
    reliable: bool,
    /// Its end is waited for.
    flush_asked: bool,
    /// Bytes of it that were handed out.
    handed: u64,
    elementary: Option<Elementary>,
}

/// What the thread has.
pub(crate) struct Receiving {
    port: Arc<Port<Order, ReceiverEvent>>,
    wire: Wire,
    receiver: Receiver,
    units: bool,
    streams: BTreeMap<ChannelId, Stream>,
    stopping: bool,
    output: Vec<u8>,
}

impl Receiving {
    pub(crate) fn new(port: Arc<Port<Order, ReceiverEvent>>, wire: Wire, receiver: Receiver, units: bool) -> Self {
        Self { port, wire, receiver, units, streams: BTreeMap::new(), stopping: false, output: Vec::new() }
    }

    /// Runs until it is stopped and all was handed out.
    pub(crate) fn run(mut self) {
        loop {
            let now = self.wire.driver.now();
            for order in self.port.take_orders() {
                match order {
                    Order::Ask(question) => question(&mut self.receiver, now),
                    Order::Stop if self.stopping => {}
                    Order::Stop => {
                        self.stopping = true;
                        self.receiver.abort(now, Farewell::ReceiverStopped);
                    }
                    Order::Abort => {
                        self.receiver.abort(now, Farewell::ReceiverStopped);
                        // The senders are told in one more turn.
                        _ = self.wire.driver.drive(&mut self.receiver, Some(now));
                        return;
                    }
                }
            }
            self.take_events(now);
            self.hand_out(now);
            // Ends are told behind what was handed out before.
            self.take_events(now);
            if self.stopping && self.receiver.is_idle() {
                // The senders are told in one more turn.
                _ = self.wire.driver.drive(&mut self.receiver, Some(now));
                return;
            }
            let mut words = self.wire.tend(&mut self.receiver, false);
            let elementary = self.streams.values().filter_map(|it| it.elementary.as_ref()?.poll_timeout());
            let until = elementary.chain(self.wire.next()).min();
            match self.wire.driver.drive(&mut self.receiver, until) {
                Ok(Wake::Interfaces(_)) => words.extend(self.wire.tend(&mut self.receiver, true)),
                Ok(_) => {}
                Err(error) => {
                    self.port.report(ReceiverEvent::Warning(format!("waiting for sockets failed: {error}")));
                    return;
                }
            }
            self.warn(words);
        }
    }

    fn warn(&self, words: Vec<String>) {
        words.into_iter().for_each(|words| self.port.report(ReceiverEvent::Warning(words)));
    }

    fn take_events(&mut self, now: Instant) {
        while let Some((channel, event)) = self.receiver.poll_event() {
            let said = match (event, channel) {
                (Event::Offered(offer), Some(stream)) => {
                    self.offered(now, stream, offer);
                    continue;
                }
                (Event::Connected, Some(stream)) => {
                    let known = self.streams.entry(stream).or_default();
                    ReceiverEvent::Connected { stream, name: known.name.clone(), key: known.key }
                }
                (Event::Anew, Some(stream)) => {
                    self.streams.get_mut(&stream).into_iter().for_each(|it| it.handed = 0);
                    continue;
                }
                (Event::Flush, Some(stream)) => {
                    self.streams.get_mut(&stream).into_iter().for_each(|it| it.flush_asked = true);
                    continue;
                }
                (Event::Lost(reason), Some(stream)) => {
                    self.wire.down(None);
                    ReceiverEvent::Lost { stream, reason: reason.into() }
                }
                (Event::Back, Some(stream)) => ReceiverEvent::Back { stream },
                (Event::Restarted, Some(stream)) => ReceiverEvent::Restarted { stream },
                (Event::ClockJumped, Some(stream)) => ReceiverEvent::ClockJumped { stream },
                (Event::PathUp(_, route), _) => {
                    let words = self.wire.up(&mut self.receiver, route);
                    self.warn(words);
                    ReceiverEvent::PathUp { name: self.wire.name(route), remote: route.remote }
                }
                (Event::PathDown(_, route), _) => {
                    self.wire.down(Some(route));
                    ReceiverEvent::PathDown { name: self.wire.name(route), remote: route.remote }
                }
                (Event::Insecure(reason), _) => ReceiverEvent::Refused {
                    name: String::new(),
                    farewell: None,
                    insecure: reason.insecure().map(|it| it.why),
                    why: reason.to_string(),
                },
                (Event::Refused { name, why }, _) => {
                    ReceiverEvent::Refused { name, farewell: Some(why), insecure: None, why: why.to_string() }
                }
                (Event::Ended { complete, reason }, Some(stream)) => {
                    self.finish_units(now, stream);
                    self.streams.remove(&stream);
                    ReceiverEvent::Ended { stream, complete, reason: reason.into() }
                }
                _ => continue,
            };
            self.port.report(said);
        }
    }

    fn offered(&mut self, now: Instant, stream: ChannelId, offer: Offer) {
        if offer.reliable {
            self.receiver.accept(now, stream, Content::default());
        }
        let elementary = self.units.then(Elementary::new);
        let Offer { name, key, reliable, .. } = offer;
        let known = Stream { name, key, reliable, elementary, ..Stream::default() };
        self.streams.insert(stream, known);
    }

    /// Puts what is due where the program takes it.
    fn hand_out(&mut self, now: Instant) {
        let channels: Vec<ChannelId> = self.streams.keys().copied().collect();
        for id in channels {
            let watched = self.streams.get(&id).is_some_and(|it| it.reliable);
            let mut waiting = self.port.waiting(watched);
            while waiting < MOST_WAITING && self.receiver.poll_output(now, id, &mut self.output) {
                let data = std::mem::take(&mut self.output);
                waiting += data.len();
                let Some(stream) = self.streams.get_mut(&id) else { break };
                stream.handed += data.len() as u64;
                match &mut stream.elementary {
                    Some(elementary) => elementary.push(now, &data),
                    None => self.port.report(ReceiverEvent::Bytes { stream: id, data }),
                }
                self.hand_out_units(now, id);
            }
            self.hand_out_units(now, id);
            let full = waiting >= MOST_WAITING;
            self.receiver.pause_output(id, full);
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if full || stream.reliable {
                waiting = self.port.waiting(true);
            }
            if stream.reliable {
                self.receiver.written(now, id, stream.handed.saturating_sub(waiting as u64));
            }
            if stream.flush_asked && waiting == 0 {
                stream.flush_asked = false;
                self.receiver.flushed(now, id);
            }
        }
    }

    /// Hands out the access units of a stream that are complete.
    fn hand_out_units(&mut self, now: Instant, id: ChannelId) {
        let Some(elementary) = self.streams.get_mut(&id).and_then(|it| it.elementary.as_mut()) else { return };
        if elementary.poll_timeout().is_some_and(|at| at <= now) {
            elementary.push(now, &[]);
        }
        while let Some(unit) = elementary.poll() {
            self.port.report(ReceiverEvent::Unit { stream: id, unit: unit.into() });
        }
    }

    /// The stream is over: what waits for more of it goes.
    fn finish_units(&mut self, now: Instant, id: ChannelId) {
        if let Some(elementary) = self.streams.get_mut(&id).and_then(|it| it.elementary.as_mut()) {
            elementary.finish(now);
        }
        self.hand_out_units(now, id);
    }
}
