use super::digits::{Value, put_hex, put_millis};
use braidcast_core::Instant;
use core::fmt::Display;
use core::time::Duration;
use std::io::Write;

/// Writes the members of a JSON object into a buffer that never fails.
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Fields<'a> {
    /// Begins an object.
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, any: false }
    }

    /// Ends it.
    pub(super) fn end(self) {
        self.out.push(b'}');
    }

    fn key(&mut self, key: &str) {
        if core::mem::replace(&mut self.any, true) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// A number or truth value.
    pub(super) fn raw(&mut self, key: &str, value: impl Value) -> &mut Self {
        self.key(key);
        value.put(self.out);
        self
    }

    /// The same, left out if there is none.
    pub(super) fn maybe(&mut self, key: &str, value: Option<impl Value>) -> &mut Self {
        if let Some(value) = value {
            self.raw(key, value);
        }
        self
    }

    /// A fraction; what is no number is left out.
    pub(super) fn real(&mut self, key: &str, value: Option<f64>) -> &mut Self {
        self.maybe(key, value.filter(|value| value.is_finite()))
    }

    /// A word without characters that JSON escapes.
    pub(super) fn word(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
        self
    }

    /// The same of what is shown as one, for what is written rarely.
    pub(super) fn shown(&mut self, key: &str, value: impl Display) -> &mut Self {
        self.key(key);
        let _ = write!(self.out, "\"{value}\"");
        self
    }

    /// A number as a word.
    pub(super) fn numeral(&mut self, key: &str, value: impl Value) -> &mut Self {
        self.key(key);
        self.out.push(b'"');
        value.put(self.out);
        self.out.push(b'"');
        self
    }

    /// Eight hexadecimal digits as a word.
    pub(super) fn hex(&mut self, key: &str, value: u32) -> &mut Self {
        self.key(key);
        self.out.push(b'"');
        put_hex(self.out, value);
        self.out.push(b'"');
        self
    }

    /// Any text.
    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.out.push(b'"');
        for c in value.chars() {
            match c {
                '"' | '\\' => _ = write!(self.out, "\\{c}"),
                c if c < ' ' => _ = write!(self.out, "\\u{:04x}", u32::from(c)),
                c => _ = write!(self.out, "{c}"),
            }
        }
        self.out.push(b'"');
        self
    }

    /// A time span, milliseconds to the nanosecond.
    pub(super) fn span(&mut self, key: &str, span: Duration) -> &mut Self {
        self.nanos(key, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The same, left out if there is none.
    pub(super) fn maybe_span(&mut self, key: &str, span: Option<Duration>) -> &mut Self {
        if let Some(span) = span {
            self.span(key, span);
        }
        self
    }

    /// A time, milliseconds since the clock's origin to the nanosecond.
    pub(super) fn time(&mut self, key: &str, at: Instant) -> &mut Self {
        self.nanos(key, at.as_nanos())
    }

    fn nanos(&mut self, key: &str, nanos: u64) -> &mut Self {
        self.key(key);
        put_millis(self.out, nanos);
        self
    }

    /// An object.
    pub(super) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Fields<'_>)) -> &mut Self {
        self.key(key);
        let mut inner = Fields::begin(self.out);
        fill(&mut inner);
        inner.end();
        self
    }

    /// A list of words.
    pub(super) fn words(&mut self, key: &str, words: &[&str]) -> &mut Self {
        self.key(key);
        self.out.push(b'[');
        for (n, word) in words.iter().enumerate() {
            let _ = write!(self.out, "{}\"{word}\"", if n > 0 { "," } else { "" });
        }
        self.out.push(b']');
        self
    }
}
