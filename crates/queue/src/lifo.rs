use crate::bag::Newest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Priority, Refused, SendQueue, Tag};
use core::fmt;

/// The newest first; what would come too late is discarded when its turn comes (SBPN §6.3).
#[derive(Debug)]
pub(crate) struct Lifo<M>(Store<M, Newest<M>>);

impl<M: fmt::Debug + Send> Lifo<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for Lifo<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, _: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        self.0.put_or_refuse(Priority::FIRST, tag, message)
    }

    fn peek(&self) -> Option<&Tag> {
        self.0.head()
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        self.0.take_unexpired(outlook, gone)
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
    fn the_newest_goes_first_be_it_sound_or_not() {
        let mut bench = Bench::new(Method::Lifo, Limits::messages(4));
        assert_eq!(
            bench.push([audio(1, 30), audio(2, 200), video(3, 200), video(4, 30), audio(5, 200)]),
            ["5 refused"]
        );
        bench.pass(40);
        assert_eq!(bench.pop_all(), ["4 expired", "3", "2", "1 expired"]);
    }
}
