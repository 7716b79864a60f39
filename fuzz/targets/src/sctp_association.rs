//! Two endpoints with an association up, then any sequence of calls, losses, changed packets and forged chunks.
//!
//! Nothing may panic, no loop may go on without end, every packet sent must be valid. If nothing
//! was forged, all reliable messages must arrive, whole, once and in order.

use crate::association;
use arbitrary::Unstructured;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = association::run(&mut Unstructured::new(bytes), false);
}
