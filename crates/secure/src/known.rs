//! Keys that everybody knows, agreed on by messages as long as those of TLS: for tests, simulations
//! and fuzzers. Keeps nobody out.

use crate::exchange::{Agreement, Alias, Exchange, Method, Peer, Refused, Role, Transcript};
use crate::pure::Pure;
use crate::{Ciphers, Keys, NONCE, Suite};

/// Identifier of methods without a handshake (draft-ietf-tsvwg-sctp-dtls-chunk, "DTLS Key
/// Management Method Identifiers").
pub const METHOD: u8 = 0;

/// Two ends with the same `word` agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// What stands for a key.
    pub word: u8,
    /// Which suite is used.
    pub suite: Suite,
}

/// Bytes of ClientHello with X25519MLKEM768, of the server's flight, and of the client's.
const LENGTHS: [usize; 3] = [1500, 1500, 250];

impl Method for Known {
    fn id(&self) -> u8 {
        METHOD
    }

    fn begin(&self, role: Role, transcript: &Transcript) -> Box<dyn Exchange> {
        Box::new(KnownExchange { method: *self, role, transcript: *transcript, next: 0, given: false })
    }

    fn is_opening(&self, message: &[u8]) -> bool {
        message.first() == Some(&0)
    }

    fn ciphers(&self) -> &dyn Ciphers {
        &Pure
    }
}

#[derive(Debug)]
struct KnownExchange {
    method: Known,
    role: Role,
    transcript: Transcript,
    /// Which of the messages is next; the client sends the first and the last.
    next: usize,
    given: bool,
}

impl KnownExchange {
    fn is_mine(&self) -> bool {
        self.next.is_multiple_of(2) == (self.role == Role::Client)
    }
}

impl Exchange for KnownExchange {
    fn handle(&mut self, message: &[u8]) -> Result<(), Refused> {
        match *message {
            [_, word, ..] if word != self.method.word => {
                Err(Refused::Broken("the other end knows another word".into()))
            }
            [_, _, ref bound @ ..] if !bound.starts_with(&self.transcript.bound[..8]) => Err(Refused::Altered),
            [step, ..]
                if usize::from(step) == self.next
                    && !self.is_mine()
                    && LENGTHS.get(self.next) == Some(&message.len()) =>
            {
                self.next += 1;
                Ok(())
            }
            _ => Err(Refused::Broken("a message that is not due".into())),
        }
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(len) = LENGTHS.get(self.next).filter(|_| self.is_mine()) else { return false };
        let start = out.len();
        out.resize(start + len, 0);
        (out[start], out[start + 1]) = (self.next as u8, self.method.word);
        out[start + 2..start + 10].copy_from_slice(&self.transcript.bound[..8]);
        self.next += 1;
        true
    }

    fn agreement(&mut self) -> Result<Option<Agreement>, Refused> {
        if self.given || self.next < LENGTHS.len() {
            return Ok(None);
        }
        self.given = true;
        let fill = |sender, kind, bytes: &mut [u8]| {
            // FNV-1a: all of the keys depend on all that was offered, and hide nothing.
            let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            let context = self.transcript.context(sender, kind);
            let mut sum = context.into_iter().fold(mix(0x811c_9dc5, self.method.word), mix);
            for byte in bytes {
                sum = mix(sum, 0);
                *byte = (sum >> 24) as u8;
            }
        };
        let keys = |sender| {
            let mut bytes = [0; 32 + 32 + NONCE];
            fill(sender, 0, &mut bytes);
            let (key, rest) = bytes.split_at(32);
            let (number_key, iv) = rest.split_at(32);
            let len = self.method.suite.key_len();
            let iv = iv.try_into().ok();
            iv.and_then(|iv| Keys::new(self.method.suite, &key[..len], &number_key[..len], iv))
                .ok_or_else(|| Refused::Broken("keys of the wrong length".into()))
        };
        let peer = Peer { fingerprint: None, authenticated: false, listed: None };
        let mut alias = Alias([0; Alias::LEN]);
        fill(Role::Client, Alias::KIND, &mut alias.0);
        Ok(Some(Agreement { client: keys(Role::Client)?, server: keys(Role::Server)?, alias, peer }))
    }
}
