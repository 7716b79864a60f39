//! What a relay knows: who is at it, who may be, and who pays.

use crate::cookie::Cookies;
use crate::members::{Member, Members, NotTaken, Payer};
use crate::rate::{Quota, Used, at_rate};
use crate::wire::{Header, Leg, Observed, Proof, Reason, Registration, Side, Tag, signed};
use crate::{members, wire::Control};
use braidcast_core::{Allowance, Instant, Misuse, Rng, Route};
use core::time::Duration;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A member that has not been heard for this long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Signatures that are checked in a second: each takes some 50 µs.
const SIGNATURES: u64 = 1000;
/// A quota with fewer bytes left is used up: no packet of a stream fits.
const LEAST_LEFT: u64 = 1500;
/// Of how many of the other side a member is told where they are.
const MOST_INTRODUCED: usize = 8;
/// Circuits of one address at a relay for all.
const CIRCUITS_OF_ADDRESS: usize = 64;
/// Clients that are counted, at a relay for all; those without a circuit make room.
const MOST_CLIENTS: usize = 4096;

/// Knows keys. The relay has no cryptography of its own.
pub trait Keys: Send + Sync {
    /// The fingerprint of a public key, as lists have it.
    fn fingerprint(&self, public: &[u8; 32]) -> [u8; 32];
    /// Returns `true` if `proof` signs `message`.
    fn is_signed(&self, proof: &Proof, message: &[u8]) -> bool;
}

/// What a client may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rights {
    /// What figures call it.
    pub name: String,
    /// Highest rate of all that its circuits carry, in bit/s; `None`: no limit.
    pub max_rate: Option<u64>,
    /// Circuits at a time.
    pub circuits: usize,
    /// Bytes in a time; `None`: no limit.
    pub quota: Option<Quota>,
}

/// Who may open circuits. Joining one takes its number, and no right of one's own.
#[derive(Clone)]
pub enum Admission {
    /// Anybody; each address may have this rate, in bit/s.
    Open(Option<u64>),
    /// Who has one of these keys, by their fingerprints.
    Listed(BTreeMap<[u8; 32], Rights>, Arc<dyn Keys>),
}

impl core::fmt::Debug for Admission {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Open(rate) => f.debug_tuple("Open").field(rate).finish(),
            Self::Listed(list, _) => f.debug_tuple("Listed").field(list).finish(),
        }
    }
}

/// How a relay works.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Who may open circuits.
    pub admission: Admission,
    /// Members at a time, 2 to 65,536.
    pub members: usize,
}

/// What a client has sent and got so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    over_rate: u64,
    over_quota: u64,
}

/// Somebody who pays for circuits.
#[derive(Debug)]
struct Account {
    counts: Counts,
    rate: Option<Allowance>,
    used: Option<Used>,
}

/// What one client's circuits carried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClientReport {
    /// Its name in the list, or its address.
    pub name: String,
    /// Circuits that it has open.
    pub circuits: usize,
    /// Packets passed on, in both directions together.
    pub packets: u64,
    /// Their payload above UDP, in bytes, the 8 of the relay included.
    pub bytes: u64,
    /// Packets dropped because they exceeded its rate.
    pub over_rate: u64,
    /// Packets dropped because its quota was used up.
    pub over_quota: u64,
    /// Bytes of its quota, and those that are left of it now; `None` without one.
    pub quota_bytes: Option<u64>,
    /// See [`quota_bytes`](Self::quota_bytes).
    pub quota_left_bytes: Option<u64>,
}

/// What a relay did so far.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RelayReport {
    /// Addresses that are members now.
    pub members: usize,
    /// Circuits now.
    pub circuits: usize,
    /// Packets passed on.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets for a leg that is not there.
    pub astray: u64,
    /// Packets dropped because too much waited.
    pub overflowed: u64,
    /// What strangers sent: unreadable, or with a tag that is not theirs.
    pub strange: u64,
    /// Registrations refused.
    pub refused: u64,
    /// Each client, by name.
    pub clients: Vec<ClientReport>,
}

/// What becomes of a packet.
pub(crate) enum Pass {
    /// It goes there, with this header.
    On(Route, Header),
    /// Nobody has its tag at the address that it came from.
    Unknown,
    /// It is counted, and that is all.
    Dropped,
}

/// The one copy of what a relay knows, however many threads it has.
pub(crate) struct Books {
    options: RelayOptions,
    pub(crate) cookies: Cookies,
    pub(crate) members: Members,
    accounts: BTreeMap<Payer, Account>,
    pub(crate) totals: RelayReport,
    signatures: Allowance,
    pub(crate) now: Instant,
}

impl Books {
    pub(crate) fn new(options: RelayOptions, rng: &Rng) -> Result<Self, Misuse> {
        Misuse::unless_within("members", options.members, 2..=members::MOST)?;
        let cookies = Cookies::new(&mut rng.stream("cookies"));
        let members = Members::new(options.members, rng.stream("tags"));
        Ok(Self {
            options,
            cookies,
            members,
            accounts: BTreeMap::new(),
            totals: RelayReport::default(),
            signatures: Allowance::by_time(SIGNATURES, SIGNATURES),
            now: Instant::ZERO,
        })
    }

    /// Others may open circuits from now on. Those of clients that may not any more are closed.
    pub(crate) fn set_admission(&mut self, admission: Admission) {
        self.options.admission = admission;
        let names: Option<Vec<String>> = match &self.options.admission {
            Admission::Open(_) => None,
            Admission::Listed(list, _) => Some(list.values().map(|rights| rights.name.clone()).collect()),
        };
        let may_stay = |payer: &Payer| match (payer, &names) {
            (Payer::Key(name), Some(names)) => names.contains(name),
            (Payer::Host(_), None) => true,
            _ => false,
        };
        self.members.retain(Instant::ZERO, may_stay);
        let rates: BTreeMap<Payer, Option<Allowance>> =
            self.accounts.keys().map(|payer| (payer.clone(), self.rate_of(payer).map(at_rate))).collect();
        for (payer, rate) in rates {
            let quota = self.rights_of(&payer).and_then(|rights| rights.quota);
            if let Some(account) = self.accounts.get_mut(&payer) {
                account.rate = rate;
                account.used = quota.map(|quota| account.used.map_or(Used::none(quota), |used| used.of(quota)));
            }
        }
    }

    fn rights_of(&self, payer: &Payer) -> Option<&Rights> {
        match (&self.options.admission, payer) {
            (Admission::Listed(list, _), Payer::Key(name)) => list.values().find(|it| it.name == *name),
            _ => None,
        }
    }

    fn rate_of(&self, payer: &Payer) -> Option<u64> {
        match (&self.options.admission, payer) {
            (Admission::Open(rate), _) => *rate,
            (Admission::Listed(..), payer) => self.rights_of(payer).and_then(|rights| rights.max_rate),
        }
    }

    /// What it did so far. Quotas are as they were at the last packet or timer.
    pub(crate) fn report(&self) -> RelayReport {
        let clients = self.accounts.iter().map(|(payer, Account { counts, used, .. })| ClientReport {
            name: match payer {
                Payer::Key(name) => name.clone(),
                Payer::Host(ip) => ip.to_string(),
            },
            circuits: self.members.paid_by(payer),
            packets: counts.packets,
            bytes: counts.bytes,
            over_rate: counts.over_rate,
            over_quota: counts.over_quota,
            quota_bytes: used.map(|used| used.quota.bytes),
            quota_left_bytes: used.map(|used| used.left(self.now)),
        });
        RelayReport {
            members: self.members.len(),
            circuits: self.members.circuits(),
            clients: clients.collect(),
            ..self.totals.clone()
        }
    }

    /// Where a packet of `len` bytes goes that came over `route`.
    pub(crate) fn pass(&mut self, now: Instant, route: Route, header: Header, len: usize) -> Pass {
        self.now = now;
        let Some(member) = self.members.at(header.tag, route) else {
            self.totals.strange += 1;
            return Pass::Unknown;
        };
        member.heard = now;
        let (circuit, side, leg) = (member.circuit, member.side, member.leg);
        let Some(to) = self.members.opposite(circuit, side, header.leg) else {
            self.totals.astray += 1;
            return Pass::Dropped;
        };
        let (route, tag) = (to.route, to.tag);
        let account = self.members.pair(circuit).and_then(|pair| self.accounts.get_mut(&pair.payer));
        if let Some(account) = account {
            if account.rate.as_mut().is_some_and(|rate| !rate.take(now, len as u64)) {
                account.counts.over_rate += 1;
                return Pass::Dropped;
            }
            if account.used.as_mut().is_some_and(|used| !used.take(now, len)) {
                account.counts.over_quota += 1;
                return Pass::Dropped;
            }
            account.counts.packets += 1;
            account.counts.bytes += len as u64;
        }
        self.totals.packets += 1;
        self.totals.bytes += len as u64;
        Pass::On(route, Header { tag, leg })
    }

    /// Whom a member that registered is told of, and who is told of it.
    pub(crate) fn introduced(&self, route: Route, tag: Tag, leg: Leg, it: &Registration) -> Vec<(Route, Control)> {
        let (circuit, side) = (it.place.circuit(), it.place.side());
        let others = self.members.all_opposite(circuit, side, MOST_INTRODUCED);
        let shown = others.into_iter().filter(|other| !other.hidden && !it.hidden);
        let both = shown.flat_map(|other| {
            let here = Control::Peer { tag, leg: other.leg, observed: Observed(other.route.remote) };
            let there = Control::Peer { tag: other.tag, leg, observed: Observed(route.remote) };
            [(route, here), (other.route, there)]
        });
        both.collect()
    }

    /// Takes in who has shown its cookie; returns its tag.
    pub(crate) fn register(
        &mut self,
        now: Instant,
        route: Route,
        (nonce, cookie): (u64, &[u8; 16]),
        it: &Registration,
    ) -> Result<Tag, Reason> {
        let (circuit, side) = (it.place.circuit(), it.place.side());
        let payer = match (side, self.members.pair(circuit)) {
            (Side::Guest, Some(pair)) if self.members.is_open(circuit) => pair.payer.clone(),
            (Side::Guest, _) => return Err(Reason::NoCircuit),
            (Side::Owner, before) => {
                let before = before.map(|pair| pair.payer.clone());
                let payer = self.pays(now, route, it, &signed(cookie, nonce, circuit))?;
                // Who changes its address goes on with the circuit that it has.
                before.filter(|it| matches!(it, Payer::Host(_))).unwrap_or(payer)
            }
        };
        self.open_account(&payer)?;
        if self.accounts.get(&payer).and_then(|it| it.used).is_some_and(|used| used.left(now) < LEAST_LEFT) {
            return Err(Reason::OverQuota);
        }
        let Registration { leg, epoch, member: number, hidden, .. } = *it;
        let member = Member { tag: Tag::new(0), route, circuit, side, leg, epoch, number, hidden, heard: now };
        self.members.take(member, payer).map_err(|why| match why {
            NotTaken::Full => Reason::Full,
            NotTaken::Replaced => Reason::Replaced,
        })
    }

    /// Who pays for the circuit of an owner.
    fn pays(&mut self, now: Instant, route: Route, it: &Registration, message: &[u8]) -> Result<Payer, Reason> {
        let (payer, most) = match &self.options.admission {
            Admission::Open(_) => (Payer::of(None, route.remote.ip()), CIRCUITS_OF_ADDRESS),
            Admission::Listed(list, keys) => {
                let proof = it.proof.as_ref().ok_or(Reason::NotAuthorized)?;
                let rights = list.get(&keys.fingerprint(&proof.public)).ok_or(Reason::NotAuthorized)?;
                if !self.signatures.take(now, 1) {
                    return Err(Reason::Full);
                }
                if !keys.is_signed(proof, message) {
                    return Err(Reason::NotAuthorized);
                }
                (Payer::Key(rights.name.clone()), rights.circuits)
            }
        };
        let circuit = it.place.circuit();
        let is_new = self.members.pair(circuit).is_none();
        if is_new && self.members.paid_by(&payer) >= most {
            return Err(Reason::Full);
        }
        Ok(payer)
    }

    fn open_account(&mut self, payer: &Payer) -> Result<(), Reason> {
        if self.accounts.contains_key(payer) {
            return Ok(());
        }
        if matches!(payer, Payer::Host(_)) && self.accounts.len() >= MOST_CLIENTS {
            let members = &self.members;
            self.accounts.retain(|payer, _| members.paid_by(payer) > 0);
            if self.accounts.len() >= MOST_CLIENTS {
                return Err(Reason::Full);
            }
        }
        let rate = self.rate_of(payer).map(at_rate);
        let used = self.rights_of(payer).and_then(|rights| rights.quota).map(Used::none);
        self.accounts.insert(payer.clone(), Account { counts: Counts::default(), rate, used });
        Ok(())
    }

    /// Forgets who is silent. Returns `true` if somebody is left.
    pub(crate) fn forget(&mut self, now: Instant) -> bool {
        self.now = now;
        if let Some(before) = now.since(Instant::ZERO).checked_sub(FORGOTTEN) {
            self.members.retain(Instant::ZERO + before, |_| true);
        }
        self.members.len() > 0
    }
}
