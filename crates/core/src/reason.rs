//! What ends say to each other when one of them ends a connection.

use crate::words;
use core::fmt;

/// Why one end sends the other away: a number for programs, and words for people.
///
/// It travels as `#NUMBER WORDS`, or as the words alone if the number is 0, so that other tools show it as well.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reason {
    /// What the two ends agree on that it means; 0 if it means nothing.
    pub code: u32,
    /// Mostly text in UTF-8, and any bytes.
    pub text: Vec<u8>,
}

impl Reason {
    /// `text`, called `code`.
    pub fn new(code: u32, text: impl AsRef<[u8]>) -> Self {
        Self { code, text: text.as_ref().to_vec() }
    }

    /// Reads what the other end sent.
    pub fn parse(bytes: &[u8]) -> Self {
        Self::coded(bytes).unwrap_or_else(|| Self::new(0, bytes))
    }

    fn coded(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"#")?;
        let blank = rest.iter().position(|byte| *byte == b' ')?;
        let (code, text) = rest.split_at(blank);
        // An integer would take a sign too.
        let code = code.iter().all(u8::is_ascii_digit).then(|| core::str::from_utf8(code).ok()?.parse().ok());
        Some(Self::new(code??, &text[1..]))
    }

    /// The bytes that travel, `most` at most. Text is cut between characters.
    pub fn emit(&self, most: usize) -> Vec<u8> {
        let mut bytes = match (self.code, self.text.first()) {
            (0, first) if first != Some(&b'#') => Vec::new(),
            (code, _) => format!("#{code} ").into_bytes(),
        };
        bytes.extend_from_slice(cut(&self.text, most.saturating_sub(bytes.len())));
        bytes
    }
}

/// The beginning of `text`, `most` bytes at most: of UTF-8 whole characters.
pub fn cut(text: &[u8], most: usize) -> &[u8] {
    let Some(head) = text.get(..most).filter(|_| text.len() > most) else { return text };
    match core::str::from_utf8(head) {
        // It ends within a character; what is no text ends anywhere.
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(0, text)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self { code: 0, text: text.into_bytes() }
    }
}

/// As people may be [shown](words) it.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_comes_out_as_it_went_in(code: u32, text in prop::collection::vec(any::<u8>(), 0..60), other: Vec<u8>) {
            let reason = Reason { code, text };
            prop_assert_eq!(Reason::parse(&reason.emit(256)), reason);
            // Whatever a peer says is a reason.
            Reason::parse(&other);
        }
    }

    #[test]
    fn what_looks_like_a_number_is_one_or_else_text() {
        for (code, text) in [(0, ""), (0, "bye"), (7, "say \"bye\""), (u32::MAX, ""), (0, "#5 is alive"), (0, "#")] {
            assert_eq!(Reason::parse(&Reason::new(code, text).emit(256)), Reason::new(code, text), "{text}");
        }
        for text in ["#99999999999 x", "#+7 x", "# x", "#7"] {
            assert_eq!(Reason::parse(text.as_bytes()), Reason::from(text));
        }
        assert_eq!(Reason::new(7, "bye").emit(256), b"#7 bye");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("\u{4e2d}\u{4e2d}".as_bytes(), 5), "\u{4e2d}".as_bytes());
        assert_eq!(cut(&[0xff, 0xe4, 1, 2], 3), [0xff, 0xe4, 1]);
        assert_eq!(cut(&[b'x', 0xe4], 2), [b'x', 0xe4], "nothing is cut off");
        assert_eq!(Reason::new(7, "r".repeat(300)).emit(256).len(), 256);
        assert_eq!(Reason::new(7, "r").emit(2), b"#7 ");
    }
}
