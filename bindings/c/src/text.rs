use crate::BRAIDCAST_ERROR_ARGUMENT;
use crate::error::fail;
use std::ffi::{CStr, CString, c_char, c_int};
use std::net::SocketAddr;

/// # Safety
/// `text` is NULL or ends with a zero byte.
pub(crate) unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, c_int> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    match unsafe { CStr::from_ptr(text) }.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => fail(BRAIDCAST_ERROR_ARGUMENT, format!("{name} is not UTF-8")),
    }
}

/// # Safety
/// As [`optional`].
pub(crate) unsafe fn required<'a>(text: *const c_char, name: &str) -> Result<&'a str, c_int> {
    // SAFETY: the caller's.
    match unsafe { optional(text, name) }? {
        Some(text) => Ok(text),
        None => fail(BRAIDCAST_ERROR_ARGUMENT, format!("{name} is NULL")),
    }
}

/// # Safety
/// `data` has `len` bytes, or `len` is 0.
pub(crate) unsafe fn bytes<'a>(data: *const u8, len: usize, name: &str) -> Result<&'a [u8], c_int> {
    match (len, data.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => fail(BRAIDCAST_ERROR_ARGUMENT, format!("{name} is NULL")),
        // SAFETY: the caller's.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(data, len) }),
    }
}

pub(crate) fn address(text: &str) -> Result<SocketAddr, c_int> {
    text.parse().or_else(|_| {
        let what = format!("'{text}' is not an address with a port, for example 192.0.2.1:9000 or [2001:db8::1]:9000");
        fail(BRAIDCAST_ERROR_ARGUMENT, what)
    })
}

/// Without the zero bytes that C would end at.
pub(crate) fn to_c(text: String) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
