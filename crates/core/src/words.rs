/// Bytes of a peer's text that are kept, give or take a character.
const LONGEST: usize = 256;

/// Returns a peer's text as people, logs and pages may be shown it: printable ASCII and the letters
/// and digits of all scripts as they are, of anything else each byte as `\x1b`, and no more than 256
/// bytes. Whatever a peer says becomes text here, and nowhere else.
pub fn words(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        for it in chunk.valid().chars() {
            if shown.len() >= LONGEST {
                return shown + "…";
            }
            if is_plain(it) { shown.push(it) } else { show_bytes(&mut shown, it.encode_utf8(&mut [0; 4]).as_bytes()) }
        }
        if shown.len() >= LONGEST && !chunk.invalid().is_empty() {
            return shown + "…";
        }
        show_bytes(&mut shown, chunk.invalid());
    }
    shown
}

fn show_bytes(shown: &mut String, bytes: &[u8]) {
    use core::fmt::Write;
    // Nothing that a String takes can fail.
    bytes.iter().for_each(|byte| _ = write!(shown, "\\x{byte:02x}"));
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

    #[test]
    fn no_character_is_cut_at_the_end_of_what_is_shown() {
        let shown = |count| words(format!("{}\u{1f600}{}", "x".repeat(count), "y".repeat(5000)).as_bytes());
        let face = "\\xf0\\x9f\\x98\\x80";
        assert_eq!(shown(239), format!("{}{face}y…", "x".repeat(239)));
        assert_eq!(shown(240), format!("{}{face}…", "x".repeat(240)));
        assert_eq!(shown(255), format!("{}{face}…", "x".repeat(255)));
        assert_eq!(shown(256), format!("{}…", "x".repeat(256)));
        assert_eq!(words(&[b'x'; 256]), "x".repeat(256));
        assert_eq!(words(&[0xff; 65]), format!("{}…", "\\xff".repeat(64)));
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
