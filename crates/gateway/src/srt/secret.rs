use super::wire::{KeyMaterial, WhichKeys};
use aes_kw::{KwAes128, KwAes192, KwAes256};
use core::fmt;
use core::ops::RangeInclusive;
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Rounds of PBKDF2 (draft-sharabayko-srt §6.1.4).
const ROUNDS: u32 = 2048;
/// Bytes that a passphrase may have, as libsrt has it.
const LENGTHS: RangeInclusive<usize> = 10..=79;

/// Makes a wrapping cipher of one size from a key and calls it; `true` if it worked.
macro_rules! wrap_with {
    ($kind:ty, $key:expr, $call:ident($from:expr, $to:expr)) => {
        <$kind as aes::cipher::KeyInit>::new_from_slice($key).is_ok_and(|cipher| cipher.$call($from, $to).is_ok())
    };
}

/// Length of the keys that payloads are encrypted with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum KeyLength {
    /// 16 bytes, which every program takes.
    #[default]
    Aes128,
    /// 24 bytes.
    Aes192,
    /// 32 bytes.
    Aes256,
}

impl KeyLength {
    /// Bytes of a key.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 => 24,
            Self::Aes256 => 32,
        }
    }

    /// The length that has `bytes` bytes.
    pub const fn of(bytes: usize) -> Option<Self> {
        match bytes {
            16 => Some(Self::Aes128),
            24 => Some(Self::Aes192),
            32 => Some(Self::Aes256),
            _ => None,
        }
    }
}

/// A secret that both ends of a connection know. It is never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(String);

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

/// A passphrase is too short or too long; the number of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongLength(pub usize);

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a passphrase of SRT has {} to {} bytes; this one has {}", LENGTHS.start(), LENGTHS.end(), self.0)
    }
}

impl core::error::Error for WrongLength {}

/// One of the two keys of a stream.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct StreamKey(pub(super) Vec<u8>);

impl Passphrase {
    /// A passphrase of 10 to 79 bytes.
    pub fn new(text: String) -> Result<Self, WrongLength> {
        if LENGTHS.contains(&text.len()) { Ok(Self(text)) } else { Err(WrongLength(text.len())) }
    }

    /// The key that keys are wrapped with. It takes a millisecond, so strangers may not ask for it without bound.
    fn wrapping_key(&self, salt: &[u8; 16], len: usize) -> Zeroizing<Vec<u8>> {
        let mut key = Zeroizing::new(vec![0; len]);
        // The lower 64 bits of the salt (§6.2.1).
        pbkdf2_hmac::<Sha1>(self.0.as_bytes(), &salt[8..], ROUNDS, &mut key);
        key
    }

    /// Wraps keys of one length (RFC 3394).
    pub(super) fn wrap(&self, which: WhichKeys, salt: [u8; 16], keys: &[&StreamKey]) -> KeyMaterial {
        let key_len = keys.first().map_or(0, |key| key.0.len());
        let plain = Zeroizing::new(keys.iter().flat_map(|key| key.0.iter().copied()).collect::<Vec<u8>>());
        let mut wrapped = vec![0; plain.len() + 8];
        let kek = self.wrapping_key(&salt, key_len);
        let done = match KeyLength::of(key_len) {
            Some(KeyLength::Aes128) => wrap_with!(KwAes128, &kek, wrap_key(&plain, &mut wrapped)),
            Some(KeyLength::Aes192) => wrap_with!(KwAes192, &kek, wrap_key(&plain, &mut wrapped)),
            Some(KeyLength::Aes256) => wrap_with!(KwAes256, &kek, wrap_key(&plain, &mut wrapped)),
            None => false,
        };
        debug_assert!(done, "keys have one of three lengths, and the buffer has theirs and 8 bytes");
        KeyMaterial { which, key_len, salt, wrapped }
    }

    /// Unwraps the keys of a message; `None` if the other end has another passphrase.
    pub(super) fn unwrap(&self, material: &KeyMaterial) -> Option<Vec<StreamKey>> {
        let mut plain = Zeroizing::new(vec![0; material.wrapped.len().checked_sub(8)?]);
        let kek = self.wrapping_key(&material.salt, material.key_len);
        let done = match KeyLength::of(material.key_len)? {
            KeyLength::Aes128 => wrap_with!(KwAes128, &kek, unwrap_key(&material.wrapped, &mut plain)),
            KeyLength::Aes192 => wrap_with!(KwAes192, &kek, unwrap_key(&material.wrapped, &mut plain)),
            KeyLength::Aes256 => wrap_with!(KwAes256, &kek, unwrap_key(&material.wrapped, &mut plain)),
        };
        done.then(|| plain.chunks_exact(material.key_len).map(|key| StreamKey(key.to_vec())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::new(text.into()).unwrap()
    }

    #[test]
    fn keys_are_unwrapped_with_the_passphrase_they_were_wrapped_with_only() {
        for len in [16, 24, 32] {
            let (even, odd) = (StreamKey((0..len).collect()), StreamKey(vec![0xaa; len.into()]));
            let material = passphrase("correct horse").wrap(WhichKeys::Both, [3; 16], &[&even, &odd]);
            let read = KeyMaterial::parse(&material.to_bytes()).unwrap();
            let keys = passphrase("correct horse").unwrap(&read).unwrap();
            assert_eq!((&keys[0].0, &keys[1].0, keys.len()), (&even.0, &odd.0, 2));
            assert!(passphrase("wrong horses").unwrap(&read).is_none());
            let mut forged = read.clone();
            forged.wrapped[5] ^= 1;
            assert!(passphrase("correct horse").unwrap(&forged).is_none());
        }
    }

    /// RFC 3394 §4.1 through our own call of it, and RFC 6070's PBKDF2 with HMAC-SHA1.
    #[test]
    fn the_primitives_are_those_of_the_standards() {
        let kek: Vec<u8> = (0..16).collect();
        let key: Vec<u8> = (0..16).map(|n| n * 0x11).collect();
        let mut wrapped = [0; 24];
        assert!(wrap_with!(KwAes128, &kek, wrap_key(&key, &mut wrapped)));
        assert_eq!(wrapped[..8], [0x1f, 0xa6, 0x8b, 0x0a, 0x81, 0x12, 0xb4, 0x47]);
        let mut derived = [0; 20];
        pbkdf2_hmac::<Sha1>(b"password", b"salt", 4096, &mut derived);
        assert_eq!(derived[..4], [0x4b, 0x00, 0x79, 0x01]);
    }

    #[test]
    fn a_passphrase_has_limits_and_is_not_printed() {
        assert_eq!(Passphrase::new("short".into()), Err(WrongLength(5)));
        assert!(Passphrase::new("x".repeat(80)).unwrap_err().to_string().contains("10 to 79"));
        assert_eq!(format!("{:?}", passphrase("correct horse")), "Passphrase(…)");
    }
}
