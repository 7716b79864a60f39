//! Authenticated chunks (RFC 4895).

use core::fmt;

use braidcast_core::Writer;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::{
    capabilities::{HMAC_SHA1, HMAC_SHA256, Offer},
    wire::{Parameters, chunk::Auth},
};

/// The shared key identifier in use: one key at most is configured, and it takes the place of the null key (RFC 4895
/// §6.2; RFC 6458 §8.3.3 lets the application set it).
const KEY_ID: u16 = 0;

/// Why an AUTH chunk does not vouch for anything. The chunks after it must be dropped without a word, unless it says
/// otherwise here (RFC 4895 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum AuthError {
    /// A shared key that is not configured.
    #[error("no shared key with identifier {key_id}")]
    UnknownKey {
        /// Shared key identifier in the chunk.
        key_id: u16,
    },
    /// A hash that we did not offer; answer with ERROR and an Unsupported HMAC Identifier cause.
    #[error("HMAC identifier {hmac_id} was not offered")]
    UnsupportedHmac {
        /// HMAC identifier in the chunk.
        hmac_id: u16,
    },
    /// The HMAC is another one, or has the wrong length.
    #[error("HMAC does not match")]
    Forged,
}

/// A hash that is implemented here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Algorithm {
    Sha1,
    Sha256,
}

impl Algorithm {
    const fn from_id(id: u16) -> Option<Self> {
        match id {
            HMAC_SHA1 => Some(Self::Sha1),
            HMAC_SHA256 => Some(Self::Sha256),
            _ => None,
        }
    }

    const fn id(self) -> u16 {
        match self {
            Self::Sha1 => HMAC_SHA1,
            Self::Sha256 => HMAC_SHA256,
        }
    }

    /// An HMAC of as many zeros as the real one has bytes (RFC 4895 §6.2 figure 6).
    const fn zeros(self) -> &'static [u8] {
        match self {
            Self::Sha1 => &[0; 20],
            Self::Sha256 => &[0; 32],
        }
    }
}

/// What authenticates the chunks of one association, in both directions.
pub(crate) struct AuthKeys {
    /// Keyed with the association shared key and cloned for each packet, so that the key is hashed once.
    sha1: Hmac<Sha1>,
    sha256: Hmac<Sha256>,
    /// The hash of the chunks that we send.
    sending: Algorithm,
    local: Offer,
    peer: Offer,
}

impl AuthKeys {
    /// The keys that follow from both sides' offers and the secret that they share beforehand, `shared_key`; empty
    /// means none (RFC 4895 §6.1). `None` if one of them does not authenticate.
    pub(crate) fn new(local: &Offer, peer: &Offer, shared_key: &[u8]) -> Option<Self> {
        if !local.authenticates() {
            return None;
        }
        let sending = peer.hmacs().find_map(Algorithm::from_id).filter(|_| peer.authenticates())?;
        let key = association_key(local, peer, shared_key);
        Some(Self {
            sha1: Hmac::new_from_slice(&key).ok()?,
            sha256: Hmac::new_from_slice(&key).ok()?,
            sending,
            local: *local,
            peer: *peer,
        })
    }

    /// Returns `true` if we must send chunks of type `kind` after an AUTH chunk.
    pub(crate) fn peer_requires(&self, kind: u8) -> bool {
        self.peer.demands_auth(kind)
    }

    /// Returns `true` if chunks of type `kind` must be dropped if no AUTH chunk stands before them (RFC 4895 §6.3).
    pub(crate) fn requires(&self, kind: u8) -> bool {
        self.local.demands_auth(kind)
    }

    /// Bytes of the AUTH chunk that [`emit`](Self::emit) writes.
    pub(crate) const fn overhead(&self) -> usize {
        Auth::HEADER + self.sending.zeros().len()
    }

    /// Appends an AUTH chunk with zeros for an HMAC, and returns where it starts in `buf`. Append the chunks to be
    /// authenticated, then [`seal`](Self::seal).
    pub(crate) fn emit(&self, buf: &mut Vec<u8>) -> usize {
        let start = buf.len();
        Auth { key_id: KEY_ID, hmac_id: self.sending.id(), hmac: self.sending.zeros() }.emit(&mut Writer::new(buf));
        start
    }

    /// Writes the HMAC into the AUTH chunk at the start of `chunks`, which end with the packet.
    pub(crate) fn seal(&self, chunks: &mut [u8]) {
        let end = self.overhead();
        debug_assert!(chunks.len() >= end, "seal takes what emit wrote and all that follows");
        match self.sending {
            Algorithm::Sha1 => seal(self.sha1.clone(), chunks, end),
            Algorithm::Sha256 => seal(self.sha256.clone(), chunks, end),
        }
    }

    /// Returns `true` if `auth`, the chunk at the start of `chunks`, vouches for the rest of them,
    /// up to the packet's end and with all padding (RFC 4895 §6.3). Takes the same time wherever
    /// the HMAC differs.
    ///
    /// # Errors
    /// [`AuthError`].
    pub(crate) fn verify(&self, auth: &Auth<'_>, chunks: &[u8]) -> Result<(), AuthError> {
        let &Auth { key_id, hmac_id, hmac } = auth;
        if key_id != KEY_ID {
            return Err(AuthError::UnknownKey { key_id });
        }
        let algorithm = Algorithm::from_id(hmac_id).filter(|_| self.local.hmacs().any(|offered| offered == hmac_id));
        let algorithm = algorithm.ok_or(AuthError::UnsupportedHmac { hmac_id })?;
        let zeros = algorithm.zeros();
        if hmac.len() != zeros.len() {
            return Err(AuthError::Forged);
        }
        let (header, rest) = chunks.split_at_checked(Auth::HEADER).ok_or(AuthError::Forged)?;
        let following = rest.get(zeros.len()..).ok_or(AuthError::Forged)?;
        let pieces = [header, zeros, following];
        match algorithm {
            Algorithm::Sha1 => verify(self.sha1.clone(), &pieces, hmac),
            Algorithm::Sha256 => verify(self.sha256.clone(), &pieces, hmac),
        }
    }
}

/// Leaves the keys out.
impl fmt::Debug for AuthKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthKeys").field("sending", &self.sending).finish_non_exhaustive()
    }
}

fn seal<M: Mac>(mac: M, chunks: &mut [u8], end: usize) {
    let digest = mac.chain_update(&*chunks).finalize().into_bytes();
    if let Some(field) = chunks.get_mut(Auth::HEADER..end) {
        field.copy_from_slice(&digest);
    }
}

fn verify<M: Mac>(mac: M, pieces: &[&[u8]], hmac: &[u8]) -> Result<(), AuthError> {
    pieces.iter().fold(mac, |mac, piece| mac.chain_update(piece)).verify_slice(hmac).map_err(|_| AuthError::Forged)
}

/// The association shared key (RFC 4895 §6.1), the same at both ends.
fn association_key(local: &Offer, peer: &Offer, shared_key: &[u8]) -> Vec<u8> {
    let (local, peer) = (key_vector(local), key_vector(peer));
    // Vectors compare as numbers. All start with the type of RANDOM, which is not zero, so the longer is the larger.
    let (smaller, larger) = if (local.len(), &local) <= (peer.len(), &peer) { (local, peer) } else { (peer, local) };
    [shared_key, &smaller, &larger].concat()
}

/// RANDOM, CHUNKS and HMAC-ALGO as sent, with headers and without padding.
fn key_vector(offer: &Offer) -> Vec<u8> {
    let mut vector = Vec::with_capacity(Offer::MAX_EMITTED);
    for parameter in offer.key_parameters() {
        let start = vector.len();
        parameter.emit(&mut Writer::new(&mut vector));
        let unpadded = Parameters::new(&vector[start..]).as_bytes().len();
        vector.truncate(start + unpadded);
    }
    vector
}

#[cfg(test)]
mod tests;
