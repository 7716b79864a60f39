//! Any bytes as a transport stream, in pieces: every packet found belongs to exactly one unit.

use braidcast_core::Instant;
use braidcast_media::ts::Demux;
use core::time::Duration;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let Some((&piece, stream)) = bytes.split_first() else { return };
    let mut demux = Demux::new();
    let mut now = Instant::ZERO;
    let mut indexes = Vec::new();
    let mut take = |demux: &mut Demux| {
        while let Some(unit) = demux.poll() {
            assert!(!unit.runs.is_empty() && unit.first_captured <= unit.last_captured);
            assert_eq!(unit.packets().count() as u64, unit.runs.iter().map(|run| u64::from(run.count)).sum::<u64>());
            indexes.extend(unit.packets().map(|(index, _)| index));
        }
    };
    for part in stream.chunks(1 + usize::from(piece) * 8) {
        demux.push(now, part);
        take(&mut demux);
        now += Duration::from_millis(u64::from(piece % 64));
    }
    demux.finish(now);
    take(&mut demux);
    indexes.sort_unstable();
    assert!(indexes.into_iter().eq(0..demux.stats().packets));
}
