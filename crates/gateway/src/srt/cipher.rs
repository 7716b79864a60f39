//! Encryption of payloads: AES in counter mode with two keys in turn (draft-sharabayko-srt §6).

use super::secret::{KeyLength, Passphrase, StreamKey};
use super::wire::{KeyMaterial, KeySlot, WhichKeys};
use crate::block::Block;
use braidcast_core::Rng;

/// Packets that are sent with one key, unless options say otherwise: libsrt's default, half of what the draft's
/// §6.1.6 allows.
pub(super) const REFRESH: u64 = 1 << 24;
/// Packets before a change at which the other end is told the next key; a quarter of those that have one key at most
/// (§6.1.6).
const ANNOUNCE: u64 = 4000;
/// Packets with one key at least, so that there is time to tell of the next.
const LEAST_REFRESH: u64 = 64;

/// Encrypts or decrypts a payload: they are the same.
fn apply(slot: &Slot, sequence: u32, payload: &mut [u8]) {
    // The counter (§6.1.2): 112 bits of the salt, the packet's number in the last 32 of them, and 16 bits that
    // count blocks. No packet has 65,536 blocks.
    let mut counter = slot.salt;
    counter[10..14].iter_mut().zip(sequence.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
    counter[14..].fill(0);
    slot.block.apply(&counter, payload);
}

/// A key, and all that its use needs.
#[derive(Clone)]
struct Slot {
    key: StreamKey,
    block: Block,
    salt: [u8; 16],
}

/// Both keys of one direction.
#[derive(Clone, Default)]
struct Slots {
    even: Option<Slot>,
    odd: Option<Slot>,
}

impl Slots {
    const fn get(&self, which: KeySlot) -> Option<&Slot> {
        match which {
            KeySlot::Clear => None,
            KeySlot::Even => self.even.as_ref(),
            KeySlot::Odd => self.odd.as_ref(),
        }
    }

    /// Takes over what `material` brings; `false` if it is not for this passphrase.
    fn install(&mut self, passphrase: &Passphrase, material: &KeyMaterial) -> bool {
        let Some(keys) = passphrase.unwrap(material) else { return false };
        let mut slots = keys.into_iter().filter_map(|key| {
            let block = Block::new(&key.0)?;
            Some(Slot { key, block, salt: material.salt })
        });
        match material.which {
            WhichKeys::Even => self.even = slots.next(),
            WhichKeys::Odd => self.odd = slots.next(),
            WhichKeys::Both => (self.even, self.odd) = (slots.next(), slots.next()),
        }
        true
    }
}

/// The keys of a connection, both directions.
pub(super) struct Cipher {
    passphrase: Passphrase,
    rng: Rng,
    receiving: Slots,
    sending: Slots,
    /// The slot in use for sending.
    active: KeySlot,
    /// Packets sent with it.
    used: u64,
    refresh: u64,
    /// Keys that the other end has not confirmed.
    announced: Option<Vec<u8>>,
    /// Length of the keys.
    pub(super) length: KeyLength,
}

impl Cipher {
    /// New keys, as the caller makes them, and the message for the listener.
    pub(super) fn of_caller(
        passphrase: &Passphrase,
        length: KeyLength,
        refresh: u64,
        rng: &mut Rng,
    ) -> (Self, Vec<u8>) {
        let mut rng = rng.fork();
        let mut salt = [0; 16];
        rng.fill(&mut salt);
        let key = new_key(length, &mut rng);
        let bytes = passphrase.wrap(WhichKeys::Even, salt, &[&key]).to_bytes();
        let even = Block::new(&key.0).map(|block| Slot { key, block, salt });
        let slots = Slots { even, odd: None };
        let cipher = Self {
            passphrase: passphrase.clone(),
            rng,
            receiving: slots.clone(),
            sending: slots,
            active: KeySlot::Even,
            used: 0,
            refresh: refresh.max(LEAST_REFRESH),
            announced: None,
            length,
        };
        (cipher, bytes)
    }

    /// The caller's keys, which serve both directions at first; `None` if it has another passphrase.
    pub(super) fn of_listener(
        passphrase: &Passphrase,
        material: &KeyMaterial,
        refresh: u64,
        rng: &mut Rng,
    ) -> Option<Self> {
        let mut slots = Slots::default();
        if !slots.install(passphrase, material) {
            return None;
        }
        Some(Self {
            passphrase: passphrase.clone(),
            rng: rng.fork(),
            receiving: slots.clone(),
            sending: slots,
            active: if material.which == WhichKeys::Odd { KeySlot::Odd } else { KeySlot::Even },
            used: 0,
            refresh: refresh.max(LEAST_REFRESH),
            announced: None,
            length: KeyLength::of(material.key_len)?,
        })
    }

    /// Encrypts the payload of a packet that is sent for the first time; returns the key.
    pub(super) fn seal(&mut self, sequence: u32, payload: &mut [u8]) -> KeySlot {
        self.used += 1;
        if self.used == self.refresh - ANNOUNCE.min(self.refresh / 4) {
            self.prepare();
        } else if self.used > self.refresh && self.announced.is_none() && self.sending.get(other(self.active)).is_some()
        {
            // Not before the other end has confirmed, or it could read nothing.
            self.active = other(self.active);
            self.used = 1;
        }
        if let Some(slot) = self.sending.get(self.active) {
            apply(slot, sequence, payload);
        }
        self.active
    }

    /// Makes the next key, and the message that brings both.
    fn prepare(&mut self) {
        let next = other(self.active);
        let Some(Slot { salt, .. }) = self.sending.get(self.active).cloned() else { return };
        let key = new_key(self.length, &mut self.rng);
        let slot = Block::new(&key.0).map(|block| Slot { key, block, salt });
        match next {
            KeySlot::Odd => self.sending.odd = slot,
            _ => self.sending.even = slot,
        }
        if let Slots { even: Some(even), odd: Some(odd) } = &self.sending {
            self.announced = Some(self.passphrase.wrap(WhichKeys::Both, salt, &[&even.key, &odd.key]).to_bytes());
        }
    }

    /// What to tell the other end until it confirms.
    pub(super) fn announced(&self) -> Option<&[u8]> {
        self.announced.as_deref()
    }

    /// The other end has sent our message back.
    pub(super) fn confirmed(&mut self, bytes: &[u8]) {
        if self.announced.as_deref() == Some(bytes) {
            self.announced = None;
        }
    }

    /// New keys of the other end; `true` if they are good, and so are confirmed by sending them back.
    pub(super) fn renew(&mut self, bytes: &[u8]) -> bool {
        // The length is settled: a change of it would be a downgrade (CVE-2026-55868).
        KeyMaterial::parse(bytes).is_ok_and(|material| {
            material.key_len == self.length.bytes() && self.receiving.install(&self.passphrase, &material)
        })
    }

    /// Decrypts a payload; `false` if there is no such key, or none was used.
    pub(super) fn open(&self, key: KeySlot, sequence: u32, payload: &mut [u8]) -> bool {
        let Some(slot) = self.receiving.get(key) else { return false };
        apply(slot, sequence, payload);
        true
    }
}

const fn other(slot: KeySlot) -> KeySlot {
    match slot {
        KeySlot::Even => KeySlot::Odd,
        KeySlot::Odd | KeySlot::Clear => KeySlot::Even,
    }
}

fn new_key(length: KeyLength, rng: &mut Rng) -> StreamKey {
    let mut key = vec![0; length.bytes()];
    rng.fill(&mut key);
    StreamKey(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(length: KeyLength, refresh: u64) -> (Cipher, Cipher) {
        let passphrase = Passphrase::new("correct horse".into()).unwrap();
        let mut rng = Rng::from_seed(1);
        let (caller, bytes) = Cipher::of_caller(&passphrase, length, refresh, &mut rng);
        let material = KeyMaterial::parse(&bytes).unwrap();
        let listener = Cipher::of_listener(&passphrase, &material, refresh, &mut rng).unwrap();
        (caller, listener)
    }

    fn carry(from: &mut Cipher, to: &Cipher, sequence: u32) -> (KeySlot, bool) {
        let mut payload = *b"seven packets of a transport stream";
        let key = from.seal(sequence, &mut payload);
        assert_ne!(&payload, b"seven packets of a transport stream");
        let opened = to.open(key, sequence, &mut payload);
        (key, opened && &payload == b"seven packets of a transport stream")
    }

    #[test]
    fn both_directions_read_what_the_other_wrote() {
        for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
            let (mut caller, mut listener) = pair(length, REFRESH);
            assert_eq!(carry(&mut caller, &listener, 5), (KeySlot::Even, true));
            assert_eq!(carry(&mut listener, &caller, 0x7fff_ffff), (KeySlot::Even, true));
            let mut clear = *b"in clear";
            assert!(!listener.open(KeySlot::Clear, 1, &mut clear) && !listener.open(KeySlot::Odd, 1, &mut clear));
        }
    }

    #[test]
    fn keys_change_once_the_other_end_has_the_next_one() {
        let (mut from, mut to) = pair(KeyLength::Aes256, 8000);
        let (mut keys, mut told_at) = (Vec::new(), None);
        for sequence in 0..9000 {
            let (key, right) = carry(&mut from, &to, sequence);
            assert!(right, "packet {sequence}");
            if keys.last() != Some(&key) {
                keys.push(key);
            }
            if let Some(message) = from.announced().map(<[u8]>::to_vec) {
                told_at = told_at.or(Some(sequence));
                // The answer takes its time.
                if sequence == 8500 {
                    assert!(to.renew(&message) && !to.renew(&message[..message.len() - 1]));
                    from.confirmed(&message);
                }
            }
        }
        assert_eq!((keys, told_at), (vec![KeySlot::Even, KeySlot::Odd], Some(5999)));
    }

    #[test]
    fn a_renewal_that_shortens_keys_is_refused() {
        let (_, mut listener) = pair(KeyLength::Aes256, REFRESH);
        let passphrase = Passphrase::new("correct horse".into()).unwrap();
        let short = passphrase.wrap(WhichKeys::Even, [1; 16], &[&StreamKey(vec![1; 16])]);
        assert!(!listener.renew(&short.to_bytes()));
    }
}
