//! Two endpoints with an association up, then any sequence of calls, losses, changed packets and forged chunks.
//!
//! Nothing may panic, no loop may go on without end, every packet sent must be valid. If nothing
//! was forged, all reliable messages must arrive, whole, once and in order.
#![no_main]

mod association;
mod tap;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = association::run(&mut Unstructured::new(bytes), false);
});
