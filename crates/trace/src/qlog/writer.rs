use super::fields::Fields;
use super::names::DCCP_TYPES;
use super::{EVENT_SCHEMAS, FILE_SCHEMA, SEPARATOR, SIMULATED};
use braidcast_core::events::{DccpEvent, MediaEvent, SctpEvent, TraceEvent};
use braidcast_core::{Instant, PathId};
use std::io::{self, Write};

/// What a trace says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct QlogHeader<'a> {
    /// What was run.
    pub title: &'a str,
    /// The end that records: the name of a command or of a simulated host.
    pub vantage: &'a str,
    /// The time of day at [`Instant::ZERO`], as RFC 3339 writes it; empty if it means nothing.
    pub wall_clock: &'a str,
    /// The clock is a simulator's, which all of its hosts share.
    pub simulated: bool,
}

/// Writes events as a trace. Each event is one write: give it a buffered writer. Keeps nothing but
/// a buffer of an event's size.
#[derive(Debug)]
pub struct QlogWriter<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> QlogWriter<W> {
    /// Begins a trace in `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, header: &QlogHeader<'_>) -> io::Result<Self> {
        let mut line = vec![SEPARATOR];
        let mut it = Fields::begin(&mut line);
        it.word("file_schema", FILE_SCHEMA).word("serialization_format", "application/qlog+json-seq");
        it.text("title", header.title).object("trace", |trace| {
            trace.object("vantage_point", |it| _ = it.text("name", header.vantage).word("type", "unknown"));
            trace.object("common_fields", |it| {
                it.word("time_format", "relative_to_epoch").object("reference_time", |it| {
                    let clock = if header.simulated { SIMULATED } else { "monotonic" };
                    it.word("clock_type", clock).word("epoch", "unknown");
                    if !header.wall_clock.is_empty() {
                        it.text("wall_clock_time", header.wall_clock);
                    }
                });
            });
            trace.words("event_schemas", &EVENT_SCHEMAS);
        });
        it.end();
        line.push(b'\n');
        out.write_all(&line)?;
        Ok(Self { out, line })
    }

    /// Writes one event, which `connection` had at `now`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn event(&mut self, now: Instant, connection: u32, event: &TraceEvent) -> io::Result<()> {
        self.line.clear();
        write_event(&mut self.line, now, connection, event);
        self.out.write_all(&self.line)
    }

    /// What is written to.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes out what `out` still buffers.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The writer, with the trace whole in it.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn write_event(line: &mut Vec<u8>, now: Instant, connection: u32, event: &TraceEvent) {
    let (name, path) = match event {
        TraceEvent::Sctp(event) => sctp_name(event),
        TraceEvent::Dccp(event) => (dccp_name(event), None),
        TraceEvent::Media(event) => media_name(event),
        _ => return,
    };
    line.push(SEPARATOR);
    let mut it = Fields::begin(line);
    it.time("time", now).word("name", name).hex("group_id", connection);
    if let Some(path) = path {
        it.numeral("path", path.0);
    }
    it.object("data", |data| match event {
        TraceEvent::Sctp(event) => sctp_data(data, event),
        TraceEvent::Dccp(event) => dccp_data(data, event),
        TraceEvent::Media(event) => media_data(data, event),
        _ => {}
    });
    it.end();
    line.push(b'\n');
}

/// The name of an event, and the path that it is of.
const fn sctp_name(event: &SctpEvent) -> (&'static str, Option<PathId>) {
    use SctpEvent as E;
    match *event {
        E::Opened { .. } => ("sctp:association_opened", None),
        E::PathAdded { path, .. } => ("sctp:path_added", Some(path)),
        E::PathRemoved { path } => ("sctp:path_removed", Some(path)),
        E::PathState { path, .. } => ("sctp:path_state", Some(path)),
        E::PathMetrics { path, .. } => ("sctp:path_metrics", Some(path)),
        E::WindowReduced { path, .. } => ("sctp:window_reduced", Some(path)),
        E::PacketSent { path, .. } => ("sctp:packet_sent", Some(path)),
        E::PacketReceived { path, .. } => ("sctp:packet_received", Some(path)),
        E::MessageQueued { .. } => ("sctp:message_queued", None),
        E::MessageAbandoned { .. } => ("sctp:message_abandoned", None),
        E::ChunkSent { path, .. } => ("sctp:chunk_sent", Some(path)),
        E::ChunkAcked { path, .. } => ("sctp:chunk_acked", path),
        E::ChunkLost { path, .. } => ("sctp:chunk_lost", path),
        E::ChunkReceived { path, .. } => ("sctp:chunk_received", Some(path)),
        E::ChunkRecovered { path, .. } => ("sctp:chunk_recovered", Some(path)),
        E::RedundancySent { path, .. } => ("sctp:redundancy_sent", Some(path)),
        E::RedundancyReceived { path, .. } => ("sctp:redundancy_received", Some(path)),
        E::SackSent { path, .. } => ("sctp:sack_sent", Some(path)),
        E::SackReceived { path, .. } => ("sctp:sack_received", Some(path)),
        E::ForwardSent { path, .. } => ("sctp:forward_sent", Some(path)),
        E::ForwardReceived { path, .. } => ("sctp:forward_received", Some(path)),
        _ => ("sctp:association_closed", None),
    }
}

fn sctp_data(data: &mut Fields<'_>, event: &SctpEvent) {
    use SctpEvent as E;
    // The number of messages that have none.
    let numbered = |message: u64| Some(message).filter(|&message| message != u64::MAX);
    match *event {
        E::Opened { local_tag, peer_tag } => {
            data.hex("local_tag", local_tag).hex("peer_tag", peer_tag);
        }
        E::PathAdded { route, .. } => _ = data.raw("socket", route.socket.0).shown("remote", route.remote),
        E::PathState { state, .. } => _ = data.word("state", state.name()),
        E::PathMetrics { metrics: it, .. } => {
            data.raw("cwnd_bytes", it.cwnd).maybe("ssthresh_bytes", it.ssthresh).raw("in_flight_bytes", it.in_flight);
            data.maybe_span("srtt_ms", it.srtt).maybe_span("min_rtt_ms", it.min_rtt).span("rto_ms", it.rto);
            data.span("queued_ms", it.queued).raw("mtu_bytes", it.mtu);
        }
        E::WindowReduced { cause, .. } => _ = data.word("cause", cause.name()),
        E::PacketSent { bytes, content, .. } => {
            data.raw("bytes", bytes).word("purpose", content.purpose.name());
            data.raw("sack", content.sack).raw("redundancy", content.redundancy);
        }
        E::PacketReceived { bytes, marked, .. } => _ = data.raw("bytes", bytes).raw("marked", marked),
        E::MessageQueued { message, stream, bytes, deadline } => {
            data.maybe("message", numbered(message)).raw("stream", stream).raw("bytes", bytes);
            if let Some(deadline) = deadline {
                data.time("deadline", deadline);
            }
        }
        E::MessageAbandoned { message, stream, sent, why } => {
            data.maybe("message", numbered(message)).raw("stream", stream).raw("sent", sent).word("why", why.name());
        }
        E::ChunkSent { tsn, bytes, stream, message, sending, .. } => {
            data.raw("tsn", tsn).raw("bytes", bytes).raw("stream", stream).maybe("message", numbered(message));
            data.word("sending", sending.name());
        }
        E::ChunkAcked { tsn, spurious, .. } => _ = data.raw("tsn", tsn).raw("spurious", spurious),
        E::ChunkLost { tsn, cause, .. } => _ = data.raw("tsn", tsn).word("cause", cause.name()),
        E::ChunkReceived { tsn, bytes, new, .. } => _ = data.raw("tsn", tsn).raw("bytes", bytes).raw("new", new),
        E::RedundancySent { first, count, bytes, .. } => {
            data.raw("first", first).raw("count", count).raw("bytes", bytes);
        }
        E::RedundancyReceived { first, count, .. } => _ = data.raw("first", first).raw("count", count),
        E::SackSent { cumulative, gaps, window, .. } | E::SackReceived { cumulative, gaps, window, .. } => {
            data.raw("cumulative", cumulative).raw("gaps", gaps).raw("window_bytes", window);
        }
        E::ChunkRecovered { tsn, .. } | E::ForwardSent { tsn, .. } | E::ForwardReceived { tsn, .. } => {
            data.raw("tsn", tsn);
        }
        _ => {}
    }
}

const fn dccp_name(event: &DccpEvent) -> &'static str {
    match event {
        DccpEvent::Opened { .. } => "dccp:connection_opened",
        DccpEvent::PacketSent { .. } => "dccp:packet_sent",
        DccpEvent::PacketReceived { .. } => "dccp:packet_received",
        DccpEvent::Metrics(_) => "dccp:metrics",
        DccpEvent::MessageDiscarded { .. } => "dccp:message_discarded",
        _ => "dccp:connection_closed",
    }
}

fn dccp_data(data: &mut Fields<'_>, event: &DccpEvent) {
    match *event {
        DccpEvent::Opened { route, ccid } => {
            data.raw("socket", route.socket.0).shown("remote", route.remote).raw("ccid", ccid);
        }
        DccpEvent::PacketSent { seq, kind, ack, bytes } | DccpEvent::PacketReceived { seq, kind, ack, bytes } => {
            let name = DCCP_TYPES.get(usize::from(kind)).copied().unwrap_or("unknown");
            data.raw("seq", seq).word("type", name).maybe("ack", ack).raw("bytes", bytes);
        }
        DccpEvent::Metrics(it) => {
            data.maybe("cwnd_packets", it.cwnd).maybe("pipe_packets", it.pipe);
            data.real("allowed_bytes_per_second", it.allowed_rate).real("received_bytes_per_second", it.recv_rate);
            data.real("fair_bytes_per_second", it.fair_rate).real("segment_bytes", it.segment);
            data.real("loss_event_rate", it.loss_event_rate).maybe_span("srtt_ms", it.srtt);
            data.maybe_span("rto_ms", it.rto).maybe("ssthresh_packets", it.ssthresh).maybe("ack_ratio", it.ack_ratio);
            data.raw("queued_messages", it.queued).raw("acked_packets", it.acked).raw("lost_packets", it.lost);
            data.raw("marked_packets", it.marked).raw("loss_events", it.loss_events).raw("timeouts", it.timeouts);
        }
        DccpEvent::MessageDiscarded { message, why } => _ = data.maybe("message", message).word("why", why.name()),
        _ => {}
    }
}

const fn media_name(event: &MediaEvent) -> (&'static str, Option<PathId>) {
    match *event {
        MediaEvent::FrameCaptured { .. } => ("media:frame_captured", None),
        MediaEvent::FrameArrived { path, .. } => ("media:frame_arrived", Some(path)),
        _ => ("media:frame_unsent", None),
    }
}

fn media_data(data: &mut Fields<'_>, event: &MediaEvent) {
    match *event {
        MediaEvent::FrameCaptured { frame, kind, reference, bytes, parts, captured, deadline, pts } => {
            data.raw("frame", frame).word("kind", kind.name()).raw("reference", reference).raw("bytes", bytes);
            data.raw("parts", parts).time("captured", captured);
            if let Some(deadline) = deadline {
                data.time("deadline", deadline);
            }
            data.maybe("pts", pts);
        }
        MediaEvent::FrameUnsent { frame, kind } => _ = data.raw("frame", frame).word("kind", kind.name()),
        MediaEvent::FrameArrived { frame, kind, reference, bytes, captured, due, on_time, pts, .. } => {
            data.raw("frame", frame).word("kind", kind.name()).raw("reference", reference).raw("bytes", bytes);
            data.time("captured", captured).time("due", due).raw("on_time", on_time).maybe("pts", pts);
        }
        _ => {}
    }
}
