use braidcast_core::Instant;

/// The frame that a message belongs to: what it needs to be shown, and what needs it.
///
/// A frame may take several messages; each says the same of it. Queues that discard by dependency
/// ([`ByWorth`](crate::Method::ByWorth)) know nothing else of the media. A message without a frame
/// neither needs another one nor is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// Its number. Within an elementary stream, frames that are decoded later have higher numbers;
    /// no two frames share one.
    pub id: u64,
    /// The elementary stream, for example the PID in a transport stream.
    pub stream: u16,
    /// The group of pictures: the number of the frame that begins it. A frame outside of any group
    /// has its own number.
    pub group: u64,
    /// The frame that it references, of the same group. `None`: it can be shown by itself. A frame
    /// that the queue never had, for example one that an earlier association carried, counts as
    /// received.
    pub needs: Option<u64>,
    /// Which frames need it.
    pub needed_by: NeededBy,
    /// Bytes of all its messages, without their headers.
    pub bytes: u32,
    /// When it is to be shown: the latest arrival, by the sender's clock, that is in time for that.
    /// A message's [`expiry`](crate::Tag::expiry) may be later, if a frame that comes too late to
    /// be shown still helps others. `None`: at any time.
    pub due: Option<Instant>,
}

/// Which frames cannot be shown without a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NeededBy {
    /// None: B frames that are no references, audio, subtitles.
    Nothing,
    /// Those that name it in [`Frame::needs`]: B frames that are references.
    Some,
    /// All that follow it in its group: I and P frames.
    Rest,
}

impl Frame {
    /// Returns the frame `id` of the elementary stream `stream`, which needs no other and which no
    /// other needs.
    pub const fn alone(id: u64, stream: u16, bytes: u32, due: Option<Instant>) -> Self {
        Self { id, stream, group: id, needs: None, needed_by: NeededBy::Nothing, bytes, due }
    }

    /// Returns `true` if it needs no other frame and its group needs it: an I frame.
    pub const fn begins_group(&self) -> bool {
        self.needs.is_none() && matches!(self.needed_by, NeededBy::Rest)
    }

    /// Returns `true` if no other frame needs it and it needs none.
    pub const fn is_alone(&self) -> bool {
        self.needs.is_none() && matches!(self.needed_by, NeededBy::Nothing)
    }

    /// Returns `true` if both are of the same group of the same elementary stream.
    pub const fn is_beside(&self, other: &Self) -> bool {
        self.stream == other.stream && self.group == other.group
    }
}
