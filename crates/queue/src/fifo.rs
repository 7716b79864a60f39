use crate::bag::Oldest;
use crate::rule::Rule;
use crate::store::Store;
use crate::{Discard, Outlook, Priority, Refused, Tag};
use core::fmt;

/// Everything goes in the order in which it came, as in plain DCCP (SBPN ch. 5).
#[derive(Debug)]
pub(crate) struct Fifo;

impl<M: fmt::Debug + Send> Rule<M> for Fifo {
    type Bag = Oldest<M>;

    fn push(
        store: &mut Store<M, Oldest<M>>,
        _: &Outlook,
        tag: Tag,
        message: M,
        _: &mut Vec<Discard<M>>,
    ) -> Result<(), Refused<M>> {
        store.put_or_refuse(Priority::FIRST, tag, message)
    }

    fn pop(store: &mut Store<M, Oldest<M>>, _: &Outlook, _: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        store.take()
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
