//! Any bytes as an input whose format is to be found out, in datagrams or pieces; then through the pacer: units have
//! each index once, over a change of format too.

use braidcast_core::Instant;
use braidcast_media::{Format, Framing, Input, Pacer};
use core::time::Duration;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let Some((&[how, size], stream)) = bytes.split_first_chunk() else { return };
    let framing = if how & 1 == 0 { Framing::Datagrams } else { Framing::Stream(1 + usize::from(size)) };
    let mut input = Input::new(Format::Auto, framing);
    if how & 2 != 0 {
        input.set_patience(Duration::from_millis(u64::from(how)));
    }
    let mut pacer = Pacer::of_size(Instant::ZERO, if how & 4 == 0 { 188 } else { 192 });
    let (mut now, mut indexes, mut due) = (Instant::ZERO, Vec::new(), Vec::new());
    for part in stream.chunks(1 + usize::from(size) * 8) {
        input.push(now, part);
        while let Some(unit) = input.poll() {
            indexes.extend(unit.packets().map(|(index, _)| index));
        }
        pacer.push(part);
        now += Duration::from_millis(u64::from(how >> 3));
    }
    input.finish(now);
    while let Some(unit) = input.poll() {
        indexes.extend(unit.packets().map(|(index, _)| index));
    }
    pacer.finish();
    let mut last = Instant::ZERO;
    while let Some(at) = pacer.poll(&mut due) {
        assert!(at >= last);
        last = at;
    }
    indexes.sort_unstable();
    let count = indexes.len() as u64;
    assert!(indexes.into_iter().eq(0..count));
}
