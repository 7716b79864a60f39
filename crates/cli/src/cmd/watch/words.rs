//! `-v`, `-vv` and `RUST_LOG`: events in words on stderr, by the levels and targets of crate `log`.
//!
//! Info: rare events that matter, for example a path that falls silent. Debug: what is lost,
//! discarded or late, and why. Trace: all.

use braidcast_core::events::{DccpEvent, EventSink, MediaEvent, Reduction, SctpEvent, TraceEvent, Tracer};
use braidcast_core::{Instant, PathId};
use env_filter::{Builder, Filter};
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::fmt::Arguments;
use std::sync::Arc;

/// The environment variable that says what is told, as `env_logger` has it: `debug`, or
/// `braidcast::frames=debug,braidcast::paths=info`.
const VARIABLE: &str = "RUST_LOG";

const PATHS: &str = "braidcast::paths";
const LOSSES: &str = "braidcast::losses";
const FRAMES: &str = "braidcast::frames";
const DCCP: &str = "braidcast::dccp";
const EVENTS: &str = "braidcast::events";

/// Writes what passes the filter.
struct Stderr(Filter);

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.0.matches(record) {
            say!("{:<5} {}: {}", record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}

/// Starts to print what `-v`, given `verbose` times, and the environment ask for. Returns what
/// makes no sense in the latter.
pub(crate) fn init(verbose: u8) -> Option<String> {
    let level = match verbose {
        0 => LevelFilter::Off,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    let mut builder = Builder::new();
    builder.filter_level(level);
    let mut wrong = None;
    if let Some(text) = std::env::var_os(VARIABLE).filter(|it| !it.is_empty()) {
        let text = text.to_string_lossy();
        if let Err(error) = builder.try_parse(&text) {
            wrong = Some(format!(
                "{VARIABLE}={text} makes no sense ({error}): write for example {VARIABLE}=braidcast::frames=debug"
            ));
        }
    }
    let filter = builder.build();
    let most = filter.filter();
    if most > LevelFilter::Off && log::set_boxed_logger(Box::new(Stderr(filter))).is_ok() {
        log::set_max_level(most);
    }
    wrong
}

/// Returns `true` if anything is said.
pub(crate) fn is_on() -> bool {
    log::max_level() > LevelFilter::Off
}

/// Returns a tracer that passes events to all of `files` and prints them in words if that is asked
/// for.
pub(super) fn with_words(files: impl Iterator<Item = Arc<dyn EventSink>>) -> Tracer {
    let words = is_on().then(|| Arc::new(Words) as Arc<dyn EventSink>);
    files.chain(words).fold(Tracer::default(), Tracer::with)
}

/// Says events by the logger.
struct Words;

impl EventSink for Words {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        let say = |level: Level, target: &str, words: Arguments<'_>| {
            log::log!(target: target, level, "{:.3} s, {connection:08x}: {words}", now.as_secs_f64());
        };
        match event {
            TraceEvent::Sctp(event) => say_sctp(event, &say),
            TraceEvent::Dccp(event) => say_dccp(event, &say),
            TraceEvent::Media(event) => say_media(event, &say),
            _ => {}
        }
        say(Level::Trace, EVENTS, format_args!("{event:?}"));
    }
}

fn say_sctp(event: &SctpEvent, say: &impl Fn(Level, &str, Arguments<'_>)) {
    let over = |path: Option<PathId>| path.map_or_else(String::new, |path| format!(" over path {}", path.0));
    match *event {
        SctpEvent::Opened { peer_tag, .. } => say(Level::Info, PATHS, format_args!("associated with {peer_tag:08x}")),
        SctpEvent::Closed => say(Level::Info, PATHS, format_args!("the association is over")),
        SctpEvent::PathAdded { path, route } => {
            say(Level::Info, PATHS, format_args!("path {} to {}", path.0, route.remote))
        }
        SctpEvent::PathRemoved { path } => say(Level::Info, PATHS, format_args!("path {} has left", path.0)),
        SctpEvent::PathState { path, state } => {
            say(Level::Info, PATHS, format_args!("path {} is {}", path.0, state.name()))
        }
        SctpEvent::WindowReduced { path, cause } => {
            let level = if cause == Reduction::Timeout { Level::Info } else { Level::Debug };
            say(level, PATHS, format_args!("path {}: smaller window ({})", path.0, cause.name()));
        }
        SctpEvent::ChunkLost { path, tsn, cause } => {
            say(Level::Debug, LOSSES, format_args!("TSN {tsn}{} is lost ({})", over(path), cause.name()));
        }
        SctpEvent::ChunkAcked { path, tsn, spurious: true } => {
            say(Level::Debug, LOSSES, format_args!("TSN {tsn}{} was not lost after all", over(path)));
        }
        SctpEvent::ChunkRecovered { tsn, .. } => {
            say(Level::Debug, LOSSES, format_args!("redundancy repaired TSN {tsn}"));
        }
        SctpEvent::MessageAbandoned { message, sent, why, .. } => {
            let when = if sent { "in flight" } else { "unsent" };
            say(Level::Debug, FRAMES, format_args!("frame {} was abandoned {when} ({})", message >> 8, why.name()));
        }
        _ => {}
    }
}

fn say_dccp(event: &DccpEvent, say: &impl Fn(Level, &str, Arguments<'_>)) {
    match *event {
        DccpEvent::Opened { route, ccid } => {
            say(Level::Info, DCCP, format_args!("connected with {} by CCID {ccid}", route.remote))
        }
        DccpEvent::Closed => say(Level::Info, DCCP, format_args!("the connection is over")),
        DccpEvent::MessageDiscarded { why, .. } => {
            say(Level::Debug, DCCP, format_args!("a datagram was discarded unsent ({})", why.name()))
        }
        _ => {}
    }
}

fn say_media(event: &MediaEvent, say: &impl Fn(Level, &str, Arguments<'_>)) {
    match *event {
        MediaEvent::FrameUnsent { frame, kind } => {
            say(Level::Debug, FRAMES, format_args!("{} frame {frame} found no room", kind.name()));
        }
        MediaEvent::FrameArrived { frame, kind, due, on_time: false, .. } => {
            say(
                Level::Debug,
                FRAMES,
                format_args!("{} frame {frame} came too late: it was due at {:.3} s", kind.name(), due.as_secs_f64()),
            );
        }
        _ => {}
    }
}
