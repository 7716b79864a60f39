use crate::bag::Oldest;
use crate::rule::Rule;
use crate::store::Store;
use crate::{Discard, Outlook, Refused, Tag};
use core::fmt;

/// The ring decides what goes into the queue, SBPN2 what goes out of it (SBPN §7.4).
#[derive(Debug)]
pub(crate) struct RingSbpn2;

impl<M: fmt::Debug + Send> Rule<M> for RingSbpn2 {
    type Bag = Oldest<M>;

    fn push(
        store: &mut Store<M, Oldest<M>>,
        _: &Outlook,
        tag: Tag,
        message: M,
        gone: &mut Vec<Discard<M>>,
    ) -> Result<(), Refused<M>> {
        store.put_or_replace(tag, message, gone)
    }

    fn pop(store: &mut Store<M, Oldest<M>>, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        store.take_unexpired_or_last(outlook, gone)
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
