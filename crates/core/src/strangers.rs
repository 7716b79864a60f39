use crate::Instant;
use core::fmt::Debug;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A network that counts as one host: 24 bits of IPv4, 64 of IPv6, as whoever has one address there
/// has the others too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix(u64);

impl Prefix {
    /// Returns the network of `host`.
    pub fn of(host: IpAddr) -> Self {
        match host.to_canonical() {
            // No IPv6 network begins with 32 zero bits and is routed (RFC 4291 §2.5.5).
            IpAddr::V4(v4) => Self(u64::from(v4.to_bits() >> 8)),
            IpAddr::V6(v6) => Self((v6.to_bits() >> 64) as u64),
        }
    }
}

/// Nobody has to go for a newcomer at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// The places of those who have proved no key yet: connections whose address is proved and whose
/// key handshake is under way.
///
/// They are apart from the places of members, so that a stranger never takes anything from one. Of
/// the network with most places the oldest goes for a newcomer from a network that has fewer. Among
/// equals whoever is there has [`STAY`](Self::STAY) to prove its key, so that who is far away gets
/// through its handshake while others come without end; a newcomer that finds no place asks again.
///
/// Memory: [`PLACES`](Self::PLACES) × [`EACH`](Self::EACH) bytes for all that strangers hold.
#[derive(Debug)]
pub struct Strangers<I> {
    /// How many there are at most.
    places: usize,
    /// How long one among equals has.
    stay: Duration,
    /// By age: number, network, and when it came.
    by_age: BTreeMap<u64, (I, Prefix, Instant)>,
    numbers: BTreeMap<I, u64>,
    /// Numbers of those in a network.
    networks: BTreeMap<Prefix, BTreeSet<u64>>,
    /// Networks by how many places they have.
    crowds: BTreeSet<(usize, Prefix)>,
    next: u64,
}

impl<I: Copy + Ord + Debug> Default for Strangers<I> {
    fn default() -> Self {
        Self::bounded(Self::PLACES, Self::STAY)
    }
}

impl<I: Copy + Ord + Debug> Strangers<I> {
    /// Strangers at a time, unless the pool is [`bounded`](Self::bounded) otherwise.
    pub const PLACES: usize = 1024;
    /// Bytes that one may have sent and this end keeps, until it has proved a key.
    pub const WINDOW: usize = 16 << 10;
    /// Bytes that one costs at most, with its window, what goes to it and the state of its key
    /// handshake.
    pub const EACH: usize = 128 << 10;
    /// How long one among equals has for its key handshake: four round trips of 1.2 s, and a lost
    /// packet.
    pub const STAY: Duration = Duration::from_secs(6);

    /// Returns a pool of `places`, at least one, where one among equals has `stay` before it may have to go.
    pub const fn bounded(places: usize, stay: Duration) -> Self {
        Self {
            places,
            stay,
            by_age: BTreeMap::new(),
            numbers: BTreeMap::new(),
            networks: BTreeMap::new(),
            crowds: BTreeSet::new(),
            next: 0,
        }
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// Makes room for one from `host`. Returns who has to go for it; the pool knows that one no more.
    ///
    /// # Errors
    /// [`NoRoom`]: it may ask again.
    pub fn make_room(&mut self, now: Instant, host: IpAddr) -> Result<Option<I>, NoRoom> {
        let Some((id, most, since)) = self.first_to_go() else { return Ok(None) };
        let own = self.networks.get(&Prefix::of(host)).map_or(0, BTreeSet::len);
        if most <= own + 1 && now.since(since) < self.stay {
            return Err(NoRoom);
        }
        self.leave(id);
        Ok(Some(id))
    }

    /// If all places are taken, the oldest of the networks with most places, how many that one has,
    /// and when it came.
    fn first_to_go(&self) -> Option<(I, usize, Instant)> {
        let &(most, _) = self.crowds.last().filter(|_| self.len() >= self.places)?;
        // Often it is the oldest of all.
        let is_crowd = |network: &Prefix| self.networks.get(network).map_or(0, BTreeSet::len) == most;
        let first = self.by_age.values().next().filter(|(_, network, _)| is_crowd(network));
        let oldest_of_crowds = || {
            let crowds = self.crowds.range((most, Prefix(0))..);
            let oldest = crowds.filter_map(|(_, network)| self.networks.get(network)?.first()).min();
            oldest.and_then(|number| self.by_age.get(number))
        };
        let &(id, _, since) = first.or_else(oldest_of_crowds)?;
        Some((id, most, since))
    }

    /// `id`, from `host`, has a place from `now` on.
    pub fn enter(&mut self, now: Instant, host: IpAddr, id: I) {
        let network = Prefix::of(host);
        let number = self.next;
        self.next += 1;
        self.by_age.insert(number, (id, network, now));
        self.numbers.insert(id, number);
        let there = self.networks.entry(network).or_default();
        self.crowds.remove(&(there.len(), network));
        there.insert(number);
        self.crowds.insert((there.len(), network));
    }

    /// `id` is a stranger no longer: it has proved a key, or is gone. Returns whether it was one.
    pub fn leave(&mut self, id: I) -> bool {
        let Some(number) = self.numbers.remove(&id) else { return false };
        let Some((_, network, _)) = self.by_age.remove(&number) else { return false };
        let Some(there) = self.networks.get_mut(&network) else { return false };
        self.crowds.remove(&(there.len(), network));
        there.remove(&number);
        if there.is_empty() {
            self.networks.remove(&network);
        } else {
            self.crowds.insert((there.len(), network));
        }
        true
    }
}

#[cfg(test)]
mod tests;
