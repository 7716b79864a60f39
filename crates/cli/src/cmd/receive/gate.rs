//! Places at which neighbours send to `receive`: SRT, SRTLA, RIST, RTP and RTMP behind one interface.

use super::bursts::Bursts;
use crate::args::entrances;
use crate::args::neighbour::Whereabouts;
use crate::cmd::neighbour::{Event, Keys, Neighbour, Role, Seen};
use crate::cmd::rtmp::{Happened, RtmpInput};
use crate::cmd::rtp::{Network, RtpInput};
use crate::failure::{Outcome, broken};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::{Batch, Direction, Driver, InputId};
use braidcast_gateway::srt::{ConnectionId, Ended, StreamId};
use braidcast_session::slice_of;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Datagrams that are read, or a few more, before what is due is looked at again.
const BURST: usize = 256;
/// What an error counts as.
const NOTHING: Batch = Batch { datagrams: 0, more: false };
/// Datagrams of one reading beyond which the next one comes after half a slice: the kernel holds some 180 of SRT's in
/// the 212,992 bytes that Linux grants a socket that asks for more, as each counts with its buffer of 2,304 bytes.
const FULL: usize = 64;
/// RTP says nothing of its end: after such a silence its sender is gone, as with SRT.
const SILENT: Duration = Duration::from_secs(5);
/// The latency of which a slice is a part where the URL names none: SRT's, the shortest that there is.
const LATENCY: Duration = Duration::from_millis(120);
/// More than any latency of SRT: all that came is due by then.
const EVER: Duration = Duration::from_secs(100);

/// What happened at a gate.
pub(super) enum Passage {
    /// Somebody sends; its stream identifier.
    Came(ConnectionId, String),
    /// It is gone; `true` if it said so.
    Went(ConnectionId, bool),
}

enum Wire {
    Neighbour(Box<Neighbour>),
    Rtp(Box<Rtp>),
    Rtmp(Box<Rtmp>),
}

/// Who publishes by RTMP now.
struct Rtmp {
    input: RtmpInput,
    count: u32,
    remote: Option<SocketAddr>,
}

/// A stream without connections: there is one while something comes.
struct Rtp {
    input: RtpInput,
    count: u32,
    present: Option<ConnectionId>,
    told: bool,
    packets: u64,
    heard: Instant,
}

/// Somebody who sends.
pub(super) struct Caller {
    /// What its stream is called; `None` if it may not be called so.
    pub(super) name: Option<String>,
    pub(super) place: super::border::Place,
    /// When something of it came out last.
    pub(super) heard: Instant,
}

/// One gate, and who came through it.
pub(super) struct Gate {
    pub(super) title: String,
    wire: Wire,
    pub(super) input: InputId,
    /// What all its streams are called.
    pub(super) name: Option<String>,
    /// What is due within this time comes out together, and what comes closely is read as often: 0 if nothing does.
    slice: Duration,
    /// The driver said that there is something to read, and not all of it is read.
    ready: bool,
    bursts: Bursts,
    /// It is not read before.
    rests: Instant,
    pub(super) callers: BTreeMap<ConnectionId, Caller>,
}

impl Gate {
    /// Opens it, for `most` callers at once; `names`: only these streams are taken, whose names are callers' stream
    /// identifiers. `slice`: the longest.
    pub(super) fn open(
        gate: &entrances::Gate,
        most: usize,
        names: Option<Vec<String>>,
        slice: Duration,
        driver: &mut Driver,
    ) -> Outcome<Self> {
        let name = gate.name().map(str::to_owned);
        let mut of_latency = Duration::ZERO;
        let (wire, fd) = match gate {
            entrances::Gate::Neighbour(neighbour) => {
                // Who is called has said nothing of itself, and what has a name needs no other.
                let asks = name.is_none() && gate.says_names() && matches!(neighbour.at, Whereabouts::Listen(..));
                let role = Role::Sources(if asks { most } else { 1 }, names.filter(|_| asks));
                of_latency = slice_of(slice, neighbour.latency.unwrap_or(LATENCY));
                let neighbour = Neighbour::open(neighbour, role, driver.now())?;
                let fd = neighbour.as_raw_fd();
                (Wire::Neighbour(Box::new(neighbour)), fd)
            }
            entrances::Gate::Rtp(media) => {
                let input = RtpInput::open(media)?;
                let fd = input.as_raw_fd();
                (Wire::Rtp(Box::new(Rtp::new(input))), fd)
            }
            entrances::Gate::Rtmp(rtmp) => {
                let input = RtmpInput::open(rtmp)?;
                let fd = input.as_raw_fd();
                (Wire::Rtmp(Box::new(Rtmp { input, count: 0, remote: None })), fd)
            }
        };
        let input = driver.register(fd, Direction::Read).map_err(|e| broken(&e))?;
        Ok(Self {
            title: gate.to_string(),
            wire,
            input,
            name,
            slice: of_latency,
            ready: true,
            bursts: Bursts::default(),
            rests: Instant::ZERO,
            callers: BTreeMap::new(),
        })
    }

    /// The driver says that `id` can be read.
    pub(super) fn on_ready(&mut self, id: InputId) {
        self.ready |= self.input == id;
    }

    /// Reads what is there and sends what is to be sent, unless it rests; `driver` then knows when to look again.
    pub(super) fn tend(&mut self, now: Instant, driver: &mut Driver) -> Outcome {
        if now < self.rests {
            return Ok(());
        }
        let more = match &mut self.wire {
            Wire::Rtp(rtp) => rtp.tend(now),
            Wire::Rtmp(rtmp) => rtmp.input.tend(now),
            Wire::Neighbour(neighbour) => {
                let may_read = std::mem::take(&mut self.ready) || neighbour.is_of_two_sockets();
                if !may_read {
                    neighbour.tend_timers(now);
                    return Ok(());
                }
                let batch = neighbour.tend(now);
                self.ready = batch.more;
                if self.bursts.came(now, batch.datagrams, self.slice) && !batch.more {
                    let halved = batch.datagrams > FULL;
                    self.rests = now + if halved { self.slice / 2 } else { self.slice };
                    return driver.rest(self.input, self.rests).map_err(|e| broken(&e));
                }
                batch.more
            }
        };
        if !more {
            driver.drained(self.input);
        }
        Ok(())
    }

    /// The next thing that happened, which is told.
    pub(super) fn poll(&mut self, now: Instant, live: &mut Live) -> Option<Passage> {
        let neighbour = match &mut self.wire {
            Wire::Neighbour(neighbour) => neighbour,
            Wire::Rtp(rtp) => return rtp.poll(now, live),
            Wire::Rtmp(rtmp) => return rtmp.poll(now, &self.title, live),
        };
        while let Some(event) = neighbour.poll_event() {
            match neighbour.refused(&event) {
                Some(words) => live.warn_rarely(now, words),
                None => neighbour.tell_of(&event, live),
            }
            match event {
                Event::Connected(id) => {
                    let stream_id = neighbour.look(id).map(|seen| seen.report.stream_id).unwrap_or_default();
                    return Some(Passage::Came(id, stream_id));
                }
                Event::Ended(id, why) => return Some(Passage::Went(id, why == Ended::ByPeer)),
                _ => {}
            }
        }
        None
    }

    /// The next payload that is due in this slice, into `buf`; returns whose it is.
    pub(super) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<ConnectionId> {
        match &mut self.wire {
            Wire::Neighbour(neighbour) => {
                neighbour.deliver(now + self.slice, buf).map(|delivered| delivered.connection)
            }
            Wire::Rtp(rtp) => rtp.input.deliver(now, buf).and(rtp.present),
            Wire::Rtmp(rtmp) => {
                let (_, packets) = rtmp.input.deliver()?;
                *buf = packets;
                Some(ConnectionId(rtmp.count))
            }
        }
    }

    /// The next payload of all that came, due or not: for the end.
    pub(super) fn deliver_rest(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<ConnectionId> {
        self.deliver(now + EVER, buf)
    }

    /// The passphrase of each stream, if each has its own.
    pub(super) const fn keys(&self) -> Option<&Keys> {
        if let Wire::Neighbour(neighbour) = &self.wire { neighbour.keys() } else { None }
    }

    /// Takes other passphrases; who came by one that is no longer its stream's is sent away.
    pub(super) fn set_keys(&mut self, now: Instant, keys: Keys) {
        if let Wire::Neighbour(neighbour) = &mut self.wire {
            neighbour.set_keys(now, keys);
        }
    }

    /// When to [`tend`](Self::tend) it although nothing came.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.wire {
            // What is due while it rests came out before, or a slice late at most.
            Wire::Neighbour(neighbour) => neighbour.next().map(|at| at.max(self.rests)),
            Wire::Rtp(rtp) => rtp.input.timeout().into_iter().chain(rtp.present.map(|_| rtp.heard + SILENT)).min(),
            Wire::Rtmp(rtmp) => rtmp.input.next(),
        }
    }

    /// How a connection goes, while it lasts; nothing is known of RTP.
    pub(super) fn look(&self, id: ConnectionId) -> Option<Seen> {
        if let Wire::Neighbour(neighbour) = &self.wire { neighbour.look(id) } else { None }
    }

    /// What did not come, and whose address is known, where there is no more to [look](Self::look) at.
    pub(super) fn skipped(&self) -> (u64, Option<SocketAddr>) {
        match &self.wire {
            Wire::Rtp(rtp) => (rtp.input.counts().lost, None),
            Wire::Rtmp(rtmp) => (rtmp.input.unusable(), rtmp.remote),
            Wire::Neighbour(_) => (0, None),
        }
    }

    /// The networks that bring the same packets of RTP.
    pub(super) fn networks(&self) -> &[Network] {
        if let Wire::Rtp(rtp) = &self.wire { rtp.input.networks() } else { &[] }
    }

    /// The scheme's name.
    pub(super) fn protocol(&self) -> &'static str {
        match &self.wire {
            Wire::Neighbour(neighbour) => neighbour.protocol(),
            Wire::Rtp(_) => "rtp",
            Wire::Rtmp(_) => "rtmp",
        }
    }

    /// Sends somebody away; RTP has no way to say so.
    pub(super) fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        match &mut self.wire {
            Wire::Neighbour(neighbour) => neighbour.disconnect(now, id),
            Wire::Rtmp(rtmp) => rtmp.input.disconnect(),
            Wire::Rtp(_) => {}
        }
    }

    /// What a stream of this identifier is called: what the gate says, or the last part of the identifier.
    pub(super) fn name_of(&self, stream_id: &str) -> String {
        self.name.clone().unwrap_or_else(|| StreamId::parse(stream_id).name().unwrap_or_default().to_owned())
    }
}

impl Rtmp {
    fn poll(&mut self, now: Instant, title: &str, live: &mut Live) -> Option<Passage> {
        loop {
            match self.input.poll()? {
                Happened::Came(remote) => {
                    self.count += 1;
                    self.remote = Some(remote);
                    live.note(format!("{title}: {remote} publishes, not encrypted"));
                    return Some(Passage::Came(ConnectionId(self.count), String::new()));
                }
                Happened::Went(said_so) => {
                    let why = if said_so { "the encoder ended the stream" } else { "the encoder is gone" };
                    live.warn(format!("{title}: {why}; waiting for it"));
                    return Some(Passage::Went(ConnectionId(self.count), said_so));
                }
                Happened::CutOff(why) => live.warn_rarely(now, format!("{title}: cut off {why}")),
            }
        }
    }
}

impl Rtp {
    const fn new(input: RtpInput) -> Self {
        Self { input, count: 0, present: None, told: false, packets: 0, heard: Instant::ZERO }
    }

    fn tend(&mut self, now: Instant) -> bool {
        let (mut more, mut read) = (true, 0);
        while more && read < BURST {
            // An ICMP error of what others sent is none of ours.
            let batch = self.input.receive(now).unwrap_or(NOTHING);
            (more, read) = (batch.more, read + batch.datagrams);
        }
        let packets = self.input.counts().packets;
        if packets > self.packets {
            (self.packets, self.heard) = (packets, now);
            if self.present.is_none() {
                self.count += 1;
                (self.present, self.told) = (Some(ConnectionId(self.count)), false);
            }
        }
        more
    }

    fn poll(&mut self, now: Instant, live: &Live) -> Option<Passage> {
        self.input.tell(now, live);
        let id = self.present?;
        if !self.told {
            self.told = true;
            return Some(Passage::Came(id, String::new()));
        }
        if now.since(self.heard) >= SILENT {
            self.present = None;
            return Some(Passage::Went(id, false));
        }
        None
    }
}
