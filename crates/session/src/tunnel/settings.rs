//! What the user of a tunnel chooses.

use super::header;
use braidcast_dccp::{Limits, Method, OneWayDelay, Options, Wanted};
use std::time::Duration;

/// What the user chose, besides DCCP's options. [`Default`] is what the command does unless told otherwise.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From application to application; datagrams that take longer are of no use. For flows of which nothing else is said.
    /// Default 1 s.
    pub lifetime: Duration,
    /// Which of the datagrams that wait for congestion control goes next. Default `in-time`.
    pub queue: Method,
    /// Datagrams that wait at most. Default 512, many pictures' worth: what keeps them young is their lifetime.
    pub queue_length: usize,
    /// How long the way to the other end takes, if that is known better than round trips tell. Default `None`.
    pub one_way_delay: Option<Duration>,
    /// The rates of use, with a CCID that has a rate. Default none.
    pub wanted: Wanted,
    /// The most that a listener's jitter buffer waits. Default 200 ms.
    pub jitter_buffer: Duration,
    /// Clients that a server has at once, [`CLIENTS_PER_HOST`](super::CLIENTS_PER_HOST) of one host; one more takes the place of the one
    /// that was silent longest. Default 256.
    pub clients: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(1),
            queue: Method::default(),
            queue_length: 512,
            one_way_delay: None,
            wanted: Wanted::default(),
            jitter_buffer: Duration::from_millis(200),
            clients: 256,
        }
    }
}

impl Settings {
    /// DCCP's options with what these say of its queue and of the way.
    pub(super) fn apply(&self, options: Options) -> Options {
        let send_queue = Limits::messages(self.queue_length);
        let one_way_delay = self.one_way_delay.map_or(OneWayDelay::Measured, OneWayDelay::Known);
        Options { queue: self.queue, send_queue, one_way_delay, padding: Some(header::PADDING.into()), ..options }
    }

    /// Whether the queue discards what would come too late by the way that is before it.
    pub(super) const fn reckons_with_the_way(&self) -> bool {
        self.queue.heeds_delay()
    }
}
