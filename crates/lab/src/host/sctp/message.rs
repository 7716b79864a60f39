use crate::host::frame_log::FrameId;
use braidcast_core::Instant;
use braidcast_sim::traffic::{Emission, Kind};

/// What stands at the beginning of each message; shorter ones are made this long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Number of the message, from 0.
    pub sequence: u64,
    /// When the application had it.
    pub sent: Instant,
    /// What it is.
    pub kind: Kind,
    /// Which of the source's flows it belongs to.
    pub flow: u16,
    /// Which frame of that kind and flow it belongs to.
    pub frame: u64,
}

impl Header {
    /// Its length in bytes.
    pub const LEN: usize = 27;

    /// The header of an emission of a source that started at `start`.
    pub(super) fn of(emission: &Emission, sequence: u64, start: Instant) -> Self {
        let Emission { at, kind, flow, frame, .. } = *emission;
        Self { sequence, sent: start + at, kind, flow, frame }
    }

    /// The frame on a [`FrameLog`](crate::host::FrameLog) that it belongs to.
    pub(super) const fn frame_id(&self) -> FrameId {
        (self.sent, self.flow, self.kind)
    }

    /// Writes it over the beginning of `message`, which must be long enough.
    pub(super) fn put(&self, message: &mut [u8]) {
        message[..8].copy_from_slice(&self.sequence.to_be_bytes());
        message[8..16].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        message[16] = self.kind.code();
        message[17..19].copy_from_slice(&self.flow.to_be_bytes());
        message[19..27].copy_from_slice(&self.frame.to_be_bytes());
    }

    /// The header of a message, unless it is none of ours.
    pub(super) fn get(message: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_be_bytes(*message.get(at..)?.first_chunk()?));
        Some(Self {
            sequence: number(0)?,
            sent: Instant::from_nanos(number(8)?),
            kind: Kind::from_code(*message.get(16)?)?,
            flow: u16::from_be_bytes(*message.get(17..)?.first_chunk()?),
            frame: number(19)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header { sequence: 7, sent: Instant::from_millis(9), kind: Kind::ALL[3].1, flow: 2, frame: 300 };
        let mut message = vec![0; 40];
        header.put(&mut message);
        assert_eq!(Header::get(&message), Some(header));
        assert_eq!(Header::get(&message[..26]), None);
    }
}
