//! A path as it is wanted, and the ways to its end that are tried for it.

use super::source::{self, Local};
use super::{Link, Target};
use crate::watch::Interfaces;
use braidcast_core::{Instant, Route};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The next address of a name is tried this long after the one before (RFC 8305 §5).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// Ways that are tried side by side, at most: two families, before and after a move.
const MOST_TRIED: usize = 4;
/// One that must make room for the next has been tried for this long. Where one way is tried at a
/// time, it doubles up to the second: connecting takes four round trips, and satellites have 1.2 s.
const GIVES_WAY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(16));

/// A way to the other end: a socket, and where it sends.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) route: Route,
    /// The address that its packets left from when it was opened, if one is known.
    pub(super) local: Option<IpAddr>,
    /// The other end answers over it.
    pub(super) up: bool,
}

/// A path, and its sockets if there are any now.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) link: Link,
    /// Addresses that it leads to, as far as they are known; the one to be tried next first.
    candidates: Vec<SocketAddr>,
    /// The oldest first.
    pub(super) open: Vec<Open>,
    /// When the next candidate is tried.
    pub(super) due: Option<Instant>,
    /// Ways that are tried side by side.
    most: usize,
    gives_way: Duration,
    /// What was said when its name could not be resolved.
    pub(super) said: bool,
}

impl Slot {
    pub(super) fn new(link: Link, one_by_one: bool) -> Self {
        let candidates = match link.to {
            Target::Addr(addr) => vec![addr],
            Target::Name(..) => Vec::new(),
        };
        let most = if one_by_one { 1 } else { MOST_TRIED };
        Self { link, candidates, open: Vec::new(), due: None, most, gives_way: GIVES_WAY.0, said: false }
    }

    pub(super) const fn try_one_by_one(&mut self) {
        self.most = 1;
    }

    /// The host whose name is to be asked for.
    pub(super) fn host(&self) -> Option<&str> {
        match &self.link.to {
            Target::Name(host, _) => Some(host),
            Target::Addr(_) => None,
        }
    }

    /// The other end answers over one of the ways.
    pub(super) fn is_up(&self) -> bool {
        self.open.iter().any(|it| it.up)
    }

    /// Returns `true` if the next candidate is tried by now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Returns `true` if an address of it is known.
    pub(super) const fn is_known(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// All its addresses are of IPv4.
    pub(super) fn needs_ipv4(&self) -> bool {
        self.candidates.iter().all(SocketAddr::is_ipv4)
    }

    /// The name leads to these addresses now. Ways that are open stay as they are. Returns `true` if
    /// one of them is new.
    pub(super) fn resolved(&mut self, now: Instant, found: &[SocketAddr]) -> bool {
        let port = self.link.to.port();
        let found = found.iter().map(|addr| {
            let mut addr = *addr;
            addr.set_port(port);
            addr
        });
        let (known, new): (Vec<_>, Vec<_>) = found.partition(|addr| self.candidates.contains(addr));
        let any = !new.is_empty();
        self.candidates.retain(|addr| known.contains(addr));
        self.candidates.splice(0..0, new);
        if any && !self.is_up() {
            self.due = Some(now);
        }
        any
    }

    /// The local end of its packets to `remote` now; `None` if they cannot leave, as its interface or
    /// address is not there or has no address of that family.
    pub(super) fn local(&self, remote: SocketAddr, interfaces: &Interfaces) -> Option<Local> {
        source::of(&self.link.via, remote, interfaces)
    }

    /// The way that is tried next, and where its packets leave.
    fn next_candidate(&self, interfaces: &Interfaces) -> Option<(SocketAddr, Local)> {
        let fresh = || self.candidates.iter().filter(|addr| self.open.iter().all(|it| it.route.remote != **addr));
        let local = |addr: &SocketAddr| Some((*addr, self.local(*addr, interfaces)?));
        let routed = fresh().filter_map(local).find(|(_, local)| local.is_routed());
        // A route may come later.
        routed.or_else(|| if self.open.is_empty() { fresh().find_map(local) } else { None })
    }

    /// The way that has to be opened now, and the one that makes room for it. `now` is when.
    pub(super) fn step(&mut self, now: Instant, interfaces: &Interfaces) -> Option<(SocketAddr, Local, Option<Open>)> {
        if self.is_up() {
            self.due = None;
            return None;
        }
        let is_due = self.open.is_empty() || self.is_due(now);
        if !is_due {
            return None;
        }
        let Some((remote, local)) = self.next_candidate(interfaces) else {
            self.due = None;
            return None;
        };
        let full = self.open.len() >= self.most;
        let gone = full.then(|| self.open.remove(0));
        // It is the last one to be tried again.
        self.candidates.retain(|addr| *addr != remote);
        self.candidates.push(remote);
        let wait = if self.open.len() + 1 < self.most { NEXT_ADDRESS } else { self.gives_way };
        if self.most == 1 {
            self.gives_way = (self.gives_way * 2).min(GIVES_WAY.1);
        }
        self.due = Some(now + wait);
        Some((remote, local, gone))
    }

    /// The other end answers over `route`: returns all others, which are not needed any more.
    pub(super) fn up(&mut self, route: Route) -> Vec<Open> {
        let Some(place) = self.open.iter().position(|it| it.route == route) else { return Vec::new() };
        let mut way = self.open.remove(place);
        way.up = true;
        (self.due, self.gives_way) = (None, GIVES_WAY.0);
        std::mem::replace(&mut self.open, vec![way])
    }

    /// The other end does not answer over `route` any more. Returns `true` if that is new.
    pub(super) fn down(&mut self, now: Instant, route: Route) -> bool {
        let was = self.is_up();
        self.open.iter_mut().filter(|it| it.route == route).for_each(|it| it.up = false);
        let is_new = was && !self.is_up();
        if is_new {
            self.due = Some(now + NEXT_ADDRESS);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Via;
    use braidcast_core::SocketId;

    fn named() -> Slot {
        let to = Target::Name("home.example".into(), 9);
        Slot::new(Link { via: Via::Any, to, name: "home".into() }, false)
    }

    fn addr(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 9))
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// What the slot tries at `now`, and what gives way to it.
    fn step(slot: &mut Slot, now: Instant) -> Option<(SocketAddr, Option<SocketAddr>)> {
        let (remote, local, gone) = slot.step(now, &Interfaces::default())?;
        let route = Route::new(SocketId(0), remote);
        slot.open.push(Open { route, local: local.addr(), up: false });
        Some((remote, gone.map(|it| it.route.remote)))
    }

    #[test]
    fn addresses_are_tried_a_quarter_of_a_second_apart_until_one_answers() {
        let mut slot = named();
        assert_eq!(step(&mut slot, ms(0)), None, "it is not resolved");
        let mut found: Vec<_> = (1..=3).map(addr).collect();
        found.iter_mut().for_each(|it| it.set_port(0));
        assert!(slot.resolved(ms(100), &found) && !slot.resolved(ms(100), &found));
        assert_eq!(step(&mut slot, ms(100)), Some((addr(1), None)));
        assert_eq!((step(&mut slot, ms(349)), slot.due), (None, Some(ms(350))));
        assert_eq!(step(&mut slot, ms(350)), Some((addr(2), None)));
        let others = slot.up(Route::new(SocketId(0), addr(2)));
        assert_eq!(others.iter().map(|it| it.route.remote).collect::<Vec<_>>(), [addr(1)]);
        assert_eq!((step(&mut slot, ms(600)), slot.is_up()), (None, true));
        // It fails: the others are tried beside it, what is new first.
        assert!(slot.down(ms(5000), Route::new(SocketId(0), addr(2))));
        assert_eq!(step(&mut slot, ms(5000)), None, "it may answer at once");
        let mut new = vec![addr(4), addr(3)];
        new.iter_mut().for_each(|it| it.set_port(0));
        assert!(slot.resolved(ms(5100), &new));
        assert_eq!(step(&mut slot, ms(5100)), Some((addr(4), None)));
        assert_eq!(step(&mut slot, ms(5350)), Some((addr(3), None)));
        assert_eq!(step(&mut slot, ms(60_000)), None, "there is no other");
    }

    #[test]
    fn one_by_one_each_gets_longer_than_the_one_before() {
        let mut slot = named();
        slot.try_one_by_one();
        slot.resolved(ms(0), &[addr(1), addr(2)]);
        assert_eq!(step(&mut slot, ms(0)), Some((addr(1), None)));
        let mut now = 0;
        for (wait, to) in [(2000, 2), (4000, 1), (8000, 2), (16_000, 1), (16_000, 2)] {
            assert_eq!(step(&mut slot, ms(now + wait - 1)), None);
            now += wait;
            let from = 3 - to;
            assert_eq!(step(&mut slot, ms(now)), Some((addr(to), Some(addr(from)))));
        }
    }
}
