//! A transport stream taken apart into units.

use crate::counted;
use braidcast_core::Instant;
use braidcast_media::{Format, Framing, Input};
use core::time::Duration;

const CLIP: &[u8] = include_bytes!("../../../../crates/media/tests/clips/h264.ts");
/// Bytes of a datagram that `ffmpeg` sends.
const DATAGRAM: usize = 1316;

pub(super) fn demux() -> u64 {
    let stream: Vec<u8> = CLIP.iter().copied().cycle().take(1_000_000 / 188 * 188).collect();
    let mut input = Input::new(Format::Auto, Framing::Datagrams);
    let mut now = Instant::from_millis(1);
    let mut units = 0;
    for datagram in stream.chunks(DATAGRAM) {
        counted(&mut || {
            input.push(now, datagram);
            while input.poll().is_some() {
                units += 1;
            }
        });
        now += Duration::from_millis(2);
    }
    assert!(units > 100, "{units} units");
    1
}
