use crate::number::Tsn;

/// Advanced.Peer.Ack.Point (RFC 3758 §3.5): how far FORWARD-TSN moves the peer on.
///
/// It is the last chunk abandoned among those in front of the first one that may still arrive. Those
/// in front were looked at once each: a run of given-up chunks, however long, costs nothing when it
/// grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    /// The first chunk that may still arrive; what lies before it is acknowledged or abandoned.
    pub(super) end: Tsn,
    /// How many of those before it are abandoned.
    pub(super) given_up: usize,
    /// The point; `None` before anything was abandoned.
    pub(super) point: Option<Tsn>,
    /// It moved since the association last asked.
    pub(super) moved: bool,
}

impl Forward {
    pub(super) const fn new(base: Tsn) -> Self {
        Self { end: base, given_up: 0, point: None, moved: false }
    }

    /// The chunk `tsn` comes next to those in front; `given_up` or acknowledged.
    pub(super) fn pass(&mut self, tsn: Tsn, given_up: bool) {
        self.end = tsn.next();
        if given_up {
            self.given_up += 1;
            if self.point < Some(tsn) {
                self.point = Some(tsn);
                self.moved = true;
            }
        }
    }

    /// The chunk `tsn`, which was abandoned, was acknowledged after all or is out no more.
    pub(super) fn no_longer_given_up(&mut self, tsn: Tsn) {
        self.given_up -= usize::from(tsn < self.end);
    }

    /// Looks at all from `base` on anew.
    pub(super) const fn restart(&mut self, base: Tsn) {
        (self.end, self.given_up) = (base, 0);
    }
}
