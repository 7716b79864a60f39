/// Characters of a peer's text that are kept.
const LONGEST: usize = 256;

/// Returns a peer's text as people, logs and pages may be shown it: printable ASCII as it is, of
/// anything else each byte as `\x1b`, and no more than 256 characters. Whatever a peer says becomes
/// text here, and nowhere else.
pub fn words(bytes: &[u8]) -> String {
    use core::fmt::Write;
    let mut shown = String::new();
    for &byte in bytes {
        if shown.len() >= LONGEST {
            shown.push('…');
            break;
        }
        if matches!(byte, b' '..=b'~') {
            shown.push(char::from(byte));
        } else {
            // Nothing that a String takes can fail.
            let _written = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
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
            prop_assert!(shown.chars().all(|c| matches!(c, ' '..='~' | '…')));
            prop_assert!(shown.chars().count() <= 260);
        }
    }
}
