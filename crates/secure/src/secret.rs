//! A shared secret as people keep it.

use argon2::{Algorithm, Argon2, Params, Version};
use bech32::{Bech32m, Hrp};
use bip39::{Language, Mnemonic};
use core::fmt;
use core::str::FromStr;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A secret of 128 bits. Wiped when dropped, compared in constant time, and never printed but by
/// [`words`](Self::words) and [`short`](Self::short).
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; Self::LEN]);

impl Secret {
    /// Bytes.
    pub const LEN: usize = 16;
    /// What its short form begins with, before a `1`.
    pub const PREFIX: &'static str = "braid";
    /// Words of its long form (BIP 39, English, with a checksum of 4 bits).
    pub const WORDS: usize = 12;

    /// From `bytes`, which nobody must be able to guess.
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Twelve words joined by hyphens, to be read out or written down.
    pub fn words(&self) -> Zeroizing<String> {
        let words = Mnemonic::from_entropy_in(Language::English, &self.0);
        // Fails for other lengths only.
        Zeroizing::new(words.map(|it| it.words().collect::<Vec<_>>().join("-")).unwrap_or_default())
    }

    /// `braid1` and 32 letters and digits, to be pasted (Bech32m, whose checksum finds any four wrong characters).
    pub fn short(&self) -> Zeroizing<String> {
        Zeroizing::new(bech32::encode::<Bech32m>(Hrp::parse_unchecked(Self::PREFIX), &self.0).unwrap_or_default())
    }

    fn from_short(text: &str) -> Result<Self, SecretError> {
        let wrong = |_| SecretError::ShortForm;
        let parsed = bech32::primitives::decode::CheckedHrpstring::new::<Bech32m>(text).map_err(wrong)?;
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(parsed.byte_iter().collect());
        bytes.as_slice().try_into().map(Self).map_err(|_| SecretError::ShortForm)
    }

    /// The secret in twelve words; `None` if `text` is something else.
    fn from_words(text: &str) -> Option<Result<Self, SecretError>> {
        let words: Vec<&str> =
            text.split(|c: char| c == '-' || c.is_whitespace()).filter(|it| !it.is_empty()).collect();
        let list = Language::English.word_list();
        let unknown: Vec<usize> = (0..words.len()).filter(|&at| !list.contains(&words[at])).collect();
        if words.len() != Self::WORDS || unknown.len() > 3 {
            return None;
        }
        if let Some(&at) = unknown.first() {
            return Some(Err(SecretError::UnknownWord { place: at + 1 }));
        }
        let joined = Zeroizing::new(words.join(" "));
        let parsed = Mnemonic::parse_in_normalized(Language::English, &joined).map_err(|_| SecretError::Checksum);
        Some(parsed.and_then(|words| {
            let bytes = Zeroizing::new(words.to_entropy());
            bytes.as_slice().try_into().map(Self).map_err(|_| SecretError::Checksum)
        }))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

/// Leaves the secret out.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A private key of one's own (Ed25519, 256 bits) as it is kept in a file. Wiped when dropped, and
/// printed by [`text`](Self::text) only.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct PrivateKey([u8; Self::LEN]);

impl PrivateKey {
    /// Bytes.
    pub const LEN: usize = 32;
    /// What its text begins with, before a `1`.
    pub const PREFIX: &'static str = "braidprivate";

    /// From `bytes`, which nobody must be able to guess.
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// `braidprivate1` and 58 letters and digits (Bech32m).
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(bech32::encode::<Bech32m>(Hrp::parse_unchecked(Self::PREFIX), &self.0).unwrap_or_default())
    }
}

impl FromStr for PrivateKey {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        bytes_of(Self::PREFIX, text).map(Self).ok_or(SecretError::PrivateKey)
    }
}

/// Leaves the key out.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// What somebody thought of and typed. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(String);

impl Passphrase {
    /// Memory that a guess takes, KiB, and passes over it.
    pub const MEMORY_KIB: u32 = 64 << 10;
    const PASSES: u32 = 3;

    /// Returns 256 bits that follow from it, by Argon2id with 64 MiB and three passes (RFC 9106 §4,
    /// second recommendation, with one lane). It takes a tenth of a second or so. The salt is
    /// `name`, on which both ends must agree; without one it is the same for the whole world, so
    /// that one table of guesses serves against everybody.
    pub fn stretched(&self, name: Option<&str>) -> Stretched {
        let mut out = Stretched([0; 32]);
        let mut salt = b"braidcast passphrase 1".to_vec();
        if let Some(name) = name {
            salt.push(0);
            salt.extend_from_slice(name.as_bytes());
        }
        // Neither parameters nor lengths depend on what was typed: it cannot fail.
        if let Ok(params) = Params::new(Self::MEMORY_KIB, Self::PASSES, 1, Some(32)) {
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            let stretched = argon2.hash_password_into(self.0.as_bytes(), &salt, &mut out.0);
            debug_assert!(stretched.is_ok(), "the parameters are within Argon2's bounds");
        }
        out
    }
}

/// Leaves it out.
impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

/// What follows from a passphrase, so that it need not be stretched again. Wiped when dropped, and
/// printed by [`text`](Self::text) only.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Stretched([u8; 32]);

impl Stretched {
    /// What its text begins with, before a `1`.
    pub const PREFIX: &'static str = "braidstretched";

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// `braidstretched1` and 58 letters and digits (Bech32m).
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(bech32::encode::<Bech32m>(Hrp::parse_unchecked(Self::PREFIX), &self.0).unwrap_or_default())
    }
}

/// Leaves it out.
impl fmt::Debug for Stretched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stretched(…)")
    }
}

/// The bytes of a text that begins with `prefix`.
fn bytes_of<const LEN: usize>(prefix: &str, text: &str) -> Option<[u8; LEN]> {
    let parsed = bech32::primitives::decode::CheckedHrpstring::new::<Bech32m>(text.trim()).ok()?;
    let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(parsed.byte_iter().collect());
    bytes.as_slice().try_into().ok().filter(|_| parsed.hrp().as_str() == prefix)
}

/// What two ends share, in one of the forms that people keep it in.
#[derive(Clone, Debug)]
pub enum SharedKey {
    /// 128 bits drawn at random: words or the short form.
    Secret(Secret),
    /// Anything else.
    Passphrase(Passphrase),
    /// What follows from a passphrase.
    Stretched(Stretched),
}

/// A key that cannot be right. Says nothing of it but where it is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecretError {
    /// Nothing but spaces.
    #[error("the key is empty")]
    Empty,
    /// It begins as the short form does, and its checksum does not match.
    #[error("the key begins with \"{}1\" but is not one: a character is wrong or missing", Secret::PREFIX)]
    ShortForm,
    /// Not the text of a private key.
    #[error(
        "this is not a private key, which begins with \"{}1\" and has no character wrong or missing",
        PrivateKey::PREFIX
    )]
    PrivateKey,
    /// Of twelve words, some are not in the list.
    #[error("word {place} of the key is not in the list of words: is it mistyped?")]
    UnknownWord {
        /// Which one, from 1.
        place: usize,
    },
    /// Twelve words of the list that do not go together.
    #[error("the twelve words of the key do not go together: is one wrong, or are two exchanged?")]
    Checksum,
}

impl FromStr for SharedKey {
    type Err = SecretError;

    /// Words, the short form, or else a passphrase; space around it does not matter.
    fn from_str(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        let lower = Zeroizing::new(text.to_lowercase());
        if lower.strip_prefix(Secret::PREFIX).is_some_and(|rest| rest.starts_with('1')) {
            return Secret::from_short(&lower).map(Self::Secret);
        }
        if let Some(bytes) = bytes_of(Stretched::PREFIX, &lower) {
            return Ok(Self::Stretched(Stretched(bytes)));
        }
        match Secret::from_words(&lower) {
            Some(secret) => secret.map(Self::Secret),
            None => Ok(Self::Passphrase(Passphrase(text.to_owned()))),
        }
    }
}

#[cfg(test)]
mod tests;
