//! The DTLS Key Management Parameter (draft-ietf-tsvwg-sctp-dtls-chunk, "DTLS Key Management
//! Parameter"): who can do what, and what follows.

use crate::exchange::{KeyKind, Method, Role};
use core::fmt;

/// Which roles an end would take in the key handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Roles {
    /// Only that one.
    Only(Role),
    /// Either.
    Both,
}

/// What one end offers, as on the wire: kept byte for byte, since the keys depend on it, and so notice who changes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    len: u8,
    /// The parameter's value; zeros beyond `len`, so that equality can be derived.
    bytes: [u8; Self::MAX],
}

/// A parameter's value that cannot be an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("key management parameter with {given} bytes instead of 6 to {max}", max = Offer::MAX)]
pub struct OfferError {
    /// Bytes of its value.
    pub given: usize,
}

/// Why two offers do not go together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Disagreement {
    /// Cause 101.
    #[error("no way to agree on keys that both ends know: their versions differ")]
    NoCommonMethod,
    /// Cause 102.
    #[error("both ends drew the same tie breaker")]
    Tie,
    /// Cause 103.
    #[error("both ends want the same role in the key handshake")]
    Roles,
    /// Cause 101, as all that follow.
    #[error("this end has a key, and the other end has none")]
    NoKeyThere,
    /// The same the other way round.
    #[error("the other end has a key, and this end has none")]
    NoKeyHere,
    /// Certificates go with certificates alone.
    #[error("this end has a certificate, and the other end has none")]
    NoCertificateThere,
    /// The same the other way round.
    #[error("the other end has a certificate, and this end has none")]
    NoCertificateHere,
    /// The peer's key will be another one next time, so nobody can know it.
    #[error("this end takes only keys that it knows, and the other end has none of its own")]
    UnknownThere,
    /// The same the other way round.
    #[error("the other end takes only keys that it knows, and this end has none of its own")]
    UnknownHere,
}

impl Disagreement {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NoCommonMethod,
        Self::Tie,
        Self::Roles,
        Self::NoKeyThere,
        Self::NoKeyHere,
        Self::NoCertificateThere,
        Self::NoCertificateHere,
        Self::UnknownThere,
        Self::UnknownHere,
    ];

    /// The error cause that says so in ABORT.
    pub const fn cause(self) -> u16 {
        match self {
            Self::NoCommonMethod
            | Self::NoKeyThere
            | Self::NoKeyHere
            | Self::NoCertificateThere
            | Self::NoCertificateHere
            | Self::UnknownThere
            | Self::UnknownHere => 101,
            Self::Tie => 102,
            Self::Roles => 103,
        }
    }

    /// The same as the other end sees it.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::NoKeyThere => Self::NoKeyHere,
            Self::NoKeyHere => Self::NoKeyThere,
            Self::NoCertificateThere => Self::NoCertificateHere,
            Self::NoCertificateHere => Self::NoCertificateThere,
            Self::UnknownThere => Self::UnknownHere,
            Self::UnknownHere => Self::UnknownThere,
            other => other,
        }
    }
}

impl Offer {
    /// The parameter's type.
    pub const PARAMETER: u16 = 0x8006;
    /// Key management methods that a parameter may list here.
    pub const MAX_METHODS: usize = 8;
    /// Most bytes of the parameter's value.
    pub const MAX: usize = 5 + Self::MAX_METHODS;

    const SERVER: u8 = 2;
    const CLIENT: u8 = 1;

    /// Identifiers that stand for no method: which sort of key the sender will show, and that it
    /// takes only keys that it knows. To others they are methods that they do not have.
    const KINDS: [(u8, KeyKind); 4] =
        [(248, KeyKind::Shared), (249, KeyKind::Own), (250, KeyKind::Ephemeral), (252, KeyKind::Certified)];
    const WANTS_KNOWN: u8 = 251;

    /// An offer of `method` with all that is to be said of it, without restart. `tie_breaker` is to be drawn at random.
    pub fn of(tie_breaker: u32, roles: Roles, method: &dyn Method) -> Self {
        let mut offer = Self::new(tie_breaker, roles, method.id());
        let kind = Self::KINDS.iter().find(|(_, kind)| method.shows() == Some(*kind)).map(|(id, _)| *id);
        for id in kind.into_iter().chain(method.wants_known().then_some(Self::WANTS_KNOWN)) {
            offer.bytes[usize::from(offer.len)] = id;
            offer.len += 1;
        }
        offer
    }

    /// An offer of one `method`, of which nothing else is said.
    pub fn new(tie_breaker: u32, roles: Roles, method: u8) -> Self {
        let flags = match roles {
            Roles::Only(Role::Server) => Self::SERVER,
            Roles::Only(Role::Client) => Self::CLIENT,
            Roles::Both => Self::SERVER | Self::CLIENT,
        };
        let mut bytes = [0; Self::MAX];
        bytes[..4].copy_from_slice(&tie_breaker.to_be_bytes());
        (bytes[4], bytes[5]) = (flags, method);
        Self { len: 6, bytes }
    }

    /// From a parameter's value.
    ///
    /// # Errors
    /// [`OfferError`].
    pub fn parse(value: &[u8]) -> Result<Self, OfferError> {
        let mut bytes = [0; Self::MAX];
        match bytes.get_mut(..value.len()) {
            Some(place) if value.len() > 5 => place.copy_from_slice(value),
            _ => return Err(OfferError { given: value.len() }),
        }
        Ok(Self { len: value.len() as u8, bytes })
    }

    /// The parameter's value.
    pub fn value(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The parameter with its header and without padding, as the keys depend on it.
    pub(crate) fn parameter(&self) -> impl Iterator<Item = u8> + '_ {
        let header = (u32::from(Self::PARAMETER) << 16) | (4 + u32::from(self.len));
        header.to_be_bytes().into_iter().chain(self.value().iter().copied())
    }

    fn tie_breaker(&self) -> u32 {
        self.bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    const fn takes(&self, role: Role) -> bool {
        let bit = match role {
            Role::Server => Self::SERVER,
            Role::Client => Self::CLIENT,
        };
        self.bytes[4] & bit != 0
    }

    fn identifiers(&self) -> &[u8] {
        &self.value()[5..]
    }

    fn methods(&self) -> impl Iterator<Item = u8> + '_ {
        let says = |id: u8| id == Self::WANTS_KNOWN || Self::KINDS.iter().any(|(kind, _)| *kind == id);
        self.identifiers().iter().copied().filter(move |&id| !says(id))
    }

    /// What sort of key the sender of this offer will show, if it says so.
    pub fn shows(&self) -> Option<KeyKind> {
        let has = |id| self.identifiers().contains(&id);
        Self::KINDS.iter().find(|(id, _)| has(*id)).map(|(_, kind)| *kind)
    }

    fn wants_known(&self) -> bool {
        self.identifiers().contains(&Self::WANTS_KNOWN)
    }

    /// Returns `true` if each may let in the other, by what they say of their keys.
    fn go_together(&self, peer: &Self) -> Result<(), Disagreement> {
        let (Some(ours), Some(theirs)) = (self.shows(), peer.shows()) else { return Ok(()) };
        match (ours, theirs) {
            (KeyKind::Shared, KeyKind::Shared) | (KeyKind::Certified, KeyKind::Certified) => Ok(()),
            (KeyKind::Certified, _) => Err(Disagreement::NoCertificateThere),
            (_, KeyKind::Certified) => Err(Disagreement::NoCertificateHere),
            (KeyKind::Shared, _) => Err(Disagreement::NoKeyThere),
            (_, KeyKind::Shared) => Err(Disagreement::NoKeyHere),
            (_, KeyKind::Ephemeral) if self.wants_known() => Err(Disagreement::UnknownThere),
            (KeyKind::Ephemeral, _) if peer.wants_known() => Err(Disagreement::UnknownHere),
            _ => Ok(()),
        }
    }

    /// Our role and the method, from what we and the peer offered (draft, "Establishment of a Protected Association").
    ///
    /// # Errors
    /// [`Disagreement`].
    pub fn agree(&self, peer: &Self) -> Result<(Role, u8), Disagreement> {
        let server = self.takes(Role::Server) && peer.takes(Role::Client);
        let client = self.takes(Role::Client) && peer.takes(Role::Server);
        let role = match (server, client) {
            (false, false) => return Err(Disagreement::Roles),
            (true, false) => Role::Server,
            (false, true) => Role::Client,
            (true, true) => match self.tie_breaker().cmp(&peer.tie_breaker()) {
                core::cmp::Ordering::Greater => Role::Server,
                core::cmp::Ordering::Less => Role::Client,
                core::cmp::Ordering::Equal => return Err(Disagreement::Tie),
            },
        };
        let (chooses, other) = if role == Role::Server { (self, peer) } else { (peer, self) };
        let method = chooses.methods().find(|&method| other.methods().any(|it| it == method));
        let method = method.ok_or(Disagreement::NoCommonMethod)?;
        self.go_together(peer)?;
        Ok((role, method))
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Offer").field(&self.value()).finish()
    }
}

#[cfg(test)]
mod tests;
