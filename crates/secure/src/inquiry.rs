//! What two ends that have proved who they are ask each other about another association of theirs:
//! control messages among the key messages, so reliable, in order, and in records.

use crate::Alias;
use std::collections::VecDeque;

/// First byte of a question's control message.
const QUESTION: u8 = 2;
/// First byte of an answer's: it is there, or not.
const THERE: u8 = 3;
const GONE: u8 = 4;

/// A question about another association of both ends, or its answer. The alias in it is known
/// to nobody else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inquiry {
    /// Is the association with this alias still there?
    Question(Alias),
    /// It is, or it is not.
    Answer(Alias, bool),
}

impl Inquiry {
    /// Appends the control message, behind the byte that says it is one.
    pub(crate) fn emit(self, out: &mut Vec<u8>) {
        let (kind, alias) = match self {
            Self::Question(alias) => (QUESTION, alias),
            Self::Answer(alias, true) => (THERE, alias),
            Self::Answer(alias, false) => (GONE, alias),
        };
        out.push(kind);
        out.extend_from_slice(&alias.0);
    }

    pub(crate) fn parse(message: &[u8]) -> Option<Self> {
        let (kind, alias) = message.split_first()?;
        let alias = Alias(alias.try_into().ok()?);
        match *kind {
            QUESTION => Some(Self::Question(alias)),
            THERE => Some(Self::Answer(alias, true)),
            GONE => Some(Self::Answer(alias, false)),
            _ => None,
        }
    }
}

/// Inquiries of the peer that wait for the endpoint.
#[derive(Debug, Default)]
pub(crate) struct Inquiries(VecDeque<Inquiry>);

impl Inquiries {
    /// More than that are dropped: an honest peer has one or two associations at an address.
    const MOST: usize = 32;

    pub(crate) fn push(&mut self, inquiry: Inquiry) {
        if self.0.len() < Self::MOST {
            self.0.push_back(inquiry);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Inquiry> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inquiry_is_read_as_written_and_nothing_else_is_one() {
        for inquiry in [Inquiry::Question(Alias([7; 16])), Inquiry::Answer(Alias([8; 16]), true)] {
            let mut message = Vec::new();
            inquiry.emit(&mut message);
            assert_eq!(Inquiry::parse(&message), Some(inquiry));
            assert_eq!(Inquiry::parse(&message[..16]), None);
            message.push(0);
            assert_eq!(Inquiry::parse(&message), None);
        }
        assert_eq!((Inquiry::parse(&[]), Inquiry::parse(&[1]), Inquiry::parse(&[9; 17])), (None, None, None));
    }

    #[test]
    fn a_peer_that_asks_without_end_fills_no_memory() {
        let mut inquiries = Inquiries::default();
        (0..1000).for_each(|n| inquiries.push(Inquiry::Question(Alias([n as u8; 16]))));
        assert_eq!(core::iter::from_fn(|| inquiries.pop()).count(), Inquiries::MOST);
    }
}
