use core::fmt;
use core::str::FromStr;

/// What a client wants to talk to, independent of the port (RFC 4340 §8.1.2, RFC 5595).
///
/// Written as `SC:fdpz`, `SC=1717858426` or `SC=x6664707A`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ServiceCode(pub u32);

/// Why a text is not a service code.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not a service code; write SC:fdpz (up to four of A-Z a-z 0-9 - _ + . * / ? @), SC=1717858426 or SC=x6664707A"
)]
pub struct ServiceCodeError(String);

impl ServiceCode {
    /// The code that stands for none (RFC 5595 §2.7).
    pub const NONE: Self = Self(0);
    /// The value that no connection may have.
    pub const INVALID: Self = Self(u32::MAX);

    const fn is_letter(byte: u8) -> bool {
        matches!(byte, 42 | 43 | 45..=57 | 63..=90 | 95 | 97..=122)
    }

    /// The four letters, if the code is one that `SC:` can write.
    fn letters(self) -> Option<([u8; 4], usize)> {
        let bytes = self.0.to_be_bytes();
        let len = bytes.iter().rposition(|&byte| byte != b' ')? + 1;
        bytes[..len].iter().all(|&byte| Self::is_letter(byte)).then_some((bytes, len))
    }
}

impl FromStr for ServiceCode {
    type Err = ServiceCodeError;

    fn from_str(text: &str) -> Result<Self, ServiceCodeError> {
        let wrong = || ServiceCodeError(text.into());
        let code = if let Some(letters) = text.strip_prefix("SC:") {
            let letters = letters.as_bytes();
            if letters.is_empty() || letters.len() > 4 || !letters.iter().all(|&byte| Self::is_letter(byte)) {
                return Err(wrong());
            }
            let mut bytes = [b' '; 4];
            bytes[..letters.len()].copy_from_slice(letters);
            u32::from_be_bytes(bytes)
        } else {
            let number = text.strip_prefix("SC=").ok_or_else(wrong)?;
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(hex) => (hex, 16),
                None => (number, 10),
            };
            // `from_str_radix` takes a sign, the grammar does not.
            if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            u32::from_str_radix(digits, radix).map_err(|_| wrong())?
        };
        if code == Self::INVALID.0 { Err(wrong()) } else { Ok(Self(code)) }
    }
}

impl fmt::Display for ServiceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.letters() {
            Some((bytes, len)) => {
                f.write_str("SC:")?;
                bytes[..len].iter().try_for_each(|&byte| write!(f, "{}", char::from(byte)))
            }
            None => write!(f, "SC={}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_rfc_4340_8_1_2_are_one_code() {
        for text in ["SC:fdpz", "SC=1717858426", "SC=x6664707A", "SC=X6664707a"] {
            assert_eq!(text.parse(), Ok(ServiceCode(1_717_858_426)), "{text}");
        }
        assert_eq!(ServiceCode(1_717_858_426).to_string(), "SC:fdpz");
        assert_eq!("SC:ab".parse(), Ok(ServiceCode(0x6162_2020)));
        assert_eq!(ServiceCode(0x6162_2020).to_string(), "SC:ab");
        assert_eq!(ServiceCode(7).to_string(), "SC=7");
    }

    #[test]
    fn what_is_no_code_is_refused() {
        for text in ["", "fdpz", "SC:", "SC:abcde", "SC:a b", "SC=", "SC=+1", "SC=4294967295", "SC=xffffffff", "SC=12a"]
        {
            assert!(text.parse::<ServiceCode>().is_err(), "{text}");
        }
    }
}
