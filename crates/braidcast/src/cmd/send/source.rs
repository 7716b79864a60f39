//! Sources of a stream: a file, stdin or UDP, cut into units.

use crate::args::values;
use crate::cmd::neighbour::{Figures, Neighbour};
use crate::cmd::udp::UdpInput;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::{Direction, Driver, InputId};
use braidcast_gateway::rtp;
use braidcast_media::{Format, Framing, Input, InputStats, Pacer, Unit};
use braidcast_session::Identity;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::throttle::Throttle;

/// What is read at once from a file or pipe.
const READ: usize = 64 * 1024;
/// The same of a pipe whose content goes as it comes: little, so that a stream that is held back comes evenly.
const READ_LIVE: usize = 8 * 1024;
/// How often datagrams that come one closely behind another are read, at most. It is nothing to a
/// latency of tenths of a second, and at 20 Mbit/s saves seven wake-ups of eight.
const READ_INTERVAL: Duration = Duration::from_millis(4);
/// Time that a recording is read ahead of its clock. So a frame is complete at the time of its
/// first byte, as from an encoder, instead of trickling in at the recording's rate. Memory: one
/// second of the recording.
const AHEAD: Duration = Duration::from_secs(1);
/// Longest UDP payload.
const DATAGRAM: usize = 65_536;
/// A byte stream that is no transport stream goes in messages of this size.
const PLAIN_MESSAGE: usize = 16 * 1024;

/// Bytes at its beginning by which a file is known.
const HEAD: u64 = 64 * 1024;

/// An open input.
pub(super) struct Source {
    name: String,
    /// Path, if it is a file.
    path: Option<PathBuf>,
    reader: Reader,
    /// Set while the driver waits for the input; files are read whenever there is room.
    token: Option<InputId>,
    paused: bool,
    /// Datagrams were read until there was none.
    drained: bool,
    play: Play,
    units: Input,
    /// A unit for which there was no room.
    stuck: Option<Unit>,
    buf: Vec<u8>,
    /// The reader has nothing more.
    read_all: bool,
    /// The last unit was handed out.
    ended: bool,
    last_read: Instant,
    /// Datagrams follow each other within [`READ_INTERVAL`] or little more.
    dense: bool,
}

enum Reader {
    File(File),
    /// Stdin if it is a pipe or a terminal.
    Pipe(File),
    Udp(UdpInput),
    Rtp(UdpInput, Box<rtp::Receiver>),
    Neighbour(Box<Neighbour>),
}

/// At which speed the input goes.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum Play {
    /// As fast as there is room.
    Freely,
    /// As it comes, but held back if it comes faster than its own clock runs.
    AsItComes(Throttle),
    /// At the speed of the recording's own clock.
    Recording(Recording),
}

/// A recorded stream, and what is due next.
#[derive(Default)]
struct Recording {
    /// Set at the start; before, nothing is due.
    pacer: Option<Pacer>,
    due: Option<Instant>,
    packets: Vec<u8>,
    /// What was read before the start.
    head: Vec<u8>,
    /// Whole units, in the order in which they began and were completed.
    ahead: BTreeMap<(Instant, u64), Unit>,
    /// How many there were.
    count: u64,
    /// Everything was read, and is in `ahead`.
    finished: bool,
}

impl Recording {
    fn add(&mut self, unit: Unit) {
        self.ahead.insert((unit.first_captured, self.count), unit);
        self.count += 1;
    }

    /// The next unit that has begun by `now`.
    fn take(&mut self, now: Instant) -> Option<Unit> {
        let first = self.ahead.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When there is something to do next.
    fn next(&self) -> Option<Instant> {
        let unit = self.ahead.first_key_value().map(|((at, _), _)| *at);
        [unit, self.due.map(|at| at - AHEAD / 2)].into_iter().flatten().min()
    }
}

impl Source {
    /// Opens `input`. `reliable`: bytes go as they are, as fast as there is room.
    pub(super) fn open(input: &values::Input, driver: &mut Driver, reliable: bool) -> Outcome<Self> {
        if reliable && matches!(input, values::Input::Neighbour(_)) {
            return Err(Failure::usage(
                format!("{input} is live: it cannot wait until everything is delivered"),
                "leave --reliable out",
            ));
        }
        let mut source = Self::of(input.to_string(), Reader::open(input, driver.now())?, driver, reliable)?;
        if matches!(source.reader, Reader::File(_)) {
            if let values::Input::File(path) = input {
                source.path = Some(path.clone());
            }
            if !reliable {
                source.look_at_file()?;
            }
        }
        Ok(source)
    }

    fn of(name: String, reader: Reader, driver: &mut Driver, reliable: bool) -> Outcome<Self> {
        let framing = reader.framing();
        Ok(Self {
            name,
            path: None,
            token: reader.register(driver)?,
            reader,
            paused: false,
            drained: false,
            play: if reliable { Play::Freely } else { Play::AsItComes(Throttle::new()) },
            units: Input::new(if reliable { Format::Plain } else { Format::Auto }, framing),
            stuck: None,
            buf: vec![0; READ.max(DATAGRAM)],
            read_all: false,
            ended: false,
            last_read: Instant::ZERO,
            dense: false,
        })
    }

    /// What a program of ours writes in real time into `pipe`.
    pub(super) fn live(name: String, pipe: File, driver: &mut Driver) -> Outcome<Self> {
        Self::of(name, Reader::Pipe(pipe), driver, false)
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A file is a recording if it begins as a transport stream; any other has no clock and goes freely.
    fn look_at_file(&mut self) -> Outcome {
        let framing = self.reader.framing();
        let len = self.read_stream()?;
        if len == 0 {
            return Err(Failure::new(
                format!("{} is empty", self.name),
                "give a file with something in it, or --reliable to send it as it is",
            ));
        }
        let mut probe = Input::new(Format::Auto, framing);
        probe.push(Instant::ZERO, &self.buf[..len]);
        probe.finish(Instant::ZERO);
        if probe.stats().format == Format::Ts {
            self.units = Input::new(Format::Ts, framing);
            let head = self.buf[..len].to_vec();
            self.play = Play::Recording(Recording { head, ..Recording::default() });
        } else {
            self.units = Input::new(Format::Plain, framing);
            self.units.push(Instant::ZERO, &self.buf[..len]);
            self.play = Play::Freely;
        }
        Ok(())
    }

    /// Returns the path, if it is a file.
    pub(super) fn file(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes of a file.
    pub(super) fn size(&self) -> Option<u64> {
        Some(self.path.as_ref()?.metadata().ok()?.len())
    }

    /// By what both ends find a file again.
    pub(super) fn identity(&self) -> Option<Identity> {
        let path = self.path.as_ref()?;
        let mut head = Vec::new();
        File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
        let name = path.file_name()?.to_string_lossy();
        Some(Identity::of_file(&name, self.size()?, &head))
    }

    /// Goes on behind the first `offset` bytes of a file, in units that count from 0.
    pub(super) fn seek(&mut self, offset: u64) -> Outcome {
        if let Reader::File(file) = &mut self.reader {
            file.seek(SeekFrom::Start(offset)).map_err(|e| broken(&self.name, &e))?;
        }
        self.units = Input::new(Format::Plain, Framing::Stream(PLAIN_MESSAGE));
        self.stuck = None;
        self.play = Play::Freely;
        (self.read_all, self.ended) = (false, false);
        Ok(())
    }

    /// Returns `true` if the input has no speed of its own, so that only a reliable session can carry it whole.
    pub(super) fn goes_freely(&self) -> bool {
        matches!(self.play, Play::Freely)
    }

    /// Returns `true` if it waits for [`start`](Self::start).
    pub(super) fn is_recording(&self) -> bool {
        matches!(self.play, Play::Recording(_))
    }

    /// The receiver is there: a recording begins.
    pub(super) fn start(&mut self, now: Instant) {
        if let Play::Recording(recording) = &mut self.play
            && recording.pacer.is_none()
        {
            let mut pacer = Pacer::new(now);
            pacer.push(&std::mem::take(&mut recording.head));
            recording.pacer = Some(pacer);
        }
    }

    /// Hands on the units that are there or due at `now`, until `hand_on` returns one for lack of
    /// room.
    pub(super) fn pump(&mut self, now: Instant, mut hand_on: impl FnMut(Unit) -> Option<Unit>) -> Outcome {
        loop {
            while let Some(unit) = self.stuck.take().or_else(|| self.next_unit(now)) {
                if let Some(unit) = hand_on(unit) {
                    self.stuck = Some(unit);
                    return Ok(());
                }
            }
            if self.read_all && !matches!(self.play, Play::Recording(_)) {
                self.ended = true;
            }
            if self.ended || !self.read_more(now)? {
                return Ok(());
            }
        }
    }

    fn next_unit(&mut self, now: Instant) -> Option<Unit> {
        let Play::Recording(recording) = &mut self.play else { return self.units.poll() };
        while let Some(unit) = self.units.poll() {
            recording.add(unit);
        }
        recording.take(now)
    }

    /// Reads what is there or due. Returns `true` if there may be more.
    fn read_more(&mut self, now: Instant) -> Outcome<bool> {
        if self.throttled_until().is_some_and(|at| at > now) {
            return Ok(false);
        }
        match (&self.reader, &self.play) {
            (_, Play::Recording(_)) => self.play_on(now),
            (Reader::File(_), _) => self.read_bytes(now),
            // Read when the driver says that it can be, so that reading never waits.
            (Reader::Pipe(_), _) => Ok(false),
            (Reader::Udp(_), _) => self.read_datagram(now),
            (Reader::Rtp(..), _) => self.read_rtp(now),
            (Reader::Neighbour(_), _) => Ok(self.read_neighbour(now)),
        }
    }

    /// Takes recorded packets that are soon due. Returns `true` if there were any.
    fn play_on(&mut self, now: Instant) -> Outcome<bool> {
        let Play::Recording(Recording { pacer: Some(pacer), due, packets, ahead, finished, .. }) = &mut self.play
        else {
            return Ok(false);
        };
        *due = due.or_else(|| pacer.poll(packets));
        match *due {
            Some(at) if at > now + AHEAD => Ok(false),
            Some(at) => {
                self.units.push(at, packets);
                *due = None;
                Ok(true)
            }
            None if self.read_all && !*finished => {
                self.units.finish(now);
                *finished = true;
                Ok(true)
            }
            None if self.read_all && !ahead.is_empty() => Ok(false),
            None if self.read_all => {
                self.play = Play::Freely;
                Ok(true)
            }
            None => {
                let len = self.read_stream()?;
                if let Play::Recording(Recording { pacer: Some(pacer), .. }) = &mut self.play {
                    if len == 0 { pacer.finish() } else { pacer.push(&self.buf[..len]) }
                }
                Ok(true)
            }
        }
    }

    /// Reads a piece of a byte stream, or its end; there may always be more.
    fn read_bytes(&mut self, now: Instant) -> Outcome<bool> {
        let len = self.read_stream()?;
        self.last_read = now;
        if len == 0 {
            self.units.finish(now);
        } else {
            self.take(now, len);
        }
        Ok(true)
    }

    fn read_datagram(&mut self, now: Instant) -> Outcome<bool> {
        let Reader::Udp(socket) = &self.reader else { return Ok(false) };
        let len = socket.receive(&mut self.buf).map_err(|e| broken(&self.name, &e))?;
        self.drained = len.is_none();
        if len.is_some() && now > self.last_read {
            self.dense = now.since(self.last_read) < 2 * READ_INTERVAL;
            self.last_read = now;
        }
        // Without data too: units that wait for more must not wait for ever.
        self.take(now, len.unwrap_or(0));
        Ok(len.is_some())
    }

    /// Reads a datagram, and takes what is in order by now. Returns `true` if there may be more.
    fn read_rtp(&mut self, now: Instant) -> Outcome<bool> {
        let Reader::Rtp(socket, rtp) = &mut self.reader else { return Ok(false) };
        let len = socket.receive(&mut self.buf).map_err(|e| broken(&self.name, &e))?;
        if let Some(len) = len {
            rtp.take(now, &self.buf[..len]);
        }
        self.drained = len.is_none();
        let (mut payload, mut any) = (Vec::new(), false);
        while let Some(came) = rtp.deliver(now, &mut payload) {
            any = true;
            self.units.push(came, &payload);
            self.dense = now.since(self.last_read) < 2 * READ_INTERVAL;
            self.last_read = now;
        }
        if len.is_none() {
            self.units.push(now, &[]);
        }
        Ok(len.is_some() || any)
    }

    /// Takes what is due from a neighbour, as of when it was due. Returns `true` if there may be more.
    fn read_neighbour(&mut self, now: Instant) -> bool {
        let Reader::Neighbour(neighbour) = &mut self.reader else { return false };
        let more = neighbour.tend(now);
        let mut any = false;
        while let Some(due) = neighbour.deliver(now, &mut self.buf) {
            self.units.push(due, &self.buf);
            any = true;
        }
        self.drained = !more;
        if any {
            self.dense = now.since(self.last_read) < 2 * READ_INTERVAL;
            self.last_read = now;
        } else {
            // Units that wait for more must not wait for ever.
            self.units.push(now, &[]);
        }
        more || any
    }

    /// Says what happened to a neighbour.
    pub(super) fn tell(&mut self, live: &Live) {
        if let Reader::Neighbour(neighbour) = &mut self.reader {
            neighbour.tell(live);
        }
    }

    /// Figures of a neighbour, if the input is one.
    pub(super) fn neighbour(&self) -> Option<Figures> {
        if let Reader::Neighbour(neighbour) = &self.reader { Some(neighbour.figures()) } else { None }
    }

    fn take(&mut self, now: Instant, len: usize) {
        self.units.push(now, &self.buf[..len]);
        if let Play::AsItComes(throttle) = &mut self.play
            && matches!(self.reader, Reader::Pipe(_))
            && self.units.stats().format == Format::Ts
        {
            throttle.see(now, &self.buf[..len]);
        }
    }

    /// Reads into the buffer and notes the end.
    fn read_stream(&mut self) -> Outcome<usize> {
        let live = matches!((&self.reader, &self.play), (Reader::Pipe(_), Play::AsItComes(_)));
        let (Reader::File(file) | Reader::Pipe(file)) = &mut self.reader else { return Ok(0) };
        loop {
            match file.read(&mut self.buf[..if live { READ_LIVE } else { READ }]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(broken(&self.name, &e)),
                Ok(len) => {
                    self.read_all |= len == 0;
                    return Ok(len);
                }
            }
        }
    }

    /// The driver says that `id` can be read.
    pub(super) fn on_ready(&mut self, now: Instant, id: InputId) -> Outcome {
        if self.token == Some(id) && !self.read_all && matches!(self.reader, Reader::Pipe(_)) {
            self.read_bytes(now)?;
        }
        Ok(())
    }

    /// Waits for the input, or not, as there is room and time.
    pub(super) fn watch(&mut self, now: Instant, driver: &mut Driver) -> Outcome {
        let held_back = self.throttled_until().is_some_and(|at| at > now);
        let wanted = self.stuck.is_none() && !held_back && !self.read_all;
        if let Some(token) = self.token
            && self.paused == wanted
        {
            let done = if wanted { driver.resume(token) } else { driver.pause(token) };
            done.map_err(|e| broken(&self.name, &e))?;
            self.paused = !wanted;
        }
        if std::mem::take(&mut self.drained)
            && let Some(token) = self.token
        {
            let until = self.last_read + READ_INTERVAL;
            if self.dense && until > now {
                driver.rest(token, until).map_err(|e| broken(&self.name, &e))?;
            } else {
                driver.drained(token);
            }
        }
        Ok(())
    }

    fn throttled_until(&self) -> Option<Instant> {
        if let Play::AsItComes(throttle) = &self.play { throttle.hold_until() } else { None }
    }

    /// When to [`pump`](Self::pump) again without being told by the driver.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        match &self.reader {
            Reader::Neighbour(neighbour) => return neighbour.next().filter(|_| !self.ended),
            Reader::Rtp(_, rtp) => return rtp.timeout().filter(|_| !self.ended),
            _ => {}
        }
        match &self.play {
            _ if self.stuck.is_some() || self.ended => None,
            Play::Recording(recording) => recording.next(),
            Play::AsItComes(_) => self.throttled_until().filter(|at| *at > now),
            Play::Freely => None,
        }
    }

    /// Ends the input early: what was read, and is due, completes its units.
    pub(super) fn stop(&mut self, now: Instant, mut hand_on: impl FnMut(Unit) -> Option<Unit>) {
        self.units.finish(now);
        while let Some(unit) = self.stuck.take().or_else(|| self.next_unit(now)) {
            let _no_room = hand_on(unit);
        }
        self.play = Play::Freely;
        self.read_all = true;
        self.ended = true;
    }

    /// Returns `true` if every unit was handed on.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// When a live input was read last.
    pub(super) fn last_read(&self) -> Instant {
        self.last_read
    }

    /// What the input consisted of.
    pub(super) fn stats(&self) -> InputStats {
        self.units.stats()
    }
}

impl Reader {
    fn open(input: &values::Input, now: Instant) -> Outcome<Self> {
        match input {
            values::Input::File(path) => {
                let fail = |e: io::Error| {
                    Failure::new(format!("cannot open {}: {e}", path.display()), "check the path and its permissions")
                };
                let file = File::open(path).map_err(fail)?;
                let kind = file.metadata().map_err(fail)?.file_type();
                if kind.is_dir() {
                    return Err(Failure::new(format!("{} is a folder", path.display()), "give a file in it"));
                }
                Ok(if kind.is_file() { Self::File(file) } else { Self::Pipe(file) })
            }
            values::Input::Stdin => {
                let fail = |e: io::Error| {
                    Failure::new(
                        format!("cannot read stdin: {e}"),
                        "give it something to read: PROGRAM | braidcast send - …",
                    )
                };
                // Its own handle: std's has a buffer that the driver cannot see into.
                let file = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(fail)?);
                let is_file = file.metadata().map_err(fail)?.file_type().is_file();
                Ok(if is_file { Self::File(file) } else { Self::Pipe(file) })
            }
            values::Input::Udp(address) if address.rtp => {
                UdpInput::open(address).map(|socket| Self::Rtp(socket, Box::default()))
            }
            values::Input::Udp(address) => UdpInput::open(address).map(Self::Udp),
            values::Input::Neighbour(neighbour) => {
                Neighbour::open(neighbour, braidcast_gateway::srt::Direction::Receive, now)
                    .map(Box::new)
                    .map(Self::Neighbour)
            }
        }
    }

    const fn framing(&self) -> Framing {
        match self {
            Self::Udp(_) | Self::Rtp(..) | Self::Neighbour(_) => Framing::Datagrams,
            Self::File(_) | Self::Pipe(_) => Framing::Stream(PLAIN_MESSAGE),
        }
    }

    fn register(&self, driver: &mut Driver) -> Outcome<Option<InputId>> {
        let fd = match self {
            Self::File(_) => return Ok(None),
            Self::Pipe(file) => file.as_raw_fd(),
            Self::Udp(socket) | Self::Rtp(socket, _) => socket.as_raw_fd(),
            Self::Neighbour(neighbour) => neighbour.as_raw_fd(),
        };
        driver.register(fd, Direction::Read).map(Some).map_err(|e| broken("the input", &e))
    }
}

fn broken(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("reading {name} failed: {error}"), "check the device or the program that it comes from")
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_media::Kind;

    fn unit(kind: Kind, began: u64, ended: u64) -> Unit {
        let (first_captured, last_captured) = (Instant::from_millis(began), Instant::from_millis(ended));
        let (pid, runs, bytes) = (256, Vec::new(), Vec::new());
        let continues = false;
        Unit { kind, reference: true, continues, pid, runs, bytes, first_captured, last_captured, pts: None, dts: None }
    }

    #[test]
    fn a_recorded_frame_goes_when_it_begins_and_audio_within_it_holds_it_up_no_longer() {
        let mut recording = Recording::default();
        // In the order in which they are completed.
        for (kind, began, ended) in [(Kind::Audio, 30, 30), (Kind::I, 0, 70), (Kind::P, 80, 90)] {
            recording.add(unit(kind, began, ended));
        }
        let mut at = |ms| std::iter::from_fn(|| recording.take(Instant::from_millis(ms))).map(|it| it.kind).collect();
        let gone: [Vec<Kind>; 4] = [0, 29, 30, 80].map(&mut at);
        assert_eq!(gone, [vec![Kind::I], vec![], vec![Kind::Audio], vec![Kind::P]]);
        assert_eq!(recording.next(), None);
    }
}
