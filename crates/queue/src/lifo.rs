use crate::bag::Newest;
use crate::rule::Rule;
use crate::store::Store;
use crate::{Discard, Outlook, Priority, Refused, Tag};
use core::fmt;

/// The newest first; what would come too late is discarded when its turn comes (SBPN §6.3).
#[derive(Debug)]
pub(crate) struct Lifo;

impl<M: fmt::Debug + Send> Rule<M> for Lifo {
    type Bag = Newest<M>;

    fn push(
        store: &mut Store<M, Newest<M>>,
        _: &Outlook,
        tag: Tag,
        message: M,
        _: &mut Vec<Discard<M>>,
    ) -> Result<(), Refused<M>> {
        store.put_or_refuse(Priority::FIRST, tag, message)
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
