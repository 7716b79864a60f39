use crate::bag::Newest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag};
use core::fmt;

/// By priority, and the newest of each first; what would come too late is discarded when its turn comes (SBPN §6.3).
#[derive(Debug)]
pub(crate) struct LifoPriority<M>(Store<M, Newest<M>>);

impl<M: fmt::Debug + Send> LifoPriority<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for LifoPriority<M> {
    fn push(&mut self, _: &Outlook, tag: Tag, message: M, _: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        self.0.put_or_refuse(tag.priority, tag, message)
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
    fn the_newest_sound_goes_first() {
        let mut bench = Bench::new(Method::LifoPriority, Limits::messages(4));
        assert!(bench.push([audio(1, 30), audio(2, 200), video(3, 200), video(4, 200)]).is_empty());
        bench.pass(40);
        assert_eq!(bench.pop_all(), ["2", "1 expired", "4", "3"]);
    }
}
