//! `--pcap FILE`: every packet as it left and came, with a comment that says what it was for.
//!
//! Packets are written straight over IP, where Wireshark knows both protocols unasked; over UDP it
//! knows SCTP by one port, and DCCP not at all. The UDP ports are in the name of the interface, of
//! which each path has one.

use super::background::{About, Background, BackgroundFile, lock};
use super::plain::Plain;
use super::purpose::Purposes;
use crate::failure::{Failure, Outcome};
use braidcast_core::events::{EventSink, TraceEvent};
use braidcast_core::{Datagram, Ecn, Instant, SocketId, Transmit};
use braidcast_dccp::wire::{Checksum, write_checksum};
use braidcast_driver::Tap;
use braidcast_trace::{Captured, Direction, InterfaceId, PcapWriter, Ports, Protocol};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bytes that go to the thread at once.
const BATCH: usize = 64 * 1024;
/// Packets wait no longer than this for others to go along.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Paths that have an interface each; those beyond share one.
const MOST_INTERFACES: usize = 256;

/// A capture that is being written.
pub(crate) struct PcapFile {
    background: Background<Vec<u8>>,
    shared: Arc<Shared>,
}

struct Shared {
    file: Arc<BackgroundFile<Vec<u8>>>,
    protocol: Protocol,
    state: Mutex<State>,
}

struct State {
    writer: PcapWriter<Vec<u8>>,
    handed: Instant,
    interfaces: BTreeMap<(SocketAddr, SocketAddr), InterfaceId>,
    /// Sockets towards applications, whose datagrams are none of the protocol's.
    left_out: BTreeSet<SocketId>,
    purposes: Purposes,
    /// What encrypted packets hold, if that is to be written in their place.
    plain: Option<Plain>,
    /// The packet that came last: what it did is known when the next one passes.
    held: Option<Held>,
    /// A buffer.
    packet: Vec<u8>,
}

/// A packet that came.
struct Held {
    at: Instant,
    local: SocketAddr,
    remote: SocketAddr,
    ecn: Ecn,
    payload: Vec<u8>,
}

impl PcapFile {
    /// Makes the file anew, and begins it.
    /// `decrypted`: with what encrypted packets hold, for nobody but the user.
    pub(crate) fn create(path: &Path, protocol: Protocol, now: Instant, decrypted: bool) -> Outcome<Self> {
        let about = About { what: "capture", flag: "--pcap", private: decrypted, unit: "batches of 64 KiB" };
        let background = Background::create(path, about, |file, batch: Vec<u8>| file.write_all(&batch))?;
        let writer = PcapWriter::of(protocol, Vec::new(), Ports::Real);
        let writer = writer.map_err(|e| Failure::new(format!("cannot begin the capture: {e}"), "leave out --pcap"))?;
        let state = Mutex::new(State {
            writer,
            handed: now,
            interfaces: BTreeMap::new(),
            left_out: BTreeSet::new(),
            purposes: Purposes::default(),
            plain: decrypted.then(|| Plain::new(protocol)),
            held: None,
            packet: Vec::new(),
        });
        let shared = Arc::new(Shared { file: background.file(), protocol, state });
        Ok(Self { background, shared })
    }

    /// Returns the sink of the events from which it learns what packets are for.
    pub(crate) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.shared) as Arc<dyn EventSink>
    }

    /// What hears the packets.
    pub(crate) fn tap(&self) -> Box<dyn Tap> {
        Box::new(Ear(Arc::clone(&self.shared)))
    }

    /// What passes this socket is not captured.
    pub(crate) fn leave_out(&self, socket: SocketId) {
        lock(&self.shared.state).left_out.insert(socket);
    }

    /// What went wrong since the last call, in words.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.background.take_failure()
    }

    /// Writes what is still in memory, and ends the file.
    pub(crate) fn finish(&mut self) {
        let mut state = lock(&self.shared.state);
        state.write_held(self.shared.protocol);
        let last = core::mem::take(state.writer.get_mut());
        drop(state);
        self.background.finish(last);
    }
}

impl Drop for PcapFile {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The driver's half.
struct Ear(Arc<Shared>);

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("capture")
    }
}

impl Tap for Ear {
    fn sent(&mut self, now: Instant, local: SocketAddr, transmit: &Transmit, payload: &[u8]) {
        let Shared { file, protocol, state } = &*self.0;
        let mut state = lock(state);
        if !file.is_open() || state.left_out.contains(&transmit.route.socket) {
            return;
        }
        state.write_held(*protocol);
        let each = transmit.segment_size.filter(|&size| size > 0).unwrap_or(payload.len().max(1));
        for payload in payload.chunks(each) {
            let comment = state.purposes.of_sent(*protocol, payload);
            let plain = state.plain.as_mut().and_then(|plain| plain.of_sent(payload));
            let payload = plain.as_deref().unwrap_or(payload);
            state.write(
                *protocol,
                now,
                Direction::Out,
                (local, transmit.route.remote),
                transmit.ecn,
                payload,
                &comment,
            );
        }
        state.hand_over(file, now);
    }

    fn received(&mut self, now: Instant, local: SocketAddr, datagram: &Datagram<'_>) {
        let Shared { file, protocol, state } = &*self.0;
        let mut state = lock(state);
        if !file.is_open() || state.left_out.contains(&datagram.route.socket) {
            return;
        }
        state.write_held(*protocol);
        let (remote, ecn, payload) = (datagram.route.remote, datagram.ecn, datagram.payload.to_vec());
        state.held = Some(Held { at: now, local, remote, ecn, payload });
        state.hand_over(file, now);
    }
}

impl EventSink for Shared {
    fn tell(&self, _now: Instant, _connection: u32, event: &TraceEvent) {
        if self.file.is_open() {
            lock(&self.state).purposes.tell(event);
        }
    }

    fn wants_plain(&self) -> bool {
        lock(&self.state).plain.is_some()
    }

    fn tell_plain(&self, leaves: bool, parts: [&[u8]; 2]) {
        let State { plain, held, .. } = &mut *lock(&self.state);
        let Some(plain) = plain.as_mut().filter(|_| self.file.is_open()) else { return };
        if leaves {
            plain.leaves(parts);
        } else if let Some(held) = held {
            plain.came(parts, &mut held.payload);
        }
    }
}

impl State {
    fn write_held(&mut self, protocol: Protocol) {
        let comment = self.purposes.of_received();
        if let Some(it) = self.held.take() {
            self.write(protocol, it.at, Direction::In, (it.local, it.remote), it.ecn, &it.payload, &comment);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a packet has as many properties")]
    fn write(
        &mut self,
        protocol: Protocol,
        at: Instant,
        direction: Direction,
        (local, remote): (SocketAddr, SocketAddr),
        ecn: Ecn,
        payload: &[u8],
        comment: &str,
    ) {
        let key = if self.interfaces.len() < MOST_INTERFACES { (local, remote) } else { (local, local) };
        let interface = match self.interfaces.get(&key) {
            Some(&known) => known,
            None => {
                let name = format!("{} to {}", key.0, key.1);
                let Ok(new) = self.writer.interface(&name) else { return };
                self.interfaces.insert(key, new);
                new
            }
        };
        let here = SocketAddr::new(same_family(local.ip(), remote.ip()), 0);
        let there = SocketAddr::new(remote.ip(), 0);
        let (from, to) = if direction == Direction::Out { (here, there) } else { (there, here) };
        self.packet.clear();
        self.packet.extend_from_slice(payload);
        if protocol == Protocol::Dccp {
            write_checksum(&mut self.packet, Checksum::Ip(from.ip(), to.ip()));
        }
        let captured = Captured { at, interface, direction, from, to, ecn, payload: &self.packet, comment };
        // A buffer in memory takes everything that a socket gave or took.
        let _ = self.writer.packet(&captured);
    }

    fn hand_over(&mut self, file: &BackgroundFile<Vec<u8>>, now: Instant) {
        if self.writer.get_mut().len() >= BATCH || now.since(self.handed) >= LONGEST_WAIT {
            self.handed = now;
            file.hand_over(core::mem::take(self.writer.get_mut()), 1);
        }
    }
}

/// The address of a socket that is bound to none in particular, in the family of the other end.
fn same_family(local: IpAddr, remote: IpAddr) -> IpAddr {
    match (local.is_unspecified(), remote) {
        (true, IpAddr::V4(_)) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        (true, IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        (false, _) => local.to_canonical(),
    }
}
