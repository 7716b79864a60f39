use super::Open;
use crate::auth::AuthKeys;
use crate::path::{PathIndex, Paths};
use crate::wire::chunk::{Abort, CookieAck};
use crate::wire::{self, Causes, padded};
use braidcast_core::Writer;
use std::collections::VecDeque;

/// What AUTH may take of a packet with answers, at most.
const RESERVE: usize = 60;

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

/// The control chunks that wait to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    waiting: VecDeque<Control>,
}

/// Control chunks were written into a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Nothing else may follow.
    pub(super) alone: bool,
    /// Where an AUTH chunk stands that is to be sealed.
    pub(super) auth: Option<usize>,
}

impl ControlQueue {
    /// Chunks that wait at most; a peer that makes us answer more than that loses the answers.
    const MOST: usize = 64;

    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < Self::MOST
    }

    pub(super) fn push(&mut self, control: Control) {
        self.waiting.push_back(control);
    }

    /// Queues a chunk for `path`, in a packet with the verification `tag`, if there is room.
    pub(super) fn push_chunk(&mut self, path: PathIndex, tag: u32, chunk: &wire::Chunk<'_>) {
        if self.has_room() {
            let mut bytes = Vec::new();
            chunk.emit(&mut Writer::new(&mut bytes));
            self.push(Control { path, tag, bytes, alone: false });
        }
    }

    /// Bytes that wait for `path`.
    fn bytes_for(&self, path: PathIndex) -> usize {
        self.waiting.iter().filter(|control| control.path == path).map(|control| control.bytes.len()).sum()
    }

    /// ABORT is the last thing that is sent; all that waited before it is void. Without the peer's `tag` none is sent.
    pub(super) fn abort(&mut self, paths: &Paths, tag: Option<u32>, causes: &[u8]) {
        self.clear();
        let path = paths.for_control(None).or(paths.indices().next());
        if let (Some(path), Some(tag)) = (path, tag) {
            self.push_chunk(path, tag, &wire::Chunk::Abort(Abort { reflected: false, causes: Causes::new(causes) }));
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The path `index` is no more.
    pub(super) fn forget_path(&mut self, index: PathIndex) {
        self.waiting.retain(|control| control.path != index);
    }

    /// Drops the chunks that are `void`.
    pub(super) fn drop_where(&mut self, void: impl Fn(&[u8]) -> bool) {
        self.waiting.retain(|control| !void(&control.bytes));
    }

    /// The path of the next chunk, and the tag of its packet.
    pub(super) fn next(&self) -> Option<(PathIndex, u32)> {
        self.waiting.front().map(|control| (control.path, control.tag))
    }

    /// Appends the chunks that are next and for the path `index`, as far as they fit in front of
    /// `end`; behind an AUTH chunk by `keys` where the peer asks for that.
    pub(super) fn put(&mut self, index: PathIndex, end: usize, keys: Option<&AuthKeys>, buf: &mut Vec<u8>) -> Written {
        let mut written = Written { alone: false, auth: None };
        let mut any = false;
        while let Some(control) = self.waiting.front().filter(|control| control.path == index) {
            let kind = control.bytes.first().copied().unwrap_or_default();
            let keys = keys.filter(|keys| written.auth.is_none() && keys.peer_requires(kind));
            let needed = control.bytes.len() + keys.map_or(0, |keys| padded(keys.overhead()));
            if any && (control.alone || buf.len() + needed > end) {
                written.alone = true;
                break;
            }
            if let Some(keys) = keys {
                written.auth = Some(keys.emit(buf));
            }
            buf.extend_from_slice(&control.bytes);
            any = true;
            written.alone = control.alone;
            self.waiting.pop_front();
            if written.alone {
                break;
            }
        }
        written
    }
}

impl Open {
    /// Queues a control chunk for `path`.
    pub(super) fn control_chunk(&mut self, path: PathIndex, chunk: &wire::Chunk<'_>) {
        self.control.push_chunk(path, self.peer_tag, chunk);
    }

    /// COOKIE ACK for `path`: the first chunk of its packet (RFC 9260 §5.1).
    pub(super) fn cookie_ack(&mut self, path: PathIndex) {
        let mut bytes = Vec::new();
        wire::Chunk::CookieAck(CookieAck).emit(&mut Writer::new(&mut bytes));
        self.control.waiting.push_front(Control { path, tag: self.peer_tag, bytes, alone: false });
    }

    /// Queues an answer for `path`, as long as all that waits for it fits one packet: what makes us
    /// answer much has the rest of the answers dropped (RFC 9260 §12.4).
    pub(super) fn answer(&mut self, path: PathIndex, chunk: &wire::Chunk<'_>) {
        let mut bytes = Vec::new();
        chunk.emit(&mut Writer::new(&mut bytes));
        let waits = self.control.bytes_for(path);
        let room = self.paths[path].mtu().saturating_sub(wire::Header::LEN + RESERVE);
        if self.control.has_room() && (waits == 0 || waits + bytes.len() <= room) {
            self.control.push(Control { path, tag: self.peer_tag, bytes, alone: false });
        }
    }
}
