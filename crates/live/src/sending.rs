//! The thread of a sender: orders in, a session over all paths out.

use crate::port::{Port, Weight};
use crate::wire::Wire;
use crate::{AccessUnit, SenderEvent, Track};
use braidcast_core::{Instant, Machine};
use braidcast_driver::Wake;
use braidcast_media::ts::{Coding, Mux};
use braidcast_media::{Format, Framing, Input, Kind, Run, Unit};
use braidcast_session::{Event, Farewell, RateReport, Report, Sender};
use braidcast_socket::CloseReason;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Units of the program's clock, 90 kHz, after which a time is of another clock: ten seconds.
const JUMP: u64 = 900_000;
const PACKET: usize = braidcast_media::ts::PACKET;

/// What is asked of the session in its thread.
type Question = Box<dyn FnOnce(&Sending, Instant) + Send>;

/// What the thread is to do.
pub(crate) enum Order {
    /// Bytes of a transport stream, and when they were captured.
    Bytes(Instant, Vec<u8>),
    Track(Track),
    Unit(Instant, AccessUnit),
    Ask(Question),
    Finish,
    Abort,
}

impl Weight for Order {
    fn weight(&self) -> usize {
        match self {
            Self::Bytes(_, bytes) => bytes.len(),
            Self::Unit(_, unit) => unit.data.len(),
            _ => 0,
        }
    }
}

impl Weight for SenderEvent {
    fn is_kept(&self) -> bool {
        matches!(self, Self::Connected | Self::Ended { .. })
    }
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes(..) => "Bytes",
            Self::Track(_) => "Track",
            Self::Unit(..) => "Unit",
            Self::Ask(_) => "Ask",
            Self::Finish => "Finish",
            Self::Abort => "Abort",
        })
    }
}

/// What the thread has.
pub(crate) struct Sending {
    port: Arc<Port<Order, SenderEvent>>,
    wire: Wire,
    sender: Sender,
    /// Of a transport stream.
    input: Input,
    units: Units,
    finishing: bool,
    /// As it was at the end.
    last_report: Arc<Mutex<Report>>,
}

/// Makes units of access units.
#[derive(Default)]
struct Units {
    mux: Mux,
    tracks: Vec<(u16, Coding)>,
    /// The highest layer of each so far.
    highest: BTreeMap<u16, u8>,
    /// Decoding time of the unit before, of any track.
    last: Option<u64>,
    packets: u64,
    bytes: Vec<u8>,
}

impl Units {
    fn add(&mut self, track: Track) {
        self.tracks.push((track.pid, track.coding));
        self.mux.set_streams(&self.tracks);
    }

    /// The tables if they are due, and the unit.
    fn take(&mut self, at: Instant, mut unit: AccessUnit) -> impl Iterator<Item = Unit> {
        let (Track { pid, coding }, times, layer) = (unit.track, unit.times(), unit.layer);
        if self.last.is_some_and(|last| last.abs_diff(times.1) > JUMP) {
            self.mux.jump();
        }
        self.last = Some(times.1);
        let is_key = unit.key && coding.is_video();
        let mux = AccessUnit::mux(unit.delimited(), times, is_key, layer);
        self.bytes.clear();
        // What the mux would refuse the handle has refused.
        let tables = self.mux.push(at, pid, &mux, &mut self.bytes);
        let of_unit = self.bytes.split_off(tables.unwrap_or_default());
        let highest = self.highest.entry(pid).or_insert(1);
        *highest = layer.max(*highest);
        // Frames of the highest layer are needed by none, and others for a few that follow.
        let (kind, reference) = match (coding.is_video(), layer) {
            (false, _) => (Kind::Audio, true),
            (true, _) if is_key => (Kind::I, true),
            (true, 0) => (Kind::P, true),
            (true, layer) => (Kind::B, layer < *highest),
        };
        let table = (Kind::Tables, true, 0, self.bytes.clone(), None);
        let all = [table, (kind, reference, pid, of_unit, Some(times))];
        let mut units = Vec::with_capacity(all.len());
        for (kind, reference, pid, bytes, times) in all {
            let count = (bytes.len() / PACKET) as u32;
            if count == 0 {
                continue;
            }
            let run = Run { first: self.packets, count, null: false };
            self.packets += u64::from(count);
            units.push(Unit {
                kind,
                reference,
                continues: false,
                more: false,
                pid,
                runs: vec![run],
                bytes,
                first_captured: at,
                last_captured: at,
                pts: times.map(|(pts, _)| pts & MASK),
                dts: times.filter(|(pts, dts)| pts != dts).map(|(_, dts)| dts & MASK),
            });
        }
        units.into_iter()
    }
}

/// Times have 33 bits.
const MASK: u64 = (1 << 33) - 1;

impl Sending {
    pub(crate) fn new(
        port: Arc<Port<Order, SenderEvent>>,
        wire: Wire,
        sender: Sender,
        last_report: Arc<Mutex<Report>>,
    ) -> Self {
        let input = Input::new(Format::Ts, Framing::Datagrams);
        Self { port, wire, sender, input, units: Units::default(), finishing: false, last_report }
    }

    pub(crate) fn rate_report(&self, now: Instant) -> RateReport {
        // Only a reliable session has none.
        self.sender.rate_report(now).unwrap_or_default()
    }

    pub(crate) fn report(&self, now: Instant) -> Report {
        self.sender.report(now)
    }

    /// Runs until the session is over.
    pub(crate) fn run(mut self) {
        let end = self.work();
        // The last packets leave in one more turn.
        let now = self.wire.driver.now();
        _ = self.wire.driver.drive(&mut self.sender, Some(now));
        *self.last_report.lock().unwrap_or_else(PoisonError::into_inner) = self.sender.report(now);
        let (complete, reason) = end;
        self.port.set_complete(complete);
        self.port.report(SenderEvent::Ended { complete, reason });
    }

    fn work(&mut self) -> (bool, CloseReason) {
        loop {
            let now = self.wire.driver.now();
            for order in self.port.take_orders() {
                if self.obey(now, order) {
                    return (false, CloseReason::Aborted);
                }
            }
            self.feed(now);
            if let Some(end) = self.take_events() {
                return end;
            }
            let mut words = self.wire.tend(&mut self.sender, false);
            let until = Instant::first_of([self.input.poll_timeout(), self.wire.next()]);
            match self.wire.driver.drive(&mut self.sender, until) {
                Ok(Wake::Interfaces(_)) => words.extend(self.wire.tend(&mut self.sender, true)),
                Ok(_) => {}
                Err(error) => {
                    self.port.report(SenderEvent::Warning(format!("waiting for sockets failed: {error}")));
                    return (false, CloseReason::PathsFailed);
                }
            }
            self.warn(words);
        }
    }

    fn warn(&self, words: Vec<String>) {
        words.into_iter().for_each(|words| self.port.report(SenderEvent::Warning(words)));
    }

    /// Returns `true` if all ends at once.
    fn obey(&mut self, now: Instant, order: Order) -> bool {
        match order {
            Order::Bytes(at, bytes) => self.input.push(at, &bytes),
            Order::Track(track) => self.units.add(track),
            Order::Unit(at, unit) => {
                for unit in self.units.take(at, unit) {
                    // A live session gives nothing back.
                    _ = self.sender.push(now, unit);
                }
            }
            Order::Ask(question) => question(self, now),
            Order::Finish if self.finishing => {}
            Order::Finish => {
                self.finishing = true;
                self.input.finish(now);
                self.feed(now);
                self.sender.stop(now);
            }
            Order::Abort => {
                self.sender.abort(now, Farewell::SenderStopped);
                return true;
            }
        }
        false
    }

    /// Moves what the transport stream has made into the session.
    fn feed(&mut self, now: Instant) {
        if self.input.poll_timeout().is_some_and(|at| at <= now) {
            self.input.push(now, &[]);
        }
        while let Some(unit) = self.input.poll() {
            _ = self.sender.push(now, unit);
        }
    }

    /// How it ended, if it has.
    fn take_events(&mut self) -> Option<(bool, CloseReason)> {
        let mut end = None;
        while let Some(event) = self.sender.poll_event() {
            let said = match event {
                Event::Connected => SenderEvent::Connected,
                Event::Lost(reason) => {
                    self.wire.down(None);
                    SenderEvent::Lost { reason: reason.into() }
                }
                Event::InLine => SenderEvent::InLine,
                Event::PathUp(_, route) => {
                    let words = self.wire.up(&mut self.sender, route);
                    self.warn(words);
                    SenderEvent::PathUp { name: self.wire.name(route), remote: route.remote }
                }
                Event::PathDown(_, route) => {
                    self.wire.down(Some(route));
                    SenderEvent::PathDown { name: self.wire.name(route), remote: route.remote }
                }
                Event::Insecure(reason) => SenderEvent::Refused { reason: reason.into() },
                Event::Ended { complete, reason } => {
                    end = Some((complete, reason.into()));
                    continue;
                }
                _ => continue,
            };
            self.port.report(said);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_highest_layer_is_needed_by_none_and_keys_by_all() {
        let (mut units, video) = (Units::default(), Track { pid: 0x100, coding: Coding::H264 });
        let audio = Track { pid: 0x101, coding: Coding::Opus { channels: 1 } };
        units.add(video);
        units.add(audio);
        let mut taken = Vec::new();
        for (n, layer) in [0, 1, 0, 2, 1, 2].into_iter().enumerate() {
            let pts = Duration::from_millis(40 * n as u64);
            let unit = AccessUnit::new(video, pts, [0, 0, 1, 0x41, 0x9a]).with_key(n == 0).in_layer(layer);
            taken.extend(units.take(Instant::ZERO, unit));
        }
        taken.extend(units.take(Instant::ZERO, AccessUnit::new(audio, Duration::ZERO, [1])));
        let kinds: Vec<_> = taken.iter().map(|unit| (unit.kind, unit.reference)).collect();
        let (reference, none) = (true, false);
        let expected = [
            (Kind::Tables, reference),
            (Kind::I, reference),
            (Kind::B, none),
            (Kind::P, reference),
            (Kind::B, none),
            (Kind::B, reference),
            (Kind::B, none),
            (Kind::Audio, reference),
        ];
        assert_eq!(kinds, expected);
        let mut index = 0;
        for unit in &taken {
            assert_eq!((unit.first_index(), unit.bytes.len() % PACKET), (index, 0));
            index = unit.runs[0].end();
        }
    }
}
