use crate::block::Block;
use crate::srt::KeyLength;
use core::fmt;
use core::ops::RangeInclusive;
use pbkdf2::pbkdf2_hmac;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Rounds of PBKDF2 (TR-06-2 §6.3).
const ROUNDS: u32 = 1024;
/// Bytes that a secret may have, as librist has it.
const LENGTHS: RangeInclusive<usize> = 1..=127;

/// A secret that both ends know. It is never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret is empty or too long; the number of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongLength(pub usize);

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a secret of RIST has {} to {} bytes; this one has {}", LENGTHS.start(), LENGTHS.end(), self.0)
    }
}

impl core::error::Error for WrongLength {}

impl Secret {
    /// A secret of 1 to 127 bytes.
    pub fn new(text: String) -> Result<Self, WrongLength> {
        if LENGTHS.contains(&text.len()) { Ok(Self(text)) } else { Err(WrongLength(text.len())) }
    }

    /// The key that belongs to `nonce`. It takes half a millisecond, so strangers may not ask for it without bound.
    pub(super) fn key(&self, nonce: u32, length: KeyLength) -> Option<Block> {
        let mut key = Zeroizing::new(vec![0; length.bytes()]);
        pbkdf2_hmac::<Sha256>(self.0.as_bytes(), &nonce.to_be_bytes(), ROUNDS, &mut key);
        Block::new(&key)
    }
}
