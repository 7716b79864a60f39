//! How the datagrams of a flow wait to be sent: as the user said, or by a guess (decision 12).

use braidcast_core::Instant;
use braidcast_dccp::Priority;
use std::time::Duration;

/// A datagram longer than this is none of audio. Speech by any codec, and RTCP, is shorter;
/// frames fill their packets.
const LONG: usize = 400;
/// A flow that sent nothing long for this time is taken for audio again.
const MEMORY: Duration = Duration::from_secs(10);
/// What a call's datagrams have until they must be there (SBPN §4.6.1).
const CALL: Duration = Duration::from_millis(200);

/// What the user said of the flows of a port; the tunnel decides the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Class {
    /// How important they are; `None`: by the length of their datagrams.
    pub priority: Option<Priority>,
    /// From application to application; `None`: [`Settings::lifetime`](super::Settings).
    pub lifetime: Option<Duration>,
}

impl Class {
    /// Kinds of flows by name, with their priorities; each has 200 ms to get there.
    pub const KINDS: [(&'static str, u8); 2] = [("audio", 0), ("video", 1)];

    /// The class of the kind `name`, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        let (_, level) = Self::KINDS.into_iter().find(|(known, _)| *known == name)?;
        Some(Self { priority: Priority::new(level).ok(), lifetime: Some(CALL) })
    }
}

/// `true` if a flow is audio, as far as the lengths of its datagrams tell.
///
/// One verdict for all datagrams of a flow, not one for each: the short last packet of a frame
/// must not overtake the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess {
    last_long: Option<Instant>,
}

impl Guess {
    /// A datagram of `bytes` came from the application.
    pub(super) fn note(&mut self, now: Instant, bytes: usize) {
        if bytes > LONG {
            self.last_long = Some(now);
        }
    }

    /// The priority of audio, or of frames.
    pub(super) fn priority(self, now: Instant) -> Priority {
        let is_sound = self.last_long.is_none_or(|at| now.since(at) > MEMORY);
        let kind = if is_sound { "audio" } else { "video" };
        Class::named(kind).and_then(|class| class.priority).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_a_priority_and_the_time_of_a_call() {
        let [audio, video] = ["audio", "video"].map(|name| Class::named(name).unwrap());
        assert!(audio.priority < video.priority);
        assert_eq!((audio.lifetime, video.lifetime), (Some(CALL), Some(CALL)));
        assert_eq!(Class::named("smell"), None);
    }

    #[test]
    fn a_flow_is_pictures_as_long_as_some_of_its_datagrams_are_long() {
        let (mut guess, at) = (Guess::default(), Instant::from_millis);
        let mut priority = |ms, bytes| {
            guess.note(at(ms), bytes);
            guess.priority(at(ms)).get()
        };
        assert_eq!(priority(0, 172), 0, "G.711");
        assert_eq!(priority(20, 30), 0, "a frame's parameters");
        assert_eq!(priority(20, 1200), 1, "the frame");
        assert_eq!(priority(20, 90), 1, "and its end");
        assert_eq!(priority(10_020, 90), 1);
        assert_eq!(priority(10_021, 90), 0);
    }
}
