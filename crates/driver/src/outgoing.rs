use braidcast_core::{Instant, Machine, Transmit};

/// Datagrams joined at most. Linux splits no batch of more (UDP_MAX_SEGMENTS).
const MAX_JOINED: usize = 64;
/// Bytes joined at most: what one call hands to the kernel.
const MAX_BYTES: usize = 65_507;

/// What a machine sends, with datagrams that follow each other over the same route joined, so that
/// one system call takes them all. Protocols that send one datagram at a time, for example DCCP,
/// get segmentation offload this way.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    now: Vec<u8>,
    /// What was read ahead and could not be joined.
    next: Vec<u8>,
    ahead: Option<Transmit>,
}

impl Outgoing {
    /// What to send next.
    pub(crate) fn next<M: Machine>(&mut self, machine: &mut M, now: Instant) -> Option<(Transmit, &[u8])> {
        let mut transmit = match self.ahead.take() {
            Some(transmit) => {
                std::mem::swap(&mut self.now, &mut self.next);
                transmit
            }
            None => {
                self.now.clear();
                machine.poll_transmit(now, &mut self.now)?
            }
        };
        let size = self.now.len();
        let mut joined = 1;
        while transmit.segment_size.is_none() && size > 0 && joined < MAX_JOINED && self.now.len() + size <= MAX_BYTES {
            self.next.clear();
            let Some(following) = machine.poll_transmit(now, &mut self.next) else { break };
            let fits = following == transmit && (1..=size).contains(&self.next.len());
            if !fits {
                self.ahead = Some(following);
                break;
            }
            self.now.extend_from_slice(&self.next);
            joined += 1;
            if self.next.len() < size {
                break; // only the last one may be shorter
            }
        }
        if joined > 1 {
            transmit.segment_size = Some(size);
        }
        Some((transmit, &self.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::{Datagram, Ecn, Route, SocketId};
    use std::collections::VecDeque;

    /// Sends datagrams of these lengths to these ports.
    struct Script(VecDeque<(u16, usize)>);

    impl Machine for Script {
        type Event = ();

        fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}

        fn handle_timeout(&mut self, _: Instant) {}

        fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
            let (port, len) = self.0.pop_front()?;
            buf.clear();
            buf.resize(len, port as u8);
            let route = Route::new(SocketId(0), ([127, 0, 0, 1], port).into());
            Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None })
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }

        fn poll_event(&mut self) -> Option<()> {
            None
        }
    }

    /// Port, segment size and length of each batch.
    fn batches(datagrams: &[(u16, usize)]) -> Vec<(u16, Option<usize>, usize)> {
        let (mut script, mut outgoing) = (Script(datagrams.iter().copied().collect()), Outgoing::default());
        let mut all = Vec::new();
        while let Some((transmit, payload)) = outgoing.next(&mut script, Instant::ZERO) {
            assert!(payload.iter().all(|&byte| byte == transmit.route.remote.port() as u8));
            all.push((transmit.route.remote.port(), transmit.segment_size, payload.len()));
        }
        all
    }

    #[test]
    fn equal_datagrams_are_joined_up_to_a_shorter_one() {
        assert_eq!(batches(&[(1, 100), (1, 100), (1, 40), (1, 100)]), [(1, Some(100), 240), (1, None, 100)]);
        assert_eq!(batches(&[(1, 40), (1, 100)]), [(1, None, 40), (1, None, 100)]);
    }

    #[test]
    fn other_routes_and_empty_datagrams_stand_alone() {
        assert_eq!(batches(&[(1, 9), (2, 9), (2, 9), (1, 9)]), [(1, None, 9), (2, Some(9), 18), (1, None, 9)]);
        assert_eq!(batches(&[(1, 0), (1, 0), (1, 5)]), [(1, None, 0), (1, None, 0), (1, None, 5)]);
    }

    #[test]
    fn a_batch_is_no_longer_than_the_kernel_takes() {
        let all = batches(&[(1, 1400); 100]);
        assert!(all.iter().all(|&(_, _, len)| len <= MAX_BYTES), "{all:?}");
        assert_eq!(all.iter().map(|&(_, _, len)| len).sum::<usize>(), 140_000);
        assert_eq!(batches(&[(1, 10); 70]), [(1, Some(10), 640), (1, Some(10), 60)]);
    }
}
