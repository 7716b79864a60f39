use crate::text::to_c;
use crate::*;
use braidcast_socket::Error;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// What went wrong in this thread's last call that failed, in words; "" if none did. Until the next
/// call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn braidcast_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// Notes what went wrong; the code to return.
pub(crate) fn fail<T>(code: c_int, what: impl Into<String>) -> Result<T, c_int> {
    LAST.set(to_c(what.into()));
    Err(code)
}

/// Runs `call`; a panic ends here.
pub(crate) fn guard(call: impl FnOnce() -> Result<c_int, c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(code) | Err(code)) => code,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            let _: Result<(), c_int> = fail(BRAIDCAST_ERROR_PANIC, format!("a bug in the library: {text}"));
            BRAIDCAST_ERROR_PANIC
        }
    }
}

/// The code of an error.
pub(crate) fn check<T>(result: Result<T, Error>) -> Result<T, c_int> {
    use braidcast_socket::SendError;
    result.or_else(|error| {
        let code = match &error {
            Error::NoConnection(_) => BRAIDCAST_ERROR_NO_CONNECTION,
            Error::Send(SendError::BufferFull { .. } | SendError::QueueFull { .. }) => BRAIDCAST_ERROR_FULL,
            Error::Send(_) => BRAIDCAST_ERROR_SEND,
            Error::Connect(_) | Error::Join(_) | Error::Bind(_) | Error::Links(_) => BRAIDCAST_ERROR_PATH,
            Error::Key(_) | Error::NoKey | Error::Identity { .. } | Error::Fingerprint(_) | Error::NoIdentity => {
                BRAIDCAST_ERROR_KEY
            }
            _ => BRAIDCAST_ERROR_SYSTEM,
        };
        fail(code, error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        assert_eq!(guard(|| panic!("seven")), BRAIDCAST_ERROR_PANIC);
        // SAFETY: it ends with a zero byte and nothing fails meanwhile.
        let text = unsafe { CStr::from_ptr(braidcast_last_error()) };
        assert_eq!(text.to_str().unwrap(), "a bug in the library: seven");
    }
}
