//! Datagrams of an application's own sockets, many with one system call.

use crate::outbox::Outbox;
use crate::socket::{Slots, offload_state, set_option};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use socket2::Socket as RawSocket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Datagrams that Linux splits from one buffer at most (UDP_MAX_SEGMENTS, 64 before Linux 6.9).
pub(crate) const MAX_SEGMENTS: usize = 64;
/// No UDP payload is longer (IPv4: 65535 - 20 - 8), and so no buffer that is to be split.
pub(crate) const MAX_BATCH: usize = 65_507;

/// What one batch had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Datagrams that came.
    pub datagrams: usize,
    /// There may be more.
    pub more: bool,
}

/// Reads what comes to a UDP socket, by `recvmmsg` and with what the kernel has joined
/// (`UDP_GRO`).
///
/// Memory: 2 MiB of address space, of which only what is used becomes real.
#[derive(Debug)]
pub struct DatagramReader {
    raw: RawSocket,
    state: UdpSocketState,
    slots: Slots,
}

impl DatagramReader {
    /// Takes over a UDP socket that is bound. It becomes non-blocking.
    ///
    /// # Errors
    /// The system refuses an option of the socket.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let raw = RawSocket::from(socket);
        raw.set_nonblocking(true)?;
        // With the time at which the kernel got each datagram (SO_TIMESTAMPNS, which quinn-udp switches on):
        // beside that there is no room for its ECN bits, which nobody asks for here.
        let state = UdpSocketState::new(UdpSockRef::from(&raw))?;
        Ok(Self { raw, state, slots: Slots::new() })
    }

    /// The same without the times at which datagrams came, which cost the kernel a look at the clock and a control
    /// message for each: all have waited for 0.
    ///
    /// # Errors
    /// The system refuses an option of the socket.
    pub fn untimed(socket: OwnedFd) -> io::Result<Self> {
        let raw = RawSocket::from(socket);
        raw.set_nonblocking(true)?;
        let state = offload_state(&raw)?;
        Ok(Self { raw, state, slots: Slots::new() })
    }

    /// Reads a batch, and hands its datagrams to `take` in the order in which they came, each with the time
    /// that it has waited here to be read; 0 if the kernel does not say. Does not wait: there may be none.
    ///
    /// # Errors
    /// Those of the socket. One that is reported once may be followed by datagrams.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8], Duration)) -> io::Result<Batch> {
        let today = wall_clock();
        self.receive_each(|meta, bytes| {
            // A wall clock that was set meanwhile makes a wrong time of it, which whoever knows when it read last
            // bounds.
            take(bytes, meta.timestamp.map_or(Duration::ZERO, |came| today.saturating_sub(came)));
        })
    }

    /// The same with the address that each came from.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn receive_from(&mut self, mut take: impl FnMut(SocketAddr, &[u8])) -> io::Result<Batch> {
        self.receive_each(|meta, bytes| take(meta.addr, bytes))
    }

    /// Sends all that waits in `outbox` from the address that the socket is bound to. Returns how
    /// many datagrams the system did not take.
    pub fn send(&mut self, outbox: &mut Outbox) -> u64 {
        outbox.send(&self.raw, &self.state)
    }

    fn receive_each(&mut self, mut take: impl FnMut(&RecvMeta, &[u8])) -> io::Result<Batch> {
        let Self { raw, state, slots } = self;
        let count = match slots.receive(|bufs, meta| state.recv(UdpSockRef::from(&*raw), bufs, meta)) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Batch { datagrams: 0, more: false }),
            Err(error) => return Err(error),
        };
        let mut datagrams = 0;
        for (meta, bytes) in slots.filled(count) {
            if bytes.is_empty() {
                take(meta, bytes);
                datagrams += 1;
            }
            for payload in bytes.chunks(meta.stride.max(1)) {
                take(meta, payload);
                datagrams += 1;
            }
        }
        Ok(Batch { datagrams, more: count == BATCH_SIZE })
    }
}

impl AsRawFd for DatagramReader {
    fn as_raw_fd(&self) -> RawFd {
        self.raw.as_raw_fd()
    }
}

/// The time since 1970, by which the kernel stamps datagrams.
fn wall_clock() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Sends to where a UDP socket is connected, runs of datagrams of equal length with one system call
/// (`UDP_SEGMENT`) as far as the system can.
#[derive(Debug)]
pub struct DatagramWriter {
    raw: RawSocket,
    /// Length at which the kernel splits what is longer; 0: it does not.
    splits_at: usize,
    /// Splitting has not failed yet.
    may_split: bool,
}

impl DatagramWriter {
    /// Takes over a UDP socket that is connected. It becomes non-blocking.
    ///
    /// # Errors
    /// The system refuses that.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let raw = RawSocket::from(socket);
        raw.set_nonblocking(true)?;
        Ok(Self { raw, splits_at: 0, may_split: true })
    }

    /// Sends `bytes` in datagrams of `size` bytes, of which the last may be shorter; at least one.
    /// Returns how many of them the system did not take.
    pub fn send(&mut self, bytes: &[u8], size: usize) -> u64 {
        let size = size.clamp(1, MAX_BATCH);
        if bytes.len() <= size {
            return u64::from(!self.send_one(bytes));
        }
        let batch = size * (MAX_BATCH / size).min(MAX_SEGMENTS);
        bytes.chunks(batch).map(|run| self.send_run(run, size)).sum()
    }

    fn send_run(&mut self, run: &[u8], size: usize) -> u64 {
        if self.may_split && run.len() > size {
            match self.split_at(size).and_then(|()| self.push(run)) {
                Ok(()) => return 0,
                // This card, route or kernel cannot split, or the datagrams are longer than the route
                // takes in one piece, so that each is to be fragmented (udp_send_skb in Linux).
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::NOPROTOOPT) => self.may_split = false,
                    // No room for all of them: as many go as there is room for.
                    Some(Errno::AGAIN | Errno::NOBUFS) => {}
                    _ => return run.len().div_ceil(size) as u64,
                },
            }
        }
        run.chunks(size).map(|datagram| u64::from(!self.send_one(datagram))).sum()
    }

    fn send_one(&mut self, datagram: &[u8]) -> bool {
        // What is no longer than the pieces of the last run is not split: no need to say so each time.
        let whole = self.splits_at == 0 || (self.may_split && datagram.len() <= self.splits_at);
        (whole && self.push(datagram).is_ok())
            || (!(whole && self.splits_at == 0) && self.split_at(0).and_then(|()| self.push(datagram)).is_ok())
    }

    /// Hands it to the kernel. An ICMP error that came meanwhile is reported once in place of
    /// sending.
    fn push(&self, bytes: &[u8]) -> io::Result<()> {
        self.raw.send(bytes).or_else(|_| self.raw.send(bytes)).map(drop)
    }

    fn split_at(&mut self, size: usize) -> io::Result<()> {
        if size != self.splits_at {
            let value = libc::c_int::try_from(size).unwrap_or_default();
            set_option(&self.raw, libc::SOL_UDP, libc::UDP_SEGMENT, value)?;
            self.splits_at = size;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_types, reason = "the ends that an application has")]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> (DatagramWriter, UdpSocket) {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        (DatagramWriter::new(from.into()).unwrap(), to)
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|n| (n / 7) as u8).collect()
    }

    #[test]
    fn a_run_arrives_as_the_datagrams_that_it_is_cut_into() {
        let (mut writer, to) = pair();
        let mut reader = DatagramReader::new(to.into()).unwrap();
        // More than one call takes, one that ends short, one alone, and one longer than those before.
        for (len, size) in [(100 * 100, 100), (65 * 1316, 1316), (3 * 1316 + 188, 1316), (40, 1316), (9000, 9000)] {
            let sent = bytes(len);
            assert_eq!(writer.send(&sent, size), 0);
            let (mut came, mut lengths) = (Vec::new(), Vec::new());
            // The loopback has delivered by the time that the call returns.
            while reader
                .receive(|datagram, _| {
                    came.extend_from_slice(datagram);
                    lengths.push(datagram.len());
                })
                .unwrap()
                .datagrams
                > 0
            {}
            assert_eq!(came, sent, "{len} bytes by {size}");
            let cut: Vec<_> = sent.chunks(size).map(<[u8]>::len).collect();
            assert_eq!(lengths, cut, "{len} bytes by {size}");
        }
        assert!(writer.may_split);
    }

    #[test]
    fn what_cannot_be_split_goes_one_by_one() {
        let (mut writer, to) = pair();
        // Without checksums the kernel refuses to split (udp_send_skb).
        set_option(&writer.raw, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        let sent = bytes(5 * 1316);
        assert_eq!(writer.send(&sent, 1316), 0);
        assert!(!writer.may_split);
        let (mut came, mut buf) = (Vec::new(), [0; 2000]);
        for _ in 0..5 {
            let len = to.recv(&mut buf).unwrap();
            came.extend_from_slice(&buf[..len]);
        }
        assert_eq!(came, sent);
    }

    #[test]
    fn nobody_there_is_no_end_of_it() {
        let (mut writer, to) = pair();
        let there = to.local_addr().unwrap();
        drop(to);
        for _ in 0..3 {
            // The refusal of the first is reported in place of the second, which is tried again.
            assert_eq!(writer.send(&bytes(4 * 188), 188), 0);
        }
        let back = UdpSocket::bind(there).unwrap();
        assert_eq!(writer.send(&bytes(2 * 188), 188), 0);
        assert_eq!(back.recv(&mut [0; 500]).unwrap(), 188);
    }

    #[test]
    fn what_comes_one_by_one_is_read_together_and_an_empty_datagram_counts() {
        let (mut writer, to) = pair();
        let mut reader = DatagramReader::new(to.into()).unwrap();
        for len in [10, 0, 300] {
            writer.send(&bytes(len), 1316);
        }
        let mut lengths = Vec::new();
        let batch = reader.receive(|datagram, _| lengths.push(datagram.len())).unwrap();
        assert_eq!((batch, lengths), (Batch { datagrams: 3, more: false }, vec![10, 0, 300]));
        assert_eq!(reader.receive(|_, _| ()).unwrap(), Batch { datagrams: 0, more: false });
    }

    #[test]
    fn who_wants_no_times_is_told_of_none_and_has_all_datagrams() {
        let (mut writer, to) = pair();
        let mut reader = DatagramReader::untimed(to.into()).unwrap();
        let mut came = Vec::new();
        for len in [10, 300] {
            writer.send(&bytes(len), 1316);
            #[allow(clippy::disallowed_methods, reason = "a real socket takes real time")]
            std::thread::sleep(Duration::from_millis(20));
        }
        reader.receive(|datagram, age| came.push((datagram.len(), age))).unwrap();
        assert_eq!(came, [(10, Duration::ZERO), (300, Duration::ZERO)]);
    }

    #[test]
    fn what_is_read_late_is_known_to_have_waited() {
        let (mut writer, to) = pair();
        let mut reader = DatagramReader::new(to.into()).unwrap();
        let late = Duration::from_millis(20);
        let mut ages = Vec::new();
        // Linux begins to stamp datagrams a little after it was asked to; until then they count as just come.
        for _ in 0..50 {
            writer.send(&bytes(10), 1316);
            #[allow(clippy::disallowed_methods, reason = "a real socket takes real time")]
            std::thread::sleep(late);
            writer.send(&bytes(10), 1316);
            ages.clear();
            reader.receive(|_, age| ages.push(age)).unwrap();
            if ages[0] >= late {
                break;
            }
        }
        assert!(ages[0] >= late && ages[0] - ages[1] >= late, "{ages:?}");
    }
}
