//! How an input is read: what is there at once, and what comes closely one behind another in slices.

use super::super::reader::{Reader, broken};
use super::{Play, Source};
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_driver::Batch;
use braidcast_session::SLICE_BYTES;
use std::io::{self, Read};

/// What is read at once from a file or pipe.
pub(super) const READ: usize = 64 * 1024;
/// The same of a pipe whose content goes as it comes: little, so that a stream that is held back comes evenly;
/// and as much as comes in a slice at 32 Mbit/s.
const READ_LIVE: usize = 16 * 1024;
/// A pipe whose writer fills as much of it (64 KiB, pipe(7)) in a slice does not rest: it would run full.
const HALF_A_PIPE: usize = 32 * 1024;

impl Source {
    /// Reads a piece of a byte stream, or its end; there may always be more.
    pub(super) fn read_bytes(&mut self, now: Instant) -> Outcome<bool> {
        let len = self.read_stream()?;
        self.last_read = now;
        if len > 0 {
            self.take(now, len);
        }
        self.refuse_container()?;
        Ok(true)
    }

    /// A file format that comes through a pipe, to be sent live, is refused: one loss makes useless what is behind it.
    fn refuse_container(&self) -> Outcome {
        let Some(container) = self.units.container().filter(|_| !matches!(self.play, Play::Freely)) else {
            return Ok(());
        };
        Err(Failure::new(
            format!("{} is {}, not MPEG-TS: it would not survive a single loss", self.name, container.name()),
            "make a stream of it: ffmpeg -i - -c copy -f mpegts - | braidcast send - …; or send it whole with --reliable",
        ))
    }

    /// Reads a piece of what is there, once the driver has said that there is something. Returns `true` if there may
    /// be more.
    pub(super) fn read_pipe(&mut self, now: Instant) -> Outcome<bool> {
        if !std::mem::take(&mut self.ready) {
            return Ok(false);
        }
        let piece = self.piece();
        let Some(len) = self.try_read()? else {
            (self.drained, self.dense, self.run) = (true, false, 0);
            return Ok(false);
        };
        self.run += len;
        let dense = self.is_dense(now) && self.run < HALF_A_PIPE;
        self.last_read = now;
        if len > 0 {
            self.take(now, len);
        }
        self.refuse_container()?;
        if len == piece {
            // The next piece is for the next turn: a fast writer does not keep us from all else.
            return Ok(false);
        }
        self.dense = dense;
        if len > 0 && dense {
            // What comes meanwhile, an end too, is found after the rest.
            self.drained = true;
            return Ok(false);
        }
        // An end that came along is reported no second time.
        self.ready = len > 0;
        Ok(true)
    }

    /// Returns `true` if what comes now comes closely enough behind what came last that there is more of it in a slice.
    fn is_dense(&self, now: Instant) -> bool {
        // Whoever rested comes later than a slice.
        now.since(self.last_read) < self.slice * if self.dense { 2 } else { 1 }
    }

    /// Reads a batch of the datagrams that are there. Returns `true` if there may be more.
    pub(super) fn read_datagrams(&mut self, now: Instant) -> Outcome<bool> {
        let Reader::Udp(socket) = &mut self.reader else { return Ok(false) };
        if !std::mem::take(&mut self.ready) {
            return Ok(false);
        }
        let (units, mut last, mut bytes) = (&mut self.units, self.last_came, 0);
        let batch = socket.receive(|payload, age| {
            // Captured when the kernel got it, however much later it is read.
            last = (now - age).clamp(last, now);
            bytes += payload.len();
            units.push(last, payload);
        });
        let batch = batch.map_err(|e| broken(&self.name, &e))?;
        self.last_came = last;
        self.run += bytes;
        if batch.datagrams == 0 {
            // Without data too: units that wait for more must not wait for ever.
            self.units.push(now, &[]);
        }
        self.came(now, batch);
        Ok(batch.datagrams > 0)
    }

    /// Reads a batch of datagrams, and takes what is in order by now. Returns `true` if there may be more.
    pub(super) fn read_rtp(&mut self, now: Instant) -> Outcome<bool> {
        let Reader::Rtp(rtp) = &mut self.reader else { return Ok(false) };
        let read = if std::mem::take(&mut self.ready) {
            Some(rtp.receive(now).map_err(|e| broken(&self.name, &e))?)
        } else {
            None
        };
        let (mut payload, mut any) = (Vec::new(), false);
        while let Some(came) = rtp.deliver(now, &mut payload) {
            any = true;
            self.units.push(came, &payload);
        }
        let came = read.is_some_and(|batch| batch.datagrams > 0);
        if let Some(batch) = read {
            self.came(now, batch);
        }
        if !came && !any {
            self.units.push(now, &[]);
        }
        Ok(came || any)
    }

    /// Notes what a batch of datagrams was.
    fn came(&mut self, now: Instant, batch: Batch) {
        (self.ready, self.drained) = (batch.more, !batch.more);
        self.dense = batch.datagrams > 1 || (batch.datagrams > 0 && self.is_dense(now));
        if batch.datagrams > 0 {
            self.last_read = now;
        }
    }

    /// Takes what is due from a neighbour, as of when it was due. Returns `true` if there may be more.
    pub(super) fn read_neighbour(&mut self, now: Instant) -> bool {
        let Reader::Neighbour(neighbour) = &mut self.reader else { return false };
        let more = neighbour.tend(now).more;
        let mut any = false;
        while let Some(delivered) = neighbour.deliver(now, &mut self.buf) {
            self.units.push(delivered.due, &self.buf);
            any = true;
        }
        self.drained = !more;
        if any {
            self.dense = self.is_dense(now);
            self.last_read = now;
        } else {
            // Units that wait for more must not wait for ever.
            self.units.push(now, &[]);
        }
        more || any
    }

    /// Bytes of a slice beyond which the next one is half as long, as a buffer of the system's holds what comes
    /// meanwhile.
    pub(super) const fn most_in_slice(&self) -> usize {
        if matches!(self.reader, Reader::Pipe(_)) { HALF_A_PIPE / 2 } else { SLICE_BYTES }
    }

    /// What is read at once.
    const fn piece(&self) -> usize {
        let live = matches!((&self.reader, &self.play), (Reader::Pipe(_) | Reader::Slow(_), Play::AsItComes(_)));
        if live { READ_LIVE } else { READ }
    }

    /// Reads into the buffer and notes the end.
    pub(super) fn read_stream(&mut self) -> Outcome<usize> {
        self.try_read().map(Option::unwrap_or_default)
    }

    /// The same of what never makes us wait; `None`: there is nothing yet.
    fn try_read(&mut self) -> Outcome<Option<usize>> {
        let piece = self.piece();
        let (Reader::File(file) | Reader::Pipe(file) | Reader::Slow(file)) = &mut self.reader else {
            return Ok(Some(0));
        };
        loop {
            match file.read(&mut self.buf[..piece]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) => return Err(broken(&self.name, &e)),
                Ok(len) => {
                    self.read_all |= len == 0;
                    return Ok(Some(len));
                }
            }
        }
    }
}
