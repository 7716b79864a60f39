//! Records of DTLS 1.3 (RFC 9147 §4) in the one form that the DTLS chunk has: a number of 16 bits,
//! neither length nor connection identifier.

use crate::{Cipher, Ciphers, Failed, Keys, NONCE, Suite, TAG, Window};
use core::fmt;

/// Bytes before the encrypted part: flags and the epoch's low bits, and the number.
pub const HEADER: usize = 3;
/// Bytes that a record is longer than what it protects.
pub const OVERHEAD: usize = HEADER + 1 + TAG;
/// Most bytes that one record protects (RFC 8446 §5.1).
pub const MAX_PLAINTEXT: usize = 1 << 14;

/// `001 0 1 0 EE` (RFC 9147 §4 figure 3): no connection identifier, 16 bits of the number, no length.
const FLAGS: u8 = 0b0010_1000;

/// What a record holds: its inner content type (RFC 8446 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Content {
    /// Key messages, if the transport has no place of its own for them.
    Handshake = 22,
    /// All else.
    Application = 23,
}

impl Content {
    const fn from_type(inner: u8) -> Option<Self> {
        match inner {
            22 => Some(Self::Handshake),
            23 => Some(Self::Application),
            _ => None,
        }
    }
}
/// Numbers that the wire tells apart.
const CYCLE: u64 = 1 << 16;
/// Numbers have 48 bits (RFC 9147 §4.2.1).
const MOST: u64 = (1 << 48) - 1;

/// No more may be sealed under these keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the keys of this epoch are used up")]
pub struct Spent;

/// Why a record is not taken. Whoever sent it learns nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejected {
    /// It is no record in the form that is used here.
    #[error("not a record in the form of the DTLS chunk")]
    Malformed,
    /// No keys for its epoch.
    #[error("no keys for epoch {low_bits} (of four)")]
    NoKeys {
        /// The two low bits of the epoch.
        low_bits: u8,
    },
    /// It came already, or is too old to tell.
    #[error("record came already, or too late")]
    Replayed,
    /// Changed in flight, or made by somebody else.
    #[error("record does not authenticate")]
    Forged,
    /// Authentic, but not application data.
    #[error("record of another kind than application data")]
    Kind,
}

fn nonce(iv: &[u8; NONCE], number: u64) -> [u8; NONCE] {
    let mut nonce = *iv;
    nonce[NONCE - 8..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, part)| *byte ^= part);
    nonce
}

/// One direction of one epoch, outwards.
pub struct Sealer {
    cipher: Box<dyn Cipher>,
    suite: Suite,
    iv: [u8; NONCE],
    epoch: u64,
    next: u64,
    bytes: u64,
}

impl Sealer {
    /// Seals the records of `epoch`, from number 0 on.
    ///
    /// # Errors
    /// [`Failed`] if `ciphers` has none for these keys.
    pub fn new(ciphers: &dyn Ciphers, keys: &Keys, epoch: u64) -> Result<Self, Failed> {
        let cipher = ciphers.cipher(keys)?;
        Ok(Self { cipher, suite: keys.suite(), iv: keys.iv(), epoch, next: 0, bytes: 0 })
    }

    /// Which epoch.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records sealed.
    pub const fn records(&self) -> u64 {
        self.next
    }

    /// Bytes of plain text sealed.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The cipher suite.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Makes a record of all that follows the first [`HEADER`] bytes of `buf` from `start` on,
    /// which are overwritten. `buf` grows by what is left of [`OVERHEAD`]; it is the caller's to
    /// have that much capacity.
    ///
    /// # Errors
    /// [`Spent`]; what stands in `buf` may not be sent then.
    ///
    /// # Panics
    /// If less than the header stands there.
    pub fn seal(&mut self, buf: &mut Vec<u8>, start: usize) -> Result<(), Spent> {
        self.seal_with(buf, start, Content::Application, None)
    }

    /// The same of any `content`, authenticated together with what stands `before` the record,
    /// where that can be read by anybody. The record's own header is appended to `before`.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    ///
    /// # Panics
    /// As [`seal`](Self::seal).
    pub fn seal_behind(
        &mut self,
        before: &mut Vec<u8>,
        buf: &mut Vec<u8>,
        start: usize,
        content: Content,
    ) -> Result<(), Spent> {
        self.seal_with(buf, start, content, Some(before))
    }

    fn seal_with(
        &mut self,
        buf: &mut Vec<u8>,
        start: usize,
        content: Content,
        before: Option<&mut Vec<u8>>,
    ) -> Result<(), Spent> {
        let number = self.next;
        if number >= self.suite.most_sealed() || number > MOST {
            return Err(Spent);
        }
        assert!(buf.len() >= start + HEADER, "room for the header was left");
        self.next += 1;
        self.bytes += (buf.len() - start - HEADER) as u64;
        buf.push(content as u8);
        let (header, text) = buf[start..].split_at_mut(HEADER);
        let [high, low] = (number as u16).to_be_bytes();
        header.copy_from_slice(&[FLAGS | (self.epoch & 3) as u8, high, low]);
        let authenticated = match before {
            Some(before) => {
                before.extend_from_slice(header);
                before
            }
            None => &*header,
        };
        let tag = self.cipher.seal(&nonce(&self.iv, number), authenticated, text).map_err(|_| Spent)?;
        buf.extend_from_slice(&tag);
        let (header, sealed) = buf[start..].split_at_mut(HEADER);
        if let Some(sample) = sealed.first_chunk() {
            let [a, b] = self.cipher.mask(sample);
            header[1] ^= a;
            header[2] ^= b;
        }
        Ok(())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, epoch, next, bytes, .. } = self;
        let mut it = f.debug_struct("Sealer");
        it.field("suite", suite).field("epoch", epoch).field("next", next).field("bytes", bytes).finish_non_exhaustive()
    }
}

/// What came over one direction of one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Records that were authentic and new.
    pub taken: u64,
    /// Bytes of plain text in them.
    pub bytes: u64,
    /// Records that came already or too late, or bore the number of one that did.
    pub replayed: u64,
    /// Records that were not authentic.
    pub forged: u64,
}

/// One direction of one epoch, inwards.
pub struct Opener {
    cipher: Box<dyn Cipher>,
    suite: Suite,
    iv: [u8; NONCE],
    epoch: u64,
    window: Window,
    counts: Counts,
}

impl Opener {
    /// Opens the records of `epoch`.
    ///
    /// # Errors
    /// [`Failed`] if `ciphers` has none for these keys.
    pub fn new(ciphers: &dyn Ciphers, keys: &Keys, epoch: u64) -> Result<Self, Failed> {
        let cipher = ciphers.cipher(keys)?;
        let (window, counts) = (Window::new(), Counts::default());
        Ok(Self { cipher, suite: keys.suite(), iv: keys.iv(), epoch, window, counts })
    }

    /// The low bits of the epoch of `record`, if it has the form that is used here.
    pub fn low_bits(record: &[u8]) -> Option<u8> {
        record.first().filter(|&&flags| flags & !3 == FLAGS).map(|flags| flags & 3)
    }

    /// Which epoch.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What came so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns `true` if the number of forged records demands new keys (RFC 9147 §4.5.3).
    pub const fn is_worn(&self) -> bool {
        self.counts.forged + self.counts.replayed >= self.suite.most_forged()
    }

    /// Puts what `record` protects into `text`, in place of what it held. Nothing about the window
    /// changes unless the record is authentic.
    ///
    /// # Errors
    /// [`Rejected`]; `text` says nothing then.
    pub fn open(&mut self, record: &[u8], text: &mut Vec<u8>) -> Result<(), Rejected> {
        let content = self.open_with(&mut [0; HEADER], record, text)?;
        if content == Content::Application { Ok(()) } else { Err(Rejected::Kind) }
    }

    /// The same of a record that was sealed by [`Sealer::seal_behind`], with what stands `before`
    /// it, to which its header is appended.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_behind(
        &mut self,
        before: &mut Vec<u8>,
        record: &[u8],
        text: &mut Vec<u8>,
    ) -> Result<Content, Rejected> {
        before.resize(before.len() + HEADER, 0);
        self.open_with(before, record, text)
    }

    /// `authenticated` ends with room for the record's header.
    fn open_with(&mut self, authenticated: &mut [u8], record: &[u8], text: &mut Vec<u8>) -> Result<Content, Rejected> {
        text.clear();
        let (&[flags, high, low], sealed) = record.split_first_chunk().ok_or(Rejected::Malformed)?;
        let (sealed, tag) = sealed.split_last_chunk().ok_or(Rejected::Malformed)?;
        if flags & !3 != FLAGS || sealed.is_empty() || sealed.len() > MAX_PLAINTEXT + 1 {
            return Err(Rejected::Malformed);
        }
        if u64::from(flags & 3) != self.epoch & 3 {
            return Err(Rejected::NoKeys { low_bits: flags & 3 });
        }
        let sample = record[HEADER..].first_chunk().ok_or(Rejected::Malformed)?;
        let [a, b] = self.cipher.mask(sample);
        let header = [flags, high ^ a, low ^ b];
        if let Some(place) = authenticated.last_chunk_mut() {
            *place = header;
        }
        let wire = u16::from_be_bytes([header[1], header[2]]);
        let mut seen = false;
        for number in candidates(self.window.next(), wire) {
            if !self.window.is_new(number) {
                seen = true;
                continue;
            }
            text.resize(sealed.len(), 0);
            if self.cipher.open(&nonce(&self.iv, number), authenticated, sealed, tag, text).is_ok() {
                return self.take(number, text);
            }
        }
        text.clear();
        // One that came already cannot be told from a forged one that bears its number, at no cost.
        let (count, rejected) = if seen {
            (&mut self.counts.replayed, Rejected::Replayed)
        } else {
            (&mut self.counts.forged, Rejected::Forged)
        };
        *count += 1;
        Err(rejected)
    }

    /// `text` is authentic.
    fn take(&mut self, number: u64, text: &mut Vec<u8>) -> Result<Content, Rejected> {
        self.window.accept(number);
        // RFC 8446 §5.4: zeros pad, and the type stands before them.
        let end = text.iter().rposition(|&byte| byte != 0);
        let content = end.and_then(|end| Content::from_type(text[end]));
        text.truncate(end.unwrap_or_default());
        let Some(content) = content else {
            text.clear();
            return Err(Rejected::Kind);
        };
        self.counts.taken += 1;
        self.counts.bytes += text.len() as u64;
        Ok(content)
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, epoch, window, counts, .. } = self;
        let mut it = f.debug_struct("Opener");
        it.field("suite", suite).field("epoch", epoch).field("window", window).field("counts", counts);
        it.finish_non_exhaustive()
    }
}

/// Which numbers may have been sent as `wire`: the one closest to `next` (RFC 9147 §4.2.2), then
/// the one on the other side of it. The second makes all of the window of use where paths are far
/// apart, and finds the sender again after a long silence.
fn candidates(next: u64, wire: u16) -> impl Iterator<Item = u64> {
    let ahead = u64::from(wire.wrapping_sub(next as u16));
    let (after, before) = (next + ahead, (next + ahead).checked_sub(CYCLE));
    let ordered = if ahead > CYCLE / 2 { [before, Some(after)] } else { [Some(after), before] };
    ordered.into_iter().flatten().filter(|&number| number <= MOST)
}

#[cfg(test)]
mod tests;
