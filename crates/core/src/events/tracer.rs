use super::TraceEvent;
use crate::Instant;
use core::fmt;
use std::sync::Arc;

/// Who listens to events: a trace file, live figures, a test.
///
/// It is called in the middle of a machine's work: it should be quick, and must not call the machine.
pub trait EventSink: Send + Sync {
    /// `event` happened at `now` to `connection`: an association's local verification tag, a DCCP
    /// connection's number, or the number of a media stream, which is the same at both ends.
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent);

    /// Returns `true` if it wants what encrypted packets hold, too. Who listens need not know that, and few should.
    fn wants_plain(&self) -> bool {
        false
    }

    /// What an encrypted packet holds, with the header that it has on the wire but for its
    /// checksum: `parts`, one behind the other. One that leaves is told before it is encrypted, in
    /// order; one that came when it was found to be authentic.
    fn tell_plain(&self, leaves: bool, parts: [&[u8]; 2]) {
        let _ = (leaves, parts);
    }
}

/// The sink that a machine's options name, or none. Cloning it is cheap.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<dyn EventSink>>);

impl Tracer {
    /// Reports to `sink`.
    pub fn new(sink: Arc<dyn EventSink>) -> Self {
        Self(Some(sink))
    }

    /// Reports to `sink` too.
    #[must_use]
    pub fn with(self, sink: Arc<dyn EventSink>) -> Self {
        Self(Some(match self.0 {
            Some(known) => Arc::new(Both(known, sink)),
            None => sink,
        }))
    }

    /// Returns `true` if anybody listens.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Reports what happened to `connection` at `now`; `event` is made only if anybody listens.
    #[inline]
    pub fn tell<E: Into<TraceEvent>>(&self, now: Instant, connection: u32, event: impl FnOnce() -> E) {
        if let Some(sink) = &self.0 {
            sink.tell(now, connection, &event().into());
        }
    }

    /// Reports what an encrypted packet holds, if anybody wants that: see [`EventSink::tell_plain`].
    #[inline]
    pub fn tell_plain<'a>(&self, leaves: bool, parts: impl FnOnce() -> [&'a [u8]; 2]) {
        if let Some(sink) = self.0.as_ref().filter(|sink| sink.wants_plain()) {
            sink.tell_plain(leaves, parts());
        }
    }
}

/// Two that listen.
struct Both(Arc<dyn EventSink>, Arc<dyn EventSink>);

impl EventSink for Both {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        self.0.tell(now, connection, event);
        self.1.tell(now, connection, event);
    }

    fn wants_plain(&self) -> bool {
        self.0.wants_plain() || self.1.wants_plain()
    }

    fn tell_plain(&self, leaves: bool, parts: [&[u8]; 2]) {
        for sink in [&self.0, &self.1].into_iter().filter(|sink| sink.wants_plain()) {
            sink.tell_plain(leaves, parts);
        }
    }
}

/// The same sink, or none both.
impl PartialEq for Tracer {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for Tracer {}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Tracer(on)" } else { "Tracer(off)" })
    }
}

/// The tracer of one connection, which knows the connection's number and the time, so that to tell
/// an event takes nothing else.
#[derive(Clone, Debug, Default)]
pub struct ConnectionTracer {
    tracer: Tracer,
    connection: u32,
    now: Instant,
}

impl ConnectionTracer {
    /// For the connection `connection`.
    pub const fn new(tracer: Tracer, connection: u32) -> Self {
        Self { tracer, connection, now: Instant::ZERO }
    }

    /// The time of what is told from now on.
    #[inline]
    pub const fn at(&mut self, now: Instant) {
        self.now = now;
    }

    /// Returns `true` if anybody listens.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.tracer.is_on()
    }

    /// Reports what happens now; `event` is made only if anybody listens.
    #[inline]
    pub fn tell<E: Into<TraceEvent>>(&self, event: impl FnOnce() -> E) {
        self.tracer.tell(self.now, self.connection, event);
    }

    /// Reports what an encrypted packet holds, if anybody wants that: see [`EventSink::tell_plain`].
    #[inline]
    pub fn tell_plain<'a>(&self, leaves: bool, parts: impl FnOnce() -> [&'a [u8]; 2]) {
        self.tracer.tell_plain(leaves, parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{FrameKind, MediaEvent};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<(Instant, u32, TraceEvent)>>);

    impl EventSink for Recorder {
        fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
            self.0.lock().unwrap().push((now, connection, *event));
        }
    }

    #[test]
    fn an_event_is_made_only_where_somebody_listens() {
        let frame = MediaEvent::FrameUnsent { frame: 7, kind: FrameKind::B };
        ConnectionTracer::default().tell(|| -> MediaEvent { panic!("nobody listens") });
        let recorder = Arc::new(Recorder::default());
        let mut it = ConnectionTracer::new(Tracer::new(recorder.clone()), 5);
        it.at(Instant::from_millis(3));
        it.tell(|| frame);
        assert_eq!(*recorder.0.lock().unwrap(), [(Instant::from_millis(3), 5, TraceEvent::Media(frame))]);
        let others = Arc::new(Recorder::default());
        let both = Tracer::default().with(recorder.clone()).with(others.clone());
        both.tell(Instant::ZERO, 6, || frame);
        assert_eq!((recorder.0.lock().unwrap().len(), others.0.lock().unwrap().len()), (2, 1));
    }
}
