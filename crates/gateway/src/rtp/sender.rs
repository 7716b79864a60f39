use super::wire::Header;
use braidcast_core::{Instant, Rng};

/// Puts MPEG-TS into RTP.
#[derive(Debug)]
pub struct Sender {
    sequence: u16,
    source: u32,
}

impl Sender {
    /// A source of its own, that begins with any number (RFC 3550 §5.1).
    pub fn new(rng: &mut Rng) -> Self {
        Self { sequence: rng.u32() as u16, source: rng.u32() }
    }

    /// Writes the packet that carries `payload`, which leaves at `now`, behind what is in `buf`:
    /// [`HEADER`](super::HEADER) bytes and the payload.
    pub fn write(&mut self, now: Instant, payload: &[u8], buf: &mut Vec<u8>) {
        let ticks = u128::from(now.as_nanos()) * 90_000 / 1_000_000_000;
        Header::of_ts(self.sequence, ticks as u32, self.source).write(buf);
        buf.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
    }
}
