use crate::bag::Oldest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Priority, Refused, SendQueue, Tag};
use core::fmt;

/// Everything goes in the order in which it came, as in plain DCCP (SBPN ch. 5).
#[derive(Debug)]
pub(crate) struct Fifo<M>(Store<M, Oldest<M>>);

impl<M: fmt::Debug + Send> Fifo<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for Fifo<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, _: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        self.0.put_or_refuse(Priority::FIRST, tag, message)
    }

    fn peek(&self) -> Option<&Tag> {
        self.0.head()
    }

    fn pop(&mut self, _: &Outlook, _: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        self.0.take()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, video};
    use crate::{Limits, Method};

    #[test]
    fn all_go_as_they_came_however_late() {
        let mut bench = Bench::new(Method::Fifo, Limits::messages(3));
        assert_eq!(bench.push([video(1, 10), audio(2, 10), video(3, 99), audio(4, 99)]), ["4 refused"]);
        bench.pass(50);
        assert_eq!(bench.pop_all(), ["1", "2", "3"]);
    }
}
