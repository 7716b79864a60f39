use crate::bag::Soonest;
use crate::rule::Rule;
use crate::store::Store;
use crate::{Discard, Outlook, Tag};
use core::fmt;

/// SBPN1, but the last message goes even when it is too late, so that the allowed rate falls less (SBPN §3.5).
#[derive(Debug)]
pub(crate) struct Sbpn2;

impl<M: fmt::Debug + Send> Rule<M> for Sbpn2 {
    type Bag = Soonest<M>;

    fn pop(store: &mut Store<M, Soonest<M>>, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        store.take_unexpired_or_last(outlook, gone)
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
