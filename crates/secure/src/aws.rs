//! Ciphers by `aws-lc-rs`: what binaries use.

use crate::{Cipher, Ciphers, Failed, Keys, NONCE, Suite, TAG};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
    quic::{self, HeaderProtectionKey},
};
use core::fmt;

/// Makes ciphers by `aws-lc-rs`.
#[derive(Clone, Copy, Default, Debug)]
pub struct AwsLc;

impl Ciphers for AwsLc {
    fn cipher(&self, keys: &Keys) -> Result<Box<dyn Cipher>, Failed> {
        let (aead, hiding) = match keys.suite() {
            Suite::Aes128Gcm => (&AES_128_GCM, &quic::AES_128),
            Suite::Aes256Gcm => (&AES_256_GCM, &quic::AES_256),
            Suite::ChaCha20Poly1305 => (&CHACHA20_POLY1305, &quic::CHACHA20),
        };
        let key = LessSafeKey::new(UnboundKey::new(aead, keys.key()).map_err(|_| Failed)?);
        // The mask of QUIC's packet numbers is made as DTLS's is (RFC 9001 §5.4.3, RFC 9147 §4.2.3).
        let hiding = HeaderProtectionKey::new(hiding, keys.number_key()).map_err(|_| Failed)?;
        Ok(Box::new(Aws { key, hiding }))
    }
}

struct Aws {
    key: LessSafeKey,
    hiding: HeaderProtectionKey,
}

impl Cipher for Aws {
    fn seal(&self, nonce: &[u8; NONCE], header: &[u8], text: &mut [u8]) -> Result<[u8; TAG], Failed> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), text).map_err(|_| Failed)?;
        tag.as_ref().try_into().map_err(|_| Failed)
    }

    fn open(
        &self,
        nonce: &[u8; NONCE],
        header: &[u8],
        sealed: &[u8],
        tag: &[u8; TAG],
        text: &mut [u8],
    ) -> Result<(), Failed> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.key.open_separate_gather(nonce, Aad::from(header), sealed, tag, text).map_err(|_| Failed)
    }

    fn mask(&self, sample: &[u8; 16]) -> [u8; 2] {
        // Fails for samples of another length only.
        let [a, b, ..] = self.hiding.new_mask(sample).unwrap_or_default();
        [a, b]
    }
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aws").finish_non_exhaustive()
    }
}
