use super::Association;
use crate::path::PathIndex;
use crate::wire;
use braidcast_core::Writer;

/// A control chunk that waits to be sent.
#[derive(Debug)]
pub(super) struct Control {
    /// The path it goes over.
    pub(super) path: PathIndex,
    /// The verification tag of its packet: 0 for INIT.
    pub(super) tag: u32,
    /// The chunk as on the wire, padded.
    pub(super) bytes: Vec<u8>,
    /// Nothing may share its packet (RFC 9260 §6.10: INIT and the like).
    pub(super) alone: bool,
}

impl Association {
    /// Control chunks that wait at most; a peer that makes us answer more than that loses the answers.
    pub(super) const MAX_CONTROL: usize = 64;

    /// Queues a control chunk for `path`.
    pub(super) fn control_chunk(&mut self, path: PathIndex, chunk: &wire::Chunk<'_>) {
        if self.control.len() >= Self::MAX_CONTROL {
            return;
        }
        let mut bytes = Vec::new();
        chunk.emit(&mut Writer::new(&mut bytes));
        self.control.push_back(Control { path, tag: self.peer_tag, bytes, alone: false });
    }
}
