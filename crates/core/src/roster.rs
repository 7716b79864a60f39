use crate::{Ecn, Instant, LATE_WAKE, Route, Transmit};
use core::fmt;
use core::time::Duration;
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};

/// The place of a [`Member`] in its [`Roster`]; not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    slot: u32,
    generation: u32,
}

/// One of many that share the sockets of an endpoint: an association, a connection. Its methods mean what those of
/// [`Machine`](crate::Machine) mean.
pub trait Member {
    /// What it is known by outside.
    type Id: Copy + fmt::Debug + From<Key> + Into<Key>;
    /// What it reports to the layer above.
    type Event: fmt::Debug;

    /// Its timer is due.
    fn handle_timeout(&mut self, now: Instant);

    /// This machine stood still for `late`, until `now`: what was not answered meanwhile may have
    /// come, and wait to be read.
    fn handle_late_wake(&mut self, now: Instant, late: Duration);

    /// Writes what is to be sent next into `buf`.
    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit>;

    /// When its timer is due.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;
}

/// What [`Roster::poll_transmit`] came upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn<I> {
    /// A packet, which is in the buffer.
    Packet(Transmit),
    /// A member that has nothing more to send. Its events are collected; bring up to date what is known about it, call
    /// [`Roster::set_timer`], and go on.
    Dry(I),
    /// Nobody has anything to send.
    Over,
}

/// The members of an endpoint: who may have something to send, whose timer is due next, what they
/// tell, and answers to packets that belong to none of them.
///
/// A member that was given anything is woken ([`wake`](Self::wake)); it then gets its turn until it
/// is dry, and only then is its timer set anew.
#[derive(Debug)]
pub struct Roster<M: Member> {
    slots: Slab<Slot<M>>,
    generation: u32,
    timers: BTreeSet<(Instant, Key)>,
    /// Members that may have something to send or to tell.
    busy: VecDeque<Key>,
    /// Packets that belong to no member, ready to go.
    replies: VecDeque<(Route, Vec<u8>)>,
    events: VecDeque<(M::Id, M::Event)>,
    /// When anything was handled last.
    ran: Instant,
    /// That was late.
    late: bool,
}

#[derive(Debug)]
struct Slot<M> {
    generation: u32,
    /// On its own, so that places that are free cost next to nothing: there may be as many as places taken.
    member: Box<M>,
    /// What `timers` holds for it.
    timer: Option<Instant>,
    /// In `busy`.
    is_busy: bool,
}

impl<M: Member> Default for Roster<M> {
    fn default() -> Self {
        Self {
            slots: Slab::new(),
            generation: 0,
            timers: BTreeSet::new(),
            busy: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            ran: Instant::ZERO,
            late: false,
        }
    }
}

/// Who is there.
impl<M: Member> Roster<M> {
    /// Members.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if there is no member.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All members, in no particular order of meaning, but always the same.
    pub fn ids(&self) -> impl Iterator<Item = M::Id> + '_ {
        self.slots.iter().map(|(slot, it)| Key { slot: slot as u32, generation: it.generation }.into())
    }

    /// The member `id`, unless it is gone.
    pub fn get(&self, id: M::Id) -> Option<&M> {
        let key: Key = id.into();
        self.slots.get(key.slot as usize).filter(|it| it.generation == key.generation).map(|it| &*it.member)
    }

    /// The member `id`, unless it is gone. Follow what makes it have something to send or to tell
    /// by [`wake`](Self::wake).
    pub fn get_mut(&mut self, id: M::Id) -> Option<&mut M> {
        find(&mut self.slots, id.into()).map(|it| &mut *it.member)
    }

    /// Takes `member` in, awake.
    pub fn insert(&mut self, member: M) -> M::Id {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let slot = self.slots.insert(Slot { generation, member: Box::new(member), timer: None, is_busy: false }) as u32;
        let id = Key { slot, generation }.into();
        self.wake(id);
        id
    }

    /// Takes the member `id` out, with its timer; its events so far stay.
    pub fn remove(&mut self, id: M::Id) -> Option<M> {
        self.clear_timer(id);
        let key: Key = id.into();
        find(&mut self.slots, key)?;
        self.slots.try_remove(key.slot as usize).map(|it| *it.member)
    }
}

/// What each is to do next.
impl<M: Member> Roster<M> {
    /// Answers of no member that wait at most; further ones are dropped, and the peer repeats.
    pub const MAX_REPLIES: usize = 256;

    /// Puts the member among those that are polled, unless it is gone.
    pub fn wake(&mut self, id: M::Id) -> Option<&mut M> {
        let key: Key = id.into();
        let it = find(&mut self.slots, key)?;
        if !core::mem::replace(&mut it.is_busy, true) {
            self.busy.push_back(key);
        }
        Some(&mut *it.member)
    }

    /// Sets the member's timer anew.
    pub fn set_timer(&mut self, id: M::Id) {
        if let Some(due) = self.get(id).map(Member::poll_timeout) {
            self.replace_timer(id, due);
        }
    }

    /// Stops the member's timer.
    pub fn clear_timer(&mut self, id: M::Id) {
        self.replace_timer(id, None);
    }

    fn replace_timer(&mut self, id: M::Id, due: Option<Instant>) {
        let key: Key = id.into();
        let Some(it) = find(&mut self.slots, key) else { return };
        let old = core::mem::replace(&mut it.timer, due);
        if old != due {
            old.into_iter().for_each(|at| _ = self.timers.remove(&(at, key)));
            due.into_iter().for_each(|at| _ = self.timers.insert((at, key)));
        }
    }

    /// Informs all members if a timer is heard more than [`LATE_WAKE`] late: this machine stood
    /// still, and no network is to blame. To be asked before anything is handled at `now`.
    pub fn notice_late_wake(&mut self, now: Instant) {
        let ran = core::mem::replace(&mut self.ran, now);
        let late = self.poll_timeout().map_or(Duration::ZERO, |due| now.since(due.max(ran)));
        // Late each time, timers would be put off for ever.
        let twice = core::mem::replace(&mut self.late, late > LATE_WAKE);
        if late <= LATE_WAKE || twice {
            return;
        }
        let ids: Vec<_> = self.ids().collect();
        for id in ids {
            if let Some(member) = self.get_mut(id) {
                member.handle_late_wake(now, late);
            }
            self.set_timer(id);
        }
    }

    /// Returns `true` if one more answer may wait.
    pub fn takes_replies(&self) -> bool {
        self.replies.len() < Self::MAX_REPLIES
    }

    /// Has `packet` sent on behalf of no member, if it [`may wait`](Self::takes_replies).
    pub fn reply(&mut self, route: Route, packet: Vec<u8>) {
        if self.takes_replies() {
            self.replies.push_back((route, packet));
        }
    }

    /// Has all members handle their timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, key)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, key));
            find(&mut self.slots, key).into_iter().for_each(|it| it.timer = None);
            if let Some(member) = self.wake(key.into()) {
                member.handle_timeout(now);
            }
            // Its next timer is set once it has been polled, so that a timer in the past cannot keep this loop going.
        }
    }

    /// Writes the next packet into `buf`, which is cleared first: answers of no member, then
    /// members taking turns, so that none can starve the others.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Turn<M::Id> {
        buf.clear();
        if let Some((route, packet)) = self.replies.pop_front() {
            buf.extend_from_slice(&packet);
            return Turn::Packet(Transmit { route, ecn: Ecn::NotEct, segment_size: None });
        }
        while let Some(&key) = self.busy.front() {
            let Some(it) = find(&mut self.slots, key) else {
                self.busy.pop_front(); // It is gone.
                continue;
            };
            if let Some(transmit) = it.member.poll_transmit(now, buf) {
                self.busy.rotate_left(1);
                return Turn::Packet(transmit);
            }
            it.is_busy = false;
            self.busy.pop_front();
            self.collect_events(key);
            return Turn::Dry(key.into());
        }
        Turn::Over
    }

    /// When the first timer is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// The next event, with the member that it is of.
    pub fn poll_event(&mut self) -> Option<(M::Id, M::Event)> {
        if self.events.is_empty() {
            for at in 0..self.busy.len() {
                self.collect_events(self.busy[at]);
            }
        }
        self.events.pop_front()
    }

    fn collect_events(&mut self, key: Key) {
        while let Some(event) = find(&mut self.slots, key).and_then(|it| it.member.poll_event()) {
            self.events.push_back((key.into(), event));
        }
    }
}

fn find<M>(slots: &mut Slab<Slot<M>>, key: Key) -> Option<&mut Slot<M>> {
    slots.get_mut(key.slot as usize).filter(|it| it.generation == key.generation)
}

#[cfg(test)]
mod tests;
