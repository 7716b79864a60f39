//! The receiver's loss history as Loss Intervals and Dropped Packets options (RFC 4342 §8.6, RFC 5622 §8.7).

use crate::wire::option::{Ccid3Option, DroppedPackets, LossInterval, LossIntervals};
use braidcast_cc::tfrc::{self, LossHistory};
use braidcast_core::Writer;

/// Intervals that are told: as many as the mean takes (NINTERVAL + 1).
const COUNT: usize = 9;
/// Longest Skip Length (NDUPACK).
const MAX_SKIP: u64 = 3;

/// Bytes that [`emit`] takes at most.
pub(super) const MAX_LEN: usize = 3 + COUNT * LossInterval::SIZE + 2 + COUNT * DroppedPackets::SIZE;

/// Appends the options. `first` is the connection's first number in the history, `newest` the one that is acknowledged.
///
/// Nonce echoes are 0: RFC 8311 §6 took the nonce out of these CCIDs.
pub(super) fn emit(history: &LossHistory, first: u64, newest: u64, dropped_packets: bool, w: &mut Writer<'_>) {
    // What is missing is in no interval before three later packets came. Of a longer hole the rest counts as received
    // until then, as Skip Length must not be more.
    let skip = newest.saturating_sub(history.edge().unwrap_or(newest)).min(MAX_SKIP);
    let end = newest - skip + 1;
    let mut intervals = [0; COUNT * LossInterval::SIZE];
    let mut drops = [0; COUNT * DroppedPackets::SIZE];
    let (slots, _) = intervals.as_chunks_mut::<{ LossInterval::SIZE }>();
    let (counts, _) = drops.as_chunks_mut::<{ DroppedPackets::SIZE }>();
    let (mut next, mut len) = (end, 0);
    let made_up = |it: &tfrc::LossInterval| it.sequence == 0;
    for interval in history.current().iter().chain(history.closed()).take(COUNT) {
        let start = if made_up(interval) { first } else { interval.start };
        let sequence = next.saturating_sub(start);
        // The first interval may hold more data than packets; no other may.
        let data = if made_up(interval) { interval.data } else { interval.data.min(sequence) };
        slots[len] = encode(sequence, interval.lossy, data);
        counts[len] = DroppedPackets::to_bytes(interval.losses);
        (next, len) = (start, len + 1);
    }
    if len == 0 {
        // Before the first loss event: all so far, with a data length of 0 (§6.1.1).
        slots[0] = encode(end.saturating_sub(first), 0, 0);
        len = 1;
    }
    let bytes = &intervals[..len * LossInterval::SIZE];
    if let Some(option) = LossIntervals::new(skip as u8, bytes) {
        Ccid3Option::LossIntervals(option).emit(w);
    }
    if let Some(option) = DroppedPackets::new(&drops[..len * DroppedPackets::SIZE]).filter(|_| dropped_packets) {
        option.emit(w);
    }
}

fn encode(sequence: u64, lossy: u64, data: u64) -> [u8; LossInterval::SIZE] {
    let lossy = lossy.min(sequence);
    LossInterval {
        lossless: (sequence - lossy).min(0xff_ffff) as u32,
        nonce: false,
        loss: lossy.min(0x7f_ffff) as u32,
        data: data.min(0xff_ffff) as u32,
    }
    .to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;
    use crate::wire::{Opt, Options};
    use braidcast_cc::tfrc::{Arrival, Stamp};
    use braidcast_core::Instant;

    /// The packets of RFC 4342 §8.6.2 and RFC 5622 §8.7.1, all of them data: 10, 19 to 21, 23, 32 and 43 do not come.
    #[test]
    fn the_example_of_both_rfcs() {
        let mut history = LossHistory::new(true);
        let come = (0..45).filter(|seq| ![10, 19, 20, 21, 23, 32, 43].contains(seq));
        for seq in come {
            // A round trip lasts eight packets, so that each hole is an event of its own but for 23.
            let stamp = Stamp::Counter((seq / 2 % 16) as u8);
            let packet = Arrival { seq, size: 100, data: true, ndp: 0, marked: false, stamp };
            history.on_packet(Instant::from_millis(seq), &packet, || 15.0);
        }
        let mut bytes = Vec::new();
        emit(&history, 0, 44, true, &mut Writer::new(&mut bytes));
        let options = Options::new(&bytes, Kind::Ack { ack: 44 });
        let (mut intervals, mut drops, mut skip) = (Vec::new(), Vec::new(), None);
        for option in options.known() {
            let Opt::Ccid(raw) = option else { panic!("{option:?}") };
            if let Some(Ccid3Option::LossIntervals(it)) = Ccid3Option::parse(raw) {
                skip = Some(it.skip);
                intervals.extend(it.iter().map(|it| (it.lossless, it.loss, it.data)));
            }
            drops.extend(DroppedPackets::parse(raw).iter().flat_map(DroppedPackets::iter));
        }
        assert_eq!(skip, Some(2), "43 and 44");
        assert_eq!(intervals, [(10, 1, 11), (8, 5, 13), (8, 1, 9), (10, 0, 15)]);
        assert_eq!(drops, [1, 4, 1, 0]);
    }

    #[test]
    fn before_any_loss_all_is_one_interval_without_a_data_length() {
        let mut bytes = Vec::new();
        emit(&LossHistory::new(false), 5, 24, false, &mut Writer::new(&mut bytes));
        assert_eq!(bytes, [193, 12, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0]);
    }
}
