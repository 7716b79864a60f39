//! Which connections there are, and their paths.

use crate::error::{check, guard};
use crate::structs::{put, size};
use crate::{BraidcastSocket, handle, null};
use braidcast_socket::{ConnectionId, PathState};
use std::ffi::{c_char, c_int};

/// The path is asked whether it leads to the other end.
pub const BRAIDCAST_PATH_UNCONFIRMED: c_int = 0;
/// It carries data.
pub const BRAIDCAST_PATH_ACTIVE: c_int = 1;
/// It missed an answer; data goes over the others.
pub const BRAIDCAST_PATH_POTENTIALLY_FAILED: c_int = 2;
/// It does not answer.
pub const BRAIDCAST_PATH_INACTIVE: c_int = 3;

/// Bytes of a name or address in braidcast_path_report, with the zero byte behind it.
pub const BRAIDCAST_NAME_SIZE: usize = 64;

/// The numbers of the connections that there are, oldest first, into `connections`, which has room
/// for `count`. A connection is there from braidcast_connect or BRAIDCAST_CONNECTED until
/// BRAIDCAST_CLOSED. Returns how many there are, which may be more than `count`.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `connections` can be written, `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_connections(
    socket: *mut BraidcastSocket,
    connections: *mut u64,
    count: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        if connections.is_null() && count > 0 {
            return null();
        }
        let all: Vec<_> = check(it.socket.with(|socket| Ok(socket.connections().collect())))?;
        for (n, id) in all.iter().take(count).enumerate() {
            let ConnectionId(number) = id;
            // SAFETY: the caller's; there are no more than `count`.
            unsafe { connections.add(n).write(*number) };
        }
        Ok(c_int::try_from(all.len()).unwrap_or(c_int::MAX))
    })
}

/// A path of a connection as it is now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastPathReport {
    /// sizeof(braidcast_path_report).
    pub size: usize,
    /// The interface or address it leaves through, or else the address that it leads to.
    pub name: [c_char; BRAIDCAST_NAME_SIZE],
    /// The address that it leads to, for example "192.0.2.1:9000".
    pub remote: [c_char; BRAIDCAST_NAME_SIZE],
    /// BRAIDCAST_PATH_ACTIVE and so on.
    pub state: c_int,
    /// Smoothed round-trip time in milliseconds; below 0 before the first measurement.
    pub rtt_ms: f64,
    /// What it could carry, in bits per second of data; below 0 before anything was acknowledged.
    pub capacity: f64,
    /// Bytes sent in packets, without the headers below them.
    pub sent_bytes: u64,
    /// Bytes received in packets, without the headers below them.
    pub received_bytes: u64,
    /// Parts of messages sent over it that were lost.
    pub lost_chunks: u64,
}

/// The paths of a connection as they are now, into `reports`, of which there are `count`; each has
/// its size set. Returns how many paths there are, which may be more than `count`.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `reports` can be written, `count` of the size that the
/// first one has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_paths(
    socket: *mut BraidcastSocket,
    connection: u64,
    reports: *mut BraidcastPathReport,
    count: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        let paths = check(it.socket.with(|socket| socket.paths(ConnectionId(connection))))?;
        if count > 0 {
            // SAFETY: the caller's.
            let stride = unsafe { size(reports)? };
            for (n, path) in paths.iter().take(count).enumerate() {
                let report = BraidcastPathReport {
                    size: 0,
                    name: chars(&path.name),
                    remote: chars(&path.remote.to_string()),
                    state: match path.state {
                        PathState::Unconfirmed => BRAIDCAST_PATH_UNCONFIRMED,
                        PathState::Active => BRAIDCAST_PATH_ACTIVE,
                        PathState::PotentiallyFailed => BRAIDCAST_PATH_POTENTIALLY_FAILED,
                        PathState::Inactive => BRAIDCAST_PATH_INACTIVE,
                    },
                    rtt_ms: path.rtt.map_or(-1.0, |rtt| rtt.as_secs_f64() * 1e3),
                    capacity: path.capacity.map_or(-1.0, |bits| bits as f64),
                    sent_bytes: path.sent_bytes,
                    received_bytes: path.received_bytes,
                    lost_chunks: path.lost_chunks,
                };
                // SAFETY: the caller's; all have the size of the first.
                unsafe {
                    let out = reports.byte_add(n * stride);
                    out.cast::<usize>().write(stride);
                    put(out, report)?;
                }
            }
        }
        Ok(c_int::try_from(paths.len()).unwrap_or(c_int::MAX))
    })
}

/// `text` with a zero byte behind it, cut to fit.
pub(crate) fn chars(text: &str) -> [c_char; BRAIDCAST_NAME_SIZE] {
    let mut chars = [0; BRAIDCAST_NAME_SIZE];
    for (place, byte) in chars.iter_mut().take(BRAIDCAST_NAME_SIZE - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    chars
}
