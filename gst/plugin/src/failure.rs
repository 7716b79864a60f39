//! What went wrong, and what to do.

use gst::ResourceError as Code;
use gstreamer as gst;
use std::fmt;

/// Words for GStreamer's bus, and the code that applications look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    what: String,
    how: String,
}

impl Failure {
    pub(crate) fn new(code: Code, what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { code, what: what.into(), how: how.into() }
    }

    /// A property that cannot be used.
    pub(crate) fn property(name: &str, why: impl fmt::Display, how: impl Into<String>) -> Self {
        Self::new(Code::Settings, format!("property {name}: {why}"), how)
    }

    /// The operating system refused something that it never refuses.
    pub(crate) fn broken(error: &std::io::Error) -> Self {
        Self::new(Code::Failed, format!("a system call failed: {error}"), "check limits on open files (`ulimit -n`)")
    }

    pub(crate) fn message(&self) -> gst::ErrorMessage {
        gst::error_msg!(self.code, ("{self}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.how)
    }
}
