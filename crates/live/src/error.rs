use crate::Track;
use braidcast_session::StartError;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The latencies that can be: microseconds in 32 bits are what the other end is told.
const LATENCIES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_micros(u32::MAX as u64);

/// # Errors
/// [`Error::Latency`].
pub(crate) fn check_latency(latency: Duration) -> Result<(), Error> {
    if LATENCIES.contains(&latency) { Ok(()) } else { Err(Error::Latency(latency)) }
}

/// Why a [`MediaSender`](crate::MediaSender) or [`MediaReceiver`](crate::MediaReceiver) did not do
/// what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Keys, addresses or paths cannot be used.
    #[error(transparent)]
    Setup(#[from] braidcast_socket::Error),
    /// The session cannot begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A stream cannot have this name.
    #[error("{0}")]
    Name(String),
    /// The receiver could not be told this latency.
    #[error("a latency is 1ms to 71 minutes, not {0:?}")]
    Latency(Duration),
    /// Nothing was given to listen at.
    #[error("no address to listen at; give at least one, for example 0.0.0.0:9000")]
    NoAddress,
    /// The sender has as many tracks as a program table has room for.
    #[error("a stream has {} tracks at most", braidcast_media::ts::Mux::MOST_STREAMS)]
    TooManyTracks,
    /// Tracks of Opus have 1 to 8 channels.
    #[error("Opus has 1 to 8 channels, not {0}")]
    Channels(u8),
    /// A sender takes a transport stream or access units, and not both.
    #[error("this sender takes {}; make another one for the other", if *.units { "access units" } else { "a transport stream" })]
    Mixed {
        /// It takes access units.
        units: bool,
    },
    /// The track is one of another sender.
    #[error("this sender has no track {}", .0.pid)]
    NoTrack(Track),
    /// The access unit cannot be sent as it is.
    #[error("an access unit of {}: {}", .track.coding.name(), .what)]
    Unit {
        /// Of this track.
        track: Track,
        /// What is wrong, and what is right.
        what: &'static str,
    },
    /// 8 MiB wait for a thread that hardly runs. Nothing was taken.
    #[error("too much waits to be sent: this machine is too busy")]
    Full,
    /// It has ended: no more comes, and nothing is taken.
    #[error("the session is over")]
    Over,
    /// A bug in the library ended its thread: it can only be dropped.
    #[error("a bug in the library broke this session: it can only be dropped")]
    Broken,
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
