use super::{Emission, Kind};
use core::time::Duration;

/// Bytes handed over at a time.
const PIECE: u64 = 64 * 1024;

/// Something to send from the start on, without end or up to a limit: FTP.
#[derive(Debug)]
pub(super) struct Bulk {
    left: Option<u64>,
    frame: u64,
}

impl Bulk {
    pub(super) const fn new(limit: Option<u64>) -> Self {
        Self { left: limit, frame: 0 }
    }
}

impl Iterator for Bulk {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let bytes = self.left.map_or(PIECE, |left| left.min(PIECE));
        if bytes == 0 {
            return None;
        }
        self.left = self.left.map(|left| left - bytes);
        let frame = self.frame;
        self.frame += 1;
        Some(Emission { at: Duration::ZERO, bytes: bytes as usize, kind: Kind::Data, flow: 0, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_met_to_the_byte_and_without_one_there_is_no_end() {
        assert_eq!(Bulk::new(Some(100_000)).map(|e| e.bytes).collect::<Vec<_>>(), [65_536, 34_464]);
        assert_eq!(Bulk::new(Some(0)).next(), None);
        assert!(Bulk::new(None).take(1000).all(|e| e.at.is_zero() && e.bytes == 65_536));
    }
}
