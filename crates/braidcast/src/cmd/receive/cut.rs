//! Where a transport stream can be cut: before a packet that says that decoding may begin there.

use braidcast_core::Instant;
use std::time::Duration;

/// Bytes of a packet.
const PACKET: usize = 188;
/// A stream without such a packet is cut anywhere, so long after its time.
const PATIENCE: Duration = Duration::from_secs(10);

/// When to begin another file.
pub(super) struct Cutter {
    every: Duration,
    due: Option<Instant>,
}

impl Cutter {
    pub(super) const fn new(every: Duration) -> Self {
        Self { every, due: None }
    }

    /// A stream begins.
    pub(super) fn restart(&mut self) {
        self.due = None;
    }

    /// Where in `bytes`, written at `now`, the next file begins, if it does.
    pub(super) fn cut(&mut self, now: Instant, bytes: &[u8]) -> Option<usize> {
        let due = *self.due.get_or_insert(now + self.every);
        if now < due {
            return None;
        }
        let anywhere = now >= due + PATIENCE || !bytes.len().is_multiple_of(PACKET);
        let at = if anywhere { 0 } else { bytes.chunks(PACKET).position(is_entry)? * PACKET };
        self.due = Some(now + self.every);
        Some(at)
    }
}

/// Whether the packet begins a picture that needs no other (random access indicator, H.222.0 §2.4.3.5).
fn is_entry(packet: &[u8]) -> bool {
    let &[0x47, flags, _, control, length, adaptation, ..] = packet else { return false };
    flags & 0x40 != 0 && control & 0x20 != 0 && length > 0 && adaptation & 0x40 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn the_cut_waits_for_a_picture_to_begin_with() {
        let mut plain = [0; PACKET];
        plain[0] = 0x47;
        let mut entry = plain;
        entry[1] = 0x40;
        entry[3] = 0x30;
        (entry[4], entry[5]) = (7, 0x50);
        let mut cutter = Cutter::new(Duration::from_secs(60));
        assert_eq!(cutter.cut(at(0), &entry), None);
        assert_eq!(cutter.cut(at(61), &plain), None);
        assert_eq!(cutter.cut(at(62), &[plain, plain, entry].concat()), Some(2 * PACKET));
        assert_eq!(cutter.cut(at(100), &entry), None);
        assert_eq!(cutter.cut(at(133), &plain), Some(0));
    }
}
