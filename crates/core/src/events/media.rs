use crate::{Instant, PathId};

/// What happens to the frames of a stream. Frames are numbered by the sender from 0; numbers wrap after 2³² of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MediaEvent {
    /// At the sender: a frame was captured and handed to the transport.
    FrameCaptured {
        /// Its number. The transport's messages that carry it have the number `256 · frame + kind`.
        frame: u32,
        /// What it is.
        kind: FrameKind,
        /// `true` if other frames are predicted from it.
        reference: bool,
        /// Its bytes.
        bytes: u32,
        /// Messages that carry it.
        parts: u16,
        /// When its first packet was captured.
        captured: Instant,
        /// When it is to be shown; `None` for what is never too late.
        deadline: Option<Instant>,
        /// Presentation time, 90 kHz.
        pts: Option<u64>,
    },
    /// At the sender: a frame was captured and could not be handed to the transport.
    FrameUnsent {
        /// Its number.
        frame: u32,
        /// What it is.
        kind: FrameKind,
    },
    /// At the receiver: all of a frame is there.
    FrameArrived {
        /// Its number.
        frame: u32,
        /// What it is.
        kind: FrameKind,
        /// `true` if other frames are predicted from it.
        reference: bool,
        /// Its bytes.
        bytes: u32,
        /// The path over which its last part came.
        path: PathId,
        /// When its first packet was captured, by the receiver's clock as far as known.
        captured: Instant,
        /// When it is to be shown.
        due: Instant,
        /// `true` if it came before that.
        on_time: bool,
        /// Presentation time, 90 kHz.
        pts: Option<u64>,
    },
}

/// What a frame is; the same as `Kind` of `braidcast-media`, in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// Program tables.
    Tables,
    /// An audio packet.
    Audio,
    /// A frame that needs no other.
    I,
    /// A frame predicted from earlier ones.
    P,
    /// A frame predicted from both sides.
    B,
    /// Any other part of a transport stream.
    Other,
    /// Bytes of an input that is no transport stream.
    Data,
}

impl FrameKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [Self::Tables, Self::Audio, Self::I, Self::P, Self::B, Self::Other, Self::Data];

    /// The kind in this place of [`ALL`](Self::ALL); those beyond are [`Other`](Self::Other).
    pub const fn of(index: usize) -> Self {
        if index < Self::ALL.len() { Self::ALL[index] } else { Self::Other }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Audio => "audio",
            Self::I => "I",
            Self::P => "P",
            Self::B => "B",
            Self::Other => "other",
            Self::Data => "data",
        }
    }
}
