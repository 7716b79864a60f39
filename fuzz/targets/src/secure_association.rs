//! The same as `sctp_association` of an association whose packets are protected, with a peer that
//! has the keys: whatever it changes or makes up is authentic, key messages too. Some of what it
//! makes up comes in clear.
//!
//! Nothing may panic, no loop may go on without end, every packet sent must be valid and a record
//! that opens. If nothing was forged, all reliable messages must arrive, whole, once and in order,
//! whenever keys change.

use crate::association;
use arbitrary::Unstructured;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = association::run(&mut Unstructured::new(bytes), true);
}
