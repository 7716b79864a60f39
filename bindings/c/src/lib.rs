//! The C library: `braidcast_socket` behind an opaque handle.
//!
//! `include/braidcast.h` is made of this file by a test
//! (`UPDATE_HEADER=1 cargo test -p braidcast-c --test header`). No panic crosses the border: it
//! becomes [`BRAIDCAST_ERROR_PANIC`].

mod config;
mod descriptors;
mod error;
#[cfg(test)]
#[path = "../../../crates/testing/src/front_ends.rs"]
pub mod front_ends;
mod media;
mod paths;
mod rate;
mod structs;
mod text;
mod types;

use braidcast_socket::{CloseReason, ConnectionId, Event, Path, SendOptions, SharedSocket};
use error::{check, fail, guard};
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use structs::{get, put};
use text::{required, to_c};

pub use config::*;
pub use descriptors::*;
pub use error::braidcast_last_error;
pub use media::*;
pub use paths::*;
pub use rate::{
    BraidcastRate, BraidcastRateOptions, braidcast_follow_rate, braidcast_rate_report, braidcast_set_rate_limits,
};
pub use types::*;

/// A socket for messages over several networks at once. Several threads may use it: a call goes
/// before one that waits in braidcast_poll. One thread at a time may call braidcast_poll, and one
/// braidcast_recv, because of what they hand out.
pub struct BraidcastSocket {
    socket: SharedSocket,
    /// The message that braidcast_recv handed out last.
    message: Mutex<Vec<u8>>,
    /// What braidcast_poll handed out last.
    event: Mutex<Handed>,
    log: Option<config::Log>,
}

impl BraidcastSocket {
    fn new(socket: SharedSocket, log: Option<config::Log>) -> Self {
        Self { socket, message: Mutex::default(), event: Mutex::default(), log }
    }
}

/// What an event refers to.
#[derive(Default)]
struct Handed {
    text: CString,
    unsettled: Vec<u64>,
    data: Vec<u8>,
}

/// The version of the library that runs, as BRAIDCAST_VERSION is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn braidcast_version() -> u32 {
    BRAIDCAST_VERSION
}

/// Makes a socket. With a `key`, which both ends share, only who has it gets in; NULL: encrypted,
/// with anybody. `flags`: 0, or BRAIDCAST_PLAIN. Returns NULL on failure; braidcast_last_error says
/// why. Free it with braidcast_socket_free. braidcast_socket_new_config has more.
///
/// # Safety
/// `key` is NULL or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_socket_new(key: *const c_char, flags: u32) -> *mut BraidcastSocket {
    let config = BraidcastConfig { size: size_of::<BraidcastConfig>(), key, flags, ..BraidcastConfig::default() };
    // SAFETY: the caller's, as above.
    unsafe { braidcast_socket_new_config(&raw const config) }
}

/// Frees a socket; NULL does nothing. Connections that are not over are aborted.
///
/// # Safety
/// `socket` is NULL or of braidcast_socket_new, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_socket_free(socket: *mut BraidcastSocket) {
    guard(|| {
        if !socket.is_null() {
            // SAFETY: the caller's: it was made by `Box::into_raw` and nobody else has it.
            drop(unsafe { Box::from_raw(socket) });
        }
        Ok(BRAIDCAST_OK)
    });
}

/// A file descriptor that is readable when braidcast_poll has something to do. Do not close it.
/// After it became readable, and after everything that was sent, call braidcast_poll with timeout 0
/// until that returns 0.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_fd(socket: *const BraidcastSocket) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        Ok(unsafe { handle(socket)? }.socket.as_raw_fd())
    })
}

/// Opens the local address `address`, for example "0.0.0.0:9000"; port 0 takes any that is free.
/// Writes the port to `port` unless that is NULL.
///
/// # Safety
/// `socket` is of braidcast_socket_new, `address` ends with a zero byte, `port` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_bind(socket: *mut BraidcastSocket, address: *const c_char, port: *mut u16) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, address) = unsafe { (handle(socket)?, required(address, "address")?) };
        let address = text::address(address)?;
        let bound = check(it.socket.with(|socket| socket.bind(address)))?;
        // SAFETY: the caller's.
        if let Some(port) = unsafe { port.as_mut() } {
            *port = bound.port();
        }
        Ok(BRAIDCAST_OK)
    })
}

/// Accepts connections from now on; each begins with the event BRAIDCAST_CONNECTED. Strangers, who
/// have another key or none, are not shown.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_listen(socket: *mut BraidcastSocket) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        check(it.socket.with(|socket| {
            socket.listen();
            Ok(())
        }))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Begins a connection over `count` paths and writes its number to `connection`.
/// BRAIDCAST_CONNECTED or BRAIDCAST_CLOSED follows.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `paths` are `count`, with texts that end with a zero byte;
/// `connection` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_connect(
    socket: *mut BraidcastSocket,
    paths: *const BraidcastPath,
    count: usize,
    connection: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, all) = unsafe { (handle(socket)?, paths_of(paths, count)?) };
        // SAFETY: the caller's.
        let connection = unsafe { connection.as_mut() }.map_or_else(null, Ok)?;
        *connection = check(it.socket.with(|socket| socket.connect(&all)))?.0;
        Ok(BRAIDCAST_OK)
    })
}

/// Adds a path to a connection that was begun here. One whose interface is not there joins when
/// that appears.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `path` is one, with texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_join(
    socket: *mut BraidcastSocket,
    connection: u64,
    path: *const BraidcastPath,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, path) = unsafe { (handle(socket)?, path_of(path)?) };
        check(it.socket.with(|socket| socket.join(ConnectionId(connection), &path)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Takes the path called `name` out: its interface or local address, or else the address that it
/// leads to. Returns 1, or 0 if there is none.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `name` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_leave(socket: *mut BraidcastSocket, connection: u64, name: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, name) = unsafe { (handle(socket)?, required(name, "name")?) };
        let left = check(it.socket.with(|socket| socket.leave(ConnectionId(connection), name)))?;
        Ok(c_int::from(left))
    })
}

/// Takes a message of `len` bytes to be sent; it is copied. It leaves in the next braidcast_poll,
/// or when the paths have room.
///
/// # Safety
/// `socket` is of braidcast_socket_new, `data` has `len` bytes, `options` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_send(
    socket: *mut BraidcastSocket,
    connection: u64,
    data: *const c_void,
    len: usize,
    options: *const BraidcastSendOptions,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        if data.is_null() {
            return null();
        }
        // SAFETY: the caller's.
        let (message, given) = unsafe { (std::slice::from_raw_parts(data.cast::<u8>(), len), get(options)?) };
        let how = SendOptions::new().stream(given.stream).ppid(given.ppid).context(given.context);
        let mut how = how.priority(given.priority);
        how.unordered = given.unordered != 0;
        how.report = given.report != 0;
        how.deadline = (given.deadline_ms > 0).then(|| Duration::from_millis(given.deadline_ms.into()));
        how.max_retransmissions = match given.max_retransmissions {
            0 => None,
            most => Some(u16::try_from(most).unwrap_or(if most < 0 { 0 } else { u16::MAX })),
        };
        check(it.socket.with(|socket| socket.send(ConnectionId(connection), message, &how)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// The next message of a connection, into `message`. Returns 1, or 0 if there is none now.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `message` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_recv(
    socket: *mut BraidcastSocket,
    connection: u64,
    message: *mut BraidcastMessage,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        if message.is_null() {
            return null();
        }
        let mut buf = it.message.lock().unwrap_or_else(PoisonError::into_inner);
        let received = check(it.socket.with(|socket| socket.recv(ConnectionId(connection), &mut buf)))?;
        let Some(received) = received else { return Ok(0) };
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let timing = received.timing.unwrap_or_default();
        let got = BraidcastMessage {
            size: 0,
            data: buf.as_ptr(),
            len: buf.len(),
            ppid: received.ppid,
            stream: received.stream,
            unordered: received.unordered.into(),
            late: received.is_late().into(),
            age_us: received.timing.map_or(-1, |it| micros(it.age).cast_signed()),
            late_us: micros(timing.late),
            uncertainty_us: micros(timing.uncertainty),
        };
        // SAFETY: the caller's.
        unsafe { put(message, got) }?;
        Ok(1)
    })
}

/// Waits for an event for at most `timeout_ms` milliseconds, or for ever if that is below 0;
/// meanwhile everything runs. Returns 1 with `event`, or 0 if nothing happened in that time.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `event` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_poll(
    socket: *mut BraidcastSocket,
    timeout_ms: c_int,
    event: *mut BraidcastEvent,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        // SAFETY: the caller's.
        unsafe { structs::size(event) }?;
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let polled = check(it.socket.poll(timeout))?;
        if let Some(log) = it.log {
            check(log.say(&it.socket))?;
        }
        let Some((connection, happened)) = polled else { return Ok(0) };
        let mut told = BraidcastEvent { connection: connection.0, ..BraidcastEvent::default() };
        let mut handed = it.event.lock().unwrap_or_else(PoisonError::into_inner);
        *handed = Handed::default();
        (told.kind, told.context) = match happened {
            Event::Connected => (BRAIDCAST_CONNECTED, 0),
            Event::Readable => (BRAIDCAST_READABLE, 0),
            Event::Writable => (BRAIDCAST_WRITABLE, 0),
            Event::PathUp { name, .. } => {
                handed.text = to_c(name);
                (BRAIDCAST_PATH_UP, 0)
            }
            Event::PathDown { name, .. } => {
                handed.text = to_c(name);
                (BRAIDCAST_PATH_DOWN, 0)
            }
            Event::Discarded { context } => (BRAIDCAST_DISCARDED, context),
            Event::Delivered { context } => (BRAIDCAST_DELIVERED, context),
            Event::Restarted => (BRAIDCAST_RESTARTED, 0),
            Event::Closed { reason, unsettled } => {
                (told.reason, told.code) = numbers(&reason);
                let words;
                (words, handed.data) = match reason {
                    CloseReason::ByPeer { reason, .. } => (String::from_utf8_lossy(&reason).into_owned(), reason),
                    other => (other.to_string(), Vec::new()),
                };
                (handed.text, handed.unsettled) = (to_c(words), unsettled);
                (BRAIDCAST_CLOSED, 0)
            }
            // A kind that this library does not know yet; nothing is asked of the program.
            _ => (0, 0),
        };
        told.text = handed.text.as_ptr();
        (told.unsettled, told.unsettled_count) = (handed.unsettled.as_ptr(), handed.unsettled.len());
        (told.data, told.len) = (handed.data.as_ptr(), handed.data.len());
        // SAFETY: the caller's.
        unsafe { put(event, told) }?;
        Ok(1)
    })
}

/// Ends a connection once everything that was sent is delivered. BRAIDCAST_CLOSED follows.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_shutdown(socket: *mut BraidcastSocket, connection: u64) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        check(it.socket.with(|socket| socket.shutdown(ConnectionId(connection))))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Ends a connection at once; the other end is told `code`, which means what the two programs agree
/// on, and `reason`, which may be NULL. BRAIDCAST_CLOSED follows.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `reason` is NULL or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_abort(
    socket: *mut BraidcastSocket,
    connection: u64,
    code: u32,
    reason: *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, reason) = unsafe { (handle(socket)?, text::optional(reason, "reason")?) };
        let reason = reason.unwrap_or_default();
        check(it.socket.with(|socket| socket.abort(ConnectionId(connection), code, reason)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// The same with a reason of any `len` bytes, of which some 250 are told.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `reason` has `len` bytes, or `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_abort_with(
    socket: *mut BraidcastSocket,
    connection: u64,
    code: u32,
    reason: *const u8,
    len: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, reason) = unsafe { (handle(socket)?, text::bytes(reason, len, "reason")?) };
        check(it.socket.with(|socket| socket.abort(ConnectionId(connection), code, reason)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Ends all connections in good order, and waits for that at most `timeout_ms` milliseconds.
/// Messages that still come are lost, and so are events. Returns 1 if all that was sent was
/// acknowledged or discarded, else 0.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_close(socket: *mut BraidcastSocket, timeout_ms: u32) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        Ok(c_int::from(check(it.socket.close(Duration::from_millis(timeout_ms.into())))?))
    })
}

/// Has braidcast_poll return 0 now in the threads that wait in it; if none does, its next call
/// returns 0 at once. May be called from any thread, and from no signal handler.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_interrupt(socket: *mut BraidcastSocket) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        unsafe { handle(socket)? }.socket.interrupt();
        Ok(BRAIDCAST_OK)
    })
}

/// Bytes of messages to the other end that wait or are not acknowledged yet, into `bytes`.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `bytes` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_buffered(socket: *mut BraidcastSocket, connection: u64, bytes: *mut usize) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, bytes) = unsafe { (handle(socket)?, bytes.as_mut().map_or_else(null, Ok)?) };
        *bytes = check(it.socket.with(|socket| socket.buffered(ConnectionId(connection))))?;
        Ok(BRAIDCAST_OK)
    })
}

/// A reason as numbers: which one, and what more is known of it.
fn numbers(reason: &CloseReason) -> (c_int, u32) {
    match reason {
        CloseReason::Shutdown => (BRAIDCAST_REASON_SHUTDOWN, 0),
        CloseReason::Aborted => (BRAIDCAST_REASON_ABORTED, 0),
        CloseReason::ByPeer { code, .. } => (BRAIDCAST_REASON_ABORTED_BY_PEER, *code),
        CloseReason::PeerRestarted => (BRAIDCAST_REASON_PEER_RESTARTED, 0),
        CloseReason::NoAnswer => (BRAIDCAST_REASON_NO_ANSWER, 0),
        CloseReason::Unresolved { .. } => (BRAIDCAST_REASON_UNRESOLVED, 0),
        CloseReason::PathsFailed => (BRAIDCAST_REASON_PATHS_FAILED, 0),
        CloseReason::Insecure { why, .. } => (BRAIDCAST_REASON_INSECURE, *why as u32),
        CloseReason::ByTransport { cause, .. } => (BRAIDCAST_REASON_BY_TRANSPORT, u32::from(*cause)),
        CloseReason::Violation(_) => (BRAIDCAST_REASON_VIOLATION, 0),
        _ => (BRAIDCAST_REASON_OTHER, 0),
    }
}

/// # Safety
/// `socket` is NULL or of braidcast_socket_new.
unsafe fn handle<'a>(socket: *const BraidcastSocket) -> Result<&'a BraidcastSocket, c_int> {
    // SAFETY: the caller's.
    unsafe { socket.as_ref() }.map_or_else(null, Ok)
}

fn null<T>() -> Result<T, c_int> {
    fail(BRAIDCAST_ERROR_ARGUMENT, "a null pointer")
}

/// # Safety
/// `paths` is NULL or has `count`, each as [`path_of`] has it.
unsafe fn paths_of(paths: *const BraidcastPath, count: usize) -> Result<Vec<Path>, c_int> {
    if paths.is_null() || count == 0 {
        return fail(BRAIDCAST_ERROR_ARGUMENT, "no paths");
    }
    // SAFETY: the caller's.
    let stride = unsafe { structs::size(paths)? };
    // SAFETY: the caller's; each begins with its size, which is that of the first.
    (0..count).map(|n| unsafe { path_of(paths.byte_add(n * stride)) }).collect()
}

/// # Safety
/// `path` is NULL or one, whose texts are NULL or end with a zero byte.
unsafe fn path_of(path: *const BraidcastPath) -> Result<Path, c_int> {
    // SAFETY: the caller's.
    let path = unsafe { get(path)? };
    // SAFETY: the caller's.
    let (remote, via) = unsafe { (required(path.remote, "remote")?, text::optional(path.via, "via")?) };
    let path: Path = remote.parse().or_else(|what: String| fail(BRAIDCAST_ERROR_ARGUMENT, what))?;
    Ok(via.map_or(path.clone(), |via| path.through(via)))
}
