use crate::bag::{Bag, Oldest};
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag, Why};
use core::fmt;

/// Nothing is discarded for its age: what expired goes when nothing else waits, so that the allowed
/// rate holds and the last word is the receiver's, who may play late what is a little late (SBPN
/// §8.4.3). Only a full queue discards: the oldest of the expired, then as the ring does.
///
/// The order is by priority and arrival, which is the order of expiry where each kind of message
/// lives for the same time.
#[derive(Debug)]
pub(crate) struct NeverDiscard<M> {
    live: Store<M, Oldest<M>>,
    expired: Oldest<M>,
    expired_bytes: usize,
    limits: Limits,
}

impl<M: fmt::Debug + Send> NeverDiscard<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { live: Store::new(limits), expired: Oldest::new(), expired_bytes: 0, limits }
    }

    fn take_expired(&mut self) -> Option<(Tag, M)> {
        let oldest = self.expired.take()?;
        self.expired_bytes -= oldest.0.len;
        Some(oldest)
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for NeverDiscard<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        let (messages, bytes) = (self.limits.messages.max(1), self.limits.bytes - tag.len);
        while self.len() >= messages || self.bytes() > bytes {
            let Some((tag, message)) = self.take_expired() else { break };
            gone.push(Discard { why: Why::Replaced, tag, message });
        }
        self.live.put_or_replace(tag, message, gone)
    }

    fn peek(&self) -> Option<&Tag> {
        self.live.head().or_else(|| self.expired.head())
    }

    fn pop(&mut self, outlook: &Outlook, _: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        while let Some((tag, message)) = self.live.take() {
            if !tag.is_expired(outlook) {
                return Some((tag, message));
            }
            self.expired_bytes += tag.len;
            self.expired.put(tag, message);
        }
        self.take_expired()
    }

    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.live.first_on_time(outlook).map(|(.., tag)| tag)
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        self.live.take_on_time(outlook)
    }

    fn len(&self) -> usize {
        self.live.len() + self.expired.len()
    }

    fn bytes(&self) -> usize {
        self.live.bytes() + self.expired_bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, video};
    use crate::{Limits, Method};

    #[test]
    fn what_is_late_goes_last_and_makes_room_first() {
        let mut bench = Bench::new(Method::NeverDiscard, Limits::messages(4));
        assert!(bench.push([video(1, 10), video(2, 10), audio(3, 10), video(4, 90)]).is_empty());
        bench.pass(20);
        assert_eq!(bench.pop(), ["4"], "the only one that is on time");
        assert!(bench.push([audio(5, 90)]).is_empty());
        assert_eq!(bench.push([video(6, 90)]), ["3 replaced"], "the one that was found late first");
        assert_eq!(bench.pop_all(), ["5", "6", "1", "2"]);
    }
}
