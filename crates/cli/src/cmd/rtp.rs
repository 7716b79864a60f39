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
    pub(crate) heard: Instant,
    is_silent: bool,
}

/// What comes by RTP.
pub(crate) struct RtpInput {
    networks: Vec<Network>,
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
        Ok(Self { networks, both, machine: rtp::Receiver::new() })
    }

    /// Reads a batch of each network.
    pub(crate) fn receive(&mut self, now: Instant) -> io::Result<Batch> {
        if let Some((poll, events)) = &mut self.both {
            // What it reports is found by reading; an interrupted call is made again.
            let _ = poll.poll(events, Some(Duration::ZERO));
        }
        let mut all = Batch { datagrams: 0, more: false };
        for Network { socket, packets, bytes, heard, .. } in &mut self.networks {
            let batch = socket.receive(|datagram, _| {
                (*packets, *bytes, *heard) = (*packets + 1, *bytes + datagram.len() as u64, now);
                self.machine.take(now, datagram);
            })?;
            all = Batch { datagrams: all.datagrams + batch.datagrams, more: all.more | batch.more };
        }
        Ok(all)
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
        let Some(newest) = self.networks.iter().map(|network| network.heard).max() else { return };
        if self.networks.len() < 2 || now.since(newest) >= SILENT {
            return;
        }
        for network in &mut self.networks {
            let silence = newest.since(network.heard);
            let Network { name, is_silent, .. } = network;
            if silence >= SILENT && !*is_silent {
                *is_silent = true;
                live.warn(format!("{name}: nothing comes here; the other network alone brings the stream"));
            } else if silence < SILENT && std::mem::take(is_silent) {
                live.note(format!("{name}: packets come here again"));
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
        Ok(Self { socket, name, packets: 0, bytes: 0, heard: Instant::ZERO, is_silent: false })
    }
}

/// What can be read when one of both can be.
fn both(networks: &[Network]) -> io::Result<(Poll, Events)> {
    let poll = Poll::new()?;
    for (n, network) in networks.iter().enumerate() {
        poll.registry().register(&mut SourceFd(&network.socket.as_raw_fd()), Token(n), Interest::READABLE)?;
    }
    Ok((poll, Events::with_capacity(2)))
}
