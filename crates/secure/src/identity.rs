//! Who one is: an Ed25519 key, drawn at random, kept in a file, or followed from what is shared.

use crate::secret::{PrivateKey, Secret, SharedKey};
use crate::x509::{Chain, X509Error};
use crate::{Failed, Fingerprint, KeyKind};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use aws_lc_rs::{digest, hkdf, rand};
use core::fmt;
use rustls::SignatureScheme;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use zeroize::Zeroizing;

/// `SubjectPublicKeyInfo` of Ed25519 up to the key (RFC 8410 §4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key, its public key, and what TLS needs of both.
#[derive(Clone)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    kind: KeyKind,
}

impl Identity {
    /// With the private key `key`.
    ///
    /// # Errors
    /// [`Failed`] if the cryptographic library has no memory.
    pub fn own(key: &PrivateKey) -> Result<Self, Failed> {
        let pair = Ed25519KeyPair::from_seed_unchecked(key.bytes()).map_err(|_| Failed)?;
        let der: Pkcs8V1Der<'static> = pair.as_der().map_err(|_| Failed)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der.as_ref()));
        let signing = rustls::crypto::aws_lc_rs::sign::any_eddsa_type(match &key {
            PrivateKeyDer::Pkcs8(key) => key,
            _ => return Err(Failed),
        })
        .map_err(|_| Failed)?;
        let public = [&SPKI_PREFIX, pair.public_key().as_ref()].concat();
        let fingerprint = fingerprint(&public);
        let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], signing));
        Ok(Self { certified, fingerprint, kind: KeyKind::Own })
    }

    /// A new one, which nobody knows. Its private key comes along, to be kept.
    ///
    /// # Errors
    /// [`Failed`] if the operating system has no randomness.
    pub fn generate() -> Result<(Self, PrivateKey), Failed> {
        let mut seed = Zeroizing::new([0; PrivateKey::LEN]);
        rand::fill(&mut *seed).map_err(|_| Failed)?;
        let key = PrivateKey::new(*seed);
        Ok((Self::own(&key)?, key))
    }

    /// One for this run only, which nobody knows and nobody will see again.
    ///
    /// # Errors
    /// [`Failed`] if the operating system has no randomness.
    pub fn ephemeral() -> Result<Self, Failed> {
        Ok(Self { kind: KeyKind::Ephemeral, ..Self::generate()?.0 })
    }

    /// The one that all have who share `key`. A passphrase without a name is
    /// [stretched](crate::Passphrase::stretched) first.
    ///
    /// # Errors
    /// As [`own`](Self::own).
    pub fn shared(key: &SharedKey) -> Result<Self, Failed> {
        let stretched;
        let (kind, bytes): (&[u8], &[u8]) = match key {
            SharedKey::Secret(secret) => (b"secret", secret.bytes()),
            SharedKey::Passphrase(passphrase) => {
                stretched = passphrase.stretched(None);
                (b"passphrase", stretched.bytes())
            }
            SharedKey::Stretched(stretched) => (b"passphrase", stretched.bytes()),
        };
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, b"braidcast identity 1").extract(bytes);
        let mut seed = Zeroizing::new([0; PrivateKey::LEN]);
        let info = [kind];
        extracted.expand(&info, hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut *seed)).map_err(|_| Failed)?;
        Ok(Self { kind: KeyKind::Shared, ..Self::own(&PrivateKey::new(*seed))? })
    }

    /// The one that a ticket's secret permits its holder to show.
    ///
    /// # Errors
    /// As [`own`](Self::own).
    pub fn permitted(secret: &Secret) -> Result<Self, Failed> {
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, b"braidcast identity 1").extract(secret.bytes());
        let mut seed = Zeroizing::new([0; PrivateKey::LEN]);
        let info: [&[u8]; 1] = [b"ticket"];
        extracted.expand(&info, hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut *seed)).map_err(|_| Failed)?;
        Self::own(&PrivateKey::new(*seed))
    }

    /// Returns the public key and the signature of `message` by it (Ed25519); `None` of certificates.
    pub fn sign(&self, message: &[u8]) -> Option<([u8; 32], [u8; 64])> {
        let public = self.certified.cert.first()?.strip_prefix(&SPKI_PREFIX[..])?.try_into().ok()?;
        let signer = self.certified.key.choose_scheme(&[SignatureScheme::ED25519])?;
        Some((public, signer.sign(message).ok()?.try_into().ok()?))
    }

    /// That of an X.509 certificate, by its private key in PEM.
    ///
    /// # Errors
    /// [`X509Error`]: there is no key that can be used, or it is another certificate's.
    pub fn certified_by(chain: Chain, key: &[u8]) -> Result<Self, X509Error> {
        let (certified, fingerprint) = chain.certified(key)?;
        Ok(Self { certified: Arc::new(certified), fingerprint, kind: KeyKind::Certified })
    }

    /// What sort of key it is.
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// SHA-256 of the public key (its `SubjectPublicKeyInfo`), also if that is in a certificate.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

/// Leaves the private key out.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint).finish()
    }
}

/// The fingerprint of a public key of Ed25519.
pub fn fingerprint_of(public: &[u8; 32]) -> Fingerprint {
    fingerprint(&[&SPKI_PREFIX[..], public].concat())
}

/// Returns `true` if `signature` is that of `message` by the private key of `public` (Ed25519).
pub fn is_signed(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    UnparsedPublicKey::new(&ED25519, public).verify(message, signature).is_ok()
}

/// Of a `SubjectPublicKeyInfo`.
pub(crate) fn fingerprint(public: &[u8]) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, public).as_ref());
    Fingerprint(bytes)
}

/// A new secret to share.
///
/// # Errors
/// [`Failed`] if the operating system has no randomness.
pub fn new_secret() -> Result<crate::Secret, Failed> {
    let mut bytes = Zeroizing::new([0; crate::Secret::LEN]);
    rand::fill(&mut *bytes).map_err(|_| Failed)?;
    Ok(crate::Secret::new(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_its_message_and_key() {
        let (identity, _) = Identity::generate().unwrap();
        let (public, signature) = identity.sign(b"a message").unwrap();
        assert_eq!(fingerprint_of(&public), identity.fingerprint());
        assert!(is_signed(&public, b"a message", &signature) && !is_signed(&public, b"another", &signature));
        let (other, _) = Identity::generate().unwrap().0.sign(b"a message").unwrap();
        assert!(!is_signed(&other, b"a message", &signature));
    }

    #[test]
    fn who_has_a_tickets_secret_has_its_identity_and_none_that_a_key_makes() {
        let identity = |bytes| Identity::permitted(&Secret::new([bytes; 16])).unwrap();
        let secret = Secret::new([1; 16]);
        assert_eq!(identity(1).fingerprint(), identity(1).fingerprint());
        assert_ne!(identity(1).fingerprint(), identity(2).fingerprint());
        let shared = Identity::shared(&SharedKey::Secret(secret)).unwrap();
        assert_ne!(identity(1).fingerprint(), shared.fingerprint());
    }
}
