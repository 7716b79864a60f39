use super::fragment::Key;
use braidcast_core::Unwrapper;

/// Which ordered message a stream delivers next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Ssn(Unwrapper<16>),
    Mid(Unwrapper<32>),
}

/// Position of an incoming stream, for ordered and unordered messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    next: Next,
    /// Highest MID of unordered messages seen.
    unordered: Unwrapper<32>,
    /// Unordered messages below this MID are abandoned unless complete.
    unordered_floor: u64,
}

impl Stream {
    /// A stream that starts at SSN 0, or MID 0 in both directions (RFC 9260 §6.5, RFC 8260 §2.1).
    const fn new(interleaving: bool) -> Self {
        let next = if interleaving { Next::Mid(Unwrapper::new(0)) } else { Next::Ssn(Unwrapper::new(0)) };
        Self { next, unordered: Unwrapper::new(0), unordered_floor: 0 }
    }

    /// The number of the ordered message to deliver next.
    pub(super) const fn next(&self) -> u64 {
        match self.next {
            Next::Ssn(unwrapper) => unwrapper.highest(),
            Next::Mid(unwrapper) => unwrapper.highest(),
        }
    }

    /// The number of the ordered message that `wire`, an SSN or MID, stands for: the nearest to
    /// [`next`](Self::next), so at most 32,767 (DATA) or 2³¹ − 1 (I-DATA) ahead of it.
    pub(super) fn number(&self, wire: u32) -> u64 {
        match self.next {
            Next::Ssn(unwrapper) => unwrapper.peek(u64::from(wire)),
            Next::Mid(unwrapper) => unwrapper.peek(u64::from(wire)),
        }
    }

    /// Everything up to message `number`, which is not below `next`, was delivered or skipped.
    pub(super) fn pass(&mut self, number: u64) {
        // In two steps, because one past the farthest number is half the space away.
        for n in [number, number.saturating_add(1)] {
            match &mut self.next {
                Next::Ssn(unwrapper) => unwrapper.unwrap(n),
                Next::Mid(unwrapper) => unwrapper.unwrap(n),
            };
        }
    }

    /// The number of the unordered message that `mid` stands for; `None` if it is abandoned.
    pub(super) fn unordered_number(&mut self, mid: u32) -> Option<u64> {
        let number = self.unordered.unwrap(u64::from(mid));
        (number >= self.unordered_floor).then_some(number)
    }

    /// Unordered messages up to `mid` are abandoned; returns its number.
    pub(super) fn pass_unordered(&mut self, mid: u32) -> u64 {
        let number = self.unordered.unwrap(u64::from(mid));
        self.unordered_floor = self.unordered_floor.max(number.saturating_add(1));
        number
    }
}

/// The incoming streams: state for those up to the highest one used, 32 bytes each.
#[derive(Debug)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    count: u16,
    interleaving: bool,
}

impl Streams {
    pub(super) const fn new(count: u16, interleaving: bool) -> Self {
        Self { streams: Vec::new(), count, interleaving }
    }

    /// The state of stream `id`; `None` if there is no such stream.
    pub(super) fn get(&mut self, id: u16) -> Option<&mut Stream> {
        if id >= self.count {
            return None;
        }
        if self.streams.len() <= usize::from(id) {
            self.streams.resize(usize::from(id) + 1, Stream::new(self.interleaving));
        }
        self.streams.get_mut(usize::from(id))
    }

    /// Stream `id` begins anew.
    pub(super) fn reset(&mut self, id: u16) {
        if let Some(stream) = self.streams.get_mut(usize::from(id)) {
            *stream = Stream::new(self.interleaving);
        }
    }

    /// There are `more` streams.
    pub(super) const fn grow(&mut self, more: u16) {
        self.count = self.count.saturating_add(more);
    }

    /// Returns `true` if ordered message `number` of stream `id` was delivered or skipped.
    pub(super) fn has_passed(&self, id: u16, number: u64) -> bool {
        self.streams.get(usize::from(id)).is_some_and(|stream| number < stream.next())
    }

    /// Returns `true` if `key` is of the kind that was negotiated.
    pub(super) const fn accepts(&self, key: Key) -> bool {
        matches!(key, Key::Mid { .. }) == self.interleaving
    }
}
