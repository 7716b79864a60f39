use crate::{Frame, NeededBy};

/// Frames of one group that are missing, each with all that needs it: because they are lost, or
/// because they still wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    stream: u16,
    group: u64,
    /// All that follow this one in the group need it.
    from: Option<u64>,
    /// The latest that only frames which name them need, a ring.
    single: [Option<u64>; Self::REFERENCES],
    next: usize,
}

impl Broken {
    /// Frames that a decoder keeps for reference at most (H.264 §A.3.1, H.265 §A.4.2): only these
    /// can be named by what follows.
    const REFERENCES: usize = 16;

    pub(crate) const fn of(frame: &Frame) -> Self {
        let Frame { stream, group, .. } = *frame;
        Self { stream, group, from: None, single: [None; Self::REFERENCES], next: 0 }
    }

    const fn is_beside(&self, frame: &Frame) -> bool {
        self.stream == frame.stream && self.group == frame.group
    }

    fn add_single(&mut self, id: u64) {
        if !self.single.contains(&Some(id)) {
            self.single[self.next] = Some(id);
            self.next = (self.next + 1) % Self::REFERENCES;
        }
    }

    /// A frame of the group is missing. `in_part`: parts of it may come that are useless alone.
    pub(crate) fn add(&mut self, frame: &Frame, in_part: bool) {
        match frame.needed_by {
            NeededBy::Rest => self.from = Some(self.from.map_or(frame.id, |from| from.min(frame.id))),
            NeededBy::Some => self.add_single(frame.id),
            NeededBy::Nothing if in_part => self.add_single(frame.id),
            NeededBy::Nothing => {}
        }
    }

    /// Returns `true` if a part of `frame` is missing.
    pub(crate) fn has(&self, frame: &Frame) -> bool {
        self.is_beside(frame) && (self.from == Some(frame.id) || self.single.contains(&Some(frame.id)))
    }

    /// Returns `true` if `frame` needs one that is missing.
    pub(crate) fn is_needed_by(&self, frame: &Frame) -> bool {
        let named = || frame.needs.is_some_and(|needs| self.single.contains(&Some(needs)));
        self.is_beside(frame) && (self.from.is_some_and(|from| from < frame.id) || named())
    }

    /// Returns `true` if `frame`, which comes after those before it, cannot be shown. Then what
    /// needs it cannot, either.
    pub(crate) fn breaks(&mut self, frame: &Frame) -> bool {
        let broken = self.has(frame) || self.is_needed_by(frame);
        if broken && frame.needed_by == NeededBy::Some {
            self.add_single(frame.id);
        }
        broken
    }

    fn merge(&mut self, other: &Self) {
        self.from = self.from.into_iter().chain(other.from).min();
        other.single.iter().flatten().for_each(|id| self.add_single(*id));
    }
}

/// What is [`Broken`] of each elementary stream, of the latest group of which something is.
#[derive(Debug, Default)]
pub(crate) struct AllBroken(Vec<Broken>);

impl AllBroken {
    /// Elementary streams at most; more than a multiplexer carries.
    const STREAMS: usize = 64;

    fn find(&mut self, stream: u16) -> Option<usize> {
        self.0.iter().position(|it| it.stream == stream)
    }

    /// Something is missing. Of a group before the one that is known here nothing comes any more.
    pub(crate) fn merge(&mut self, broken: &Broken) {
        match self.find(broken.stream) {
            Some(at) if self.0[at].group == broken.group => self.0[at].merge(broken),
            Some(at) if self.0[at].group > broken.group => {}
            Some(at) => self.0[at] = *broken,
            None => {
                if self.0.len() == Self::STREAMS {
                    self.0.remove(0);
                }
                self.0.push(*broken);
            }
        }
    }

    /// Returns `true` if `frame`, the latest of its elementary stream, cannot be shown.
    pub(crate) fn breaks(&mut self, frame: &Frame) -> bool {
        let Some(at) = self.find(frame.stream) else { return false };
        if self.0[at].group < frame.group {
            self.0.remove(at);
            return false;
        }
        self.0[at].breaks(frame)
    }

    /// Returns `true` if `frame`, or one that it needs, is missing.
    pub(crate) fn holds_up(&mut self, frame: &Frame) -> bool {
        self.find(frame.stream).is_some_and(|at| self.0[at].has(frame) || self.0[at].is_needed_by(frame))
    }

    /// Returns `true` if `frame` needs one that is missing.
    pub(crate) fn is_needed_by(&mut self, frame: &Frame) -> bool {
        self.find(frame.stream).is_some_and(|at| self.0[at].is_needed_by(frame))
    }

    /// All of a frame is missing.
    pub(crate) fn add(&mut self, frame: &Frame) {
        if let Some(at) = self.find(frame.stream)
            && self.0[at].group == frame.group
        {
            return self.0[at].add(frame, false);
        }
        let mut broken = Broken::of(frame);
        broken.add(frame, false);
        self.merge(&broken);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
