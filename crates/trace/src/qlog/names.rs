//! Words of a trace, as values.

use braidcast_core::events::{FrameKind, Loss, PathCondition, Purpose, Reduction, Sending, Unsent};

/// DCCP's packet types (RFC 4340 §5.1), by their number.
pub(super) const DCCP_TYPES: [&str; 10] =
    ["request", "response", "data", "ack", "dataack", "closereq", "close", "reset", "sync", "syncack"];

fn find<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, word: &str) -> Option<T> {
    all.iter().copied().find(|&it| name(it) == word)
}

pub(super) fn condition(word: &str) -> Option<PathCondition> {
    use PathCondition::{Active, Inactive, PotentiallyFailed, Unconfirmed};
    find(&[Unconfirmed, Active, PotentiallyFailed, Inactive], PathCondition::name, word)
}

pub(super) fn reduction(word: &str) -> Option<Reduction> {
    find(&[Reduction::Loss, Reduction::Mark, Reduction::Timeout], Reduction::name, word)
}

pub(super) fn purpose(word: &str) -> Option<Purpose> {
    use Purpose::{Announcement, Control, Copy, Handshake, New, Redundancy, Repeat, Sack};
    find(&[New, Sack, Repeat, Copy, Redundancy, Control, Announcement, Handshake], Purpose::name, word)
}

pub(super) fn sending(word: &str) -> Option<Sending> {
    use Sending::{Again, Copy, New};
    find(&[New, Again(Loss::Reported), Again(Loss::Timeout), Again(Loss::Silence), Copy], Sending::name, word)
}

pub(super) fn loss(word: &str) -> Option<Loss> {
    find(&[Loss::Reported, Loss::Timeout, Loss::Silence], Loss::name, word)
}

pub(super) fn unsent(word: &str) -> Option<Unsent> {
    find(&[Unsent::Expired, Unsent::Replaced, Unsent::NoRoom, Unsent::NotWorthIt], Unsent::name, word)
}

pub(super) fn frame_kind(word: &str) -> Option<FrameKind> {
    find(&FrameKind::ALL, FrameKind::name, word)
}

pub(super) fn dccp_type(word: &str) -> Option<u8> {
    DCCP_TYPES.iter().position(|&it| it == word).map(|number| number as u8)
}
