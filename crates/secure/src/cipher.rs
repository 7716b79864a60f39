//! What a cipher suite must do for records, whoever implements it.

use core::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of an authentication tag.
pub const TAG: usize = 16;
/// Bytes of a nonce.
pub const NONCE: usize = 12;

/// A TLS 1.3 cipher suite that may protect records (draft-ietf-tsvwg-sctp-dtls-chunk,
/// "Mandatory-to-Implement Cipher Suites").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Suite {
    /// `TLS_AES_128_GCM_SHA256`, which everyone has.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`.
    ChaCha20Poly1305,
}

impl Suite {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// Bytes of its key, and of its key for numbers.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Its number in TLS's registry.
    pub const fn id(self) -> u16 {
        match self {
            Self::Aes128Gcm => 0x1301,
            Self::Aes256Gcm => 0x1302,
            Self::ChaCha20Poly1305 => 0x1303,
        }
    }

    /// The suite with the number `id`, if it is one of these.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.id() == id)
    }

    /// Records that may be sealed under one key (RFC 9147 §4.5.3, RFC 8446 §5.5): 2^24.5 with
    /// AES-GCM. ChaCha20's limit lies beyond the numbers that there are (RFC 9147 §4.2.1: 2^48).
    pub const fn most_sealed(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 23_726_566,
            Self::ChaCha20Poly1305 => 1 << 48,
        }
    }

    /// Records that may fail to authenticate under one key (RFC 9147 §4.5.3).
    pub const fn most_forged(self) -> u64 {
        1 << 36
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        })
    }
}

/// What protects the records of one direction in one epoch. Wiped when dropped, and never printed.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Keys {
    #[zeroize(skip)]
    suite: Suite,
    key: [u8; 32],
    number_key: [u8; 32],
    iv: [u8; NONCE],
}

impl Keys {
    /// From a record key and a key for numbers of [`Suite::key_len`] bytes each; `None` if their length is another.
    pub fn new(suite: Suite, key: &[u8], number_key: &[u8], iv: [u8; NONCE]) -> Option<Self> {
        let len = suite.key_len();
        if key.len() != len || number_key.len() != len {
            return None;
        }
        let mut keys = Self { suite, key: [0; 32], number_key: [0; 32], iv };
        keys.key[..len].copy_from_slice(key);
        keys.number_key[..len].copy_from_slice(number_key);
        Some(keys)
    }

    /// For which suite.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The record key.
    pub fn key(&self) -> &[u8] {
        &self.key[..self.suite.key_len()]
    }

    /// The key that numbers are encrypted with.
    pub fn number_key(&self) -> &[u8] {
        &self.number_key[..self.suite.key_len()]
    }

    /// What a record's number is added to for its nonce.
    pub(crate) const fn iv(&self) -> [u8; NONCE] {
        self.iv
    }
}

/// Leaves the keys out.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// A record does not authenticate, or a key cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the cipher failed")]
pub struct Failed;

/// One direction's keys, ready for use. Whoever implements it keeps the keys to itself and wipes them when dropped.
pub trait Cipher: fmt::Debug + Send + Sync {
    /// Encrypts `text` where it is, and authenticates `header` with it.
    ///
    /// # Errors
    /// [`Failed`] if `text` is longer than the cipher takes.
    fn seal(&self, nonce: &[u8; NONCE], header: &[u8], text: &mut [u8]) -> Result<[u8; TAG], Failed>;

    /// Decrypts `sealed` into `text`, which is as long. Takes the same time wherever the tag differs.
    ///
    /// # Errors
    /// [`Failed`] if it does not authenticate; `text` says nothing then.
    fn open(
        &self,
        nonce: &[u8; NONCE],
        header: &[u8],
        sealed: &[u8],
        tag: &[u8; TAG],
        text: &mut [u8],
    ) -> Result<(), Failed>;

    /// What hides the number of the record that begins with `sample` (RFC 9147 §4.2.3).
    fn mask(&self, sample: &[u8; 16]) -> [u8; 2];
}

/// Makes [`Cipher`]s.
pub trait Ciphers: fmt::Debug + Send + Sync {
    /// A cipher with `keys`.
    ///
    /// # Errors
    /// [`Failed`] if there is none for the suite.
    fn cipher(&self, keys: &Keys) -> Result<Box<dyn Cipher>, Failed>;
}
