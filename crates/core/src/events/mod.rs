//! What machines tell of their inside while they run: which packet was for what, what was
//! acknowledged, lost, abandoned, when a frame came.
//!
//! A machine whose options hold a [`Tracer`] reports to its [`EventSink`] at the place where something
//! happens. Without one it costs a look at an `Option`. A sink only listens: nothing that it does
//! changes what a machine does, so a run with a sink has the same bytes as the run without.
//!
//! Events are small values that can be copied. Names and units of a trace's text are the writer's (`braidcast-trace`).

mod dccp;
mod media;
mod sctp;
mod tracer;

pub use dccp::{DccpEvent, DccpMetrics};
pub use media::{FrameKind, MediaEvent};
pub use sctp::{Loss, PacketContent, PathCondition, PathMetrics, Purpose, Reduction, SctpEvent, Sending, Unsent};
pub use tracer::{ConnectionTracer, EventSink, Tracer};

/// Something that happened inside a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum TraceEvent {
    /// In an SCTP association, by its verification tag.
    Sctp(SctpEvent),
    /// In a DCCP connection.
    Dccp(DccpEvent),
    /// To a frame of a stream, by the stream's identity.
    Media(MediaEvent),
}

impl From<SctpEvent> for TraceEvent {
    fn from(event: SctpEvent) -> Self {
        Self::Sctp(event)
    }
}

impl From<DccpEvent> for TraceEvent {
    fn from(event: DccpEvent) -> Self {
        Self::Dccp(event)
    }
}

impl From<MediaEvent> for TraceEvent {
    fn from(event: MediaEvent) -> Self {
        Self::Media(event)
    }
}
