use crate::bag::Soonest;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag};
use core::fmt;

/// By priority, then by expiry; what would come too late is discarded when its turn comes (SBPN §3.4).
#[derive(Debug)]
pub(crate) struct Sbpn1<M>(Store<M, Soonest<M>>);

impl<M: fmt::Debug + Send> Sbpn1<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for Sbpn1<M> {
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
    use core::time::Duration;

    #[test]
    fn sound_first_then_what_expires_soonest_and_nothing_late() {
        let mut bench = Bench::new(Method::Sbpn1, Limits::messages(6));
        assert!(bench.push([video(1, 200), video(2, 100), audio(3, 200), audio(4, 150), video(5, 40)]).is_empty());
        assert_eq!(bench.push([video(6, 300), audio(7, 300)]), ["7 refused"], "sound, too, when it is full");
        bench.outlook.one_way_delay = Duration::from_millis(40);
        assert_eq!(bench.pop_all(), ["4", "3", "5 expired", "2", "1", "6"], "5 would come when it is of no use");
        // The vicious circle of SBPN §5.2.1 begins here: nothing goes, though something may.
        assert!(bench.push([audio(8, 30)]).is_empty());
        assert_eq!(bench.pop(), ["8 expired"]);
    }
}
