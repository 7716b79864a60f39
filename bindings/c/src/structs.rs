//! Structures that begin with their size.

use crate::error::fail;
use crate::{BRAIDCAST_ERROR_ARGUMENT, null};
use std::ffi::c_int;

/// No structure will be larger: what claims to be was not initialised.
const MOST: usize = 4096;

/// Returns the size that the program gave.
///
/// # Safety
/// `it` is NULL or begins with a size.
pub(crate) unsafe fn size<T: Copy>(it: *const T) -> Result<usize, c_int> {
    if it.is_null() {
        return null();
    }
    // SAFETY: the caller's.
    let size = unsafe { it.cast::<usize>().read() };
    if !(size_of::<usize>()..=MOST).contains(&size) {
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        let lower = |c: char| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() };
        let name = name.chars().map(lower).collect::<String>();
        let name = name.trim_start_matches('_');
        let what =
            format!("the size of a {name} is given as {size}: set `size` to sizeof of the structure before the call");
        return fail(BRAIDCAST_ERROR_ARGUMENT, what);
    }
    Ok(size)
}

/// Reads a structure; NULL is the default. What it does not have is zero.
///
/// # Safety
/// `it` is NULL or has as many bytes as it says first.
pub(crate) unsafe fn get<T: Default + Copy>(it: *const T) -> Result<T, c_int> {
    let mut value = T::default();
    if !it.is_null() {
        // SAFETY: the caller's; no more is copied than both have.
        unsafe {
            let size = size(it)?.min(size_of::<T>());
            std::ptr::copy_nonoverlapping(it.cast::<u8>(), (&raw mut value).cast::<u8>(), size);
        }
    }
    Ok(value)
}

/// Writes as much of `value` as the program's structure has room for, and zero behind it. Its size
/// stays.
///
/// # Safety
/// `out` is NULL or can be written, as many bytes as it says first.
pub(crate) unsafe fn put<T: Copy>(out: *mut T, value: T) -> Result<(), c_int> {
    // SAFETY: the caller's; no more is written than there is room for.
    unsafe {
        let size = size(out)?;
        let known = size.min(size_of::<T>());
        let bytes = out.cast::<u8>();
        std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), bytes, known);
        std::ptr::write_bytes(bytes.add(known), 0, size - known);
        out.cast::<usize>().write(size);
    }
    Ok(())
}
