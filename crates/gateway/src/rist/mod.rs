//! RIST, simple and main profile, as librist speaks them (TR-06-1, TR-06-2): MPEG-TS in RTP, of which what is lost is
//! asked for again, and in the main profile one tunnel for all, encrypted with a secret that both ends know.
//!
//! [`Endpoint`] is the machine. Not there: names with passwords (EAP-SRP), DTLS, the full datagrams of the main
//! profile's tunnel, and the advanced profile. What a secret encrypts has no authentication (TR-06-2 has none):
//! somebody between both ends can change it.

mod endpoint;
mod receiver;
mod secret;
mod sender;
mod tunnel;
pub mod wire;

pub use endpoint::{Endpoint, Event, Report};
pub use secret::{Secret, WrongLength};
pub use tunnel::Refusal;

use crate::srt::KeyLength;
use core::time::Duration;

/// Which of both is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// RTP on an even port, RTCP on the one behind it.
    #[default]
    Simple,
    /// Both in one tunnel, perhaps encrypted.
    Main,
}

/// How a stream is received or sent.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long after it was sent a payload is due at the receiver, less the shortest one-way delay; the sender keeps
    /// what it sent this long. 0 to 60 s; librist's default is 1 s.
    pub latency: Duration,
    /// The secret; without one, media goes in clear and encrypted media is refused. It asks for the main profile.
    pub secret: Option<Secret>,
    /// Length of the keys that a sender makes, and of those of senders that do not say it.
    pub key_length: KeyLength,
    /// The profile that a sender speaks; a receiver speaks both.
    pub profile: Profile,
    /// How long a packet may be overtaken before it is asked for again. It grows by itself to what the network needs.
    pub reordering: Duration,
    /// Silence after which a stream, or a receiver, is gone.
    pub idle: Duration,
    /// Packets that are kept, at most 32,768.
    pub buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            latency: Duration::from_secs(1),
            secret: None,
            key_length: KeyLength::Aes128,
            profile: Profile::Simple,
            reordering: Duration::from_millis(5),
            idle: Duration::from_secs(5),
            buffer: 25_600,
        }
    }
}

/// What we are called.
const NAME: &str = "braidcast";
/// Time between reports (TR-06-1 §5.2.1 has 100 ms at most).
const REPORTS: Duration = Duration::from_millis(100);
/// Time between questions for the round trip.
const ECHOES: Duration = Duration::from_millis(500);
/// Round trips that are believed.
const LONGEST_ECHO: Duration = Duration::from_secs(10);
/// Datagrams and events that wait to be fetched.
const WAITING: usize = 512;
/// The bit of a source that says that a packet is sent again (TR-06-1 §5.3.3).
const AGAIN: u32 = 1;

/// A time as RTCP has it, in units of 2⁻³² s.
fn stamp(now: braidcast_core::Instant) -> u64 {
    ((u128::from(now.as_nanos()) << 32) / 1_000_000_000) as u64
}
