use core::time::Duration;

/// How old a message is that was sent with a deadline, and if it came in time, as far as both ends
/// told each other the times ([`Options::timed_messages`](crate::Options)).
///
/// It is measured without synchronised clocks: the quickest of the sender's packets is taken to have
/// been under way for half of the round trip of then, and all others are measured by that one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Timing {
    /// Time from when it was given to the sender until it could be received here.
    pub age: Duration,
    /// For how long its deadline was over then. 0: it came in time.
    pub late: Duration,
    /// How far both may be off: half of that round trip, and 200 ppm of the time since then and of the
    /// age, for clocks that do not run alike.
    pub uncertainty: Duration,
}

impl Timing {
    /// Returns `true` if it came after its deadline, be it by less than the
    /// [`uncertainty`](Self::uncertainty).
    #[must_use]
    pub const fn is_late(&self) -> bool {
        !self.late.is_zero()
    }
}
