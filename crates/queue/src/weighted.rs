use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag, Why};
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

/// What a message's score is made of. The score is a time, and the lowest goes first: when the message expires, later by so
/// much for each priority below the first and for each 1000 bytes. As all messages age alike, a score never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weights {
    /// For each priority. Default 100 ms, by which sound goes before pictures of the same moment, but old pictures before
    /// sound that has long to live.
    pub priority: Duration,
    /// For each 1000 bytes. Default 5 ms.
    pub kilobyte: Duration,
    /// The life of a message that never expires, from when it came. Default 1 s.
    pub lifetime: Duration,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            priority: Duration::from_millis(100),
            kilobyte: Duration::from_millis(5),
            lifetime: Duration::from_secs(1),
        }
    }
}

/// By score, from both ends (SBPN §8.4.4). SBPN2 decides what is too late; a full queue gives up the worst.
#[derive(Debug)]
pub(crate) struct Weighted<M> {
    /// By score, and a count that breaks ties.
    messages: BTreeMap<(u64, u64), (Tag, M)>,
    bytes: usize,
    count: u64,
    limits: Limits,
    weights: Weights,
}

impl<M> Weighted<M> {
    pub(crate) fn new(limits: Limits, weights: Weights) -> Self {
        let limits = Limits { messages: limits.messages.max(1), ..limits };
        Self { messages: BTreeMap::new(), bytes: 0, count: 0, limits, weights }
    }

    fn score(&self, outlook: &Outlook, tag: &Tag) -> u64 {
        let expiry = tag.expiry.unwrap_or(outlook.now + self.weights.lifetime);
        let size = self.weights.kilobyte.mul_f64(tag.len as f64 / 1000.0);
        (expiry + self.weights.priority * u32::from(tag.priority.get()) + size).as_nanos()
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for Weighted<M> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        let key = (self.score(outlook, &tag), self.count);
        self.count += 1;
        self.bytes += tag.len;
        self.messages.insert(key, (tag, message));
        while self.messages.len() > self.limits.messages || self.bytes > self.limits.bytes {
            let Some((worst, (tag, message))) = self.messages.pop_last() else { break };
            self.bytes -= tag.len;
            gone.push(Discard { why: if worst == key { Why::NoRoom } else { Why::Replaced }, tag, message });
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Tag> {
        self.messages.first_key_value().map(|(_, (tag, _))| tag)
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        loop {
            let (_, (tag, message)) = self.messages.pop_first()?;
            self.bytes -= tag.len;
            if self.messages.is_empty() || !tag.is_expired(outlook) {
                return Some((tag, message));
            }
            gone.push(Discard { why: Why::Expired, tag, message });
        }
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, b_frame, video};
    use crate::{Limits, Method};

    #[test]
    fn urgency_priority_and_size_are_weighed() {
        let mut bench = Bench::new(Method::Weighted, Limits::messages(4));
        // Scores: 300.5, 305 (200 + 100 + 5), 390.5 and 405 (100 + 300 + 5).
        assert!(bench.push([audio(1, 300), video(2, 200), audio(3, 390), b_frame(4, 100)]).is_empty());
        assert_eq!(bench.push([video(5, 150)]), ["4 replaced"], "255 is better than the worst");
        assert_eq!(bench.push([b_frame(6, 300)]), ["6 no room"], "605 would be the worst");
        assert_eq!(bench.pop_all(), ["5", "1", "2", "3"]);
    }

    #[test]
    fn the_last_message_goes_though_it_is_late() {
        let mut bench = Bench::new(Method::Weighted, Limits::NONE);
        assert!(bench.push([audio(1, 10), audio(2, 20)]).is_empty());
        bench.pass(30);
        assert_eq!(bench.pop_all(), ["1 expired", "2"]);
    }
}
