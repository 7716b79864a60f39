//! Sources of a stream: a file, stdin or UDP, cut into units.

use crate::args::values;
use crate::cmd::neighbour::Figures;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::{Driver, InputId};
use braidcast_media::ts::Codec;
use braidcast_media::{Format, Framing, Input, InputStats, Pacer, Timing, Unit};
use braidcast_session::{Identity, slice_of};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::reader::{PLAIN_MESSAGE, Reader, broken};
use super::recording::{AHEAD, Recording};
use super::throttle::Throttle;

mod reading;

use reading::READ;

/// Part of the latency after which what is there of a frame that is long in coming goes.
const PATIENCE: u32 = 4;
/// At most, and at least.
const MOST_PATIENCE: Duration = Duration::from_millis(100);
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

/// Interval at which a neighbour is told what the paths carry: who follows it looks some ten times a second.
const TELL: Duration = Duration::from_millis(100);

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
    /// The driver said that there is something to read, and not all of it is read.
    ready: bool,
    /// All that was there is read.
    drained: bool,
    play: Play,
    units: Input,
    /// A unit for which there was no room.
    stuck: Option<Unit>,
    buf: Vec<u8>,
    /// The reader has nothing more.
    read_all: bool,
    /// The units know.
    finished: bool,
    /// The last unit was handed out.
    ended: bool,
    last_read: Instant,
    /// When a neighbour was last told a rate.
    told_at: Instant,
    /// When the last datagram came, which may be before it was read.
    last_came: Instant,
    /// How often what comes closely one behind another is read, at most.
    slice: Duration,
    /// More than one piece comes in a slice.
    dense: bool,
    /// Bytes that were read since it last rested.
    run: usize,
}

/// At which speed the input goes.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum Play {
    /// As fast as there is room.
    Freely,
    /// As it comes; a transport stream in a pipe as its own clock says.
    AsItComes(Option<Throttle>),
    /// At the speed of the recording's own clock.
    Recording(Recording),
}

impl Source {
    /// Opens `input`. `reliable`: bytes go as they are, as fast as there is room.
    /// What comes closely one behind another is read each `slice`, or more often as `latency` asks.
    pub(super) fn open(
        input: &values::Input,
        driver: &mut Driver,
        reliable: bool,
        latency: Duration,
        slice: Duration,
    ) -> Outcome<Self> {
        if reliable && matches!(input, values::Input::Neighbour(_)) {
            return Err(Failure::usage(
                format!("{input} is live: it cannot wait until everything is delivered"),
                "leave --reliable out",
            ));
        }
        let mut source = Self::of(input.to_string(), Reader::open(input, driver.now())?, driver, reliable)?;
        source.set_latency(latency, slice);
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
            ready: false,
            drained: false,
            play: if reliable { Play::Freely } else { Play::AsItComes(None) },
            units: Input::new(if reliable { Format::Plain } else { Format::Auto }, framing),
            stuck: None,
            buf: vec![0; READ],
            read_all: false,
            finished: false,
            ended: false,
            last_read: Instant::ZERO,
            told_at: Instant::ZERO,
            last_came: Instant::ZERO,
            slice: Duration::ZERO,
            dense: false,
            run: 0,
        })
    }

    /// What a program of ours writes in real time into `pipe`.
    pub(super) fn live(
        name: String,
        pipe: File,
        driver: &mut Driver,
        latency: Duration,
        slice: Duration,
    ) -> Outcome<Self> {
        let mut source = Self::of(name, Reader::pipe(pipe), driver, false)?;
        source.set_latency(latency, slice);
        Ok(source)
    }

    /// A live frame that is longer in coming than a part of the latency goes in parts. Recorded ones are read ahead.
    fn set_latency(&mut self, latency: Duration, slice: Duration) {
        // What goes as fast as there is room comes as fast as it can.
        self.slice = if self.goes_freely() { Duration::ZERO } else { slice_of(slice, latency) };
        if let Reader::Neighbour(neighbour) = &mut self.reader {
            neighbour.goes_on_for(latency);
        }
        self.units.set_patience((latency / PATIENCE).clamp(LEAST_PATIENCE, MOST_PATIENCE));
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
        let found = probe.stats();
        if found.format == Format::Ts {
            self.units = Input::like(&found, framing);
            let head = self.buf[..len].to_vec();
            self.play = Play::Recording(Recording { head, packet_bytes: found.packet_bytes, ..Recording::default() });
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
        (self.read_all, self.finished, self.ended) = (false, false, false);
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
            let mut pacer = Pacer::of_size(now, recording.packet_bytes);
            pacer.push(&std::mem::take(&mut recording.head));
            recording.pacer = Some(pacer);
        }
    }

    /// Hands on the units that are there or due at `now`, until `hand_on` returns one for lack of
    /// room.
    pub(super) fn pump(&mut self, now: Instant, mut hand_on: impl FnMut(Unit) -> Option<Unit>) -> Outcome {
        self.release(now);
        loop {
            while let Some(unit) = self.stuck.take().or_else(|| self.next_unit(now)) {
                if let Some(unit) = hand_on(unit) {
                    self.stuck = Some(unit);
                    return Ok(());
                }
            }
            if self.read_all && !matches!(self.play, Play::Recording(_)) && self.waits().is_none() {
                if !self.finished {
                    self.finished = true;
                    self.units.finish(now);
                    continue;
                }
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
        if self.throttled_until(now).is_some_and(|at| at > now) {
            return Ok(false);
        }
        match (&self.reader, &self.play) {
            (_, Play::Recording(_)) => self.play_on(now),
            (Reader::File(_), _) => self.read_bytes(now),
            (Reader::Pipe(_), _) => self.read_pipe(now),
            // Read when the driver says that it can be, so that reading never waits.
            (Reader::Slow(_), _) => Ok(false),
            (Reader::Udp(_), _) => self.read_datagrams(now),
            (Reader::Rtp(_), _) => self.read_rtp(now),
            (Reader::Neighbour(_), _) => Ok(self.read_neighbour(now)),
        }
    }

    /// Takes recorded packets that are soon due. Returns `true` if there were any.
    fn play_on(&mut self, now: Instant) -> Outcome<bool> {
        let Play::Recording(Recording { pacer: Some(pacer), due, packets, ahead, finished, timing, .. }) =
            &mut self.play
        else {
            return Ok(false);
        };
        *due = due.or_else(|| pacer.poll(packets));
        *timing = pacer.timing();
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

    /// Says what happened to a neighbour.
    pub(super) fn tell(&mut self, now: Instant, live: &Live) {
        match &mut self.reader {
            Reader::Neighbour(neighbour) => neighbour.tell(live),
            Reader::Rtp(rtp) => rtp.tell(now, live),
            _ => {}
        }
    }

    /// Has a neighbour hear at `now` how much the paths carry, bit/s, each [`TELL`]; `rate` finds it out.
    pub(super) fn tell_rate(&mut self, now: Instant, rate: impl FnOnce() -> Option<f64>) {
        let Reader::Neighbour(neighbour) = &mut self.reader else { return };
        if now.since(self.told_at) < TELL {
            return;
        }
        self.told_at = now;
        if let Some(rate) = rate() {
            neighbour.tell_capacity(rate as u64);
        }
    }

    /// Figures of a neighbour, if the input is one.
    pub(super) fn neighbour(&self) -> Option<Figures> {
        if let Reader::Neighbour(neighbour) = &self.reader { Some(neighbour.figures()) } else { None }
    }

    fn take(&mut self, now: Instant, len: usize) {
        if let Play::AsItComes(Some(throttle)) = &mut self.play {
            return throttle.take(now, &self.buf[..len], |piece| self.units.push(now, piece));
        }
        self.units.push(now, &self.buf[..len]);
        let stats = self.units.stats();
        let pipe = matches!(self.reader, Reader::Pipe(_) | Reader::Slow(_));
        if let (Play::AsItComes(throttle), true, Format::Ts) = (&mut self.play, pipe, stats.format) {
            // What made it known goes as it came.
            *throttle = Some(Throttle::behind(now, &self.buf[..len], stats.packet_bytes));
        }
    }

    /// Hands what waits for its clock to the units, if it is due, and lets go what waited for more for long.
    fn release(&mut self, now: Instant) {
        if let Play::AsItComes(throttle) = &mut self.play {
            throttle.iter_mut().for_each(|it| it.release(now, |piece| self.units.push(now, piece)));
            if self.units.poll_timeout().is_some_and(|at| at <= now) {
                self.units.push(now, &[]);
            }
        }
    }

    /// Something still waits for its clock.
    fn waits(&self) -> Option<Instant> {
        if let Play::AsItComes(Some(throttle)) = &self.play { throttle.next() } else { None }
    }

    /// The driver says that `id` can be read.
    pub(super) fn on_ready(&mut self, now: Instant, id: InputId) -> Outcome {
        if self.token == Some(id) && !self.read_all {
            self.ready = true;
            if matches!(self.reader, Reader::Slow(_)) {
                self.read_bytes(now)?;
            }
        }
        Ok(())
    }

    /// Waits for the input, or not, as there is room and time.
    pub(super) fn watch(&mut self, now: Instant, driver: &mut Driver) -> Outcome {
        let held_back = self.throttled_until(now).is_some_and(|at| at > now);
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
            let halved = std::mem::take(&mut self.run) > self.most_in_slice();
            let until = self.last_read + if halved { self.slice / 2 } else { self.slice };
            if self.dense && until > now {
                driver.rest(token, until).map_err(|e| broken(&self.name, &e))?;
            } else {
                driver.drained(token);
            }
        }
        Ok(())
    }

    fn throttled_until(&mut self, now: Instant) -> Option<Instant> {
        if let Play::AsItComes(Some(throttle)) = &mut self.play { throttle.hold_until(now) } else { None }
    }

    /// When to [`pump`](Self::pump) again without being told by the driver.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<Instant> {
        match &self.reader {
            Reader::Neighbour(neighbour) => return neighbour.next().filter(|_| !self.ended),
            Reader::Rtp(rtp) => return rtp.timeout().filter(|_| !self.ended),
            _ => {}
        }
        match &self.play {
            _ if self.stuck.is_some() || self.ended => None,
            Play::Recording(recording) => recording.next(),
            Play::AsItComes(_) => {
                let reads = self.throttled_until(now).filter(|at| *at > now);
                [reads, self.waits(), self.units.poll_timeout()].into_iter().flatten().min()
            }
            Play::Freely => None,
        }
    }

    /// Ends the input early: what was read, and is due, completes its units.
    pub(super) fn stop(&mut self, now: Instant, mut hand_on: impl FnMut(Unit) -> Option<Unit>) {
        if let Play::AsItComes(Some(throttle)) = &mut self.play {
            throttle.clear();
        }
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

    /// How many programs there are, and what their PIDs carry.
    pub(super) fn programs(&self) -> (usize, Vec<Codec>) {
        self.units.programs()
    }

    /// What is to be said of a recording's clock, if it is not the usual one.
    pub(super) fn clock(&self) -> &'static str {
        match self.play {
            Play::Recording(Recording { timing: Timing::Times(_), .. }) => {
                "; without a clock (PCR), so played by its presentation times"
            }
            Play::Recording(Recording { timing: Timing::Nothing, .. }) => {
                "; without any clock, so sent at once (with --reliable nothing of it is lost)"
            }
            _ => "",
        }
    }

    /// What the input consisted of.
    pub(super) fn stats(&self) -> InputStats {
        self.units.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;

    #[test]
    fn what_waited_in_a_pipe_to_be_read_comes_out_once_and_whole() {
        // More than is read at once, and more than a throttle lets go ahead of its clock.
        let clip = include_bytes!("../../../../media/tests/clips/h264.ts");
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(clip).unwrap();
        drop(to);
        let mut driver = Driver::new().unwrap();
        let pipe = File::from(OwnedFd::from(from));
        let mut source =
            Source::live("a pipe".into(), pipe, &mut driver, Duration::from_secs(1), Duration::ZERO).unwrap();
        let (mut packets, mut now) = (Vec::new(), Instant::ZERO);
        while !source.ended() && now < Instant::from_millis(20_000) {
            source.ready = true;
            let hand_on = |unit: Unit| {
                packets.extend(unit.packets().map(|(index, packet)| (index, packet.to_vec())));
                None
            };
            source.pump(now, hand_on).unwrap();
            now += Duration::from_millis(10);
        }
        packets.sort();
        let bytes: Vec<u8> = packets.into_iter().flat_map(|(_, packet)| packet).collect();
        assert_eq!((bytes.len(), bytes == clip), (clip.len(), true), "of {} bytes by {now:?}", clip.len());
    }
}
