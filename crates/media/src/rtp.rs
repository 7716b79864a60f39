//! RTP in front of a transport stream (RFC 3550 §5.1, RFC 2250 §2): its sequence numbers tell what is missing, and put
//! back into order what overtook.

use crate::ts::{PACKET, SYNC};
use braidcast_core::{Instant, Unwrapper};
use core::time::Duration;
use std::collections::BTreeMap;

/// Payload type of MPEG-TS (RFC 3551 §6); dynamic ones begin at 96.
const MP2T: u8 = 33;
const DYNAMIC: u8 = 96;
/// A datagram that is missing is waited for as long.
const PATIENCE: Duration = Duration::from_millis(20);
/// Datagrams that wait for one before them, at most.
const MAX_HELD: usize = 64;
/// A jump by more is another stream.
const MAX_JUMP: u64 = 1000;

/// The sequence number and the payload of an RTP packet; `None` if `datagram` cannot be one.
fn parse(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let (&[first, second, high, low, ..], mut rest) = (datagram.first_chunk::<12>()?, datagram.get(12..)?);
    let payload_type = second & 0x7f;
    if first >> 6 != 2 || !(payload_type == MP2T || payload_type >= DYNAMIC) {
        return None;
    }
    rest = rest.get(4 * usize::from(first & 0x0f)..)?;
    if first & 0x10 != 0 {
        let &[_, _, high, low] = rest.first_chunk()?;
        rest = rest.get(4 + 4 * usize::from(u16::from_be_bytes([high, low]))..)?;
    }
    if first & 0x20 != 0 {
        let padding = usize::from(*rest.last()?);
        rest = rest.get(..rest.len().checked_sub(padding)?)?;
    }
    Some((u16::from_be_bytes([high, low]), rest))
}

/// Returns `true` if `datagram` is whole packets of transport stream behind an RTP header.
pub(crate) fn carries_ts(datagram: &[u8]) -> bool {
    parse(datagram).is_some_and(|(_, payload)| {
        !payload.is_empty()
            && payload.len().is_multiple_of(PACKET)
            && payload.iter().step_by(PACKET).all(|byte| *byte == SYNC)
    })
}

/// What RTP said of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtpStats {
    /// Datagrams that did not come.
    pub lost: u64,
    /// Datagrams that came behind later ones, and were put back.
    pub reordered: u64,
}

/// Takes RTP away from a transport stream, and puts its datagrams into order.
///
/// Memory: 64 datagrams.
#[derive(Debug, Default)]
pub(crate) struct Rtp {
    numbers: Option<Unwrapper<16>>,
    /// The number of the datagram that comes next.
    next: u64,
    newest: u64,
    held: BTreeMap<u64, (Instant, Vec<u8>)>,
    pub(crate) stats: RtpStats,
}

impl Rtp {
    /// Takes a datagram that came at `now`, and hands on the payloads that are in order. Returns `false`
    /// if it is no RTP.
    pub(crate) fn push(&mut self, now: Instant, datagram: &[u8], mut hand_on: impl FnMut(&[u8])) -> bool {
        let Some((number, payload)) = parse(datagram) else { return false };
        let numbers = self.numbers.get_or_insert_with(|| {
            // One that overtook the very first may still come.
            self.next = (1 << 16) + u64::from(number);
            Unwrapper::new(self.next)
        });
        let number = numbers.unwrap(u64::from(number));
        if number.abs_diff(self.next) > MAX_JUMP {
            core::mem::take(&mut self.held).into_values().for_each(|(_, payload)| hand_on(&payload));
            (self.numbers, self.next, self.newest) = (Some(Unwrapper::new(number)), number, number);
        }
        if number < self.next {
            return true; // It was not waited for, or came twice.
        }
        self.stats.reordered += u64::from(number < self.newest);
        self.newest = self.newest.max(number);
        if number > self.next {
            self.held.insert(number, (now, payload.to_vec()));
            self.release(now, hand_on);
            return true;
        }
        self.next += 1;
        hand_on(payload);
        self.release(now, hand_on);
        true
    }

    /// Hands on what is in order, and skips what was waited for for long.
    pub(crate) fn release(&mut self, now: Instant, mut hand_on: impl FnMut(&[u8])) {
        while let Some(first) = self.held.first_entry() {
            let number = *first.key();
            let waits = now.since(first.get().0) < PATIENCE;
            if number > self.next && waits && self.held.len() <= MAX_HELD {
                break;
            }
            let Some((_, (_, payload))) = self.held.pop_first() else { break };
            self.stats.lost += number - self.next;
            self.next = number + 1;
            hand_on(&payload);
        }
    }

    /// When to [`release`](Self::release) at the latest.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.held.first_key_value().map(|(_, (at, _))| *at + PATIENCE)
    }

    /// The input has ended.
    pub(crate) fn finish(&mut self, hand_on: impl FnMut(&[u8])) {
        self.release(Instant::from_nanos(u64::MAX), hand_on);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u16, fill: u8) -> Vec<u8> {
        let mut datagram = vec![0x80, MP2T, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        datagram[2..4].copy_from_slice(&number.to_be_bytes());
        datagram.extend([SYNC].iter().chain(&[fill; PACKET - 1]));
        datagram
    }

    fn order(pushed: &[(u64, u16)]) -> (Vec<u8>, RtpStats) {
        let (mut rtp, mut out) = (Rtp::default(), Vec::new());
        for (ms, number) in pushed {
            let datagram = datagram(*number, *number as u8);
            assert!(rtp.push(Instant::from_millis(*ms), &datagram, |payload| out.push(payload[1])));
        }
        rtp.finish(|payload| out.push(payload[1]));
        (out, rtp.stats)
    }

    #[test]
    fn what_overtook_is_put_back_and_what_is_missing_is_counted() {
        let stats = |lost, reordered| RtpStats { lost, reordered };
        assert_eq!(order(&[(0, 0xfffe), (1, 0xffff), (2, 1), (3, 0), (4, 2)]), (vec![254, 255, 0, 1, 2], stats(0, 1)));
        assert_eq!(order(&[(0, 7), (1, 9), (2, 10), (25, 11), (26, 8)]), (vec![7, 9, 10, 11], stats(1, 0)));
        // Another stream takes over.
        assert_eq!(order(&[(0, 7), (1, 8), (2, 30_000), (3, 30_001)]), (vec![7, 8, 48, 49], stats(0, 0)));
        assert_eq!(order(&[(0, 7), (1, 7)]).0, [7]);
    }

    #[test]
    fn headers_of_all_lengths_are_skipped() {
        let plain = datagram(1, 5);
        assert!(carries_ts(&plain));
        let mut long = plain.clone();
        long[0] |= 0x10 | 2;
        long.splice(12..12, [[0; 8].as_slice(), &[0xbe, 0xde, 0, 1, 9, 9, 9, 9]].concat());
        assert!(carries_ts(&long));
        let mut padded = plain.clone();
        padded[0] |= 0x20;
        padded.extend([0, 0, 3]);
        assert!(carries_ts(&padded));
        for wrong in [&plain[..100], &plain[12..], &[], &[0x80, 33, 0, 1]] {
            assert!(!carries_ts(wrong));
        }
        let mut other = plain;
        other[1] = 0;
        assert!(!carries_ts(&other), "a telephone's audio");
    }
}
