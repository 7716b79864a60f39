use super::cipher;
use super::secret::{KeyLength, Passphrase};
use super::stream_id::StreamId;
use core::time::Duration;

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Latency of what comes in, at least; the other end may ask for more. 0 to 65.535 s; libsrt's default is 120 ms.
    pub latency: Duration,
    /// What the other end's latency is asked to be at least.
    pub peer_latency: Duration,
    /// The secret; without one, payloads go in clear and encrypted ones are refused.
    pub passphrase: Option<Passphrase>,
    /// Length of the keys that a caller makes.
    pub key_length: KeyLength,
    /// A caller says which stream it means; a listener takes callers that mean this one only. At most 512 bytes.
    pub stream_id: Option<String>,
    /// A listener takes callers only whose stream has one of these [names](super::StreamId::name). Not heeded by a
    /// caller.
    pub names: Option<Vec<String>>,
    /// A passphrase for each [name](super::StreamId::name), in place of [`passphrase`](Self::passphrase): a listener
    /// takes callers only whose stream is in the list, by its own passphrase. Not heeded by a caller.
    pub keys: Option<Vec<(String, Passphrase)>>,
    /// How long a packet may be overtaken before it is asked for again. It grows by itself to what the network needs.
    pub reordering: Duration,
    /// Silence after which a connection has failed.
    pub idle: Duration,
    /// Packets that are kept for each direction of each connection, of at most 1456 bytes each.
    pub buffer: usize,
    /// Packets that are sent with one key.
    pub key_refresh: u64,
    /// Connections that a listener has at once.
    pub connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(120),
            peer_latency: Duration::ZERO,
            passphrase: None,
            key_length: KeyLength::default(),
            stream_id: None,
            names: None,
            keys: None,
            reordering: Duration::ZERO,
            idle: Duration::from_secs(5),
            buffer: 25_600,
            key_refresh: cipher::REFRESH,
            connections: 16,
        }
    }
}

impl Options {
    /// Returns what a caller that means `stream` must know; `Err(())` if it means none of the list.
    pub(super) fn secret_of(&self, stream: &StreamId) -> Result<Option<&Passphrase>, ()> {
        let Some(keys) = &self.keys else { return Ok(self.passphrase.as_ref()) };
        let own = stream.name().and_then(|name| keys.iter().find(|(it, _)| it == name));
        own.map(|(_, secret)| Some(secret)).ok_or(())
    }

    /// A latency as it stands in a handshake.
    pub(super) fn millis(latency: Duration) -> u16 {
        u16::try_from(latency.as_millis()).unwrap_or(u16::MAX)
    }
}

/// Which way media goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the neighbour to us.
    Receive,
    /// From us to the neighbour.
    Send,
}
