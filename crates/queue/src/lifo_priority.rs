use crate::bag::Newest;
use crate::rule::Rule;
use core::fmt;

/// By priority, and the newest of each first; what would come too late is discarded when its turn comes (SBPN §6.3).
#[derive(Debug)]
pub(crate) struct LifoPriority;

impl<M: fmt::Debug + Send> Rule<M> for LifoPriority {
    type Bag = Newest<M>;
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
