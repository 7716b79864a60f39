//! Sockets of the program's own, and what it does to those that are opened.

use crate::errors::{Misuse, SystemFailure};
use pyo3::prelude::*;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A descriptor of its own for the file that `file` has: a number, or anything with `fileno()`.
pub(crate) fn duplicate(file: &Bound<'_, PyAny>) -> PyResult<OwnedFd> {
    let number: RawFd = match file.extract() {
        Ok(number) => number,
        Err(_) => file.call_method0("fileno")?.extract()?,
    };
    if number < 0 {
        return Err(Misuse::new_err(format!("{number} is not a file descriptor")));
    }
    // SAFETY: it is used for this call alone, in which the system says if it is not open.
    let duplicated = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned();
    duplicated.map_err(|error| SystemFailure::new_err(format!("descriptor {number}: {error}")))
}

/// Calls the program's function with a descriptor. An exception says that it is not to be used.
pub(crate) fn prepare(function: Option<&Py<PyAny>>, opened: BorrowedFd<'_>) -> io::Result<()> {
    let Some(function) = function else { return Ok(()) };
    Python::attach(|py| function.call1(py, (opened.as_raw_fd(),)).map(drop)).map_err(io::Error::other)
}
