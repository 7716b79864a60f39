//! Ciphers without C, several times slower: for the tests of what carries records, for fuzzers, and to compare with.

use crate::{Cipher, Ciphers, Failed, Keys, NONCE, Suite, TAG};
use aes::cipher::{BlockCipherEncrypt, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek};
use aes::{Aes128, Aes256};
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm};
use chacha20::ChaCha20;
use chacha20poly1305::ChaCha20Poly1305;
use core::fmt;
use zeroize::Zeroizing;

/// Makes ciphers without C.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pure;

impl Ciphers for Pure {
    fn cipher(&self, keys: &Keys) -> Result<Box<dyn Cipher>, Failed> {
        let (key, hiding) = (keys.key(), keys.number_key());
        Ok(match keys.suite() {
            Suite::Aes128Gcm => Box::new(Suited {
                aead: Aes128Gcm::new_from_slice(key).map_err(|_| Failed)?,
                hiding: Hiding::Aes128(Aes128::new_from_slice(hiding).map_err(|_| Failed)?),
            }),
            Suite::Aes256Gcm => Box::new(Suited {
                aead: Aes256Gcm::new_from_slice(key).map_err(|_| Failed)?,
                hiding: Hiding::Aes256(Aes256::new_from_slice(hiding).map_err(|_| Failed)?),
            }),
            Suite::ChaCha20Poly1305 => Box::new(Suited {
                aead: ChaCha20Poly1305::new_from_slice(key).map_err(|_| Failed)?,
                hiding: Hiding::ChaCha20(Zeroizing::new(hiding.try_into().map_err(|_| Failed)?)),
            }),
        })
    }
}

/// What hides numbers (RFC 9147 §4.2.3).
enum Hiding {
    Aes128(Aes128),
    Aes256(Aes256),
    ChaCha20(Zeroizing<[u8; 32]>),
}

impl Hiding {
    fn mask(&self, sample: &[u8; 16]) -> [u8; 2] {
        let mut block = (*sample).into();
        match self {
            Self::Aes128(key) => key.encrypt_block(&mut block),
            Self::Aes256(key) => key.encrypt_block(&mut block),
            Self::ChaCha20(key) => {
                let [a, b, c, d, nonce @ ..] = *sample;
                let mut stream = ChaCha20::new((&**key).into(), &nonce.into());
                stream.seek(64 * u64::from(u32::from_le_bytes([a, b, c, d])));
                let mut mask = [0; 2];
                // The last block of all is refused, as the next would begin anew; a record with it
                // is taken for a forged one.
                let _refused = stream.try_apply_keystream(&mut mask);
                return mask;
            }
        }
        [block[0], block[1]]
    }
}

struct Suited<A> {
    aead: A,
    hiding: Hiding,
}

impl<A: AeadInOut<NonceSize = aes_gcm::aead::consts::U12, TagSize = aes_gcm::aead::consts::U16> + Send + Sync> Cipher
    for Suited<A>
{
    fn seal(&self, nonce: &[u8; NONCE], header: &[u8], text: &mut [u8]) -> Result<[u8; TAG], Failed> {
        let tag = self.aead.encrypt_inout_detached(nonce.into(), header, text.into()).map_err(|_| Failed)?;
        Ok(tag.into())
    }

    fn open(
        &self,
        nonce: &[u8; NONCE],
        header: &[u8],
        sealed: &[u8],
        tag: &[u8; TAG],
        text: &mut [u8],
    ) -> Result<(), Failed> {
        text.copy_from_slice(sealed);
        self.aead.decrypt_inout_detached(nonce.into(), header, text.into(), tag.into()).map_err(|_| Failed)
    }

    fn mask(&self, sample: &[u8; 16]) -> [u8; 2] {
        self.hiding.mask(sample)
    }
}

impl<A> fmt::Debug for Suited<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suited").finish_non_exhaustive()
    }
}
