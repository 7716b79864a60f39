//! Keys that everybody knows, and ends that a receiver can tell apart by them all the same: each
//! shows a number, which stands for a key of its own.

use braidcast_sctp::{Fingerprint, SecurityOptions};
use braidcast_secure::known::Known;
use braidcast_secure::{Agreement, Ciphers, Exchange, Method, Peer, Refused, Role, Suite, Transcript};
use std::sync::Arc;

const KNOWN: Known = Known { word: 1, suite: Suite::Aes128Gcm };
/// Of a key message that [`Known`] makes: where nothing else stands.
const NUMBER: usize = 100;

#[derive(Debug)]
struct Keyed {
    own: u8,
}

/// Security of the end with the key that is number `own`.
pub(crate) fn keyed(own: u8) -> Option<SecurityOptions> {
    Some(SecurityOptions::new(Arc::new(Keyed { own })))
}

/// What stands for the key that is number `own`.
pub(crate) const fn key(own: u8) -> Fingerprint {
    Fingerprint([own; 32])
}

impl Method for Keyed {
    fn id(&self) -> u8 {
        KNOWN.id()
    }

    fn begin(&self, role: Role, transcript: &Transcript) -> Box<dyn Exchange> {
        Box::new(KeyedExchange { own: self.own, peer: None, known: KNOWN.begin(role, transcript) })
    }

    fn is_opening(&self, message: &[u8]) -> bool {
        KNOWN.is_opening(message)
    }

    fn ciphers(&self) -> &dyn Ciphers {
        &braidcast_secure::pure::Pure
    }
}

#[derive(Debug)]
struct KeyedExchange {
    own: u8,
    peer: Option<u8>,
    known: Box<dyn Exchange>,
}

impl Exchange for KeyedExchange {
    fn handle(&mut self, message: &[u8]) -> Result<(), Refused> {
        self.peer = message.get(NUMBER).copied().or(self.peer);
        self.known.handle(message)
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let polled = self.known.poll(out);
        out.get_mut(start + NUMBER).into_iter().for_each(|byte| *byte = self.own);
        polled
    }

    fn agreement(&mut self) -> Result<Option<Agreement>, Refused> {
        let fingerprint = self.peer.map(key);
        let peer = Peer { fingerprint, authenticated: true, listed: fingerprint };
        Ok(self.known.agreement()?.map(|agreement| Agreement { peer, ..agreement }))
    }
}
