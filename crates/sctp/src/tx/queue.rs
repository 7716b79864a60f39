mod ahead;
mod before;
mod crowded;
mod express;
mod fair;
mod parts;
mod paused;
mod settled;
mod times;
mod turns;

use super::{Front, Prospect};
use crate::api::{Abandonment, AbandonmentPolicy, Options, Priority, Reliability, SendOptions, StreamOrder};
use crate::number::Tsn;
use braidcast_core::Instant;
use braidcast_queue::Tag;
pub(crate) use parts::Part;
use paused::Paused;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A message from [`send`](crate::Association::send) until all of it is acknowledged or abandoned.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) stream: u16,
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
    pub(crate) context: u64,
    pub(crate) priority: Priority,
    /// How important it is to a queue, and what it belongs to.
    worth: braidcast_queue::Priority,
    frame: Option<braidcast_queue::Frame>,
    /// Each chunk goes over a second path too.
    pub(crate) copied: bool,
    promise: Promise,
    deadline: Option<Instant>,
    /// Messages given to us before it.
    arrival: u64,
    pub(crate) payload: Vec<u8>,
    /// Bytes that have been cut into chunks.
    taken: usize,
    /// SSN or MID, once it is [numbered](Self::numbered).
    pub(crate) number: u32,
    /// The first chunk of it was cut, or of one behind it in its stream.
    numbered: bool,
    /// FSN of the next chunk.
    fsn: u32,
    /// Chunks that are out, the peer's cumulative acknowledgement not having reached them.
    chunks: u32,
    /// TSN of the first and of the most recent chunk; meaningful while `chunks > 0`.
    first_tsn: Tsn,
    last_tsn: Tsn,
    /// Abandoned: nothing of it is sent or repeated any more.
    pub(crate) abandoned: bool,
    /// Of the association itself: nobody asks what became of it.
    internal: bool,
    /// The application asked to be told when it is acknowledged.
    report: bool,
    /// Its payload ends with its times (decision 39).
    timed: bool,
}

/// The name of a message in the [`SendQueue`] that has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct MessageKey(u32);

impl MessageKey {
    const fn place(self) -> usize {
        self.0 as usize
    }
}

/// [`Reliability`] with the lifetime turned into a point in time.
#[derive(Clone, Copy, Debug)]
enum Promise {
    Always,
    Until(Instant),
    Repeats(u16),
    /// Unless something more important wants its room.
    Priority(u32),
}

impl Message {
    /// Returns `true` if all of it has been cut into chunks.
    pub(crate) fn is_cut(&self) -> bool {
        self.taken == self.payload.len()
    }

    /// Returns `true` if a chunk of it that was repeated `repeats` times may be sent now, be it in
    /// time or not.
    pub(crate) fn may_send(&self, now: Instant, repeats: u16) -> bool {
        !self.abandoned
            && match self.promise {
                Promise::Always | Promise::Priority(_) => true,
                Promise::Until(expiry) => now < expiry,
                Promise::Repeats(limit) => repeats <= limit,
            }
    }

    /// One more chunk was cut off it and got the TSN `tsn`.
    pub(super) fn on_chunk(&mut self, tsn: Tsn) {
        if self.chunks == 0 {
            self.first_tsn = tsn;
        }
        self.last_tsn = tsn;
        self.chunks += 1;
    }

    /// A chunk of it need not be held any more. Whether that was the last of all.
    pub(super) fn chunk_gone(&mut self) -> bool {
        self.chunks -= 1;
        self.chunks == 0 && self.is_cut()
    }

    /// The TSNs between which its chunks lie that are out, both included; `None` if none is.
    pub(super) fn tsns(&self) -> Option<(Tsn, Tsn)> {
        (self.chunks > 0).then_some((self.first_tsn, self.last_tsn))
    }

    #[cfg(debug_assertions)]
    pub(super) const fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Returns `true` if its payload ends with its times (decision 39).
    pub(crate) const fn is_timed(&self) -> bool {
        self.timed
    }

    /// Returns `true` if it must be at the receiver by some time.
    pub(crate) const fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    /// By which rule it may be abandoned.
    pub(crate) const fn policy(&self) -> Option<AbandonmentPolicy> {
        match self.promise {
            Promise::Until(_) => Some(AbandonmentPolicy::Timed),
            Promise::Repeats(_) => Some(AbandonmentPolicy::Retransmissions),
            Promise::Priority(_) => Some(AbandonmentPolicy::Priority),
            Promise::Always if self.deadline.is_some() => Some(AbandonmentPolicy::Timed),
            Promise::Always => None,
        }
    }

    /// When it is useless, wherever it is.
    pub(crate) fn expiry(&self) -> Option<Instant> {
        let end = if let Promise::Until(end) = self.promise { Some(end) } else { None };
        end.into_iter().chain(self.deadline).min()
    }

    /// When it is to be there: by then what is of use for longer is shown late.
    pub(crate) fn due(&self) -> Option<Instant> {
        let shown = self.frame.and_then(|frame| frame.due);
        self.expiry().map(|expiry| shown.map_or(expiry, |due| due.min(expiry)))
    }

    /// Returns what a queue knows of it.
    pub(super) fn tag(&self) -> Tag {
        Tag { priority: self.worth, expiry: self.expiry(), len: self.payload.len(), frame: self.frame }
    }

    /// The queue chose to send it though it is too late: once.
    const fn send_once(&mut self) {
        (self.promise, self.deadline) = (Promise::Repeats(0), None);
    }
}

/// A part of a message, cut for one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) message: MessageKey,
    pub(crate) offset: u32,
    pub(crate) len: u16,
    pub(crate) fsn: u32,
    pub(crate) first: bool,
    pub(crate) last: bool,
}

#[derive(Debug, Default)]
struct OutStream {
    waiting: VecDeque<MessageKey>,
    priority: Priority,
    /// Among the turns of which priority it is, while messages wait.
    turn: Priority,
    copied: bool,
    /// The next SSN or MID of ordered messages.
    next_ordered: u32,
    /// The next MID of unordered messages (RFC 8260 §2.1: they count apart).
    next_unordered: u32,
}

/// Messages that wait to be sent, by stream; and all messages that are out. Where a queue was
/// chosen, messages wait in that first ([`Front`]), and come here one by one.
///
/// Streams of a lower [`Priority`] number go first; those of the same take turns. With I-DATA a
/// turn is a chunk, so that a long message holds up nobody; with DATA it is a message, as its TSNs
/// must be consecutive (RFC 9260 §6.9). O(1) for each message and chunk. Payload buffers are
/// reused, up to [`Self::SPARE`] of them.
#[derive(Debug)]
pub(crate) struct SendQueue {
    order: StreamOrder,
    front: Option<Front>,
    /// Messages with a lifetime, by its end, whether they wait or are out; `None`: only those that
    /// wait are abandoned when it ends.
    deadlines: Option<BTreeSet<(Instant, MessageKey)>>,
    arrivals: u64,
    interleaving: bool,
    /// The peer can be told to skip the rest of a message (RFC 3758): one that was cut in part may
    /// be abandoned.
    skippable: bool,
    messages: Slab<Message>,
    streams: Vec<OutStream>,
    /// What each stream was given, where that decides.
    shares: fair::Shares,
    /// The stream that the packet under way is for, where a packet has one.
    packet_of: Option<u16>,
    /// Streams that have messages waiting, by priority.
    turns: [VecDeque<u16>; Priority::COUNT],
    /// Messages that go before all others: those of the key handshake.
    express: VecDeque<MessageKey>,
    express_held: Vec<MessageKey>,
    /// Messages in `front` of which a part was cut before their turn.
    begun: Vec<MessageKey>,
    /// Messages of streams that are to begin anew, which wait for that, by stream.
    paused: BTreeMap<u16, Paused>,
    paused_bytes: usize,
    /// Nothing but `express` goes.
    held_back: bool,
    /// Messages with a deadline say when they are due, unless the peer does not read that (decision 39).
    tells_times: bool,
    /// One did.
    has_timed: bool,
    /// The message under way, where messages must not be interleaved.
    under_way: Option<MessageKey>,
    spare: Vec<Vec<u8>>,
    /// Contexts of messages that were acknowledged and are to be reported.
    delivered: VecDeque<u64>,
    waiting_bytes: usize,
    held_bytes: usize,
    /// No message that waits, but in `front`, expires before this.
    next_expiry: Option<Instant>,
}

impl SendQueue {
    /// Payload buffers kept for reuse; those above 64 KiB are freed.
    const SPARE: usize = 256;
    /// What a message takes of the send buffer, be it ever so short.
    const LEAST_MESSAGE: usize = 64;

    /// The queue that the options ask for.
    pub(crate) fn of(options: &Options) -> Self {
        let queue = Self::new(options.queue.stream_order, options.papers.abandonment).behind(Front::new(options));
        Self { tells_times: options.timed_messages, ..queue }
    }

    pub(crate) fn new(order: StreamOrder, abandonment: Abandonment) -> Self {
        Self {
            order,
            front: None,
            deadlines: abandonment.is_immediate().then(BTreeSet::new),
            arrivals: 0,
            interleaving: false,
            skippable: false,
            messages: Slab::new(),
            streams: Vec::new(),
            shares: fair::Shares::default(),
            packet_of: None,
            turns: Default::default(),
            express: VecDeque::new(),
            express_held: Vec::new(),
            begun: Vec::new(),
            paused: BTreeMap::new(),
            paused_bytes: 0,
            held_back: false,
            tells_times: false,
            has_timed: false,
            under_way: None,
            spare: Vec::new(),
            delivered: VecDeque::new(),
            waiting_bytes: 0,
            held_bytes: 0,
            next_expiry: None,
        }
    }

    /// The same where messages wait in `front` first.
    fn behind(self, front: Option<Front>) -> Self {
        let alone = front.as_ref().is_some_and(Front::is_alone);
        // A message comes out of the one queue when it is to go before all others; first come,
        // first served was for streams.
        let order = if alone { StreamOrder::Priority } else { self.order };
        Self { order, front, ..self }
    }

    /// The queue in which messages wait first, if there is one.
    pub(crate) const fn front(&self) -> Option<&Front> {
        self.front.as_ref()
    }

    /// What the handshake settled.
    pub(crate) fn settle(&mut self, interleaving: bool, skippable: bool, timed: bool) {
        self.interleaving = interleaving;
        self.skippable = skippable;
        self.settle_times(timed);
    }

    /// After a restart of the peer numbering begins anew (RFC 9260 §5.2.4.1); messages not yet cut
    /// are kept, those already cut in part start over.
    pub(crate) fn restart(&mut self) {
        self.under_way = None;
        self.line_up_begun(|_| true);
        for stream in &mut self.streams {
            (stream.next_ordered, stream.next_unordered) = (0, 0);
            for &key in &stream.waiting {
                let message = &mut self.messages[key.place()];
                self.waiting_bytes += message.taken;
                (message.taken, message.fsn, message.chunks, message.numbered) = (0, 0, 0, false);
            }
        }
        self.resume_all();
    }

    /// Bytes of messages that wait, in whole or in part.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Bytes of all messages that wait or are out.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Bytes that it still takes, of a send `buffer` where no queue has limits of its own. Short
    /// messages count as [`Self::LEAST_MESSAGE`] bytes on average, as they take memory too.
    pub(crate) fn room(&self, buffer: usize) -> usize {
        let held = self.held_bytes.max(self.messages.len() * Self::LEAST_MESSAGE);
        self.front.as_ref().map_or_else(|| buffer.saturating_sub(held), Front::room)
    }

    /// Returns `true` if a chunk of the message `key` that was repeated `repeats` times is worth
    /// sending now: it may be, and would come in time over the quickest path.
    pub(crate) fn is_worth_sending(&self, prospect: Prospect, key: MessageKey, repeats: u16) -> bool {
        let message = self.get(key);
        let times = self.front.as_ref().and_then(|front| front.finished_at(&message.tag()));
        let last = || prospect.last_of(message.payload.len() - message.taken, times);
        message.may_send(prospect.now, repeats) && message.deadline.is_none_or(|deadline| last() < deadline)
    }

    /// Returns `true` if it is worth repeating once more: what the peer cannot be told to skip
    /// always is.
    pub(crate) fn is_worth_repeating(&self, prospect: Prospect, key: MessageKey, repeats: u16) -> bool {
        !self.skippable || self.is_worth_sending(prospect, key, repeats.saturating_add(1))
    }

    pub(crate) fn get(&self, key: MessageKey) -> &Message {
        &self.messages[key.place()]
    }

    pub(crate) fn get_mut(&mut self, key: MessageKey) -> &mut Message {
        &mut self.messages[key.place()]
    }

    /// Returns `true` if nothing of the message `key` has been cut.
    pub(crate) fn is_untouched(&self, key: MessageKey) -> bool {
        self.get(key).taken == 0
    }

    fn stream(&mut self, id: u16) -> &mut OutStream {
        let needed = usize::from(id) + 1;
        if self.streams.len() < needed {
            self.streams.resize_with(needed, OutStream::default);
        }
        &mut self.streams[usize::from(id)]
    }

    /// For messages to come.
    pub(crate) fn set_copied(&mut self, id: u16, copied: bool) {
        self.stream(id).copied = copied;
    }

    /// Puts a message at the end of its stream.
    pub(crate) fn push(&mut self, now: Instant, payload: &[u8], how: SendOptions) {
        let key = self.hold(now, payload, how);
        self.line_up(key);
    }

    /// Frees a message of which nothing was cut.
    pub(crate) fn forget(&mut self, key: MessageKey) {
        self.waiting_bytes -= self.messages[key.place()].payload.len();
        self.release(key);
    }

    /// Keeps a message that belongs nowhere yet.
    fn hold(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> MessageKey {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(payload);
        let timed = self.put_times(now, &how, &mut buffer);
        let len = buffer.len();
        let promise = match how.reliability {
            Reliability::Reliable => Promise::Always,
            Reliability::Lifetime(lifetime) => Promise::Until(now + lifetime),
            Reliability::Retransmissions(limit) => Promise::Repeats(limit),
            Reliability::Priority(rank) => Promise::Priority(rank),
        };
        let tag = Tag { priority: how.priority, expiry: how.deadline, len, frame: how.frame };
        let own = self.front.as_ref().filter(|front| front.is_alone()).map(|front| front.rank(&tag));
        let order = self.order;
        let &mut OutStream { priority, copied, .. } = self.stream(how.stream);
        // Without priorities all that is lost ranks alike, too.
        let rank = own.unwrap_or(if order == StreamOrder::Priority { priority } else { Priority::default() });
        let message = Message {
            stream: how.stream,
            ppid: how.ppid,
            unordered: how.unordered,
            context: how.context,
            priority: rank,
            worth: how.priority,
            frame: how.frame,
            copied,
            promise,
            deadline: how.deadline,
            arrival: 0,
            payload: buffer,
            taken: 0,
            number: 0,
            numbered: false,
            fsn: 0,
            chunks: 0,
            first_tsn: Tsn::new(0),
            last_tsn: Tsn::new(0),
            abandoned: false,
            internal: false,
            report: how.report,
            timed,
        };
        self.waiting_bytes += len;
        self.held_bytes += len;
        MessageKey(self.messages.insert(message) as u32)
    }

    /// Puts a message that is held at the end of its stream.
    fn line_up(&mut self, key: MessageKey) {
        if self.is_paused(key) {
            return self.pause(key);
        }
        let message = &mut self.messages[key.place()];
        message.arrival = self.arrivals;
        self.arrivals += 1;
        let (id, rank) = (message.stream, message.priority);
        self.watch_deadline(key);
        let stream = &mut self.streams[usize::from(id)];
        stream.waiting.push_back(key);
        if stream.waiting.len() == 1 {
            stream.turn = rank;
            self.turns[rank.index()].push_back(id);
            self.shares.on_waiting(id);
        } else if rank < stream.turn {
            // What is before it in its stream must hurry.
            self.move_turn(id, rank);
        }
    }

    /// Has the message `key` be abandoned when its lifetime ends.
    fn watch_deadline(&mut self, key: MessageKey) {
        let Some(expiry) = self.messages[key.place()].expiry() else { return };
        self.next_expiry = Some(self.next_expiry.map_or(expiry, |next| next.min(expiry)));
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.insert((expiry, key));
        }
    }

    /// Cuts `most` bytes off the message `key`, of which as many wait, and passes the turn on.
    fn cut_off(&mut self, key: MessageKey, most: usize) -> Piece {
        self.number(key);
        let message = &mut self.messages[key.place()];
        let len = most.min(usize::from(u16::MAX));
        let (id, fsn) = (message.stream, message.fsn);
        let (first, offset) = (message.taken == 0, message.taken as u32);
        message.taken += len;
        message.fsn = message.fsn.wrapping_add(1);
        let piece = Piece { message: key, offset, len: len as u16, fsn, first, last: message.is_cut() };
        self.waiting_bytes -= len;
        self.under_way = (!self.interleaving && !piece.last).then_some(key);
        if self.express.front() == Some(&key) {
            if piece.last {
                self.express.pop_front();
            }
            return piece;
        }
        if piece.last {
            self.take_off(id, key);
        }
        match self.order {
            StreamOrder::FairCapacity => self.shares.give(id, len, false),
            StreamOrder::WeightedFair => self.shares.give(id, len, true),
            _ => {}
        }
        let ends_turn = if self.order == StreamOrder::RoundRobinPacket {
            self.packet_of = Some(id);
            self.streams[usize::from(id)].waiting.is_empty()
        } else {
            self.under_way.is_none()
        };
        if ends_turn {
            self.pass_turn(id);
        }
        piece
    }

    /// Takes a message that will not be cut any further off its stream: all of it was abandoned.
    ///
    /// The message stays in the slab until [`release`](Self::release), as chunks of it may be out.
    pub(crate) fn drop_rest(&mut self, key: MessageKey) {
        self.forget_deadline(key);
        self.withdraw(key);
        let message = &mut self.messages[key.place()];
        if let Some(front) = &mut self.front {
            front.on_lost(message);
        }
        if message.is_cut() {
            return;
        }
        self.waiting_bytes -= message.payload.len() - message.taken;
        message.taken = message.payload.len();
        let id = message.stream;
        if self.under_way == Some(key) {
            self.under_way = None;
        }
        self.express.retain(|&it| it != key);
        self.take_off(id, key);
        if self.streams[usize::from(id)].waiting.is_empty() {
            let turn = self.streams[usize::from(id)].turn;
            self.turns[turn.index()].retain(|&it| it != id);
        }
    }

    fn forget_deadline(&mut self, key: MessageKey) {
        if let (Some(expiry), Some(deadlines)) = (self.messages[key.place()].expiry(), &mut self.deadlines) {
            deadlines.remove(&(expiry, key));
        }
    }

    /// Frees a message that neither waits nor has chunks out.
    pub(crate) fn release(&mut self, key: MessageKey) {
        self.forget_deadline(key);
        self.express_held.retain(|&it| it != key);
        let mut message = self.messages.remove(key.place());
        self.held_bytes -= message.payload.len();
        if self.spare.len() < Self::SPARE && message.payload.capacity() <= 1 << 16 {
            message.payload.clear();
            self.spare.push(message.payload);
        }
    }

    /// When [`next_expired`](Self::next_expired) has something to do next.
    pub(crate) const fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// A message at the head of its stream whose lifetime is over. Messages behind it are looked at
    /// when they get to the head, or to their turn. With immediate abandonment any message whose
    /// lifetime is over, waiting or out.
    pub(crate) fn next_expired(&mut self, now: Instant) -> Option<MessageKey> {
        if self.next_expiry.is_none_or(|next| next > now) {
            return None;
        }
        if let Some(deadlines) = &mut self.deadlines {
            // A message that the peer cannot be told to skip is sent to its end.
            while let Some(&(expiry, key)) = deadlines.first().filter(|(expiry, _)| *expiry <= now) {
                deadlines.remove(&(expiry, key));
                if self.skippable || self.messages[key.place()].taken == 0 {
                    return Some(key);
                }
            }
            self.next_expiry = deadlines.first().map(|&(expiry, _)| expiry);
            return None;
        }
        let mut next = None;
        for stream in self.turns.iter().flatten() {
            let Some(&key) = self.streams[usize::from(*stream)].waiting.front() else { continue };
            let message = &self.messages[key.place()];
            if let Some(expiry) = message.expiry().filter(|_| self.skippable || message.taken == 0) {
                if expiry <= now {
                    return Some(key);
                }
                next = Some(next.map_or(expiry, |next: Instant| next.min(expiry)));
            }
        }
        self.next_expiry = next;
        None
    }
}

#[cfg(test)]
mod tests;
