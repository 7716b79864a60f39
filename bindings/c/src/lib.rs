//! The C library: `braidcast_socket` behind an opaque handle.
//!
//! `include/braidcast.h` is made of this file by a test
//! (`UPDATE_HEADER=1 cargo test -p braidcast-c --test header`). No panic crosses the border: it
//! becomes [`BRAIDCAST_ERROR_PANIC`].

mod error;
mod rate;
mod text;

use braidcast_socket::{ConnectionId, Event, Path, Protection, SendOptions, Socket};
use error::{check, fail, guard};
use std::ffi::{CString, c_char, c_int};
use std::os::fd::AsRawFd;
use std::time::Duration;
use text::{required, to_c};

pub use error::braidcast_last_error;
pub use rate::{
    BraidcastRate, BraidcastRateOptions, braidcast_follow_rate, braidcast_rate_report, braidcast_set_rate_limits,
};

/// It was done.
pub const BRAIDCAST_OK: c_int = 0;
/// An argument cannot be: a null pointer, text that is not UTF-8, an address that is none.
pub const BRAIDCAST_ERROR_ARGUMENT: c_int = -1;
/// There is no such connection, or it is over.
pub const BRAIDCAST_ERROR_NO_CONNECTION: c_int = -2;
/// The send buffer is full: wait for BRAIDCAST_WRITABLE.
pub const BRAIDCAST_ERROR_FULL: c_int = -3;
/// The message was not taken for another reason: it is empty or too long, or the connection is closing.
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
/// There are messages to receive where there were none.
pub const BRAIDCAST_READABLE: c_int = 2;
/// There is room to send again after BRAIDCAST_ERROR_FULL.
pub const BRAIDCAST_WRITABLE: c_int = 3;
/// A path carries data; `text` is its name.
pub const BRAIDCAST_PATH_UP: c_int = 4;
/// A path no longer answers; `text` is its name.
pub const BRAIDCAST_PATH_DOWN: c_int = 5;
/// A message was discarded, too late or repeated too often; `context` is what it was sent with.
pub const BRAIDCAST_DISCARDED: c_int = 6;
/// The connection is over; `text` says why.
pub const BRAIDCAST_CLOSED: c_int = 7;

/// A socket for messages over several networks at once. One thread at a time may use it.
pub struct BraidcastSocket {
    socket: Socket,
    /// The message that braidcast_recv handed out last.
    message: Vec<u8>,
    /// The text of the event that braidcast_poll handed out last.
    text: CString,
}

/// A path: where it leads, and what it leaves through.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastPath {
    /// Address and port of the other end, for example "192.0.2.1:9000" or "[2001:db8::1]:9000".
    pub remote: *const c_char,
    /// The interface ("wlan0") or local address that it leaves through; NULL: as the routing table has it.
    pub via: *const c_char,
}

/// How to send a message. All zero is the default: in order on stream 0, delivered however long it takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BraidcastSendOptions {
    /// Messages of a stream are in order; 0 to 63.
    pub stream: u16,
    /// Not 0: deliver it as soon as it is complete, whatever its stream waits for.
    pub unordered: u8,
    /// In how many milliseconds it must be at the other end; later it is discarded. 0: it is never too late.
    pub deadline_ms: u32,
    /// The kind of message, for the other end's application.
    pub ppid: u32,
    /// Comes back in the event BRAIDCAST_DISCARDED.
    pub context: u64,
}

/// A message that was received.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastMessage {
    /// Its bytes, until the next call of braidcast_recv or braidcast_socket_free with this socket.
    pub data: *const u8,
    /// How many.
    pub len: usize,
    /// The stream it came on.
    pub stream: u16,
    /// What the sender said of its kind.
    pub ppid: u32,
}

/// What happened to a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastEvent {
    /// Which one.
    pub connection: u64,
    /// BRAIDCAST_CONNECTED and so on.
    pub kind: c_int,
    /// Of BRAIDCAST_DISCARDED.
    pub context: u64,
    /// A name or a reason, else "". Until the next call of braidcast_poll or braidcast_socket_free with this socket.
    pub text: *const c_char,
}

/// Makes a socket. With a `key`, which both ends share, only who has it gets in; NULL: encrypted,
/// with anybody. `flags`: 0, or BRAIDCAST_PLAIN. Returns NULL on failure; braidcast_last_error says
/// why. Free it with braidcast_socket_free.
///
/// # Safety
/// `key` is NULL or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_socket_new(key: *const c_char, flags: u32) -> *mut BraidcastSocket {
    let mut made = std::ptr::null_mut();
    guard(|| {
        // SAFETY: the caller's, as above.
        let key = unsafe { text::optional(key, "key") }?;
        let protection = match (key, flags) {
            (None, 0) => Protection::Anyone,
            (Some(key), 0) => Protection::Key(key.to_owned()),
            (None, BRAIDCAST_PLAIN) => Protection::Plain,
            (Some(_), BRAIDCAST_PLAIN) => {
                return fail(BRAIDCAST_ERROR_ARGUMENT, "a key needs encryption: leave out one");
            }
            (_, other) => return fail(BRAIDCAST_ERROR_ARGUMENT, format!("flags {other:#x} are unknown")),
        };
        let socket = check(Socket::new(&protection))?;
        made = Box::into_raw(Box::new(BraidcastSocket { socket, message: Vec::new(), text: CString::default() }));
        Ok(BRAIDCAST_OK)
    });
    made
}

/// Frees a socket; NULL does nothing. Connections that were not shut down just fall silent.
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
        let it = unsafe { socket.as_ref() }.map_or_else(null, Ok)?;
        Ok(it.socket.as_raw_fd())
    })
}

/// Opens the local address `address`, for example "0.0.0.0:9000"; port 0 takes any that is free.
/// Writes the port to `port` unless that is NULL.
///
/// # Safety
/// `socket` is of braidcast_socket_new, `address` ends with a zero byte, `port` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_bind(socket: *mut BraidcastSocket, address: *const c_char, port: *mut u16) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, address) = unsafe { (handle(socket)?, required(address, "address")?) };
        let bound = check(it.socket.bind(text::address(address)?))?;
        // SAFETY: the caller's.
        if let Some(port) = unsafe { port.as_mut() } {
            *port = bound.port();
        }
        Ok(BRAIDCAST_OK)
    })
}

/// Accepts connections from now on; each begins with the event BRAIDCAST_CONNECTED.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_listen(socket: *mut BraidcastSocket) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        unsafe { handle(socket)? }.socket.listen();
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
        if paths.is_null() || count == 0 {
            return fail(BRAIDCAST_ERROR_ARGUMENT, "no paths");
        }
        // SAFETY: the caller's.
        let (it, paths) = unsafe { (handle(socket)?, std::slice::from_raw_parts(paths, count)) };
        // SAFETY: the caller's.
        let paths = paths.iter().map(|path| unsafe { path_of(path) }).collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the caller's.
        let connection = unsafe { connection.as_mut() }.map_or_else(null, Ok)?;
        *connection = check(it.socket.connect(&paths))?.0;
        Ok(BRAIDCAST_OK)
    })
}

/// Adds a path to a connection that was begun here. One whose interface is not there joins when that appears.
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
        let (it, path) = unsafe { (handle(socket)?, path_of(path.as_ref().map_or_else(null, Ok)?)?) };
        check(it.socket.join(ConnectionId(connection), &path))?;
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
        Ok(c_int::from(check(it.socket.leave(ConnectionId(connection), name))?))
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
    data: *const u8,
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
        let (message, options) = unsafe { (std::slice::from_raw_parts(data, len), options.as_ref()) };
        let given = options.copied().unwrap_or_default();
        let how = SendOptions {
            stream: given.stream,
            unordered: given.unordered != 0,
            deadline: (given.deadline_ms > 0).then(|| Duration::from_millis(given.deadline_ms.into())),
            max_retransmissions: None,
            ppid: given.ppid,
            context: given.context,
        };
        check(it.socket.send(ConnectionId(connection), message, &how))?;
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
        let (it, message) = unsafe { (handle(socket)?, message.as_mut().map_or_else(null, Ok)?) };
        let Some(received) = check(it.socket.recv(ConnectionId(connection), &mut it.message))? else { return Ok(0) };
        let (data, len) = (it.message.as_ptr(), it.message.len());
        *message = BraidcastMessage { data, len, stream: received.stream, ppid: received.ppid };
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
        let (it, out) = unsafe { (handle(socket)?, event.as_mut().map_or_else(null, Ok)?) };
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let Some((connection, event)) = check(it.socket.poll(timeout))? else { return Ok(0) };
        let (kind, context, text) = match event {
            Event::Connected => (BRAIDCAST_CONNECTED, 0, String::new()),
            Event::Readable => (BRAIDCAST_READABLE, 0, String::new()),
            Event::Writable => (BRAIDCAST_WRITABLE, 0, String::new()),
            Event::PathUp { name, .. } => (BRAIDCAST_PATH_UP, 0, name),
            Event::PathDown { name, .. } => (BRAIDCAST_PATH_DOWN, 0, name),
            Event::Discarded { context } => (BRAIDCAST_DISCARDED, context, String::new()),
            Event::Closed(reason) => (BRAIDCAST_CLOSED, 0, reason.to_string()),
            // A kind that this library does not know yet; nothing is asked of the program.
            _ => (0, 0, String::new()),
        };
        it.text = to_c(text);
        *out = BraidcastEvent { connection: connection.0, kind, context, text: it.text.as_ptr() };
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
        check(unsafe { handle(socket)? }.socket.shutdown(ConnectionId(connection)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Ends a connection at once; the other end is told `reason`, which may be NULL. BRAIDCAST_CLOSED follows.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `reason` is NULL or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_abort(
    socket: *mut BraidcastSocket,
    connection: u64,
    reason: *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, reason) = unsafe { (handle(socket)?, text::optional(reason, "reason")?) };
        check(it.socket.abort(ConnectionId(connection), reason.unwrap_or_default()))?;
        Ok(BRAIDCAST_OK)
    })
}

/// # Safety
/// `socket` is NULL or of braidcast_socket_new, and nobody else uses it now.
unsafe fn handle<'a>(socket: *mut BraidcastSocket) -> Result<&'a mut BraidcastSocket, c_int> {
    // SAFETY: the caller's.
    unsafe { socket.as_mut() }.map_or_else(null, Ok)
}

fn null<T>() -> Result<T, c_int> {
    fail(BRAIDCAST_ERROR_ARGUMENT, "a null pointer")
}

/// # Safety
/// Its texts are NULL or end with a zero byte.
unsafe fn path_of(path: &BraidcastPath) -> Result<Path, c_int> {
    // SAFETY: the caller's.
    let (remote, via) = unsafe { (required(path.remote, "remote")?, text::optional(path.via, "via")?) };
    let remote = text::address(remote)?;
    Ok(via.map_or(Path::to(remote), |via| Path::via(remote, via)))
}
