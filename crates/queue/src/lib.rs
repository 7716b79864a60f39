//! Send queues: when the network takes less than the application makes, which message goes next, and which one never.
//!
//! A [`SendQueue`] holds messages that carry a [`Tag`]: a priority, an expiry, a length, and the
//! [`Frame`] of media that they belong to, if they do. It is asked with an [`Outlook`], what the
//! transport knows about the way: the time, the delay to the receiver, the rate. Whatever it
//! abandons it hands back with the reason, so that no message vanishes. All rules work at the sender
//! alone, under any congestion control and with any receiver.
//!
//! | [`Method`] | order | when full | expired messages | source |
//! |---|---|---|---|---|
//! | `fifo` | arrival | refuses | are sent | plain DCCP, SBPN ch. 5 |
//! | `fifo-timed` | arrival | refuses | are discarded once they have waited so long | RFC 7496 §4.1 |
//! | `sbpn1` | priority, expiry | refuses | are discarded | SBPN §3.4 |
//! | `sbpn2` | priority, expiry | refuses | are discarded, but not the last message | SBPN §3.5 |
//! | `lifo` | newest first | refuses | are discarded | SBPN §6.3 |
//! | `lifo-priority` | priority, newest first | refuses | are discarded | SBPN §6.3 |
//! | `ring` | priority, arrival | drops the oldest of the least priority | are sent | SBPN §7.2 |
//! | `ring-sbpn2` | priority, arrival | as `ring` | as `sbpn2` | SBPN §7.4 |
//! | `never-discard` | priority, arrival | drops the oldest expired, then as `ring` | are sent when nothing else waits | SBPN §8.4.3 |
//! | `keep-alive` | priority, arrival | as `ring` | are discarded, and padding takes their place | SBPN §8.4.3 |
//! | `weighted` | score of priority, time left and size | drops the worst | as `sbpn2` | SBPN §8.4.4 |
//! | `in-time` | priority, but older frames before what has time | drops whole frames, the oldest of the least priority | frames are discarded whole, audio is sent when nothing else waits | of our own |
//! | `by-worth` | first priority, then frames by how many others need them, if their last byte is in time | drops the worst that expires, else refuses | frames are discarded once their last byte would be late, and after them what needs them | of our own, decision 19 |

mod bag;
mod broken;
mod by_worth;
mod fifo;
mod fifo_timed;
mod frame;
mod groups;
mod in_time;
mod keep_alive;
mod lifo;
mod lifo_priority;
mod load;
mod message;
mod method;
mod never_discard;
mod plan;
mod ring;
mod ring_sbpn2;
mod rule;
mod sbpn1;
mod sbpn2;
mod store;
#[cfg(test)]
mod testing;
mod thinning;
mod weighted;

pub use frame::{Frame, NeededBy};
pub use message::{Discard, Limits, Outlook, Priority, Refused, Tag, UnknownPriority, Why};
pub use method::Method;
pub use plan::{Place, Planned, Way, Ways};
pub use weighted::Weights;

use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;

/// Messages that wait to be sent, and the rule by which they go.
///
/// A message of type `M` comes back exactly once: from [`pop`](Self::pop), among the discarded, or in a [`Refused`].
pub trait SendQueue<M>: fmt::Debug + Send {
    /// Takes a message. What has to go so that it fits, perhaps the message itself, is appended to `gone`.
    ///
    /// # Errors
    /// If the rule is to refuse what does not fit, or if it is larger than the whole queue may be.
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>>;

    /// The message that [`pop`](Self::pop) would look at first. It may turn out to be expired, so
    /// that another one goes.
    fn peek(&self) -> Option<&Tag>;

    /// The message that [`pop`](Self::pop) would take out, if no other one may go in its place.
    fn certain(&self, outlook: &Outlook) -> Option<&Tag> {
        self.peek().filter(|tag| !tag.is_expired(outlook))
    }

    /// The message that goes now. To be called only when congestion control lets one out: the
    /// choice is made as late as can be. What is not worth sending any more is appended to `gone`.
    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)>;

    /// The first message that would come in time over a way like this, for a transport that has a
    /// quicker one as well: what is before it stays, as it may be in time over that, and nothing is
    /// discarded.
    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.certain(outlook).filter(|tag| !tag.is_expired(outlook))
    }

    /// Takes the message that [`peek_on_time`](Self::peek_on_time) shows. O(log n) to find it where
    /// messages of one priority expire in the order in which they came; what is before it may have
    /// to move up.
    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        self.peek_on_time(outlook)?;
        self.pop(outlook, &mut Vec::new())
    }

    /// What the path `mine` of `ways` takes a part of next, if all that waits is laid over all of them behind
    /// `under_way`: what is left of a message that was taken out, and when that is due. Of the messages that wait only
    /// those that `may` be begun. `None`: there is nothing for that path, or no plan.
    fn planned(
        &mut self,
        _now: Instant,
        _ways: &mut Ways,
        _mine: usize,
        _under_way: Option<(usize, Option<Instant>)>,
        _may: &dyn Fn(&M) -> bool,
    ) -> Option<Planned> {
        None
    }

    /// The message that waits at a place that was planned a moment ago; its tag has the bytes that are left.
    fn at(&self, _place: Place) -> Option<(&Tag, &M)> {
        None
    }

    /// `bytes` of the message that waits there were sent. The rest waits on, and may be discarded as others may; with
    /// the last byte the message is out.
    fn take_part(&mut self, _outlook: &Outlook, _place: Place, _bytes: usize) {}

    /// Takes out the first of the messages of which a part was taken that is the one `asked` for, wherever it waits.
    /// Returns its tag, with the bytes that were left.
    fn withdraw(&mut self, _asked: &dyn Fn(&M) -> bool) -> Option<Tag> {
        None
    }

    /// A message that was taken out did not arrive in time after all: what needs its [`Frame`] is
    /// worth less.
    fn on_lost(&mut self, _tag: &Tag) {}

    /// Returns `true` if all that waits, behind `ahead` bytes that were taken out, would be in time
    /// [with ease](Tag::is_easy) over paths that deliver `delivered(t)` bytes within t seconds, and
    /// what is expected next as well. `false` if it cannot tell.
    fn is_carried(&self, _now: Instant, _ahead: usize, _delivered: &dyn Fn(f64) -> f64) -> bool {
        false
    }

    /// The time that a frame has from its capture until it is to be shown, if that is known.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Messages that wait.
    fn len(&self) -> usize;

    /// Returns `true` if none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in the messages that wait.
    fn bytes(&self) -> usize;

    /// Bytes of padding that should be sent when no message is there to go, so that the allowed
    /// rate holds; see `keep-alive`.
    fn padding(&self, _outlook: &Outlook) -> usize {
        0
    }

    /// Notes that bytes of padding were sent.
    fn padded(&mut self, _bytes: usize) {}
}
