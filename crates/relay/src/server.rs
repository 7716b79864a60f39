//! The relay: a machine that passes packets on between the two sides of circuits.

use crate::books::{Admission, Books, Pass, RelayOptions, RelayReport};
use crate::wire::{Control, HEADER, Header, Observed};
use braidcast_core::{Datagram, Ecn, Heard, Instant, Machine, Misuse, Rng, Route, Transmit};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often silent members are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Bytes that wait for the sockets at most; what comes beyond is dropped, as a router would.
const MOST_WAITING: usize = 8 << 20;
/// And packets: small ones take more memory than their bytes.
const MOST_PACKETS: usize = 16_384;
/// Buffers that are kept for the next packets.
const SPARE: usize = 256;

struct Waiting {
    route: Route,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// What waits for the sockets of one thread.
#[derive(Default)]
struct Outbox {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    /// Packets for which there was no room, and which the books do not count yet.
    overflowed: u64,
}

impl Outbox {
    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn answer(&mut self, route: Route, message: &Control) {
        let mut bytes = self.buffer();
        message.write(&mut bytes);
        self.push(Waiting { route, ecn: Ecn::NotEct, bytes });
    }

    fn push(&mut self, it: Waiting) {
        if self.bytes + it.bytes.len() > MOST_WAITING || self.waiting.len() >= MOST_PACKETS {
            self.overflowed += 1;
            return self.keep(it.bytes);
        }
        self.bytes += it.bytes.len();
        self.waiting.push_back(it);
    }

    fn keep(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }
}

/// A relay, or one thread's share of it.
///
/// Threads share what is known of members, and each sends what came to its own sockets
/// ([`beside`](Self::beside)). A lock is held while a packet's way is looked up, which takes some 100 ns; what
/// takes 30 times as long, the system calls and copies, each thread does for itself. A registration with a signature
/// holds it for some 50 µs, 1,000 times a second at most.
pub struct Relay {
    books: Arc<Mutex<Books>>,
    out: Outbox,
    /// When silent members are looked for next; `None` of a thread that has let nobody in.
    tick: Option<Instant>,
    heard: Heard,
}

impl Relay {
    /// One that nobody knows yet.
    ///
    /// # Errors
    /// [`Misuse`] of the options.
    pub fn new(options: RelayOptions, rng: Rng) -> Result<Self, Misuse> {
        Ok(Self::over(Arc::new(Mutex::new(Books::new(options, &rng)?))))
    }

    fn over(books: Arc<Mutex<Books>>) -> Self {
        Self { books, out: Outbox::default(), tick: None, heard: Heard::Nothing }
    }

    /// The same relay for another thread, whose sockets have the same numbers and addresses as those of the first, and
    /// whose clock is the same. Packets of a circuit may come to either.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self::over(self.books.clone())
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        lock(&self.books)
    }

    /// Others may open circuits from now on. Those of clients that may not any more are closed.
    pub fn set_admission(&mut self, admission: Admission) {
        self.books().set_admission(admission);
    }

    /// What it did so far, all threads together. Quotas are as they were at the last packet or timer.
    pub fn report(&self) -> RelayReport {
        self.books().report()
    }

    fn pass_on(&mut self, now: Instant, header: Header, datagram: &Datagram<'_>, payload: &[u8]) {
        let pass = self.books().pass(now, datagram.route, header, datagram.payload.len());
        match pass {
            Pass::On(route, header) => {
                self.heard = Heard::Peer;
                let mut bytes = self.out.buffer();
                bytes.extend_from_slice(&header.bytes());
                bytes.extend_from_slice(payload);
                debug_assert_eq!(bytes.len(), HEADER + payload.len());
                self.out.push(Waiting { route, ecn: datagram.ecn, bytes });
            }
            Pass::Dropped => self.heard = Heard::Peer,
            Pass::Unknown => {
                let mut bytes = self.out.buffer();
                Control::Unknown { tag: header.tag }.write(&mut bytes);
                // Never more than came.
                if bytes.len() <= datagram.payload.len() {
                    self.heard = Heard::Stranger;
                    self.out.push(Waiting { route: datagram.route, ecn: Ecn::NotEct, bytes });
                } else {
                    self.out.keep(bytes);
                }
            }
        }
    }

    fn handle_control(&mut self, now: Instant, route: Route, message: Control) {
        let (mut books, out) = (lock(&self.books), &mut self.out);
        books.now = now;
        match message {
            Control::Hello { nonce } => {
                self.heard = Heard::Stranger;
                out.answer(route, &Control::Challenge { nonce, cookie: books.cookies.make(now, route.remote) });
            }
            Control::Register { nonce, cookie, registration } => {
                if !books.cookies.is_good(now, route.remote, &cookie) {
                    books.totals.strange += 1;
                    return;
                }
                self.heard = Heard::Peer;
                match books.register(now, route, (nonce, &cookie), &registration) {
                    Ok(tag) => {
                        self.tick.get_or_insert(now + TICK);
                        let (leg, observed) = (registration.leg, Observed(route.remote));
                        out.answer(route, &Control::Registered { nonce, tag, leg, observed });
                        let introduced = books.introduced(route, tag, leg, &registration);
                        introduced.iter().for_each(|(route, message)| out.answer(*route, message));
                    }
                    Err(reason) => {
                        books.totals.refused += 1;
                        out.answer(route, &Control::Refused { nonce, reason });
                    }
                }
            }
            Control::Keep { nonce, tag } => {
                if let Some(member) = books.members.at(tag, route) {
                    member.heard = now;
                    self.heard = Heard::Peer;
                    out.answer(route, &Control::Kept { nonce });
                } else {
                    books.totals.strange += 1;
                    self.heard = Heard::Stranger;
                    out.answer(route, &Control::Unknown { tag });
                }
            }
            Control::Leave { tag } => {
                if books.members.at(tag, route).is_some() {
                    books.members.remove(tag);
                }
            }
            // What only relays say.
            Control::Challenge { .. }
            | Control::Registered { .. }
            | Control::Refused { .. }
            | Control::Kept { .. }
            | Control::Peer { .. }
            | Control::Punch { .. }
            | Control::Unknown { .. } => books.totals.strange += 1,
        }
    }
}

/// A thread that panicked ends the program; what it left in the books is whole packets.
fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

impl core::fmt::Debug for Relay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Relay").field("members", &self.books().members.len()).finish_non_exhaustive()
    }
}

impl Machine for Relay {
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.heard = Heard::Nothing;
        match (Header::read(datagram.payload), Control::read(datagram.payload)) {
            (Some((header, payload)), _) => self.pass_on(now, header, &datagram, payload),
            (None, Ok(message)) => self.handle_control(now, datagram.route, message),
            (None, Err(_)) => self.books().totals.strange += 1,
        }
        if self.out.overflowed > 0 {
            self.books().totals.overflowed += std::mem::take(&mut self.out.overflowed);
        }
    }

    fn heard(&self) -> Heard {
        self.heard
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.tick.is_some_and(|at| at <= now) {
            let any = self.books().forget(now);
            self.tick = any.then_some(now + TICK);
        }
    }

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let Waiting { route, ecn, bytes } = self.out.waiting.pop_front()?;
        self.out.bytes -= bytes.len();
        // Not copied: the buffer that was read into before is kept for the next packet.
        let old = std::mem::replace(buf, bytes);
        self.out.keep(old);
        Some(Transmit { route, ecn, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.tick
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
