use crate::wire::Entry;
use crate::wire::chunk::{StampArrival, Timestamp, TimestampEcho};
use braidcast_core::{Instant, Writer};

/// The timestamps of the peer that no SACK has told of yet, the newest of each path (decision 21).
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    waiting: Vec<(Timestamp, Instant)>,
    /// That of the packet that is read now.
    of_packet: Option<(Timestamp, Instant)>,
}

/// Microseconds of our clock, as timestamps have them.
pub(crate) const fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

impl Timestamps {
    /// Paths that are remembered; further ones wait for the next SACK.
    const MAX_PATHS: usize = 16;

    /// One came.
    pub(crate) fn on_arrival(&mut self, now: Instant, timestamp: Timestamp) {
        if timestamp.quiet {
            return;
        }
        self.of_packet = Some((timestamp, now));
        if let Some(known) = self.waiting.iter_mut().find(|(known, _)| known.path == timestamp.path) {
            *known = (timestamp, now);
        } else if self.waiting.len() < Self::MAX_PATHS {
            self.waiting.push((timestamp, now));
        }
    }

    /// The next packet is read.
    pub(crate) const fn on_packet(&mut self) {
        self.of_packet = None;
    }

    /// Takes the timestamp of the packet that is read, as far as it was read, for an answer to that
    /// packet. It then goes with no SACK.
    pub(crate) fn take_of_packet(&mut self) -> Option<StampArrival> {
        let (stamp, at) = self.of_packet.take()?;
        self.waiting.retain(|(waiting, _)| *waiting != stamp);
        let Timestamp { path, sent, .. } = stamp;
        Some(StampArrival { path, sent, arrived: micros(at), elapsed: 0 })
    }

    /// Appends what is to be told, as far as it fits in front of `end`.
    pub(crate) fn emit(&mut self, now: Instant, end: usize, buf: &mut Vec<u8>) {
        let room = end.saturating_sub(buf.len() + TimestampEcho::HEADER) / StampArrival::SIZE;
        let count = room.min(self.waiting.len());
        if count == 0 {
            return;
        }
        let start = buf.len();
        let mut w = Writer::new(buf);
        TimestampEcho::begin(&mut w, count);
        for (Timestamp { path, sent, .. }, at) in self.waiting.drain(..count) {
            let elapsed = u32::try_from((now - at).as_micros()).unwrap_or(u32::MAX);
            StampArrival { path, sent, arrived: micros(at), elapsed }.emit(&mut w);
        }
        debug_assert_eq!(buf.len(), start + TimestampEcho::HEADER + count * StampArrival::SIZE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Chunk, RawChunk};

    fn told(timestamps: &mut Timestamps, now: u64, room: usize) -> Vec<StampArrival> {
        let mut buf = Vec::new();
        timestamps.emit(Instant::from_millis(now), room, &mut buf);
        if buf.is_empty() {
            return Vec::new();
        }
        let raw = RawChunk { kind: buf[0], flags: 0, value: &buf[4..], bytes: &buf, offset: 0 };
        let Ok(Chunk::TimestampEcho(echo)) = Chunk::parse(raw) else { panic!("{buf:?}") };
        echo.arrivals.iter().collect()
    }

    #[test]
    fn the_newest_of_each_path_is_told_once() {
        let mut timestamps = Timestamps::default();
        for (at, path, sent) in [(1, 0, 10), (2, 1, 11), (3, 0, 12)] {
            timestamps.on_arrival(Instant::from_millis(at), Timestamp { path, sent, quiet: false });
        }
        let arrival = |path, sent, arrived, elapsed| StampArrival { path, sent, arrived, elapsed };
        assert_eq!(told(&mut timestamps, 5, 100), [arrival(0, 12, 3000, 2000), arrival(1, 11, 2000, 3000)]);
        assert_eq!(told(&mut timestamps, 5, 100), []);
    }

    #[test]
    fn what_the_answer_to_a_packet_tells_no_sack_tells_again() {
        let mut timestamps = Timestamps::default();
        timestamps.on_packet();
        timestamps.on_arrival(Instant::from_millis(1), Timestamp { path: 0, sent: 10, quiet: false });
        assert_eq!(timestamps.take_of_packet(), Some(StampArrival { path: 0, sent: 10, arrived: 1000, elapsed: 0 }));
        assert_eq!((timestamps.take_of_packet(), told(&mut timestamps, 5, 100)), (None, vec![]));
        timestamps.on_arrival(Instant::from_millis(6), Timestamp { path: 0, sent: 11, quiet: false });
        timestamps.on_packet();
        assert_eq!(timestamps.take_of_packet(), None, "it came with the packet before");
        assert_eq!(told(&mut timestamps, 7, 100).len(), 1);
    }

    #[test]
    fn of_a_quiet_one_nothing_is_told() {
        let mut timestamps = Timestamps::default();
        timestamps.on_packet();
        timestamps.on_arrival(Instant::from_millis(1), Timestamp { path: 0, sent: 10, quiet: true });
        assert_eq!((timestamps.take_of_packet(), told(&mut timestamps, 5, 100)), (None, vec![]));
    }

    #[test]
    fn what_does_not_fit_waits_and_what_is_kept_is_bounded() {
        let mut timestamps = Timestamps::default();
        (0..1000).for_each(|path| timestamps.on_arrival(Instant::ZERO, Timestamp { path, sent: 0, quiet: false }));
        assert_eq!(timestamps.waiting.len(), Timestamps::MAX_PATHS);
        assert_eq!(told(&mut timestamps, 0, 4 + 15), []);
        assert_eq!(told(&mut timestamps, 0, 4 + 35).len(), 2);
        assert_eq!(told(&mut timestamps, 0, 1000).len(), Timestamps::MAX_PATHS - 2);
    }
}
