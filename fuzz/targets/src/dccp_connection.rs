//! Two endpoints with a connection, then any sequence of calls, losses, copies, changed and forged packets.
//!
//! Nothing may panic, no loop may go on without end, every packet sent must be valid, nothing may
//! be delivered twice. If nothing was forged, the connection must still carry a message in the end.

use crate::connection;
use arbitrary::Unstructured;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = connection::run(&mut Unstructured::new(bytes), false);
}
