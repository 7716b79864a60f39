//! AES in counter mode, with keys of each length.

use crate::srt::KeyLength;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher};
use aes::{Aes128, Aes192, Aes256};
use ctr::Ctr128BE;

/// A key that is ready to use.
#[derive(Clone)]
pub(crate) enum Block {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

impl Block {
    /// Of a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(match KeyLength::of(key.len())? {
            KeyLength::Aes128 => Self::Aes128(Aes128::new_from_slice(key).ok()?),
            KeyLength::Aes192 => Self::Aes192(Aes192::new_from_slice(key).ok()?),
            KeyLength::Aes256 => Self::Aes256(Aes256::new_from_slice(key).ok()?),
        })
    }

    /// Encrypts or decrypts, which are the same, counting from `counter`.
    pub(crate) fn apply(&self, counter: &[u8; 16], payload: &mut [u8]) {
        let iv = &(*counter).into();
        match self {
            Self::Aes128(key) => {
                Ctr128BE::from_core(ctr::CtrCore::inner_iv_init(key.clone(), iv)).apply_keystream(payload)
            }
            Self::Aes192(key) => {
                Ctr128BE::from_core(ctr::CtrCore::inner_iv_init(key.clone(), iv)).apply_keystream(payload)
            }
            Self::Aes256(key) => {
                Ctr128BE::from_core(ctr::CtrCore::inner_iv_init(key.clone(), iv)).apply_keystream(payload)
            }
        }
    }
}
