//! Datagrams of an application's own socket that leave together.

use crate::datagrams::{MAX_BATCH, MAX_SEGMENTS};
use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg, sendto};
use socket2::Socket as RawSocket;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::Range;

/// Datagrams that wait at most: what one call of `sendmmsg` takes.
const WAITING: usize = 64;

/// Datagrams that wait to leave over one socket with as few system calls as there can be.
///
/// Memory: at most 64 datagrams.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// The address of each, and its end in `bytes`.
    ends: Vec<(SocketAddr, usize)>,
}

impl Outbox {
    /// Returns `true` if it is to be [sent](crate::DatagramReader::send) before anything else is
    /// put into it.
    pub const fn is_full(&self) -> bool {
        self.ends.len() >= WAITING
    }

    /// Returns `true` if nothing waits.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Puts a datagram behind those that wait. One that is longer than UDP carries (65,507 bytes)
    /// will not be taken by the system.
    pub fn push(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((to, self.bytes.len()));
    }

    /// Sends all of them; returns how many the system did not take.
    pub(crate) fn send(&mut self, raw: &RawSocket, state: &UdpSocketState) -> u64 {
        let (mut at, mut unsent) = (0, 0);
        while at < self.ends.len() {
            let run = self.run(at, state.max_gso_segments());
            if run > 1 && self.send_run(at..at + run, raw, state) {
                at += run;
                continue;
            }
            // All that are no runs go with one call, up to the next run.
            let mut end = at + run;
            while end < self.ends.len() && self.run(end, state.max_gso_segments()) == 1 {
                end += 1;
            }
            unsent += self.send_each(at..end, raw);
            at = end;
        }
        self.bytes.clear();
        self.ends.clear();
        unsent
    }

    fn datagram(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[begin..self.ends[at].1]
    }

    /// How many datagrams from `at` on go to the same address and are as long, of which the last
    /// may be shorter: the kernel can cut them from one piece.
    fn run(&self, at: usize, most: usize) -> usize {
        let (to, size) = (self.ends[at].0, self.datagram(at).len());
        let most = most.min(MAX_SEGMENTS).min(MAX_BATCH / size.max(1));
        let (mut count, mut ended) = (1, size == 0);
        while !ended && count < most && self.ends.get(at + count).is_some_and(|(other, _)| *other == to) {
            let len = self.datagram(at + count).len();
            if len == 0 || len > size {
                break;
            }
            ended = len < size;
            count += 1;
        }
        count
    }

    /// Sends a run with one call; `false` if it is to be sent one by one.
    fn send_run(&self, run: Range<usize>, raw: &RawSocket, state: &UdpSocketState) -> bool {
        let size = self.datagram(run.start).len();
        let begin = self.ends[run.start].1 - size;
        let message = Transmit {
            destination: self.ends[run.start].0,
            ecn: None,
            contents: &self.bytes[begin..self.ends[run.end - 1].1],
            segment_size: Some(size),
            src_ip: None,
        };
        // A card that cannot split is noted in `state`. An ICMP error that came meanwhile is
        // reported once in place of sending; each of them is tried again.
        state.try_send(UdpSockRef::from(raw), &message).is_ok()
    }

    fn send_each(&self, which: Range<usize>, raw: &RawSocket) -> u64 {
        if which.len() == 1 {
            let (to, datagram) = (self.ends[which.start].0, self.datagram(which.start));
            let send = || sendto(raw, datagram, SendFlags::empty(), &to);
            return u64::from(send().or_else(|_| send()).is_err());
        }
        let addresses: Vec<SocketAddrAny> = which.clone().map(|at| self.ends[at].0.into()).collect();
        let pieces: Vec<[IoSlice<'_>; 1]> = which.map(|at| [IoSlice::new(self.datagram(at))]).collect();
        let mut controls: Vec<_> = pieces.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let each = addresses.iter().zip(&pieces).zip(&mut controls);
        let mut messages: Vec<_> =
            each.map(|((to, piece), control)| MMsgHdr::new_with_addr(to, piece, control)).collect();
        let (mut at, mut tried, mut unsent) = (0, false, 0);
        while at < messages.len() {
            match sendmmsg(raw, &mut messages[at..], SendFlags::empty()) {
                Ok(sent) if sent > 0 => (at, tried) = (at + sent, false),
                // An ICMP error that came meanwhile is reported once in place of sending.
                _ if !tried => tried = true,
                _ => (at, tried, unsent) = (at + 1, false, unsent + 1),
            }
        }
        unsent
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_types, reason = "the ends that an application has")]
mod tests {
    use super::*;
    use crate::DatagramReader;
    use std::net::UdpSocket;

    fn reader() -> (DatagramReader, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        (DatagramReader::new(socket.into()).unwrap(), at)
    }

    /// Lengths and first bytes of what has come.
    fn came(reader: &mut DatagramReader) -> Vec<(usize, u8)> {
        let mut all = Vec::new();
        while reader.receive(|bytes, _| all.push((bytes.len(), bytes.first().copied().unwrap_or(0)))).unwrap().datagrams
            > 0
        {}
        all
    }

    #[test]
    fn each_comes_where_it_is_sent_to_in_order() {
        let ((mut from, _), (mut one, to_one), (mut two, to_two)) = (reader(), reader(), reader());
        let mut outbox = Outbox::default();
        // A run that ends short, single ones in turn, an empty one, and a run to another.
        let sent = [
            (to_one, vec![1316, 1316, 40]),
            (to_two, vec![44]),
            (to_one, vec![44]),
            (to_two, vec![0, 16, 1316, 1316, 1316]),
        ];
        let mut number = 0;
        for (to, lengths) in &sent {
            for len in lengths {
                number += 1;
                outbox.push(*to, &vec![number; *len]);
            }
        }
        assert_eq!((from.send(&mut outbox), outbox.is_empty()), (0, true));
        assert_eq!(came(&mut one), [(1316, 1), (1316, 2), (40, 3), (44, 5)]);
        assert_eq!(came(&mut two), [(44, 4), (0, 0), (16, 7), (1316, 8), (1316, 9), (1316, 10)]);
        (0..64).for_each(|_| outbox.push(to_one, &[7; 1316]));
        assert!(outbox.is_full());
        assert_eq!((from.send(&mut outbox), came(&mut one)), (0, vec![(1316, 7); 64]));
    }

    #[test]
    fn what_cannot_leave_is_counted_and_the_rest_leaves() {
        let ((mut from, _), (mut to, at)) = (reader(), reader());
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut outbox = Outbox::default();
        // An address of the other family.
        let strange = "[2001:db8::1]:9".parse().unwrap();
        for to in [at, strange, nobody, at, nobody, at] {
            outbox.push(to, &[1; 30]);
        }
        assert_eq!((from.send(&mut outbox), came(&mut to)), (1, vec![(30, 1); 3]));
        // What nobody took is reported later, in place of sending.
        outbox.push(at, &[2; 30]);
        assert_eq!((from.send(&mut outbox), came(&mut to)), (0, vec![(30, 2)]));
    }
}
