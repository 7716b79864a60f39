//! What protects one association: key messages, records of two epochs at a time, and the change of keys.

use crate::exchange::{Alias, Exchange, Fingerprint, KeyKind, Method, Peer, Refused, Role, Transcript};
use crate::inquiry::{Inquiries, Inquiry};
use crate::{Content, Counts, Limits, Opener, Rejected, Sealer, Spent, Suite};
use braidcast_core::Instant;
use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

/// The first epoch that protects anything (RFC 9147 §6.1).
const FIRST_EPOCH: u64 = 3;
/// Bit of a key message's first byte that says it is a control message.
const CONTROL: u8 = 0x80;
/// "Protection Established".
const ESTABLISHED: u8 = 1;
/// Bytes that one key message may have: a handshake of TLS with one raw public key needs less than 2,000.
const MAX_MESSAGE: usize = 16 << 10;

/// How far protection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Key messages go in clear, and nothing else of any worth may.
    Agreeing,
    /// All that comes must be protected, and all that goes is.
    Protected,
}

/// How an association is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// By which cipher suite.
    pub suite: Suite,
    /// Of the public key that this end showed.
    pub fingerprint: Option<Fingerprint>,
    /// What sort of key the other end said that it shows.
    pub shows: Option<KeyKind>,
    /// Who is there.
    pub peer: Peer,
}

/// Why an association cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GuardError {
    /// The key handshake failed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// In a change of keys somebody else showed up.
    #[error("the other end changed its key in the middle of the association")]
    Changed,
    /// The peer did not agree on keys in time, or what it sends afterwards cannot be read, as when
    /// somebody changed what was offered.
    #[error("the other end agreed on no keys in time, or somebody in between changed what was offered")]
    Silent,
    /// Keys were used up before new ones were agreed on.
    #[error("keys were used up, and the other end agreed on no new ones")]
    Spent,
}

impl From<Spent> for GuardError {
    fn from(Spent: Spent) -> Self {
        Self::Spent
    }
}

/// A key handshake under way.
#[derive(Debug)]
struct Running {
    exchange: Box<dyn Exchange>,
    role: Role,
    epoch: u64,
}

/// Keys, key messages and records of one association (draft-porfiri-tsvwg-sctp-dtls-handshake, without restart).
///
/// Key messages go reliably and in order, in clear until [`is_sealing`](Self::is_sealing). What the
/// peer sends is handed to [`handle_message`](Self::handle_message), what is to be sent fetched by
/// [`poll_message`](Self::poll_message). The keys of the other direction are there before the peer
/// uses them, so that no record has to wait for its keys.
///
/// Memory: 10 KiB for an epoch; twice that while keys change, besides the handshake's own.
pub struct Guard {
    method: Arc<dyn Method>,
    limits: Limits,
    role: Role,
    transcript: Transcript,
    running: Option<Running>,
    sealer: Option<Sealer>,
    /// At the client, until the server is known to have its keys.
    next_sealer: Option<Sealer>,
    opener: Option<Opener>,
    /// For records of the epoch before that are still in flight.
    old_opener: Option<Opener>,
    old_until: Option<Instant>,
    peer: Option<Peer>,
    /// Of the first agreement.
    alias: Option<Alias>,
    inquiries: Inquiries,
    outbox: VecDeque<Vec<u8>>,
    /// When keys are to be changed; before there are any, when they must be there.
    due: Option<Instant>,
    /// Of epochs that are gone.
    past: Counts,
}

impl Guard {
    /// Begins with the first key handshake as `role`. `transcript` is what both ends offered.
    pub fn new(now: Instant, method: Arc<dyn Method>, limits: Limits, role: Role, transcript: Transcript) -> Self {
        let exchange = method.begin(role, &transcript);
        let mut guard = Self {
            method,
            limits,
            role,
            transcript,
            running: Some(Running { exchange, role, epoch: FIRST_EPOCH }),
            sealer: None,
            next_sealer: None,
            opener: None,
            old_opener: None,
            old_until: None,
            peer: None,
            alias: None,
            inquiries: Inquiries::default(),
            outbox: VecDeque::new(),
            due: Some(now + limits.patience),
            past: Counts::default(),
        };
        guard.collect();
        guard
    }

    /// How far protection is.
    pub const fn state(&self) -> State {
        if self.sealer.is_some() && self.opener.is_some() { State::Protected } else { State::Agreeing }
    }

    /// Returns `true` if packets are to be sealed from now on.
    pub const fn is_sealing(&self) -> bool {
        self.sealer.is_some()
    }

    /// Who is at the other end, once that is known.
    pub const fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// What both ends call it, and nobody else knows, once there are keys.
    pub const fn alias(&self) -> Option<Alias> {
        self.alias
    }

    /// Asks the peer about another association with it, or answers. Nothing goes before all is
    /// protected.
    pub fn inquire(&mut self, inquiry: Inquiry) {
        let Some(epoch) = self.epoch().filter(|_| self.state() == State::Protected) else { return };
        let mut message = vec![CONTROL | (epoch as u8 & 0x7F)];
        inquiry.emit(&mut message);
        self.outbox.push_back(message);
    }

    /// What the peer asked, or answered.
    pub fn poll_inquiry(&mut self) -> Option<Inquiry> {
        self.inquiries.pop()
    }

    /// How it is protected, once it is.
    pub fn standing(&self) -> Option<Standing> {
        let theirs = if self.role == Role::Client { &self.transcript.server } else { &self.transcript.client };
        let (suite, fingerprint) = (self.suite()?, self.method.fingerprint());
        Some(Standing { suite, fingerprint, shows: theirs.shows(), peer: self.peer? })
    }

    /// The cipher suite in use.
    pub fn suite(&self) -> Option<Suite> {
        self.sealer.as_ref().map(Sealer::suite)
    }

    /// The epoch in which packets are sealed.
    pub fn epoch(&self) -> Option<u64> {
        self.sealer.as_ref().map(Sealer::epoch)
    }

    /// What came in records so far.
    pub fn counts(&self) -> Counts {
        let openers = self.opener.iter().chain(&self.old_opener).map(Opener::counts);
        openers.fold(self.past, |sum, counts| Counts {
            taken: sum.taken + counts.taken,
            bytes: sum.bytes + counts.bytes,
            replayed: sum.replayed + counts.replayed,
            forged: sum.forged + counts.forged,
        })
    }

    /// A key message from the peer.
    ///
    /// # Errors
    /// [`GuardError`]: the association must end.
    pub fn handle_message(&mut self, now: Instant, message: &[u8]) -> Result<(), GuardError> {
        let Some((&first, payload)) = message.split_first() else { return Ok(()) };
        if message.len() > MAX_MESSAGE {
            return Err(Refused::Broken(format!("a message of {} bytes", message.len())).into());
        }
        if first & CONTROL != 0 {
            if payload == [ESTABLISHED]
                && self.next_sealer.as_ref().is_some_and(|it| it.epoch() as u8 & 0x7F == first & 0x7F)
            {
                self.confirm(now);
            } else if let Some(inquiry) = Inquiry::parse(payload).filter(|_| self.state() == State::Protected) {
                self.inquiries.push(inquiry);
            }
            return Ok(());
        }
        if self.settle_opening(first, payload) {
            return Ok(());
        }
        let Some(running) = self.running.as_mut().filter(|running| running.epoch as u8 & 0x7F == first) else {
            return Ok(()); // Of a handshake that is over.
        };
        let result = running.exchange.handle(payload);
        // What refuses the peer is told to it too.
        self.collect();
        result?;
        self.advance(now)
    }

    /// The peer begins to change keys: decides which of two handshakes goes on if we began as well
    /// (draft, "Simultaneous Rekey Resolution"). Returns `true` if its message opens the other one,
    /// which nobody answers then.
    fn settle_opening(&mut self, epoch: u8, payload: &[u8]) -> bool {
        let Some(current) = self.sealer.as_ref().map(Sealer::epoch) else { return false };
        if (current + 1) as u8 & 0x7F != epoch || self.next_sealer.is_some() || !self.method.is_opening(payload) {
            return false;
        }
        if self.running.as_ref().is_some_and(|it| it.role == Role::Server && it.epoch == current + 1) {
            return true; // One handshake at a time: it would only cost us another answer.
        }
        let ours_goes_on = self.running.is_some() && self.role == Role::Client;
        if !ours_goes_on {
            let exchange = self.method.begin(Role::Server, &self.transcript);
            self.running = Some(Running { exchange, role: Role::Server, epoch: current + 1 });
            self.outbox.clear();
        }
        ours_goes_on
    }

    /// The next key message to send.
    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    fn collect(&mut self) {
        let Some(running) = &mut self.running else { return };
        loop {
            let mut message = vec![running.epoch as u8 & 0x7F];
            if !running.exchange.poll(&mut message) {
                return;
            }
            self.outbox.push_back(message);
        }
    }

    /// Takes what the handshake came to.
    fn advance(&mut self, now: Instant) -> Result<(), GuardError> {
        self.collect();
        let Some(running) = &mut self.running else { return Ok(()) };
        let Some(agreement) = running.exchange.agreement()? else { return Ok(()) };
        let (role, epoch) = (running.role, running.epoch);
        self.collect();
        if self.peer.is_some_and(|before| before.fingerprint != agreement.peer.fingerprint) {
            return Err(GuardError::Changed);
        }
        self.peer = Some(agreement.peer);
        self.alias.get_or_insert(agreement.alias);
        let (ours, theirs) = match role {
            Role::Client => (&agreement.client, &agreement.server),
            Role::Server => (&agreement.server, &agreement.client),
        };
        let unusable = |_| Refused::Broken("no cipher for the suite agreed on".into());
        let ciphers = self.method.ciphers();
        let opener = Opener::new(ciphers, theirs, epoch).map_err(unusable)?;
        let sealer = Sealer::new(ciphers, ours, epoch).map_err(unusable)?;
        self.retire();
        self.old_opener = self.opener.replace(opener);
        match role {
            // Until the server has all it needs it may still refuse.
            Role::Client => self.next_sealer = Some(sealer),
            Role::Server => {
                self.running = None;
                self.outbox.push_back(vec![CONTROL | (epoch as u8 & 0x7F), ESTABLISHED]);
                self.switch(now, sealer);
            }
        }
        Ok(())
    }

    /// The server has our keys: it said so, or used its own.
    fn confirm(&mut self, now: Instant) {
        if let Some(sealer) = self.next_sealer.take() {
            self.running = None;
            self.switch(now, sealer);
        }
    }

    /// Seals with new keys from now on; the old ones go in a while.
    fn switch(&mut self, now: Instant, sealer: Sealer) {
        self.sealer = Some(sealer);
        self.old_until = self.old_opener.is_some().then(|| now + self.limits.drain);
        // One of the two is to begin, the other only if that does not.
        let patience = if self.role == Role::Client { self.limits.age } else { self.limits.age / 8 * 9 };
        self.due = Some(now + patience);
    }

    /// Forgets the old keys.
    fn retire(&mut self) {
        if let Some(old) = self.old_opener.take() {
            let counts = old.counts();
            self.past.taken += counts.taken;
            self.past.bytes += counts.bytes;
            self.past.replayed += counts.replayed;
            self.past.forged += counts.forged;
        }
        self.old_until = None;
    }

    /// Makes a record of all that stands in `buf` after the first [`HEADER`](crate::HEADER) bytes from `start` on.
    ///
    /// # Errors
    /// [`GuardError::Spent`]: the association must end, and what stands in `buf` may not be sent.
    pub fn seal(&mut self, now: Instant, buf: &mut Vec<u8>, start: usize) -> Result<(), GuardError> {
        let sealer = self.sealer.as_mut().ok_or(GuardError::Spent)?;
        sealer.seal(buf, start)?;
        self.account_for_sealed(now);
        Ok(())
    }

    /// The same of any `content`, behind what can be read: see [`Sealer::seal_behind`]. At the
    /// client it can be done as soon as [`may_seal`](Self::may_seal) says.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub fn seal_behind(
        &mut self,
        now: Instant,
        before: &mut Vec<u8>,
        buf: &mut Vec<u8>,
        start: usize,
        content: Content,
    ) -> Result<(), GuardError> {
        let sealer = self.sealer.as_mut().or(self.next_sealer.as_mut()).ok_or(GuardError::Spent)?;
        sealer.seal_behind(before, buf, start, content)?;
        self.account_for_sealed(now);
        Ok(())
    }

    /// Returns `true` if there are keys to seal with. At the client that is so as soon as the
    /// server has proved who it is. The server cannot open the records yet, but the message that
    /// lets it is in flight.
    pub const fn may_seal(&self) -> bool {
        self.sealer.is_some() || self.next_sealer.is_some()
    }

    fn account_for_sealed(&mut self, now: Instant) {
        let Some(sealer) = &self.sealer else { return };
        let most = self.limits.records.min(sealer.suite().most_sealed() / 2);
        if sealer.records() >= most || sealer.bytes() >= self.limits.bytes {
            self.hurry(now);
        }
    }

    /// Puts what `record` protects into `text`.
    ///
    /// # Errors
    /// [`Rejected`]: to be dropped, without a word to anybody.
    pub fn open(&mut self, now: Instant, record: &[u8], text: &mut Vec<u8>) -> Result<(), Rejected> {
        self.open_with(now, record, |opener| opener.open(record, text))
    }

    /// The same of a record behind what can be read: see [`Opener::open_behind`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_behind(
        &mut self,
        now: Instant,
        before: &mut Vec<u8>,
        record: &[u8],
        text: &mut Vec<u8>,
    ) -> Result<Content, Rejected> {
        self.open_with(now, record, |opener| opener.open_behind(before, record, text))
    }

    /// Returns `true` if there are keys that records of the other end may have been sealed with.
    pub const fn may_open(&self) -> bool {
        self.opener.is_some()
    }

    fn open_with<T>(
        &mut self,
        now: Instant,
        record: &[u8],
        open: impl FnOnce(&mut Opener) -> Result<T, Rejected>,
    ) -> Result<T, Rejected> {
        let low_bits = Opener::low_bits(record).ok_or(Rejected::Malformed)?;
        let has_keys = |opener: &&mut Opener| opener.epoch() & 3 == u64::from(low_bits);
        let opener = self.opener.as_mut().filter(has_keys).or_else(|| self.old_opener.as_mut().filter(has_keys));
        let opener = opener.filter(|it| !it.is_worn()).ok_or(Rejected::NoKeys { low_bits })?;
        let opened = open(opener)?;
        let (epoch, bytes) = (opener.epoch(), opener.counts().bytes);
        if self.next_sealer.as_ref().is_some_and(|next| next.epoch() == epoch) {
            self.confirm(now);
        }
        if bytes >= self.limits.bytes {
            self.hurry(now);
        }
        Ok(opened)
    }

    /// Keys are to be changed now rather than later, unless that is under way.
    fn hurry(&mut self, now: Instant) {
        if self.running.is_none() && self.next_sealer.is_none() {
            self.due = self.due.map(|due| due.min(now));
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.into_iter().chain(self.old_until).min()
    }

    /// Time passed: old keys go, new ones are asked for.
    ///
    /// # Errors
    /// [`GuardError`]: the association must end.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), GuardError> {
        if self.old_until.is_some_and(|until| until <= now) {
            self.retire();
        }
        if self.due.is_none_or(|due| due > now) {
            return Ok(());
        }
        self.due = None;
        if self.state() == State::Agreeing {
            return Err(GuardError::Silent);
        }
        if let (Some(sealer), None) = (&self.sealer, &self.running) {
            let epoch = sealer.epoch() + 1;
            let exchange = self.method.begin(Role::Client, &self.transcript);
            self.running = Some(Running { exchange, role: Role::Client, epoch });
        }
        self.advance(now)
    }
}

/// Without keys.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut it = f.debug_struct("Guard");
        it.field("role", &self.role).field("state", &self.state()).field("epoch", &self.epoch());
        it.field("running", &self.running).field("due", &self.due).finish_non_exhaustive()
    }
}
