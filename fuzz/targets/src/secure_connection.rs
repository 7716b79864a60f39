//! The same as `dccp_connection` of a connection whose packets carry records, with a peer that has
//! the keys: what it makes up is authentic, fragments of key messages too. Packets changed in
//! flight are not.
//!
//! Nothing may panic, no loop may go on without end, every packet sent must be valid and a record
//! that opens, nothing may be delivered twice. If nothing was forged, the connection must still
//! carry a message in the end, whenever keys change.

use crate::connection;
use arbitrary::Unstructured;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = connection::run(&mut Unstructured::new(bytes), true);
}
