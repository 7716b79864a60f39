//! Key messages over datagrams, which get lost, come twice and overtake each other: for transports
//! that repeat nothing themselves.

use braidcast_core::Instant;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// First byte of a fragment: TLS's content type for handshakes, so that it is no record in the form that is used here.
const KIND: u8 = 22;
/// Messages that are longer are refused: a handshake of TLS with one raw public key needs less than 2,000 bytes.
const MAX_MESSAGE: usize = 16 << 10;
/// Bytes that may have come ahead of those before them, and the fragments that they may be in.
const WINDOW: u32 = 16 << 10;
const MAX_AHEAD: usize = 64;

/// What comes is no fragment of key messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a fragment of key messages")]
pub struct NoFragment;

/// The other end acknowledges no key messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the other end acknowledges no key messages")]
pub struct Unacknowledged;

/// A stream of messages in each direction, cut into fragments that are repeated until the other end
/// has them.
///
/// A fragment: 22, how many bytes came (32 bits), where its own bytes stand in the stream (32
/// bits), the bytes. In the stream each message stands behind its length (16 bits).
///
/// Memory: 48 KiB of what came, [`MAX_OUT`](Self::MAX_OUT) of what was not acknowledged.
#[derive(Debug)]
pub struct Courier {
    /// What the other end has not acknowledged, from `acknowledged` on.
    out: VecDeque<u8>,
    acknowledged: u32,
    /// Up to there it was sent, since it was last repeated.
    sent: u32,
    due: Option<Instant>,
    pause: Duration,
    first_pause: Duration,
    /// In order, and not yet a whole message.
    came: VecDeque<u8>,
    expected: u32,
    ahead: BTreeMap<u32, Vec<u8>>,
    owes: bool,
}

impl Courier {
    /// Bytes of a fragment before its own.
    pub const HEADER: usize = 9;
    /// Pauses before something is repeated double up to this.
    const LONGEST: Duration = Duration::from_secs(4);

    /// With nothing to carry. What is not acknowledged within `pause` goes again, then after pauses that double.
    pub const fn new(pause: Duration) -> Self {
        Self {
            out: VecDeque::new(),
            acknowledged: 0,
            sent: 0,
            due: None,
            pause,
            first_pause: pause,
            came: VecDeque::new(),
            expected: 0,
            ahead: BTreeMap::new(),
            owes: false,
        }
    }

    /// How long to wait for an acknowledgement from now on, as round trips take a while that is known now.
    pub const fn set_pause(&mut self, pause: Duration) {
        (self.pause, self.first_pause) = (pause, pause);
    }

    /// Bytes that may wait for an acknowledgement: several changes of keys.
    pub const MAX_OUT: usize = 64 << 10;

    /// Takes a message to be carried.
    ///
    /// # Errors
    /// [`Unacknowledged`]: the other end has acknowledged nothing for so long that it never will.
    pub fn push(&mut self, message: &[u8]) -> Result<(), Unacknowledged> {
        debug_assert!(message.len() <= MAX_MESSAGE, "key messages are short");
        if self.out.len() + message.len() > Self::MAX_OUT {
            return Err(Unacknowledged);
        }
        self.out.extend((message.len() as u16).to_be_bytes());
        self.out.extend(message);
        Ok(())
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.sent.wrapping_sub(self.acknowledged) as usize
    }

    /// Bytes of the fragment that is to be sent, of at most `room`; `None` if there is none.
    pub fn next_len(&self, room: usize) -> Option<usize> {
        let bytes = self.unsent().min(room.saturating_sub(Self::HEADER));
        (room > Self::HEADER && (bytes > 0 || self.owes)).then_some(Self::HEADER + bytes)
    }

    /// Appends the fragment that is to be sent, of at most `room` bytes. Returns `true` if there
    /// was one.
    pub fn poll(&mut self, now: Instant, room: usize, buf: &mut Vec<u8>) -> bool {
        let Some(len) = self.next_len(room) else { return false };
        let (from, bytes) = (self.out.len() - self.unsent(), len - Self::HEADER);
        buf.push(KIND);
        buf.extend_from_slice(&self.expected.to_be_bytes());
        buf.extend_from_slice(&self.sent.to_be_bytes());
        buf.extend(self.out.range(from..from + bytes));
        self.sent = self.sent.wrapping_add(bytes as u32);
        self.owes = false;
        if bytes > 0 {
            self.due.get_or_insert(now + self.pause);
        }
        true
    }

    /// Takes a fragment of the other end's.
    ///
    /// # Errors
    /// [`NoFragment`]; nothing was taken then.
    pub fn handle(&mut self, now: Instant, fragment: &[u8]) -> Result<(), NoFragment> {
        let (&[kind, a, b, c, d, e, f, g, h], bytes) = fragment.split_first_chunk().ok_or(NoFragment)?;
        if kind != KIND {
            return Err(NoFragment);
        }
        self.acknowledge(now, u32::from_be_bytes([a, b, c, d]));
        if !bytes.is_empty() {
            self.owes = true;
            self.take(u32::from_be_bytes([e, f, g, h]), bytes);
        }
        Ok(())
    }

    fn acknowledge(&mut self, now: Instant, up_to: u32) {
        let count = up_to.wrapping_sub(self.acknowledged) as usize;
        if count == 0 || count > self.out.len() {
            return; // An old one, or made up.
        }
        self.out.drain(..count);
        let outstanding = self.sent.wrapping_sub(self.acknowledged) as usize;
        self.acknowledged = up_to;
        if outstanding < count {
            self.sent = up_to; // It came of what was sent before it was to be repeated.
        }
        self.pause = self.first_pause;
        self.due = (self.unsent() < self.out.len()).then(|| now + self.pause);
    }

    fn take(&mut self, at: u32, bytes: &[u8]) {
        let ahead = at.wrapping_sub(self.expected);
        if ahead != 0 && ahead <= WINDOW {
            let held: usize = self.ahead.values().map(Vec::len).sum();
            if self.ahead.len() < MAX_AHEAD && held + bytes.len() <= WINDOW as usize {
                self.ahead.entry(at).or_insert_with(|| bytes.to_vec());
            }
            return;
        }
        self.append(at, bytes);
        while let Some((at, bytes)) = self.ahead.iter().find_map(|(&at, bytes)| {
            let behind = self.expected.wrapping_sub(at);
            (behind <= 2 * WINDOW).then(|| (at, bytes.clone()))
        }) {
            self.ahead.remove(&at);
            self.append(at, &bytes);
        }
    }

    /// Takes what is new of `bytes`, which begin where the stream goes on or before.
    fn append(&mut self, at: u32, bytes: &[u8]) {
        let known = self.expected.wrapping_sub(at) as usize;
        let Some(new) = bytes.get(known..) else { return };
        if self.came.len() + new.len() <= 2 * WINDOW as usize {
            self.came.extend(new);
            self.expected = self.expected.wrapping_add(new.len() as u32);
        }
    }

    /// The next message that came whole.
    ///
    /// # Errors
    /// [`NoFragment`]: it is longer than any key message.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, NoFragment> {
        let (Some(&high), Some(&low)) = (self.came.front(), self.came.get(1)) else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len > MAX_MESSAGE {
            return Err(NoFragment);
        }
        if self.came.len() < 2 + len {
            return Ok(None);
        }
        self.came.drain(..2);
        Ok(Some(self.came.drain(..len).collect()))
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Time passed: what was not acknowledged goes again. Returns `true` if there is anything.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let repeats = self.due.take_if(|due| *due <= now).is_some();
        if repeats {
            self.sent = self.acknowledged;
            self.pause = (self.pause * 2).min(Self::LONGEST);
        }
        repeats
    }
}

#[cfg(test)]
mod tests;
