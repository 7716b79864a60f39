use crate::bag::Soonest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag};
use core::fmt;

/// SBPN1, but the last message goes even when it is too late, so that the allowed rate falls less (SBPN §3.5).
#[derive(Debug)]
pub(crate) struct Sbpn2<M>(Store<M, Soonest<M>>);

impl<M: fmt::Debug + Send> Sbpn2<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for Sbpn2<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, _: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        self.0.put_or_refuse(tag.priority, tag, message)
    }

    fn peek(&self) -> Option<&Tag> {
        self.0.head()
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        self.0.take_unexpired_or_last(outlook, gone)
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
    fn the_last_message_goes_though_it_is_late() {
        let mut bench = Bench::new(Method::Sbpn2, Limits::messages(6));
        assert!(bench.push([video(1, 30), audio(2, 10), audio(3, 20)]).is_empty());
        bench.pass(40);
        assert_eq!(bench.pop_all(), ["2 expired", "3 expired", "1"]);
    }
}
