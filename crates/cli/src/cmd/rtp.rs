//! MPEG-TS in RTP that comes to one socket, or the same packets to two, over two networks (SMPTE ST 2022-7).

use super::udp::UdpInput;
use crate::args::media::UdpMedia;
use crate::failure::{Outcome, broken};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::Batch;
use braidcast_gateway::rtp;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Silence of one network, while the other one brings packets, that is told of.
const SILENT: Duration = Duration::from_secs(2);

/// One of the networks.
pub(crate) struct Network {
    socket: UdpInput,
    /// Where it comes in.
    pub(crate) name: String,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// When something came last; zero before.
    pub(crate) heard: Instant,
}

/// Which of two networks bring packets.
struct Heard {
    last: [Option<Instant>; 2],
    /// The first packet of either behind a silence of both: who was not heard since has not been silent for longer.
    began: Instant,
    is_silent: [bool; 2],
}

impl Heard {
    const NOTHING: Self = Self { last: [None; 2], began: Instant::ZERO, is_silent: [false; 2] };

    fn newest(&self) -> Option<Instant> {
        self.last.into_iter().flatten().max()
    }

    /// A packet came from one of them.
    fn packet(&mut self, now: Instant, which: usize) {
        if self.newest().is_none_or(|newest| now.since(newest) >= SILENT) {
            self.began = now;
        }
        self.last[which] = Some(now);
    }

    /// Those that are silent now and were not, and the other way round, while packets come.
    fn turned(&mut self, now: Instant) -> [Option<bool>; 2] {
        let mut turned = [None; 2];
        let Some(newest) = self.newest().filter(|newest| now.since(*newest) < SILENT) else { return turned };
        for ((last, is_silent), turned) in self.last.iter().zip(&mut self.is_silent).zip(&mut turned) {
            let comes = last.is_some_and(|last| newest.since(last) < SILENT);
            let since = last.map_or(self.began, |last| last.max(self.began));
            if if *is_silent { comes } else { newest.since(since) >= SILENT } {
                *is_silent = !*is_silent;
                *turned = Some(*is_silent);
            }
        }
        turned
    }
}

/// What comes by RTP.
pub(crate) struct RtpInput {
    networks: Vec<Network>,
    heard: Heard,
    /// What waits for two of them at once.
    both: Option<(Poll, Events)>,
    machine: rtp::Receiver,
}

impl RtpInput {
    /// Listens where `media` says.
    pub(crate) fn open(media: &UdpMedia) -> Outcome<Self> {
        let networks: Vec<Network> = [Some(media.clone()), media.second()]
            .into_iter()
            .flatten()
            .map(|it| Network::open(&it))
            .collect::<Outcome<_>>()?;
        let both = if networks.len() > 1 { Some(both(&networks).map_err(|e| broken(&e))?) } else { None };
        Ok(Self { networks, heard: Heard::NOTHING, both, machine: rtp::Receiver::new() })
    }

    /// Reads a batch of each network. Fails if none can be read.
    pub(crate) fn receive(&mut self, now: Instant) -> io::Result<Batch> {
        if let Some((poll, events)) = &mut self.both {
            // What it reports is found by reading; an interrupted call is made again.
            let _ = poll.poll(events, Some(Duration::ZERO));
        }
        let Self { networks, heard, machine, .. } = self;
        whole(networks.iter_mut().enumerate().map(|(n, Network { socket, packets, bytes, heard: last, .. })| {
            socket.receive(|datagram, _| {
                (*packets, *bytes, *last) = (*packets + 1, *bytes + datagram.len() as u64, now);
                heard.packet(now, n);
                machine.take(now, datagram);
            })
        }))
    }

    /// The next payload that is in order, into `buf`; returns when it came.
    pub(crate) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Instant> {
        self.machine.deliver(now, buf)
    }

    /// When to [`deliver`](Self::deliver) although nothing more came.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.machine.timeout()
    }

    /// What was counted.
    pub(crate) const fn counts(&self) -> rtp::Counts {
        self.machine.counts()
    }

    /// The networks, one or two.
    pub(crate) fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// Says that one of two networks brings nothing, which nobody would notice otherwise, and that it does again.
    pub(crate) fn tell(&mut self, now: Instant, live: &Live) {
        if self.networks.len() < 2 {
            return;
        }
        for (Network { name, .. }, turned) in self.networks.iter().zip(self.heard.turned(now)) {
            match turned {
                Some(true) => {
                    live.warn(format!("{name}: nothing comes here; the other network alone brings the stream"));
                }
                Some(false) => live.note(format!("{name}: packets come here again")),
                None => {}
            }
        }
    }
}

impl AsRawFd for RtpInput {
    fn as_raw_fd(&self) -> RawFd {
        self.both.as_ref().map_or_else(|| self.networks[0].socket.as_raw_fd(), |(poll, _)| poll.as_raw_fd())
    }
}

impl Network {
    fn open(media: &UdpMedia) -> Outcome<Self> {
        let name = media.local.as_ref().map_or_else(|| media.to_string(), |local| format!("{media} on {local}"));
        let socket = UdpInput::open(media)?;
        Ok(Self { socket, name, packets: 0, bytes: 0, heard: Instant::ZERO })
    }
}

/// All batches in one; what fails on one network is made up for by the other.
fn whole(batches: impl Iterator<Item = io::Result<Batch>>) -> io::Result<Batch> {
    let (mut all, mut some, mut failed) = (Batch { datagrams: 0, more: false }, false, Ok(()));
    for batch in batches {
        match batch {
            Ok(Batch { datagrams, more }) => {
                some = true;
                all = Batch { datagrams: all.datagrams + datagrams, more: all.more | more };
            }
            Err(e) => failed = Err(e),
        }
    }
    if some { Ok(all) } else { failed.map(|()| all) }
}

/// What can be read when one of both can be.
fn both(networks: &[Network]) -> io::Result<(Poll, Events)> {
    let poll = Poll::new()?;
    for (n, network) in networks.iter().enumerate() {
        poll.registry().register(&mut SourceFd(&network.socket.as_raw_fd()), Token(n), Interest::READABLE)?;
    }
    Ok((poll, Events::with_capacity(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_network_is_silent_two_seconds_after_the_stream_began_without_it() {
        let mut heard = Heard::NOTHING;
        // The program has run for a minute, and the second network is slower by 12 ms; later the stream pauses.
        for begins in [60_000, 90_000] {
            heard.packet(at(begins), 0);
            assert_eq!(heard.turned(at(begins)), [None, None]);
            heard.packet(at(begins + 12), 1);
            assert_eq!(heard.turned(at(begins + 12)), [None, None]);
        }
        // It goes, is told of once, stays away over another pause, and comes back.
        heard.packet(at(92_011), 0);
        assert_eq!(heard.turned(at(92_011)), [None, None]);
        heard.packet(at(92_012), 0);
        assert_eq!(heard.turned(at(92_012)), [None, Some(true)]);
        assert_eq!(heard.turned(at(95_000)), [None, None]);
        heard.packet(at(99_000), 0);
        assert_eq!(heard.turned(at(99_000)), [None, None]);
        heard.packet(at(99_001), 1);
        assert_eq!(heard.turned(at(99_001)), [None, Some(false)]);
    }

    #[test]
    fn a_network_that_never_brought_anything_is_told_of() {
        let mut heard = Heard::NOTHING;
        let told: Vec<_> = (0..3000)
            .map(|ms| {
                heard.packet(at(50_000 + ms), 1);
                heard.turned(at(50_000 + ms))
            })
            .collect();
        assert_eq!(told.iter().position(|it| *it == [Some(true), None]), Some(2000));
        assert_eq!(told.iter().filter(|it| **it != [None, None]).count(), 1);
    }

    #[test]
    fn an_error_of_one_network_hides_nothing_of_the_other() {
        let fails = || Err(io::Error::from(io::ErrorKind::NetworkDown));
        let comes = || Ok(Batch { datagrams: 3, more: true });
        for batches in [[fails(), comes()], [comes(), fails()]] {
            let batch = whole(batches.into_iter()).unwrap();
            assert_eq!((batch.datagrams, batch.more), (3, true));
        }
        assert_eq!(whole([comes(), comes()].into_iter()).unwrap().datagrams, 6);
        assert!(whole([fails(), fails()].into_iter()).is_err() && whole([fails()].into_iter()).is_err());
    }
}
