//! One association. [`Association`] is its public face. Until the handshake is done it is an
//! [`Opening`], from then on an [`Open`], whose data is here; each procedure is a file.
//!
//! A message out: [`Association::send`] puts it into the [`SendQueue`]. When a path has room,
//! `plan` says what leaves next, `transmit` cuts and writes it, and the [`Ledger`] notes it. `sack`
//! informs ledger and paths of what was acknowledged, `loss` of what is overdue, and `abandon`
//! drops what is too late. A message in: `receive` dispatches each chunk of a packet, hands data to
//! `rx`, and [`Association::recv`] takes whole messages.
//!
//! Procedures call downwards only (`tools/circles.py`): dispatch, then procedures, then what they
//! share.

mod abandon;
mod asconf;
mod association;
mod choose;
mod chunk;
mod control;
mod coupled;
mod ecn;
mod end;
mod enough;
mod everywhere;
mod fec;
mod forward_delay;
mod guarded;
mod handshake;
mod heartbeat;
mod intake;
mod joins;
mod laid;
mod loss;
mod opening;
mod paths;
mod plan;
mod protect;
mod rate;
mod receive;
mod reinject;
mod restart;
mod sack;
mod schedule;
mod select;
mod settled;
mod shutdown;
mod slice;
mod split;
mod state;
mod stream_changes;
#[cfg(test)]
mod testing;
mod timers;
mod transmit;
mod window;

pub use association::Association;

use crate::addresses::Addresses;
use crate::api::{BlockingReport, Event, Intervals, Options, PathState, Priority, SackOptions};
use crate::auth::AuthKeys;
use crate::capabilities::Agreed;
use crate::cookie::Cookie;
use crate::journal::Journal;
use crate::path::{Hearsay, Paths};
use crate::rx::{AckPolicy, AckTimer, Echoes, Reassembly, Received, Slices, Timestamps, Tracker};
use crate::tx::{Ledger, SendQueue};
use asconf::Reconfiguration;
use braidcast_core::events::SctpEvent;
use braidcast_core::{Instant, Rng, Route};
use braidcast_mpath::{Candidate, PathView, Scheduler, SchedulerKind, Selector};
use braidcast_queue::Ways;
use choose::Avoided;
use control::ControlQueue;
use enough::Spared;
use fec::Fec;
use forward_delay::Clocks;
use intake::Intake;
use opening::Opening;
use protect::Protection;
use reinject::Reinjection;
use sack::AckScratch;
use settled::Settled;
use state::State;
use std::sync::Arc;
use stream_changes::StreamChanges;

/// What an association has from the first moment on, and takes along when it opens.
#[derive(Debug)]
struct Parts {
    options: Arc<Options>,
    rng: Rng,
    /// We sent the INIT, and so name the paths.
    initiator: bool,
    local_tag: u32,
    peer_port: u16,
    paths: Paths,
    queue: SendQueue,
    control: ControlQueue,
    journal: Journal,
    starved: bool,
    shutdown: bool,
    asks: bool,
}

/// An association whose handshake is done; what it needs to carry data (RFC 9260 §14.2, the TCB) is
/// here. It keeps that when it is closed: messages may be taken out still.
#[derive(Debug)]
struct Open {
    options: Arc<Options>,
    rng: Rng,
    state: State,
    /// We sent the INIT, and so name the paths.
    initiator: bool,
    /// It asks who is there and carries no messages: what is acknowledged here no application would see.
    asks: bool,
    local_tag: u32,
    peer_tag: u32,
    peer_port: u16,
    peer_addresses: Addresses,
    agreed: Agreed,
    zero_checksum: settled::ZeroChecksum,
    auth: Option<AuthKeys>,
    protection: Option<Box<Protection>>,
    outbound_streams: u16,
    paths: Paths,
    /// Says which path carries the next packet.
    scheduler: Box<dyn Scheduler>,
    /// Says which one carries data, where one is used at a time and chosen by what is measured.
    selector: Option<Selector>,
    /// Bytes of what waits that new data over the path picked last leaves to others.
    lead: usize,
    queue: SendQueue,
    /// Paths that new data leaves alone for the moment, for the sake of a queue.
    avoided: Avoided,
    /// Paths that what was lost leaves alone for the moment: it waits for a better one.
    refused: Avoided,
    /// Paths that are not needed for what waits.
    spared: Spared,
    ledger: Ledger,
    /// What is about to be late goes over a second path too.
    reinjection: Reinjection,
    /// One packet of lost chunks may leave that no window holds back (RFC 9260 §6.3.3 E3, §7.2.4
    /// 3).
    unheld_packet: bool,
    tracker: Tracker,
    reassembly: Reassembly,
    ack: AckTimer,
    echoes: Echoes,
    /// Chunks of which slices came.
    slices: Slices,
    /// Timestamps that the peer is to hear of.
    timestamps: Timestamps,
    clocks: Clocks,
    reconfiguration: Reconfiguration,
    /// Once both ends agreed on RE-CONFIG.
    stream_changes: Option<Box<StreamChanges>>,
    control: ControlQueue,
    /// Timeouts in a row over all paths (RFC 9260 §8.1).
    errors: u32,
    /// The last [`send`](Association::send) found no room.
    starved: bool,
    readable_told: bool,
    journal: Journal,
    window_shut: Intervals,
    held_by_peer: Intervals,
    /// Once both ends agreed on redundancy.
    fec: Option<Box<Fec>>,
    scratch: Scratch,
}

/// Buffers that are kept so that the steady path does not allocate.
#[derive(Debug, Default)]
struct Scratch {
    ack: AckScratch,
    views: Vec<PathView>,
    ways: Ways,
    candidates: Vec<Candidate>,
    gaps: Vec<u8>,
    duplicates: Vec<u8>,
    slices: Vec<u8>,
}

impl Open {
    /// The server's side, from a cookie that came back over `route`.
    fn accept(now: Instant, options: Arc<Options>, rng: Rng, cookie: &Cookie, route: Route) -> Box<Self> {
        let settled = Settled::by_cookie(&options, cookie);
        let mut paths = Paths::new(options.clone());
        if route == cookie.route {
            let index = paths.add(now, route, PathState::Active);
            // The cookie came back after a round trip, or later where it was lost.
            paths[index].measure_handshake(now.since(cookie.created));
        } else {
            // The cookie proves another address than this one, which is asked first (RFC 9260 §5.4).
            let index = paths.add(now, route, PathState::Unconfirmed);
            paths[index].take_for_hearsay(Hearsay::Source);
            paths[index].ask(now);
        }
        let parts = Parts {
            rng,
            initiator: false,
            local_tag: cookie.local_tag,
            peer_port: cookie.peer_port,
            paths,
            queue: SendQueue::of(&options),
            control: ControlQueue::default(),
            journal: Journal::traced(&options.events, cookie.local_tag),
            starved: false,
            shutdown: false,
            asks: false,
            options,
        };
        let mut open = Self::new(now, parts, settled);
        open.establish(now);
        open
    }

    /// The handshake is done and `settled` this.
    fn new(now: Instant, parts: Parts, settled: Settled) -> Box<Self> {
        let Parts {
            options,
            rng,
            initiator,
            local_tag,
            peer_port,
            paths,
            mut queue,
            control,
            journal,
            starved,
            shutdown,
            asks,
        } = parts;
        queue.settle(settled.agreed.interleaving, settled.agreed.forward_tsn, settled.agreed.timed);
        let protection = Protection::new(now, &options, settled.keys).map(Box::new);
        queue.hold_back(protection.is_some());
        let mut scheduler = options.paths.scheduler.scheduler();
        scheduler.reset(paths.last().get());
        let (ledger, tracker) = (settled.ledger(&options), settled.tracker());
        let SackOptions { every, delay, dac, path } = options.sack;
        Box::new(Self {
            rng,
            state: if shutdown { State::ShutdownPending } else { State::Established },
            initiator,
            asks,
            local_tag,
            peer_tag: settled.peer_tag,
            peer_port,
            peer_addresses: settled.peer_addresses,
            agreed: settled.agreed,
            zero_checksum: settled.zero_checksum,
            protection,
            outbound_streams: settled.outbound_streams,
            paths,
            scheduler,
            selector: options.paths.selector(),
            lead: 0,
            queue,
            avoided: Avoided::default(),
            refused: Avoided::default(),
            spared: Spared::default(),
            reinjection: Reinjection::default(),
            unheld_packet: false,
            reassembly: Reassembly::new(settled.receive_limits(&options)),
            ack: AckTimer::new(AckPolicy { every, delay, dac, path }),
            echoes: Echoes::default(),
            slices: Slices::default(),
            timestamps: Timestamps::default(),
            clocks: Clocks::default(),
            reconfiguration: settled.reconfiguration(now, &options),
            stream_changes: settled.stream_changes(),
            control,
            errors: 0,
            starved,
            readable_told: false,
            journal,
            window_shut: Intervals::default(),
            held_by_peer: Intervals::default(),
            fec: settled.fec(&options, &ledger, &tracker),
            auth: settled.auth,
            ledger,
            tracker,
            scratch: Scratch::default(),
            options,
        })
    }

    /// Data and joins may flow.
    fn establish(&mut self, now: Instant) {
        self.tend_keys(now);
        self.paths.note_answer(now);
        let (local_tag, peer_tag) = (self.local_tag, self.peer_tag);
        self.journal.trace.at(now);
        self.journal.tell(|| SctpEvent::Opened { local_tag, peer_tag });
        if self.protection.is_none() {
            self.journal.events.push_back(Event::Connected);
        }
        for path in self.paths.iter_mut() {
            if path.state() == PathState::Active {
                path.start(now);
                self.journal.events.push_back(Event::PathUp(path.id(), path.route()));
            }
        }
    }

    fn recv(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Received> {
        self.receive(now, |reassembly| reassembly.recv(buf))
    }

    fn recv_where(&mut self, now: Instant, wanted: impl Fn(&[u8]) -> bool, buf: &mut Vec<u8>) -> Option<Received> {
        self.receive(now, |reassembly| reassembly.recv_where(wanted, buf))
    }

    fn receive(&mut self, now: Instant, take: impl FnOnce(&mut Reassembly) -> Option<Received>) -> Option<Received> {
        let before = self.receive_window();
        let received = take(&mut self.reassembly);
        if received.is_some() {
            self.journal.stats.messages_received += 1;
            self.note_window(now);
            self.reopen_window(now, before);
        }
        // Who stops before there is none left is told again.
        self.readable_told = false;
        received
    }

    fn set_scheduler(&mut self, kind: SchedulerKind) {
        self.scheduler = kind.scheduler();
        self.scheduler.reset(self.paths.last().get());
    }

    fn set_priority(&mut self, stream: u16, priority: Priority) {
        self.queue.set_priority(stream, priority);
        self.ledger.sort_repeats(&self.queue);
    }

    const fn blocking(&self) -> BlockingReport {
        BlockingReport {
            assembling: self.reassembly.assembling(),
            ordering: self.reassembly.ordering(),
            window_shut: self.window_shut.past(),
            held_by_peer: self.held_by_peer.past(),
        }
    }

    const fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    const fn awaits_shutdown_complete(&self) -> bool {
        matches!(self.state, State::ShutdownAckSent(_))
    }

    const fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    const fn interleaves(&self) -> bool {
        self.agreed.interleaving
    }

    fn handle_reflected_abort(&mut self, now: Instant, route: Route, causes: crate::wire::Causes<'_>) {
        // To one that has sent SHUTDOWN ACK it says no more than the SHUTDOWN COMPLETE that was
        // lost.
        if self.awaits_shutdown_complete() {
            return self.end_by_word_in_clear();
        }
        if self.is_protected() {
            return self.doubt_peer(now); // Anybody may have sent it.
        }
        // From a path that is yet to join it says that the peer did not find the association by
        // that address: one that looks by addresses alone, as Linux.
        let stranger = self.paths.by_route(route).filter(|&index| !self.paths[index].is_usable());
        if let Some(index) = stranger.filter(|_| self.paths.iter().any(crate::path::Path::is_usable)) {
            return self.remove_path(now, index);
        }
        self.close(self.reason_by_peer(causes));
    }

    fn poll_event(&mut self) -> Option<Event> {
        if self.reassembly.is_readable() && !self.readable_told {
            self.readable_told = true;
            self.journal.push_before_end(Event::Readable);
        }
        self.desk().poll_event()
    }
}

/// A random number that is not 0, for verification tags (RFC 9260 §3.3.2).
pub(crate) fn nonzero(rng: &mut Rng) -> u32 {
    loop {
        let number = rng.u32();
        if number != 0 {
            return number;
        }
    }
}
