//! Who may see the page of `--web`.

use crate::failure::{Failure, Outcome};
use braidcast_driver::entropy;
use braidcast_driver::http::Password;
use std::net::IpAddr;
use std::path::Path;

/// Letters of a password that is made up: 60 bits, which thirty guesses a second do not find.
const LETTERS: usize = 12;
/// Those that are not taken for each other; 32, so that each is as likely as the next.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
/// Bytes of a password from a file at most.
const LONGEST: usize = 256;

/// Who may see it.
pub(crate) enum Access {
    /// Whoever reaches it.
    Open,
    /// Who knows the first line of a file.
    File(String),
    /// Who knows what was made up, and said at the start.
    MadeUp(String),
}

impl Access {
    /// `given`: what `--web-password` says; `at`: where the page is.
    pub(crate) fn of(given: Option<&Path>, at: IpAddr) -> Outcome<Self> {
        match given {
            Some(path) if path.as_os_str() == "none" => Ok(Self::Open),
            Some(path) => read(path).map(Self::File),
            None if at.is_loopback() => Ok(Self::Open),
            None => make_up().map(Self::MadeUp),
        }
    }

    /// What the server asks for.
    pub(crate) fn password(&self) -> Option<Password> {
        match self {
            Self::Open => None,
            Self::File(password) | Self::MadeUp(password) => Some(Password::new(password.clone())),
        }
    }

    /// What is said behind the page's address.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Open => String::new(),
            Self::File(_) => " for who knows the password (any user name)".into(),
            Self::MadeUp(password) => format!(" with the password {password} (any user name; --web-password sets one)"),
        }
    }
}

fn read(path: &Path) -> Outcome<String> {
    let hint = "write the password into it: printf '%s\\n' PASSWORD > FILE; chmod 600 FILE";
    let wrong = |what: &str| Failure::usage(format!("--web-password {}: {what}", path.display()), hint);
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    match line.len() {
        0 => Err(wrong("its first line is empty")),
        1..=LONGEST => Ok(line.to_owned()),
        _ => Err(wrong("its first line is longer than 256 bytes")),
    }
}

fn make_up() -> Outcome<String> {
    let bytes = entropy().map_err(|error| {
        Failure::new(format!("the system has no randomness to give: {error}"), "give --web-password FILE")
    })?;
    Ok(bytes.iter().take(LETTERS).map(|&byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn beyond_this_machine_a_page_has_a_password() {
        let of = |given: Option<&str>, at| Access::of(given.map(Path::new), IpAddr::V4(at)).ok();
        assert!(matches!(of(None, Ipv4Addr::LOCALHOST), Some(Access::Open)));
        assert!(matches!(of(Some("none"), Ipv4Addr::UNSPECIFIED), Some(Access::Open)));
        let (Some(Access::MadeUp(one)), Some(Access::MadeUp(two))) =
            (of(None, Ipv4Addr::UNSPECIFIED), of(None, Ipv4Addr::UNSPECIFIED))
        else {
            panic!("made up")
        };
        assert!(one.len() == LETTERS && one != two);
    }

    #[test]
    fn a_password_is_the_first_line_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page");
        let given = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Access::of(Some(&path), Ipv4Addr::LOCALHOST.into()).map_err(|error| error.to_string())
        };
        assert!(matches!(given("open sesame \nmore\n"), Ok(Access::File(word)) if word == "open sesame"));
        assert!(given("\n").is_err_and(|it| it.contains("first line is empty")));
        assert!(given(&"x".repeat(300)).is_err_and(|it| it.contains("longer than 256")));
        assert!(Access::of(Some(&dir.path().join("no")), Ipv4Addr::LOCALHOST.into()).is_err());
    }
}
