/// Bytes of a peer's text that are kept, give or take a character.
const LONGEST: usize = 256;

/// Returns a peer's text as people, logs and pages may be shown it: printable ASCII and the letters
/// and digits of all scripts as they are, of anything else each byte as `\x1b`, and no more than 256
/// bytes. Whatever a peer says becomes text here, and nowhere else.
pub fn words(bytes: &[u8]) -> String {
    use core::fmt::Write;
    let mut shown = String::new();
    let mut text = bytes;
    while let Some(chunk) = text.utf8_chunks().next() {
        let known = chunk.valid().chars().next();
        let length = known.map_or(chunk.invalid().len(), char::len_utf8);
        let (these, rest) = text.split_at(length);
        if shown.len() >= LONGEST {
            shown.push('…');
            break;
        }
        match known.filter(|it| is_plain(*it)) {
            Some(plain) => shown.push(plain),
            // Nothing that a String takes can fail.
            None => these.iter().for_each(|byte| _ = write!(shown, "\\x{byte:02x}")),
        }
        text = rest;
    }
    shown
}

/// Moves no cursor, turns no text around, and looks like nothing else.
fn is_plain(it: char) -> bool {
    matches!(it, ' '..='~') || it.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::words;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_what_people_write_stays() {
        assert_eq!(words(b"the receiver's \"own\" words: 5 % \\"), "the receiver's \"own\" words: 5 % \\");
        assert_eq!(words(b"\x1b[2K\r\nConnected\x07\0"), "\\x1b[2K\\x0d\\x0aConnected\\x07\\x00");
        // CSI as one character of UTF-8, a right-to-left override, and bytes that are none.
        assert_eq!(words("\u{9b}2J\u{202e}".as_bytes()), "\\xc2\\x9b2J\\xe2\\x80\\xae");
        assert_eq!(words(&[b'x'; 5000]).chars().count(), 257);
    }

    proptest! {
        #[test]
        fn nothing_else_comes_out_whatever_goes_in(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let shown = words(&bytes);
            prop_assert!(shown.chars().all(|c| matches!(c, ' '..='~' | '…') || c.is_alphanumeric()));
            prop_assert!(shown.len() <= 256 + 15 + '…'.len_utf8());
        }
    }
}
