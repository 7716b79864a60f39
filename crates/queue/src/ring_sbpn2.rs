use crate::bag::Oldest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag};
use core::fmt;

/// The ring decides what goes into the queue, SBPN2 what goes out of it (SBPN §7.4).
#[derive(Debug)]
pub(crate) struct RingSbpn2<M>(Store<M, Oldest<M>>);

impl<M: fmt::Debug + Send> RingSbpn2<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for RingSbpn2<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        self.0.put_or_replace(tag, message, gone)
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
    fn the_ring_decides_what_goes_in_and_sbpn2_what_goes_out() {
        let mut bench = Bench::new(Method::RingSbpn2, Limits::messages(3));
        assert_eq!(bench.push([video(1, 90), video(2, 30), audio(3, 30), audio(4, 90)]), ["1 replaced"]);
        bench.pass(40);
        assert_eq!(bench.pop_all(), ["3 expired", "4", "2"], "the last one, though it is late");
    }
}
