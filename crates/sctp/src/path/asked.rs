use crate::number::Order;

/// A packet that asks for its SACK at once (RFC 7053): it is answered by the SACK that it provokes.
///
/// Where packets of several paths share SACKs nobody can tell which of them a SACK waited for.
/// Judging by what it measures would lean to one side; what was asked about waited for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Asked {
    #[default]
    None,
    /// The packet that is written now asks.
    Here,
    /// One that ended before this place in the order asked, and the SACK has not come.
    Before(Order),
}

impl Asked {
    /// Returns `true` if no answer is waited for.
    pub(super) const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    /// A chunk that asks leaves; what was asked before it is answered first.
    pub(super) const fn ask(&mut self) {
        if self.is_none() {
            *self = Self::Here;
        }
    }

    /// The packet that was written has what went over the path before the place `next`.
    pub(super) const fn end_packet(&mut self, next: Order) {
        if matches!(self, Self::Here) {
            *self = Self::Before(next);
        }
    }

    /// A SACK newly acknowledges nothing later than the chunk in place `newest`; returns whether
    /// that is what the packet asked for. If it is later, the packet was lost, or the SACK was.
    pub(super) fn is_answered(&mut self, newest: Order) -> bool {
        let Self::Before(next) = *self else { return false };
        if newest.next() >= next {
            *self = Self::None;
        }
        newest.next() == next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sack_for_the_packet_that_asked_answers_it() {
        let mut asked = Asked::default();
        assert!(!asked.is_answered(Order::new(3)), "nobody asked");
        asked.end_packet(Order::new(4));
        assert!(asked.is_none());
        asked.ask();
        asked.end_packet(Order::new(7));
        asked.ask();
        asked.end_packet(Order::new(9));
        assert!(!asked.is_answered(Order::new(4)) && !asked.is_none());
        assert!(asked.is_answered(Order::new(6)));
        assert!(asked.is_none() && !asked.is_answered(Order::new(6)));
    }

    #[test]
    fn a_later_packet_says_that_the_answer_was_lost() {
        let mut asked = Asked::default();
        asked.ask();
        asked.end_packet(Order::new(7));
        assert!(!asked.is_answered(Order::new(7)));
        assert!(asked.is_none());
    }
}
