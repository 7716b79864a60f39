//! Doubt that a protected peer still has its state. A word in clear says that it has not, which
//! anybody may have said; or a newcomer proved by its key handshake to be the same peer.
//!
//! Neither ends anything, nor does silence alone. A newcomer is asked in a record if it still has
//! the association ([`Inquiry`](crate::Inquiry)). Only if it says no, and the association's own
//! peer then sends no record either in the time that it has, the association is over.

use braidcast_core::Instant;
use core::time::Duration;

/// What is not known about an association's peer, and what is done to find out.
#[derive(Debug, Default)]
pub struct Doubt {
    raised: Option<Raised>,
    /// When another association was last wanted to find out.
    asked: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Raised {
    /// Whoever else is with the same peer was to be asked already.
    looked_around: bool,
    newcomer: Option<Newcomer>,
    /// When the endpoint is to ask by another association who is there; of the end that connected.
    ask: Option<Instant>,
}

/// An association that proved to be with the same peer.
#[derive(Clone, Copy, Debug)]
struct Newcomer {
    /// It does not only ask. Then a record of the older one does not end the doubt: it may have been
    /// under way when the peer lost its state.
    lasting: bool,
    /// It said that it has not the older one: until then its peer has time to send a record.
    until: Option<Instant>,
    /// How often in a row it sent none in that time.
    silent: u8,
}

/// What follows from it that time passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Wait,
    /// The peer is to be asked for a record once more, and [`Doubt::wait_until`] told how long it
    /// has for that.
    AskAgain,
    /// The association is over.
    Over,
}

impl Doubt {
    /// Time that a peer has, beyond two round trips, to say that it is still there.
    pub const LEAST: Duration = Duration::from_millis(300);
    /// Times in a row that a peer beside a newcomer that stays may let pass without a record: what
    /// it sends may get lost.
    const MOST_SILENT: u8 = 1;
    /// Between two associations that ask who is there.
    const ASK_EVERY: Duration = Duration::from_secs(1);
    /// An association that asks and has come to nothing by then gives way to the next: four round
    /// trips of 1.2 s, and some losses.
    const ASK_PATIENCE: Duration = Duration::from_secs(8);

    /// Returns `true` if there is any.
    pub const fn is_raised(&self) -> bool {
        self.raised.is_some()
    }

    /// A word in clear says that the peer lost its state. If this end `may_ask`, it asks by another
    /// association who is there: once a second at most, as such a word costs nobody anything.
    /// Returns `true` if there was no doubt before.
    pub fn raise(&mut self, now: Instant, may_ask: bool) -> bool {
        let is_new = self.raised.is_none();
        let earliest = self.asked.map_or(now, |asked| asked + Self::ASK_EVERY);
        let raised = self.raised.get_or_insert_default();
        if may_ask {
            raised.ask = Some(raised.ask.unwrap_or(now).max(earliest));
        }
        is_new
    }

    /// Returns `true`, once, if a word in clear raised it: another association with the same peer may
    /// know more, if there is one, as a newcomer would.
    pub fn look_around(&mut self) -> bool {
        let Some(raised) = self.raised.as_mut().filter(|it| it.newcomer.is_none() && !it.looked_around) else {
            return false;
        };
        raised.looked_around = true;
        true
    }

    /// A newcomer proved to be the same peer, and stays if it is `lasting`.
    pub fn succeed(&mut self, lasting: bool) {
        let raised = self.raised.get_or_insert_default();
        raised.newcomer = Some(Newcomer { lasting, until: None, silent: 0 });
    }

    /// The newcomer said that its end has not this association. Returns `true` if the peer is to be
    /// asked for a record now, and [`wait_until`](Self::wait_until) told how long it has for that.
    pub fn deny(&mut self) -> bool {
        self.raised.and_then(|raised| raised.newcomer).is_some_and(|newcomer| newcomer.until.is_none())
    }

    /// The peer has until then to send a record.
    pub fn wait_until(&mut self, until: Instant) {
        if let Some(newcomer) = self.raised.as_mut().and_then(|raised| raised.newcomer.as_mut()) {
            newcomer.until = Some(until);
        }
    }

    /// There is none any more: the newcomer said that the association is there, or has gone.
    pub fn dispel(&mut self) {
        self.raised = None;
    }

    /// A record came, which only the peer can have made.
    pub fn heard(&mut self) {
        match self.raised.as_mut().and_then(|raised| raised.newcomer.as_mut()) {
            Some(newcomer) if newcomer.lasting => newcomer.silent = 0,
            _ => self.raised = None,
        }
    }

    /// Returns `true` if the endpoint is to ask now, by another association, who is there.
    pub fn take_question(&mut self, now: Instant) -> bool {
        let ask = self.raised.as_mut().and_then(|raised| raised.ask.as_mut());
        let Some(ask) = ask.filter(|at| **at <= now) else { return false };
        *ask = now + Self::ASK_PATIENCE;
        self.asked = Some(now);
        true
    }

    /// The association that was to ask came to nothing: another one does, if there is still doubt.
    pub fn ask_again(&mut self, now: Instant) {
        let earliest = self.asked.map_or(now, |asked| asked + Self::ASK_EVERY);
        if let Some(raised) = &mut self.raised {
            raised.newcomer = raised.newcomer.filter(|newcomer| newcomer.lasting);
            raised.ask = Some(now.max(earliest));
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, or a question.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let raised = self.raised?;
        [raised.newcomer.and_then(|newcomer| newcomer.until), raised.ask].into_iter().flatten().min()
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Instant) -> Verdict {
        let newcomer = self.raised.as_mut().and_then(|raised| raised.newcomer.as_mut());
        let Some(newcomer) = newcomer.filter(|it| it.until.is_some_and(|until| until <= now)) else {
            return Verdict::Wait;
        };
        if !newcomer.lasting || newcomer.silent >= Self::MOST_SILENT {
            return Verdict::Over;
        }
        newcomer.silent += 1;
        Verdict::AskAgain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn neither_a_word_in_clear_nor_silence_ends_anything() {
        let mut doubt = Doubt::default();
        assert!(!doubt.look_around());
        assert!(doubt.raise(at(0), false) && !doubt.raise(at(1), false));
        assert!(doubt.look_around() && !doubt.look_around());
        assert_eq!((doubt.poll_timeout(), doubt.handle_timeout(at(1 << 40))), (None, Verdict::Wait));
        doubt.succeed(true);
        assert_eq!((doubt.poll_timeout(), doubt.handle_timeout(at(1 << 40))), (None, Verdict::Wait));
        doubt.dispel();
        assert!(!doubt.is_raised() && !doubt.deny(), "the newcomer's word came too late");
    }

    #[test]
    fn a_newcomer_that_stays_and_denies_it_and_silence_for_two_times_are_the_end() {
        let mut doubt = Doubt::default();
        doubt.succeed(true);
        assert!(doubt.deny());
        doubt.wait_until(at(400));
        assert!(!doubt.deny(), "it says so once");
        assert_eq!(doubt.handle_timeout(at(399)), Verdict::Wait);
        assert_eq!(doubt.handle_timeout(at(400)), Verdict::AskAgain);
        doubt.wait_until(at(800));
        doubt.heard(); // It was under way: the time begins anew, and the doubt stays.
        assert_eq!((doubt.is_raised(), doubt.handle_timeout(at(800))), (true, Verdict::AskAgain));
        doubt.wait_until(at(1200));
        assert_eq!(doubt.handle_timeout(at(1200)), Verdict::Over);
    }

    #[test]
    fn one_that_only_asks_is_done_with_a_record() {
        let mut doubt = Doubt::default();
        doubt.raise(at(0), true);
        doubt.succeed(false);
        doubt.heard();
        assert!(!doubt.is_raised());
        doubt.raise(at(0), true);
        doubt.succeed(false);
        assert!(doubt.deny());
        doubt.wait_until(at(400));
        assert_eq!(doubt.handle_timeout(at(400)), Verdict::Over);
    }

    #[test]
    fn questions_are_a_second_apart_at_least() {
        let mut doubt = Doubt::default();
        doubt.raise(at(0), true);
        assert!(doubt.take_question(at(0)) && !doubt.take_question(at(7999)), "it has eight seconds");
        assert!(doubt.take_question(at(8000)));
        doubt.ask_again(at(8100));
        assert_eq!(doubt.poll_timeout(), Some(at(9000)));
        doubt.heard();
        doubt.raise(at(8200), true);
        assert!(!doubt.take_question(at(8999)) && doubt.take_question(at(9000)));
    }
}
