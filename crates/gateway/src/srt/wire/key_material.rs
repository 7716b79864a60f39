use super::Malformed;
use braidcast_core::{Reader, Writer};

/// Version 1 of a keying material message (§3.2.2).
const VERSION_AND_TYPE: u8 = 0x12;
/// "HAI", as plug and play writes it.
const SIGN: u16 = 0x2029;
const AES_CTR: u8 = 2;
/// MPEG-TS in SRT, which is what every program says whatever it sends.
const ENCAPSULATION: u8 = 2;
/// Bytes of a salt.
const SALT: usize = 16;
/// Bytes that a wrapped key is longer than the key (RFC 3394).
const WRAP: usize = 8;

/// The keys that a message has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhichKeys {
    /// The even one.
    Even,
    /// The odd one.
    Odd,
    /// Both, the even one first.
    Both,
}

impl WhichKeys {
    /// How many they are.
    pub const fn count(self) -> usize {
        match self {
            Self::Even | Self::Odd => 1,
            Self::Both => 2,
        }
    }
}

/// Keys in flight, wrapped (§3.2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyMaterial {
    /// Which ones.
    pub which: WhichKeys,
    /// Bytes of each: 16, 24 or 32.
    pub key_len: usize,
    /// Of the counter and of the key that wraps.
    pub salt: [u8; SALT],
    /// The wrapped keys, 8 bytes longer than they are.
    pub wrapped: Vec<u8>,
}

impl KeyMaterial {
    /// Reads a message. Only AES in counter mode is known; an authenticated mode is refused as unknown.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        let head = r.u8()?;
        if head != VERSION_AND_TYPE {
            return Err(Malformed::Unknown("the version of keying material", head.into()));
        }
        let sign = r.u16()?;
        if sign != SIGN {
            return Err(Malformed::Unknown("the signature of keying material", sign.into()));
        }
        let which = match r.u8()? & 3 {
            1 => WhichKeys::Even,
            2 => WhichKeys::Odd,
            3 => WhichKeys::Both,
            none => return Err(Malformed::Unknown("KK of keying material", none.into())),
        };
        let index = r.u32()?;
        if index != 0 {
            return Err(Malformed::Unknown("the index of the key encrypting key", index));
        }
        let [cipher, auth, _, _] = r.array()?;
        if cipher != AES_CTR || auth != 0 {
            return Err(Malformed::Unknown("the cipher of keying material", cipher.into()));
        }
        let [_, _, salt_words, key_words] = r.array()?;
        if usize::from(salt_words) * 4 != SALT {
            return Err(Malformed::Length("the salt", usize::from(salt_words) * 4));
        }
        let key_len = usize::from(key_words) * 4;
        if !matches!(key_len, 16 | 24 | 32) {
            return Err(Malformed::Length("a key", key_len));
        }
        let salt = r.array()?;
        let wrapped = r.take(which.count() * key_len + WRAP)?.to_vec();
        if !r.is_empty() {
            return Err(Malformed::Length("keying material", bytes.len()));
        }
        Ok(Self { which, key_len, salt, wrapped })
    }

    /// The message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + self.wrapped.len());
        let mut w = Writer::new(&mut bytes);
        w.u8(VERSION_AND_TYPE);
        w.u16(SIGN);
        w.u8(match self.which {
            WhichKeys::Even => 1,
            WhichKeys::Odd => 2,
            WhichKeys::Both => 3,
        });
        w.u32(0);
        w.bytes(&[AES_CTR, 0, ENCAPSULATION, 0, 0, 0, (SALT / 4) as u8, (self.key_len / 4) as u8]);
        w.bytes(&self.salt);
        w.bytes(&self.wrapped);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> KeyMaterial {
        KeyMaterial { which: WhichKeys::Both, key_len: 24, salt: [7; 16], wrapped: vec![9; 56] }
    }

    #[test]
    fn keys_come_back_whole_or_not_at_all() {
        let bytes = message().to_bytes();
        assert_eq!(bytes.len(), 32 + 56);
        assert_eq!(KeyMaterial::parse(&bytes), Ok(message()));
        for cut in 0..bytes.len() {
            assert!(KeyMaterial::parse(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        let wrong = |at: usize, value: u8| {
            let mut bytes = message().to_bytes();
            bytes[at] = value;
            KeyMaterial::parse(&bytes).unwrap_err().to_string()
        };
        assert_eq!(wrong(8, 4), "the cipher of keying material has the value 4, which is not supported");
        assert_eq!(wrong(15, 5), "a key has 20 bytes, which does not fit");
        // Of CVE-2026-55869: one that is longer than its own fields say.
        let long = [message().to_bytes(), vec![0; 1300]].concat();
        assert_eq!(KeyMaterial::parse(&long), Err(Malformed::Length("keying material", 88 + 1300)));
        assert!(wrong(3, 0).contains("KK of keying material"));
        assert!(wrong(0, 0x47).contains("version"));
    }
}
