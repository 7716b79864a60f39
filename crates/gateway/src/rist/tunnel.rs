//! The main profile's tunnel: what is in its packets, decrypted, and the way into them.

use super::secret::Secret;
use super::wire::gre::{Content, Header};
use super::wire::nulls;
use super::wire::rtcp::Items;
use crate::block::Block;
use crate::rtp;
use crate::srt::KeyLength;
use braidcast_core::{Allowance, Instant, Rng};
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

/// Keys that are derived in a second, and at once, for who is not known, and for who is.
const FOR_STRANGERS: u64 = 20;
const FOR_PEERS: u64 = 5;
/// Nonces whose keys fit nothing, so that they are not derived again.
const MISFITS: usize = 32;
/// How long they are kept: a packet that was changed in flight must not shut out its nonce for good.
const MISFIT: Duration = Duration::from_secs(1);
/// Keys that fit, of which the first made sense of a packet last.
const KEYS: usize = 2;
/// Packets after which it is certain that a key did not fit by chance.
const PROVEN: u32 = 8;
/// Bytes in front of a payload at most: the header with a key and a number, the virtual ports, and VSF's kind.
pub(super) const OVERHEAD: usize = 20;
/// Packets that are encrypted with one key; far less than numbers a packet can have.
const REFRESH: u32 = 1 << 24;

/// Why a packet was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// It is encrypted with another secret.
    WrongSecret,
    /// It is not encrypted, and a secret is asked for.
    Clear,
    /// It is encrypted, and no secret is known.
    Encrypted,
    /// The other end wants a name and a password, which is not supported.
    Login,
    /// Another sender's stream is here.
    Busy,
    /// What it carries is not MPEG-TS.
    NotTs,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongSecret => "its secret is another one, or its aes-type",
            Self::Clear => "it does not encrypt, and secret= asks for that",
            Self::Encrypted => "it encrypts, and there is no secret= here",
            Self::Login => "it asks for a user name and a password (EAP-SRP), which are not supported",
            Self::Busy => "another sender is connected",
            Self::NotTs => "what it sends is not MPEG-TS",
        })
    }
}

/// How a packet was put into the tunnel, so that an answer goes the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Where from and where to.
    pub(super) ports: (u16, u16),
    pub(super) version: u8,
    /// Length of the key, if it is encrypted.
    pub(super) key: Option<KeyLength>,
}

impl Shape {
    /// That of an answer.
    pub(super) const fn reversed(self) -> Self {
        Self { ports: (self.ports.1, self.ports.0), ..self }
    }
}

/// What a packet was.
pub(super) enum Opened<'a> {
    Media(Shape, &'a [u8]),
    KeepAlive,
    Refused(Refusal),
    Nothing,
}

/// A key that packets were read with.
struct Known {
    nonce: u32,
    length: KeyLength,
    block: Block,
    /// Packets that it made sense of, at most [`PROVEN`].
    fits: u32,
}

/// One end of the tunnel.
pub(super) struct Tunnel {
    secret: Option<Secret>,
    /// Of packets that do not say it.
    length: KeyLength,
    known: VecDeque<Known>,
    misfits: VecDeque<((u32, KeyLength), Instant)>,
    strangers: Allowance,
    peers: Allowance,
    sealing: Option<Known>,
    number: u32,
    rng: Rng,
    scratch: Vec<u8>,
}

impl Tunnel {
    pub(super) fn new(secret: Option<Secret>, length: KeyLength, rng: Rng) -> Self {
        Self {
            secret,
            length,
            known: VecDeque::new(),
            misfits: VecDeque::new(),
            strangers: Allowance::by_time(FOR_STRANGERS, FOR_STRANGERS),
            peers: Allowance::by_time(FOR_PEERS, FOR_PEERS),
            sealing: None,
            number: 0,
            rng,
            scratch: Vec::new(),
        }
    }

    pub(super) const fn is_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// What is in `bytes`. `is_peer`: it comes from an address that something readable came from.
    pub(super) fn open<'a>(&'a mut self, now: Instant, bytes: &'a [u8], is_peer: bool) -> Opened<'a> {
        let Some((header, body)) = Header::parse(bytes) else { return Opened::Nothing };
        let body = match (header.nonce, &self.secret) {
            (None, None) => body,
            (None, Some(_)) => {
                return match header.content(body) {
                    Content::Login => Opened::Refused(Refusal::Login),
                    Content::Media { .. } => Opened::Refused(Refusal::Clear),
                    // librist says in clear that it is there.
                    _ => Opened::Nothing,
                };
            }
            (Some(_), None) => return Opened::Refused(Refusal::Encrypted),
            // Nothing in it says if a key fits, and nothing in it is heeded.
            (Some(_), Some(_)) if !header.may_be_media() => return Opened::Nothing,
            (Some(nonce), Some(_)) => {
                let length = header.key_length(self.length);
                if self.decrypt(now, &header, (nonce, length), body, is_peer).is_none() {
                    return Opened::Refused(Refusal::WrongSecret);
                }
                &self.scratch
            }
        };
        match header.content(body) {
            Content::Media { ports, payload } => {
                let key = header.nonce.map(|_| header.key_length(self.length));
                Opened::Media(Shape { ports, version: header.version, key }, payload)
            }
            Content::KeepAlive => Opened::KeepAlive,
            Content::Login => Opened::Refused(Refusal::Login),
            Content::Other => Opened::Nothing,
        }
    }

    /// Puts what `body` is into the scratch; `None` if no key makes sense of it.
    fn decrypt(
        &mut self,
        now: Instant,
        header: &Header,
        key: (u32, KeyLength),
        body: &[u8],
        is_peer: bool,
    ) -> Option<()> {
        let Self { scratch, known, misfits, .. } = self;
        misfits.retain(|(_, at)| now.since(*at) < MISFIT);
        let mut apply = |block: &Block| {
            scratch.clear();
            scratch.extend_from_slice(body);
            block.apply(&header.counter(), scratch);
        };
        if let Some(at) = known.iter().position(|known| (known.nonce, known.length) == key) {
            apply(&known[at].block);
            if fits(header, scratch) {
                // Keys in use stand in front of those that fitted once, by chance.
                let mut used = known.remove(at)?;
                used.fits = (used.fits + 1).min(PROVEN);
                known.push_front(used);
            } else if known[at].fits < PROVEN && !is_rtp(header, scratch) {
                known.remove(at);
                return None;
            }
            return Some(());
        }
        let allowance = if is_peer { &mut self.peers } else { &mut self.strangers };
        if misfits.iter().any(|(misfit, _)| *misfit == key) || !allowance.take(now, 1) {
            return None;
        }
        let block = self.secret.as_ref().and_then(|secret| secret.key(key.0, key.1))?;
        apply(&block);
        // A key that makes no sense of it must not take the place of one that does.
        if fits(header, scratch) {
            known.push_front(Known { nonce: key.0, length: key.1, block, fits: 1 });
            known.truncate(KEYS);
            Some(())
        } else {
            misfits.push_front((key, now));
            misfits.truncate(MISFITS);
            None
        }
    }

    /// Puts `payload` into a packet behind what is in `buf`.
    pub(super) fn seal(&mut self, shape: Shape, payload: &[u8], buf: &mut Vec<u8>) {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let key = self.secret.as_ref().zip(shape.key).and_then(|(secret, length)| {
            let fits = |sealing: &&Known| sealing.length == length && !number.is_multiple_of(REFRESH);
            if self.sealing.as_ref().filter(fits).is_none() {
                // A nonce of 0 is no key.
                let nonce = self.rng.u32().max(1);
                self.sealing = secret.key(nonce, length).map(|block| Known { nonce, length, block, fits: 0 });
            }
            self.sealing.as_ref()
        });
        let header = Header::of_media(shape.version, key.map(|known| (known.nonce, known.length)), number);
        header.write(buf);
        let start = buf.len();
        header.write_ports(shape.ports, buf);
        buf.extend_from_slice(payload);
        if let Some(known) = key {
            known.block.apply(&header.counter(), &mut buf[start..]);
        }
    }
}

/// Returns `true` if a decrypted body makes sense.
fn fits(header: &Header, body: &[u8]) -> bool {
    match header.content(body) {
        Content::Media { payload, .. } => is_plausible(payload),
        content => content == Content::KeepAlive,
    }
}

/// Returns `true` if a decrypted body may be RTP or RTCP of any kind.
fn is_rtp(header: &Header, body: &[u8]) -> bool {
    matches!(header.content(body), Content::Media { payload: [first, ..], .. } if first >> 6 == 2)
}

/// Returns `true` if this is RTCP, or MPEG-TS in RTP, or RTP whose null packets were left out.
///
/// Of bodies that no key fits, of whatever length, fewer than one of 200,000 is: one packet of transport stream has to
/// begin with its 0x47 behind a header whose lengths and payload type are right.
fn is_plausible(payload: &[u8]) -> bool {
    Items::are_whole(payload)
        || rtp::Packet::parse(payload).is_some_and(|packet| {
            let is_ts = packet.payload.len().is_multiple_of(188)
                && packet.payload.iter().step_by(188).all(|byte| *byte == 0x47);
            packet.header.may_be_ts() && is_ts && (!packet.payload.is_empty() || nulls::left_out(payload) != 0)
        })
}

#[cfg(test)]
mod tests {
    use super::super::wire::rtcp::Composer;
    use super::*;

    fn tunnel(secret: Option<&str>, seed: u64) -> Tunnel {
        let secret = secret.map(|secret| Secret::new(secret.into()).unwrap());
        Tunnel::new(secret, KeyLength::Aes128, Rng::from_seed(seed))
    }

    fn rtcp() -> Vec<u8> {
        let mut bytes = Vec::new();
        Composer::new(7, &mut bytes).receiver_report(None);
        bytes
    }

    fn shape(version: u8, key: Option<KeyLength>) -> Shape {
        Shape { ports: (1968, 1969), version, key }
    }

    fn refusal(tunnel: &mut Tunnel, now: u64, bytes: &[u8]) -> Option<Refusal> {
        match tunnel.open(Instant::from_millis(now), bytes, false) {
            Opened::Refused(why) => Some(why),
            _ => None,
        }
    }

    #[test]
    fn what_one_end_puts_in_the_other_takes_out() {
        for key in [None, Some(KeyLength::Aes128), Some(KeyLength::Aes256)] {
            for version in 0..3 {
                let secret = key.map(|_| "correct horse");
                let (mut tx, mut rx) = (tunnel(secret, 1), tunnel(secret, 2));
                rx.length = key.unwrap_or_default();
                for _ in 0..3 {
                    let mut packet = Vec::new();
                    tx.seal(shape(version, key), &rtcp(), &mut packet);
                    let Opened::Media(shape, payload) = rx.open(Instant::ZERO, &packet, false) else { panic!("media") };
                    assert_eq!((shape, payload), (self::shape(version, key), &rtcp()[..]));
                    assert_eq!(shape.reversed().ports, (1969, 1968));
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_reason() {
        let sealed = |secret: Option<&str>| {
            let mut packet = Vec::new();
            tunnel(secret, secret.map_or(0, str::len) as u64).seal(
                shape(1, secret.map(|_| KeyLength::Aes128)),
                &rtcp(),
                &mut packet,
            );
            packet
        };
        let mut keyed = tunnel(Some("correct horse"), 2);
        assert_eq!(refusal(&mut keyed, 0, &sealed(Some("wrong horse"))), Some(Refusal::WrongSecret));
        assert_eq!(refusal(&mut keyed, 0, &sealed(None)), Some(Refusal::Clear));
        assert_eq!(refusal(&mut keyed, 0, &sealed(Some("correct horse"))), None);
        assert_eq!(refusal(&mut tunnel(None, 2), 0, &sealed(Some("correct horse"))), Some(Refusal::Encrypted));
        let login = [0, 0, 0x88, 0x8e, 3, 1, 0, 0];
        assert_eq!(refusal(&mut keyed, 0, &login), Some(Refusal::Login));
    }

    #[test]
    fn strangers_make_us_derive_few_keys_and_take_the_place_of_none() {
        let mut keyed = tunnel(Some("correct horse"), 2);
        let mut good = Vec::new();
        let mut sender = tunnel(Some("correct horse"), 1);
        sender.seal(shape(1, Some(KeyLength::Aes128)), &rtcp(), &mut good);
        assert!(refusal(&mut keyed, 0, &good).is_none());
        for nonce in 1..1000_u32 {
            let mut packet = good.clone();
            packet[4..8].copy_from_slice(&nonce.to_be_bytes());
            assert_eq!(refusal(&mut keyed, 1, &packet), Some(Refusal::WrongSecret));
        }
        // One of the 20 was the good one's.
        assert_eq!(keyed.misfits.len(), FOR_STRANGERS as usize - 1);
        assert!(refusal(&mut keyed, 2, &good).is_none());
        // The peer's next key is derived although strangers used up theirs.
        sender.sealing = None;
        good.clear();
        sender.seal(shape(1, Some(KeyLength::Aes128)), &rtcp(), &mut good);
        assert!(refusal(&mut keyed, 3, &good).is_some());
        assert!(matches!(keyed.open(Instant::from_millis(3), &good, true), Opened::Media(..)));
    }

    #[test]
    fn bodies_that_no_key_fits_are_not_taken_for_media() {
        let mut rng = Rng::from_seed(1);
        for version in [1, 2] {
            let header = Header::of_media(version, Some((1, KeyLength::Aes128)), 0);
            for n in 0..400_000 {
                let mut body = [0; 20];
                let body = &mut body[..4 + n % 17];
                rng.fill(body);
                assert!(!fits(&header, body), "{body:02x?}");
            }
        }
        // What is left of a packet whose seven packets were all null.
        let mut nulls = vec![0; 4];
        nulls.extend([0x90, 33, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0x52, 0x49, 0, 1, 0x80, 0x7f, 0, 0]);
        let header = Header::of_media(1, Some((1, KeyLength::Aes128)), 0);
        assert!(fits(&header, &nulls) && !fits(&header, &nulls[..16]));
    }

    #[test]
    fn a_nonce_that_fitted_once_goes_with_its_next_packet_and_no_key_in_use_does() {
        let mut keyed = tunnel(Some("correct horse"), 2);
        let mut sender = tunnel(Some("correct horse"), 1);
        let mut sealed = |payload: &[u8], nonce: u32| {
            let secret = sender.secret.clone().unwrap();
            let block = secret.key(nonce, KeyLength::Aes128).unwrap();
            sender.sealing = Some(Known { nonce, length: KeyLength::Aes128, block, fits: 0 });
            // A number that is no multiple of those after which the key changes.
            sender.number = sender.number.max(1);
            let mut packet = Vec::new();
            sender.seal(shape(1, Some(KeyLength::Aes128)), payload, &mut packet);
            packet
        };
        let at = Instant::ZERO;
        for _ in 0..2 * PROVEN {
            assert!(matches!(keyed.open(at, &sealed(&rtcp(), 7), false), Opened::Media(..)));
        }
        for nonce in 8..16 {
            assert!(matches!(keyed.open(at, &sealed(&rtcp(), nonce), false), Opened::Media(..)));
            // The key in use stays, whatever others fitted once, and whatever comes in its name.
            assert!(matches!(keyed.open(at, &sealed(&rtcp(), 7), false), Opened::Media(..)));
            assert!(matches!(keyed.open(at, &sealed(&[0; 9], 7), false), Opened::Media(..)));
            assert_eq!(keyed.known.len(), 2);
            if nonce % 2 == 0 {
                assert!(matches!(keyed.open(at, &sealed(&[0; 9], nonce), false), Opened::Refused(_)));
                assert_eq!(keyed.known.len(), 1);
            }
        }
        assert!(keyed.known.iter().any(|known| known.nonce == 7 && known.fits == PROVEN));
    }

    #[test]
    fn a_packet_that_was_changed_on_its_way_shuts_out_its_nonce_for_a_second() {
        let mut keyed = tunnel(Some("correct horse"), 2);
        let (mut sender, mut good) = (tunnel(Some("correct horse"), 1), Vec::new());
        sender.seal(shape(1, Some(KeyLength::Aes128)), &rtcp(), &mut good);
        let mut changed = good.clone();
        changed.truncate(changed.len() - 1);
        assert_eq!(refusal(&mut keyed, 0, &changed), Some(Refusal::WrongSecret));
        assert_eq!(refusal(&mut keyed, 999, &good), Some(Refusal::WrongSecret));
        assert_eq!(refusal(&mut keyed, 1000, &good), None);
    }

    /// librist 0.2.12 says in version 2 that it is there, which nonce comes next and how long its buffer is.
    #[test]
    fn what_librist_says_beside_media_fits() {
        for kind in 0x8000..=0x8002_u16 {
            let header = Header::of_media(2, Some((1, KeyLength::Aes128)), 0);
            let mut body = vec![0, 0];
            body.extend(kind.to_be_bytes());
            body.extend([1, 2, 3, 4]);
            assert!(fits(&header, &body), "{kind:04x}");
            body[1] = 1;
            assert!(!fits(&header, &body));
        }
    }
}
