//! Messages by priority, counted and limited: what every queue is made of.

use crate::bag::{Bag, Oldest};
use crate::{Discard, Limits, Outlook, Priority, Refused, Tag, Why};
use core::fmt;

/// Messages by priority, and in the order of the bag `B` within each.
#[derive(Debug)]
pub(crate) struct Store<M, B> {
    levels: [B; Priority::LEVELS],
    /// Bit n for level n: there is something in it.
    filled: u8,
    /// Bytes in each level.
    level_bytes: [usize; Priority::LEVELS],
    len: usize,
    limits: Limits,
    message: core::marker::PhantomData<M>,
}

impl<M: fmt::Debug + Send, B: Bag<M>> Store<M, B> {
    pub(crate) fn new(limits: Limits) -> Self {
        let limits = Limits { messages: limits.messages.max(1), ..limits };
        let level_bytes = [0; Priority::LEVELS];
        Self { levels: Default::default(), filled: 0, level_bytes, len: 0, limits, message: core::marker::PhantomData }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> usize {
        self.level_bytes.iter().sum()
    }

    /// Returns `true` if `len` bytes more fit.
    fn has_room(&self, len: usize) -> bool {
        self.len < self.limits.messages && self.bytes().saturating_add(len) <= self.limits.bytes
    }

    /// The level that goes first.
    fn first(&self) -> Option<usize> {
        (self.filled != 0).then(|| self.filled.trailing_zeros() as usize)
    }

    /// The level that goes last.
    fn last(&self) -> Option<usize> {
        self.filled.checked_ilog2().map(|level| level as usize)
    }

    pub(crate) fn head(&self) -> Option<&Tag> {
        self.levels[self.first()?].head()
    }

    pub(crate) fn take(&mut self) -> Option<(Tag, M)> {
        self.take_from(self.first()?)
    }

    /// The first message that would come in time: its level, its place there, and what it is.
    pub(crate) fn first_on_time(&self, outlook: &Outlook) -> Option<(usize, usize, &Tag)> {
        let mut levels = self.levels.iter().enumerate();
        levels.find_map(|(level, bag)| bag.first_on_time(outlook).map(|(place, tag)| (level, place, tag)))
    }

    /// Takes that message, and nothing else.
    pub(crate) fn take_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        let (level, place, _) = self.first_on_time(outlook)?;
        let taken = self.levels[level].take_at(place);
        self.taken(level, taken)
    }

    fn take_from(&mut self, level: usize) -> Option<(Tag, M)> {
        let taken = self.levels[level].take();
        self.taken(level, taken)
    }

    /// Counts what was taken out of a level.
    fn taken(&mut self, level: usize, taken: Option<(Tag, M)>) -> Option<(Tag, M)> {
        let (tag, message) = taken?;
        self.len -= 1;
        self.level_bytes[level] -= tag.len;
        if self.levels[level].head().is_none() {
            self.filled &= !(1 << level);
        }
        Some((tag, message))
    }

    /// Takes a message, whatever the limits say.
    pub(crate) fn put(&mut self, level: Priority, tag: Tag, message: M) {
        let level = level.index();
        self.levels[level].put(tag, message);
        self.filled |= 1 << level;
        self.len += 1;
        self.level_bytes[level] += tag.len;
    }

    /// Takes a message if it fits.
    pub(crate) fn put_or_refuse(&mut self, level: Priority, tag: Tag, message: M) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        if !self.has_room(tag.len) {
            return Err(Refused::Full(message));
        }
        self.put(level, tag, message);
        Ok(())
    }

    /// Drops from the front what would come too late, as far as `len` bytes need the room.
    pub(crate) fn drop_expired_for(&mut self, len: usize, outlook: &Outlook, gone: &mut Vec<Discard<M>>) {
        while !self.has_room(len) && self.head().is_some_and(|tag| tag.is_expired(outlook)) {
            let Some((tag, message)) = self.take() else { break };
            gone.push(Discard { why: Why::Expired, tag, message });
        }
    }

    /// The message that goes now, by the rule of SBPN1 (fig. 3.1): what would come too late is discarded.
    pub(crate) fn take_unexpired(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        loop {
            let (tag, message) = self.take()?;
            if !tag.is_expired(outlook) {
                return Some((tag, message));
            }
            gone.push(Discard { why: Why::Expired, tag, message });
        }
    }

    /// The message that goes now, by the rule of SBPN2 (fig. 3.2): as SBPN1, but the last message goes in any case.
    pub(crate) fn take_unexpired_or_last(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        loop {
            let (tag, message) = self.take()?;
            if self.len == 0 || !tag.is_expired(outlook) {
                return Some((tag, message));
            }
            gone.push(Discard { why: Why::Expired, tag, message });
        }
    }
}

impl<M: fmt::Debug + Send> Store<M, Oldest<M>> {
    /// Takes a message by the rule of the ring (SBPN fig. 7.1), for any number of priorities: to
    /// make room, the oldest of the least important go; if all that waits is more important, the
    /// message itself does.
    pub(crate) fn put_or_replace(
        &mut self,
        tag: Tag,
        message: M,
        gone: &mut Vec<Discard<M>>,
    ) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        let level = tag.priority.index();
        // Looked at before anything goes: dropping some and then the message all the same would help nobody.
        let more_important: usize = self.level_bytes[..level].iter().sum();
        let all_more_important = self.last().is_none_or(|last| last < level);
        let never = more_important.saturating_add(tag.len) > self.limits.bytes
            || (self.len >= self.limits.messages && all_more_important);
        if never {
            gone.push(Discard { why: Why::NoRoom, tag, message });
            return Ok(());
        }
        while !self.has_room(tag.len) {
            let Some((tag, message)) = self.last().and_then(|last| self.take_from(last)) else { break };
            gone.push(Discard { why: Why::Replaced, tag, message });
        }
        self.put(tag.priority, tag, message);
        Ok(())
    }
}
