use crate::bag::Soonest;
use crate::rule::Rule;
use core::fmt;

/// By priority, then by expiry; what would come too late is discarded when its turn comes (SBPN §3.4).
#[derive(Debug)]
pub(crate) struct Sbpn1;

impl<M: fmt::Debug + Send> Rule<M> for Sbpn1 {
    type Bag = Soonest<M>;
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
        assert_eq!(bench.push([video(6, 300), audio(7, 300)]), ["7 refused"], "audio, too, when it is full");
        bench.outlook.one_way_delay = Duration::from_millis(40);
        assert_eq!(bench.pop_all(), ["4", "3", "5 expired", "2", "1", "6"], "5 would come too late");
        // The vicious circle of SBPN §5.2.1 begins here: nothing goes, though something may.
        assert!(bench.push([audio(8, 30)]).is_empty());
        assert_eq!(bench.pop(), ["8 expired"]);
    }
}
