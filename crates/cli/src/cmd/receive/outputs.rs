//! All outputs of one channel, and how far its stream has come in them.

use super::cut::Cutter;
use super::pipe::Pipe;
use super::recording::{Begun, Recording};
use super::sink::Sink;
use crate::cmd::neighbour::Figures;
use crate::cmd::watch::{OutputFigures, Thumbnail};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::{Driver, InputId};
use braidcast_session::{Content, Offer};

/// What there is to begin with.
pub(super) enum Ready {
    /// This content is there already.
    With(Content),
    /// It is being looked at: see [`Outputs::check`].
    Later,
}

/// Destinations of the streams of one channel.
pub(super) struct Outputs {
    sinks: Vec<Sink>,
    /// Those that failed while others of a live stream did not; they are tried again with the next stream.
    given_up: Vec<Sink>,
    /// Why the first of them failed.
    failure: Option<Failure>,
    /// A player that was closed ends no live stream, even if nothing else takes it.
    keep: bool,
    cutter: Option<Cutter>,
    reliable: bool,
    /// Bytes of the present stream that went into all, those included that were there at its beginning.
    stream_bytes: u64,
    /// Bytes that were handed to the outputs.
    pub(super) total: u64,
    /// Bytes that live outputs without room did not get.
    pub(super) dropped: u64,
    blocked: bool,
    /// What the page shows of them.
    thumbnail: Option<Thumbnail>,
}

impl Outputs {
    pub(super) const fn new(
        sinks: Vec<Sink>,
        cutter: Option<Cutter>,
        keep: bool,
        thumbnail: Option<Thumbnail>,
    ) -> Self {
        Self {
            sinks,
            given_up: Vec::new(),
            failure: None,
            keep,
            cutter,
            reliable: false,
            stream_bytes: 0,
            total: 0,
            dropped: 0,
            blocked: false,
            thumbnail,
        }
    }

    /// A stream begins.
    pub(super) fn begin(&mut self, offer: &Offer, live: &Live) -> Outcome<Ready> {
        self.reliable = offer.reliable;
        self.stream_bytes = 0;
        self.cutter.iter_mut().for_each(Cutter::restart);
        self.sinks.append(&mut self.given_up);
        let mut ready = Ready::With(Content::default());
        self.each_sink(live, |sink| {
            if let Sink::Recording(recording) = sink {
                ready = match recording.begin(offer)? {
                    Begun::With(content) => Ready::With(content),
                    Begun::Checking => Ready::Later,
                };
            }
            Ok(())
        })?;
        self.even()?;
        Ok(ready)
    }

    /// Does something with each output. One that fails ends no live stream that goes elsewhere too.
    /// A reader of stdout that has seen enough is not a failure, and does not come back.
    fn each_sink(&mut self, live: &Live, mut act: impl FnMut(&mut Sink) -> Outcome) -> Outcome {
        let mut at = 0;
        while let Some(sink) = self.sinks.get_mut(at) {
            match act(sink) {
                Ok(()) => at += 1,
                Err(failure) if !self.reliable && !failure.is_one() && (self.keep || self.sinks.len() > 1) => {
                    self.sinks.remove(at);
                    let left = if self.sinks.is_empty() { ", though nothing takes it now" } else { "" };
                    live.warn(format!("the program that read stdout is gone; the stream goes on without it{left}"));
                }
                Err(failure) if !self.reliable && self.sinks.len() > 1 && failure.is_one() => {
                    live.warn(format!("{failure}; the stream goes on without this output"));
                    self.given_up.push(self.sinks.remove(at));
                    self.failure.get_or_insert(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Takes the reason why an output failed, if one did.
    pub(super) const fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Files that have other names than were asked for, as those hold something else.
    pub(super) fn other_names(&self) -> Vec<String> {
        self.recordings().filter_map(Recording::other_name).collect()
    }

    /// Two files of one reliable stream must hold the same of it.
    fn even(&self) -> Outcome {
        let mut lengths = self.recordings().map(Recording::stream_bytes);
        let first = lengths.next().unwrap_or_default();
        if self.reliable && lengths.any(|length| length != first) {
            return Err(Failure::new(
                "the files hold different amounts of an unfinished transfer",
                "continue with one of them only, or start again with --overwrite",
            ));
        }
        Ok(())
    }

    fn recordings(&self) -> impl Iterator<Item = &Recording> {
        self.sinks.iter().filter_map(|sink| if let Sink::Recording(it) = sink { Some(it) } else { None })
    }

    fn recordings_mut(&mut self) -> impl Iterator<Item = &mut Recording> {
        self.sinks.iter_mut().filter_map(|sink| if let Sink::Recording(it) = sink { Some(it) } else { None })
    }

    fn pipes(&self) -> impl Iterator<Item = &Pipe> {
        self.sinks.iter().filter_map(|sink| if let Sink::Pipe(it) = sink { Some(it) } else { None })
    }

    /// Returns `true` if [`check`](Self::check) has something to do.
    pub(super) fn is_checking(&self) -> bool {
        self.recordings().any(Recording::is_checking)
    }

    /// Reads on in what is already there; returns it once all is read.
    pub(super) fn check(&mut self) -> Outcome<Option<Content>> {
        let mut seen = None;
        for recording in self.recordings_mut() {
            let content = recording.check()?;
            seen = seen.or(content);
        }
        Ok(seen.filter(|_| !self.is_checking()))
    }

    /// The stream goes on behind the `bytes` that are already there.
    pub(super) const fn go_on(&mut self, bytes: u64) {
        self.stream_bytes = bytes;
    }

    /// The sender's bytes are others than those that are there.
    pub(super) fn begin_anew(&mut self) -> Outcome {
        self.stream_bytes = 0;
        if self.recordings().next().is_none() {
            return Err(Failure::new(
                "the sender's file has changed, and a part of the old one is already written",
                "start both ends again",
            ));
        }
        self.recordings_mut().try_for_each(Recording::begin_anew)
    }

    /// Returns `true` if the stream may go on: what is live always may, what is reliable waits for the slowest.
    pub(super) fn has_room(&self) -> bool {
        !self.reliable || self.sinks.iter().all(Sink::has_room)
    }

    /// Writes bytes to all of them; `true` beside them if they begin with a frame that needs no other. What
    /// an output has no room for is dropped, which happens to live streams only.
    pub(super) fn write(
        &mut self,
        now: Instant,
        driver: &mut Driver,
        (bytes, entry): (&[u8], bool),
        live: &Live,
    ) -> Outcome {
        self.total += bytes.len() as u64;
        self.stream_bytes += bytes.len() as u64;
        if let Some(thumbnail) = self.thumbnail.as_ref().filter(|_| !self.reliable) {
            thumbnail.see(bytes);
        }
        let cut =
            if self.reliable { None } else { self.cutter.as_mut().and_then(|cutter| cutter.cut(now, bytes, entry)) };
        let (mut dropped, mut dropped_bytes, reliable) = (false, 0, self.reliable);
        self.each_sink(live, |sink| {
            if let (Sink::Recording(recording), Some(cut)) = (&mut *sink, &cut) {
                recording.write(&bytes[..cut.at])?;
                recording.cut()?;
                recording.write(&cut.tables)?;
                return recording.write(&bytes[cut.at..]);
            }
            let reader = match &*sink {
                Sink::Pipe(pipe) => pipe.has_reader() || reliable,
                _ => true,
            };
            if reader && sink.has_room() {
                return sink.write(driver, bytes);
            }
            dropped_bytes += bytes.len() as u64;
            dropped |= reader;
            Ok(())
        })?;
        self.dropped += dropped_bytes;
        if dropped && !self.blocked {
            live.warn("an output takes nothing; what is live is dropped there until it does");
        }
        self.blocked = dropped;
        Ok(())
    }

    /// The driver says that `id` can be written to.
    pub(super) fn on_ready(&mut self, driver: &mut Driver, id: InputId, live: &Live) -> Outcome {
        let reliable = self.reliable;
        self.each_sink(live, |sink| {
            if let Sink::Pipe(pipe) = sink
                && pipe.on_ready(driver, id)?
            {
                live.note("the reader of a pipe is gone; it may come back");
                if !reliable {
                    pipe.forget();
                }
            }
            Ok(())
        })
    }

    /// Looks whether pipes have readers now, and after neighbours.
    pub(super) fn tend(&mut self, now: Instant, driver: &mut Driver, live: &Live) -> Outcome {
        for sink in &mut self.sinks {
            if let Sink::Pipe(pipe) = &mut *sink
                && pipe.try_open(now, driver)?
            {
                live.note("a pipe has a reader");
            }
            if let Sink::Neighbour(neighbour, id) = sink {
                if !neighbour.tend(now).more {
                    driver.drained(*id);
                }
                neighbour.tell(live);
            }
            if let Sink::Push(push) = sink {
                push.tend(now, live);
            }
        }
        Ok(())
    }

    /// When to [`tend`](Self::tend) them.
    pub(super) fn next_try(&self) -> Option<Instant> {
        let others = self.sinks.iter().filter_map(|sink| match sink {
            Sink::Neighbour(neighbour, _) => neighbour.next(),
            Sink::Push(push) => Some(push.next()),
            _ => None,
        });
        self.pipes().filter_map(Pipe::next_try).chain(others).min()
    }

    /// Figures of the neighbours that are outputs.
    pub(super) fn neighbours(&self) -> Vec<Figures> {
        let figures = |sink: &Sink| if let Sink::Neighbour(it, _) = sink { Some(it.figures()) } else { None };
        self.sinks.iter().filter_map(figures).collect()
    }

    /// How the files and pipes stand.
    pub(super) fn figures(&self) -> Vec<OutputFigures> {
        let one = |sink: &Sink| match sink {
            Sink::Recording(recording) => recording.figures(),
            Sink::Pipe(pipe) => {
                Some(OutputFigures { name: pipe.name().to_owned(), bytes: self.total, free_bytes: None })
            }
            Sink::Push(push) => {
                Some(OutputFigures { name: push.name().to_owned(), bytes: push.sent_bytes(), free_bytes: None })
            }
            _ => None,
        };
        self.sinks.iter().filter_map(one).collect()
    }

    /// Where the page has the newest image of the stream.
    pub(super) fn thumbnail(&self) -> Option<String> {
        self.thumbnail.as_ref().and_then(Thumbnail::address)
    }

    /// Bytes of a reliable stream that are written everywhere.
    pub(super) fn written(&self) -> u64 {
        let waiting = |pipe: &Pipe| if pipe.is_drained() { 0 } else { pipe.waiting_bytes() };
        self.stream_bytes - self.pipes().map(waiting).max().unwrap_or_default().min(self.stream_bytes)
    }

    /// Returns `true` if nothing waits any more.
    pub(super) fn is_drained(&self) -> bool {
        self.sinks.iter().all(Sink::is_drained)
    }

    /// Has everything put where it stays.
    pub(super) fn flush(&mut self) -> Outcome {
        self.sinks.iter_mut().try_for_each(Sink::flush)
    }

    /// The stream is over.
    pub(super) fn end(&mut self, whole: bool) -> Outcome {
        self.recordings_mut().try_for_each(|recording| recording.end(whole))
    }

    /// Datagrams that could not be sent on.
    pub(super) fn unsent(&self) -> u64 {
        self.sinks.iter().map(Sink::unsent).sum()
    }
}
