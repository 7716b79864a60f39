//! Somebody with the keys of a protected connection: opens what both ends seal, and seals in their
//! place, whatever it likes.

use braidcast_secure::known::Known;
use braidcast_secure::pure::Pure;
use braidcast_secure::{
    Agreement, Content, Exchange, HEADER, Keys, Limits, Method, Opener, Role, Sealer, SecurityOptions,
};
use braidcast_secure::{Suite, Transcript};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

const METHOD: Known = Known { word: 1, suite: Suite::Aes128Gcm };
/// The first epoch that protects anything.
const FIRST_EPOCH: u64 = 3;
/// Epochs whose records may still be in flight.
const KEPT: usize = 3;

/// What both ends are told to do; keys change often.
pub(crate) fn security() -> SecurityOptions {
    let limits = Limits::default().with(|it| (it.records, it.drain) = (150, Duration::from_secs(5)));
    SecurityOptions::new(Arc::new(METHOD)).limits(limits)
}

/// Keys of a connection once both offers were seen.
pub(crate) struct Tap {
    transcript: Transcript,
    /// Which end is the client of the key handshake.
    client: usize,
    /// Of each end's records.
    epochs: [VecDeque<(Opener, Sealer)>; 2],
}

impl Tap {
    pub(crate) fn new(transcript: Transcript, client: usize) -> Self {
        let mut tap = Self { transcript, client, epochs: Default::default() };
        for end in 0..2 {
            tap.begin(end, tap.keys(end, FIRST_EPOCH, client));
        }
        tap
    }

    /// What the key handshake comes to, which is the same for every epoch.
    fn agreement(&self) -> Agreement {
        let [mut client, mut server] = [Role::Client, Role::Server].map(|role| METHOD.begin(role, &self.transcript));
        let carry = |from: &mut Box<dyn Exchange>, to: &mut Box<dyn Exchange>| {
            let mut message = Vec::new();
            while from.poll(&mut message) {
                to.handle(&core::mem::take(&mut message)).expect("the same word");
            }
        };
        carry(&mut client, &mut server);
        carry(&mut server, &mut client);
        carry(&mut client, &mut server);
        server.agreement().expect("the same word").expect("it is done")
    }

    /// Keys of `end`'s records in `epoch`, for which `client` began the key handshake.
    fn keys(&self, end: usize, epoch: u64, client: usize) -> (Opener, Sealer) {
        let agreement = self.agreement();
        let keys: &Keys = if end == client { &agreement.client } else { &agreement.server };
        let made = (Opener::new(&Pure, keys, epoch), Sealer::new(&Pure, keys, epoch));
        let (Ok(opener), Ok(sealer)) = made else { panic!("a suite that it has") };
        (opener, sealer)
    }

    fn begin(&mut self, end: usize, keys: (Opener, Sealer)) {
        self.epochs[end].push_back(keys);
        if self.epochs[end].len() > KEPT {
            self.epochs[end].pop_front();
        }
    }

    /// The epoch that `end` seals in.
    pub(crate) fn epoch(&self, end: usize) -> u64 {
        self.epochs[end].back().map_or(FIRST_EPOCH, |(_, sealer)| sealer.epoch())
    }

    /// What `end` put into this record, and its epoch. `before` is what is authenticated with it, if anything is.
    pub(crate) fn open(&mut self, end: usize, before: Option<&[u8]>, record: &[u8]) -> Option<(u64, Content, Vec<u8>)> {
        let low_bits = u64::from(Opener::low_bits(record)?);
        let next = self.epoch(end) + 1;
        if next & 3 == low_bits {
            // Either end may have begun the handshake for new keys.
            for client in [self.client, 1 - self.client] {
                let mut keys = self.keys(end, next, client);
                if let Some((content, text)) = opened(&mut keys.0, before, record) {
                    self.begin(end, keys);
                    return Some((next, content, text));
                }
            }
        }
        let (opener, _) = self.epochs[end].iter_mut().rev().find(|(opener, _)| opener.epoch() & 3 == low_bits)?;
        let epoch = opener.epoch();
        opened(opener, before, record).map(|(content, text)| (epoch, content, text))
    }

    /// A record of `end` in `epoch`, or in its last one, with this in it.
    pub(crate) fn seal(
        &mut self,
        end: usize,
        epoch: u64,
        before: Option<&[u8]>,
        content: Content,
        text: &[u8],
    ) -> Vec<u8> {
        let epochs = &mut self.epochs[end];
        let place = epochs.iter().position(|(_, sealer)| sealer.epoch() == epoch).unwrap_or(epochs.len() - 1);
        let sealer = &mut epochs[place].1;
        let mut record = vec![0; HEADER];
        record.extend_from_slice(text);
        let sealed = match before {
            Some(before) => sealer.seal_behind(&mut before.to_vec(), &mut record, 0, content),
            None => sealer.seal(&mut record, 0),
        };
        sealed.expect("few records");
        record
    }
}

/// What is in `record`. `before` is what is authenticated with it, if anything is.
fn opened(opener: &mut Opener, before: Option<&[u8]>, record: &[u8]) -> Option<(Content, Vec<u8>)> {
    let mut text = Vec::new();
    let content = match before {
        Some(before) => opener.open_behind(&mut before.to_vec(), record, &mut text).ok()?,
        None => opener.open(record, &mut text).map(|()| Content::Application).ok()?,
    };
    Some((content, text))
}
