//! Codes, and the structures that a program and the library exchange.
//!
//! Each structure begins with its size as the program knows it, so that later versions may append
//! fields: the library reads and writes no more than that, and takes what it does not get for zero.

use std::ffi::{c_char, c_int};

/// Version of this header: major << 16, minor << 8, patch. braidcast_version() returns that of the
/// library.
pub const BRAIDCAST_VERSION: u32 = 0x00_01_00;

/// It was done.
pub const BRAIDCAST_OK: c_int = 0;
/// An argument cannot be: a null pointer, text that is not UTF-8, an address that is none.
pub const BRAIDCAST_ERROR_ARGUMENT: c_int = -1;
/// There is no such connection, or it is over.
pub const BRAIDCAST_ERROR_NO_CONNECTION: c_int = -2;
/// The send buffer is full: wait for BRAIDCAST_WRITABLE.
pub const BRAIDCAST_ERROR_FULL: c_int = -3;
/// The message was not taken for another reason: it is empty or too long, or the connection is
/// closing.
pub const BRAIDCAST_ERROR_SEND: c_int = -4;
/// A local address, an interface or a path cannot be used.
pub const BRAIDCAST_ERROR_PATH: c_int = -5;
/// The key cannot be used.
pub const BRAIDCAST_ERROR_KEY: c_int = -6;
/// A system call failed.
pub const BRAIDCAST_ERROR_SYSTEM: c_int = -7;
/// A bug in the library; the handle may only be freed.
pub const BRAIDCAST_ERROR_PANIC: c_int = -8;

/// For braidcast_socket_new: nothing is encrypted; the other end must do the same.
pub const BRAIDCAST_PLAIN: u32 = 1;

/// The handshake is done.
pub const BRAIDCAST_CONNECTED: c_int = 1;
/// There are messages to receive where there were none, or still are after some were received:
/// receive one, or all that there are.
pub const BRAIDCAST_READABLE: c_int = 2;
/// There is room to send again after BRAIDCAST_ERROR_FULL.
pub const BRAIDCAST_WRITABLE: c_int = 3;
/// A path carries data; `text` is its name.
pub const BRAIDCAST_PATH_UP: c_int = 4;
/// A path no longer answers; `text` is its name.
pub const BRAIDCAST_PATH_DOWN: c_int = 5;
/// A message was discarded, too late or repeated too often; `context` is what it was sent with.
pub const BRAIDCAST_DISCARDED: c_int = 6;
/// The connection is over, and all that came was read; `reason` and `text` say why, and `unsettled`
/// names the messages of which it is not known whether they arrived.
pub const BRAIDCAST_CLOSED: c_int = 7;
/// All of a message that was sent with `report` was acknowledged; `context` is what it was sent
/// with.
pub const BRAIDCAST_DELIVERED: c_int = 8;
/// The other end lost its state and began anew: another process may be there.
pub const BRAIDCAST_RESTARTED: c_int = 9;

/// Why a connection is over: both ends had delivered all.
pub const BRAIDCAST_REASON_SHUTDOWN: c_int = 1;
/// braidcast_abort was called.
pub const BRAIDCAST_REASON_ABORTED: c_int = 2;
/// The other end aborted it.
pub const BRAIDCAST_REASON_ABORTED_BY_PEER: c_int = 3;
/// Nobody answered. It may be worth trying again.
pub const BRAIDCAST_REASON_NO_ANSWER: c_int = 4;
/// The other end was silent on all paths for 30 seconds. It may be worth trying again.
pub const BRAIDCAST_REASON_PATHS_FAILED: c_int = 5;
/// The other end has another key, or one end encrypts and the other does not.
pub const BRAIDCAST_REASON_INSECURE: c_int = 6;
/// The other end broke the protocol.
pub const BRAIDCAST_REASON_VIOLATION: c_int = 7;
/// The other end was started anew, and knows nothing of the connection: connect again.
pub const BRAIDCAST_REASON_PEER_RESTARTED: c_int = 8;
/// The name of a host has no address that is known. It may be worth trying again.
pub const BRAIDCAST_REASON_UNRESOLVED: c_int = 9;
/// The other end's transport ended it; `code` is the error cause of SCTP, 4 if nobody listens there.
pub const BRAIDCAST_REASON_BY_TRANSPORT: c_int = 10;
/// Another reason, which later versions have.
pub const BRAIDCAST_REASON_OTHER: c_int = 99;

/// Of BRAIDCAST_REASON_INSECURE: the other end has a key that this end does not let in.
pub const BRAIDCAST_INSECURE_WRONG_KEY: u32 = 1;
/// The other end does not let in this end's key.
pub const BRAIDCAST_INSECURE_NOT_LET_IN: u32 = 2;
/// The other end does not encrypt, and this end does.
pub const BRAIDCAST_INSECURE_PLAIN_THERE: u32 = 3;
/// This end does not encrypt, and the other end does.
pub const BRAIDCAST_INSECURE_PLAIN_HERE: u32 = 4;
/// The ends know no common way to agree on keys: use the same version.
pub const BRAIDCAST_INSECURE_VERSION: u32 = 5;
/// Somebody in between changed what the ends offered each other, or their versions differ.
pub const BRAIDCAST_INSECURE_ALTERED: u32 = 6;
/// This end has a key, and the other end has none.
pub const BRAIDCAST_INSECURE_NO_KEY_THERE: u32 = 7;
/// The other end has a key, and this end has none.
pub const BRAIDCAST_INSECURE_NO_KEY_HERE: u32 = 8;
/// This end has a certificate, and the other end has none.
pub const BRAIDCAST_INSECURE_NO_CERTIFICATE_THERE: u32 = 9;
/// The other end has a certificate, and this end has none.
pub const BRAIDCAST_INSECURE_NO_CERTIFICATE_HERE: u32 = 10;
/// This end takes only keys that it knows, and the other end has none of its own.
pub const BRAIDCAST_INSECURE_UNKNOWN_THERE: u32 = 11;
/// The other end takes only keys that it knows, and this end has none of its own.
pub const BRAIDCAST_INSECURE_UNKNOWN_HERE: u32 = 12;
/// A certificate is not valid at this time.
pub const BRAIDCAST_INSECURE_CLOCK: u32 = 13;
/// The certificate is for another host.
pub const BRAIDCAST_INSECURE_WRONG_HOST: u32 = 14;
/// A certificate is not good for another reason.
pub const BRAIDCAST_INSECURE_CERTIFICATE: u32 = 15;
/// The other end agreed on no keys in time.
pub const BRAIDCAST_INSECURE_SILENT: u32 = 16;
/// The other end showed another key in the middle of the connection.
pub const BRAIDCAST_INSECURE_CHANGED: u32 = 17;
/// Keys were used up before new ones were agreed on.
pub const BRAIDCAST_INSECURE_SPENT: u32 = 18;

/// A path: where it leads, and what it leaves through.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastPath {
    /// sizeof(braidcast_path).
    pub size: usize,
    /// Address or name and port of the other end, for example "192.0.2.1:9000", "[2001:db8::1]:9000"
    /// or "home.example:9000".
    pub remote: *const c_char,
    /// The interface ("wlan0") or local address that it leaves through; NULL: as the routing table
    /// has it.
    pub via: *const c_char,
}

impl Default for BraidcastPath {
    fn default() -> Self {
        Self { size: 0, remote: std::ptr::null(), via: std::ptr::null() }
    }
}

/// How to send a message. All zero but the size is the default: in order on stream 0, delivered
/// however long it takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BraidcastSendOptions {
    /// sizeof(braidcast_send_options).
    pub size: usize,
    /// Comes back in the events BRAIDCAST_DISCARDED, BRAIDCAST_DELIVERED and BRAIDCAST_CLOSED.
    pub context: u64,
    /// In how many milliseconds it must be at the other end; 0: it is never too late. What would be
    /// later, by the delay of the quickest path, is neither sent nor repeated. What has left may still
    /// come later if the delay grows meanwhile: `late` of braidcast_message.
    pub deadline_ms: u32,
    /// Repeated at most so often; -1: not at all; 0: as long as it takes.
    pub max_retransmissions: i32,
    /// The kind of message, for the other end's application.
    pub ppid: u32,
    /// Messages of a stream are in order; 0 to 63.
    pub stream: u16,
    /// Not 0: deliver it as soon as it is complete, whatever its stream waits for.
    pub unordered: u8,
    /// Not 0: report BRAIDCAST_DELIVERED.
    pub report: u8,
    /// How important its stream is from now on, -3 to 4; 0 is usual. What waits in a stream of a
    /// higher number goes first.
    pub priority: i8,
}

/// A message that was received.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastMessage {
    /// sizeof(braidcast_message).
    pub size: usize,
    /// Its bytes, until the next call of braidcast_recv or braidcast_socket_free with this socket.
    pub data: *const u8,
    /// How many.
    pub len: usize,
    /// What the sender said of its kind.
    pub ppid: u32,
    /// The stream it came on.
    pub stream: u16,
    /// Not 0: it was sent outside the order of its stream.
    pub unordered: u8,
    /// Not 0: it came after its deadline. 0 also if that is not known.
    pub late: u8,
    /// Microseconds from when it was given to the sender until it could be received. Below 0: not known,
    /// for example as it has no deadline; then 0 stands in the two below.
    pub age_us: i64,
    /// Microseconds after its deadline at which it came; 0: in time.
    pub late_us: u64,
    /// How far both may be off, in microseconds: there is no clock that both ends have.
    pub uncertainty_us: u64,
}

/// What happened to a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastEvent {
    /// sizeof(braidcast_event).
    pub size: usize,
    /// Which one.
    pub connection: u64,
    /// Of BRAIDCAST_DISCARDED and BRAIDCAST_DELIVERED.
    pub context: u64,
    /// BRAIDCAST_CONNECTED and so on.
    pub kind: c_int,
    /// Of BRAIDCAST_CLOSED: BRAIDCAST_REASON_SHUTDOWN and so on.
    pub reason: c_int,
    /// A name or a reason in words, else ""; of BRAIDCAST_REASON_ABORTED_BY_PEER the words that the
    /// other end gave to braidcast_abort. Until the next call of braidcast_poll or
    /// braidcast_socket_free with this socket.
    pub text: *const c_char,
    /// Of BRAIDCAST_CLOSED: the contexts of messages that were neither acknowledged nor discarded.
    /// As long as `text`.
    pub unsettled: *const u64,
    /// How many.
    pub unsettled_count: usize,
    /// Of BRAIDCAST_CLOSED: the code that the other end gave to braidcast_abort, or
    /// BRAIDCAST_INSECURE_WRONG_KEY and so on, or 0.
    pub code: u32,
    /// Of BRAIDCAST_REASON_ABORTED_BY_PEER: the reason as the other end gave it, any bytes. As long as
    /// `text`.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

impl Default for BraidcastEvent {
    fn default() -> Self {
        Self {
            size: 0,
            connection: 0,
            context: 0,
            kind: 0,
            reason: 0,
            text: std::ptr::null(),
            unsettled: std::ptr::null(),
            unsettled_count: 0,
            code: 0,
            data: std::ptr::null(),
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_package() {
        let parts: Vec<u32> = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!(BRAIDCAST_VERSION, parts[0] << 16 | parts[1] << 8 | parts[2]);
    }
}
