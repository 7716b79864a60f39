use crate::bag::Oldest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag};
use core::fmt;
use core::time::Duration;

/// The ring, whose late messages never go; when nothing is left to send, padding goes in their
/// place, because TFRC takes silence for a wish to send less (SBPN §8.4.3, and §5.2.1 for the
/// vicious circle).
#[derive(Debug)]
pub(crate) struct KeepAlive<M> {
    store: Store<M, Oldest<M>>,
    /// Bytes that were discarded and not made up for.
    owed: usize,
}

/// Until the round trip is known.
const ROUND_TRIP: Duration = Duration::from_millis(200);

impl<M: fmt::Debug + Send> KeepAlive<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { store: Store::new(limits), owed: 0 }
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for KeepAlive<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        self.store.put_or_replace(tag, message, gone)
    }

    fn peek(&self) -> Option<&Tag> {
        self.store.head()
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        let before = gone.len();
        let next = self.store.take_unexpired(outlook, gone);
        self.owed += gone[before..].iter().map(|it| it.tag.len).sum::<usize>();
        next
    }

    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.store.first_on_time(outlook).map(|(.., tag)| tag)
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        self.store.take_on_time(outlook)
    }

    fn len(&self) -> usize {
        self.store.len()
    }

    fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// No more than a round trip takes at the allowed rate: TFRC looks back no further.
    fn padding(&self, outlook: &Outlook) -> usize {
        let round_trip = if outlook.one_way_delay.is_zero() { ROUND_TRIP } else { outlook.one_way_delay * 2 };
        let most = outlook.rate.map_or(0.0, |rate| rate * round_trip.as_secs_f64());
        if self.store.len() == 0 { self.owed.min(most as usize) } else { 0 }
    }

    fn padded(&mut self, bytes: usize) {
        self.owed = self.owed.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, video};
    use crate::{Limits, Method};
    use core::time::Duration;

    #[test]
    fn padding_takes_the_place_of_what_was_late() {
        let mut bench = Bench::new(Method::KeepAlive, Limits::messages(5));
        bench.outlook.rate = Some(10_000.0);
        bench.outlook.one_way_delay = Duration::from_millis(40);
        assert!(bench.push([video(1, 30), audio(2, 90), audio(3, 30)]).is_empty());
        assert_eq!(bench.pop(), ["2"], "in the order of arrival");
        assert_eq!(bench.queue.padding(&bench.outlook), 0, "while messages wait they go");
        assert_eq!(bench.pop(), ["3 expired", "1 expired"]);
        assert_eq!(bench.queue.padding(&bench.outlook), 800, "1100 bytes are owed; a round trip carries 800");
        bench.queue.padded(800);
        assert_eq!(bench.queue.padding(&bench.outlook), 300);
        bench.queue.padded(300);
        assert_eq!(bench.queue.padding(&bench.outlook), 0);
    }
}
