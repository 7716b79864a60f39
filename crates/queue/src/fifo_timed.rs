use crate::bag::Oldest;
use crate::rule::Rule;
use crate::store::Store;
use crate::{Discard, Outlook, Priority, Refused, Tag};
use core::fmt;
use core::time::Duration;

/// In the order of arrival, without what has waited beyond its expiry: timed reliability as it is
/// usual (RFC 7496 §4.1). The way to the receiver is not reckoned with.
#[derive(Debug)]
pub(crate) struct FifoTimed;

impl<M: fmt::Debug + Send> Rule<M> for FifoTimed {
    type Bag = Oldest<M>;

    fn push(
        store: &mut Store<M, Oldest<M>>,
        outlook: &Outlook,
        tag: Tag,
        message: M,
        gone: &mut Vec<Discard<M>>,
    ) -> Result<(), Refused<M>> {
        store.drop_expired_for(tag.len, &here(outlook), gone);
        store.put_or_refuse(Priority::FIRST, tag, message)
    }

    fn pop(store: &mut Store<M, Oldest<M>>, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        store.take_unexpired(&here(outlook), gone)
    }
}

/// The same, as if the receiver were here.
fn here(outlook: &Outlook) -> Outlook {
    Outlook { one_way_delay: Duration::ZERO, ..*outlook }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, video};
    use crate::{Limits, Method};
    use core::time::Duration;

    #[test]
    fn what_is_late_makes_room_and_never_goes() {
        let mut bench = Bench::new(Method::FifoTimed, Limits::messages(3));
        assert_eq!(bench.push([video(1, 10), audio(2, 10), video(3, 99), audio(4, 99)]), ["4 refused"]);
        bench.pass(50);
        bench.outlook.one_way_delay = Duration::from_millis(60); // which changes nothing
        assert_eq!(bench.push([audio(5, 99)]), ["1 expired"]);
        assert_eq!(bench.pop_all(), ["2 expired", "3", "5"]);
    }
}
