//! The exceptions of `python/braidcast/errors.py`.
#![allow(missing_docs, reason = "they are documented there")]

use pyo3::import_exception;

import_exception!(braidcast.errors, Error);
import_exception!(braidcast.errors, NoConnection);
import_exception!(braidcast.errors, BufferFull);
import_exception!(braidcast.errors, Misuse);
import_exception!(braidcast.errors, SystemFailure);
import_exception!(braidcast.errors, Broken);
