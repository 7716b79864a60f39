//! How two ends agree on keys, whoever implements it.

use crate::{Ciphers, Insecurity, Keys, Offer};
use core::fmt;

/// Which side of the key handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Sends the first message.
    Client,
    /// Answers it.
    Server,
}

impl Role {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What the records travel in; keys of one do not serve the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// SCTP's DTLS chunk.
    Sctp,
    /// DCCP's packets.
    Dccp,
}

impl Carrier {
    /// Label of the TLS exporter. The first is the draft's; RFC 5705 §4 leaves those that begin
    /// with EXPERIMENTAL to anybody.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Sctp => "EXPORTER_TLS_FOR_DTLS_IN_SCTP",
            Self::Dccp => "EXPERIMENTAL_BRAIDCAST_DCCP",
        }
    }
}

/// What both ends saw of each other in clear before the key handshake; keys depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transcript {
    /// What the keys are for.
    pub carrier: Carrier,
    /// What the client of the first key handshake had offered.
    pub client: Offer,
    /// What its server had offered.
    pub server: Offer,
    /// Half of the SHA-256 of all else that both said in clear and that shapes the association, as
    /// this end said and heard it. If somebody in between changed any of it, the ends have
    /// different values, and no keys come of it.
    pub bound: [u8; 16],
}

impl Transcript {
    /// Context of the exporter for one key (draft-porfiri-tsvwg-sctp-dtls-handshake, "Exporter
    /// Context"): of which direction, that it is no restart's, which key, and both parameters.
    /// Behind them stands what else is bound, which the draft does not have.
    pub fn context(&self, sender: Role, kind: u8) -> Vec<u8> {
        let direction = u8::from(sender == Role::Server);
        let offers = self.client.parameter().chain(self.server.parameter());
        [direction, 0, kind].into_iter().chain(offers).chain(self.bound).collect()
    }
}

/// SHA-256 of a public key, as people compare it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// 64 hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl core::str::FromStr for Fingerprint {
    type Err = ();

    /// Of 64 hexadecimal digits; colons between them do not matter.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut digits = text.chars().filter(|&c| c != ':').map(|c| c.to_digit(16));
        let mut bytes = [0; 32];
        for byte in &mut bytes {
            let (Some(Some(high)), Some(Some(low))) = (digits.next(), digits.next()) else { return Err(()) };
            *byte = (high << 4 | low) as u8;
        }
        if digits.next().is_some() { Err(()) } else { Ok(Self(bytes)) }
    }
}

/// What sort of public key an end shows in the key handshake. Said in clear beforehand, so that
/// ends that do not go together can say why; who lies about it gains nothing, since the handshake
/// decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyKind {
    /// The one that all have who share a secret.
    Shared,
    /// One of its own, which it keeps.
    Own,
    /// One that was drawn for this run: encrypts, and says nothing about who it is.
    Ephemeral,
    /// That of an X.509 certificate, which an authority vouches for.
    Certified,
}

/// Who is at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Of its public key, if it showed one.
    pub fingerprint: Option<Fingerprint>,
    /// `true` if that is one we expected. If not, anybody may be there.
    pub authenticated: bool,
    /// What it is let in by: that fingerprint, or what stands for a name that its certificate is for.
    pub listed: Option<Fingerprint>,
}

/// What a key handshake came to.
#[derive(Debug)]
pub struct Agreement {
    /// For the records that the handshake's client sends.
    pub client: Keys,
    /// For those of its server.
    pub server: Keys,
    /// What both ends may call what the keys are for.
    pub alias: Alias,
    /// Who is there. At the client this is final; at the server too, as it agrees last.
    pub peer: Peer,
}

/// What both ends call an association, and nobody else knows: 16 bytes of the TLS exporter, for the
/// client's direction, of the first key handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alias(pub [u8; Self::LEN]);

impl Alias {
    /// Bytes of it.
    pub const LEN: usize = 16;
    /// Its kind in the exporter's context ([`Transcript::context`]), behind those of the draft.
    pub const KIND: u8 = 3;
}

/// Not the bytes, which a log need not have.
impl fmt::Debug for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alias(..)")
    }
}

/// Why there are no keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The peer showed a key that is not the one we expect.
    #[error("the other end has another key (fingerprint {0})")]
    WrongKey(Fingerprint),
    /// The peer's certificate is no good, of which kind, and why.
    #[error("the other end's certificate {1}")]
    Certificate(Insecurity, String),
    /// The peer told us that it will not have our key.
    #[error("the other end does not accept our key")]
    ByPeer,
    /// What the ends said in clear before the handshake is not what they heard of each other.
    #[error("somebody in between changed what the two ends offered each other, or the other end is of another version")]
    Altered,
    /// Something in the handshake that may not be there.
    #[error("key handshake failed: {0}")]
    Broken(String),
}

/// One key handshake on one side.
pub trait Exchange: fmt::Debug + Send {
    /// Takes the peer's next message.
    ///
    /// # Errors
    /// [`Refused`]; the next message to be sent then informs the peer.
    fn handle(&mut self, message: &[u8]) -> Result<(), Refused>;

    /// Appends the next message to be sent to `out`. Returns `true` if there was one.
    fn poll(&mut self, out: &mut Vec<u8>) -> bool;

    /// The keys, once: at the client, as soon as the server has proved who it is; at the server, when the client has.
    ///
    /// # Errors
    /// [`Refused`] if keys could not be derived.
    fn agreement(&mut self) -> Result<Option<Agreement>, Refused>;
}

/// A way to agree on keys, with all that it takes: identities and who is let in.
pub trait Method: fmt::Debug + Send + Sync {
    /// Its number in the parameter ("DTLS Key Management Identifier").
    fn id(&self) -> u8;

    /// What sort of key this end shows, if that is to be said.
    fn shows(&self) -> Option<KeyKind> {
        None
    }

    /// Returns `true` if this end lets in only those whose own keys it knows.
    fn wants_known(&self) -> bool {
        false
    }

    /// Of the key that this end shows, if it has one.
    fn fingerprint(&self) -> Option<Fingerprint> {
        None
    }

    /// Begins a handshake. `transcript` is what keys depend on.
    fn begin(&self, role: Role, transcript: &Transcript) -> Box<dyn Exchange>;

    /// Returns `true` if `message` is the first one of a handshake, which its client sends.
    fn is_opening(&self, message: &[u8]) -> bool;

    /// What makes ciphers of the keys.
    fn ciphers(&self) -> &dyn Ciphers;
}
