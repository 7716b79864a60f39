//! Protection by records of DTLS 1.3, in the place that RFC 5238 gives to DTLS: the data of packets
//! (`docs/decisions/0020`). Each packet carries a record, those without data an empty one, and
//! header and options are authenticated with it; so nobody in between ends, slows down or resets a
//! connection. Key messages go in fragments, as data, before all other data.

use super::{Connection, Control, Phase};
use crate::api::{CloseReason, Event, Options, SecurityOptions};
use crate::wire::option::kind as option;
use crate::wire::{Kind, Opt, Packet, Reset, ResetCode, ServiceCode, binding};
use braidcast_cc::PathMtu;
use braidcast_core::{Instant, Reason, Rng};
use braidcast_secure::{
    Alias, Carrier, Content, Courier, Disagreement, Doubt, Guard, GuardError, HEADER, Inquiry, Insecure, Insecurity,
    OVERHEAD, Offer, Opener, Refused, Role, Roles, Standing, State, Transcript,
};
use core::time::Duration;
use std::sync::Arc;

/// Bytes of a fragment of key messages at most, so that it fits whatever the path carries.
pub(super) const FRAGMENT: usize = 900;
/// Bytes that are worth a packet while key messages and all that opens a connection must share it.
pub(super) const LEAST_FRAGMENT: usize = 64;
/// Timeouts of key messages after which packets are no longer marked as capable of ECN: a network
/// that drops those is rare, and a server that does not know the round trip has two by 1.2 s.
const ECN_DOUBTED: u32 = 3;
/// Bytes of key messages that leave whatever congestion control says, at first and each time that they are
/// repeated: what it lets go at first itself (RFC 5348 §4.2), if it reckons with full packets.
const FLIGHT: usize = 4380;
/// A key message that nobody acknowledges goes again after this, or two round trips.
const PAUSE: Duration = Duration::from_millis(200);

/// The same of an end that says no more than that it does not know what an offer is.
const UNKNOWN_THERE: &str =
    "the other end does not encrypt, as versions before this one over DCCP, and this end insists on it";

/// What protects a connection.
#[derive(Debug)]
pub(super) struct Protection {
    security: SecurityOptions,
    /// What this end offered.
    ours: Offer,
    /// What the keys depend on besides both offers: see [`binding`].
    bound: [u8; 16],
    /// Once both offers are known.
    guard: Option<Guard>,
    courier: Courier,
    /// Until then both offers must be known.
    deadline: Option<Instant>,
    /// The application was told that the connection is up.
    told: bool,
    /// Times that key messages were repeated before that.
    repeats: u32,
    /// Bytes of key messages that left since they were last repeated.
    early: usize,
    /// Why the connection was refused, for the peer's user.
    refusal: Option<Vec<u8>>,
    /// Doubt that the peer still has its state.
    pub(super) doubt: Doubt,
    /// What was in the last record, and what is authenticated with one.
    text: Vec<u8>,
    before: Vec<u8>,
}

/// What became of a packet's data.
pub(super) enum Opened {
    /// It is not protected, and need not be.
    Clear,
    /// It was a record.
    Record(Content),
    /// Nothing of the packet may be taken.
    Nothing,
}

/// The offer of a server, which is the same for everybody: it must not remember any before a cookie comes back.
pub(crate) fn offer_of_server(security: &SecurityOptions) -> Offer {
    Offer::of(0, Roles::Only(Role::Server), &*security.method)
}

/// What the client offered in the Request.
pub(crate) fn offer_in(options: &crate::wire::Options<'_>) -> Option<Offer> {
    options.known().find_map(|option| match option {
        Opt::Protection(value) => Offer::parse(value).ok(),
        _ => None,
    })
}

impl Protection {
    pub(super) fn new(options: &Options, is_server: bool, rng: &mut Rng) -> Option<Box<Self>> {
        let security = options.security.clone()?;
        let ours = if is_server {
            offer_of_server(&security)
        } else {
            Offer::of(rng.u32(), Roles::Only(Role::Client), &*security.method)
        };
        Some(Box::new(Self {
            security,
            ours,
            bound: [0; 16],
            guard: None,
            courier: Courier::new(PAUSE),
            deadline: None,
            told: false,
            repeats: 0,
            early: 0,
            refusal: None,
            doubt: Doubt::default(),
            text: Vec::new(),
            before: Vec::new(),
        }))
    }

    /// The Request, with `options`, has left or come.
    pub(super) fn bind(&mut self, service: ServiceCode, options: &crate::wire::Options<'_>) {
        self.bound = binding(service, options);
    }

    pub(super) const fn offer(&self) -> &Offer {
        &self.ours
    }

    fn begin(&mut self, now: Instant, role: Role, theirs: Offer) -> Result<(), Disagreement> {
        self.ours.agree(&theirs)?;
        let (client, server) = if role == Role::Client { (self.ours, theirs) } else { (theirs, self.ours) };
        let transcript = Transcript { carrier: Carrier::Dccp, client, server, bound: self.bound };
        let guard = Guard::new(now, Arc::clone(&self.security.method), self.security.limits, role, transcript);
        (self.guard, self.deadline) = (Some(guard), None);
        Ok(())
    }

    pub(super) fn is_protected(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.state() == State::Protected)
    }

    pub(super) fn alias(&self) -> Option<Alias> {
        self.guard.as_ref().and_then(Guard::alias)
    }

    pub(super) fn inquire(&mut self, inquiry: Inquiry) {
        self.guard.iter_mut().for_each(|guard| guard.inquire(inquiry));
    }

    pub(super) fn take_inquiry(&mut self) -> Option<Inquiry> {
        self.guard.as_mut()?.poll_inquiry()
    }

    fn is_sealing(&self) -> bool {
        self.refusal.is_none() && self.guard.as_ref().is_some_and(Guard::is_sealing)
    }

    /// Returns `true` if messages of the application may go.
    fn may_seal(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::may_seal)
    }

    /// Length of the fragment of key messages that is due, of `room` bytes at most.
    pub(super) fn next_key_message(&self, room: usize) -> Option<usize> {
        self.courier.next_len(room)
    }

    /// Appends it, as it leaves now.
    pub(super) fn take_key_message(&mut self, now: Instant, room: usize, fragment: &mut Vec<u8>) {
        self.courier.poll(now, room, fragment);
        self.early += fragment.len();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let guard = self.guard.as_ref().and_then(Guard::poll_timeout);
        [self.courier.poll_timeout(), guard, self.deadline, self.doubt.poll_timeout()].into_iter().flatten().min()
    }
}

/// The part of a packet that is authenticated with its record: all of the header, but for ports and
/// checksum, which NATs may change.
fn authenticated(header: &[u8], before: &mut Vec<u8>) {
    before.clear();
    before.extend_from_slice(header);
    for at in [0..4, 6..8] {
        before[at].fill(0);
    }
}

impl Connection {
    /// How the connection is protected; `None` if it is not, or not yet.
    pub fn standing(&self) -> Option<Standing> {
        self.protection.as_ref()?.guard.as_ref()?.standing()
    }

    /// Bytes that each packet has more than its header, options and data, once it is protected.
    pub(super) fn framing(&self) -> usize {
        if self.protection.is_some() { OVERHEAD } else { 0 }
    }

    /// The same of the packet that goes now.
    pub(super) fn framing_now(&self) -> usize {
        if self.is_sealing() { OVERHEAD } else { 0 }
    }

    pub(super) fn is_sealing(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.is_sealing())
    }

    /// Returns `true` if nothing keeps messages of the application back.
    pub(super) fn may_seal(&self) -> bool {
        self.protection.as_ref().is_none_or(|it| it.may_seal())
    }

    /// Bytes of the largest packet with key messages. Once some had to be repeated before there are
    /// keys, it is no longer than any path carries: nothing is known yet to have passed this one.
    pub(super) fn key_packet(&self) -> usize {
        let doubted = self.protection.as_ref().is_some_and(|it| it.repeats > 0 && !it.told);
        let size = self.path_size.current();
        if doubted { size.min(PathMtu::MIN) } else { size }
    }

    /// Returns `true` if `len` bytes of key messages may go whatever congestion control says. It knows nothing yet, and
    /// TFRC lets out four packets a round trip as long as the first ones, which have a few bytes. Flights and
    /// their repetitions leave as those of DTLS do (RFC 9147 §5.8).
    pub(super) fn is_early(&self, len: usize) -> bool {
        self.protection.as_ref().is_some_and(|it| it.early + len <= FLIGHT)
    }

    /// Returns `true` if packets that say that they are capable of ECN seem to be dropped.
    pub(super) fn doubts_ecn(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.repeats >= ECN_DOUBTED)
    }

    /// Returns `true` if key messages wait for their packet.
    pub(super) fn has_key_messages(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.courier.next_len(FRAGMENT).is_some())
    }

    /// Returns `true` if the application knows of the connection.
    pub(crate) fn was_told(&self) -> bool {
        self.protection.as_ref().is_none_or(|it| it.told)
    }

    /// DCCP's handshake is done: the application is told, or keys are to be agreed on.
    pub(super) fn established(&mut self, now: Instant) {
        match &mut self.protection {
            None => self.events.push_back(Event::Connected),
            Some(it) if it.guard.is_none() => it.deadline = Some(now + it.security.limits.patience),
            Some(_) => {}
        }
        self.time_key_messages();
    }

    fn time_key_messages(&mut self) {
        let pause = self.rtt().map_or(PAUSE, |rtt| (rtt * 2).max(PAUSE));
        self.protection.iter_mut().for_each(|it| it.courier.set_pause(pause));
    }

    /// The Response to a client has come.
    pub(super) fn answered(&mut self, now: Instant, response: &Packet<'_>) {
        let Some(it) = &mut self.protection else { return };
        let Some(theirs) = offer_in(&response.options) else {
            return self.refuse(Insecure::plain_there(), Insecure::plain_here());
        };
        if let Err(disagreement) = it.begin(now, Role::Client, theirs) {
            return self.refuse(disagreement.into(), disagreement.mirrored().into());
        }
        let hello = it.ours;
        if let Err(error) = it.courier.push(hello.value()) {
            return self.refuse_because(&Refused::Broken(error.to_string()).into());
        }
        self.time_key_messages();
        self.tend_keys();
    }

    /// Hands on key messages that wait; lets data flow once it is protected.
    pub(super) fn tend_keys(&mut self) {
        let Some(it) = &mut self.protection else { return };
        let Some(guard) = &mut it.guard else { return };
        while let Some(message) = guard.poll_message() {
            if let Err(error) = it.courier.push(&message) {
                return self.refuse_because(&Refused::Broken(error.to_string()).into());
            }
        }
        if !it.told && guard.state() == State::Protected && !matches!(self.phase, Phase::Closed { .. }) {
            it.told = true;
            self.events.push_back(Event::Connected);
        }
    }

    /// A packet's data, which is key messages.
    pub(super) fn take_key_messages(&mut self, now: Instant, fragment: &[u8]) {
        let Some(it) = self.protection.as_mut().filter(|_| !matches!(self.phase, Phase::Closed { .. })) else { return };
        // What is none is of no harm: it may be from somebody in between.
        if it.courier.handle(now, fragment).is_err() {
            return;
        }
        loop {
            let Some(it) = &mut self.protection else { return };
            let message = match it.courier.next_message() {
                Ok(Some(message)) => message,
                Ok(None) => return self.tend_keys(),
                Err(error) => return self.refuse_because(&Refused::Broken(error.to_string()).into()),
            };
            let Some(guard) = &mut it.guard else {
                let theirs = Offer::parse(&message).map_err(|error| Refused::Broken(error.to_string()).into());
                match theirs.map(|theirs| it.begin(now, Role::Server, theirs)) {
                    Ok(Ok(())) => continue,
                    Ok(Err(disagreement)) => return self.refuse(disagreement.into(), disagreement.mirrored().into()),
                    Err(error) => return self.refuse_because(&error),
                }
            };
            if let Err(error) = guard.handle_message(now, &message) {
                return self.refuse_because(&error);
            }
            self.tend_keys();
        }
    }

    /// The peer is not whom we want, or keys are used up.
    fn refuse_because(&mut self, error: &GuardError) {
        self.refuse(error.into(), error.told());
    }

    fn refuse(&mut self, why: Insecure, told: Insecure) {
        if let Some(it) = &mut self.protection {
            it.refusal = Some(told.reason().emit(CloseReason::MAX_TEXT));
        }
        self.controls.clear();
        let ack = self.numbers.acknowledgeable;
        self.control(Control::Reset { reset: Self::no_protection(), ack });
        self.closed(CloseReason::Insecure(why), false);
    }

    /// The Reset of who cannot agree on protection: a mandatory option that is not obeyed, as any DCCP would say.
    pub(crate) fn no_protection() -> Reset {
        Reset::option(ResetCode::MANDATORY_ERROR, option::PROTECTION, &[])
    }

    /// What such a Reset means.
    pub(super) fn insecure(reset: &Reset, said: &Reason, stranger: bool) -> Option<Insecure> {
        let is = reset.code == ResetCode::MANDATORY_ERROR && reset.data[0] == option::PROTECTION;
        is.then(|| match said.text.is_empty() {
            true => Insecure::new(Insecurity::PlainThere, UNKNOWN_THERE),
            false => Insecure::told_by_peer(said, stranger),
        })
    }

    /// The text of our Reset.
    pub(super) fn refusal(&self) -> Vec<u8> {
        self.protection.as_ref().and_then(|it| it.refusal.clone()).unwrap_or_default()
    }

    /// Makes a record of the last bytes of `buf`, from `record` on, in the packet that begins at
    /// `start`. Without keys, or where they are used up, nothing of the packet is left.
    pub(super) fn seal(&mut self, now: Instant, buf: &mut Vec<u8>, start: usize, record: usize, content: Content) {
        let Some(it) = &mut self.protection else { return };
        let [header, data] = [&buf[start..record], &buf[record + HEADER..]];
        self.options.events.tell_plain(true, || [header, data]);
        authenticated(header, &mut it.before);
        let Some(guard) = &mut it.guard else { return buf.truncate(start) };
        if let Err(error) = guard.seal_behind(now, &mut it.before, buf, record, content) {
            buf.truncate(start);
            self.refuse_because(&error);
        }
    }

    /// Opens the record in a packet, into `text`.
    pub(super) fn open_record(&mut self, now: Instant, packet: &Packet<'_>, text: &mut Vec<u8>) -> Opened {
        let Some(it) = &mut self.protection else { return Opened::Clear };
        let Some(guard) = &mut it.guard else { return Opened::Clear };
        let payload = packet.payload;
        if guard.may_open() && Opener::low_bits(payload).is_some() {
            let header = &packet.as_bytes()[..packet.as_bytes().len() - payload.len()];
            authenticated(header, &mut it.before);
            let opened = guard.open_behind(now, &mut it.before, payload, text);
            if opened.is_ok() {
                it.doubt.heard();
                self.options.events.tell_plain(false, || [header, text.as_slice()]);
            }
            self.tend_keys();
            return opened.map_or(Opened::Nothing, Opened::Record);
        }
        if !it.is_protected() {
            return Opened::Clear;
        }
        if let Kind::Reset { .. } = packet.header.kind {
            self.doubt_peer(now);
        }
        Opened::Nothing
    }

    pub(super) fn lent_text(&mut self) -> Vec<u8> {
        self.protection.as_mut().map(|it| core::mem::take(&mut it.text)).unwrap_or_default()
    }

    pub(super) fn return_text(&mut self, text: Vec<u8>) {
        if let Some(it) = &mut self.protection {
            it.text = text;
        }
    }

    pub(super) fn key_timeout(&self) -> Option<Instant> {
        self.protection.as_ref()?.poll_timeout()
    }

    pub(super) fn handle_key_timeout(&mut self, now: Instant) {
        self.handle_doubt_timeout(now);
        let Some(it) = self.protection.as_mut().filter(|_| !matches!(self.phase, Phase::Closed { .. })) else { return };
        if it.deadline.take_if(|until| *until <= now).is_some() {
            return self.refuse_because(&GuardError::Silent);
        }
        if it.courier.handle_timeout(now) {
            it.repeats += u32::from(!it.told);
            it.early = 0;
        }
        let Some(guard) = it.guard.as_mut().filter(|guard| guard.poll_timeout().is_some_and(|at| at <= now)) else {
            return;
        };
        match guard.handle_timeout(now) {
            Ok(()) => self.tend_keys(),
            Err(error) => self.refuse_because(&error),
        }
    }
}
