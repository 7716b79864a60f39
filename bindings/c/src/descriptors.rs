//! Sockets of the program's own, and what it does to those that are opened.

use crate::error::{check, fail, guard};
use crate::paths::chars;
use crate::{
    BRAIDCAST_ERROR_ARGUMENT, BRAIDCAST_ERROR_SYSTEM, BRAIDCAST_NAME_SIZE, BRAIDCAST_OK, BraidcastSocket, handle,
};
use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What prepares a descriptor, with the pointer that the program gave. Returns 0, or an errno if the
/// socket is not to be used.
pub type BraidcastPrepare = Option<unsafe extern "C" fn(user: *mut c_void, fd: c_int) -> c_int>;

/// Has others connect to a UDP socket that is bound, for example one that systemd has opened. It is
/// duplicated, and stays the program's to close; it becomes non-blocking. Writes its address to
/// `address` unless that is NULL.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `address` is NULL or has BRAIDCAST_NAME_SIZE bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_adopt(socket: *mut BraidcastSocket, fd: c_int, address: *mut c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        if fd < 0 {
            return fail(BRAIDCAST_ERROR_ARGUMENT, format!("{fd} is not a file descriptor"));
        }
        // SAFETY: it is used for this call alone, in which the system says if it is not open.
        let duplicated = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
        let duplicated =
            duplicated.or_else(|error| fail(BRAIDCAST_ERROR_SYSTEM, format!("descriptor {fd}: {error}")))?;
        let adopted = check(it.socket.with(|socket| socket.adopt(duplicated)))?;
        if !address.is_null() {
            let text = chars(&adopted.to_string());
            // SAFETY: the caller's; `text` has as many bytes.
            unsafe { address.copy_from_nonoverlapping(text.as_ptr(), BRAIDCAST_NAME_SIZE) };
        }
        Ok(BRAIDCAST_OK)
    })
}

/// Whom to call for a descriptor.
struct Prepare {
    call: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    user: *mut c_void,
}

// SAFETY: the program gave both for calls from any thread that calls this library.
unsafe impl Send for Prepare {}

impl Prepare {
    fn prepare(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: whoever called braidcast_on_open gave both.
        match unsafe { (self.call)(self.user, fd.as_raw_fd()) } {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Calls `prepare` with each UDP socket that is opened from now on, before anything is sent through
/// it: to set a mark, or to keep it out of a VPN. If it returns an errno, the path is not opened.
/// It is called within functions of this socket, and may call none of them. NULL: no longer.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `prepare` may be called with `user` until the socket is
/// freed, by each thread that calls functions of the socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_on_open(
    socket: *mut BraidcastSocket,
    prepare: BraidcastPrepare,
    user: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        let prepare = prepare.map(|call| Prepare { call, user });
        check(it.socket.with(|socket| {
            socket.on_open(move |fd| prepare.as_ref().map_or(Ok(()), |it| it.prepare(fd)));
            Ok(())
        }))?;
        Ok(BRAIDCAST_OK)
    })
}
