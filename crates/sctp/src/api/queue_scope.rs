use braidcast_core::named;

/// Who decides among messages that wait in a queue ([`Options::queue`](crate::Options)): the queue
/// alone, or stream priorities first.
///
/// Messages wait whole, and which one goes is decided when a path has room for it. An ordered
/// stream is in the order in which its messages leave the queue: they are numbered then, so one
/// that was discarded leaves no hole, and the newest first (`lifo`) is delivered newest first. What
/// has left the queue is sent to its end; with I-DATA a more important message may overtake it
/// there, if it is of another stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueScope {
    /// One queue for the association, with [`SendOptions::priority`](crate::SendOptions) in place
    /// of the streams' priorities and of [`StreamOrder`](crate::StreamOrder).
    #[default]
    Alone,
    /// A queue for each [`Priority`](crate::Priority) of streams, each of the length that was asked
    /// for and an eighth of the bytes; the queue decides among what is equal for the streams. A
    /// change of a stream's priority holds for messages to come.
    Under,
}

named! {
    /// Both, by the name that command line and scenarios use.
    QueueScope, "scope of a queue" {
        "alone" => Alone,
        "under" => Under,
    }
}
