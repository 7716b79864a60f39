//! What lets one see inside a command while it runs.

mod trace;

use crate::args::WatchArgs;
use crate::failure::Outcome;
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_core::events::Tracer;
use trace::TraceFile;

/// All that listens to a command's machines.
pub(crate) struct Watch {
    trace: Option<TraceFile>,
}

impl Watch {
    /// Opens what the flags ask for. `command`: what it calls itself; `now`: by its driver's clock.
    pub(crate) fn open(args: &WatchArgs, command: &str, now: Instant) -> Outcome<Self> {
        let trace = args.trace.as_deref().map(|path| TraceFile::create(path, command, now)).transpose()?;
        Ok(Self { trace })
    }

    /// What machines are to tell.
    pub(crate) fn tracer(&self) -> Tracer {
        self.trace.as_ref().map_or_else(Tracer::default, TraceFile::tracer)
    }

    /// Says what has failed, once. Nothing of it ends the stream.
    pub(crate) fn check(&self, live: &Live) {
        if let Some(words) = self.trace.as_ref().and_then(TraceFile::take_failure) {
            live.warn(words);
        }
    }

    /// Writes what is still in memory.
    pub(crate) fn finish(&mut self, live: &Live) {
        if let Some(trace) = &mut self.trace {
            trace.finish();
        }
        self.check(live);
    }
}
