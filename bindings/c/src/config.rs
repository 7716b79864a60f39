//! How a socket is made, and who is let in.

use crate::error::{check, fail, guard};
use crate::structs::get;
use crate::text::{self, to_c};
use crate::{BRAIDCAST_ERROR_ARGUMENT, BRAIDCAST_OK, BRAIDCAST_PLAIN, BraidcastSocket, handle, null};
use braidcast_socket::{ConnectionId, Error, Identity, Options, Profile, Protection, SharedSocket, Socket, Trust};
use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

/// Live data: quick acknowledgements and timers, short queues.
pub const BRAIDCAST_PROFILE_LIVE: c_int = 0;
/// As much as the paths carry; a dead path is noticed after seconds.
pub const BRAIDCAST_PROFILE_BULK: c_int = 1;
/// Few data that matter at once: what would miss its deadline goes over a second path too.
pub const BRAIDCAST_PROFILE_VOICE: c_int = 2;

/// Bytes of a fingerprint in text, with the zero byte behind it.
pub const BRAIDCAST_FINGERPRINT_SIZE: usize = 65;

/// What a program is told in words, with the pointer that it gave.
pub type BraidcastLog = Option<unsafe extern "C" fn(user: *mut c_void, text: *const c_char)>;

/// What a socket is made with. All zero but the size is the default: encrypted, with anybody, for
/// live data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastConfig {
    /// sizeof(braidcast_config).
    pub size: usize,
    /// A key that both ends share; only who has it gets in. Not beside an identity.
    pub key: *const c_char,
    /// The file of a key of this end's own, as `braidcast key identity FILE` makes it; it is made if
    /// it is not there.
    pub identity: *const c_char,
    /// With an identity: the fingerprints of those who are let in. NULL: anybody; braidcast_peer
    /// says who it is.
    pub authorized: *const *const c_char,
    /// How many. With `authorized` not NULL 0 lets nobody in.
    pub authorized_count: usize,
    /// 0, or BRAIDCAST_PLAIN.
    pub flags: u32,
    /// BRAIDCAST_PROFILE_LIVE and so on.
    pub profile: c_int,
    /// After how many milliseconds of silence a connection ends. 0: 30,000.
    pub longest_silence_ms: u32,
    /// Bytes of messages that wait at most to be sent on each connection. 0: 4 MiB.
    pub send_buffer: usize,
    /// Bytes of messages that wait at most to be received. 0: 4 MiB.
    pub receive_buffer: usize,
    /// Called within braidcast_poll for what went wrong without ending anything, and for those who
    /// were turned away. It may not call braidcast_poll. NULL: nothing is said.
    pub log: BraidcastLog,
    /// Its first argument.
    pub log_user: *mut c_void,
    /// A code by which redundancy is sent, for example "tetrys:10,9,200": what is lost need not be sent
    /// again if enough of the rest arrives. Every socket takes it. NULL: none is sent.
    pub fec: *const c_char,
    /// Which path the next packet takes, for example "earliest-delivery". NULL: as the profile has it.
    pub scheduler: *const c_char,
    /// In which order messages leave while none can, and which are discarded then, for example
    /// "in-time". NULL: streams by their priority, each in the order in which its messages came.
    pub queue: *const c_char,
    /// Bytes of the longest message, at most as many as each buffer has. 0: 2 MiB, or as many as
    /// smaller buffers have.
    pub max_message: usize,
    /// Connections that others may begin; one more takes the place of one that is silent. 0: 1024;
    /// below 0: none.
    pub max_connections: i32,
}

impl Default for BraidcastConfig {
    fn default() -> Self {
        Self {
            size: 0,
            key: std::ptr::null(),
            identity: std::ptr::null(),
            authorized: std::ptr::null(),
            authorized_count: 0,
            flags: 0,
            profile: 0,
            longest_silence_ms: 0,
            send_buffer: 0,
            receive_buffer: 0,
            log: None,
            log_user: std::ptr::null_mut(),
            fec: std::ptr::null(),
            scheduler: std::ptr::null(),
            queue: std::ptr::null(),
            max_message: 0,
            max_connections: 0,
        }
    }
}

/// Where words go.
#[derive(Clone, Copy)]
pub(crate) struct Log {
    call: unsafe extern "C" fn(*mut c_void, *const c_char),
    user: *mut c_void,
}

impl Log {
    /// Says what there is to say. The socket is free for other calls meanwhile.
    pub(crate) fn say(self, socket: &SharedSocket) -> Result<(), Error> {
        let news = socket.with(|it| {
            let mut lines = it.take_warnings();
            let refused = std::iter::from_fn(|| it.next_refused());
            lines.extend(refused.map(|it| format!("turned away {}: {}", it.remote, it.why)));
            Ok(lines)
        })?;
        for line in news {
            let text = to_c(line);
            // SAFETY: whoever made the socket gave both.
            unsafe { (self.call)(self.user, text.as_ptr()) };
        }
        Ok(())
    }
}

/// Makes a socket. Returns NULL on failure; braidcast_last_error says why. Free it with
/// braidcast_socket_free.
///
/// # Safety
/// `config` is NULL or one, whose texts are NULL or end with a zero byte; `authorized` is NULL or
/// has `authorized_count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_socket_new_config(config: *const BraidcastConfig) -> *mut BraidcastSocket {
    let mut made = std::ptr::null_mut();
    guard(|| {
        // SAFETY: the caller's.
        let config = unsafe { get(config)? };
        // SAFETY: the caller's.
        let protection = unsafe { protection(&config)? };
        let profile = match config.profile {
            BRAIDCAST_PROFILE_LIVE => Profile::Live,
            BRAIDCAST_PROFILE_BULK => Profile::Bulk,
            BRAIDCAST_PROFILE_VOICE => Profile::Voice,
            other => return fail(BRAIDCAST_ERROR_ARGUMENT, format!("profile {other} is unknown")),
        };
        let mut builder = Socket::builder().profile(profile).protection(protection);
        if config.longest_silence_ms > 0 {
            builder = builder.longest_silence(Some(Duration::from_millis(config.longest_silence_ms.into())));
        }
        // SAFETY: the caller's.
        let (fec, scheduler, queue) = unsafe {
            (
                text::optional(config.fec, "fec")?,
                text::optional(config.scheduler, "scheduler")?,
                text::optional(config.queue, "queue")?,
            )
        };
        if let Some(code) = fec {
            builder = builder.fec(code.parse().or_else(|why: String| fail(BRAIDCAST_ERROR_ARGUMENT, why))?);
        }
        if let Some(name) = scheduler {
            builder = builder.scheduler(name.parse().or_else(|why| fail(BRAIDCAST_ERROR_ARGUMENT, format!("{why}")))?);
        }
        if let Some(name) = queue {
            builder = builder.queue(name.parse().or_else(|why| fail(BRAIDCAST_ERROR_ARGUMENT, format!("{why}")))?);
        }
        if config.send_buffer > 0 || config.receive_buffer > 0 {
            let usual = Options::default().limits;
            let given = |bytes, usual| if bytes > 0 { bytes } else { usual };
            let send = given(config.send_buffer, usual.send_buffer);
            builder = builder.buffers(send, given(config.receive_buffer, usual.receive_buffer));
        }
        if config.max_message > 0 {
            builder = builder.max_message(config.max_message);
        }
        if config.max_connections != 0 {
            builder = builder.max_connections(usize::try_from(config.max_connections).unwrap_or(0));
        }
        let socket = check(builder.build().and_then(SharedSocket::new))?;
        let log = config.log.map(|call| Log { call, user: config.log_user });
        made = Box::into_raw(Box::new(BraidcastSocket::new(socket, log)));
        Ok(BRAIDCAST_OK)
    });
    made
}

/// # Safety
/// As of [`braidcast_socket_new_config`].
pub(crate) unsafe fn protection(config: &BraidcastConfig) -> Result<Protection, c_int> {
    // SAFETY: the caller's.
    let (key, identity) = unsafe { (text::optional(config.key, "key")?, text::optional(config.identity, "identity")?) };
    let refused = |what: &str| fail(BRAIDCAST_ERROR_ARGUMENT, what);
    match (key, identity, config.flags) {
        (_, _, other) if other & !BRAIDCAST_PLAIN != 0 => refused(&format!("flags {other:#x} are unknown")),
        (Some(_), Some(_), _) => refused("a key that is shared and an identity do not go together: leave out one"),
        (Some(_), _, BRAIDCAST_PLAIN) => refused("a key needs encryption: leave out one"),
        (_, Some(_), BRAIDCAST_PLAIN) => refused("an identity needs encryption: leave out one"),
        (_, None, _) if !config.authorized.is_null() => refused("who has a list of others needs an identity"),
        (Some(key), ..) => Ok(Protection::Key(key.to_owned())),
        (_, Some(file), _) => {
            let own = check(Identity::load_or_create(file))?;
            let trust = if config.authorized.is_null() {
                Trust::Anyone
            } else {
                // SAFETY: the caller's.
                unsafe { list(config.authorized, config.authorized_count)? }
            };
            Ok(Protection::Identity { own, trust })
        }
        (None, None, BRAIDCAST_PLAIN) => Ok(Protection::Plain),
        (None, None, _) => Ok(Protection::Anyone),
    }
}

/// # Safety
/// `keys` are `count`, and end with a zero byte.
unsafe fn list(keys: *const *const c_char, count: usize) -> Result<Trust, c_int> {
    let mut all = Vec::with_capacity(count.min(1024));
    for n in 0..count {
        // SAFETY: the caller's.
        all.push(unsafe { text::required(*keys.add(n), "a fingerprint")? });
    }
    check(Trust::only(all))
}

/// Writes the fingerprint of the identity in a file, by which others know it. If there is no such
/// file, a new key is made in it.
///
/// # Safety
/// `file` ends with a zero byte; `fingerprint` has BRAIDCAST_FINGERPRINT_SIZE bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_identity(file: *const c_char, fingerprint: *mut c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let file = unsafe { text::required(file, "file")? };
        if fingerprint.is_null() {
            return null();
        }
        let own = check(Identity::load_or_create(file))?;
        // SAFETY: the caller's.
        unsafe { write(fingerprint, &own.fingerprint().to_string()) };
        Ok(BRAIDCAST_OK)
    })
}

/// # Safety
/// `out` has BRAIDCAST_FINGERPRINT_SIZE bytes.
unsafe fn write(out: *mut c_char, text: &str) {
    let bytes = text.bytes().take(BRAIDCAST_FINGERPRINT_SIZE - 1).chain([0]);
    // SAFETY: the caller's; there are no more than that many.
    bytes.enumerate().for_each(|(n, byte)| unsafe { out.add(n).write(byte as c_char) });
}

/// Lets in others from now on: those with these `count` fingerprints. Connections that there are
/// stay; braidcast_peer says who is there.
///
/// # Safety
/// `socket` is one with an identity; `authorized` are `count` texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_set_authorized(
    socket: *mut BraidcastSocket,
    authorized: *const *const c_char,
    count: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        if authorized.is_null() && count > 0 {
            return null();
        }
        // SAFETY: the caller's.
        let trust = unsafe { list(authorized, count)? };
        check(it.socket.with(|socket| socket.set_trust(trust)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Who is at the other end of a connection: writes the fingerprint of its key in hexadecimal digits,
/// or "" if none is known. Returns 1 if that is one that this end insisted on, else 0.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `fingerprint` has BRAIDCAST_FINGERPRINT_SIZE bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_peer(
    socket: *mut BraidcastSocket,
    connection: u64,
    fingerprint: *mut c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        if fingerprint.is_null() {
            return null();
        }
        let peer = check(it.socket.with(|socket| socket.peer(ConnectionId(connection))))?;
        let text = peer.and_then(|it| it.fingerprint).map(|it| it.to_string()).unwrap_or_default();
        // SAFETY: the caller's.
        unsafe { write(fingerprint, &text) };
        Ok(c_int::from(peer.is_some_and(|it| it.authenticated)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_runs_as_documented;
    use crate::{braidcast_socket_free, braidcast_socket_new};

    #[test]
    fn a_socket_runs_as_documented() {
        // SAFETY: NULL is the default; what is made is freed and used by nobody else.
        let made =
            unsafe { [braidcast_socket_new_config(std::ptr::null()), braidcast_socket_new(std::ptr::null(), 0)] };
        for socket in made {
            // SAFETY: as above.
            let options = unsafe { (*socket).socket.with(|it| Ok(it.options().clone())) }.unwrap();
            let redundancy = options.redundancy.fec.map_or_else(|| "none".to_owned(), |it| it.to_string());
            assert_runs_as_documented!("`braidcast_socket`", options, redundancy);
            // SAFETY: as above.
            unsafe { braidcast_socket_free(socket) };
        }
    }
}
