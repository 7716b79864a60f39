use crate::bag::Oldest;
use crate::rule::Rule;
use crate::store::Store;
use crate::{Discard, Outlook, Refused, Tag};
use core::fmt;

/// By priority; a full queue makes room by dropping the oldest of what matters least. All that
/// waits is sent, however late (SBPN §7.2, fig. 7.1, after Kohler and Lai).
#[derive(Debug)]
pub(crate) struct Ring;

impl<M: fmt::Debug + Send> Rule<M> for Ring {
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

    fn pop(store: &mut Store<M, Oldest<M>>, _: &Outlook, _: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        store.take()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, b_frame, video};
    use crate::{Limits, Method, Tag};

    #[test]
    fn the_oldest_pictures_make_room_and_nothing_is_too_late() {
        let mut bench = Bench::new(Method::Ring, Limits::messages(3));
        assert!(bench.push([video(1, 10), audio(2, 10), video(3, 10)]).is_empty());
        assert_eq!(bench.push([video(4, 10), audio(5, 10), audio(6, 10)]), ["1 replaced", "3 replaced", "4 replaced"]);
        assert_eq!(bench.push([video(7, 10)]), ["7 no room"], "there is only audio");
        assert_eq!(bench.push([audio(8, 10)]), ["2 replaced"]);
        bench.pass(50);
        assert_eq!(bench.pop_all(), ["5", "6", "8"]);
    }

    #[test]
    fn layers_go_from_the_least_important_up() {
        let mut bench = Bench::new(Method::Ring, Limits::messages(3));
        assert!(bench.push([b_frame(1, 10), video(2, 10), b_frame(3, 10)]).is_empty());
        assert_eq!(bench.push([video(4, 10), audio(5, 10), b_frame(6, 10)]), ["1 replaced", "3 replaced", "6 no room"]);
        assert_eq!(bench.pop_all(), ["5", "2", "4"]);
    }

    #[test]
    fn room_is_made_in_bytes_too_but_never_in_vain() {
        let mut bench = Bench::new(Method::Ring, Limits { messages: 100, bytes: 2150 });
        assert!(bench.push([video(1, 10), audio(2, 10), audio(3, 10)]).is_empty());
        assert_eq!(bench.push([video(4, 10)]), ["1 replaced"]);
        assert!(bench.push([audio(5, 10), audio(6, 10), audio(7, 10), audio(8, 10)]).is_empty());
        assert_eq!(
            bench.push([audio(9, 10), (10, Tag { len: 2150, ..audio(10, 10).1 })]),
            [
                "4 replaced",
                "2 replaced",
                "3 replaced",
                "5 replaced",
                "6 replaced",
                "7 replaced",
                "8 replaced",
                "9 replaced"
            ]
        );
        assert_eq!(bench.push([(11, Tag { len: 2151, ..audio(11, 10).1 })]), ["11 refused"], "larger than the queue");
        assert_eq!(bench.push([(12, Tag { len: 2000, ..video(12, 10).1 })]), ["12 no room"], "and 10 stays");
        assert_eq!(bench.pop_all(), ["10"]);
    }
}
