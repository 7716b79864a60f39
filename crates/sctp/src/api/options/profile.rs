//! What an association is for: the presets that every front end uses.

use super::Options;
use crate::api::{Artx, FecLosses, FecWindow};
use braidcast_cc::Algorithm;
use braidcast_core::named;
use braidcast_mpath::SchedulerKind;
use braidcast_queue::Method;
use core::time::Duration;

/// What an association is for. [`Options::of`] has the transport for each; the command line, the
/// socket, its C and Python libraries and GStreamer's elements begin with nothing else.
///
/// | | window | path of a packet | queue | what is lost |
/// |---|---|---|---|---|
/// | `live` | `live` | `earliest-delivery` | `by-worth` | redundancy, or copied before it is late |
/// | `bulk` | `veno` | `lowest-delay` | none | repeated |
/// | `voice` | `live` | `earliest-delivery` | `in-time` | redundancy, or copied before it is late |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Video with audio, and other messages with deadlines, of any size (decision 19).
    #[default]
    Live,
    /// Files and whatever else must arrive, however late: a window that leaves room for others, and
    /// no redundancy.
    Bulk,
    /// Voice, games, control: small messages with deadlines of some 100 ms, the packets of a frame
    /// handed over at once.
    Voice,
}

named! {
    /// All, by the name that command line and scenarios use.
    Profile, "profile" {
        "live" => Live,
        "bulk" => Bulk,
        "voice" => Voice,
    }
}

/// Least retransmission timeout where redundancy is taken: a hole stands open for two round trips
/// while a code has its time, and the path is not silent because of it. T3-rtx waits by itself, but
/// the probe timeout is the RTO at most.
const RTO_WITH_CODE: Duration = Duration::from_millis(600);

impl Options {
    /// Returns the transport for `profile`.
    ///
    /// All have [quick timers](Self::prompt) and a handshake over all networks at once that is
    /// repeated each second for 20 s. `Live` and
    /// `Voice` take redundancy from peers, and send some if a [`RedundancyChooser`](crate::RedundancyChooser) says so.
    pub fn of(profile: Profile) -> Self {
        let mut it = Self::prompt();
        it.timers.open_over_all = Some(Duration::from_secs(1));
        it.timers.max_init_retransmits = 20;
        let queue = match profile {
            Profile::Bulk => return it,
            Profile::Live => Method::ByWorth,
            Profile::Voice => Method::InTime,
        };
        it.paths.scheduler = SchedulerKind::EarliestDelivery;
        it.congestion.algorithm = Algorithm::Live;
        it.queue.method = Some(queue);
        // Half of the send buffer is the queue.
        it.limits.send_buffer *= 2;
        it.redundancy.reinject = true;
        it.allow_for_redundancy();
        it
    }

    /// Returns the profile that these options are of, or `None` if something was changed besides
    /// who may connect, how much is held, how long is waited for a peer, and who is told.
    pub fn profile(&self) -> Option<Profile> {
        let is_of = |profile: &Profile| {
            let mut it = Self::of(*profile);
            it.local_port = self.local_port;
            it.key.clone_from(&self.key);
            it.local_addresses.clone_from(&self.local_addresses);
            it.security.clone_from(&self.security);
            it.events.clone_from(&self.events);
            it.limits.clone_from(&self.limits);
            it.timers.give_up = self.timers.give_up;
            // Each field has its name there, those to come too.
            format!("{it:?}") == format!("{self:?}")
        };
        Profile::ALL.map(|(_, profile)| profile).into_iter().find(is_of)
    }

    /// For live media: [`Profile::Live`].
    pub fn live() -> Self {
        Self::of(Profile::Live)
    }

    /// For files: [`Profile::Bulk`].
    pub fn bulk() -> Self {
        Self::of(Profile::Bulk)
    }

    /// For voice: [`Profile::Voice`].
    pub fn voice() -> Self {
        Self::of(Profile::Voice)
    }

    /// What goes with redundancy, be it sent or not at the moment: repetitions wait for it, windows
    /// do not count it, losses that it made up for slow down only where queues are full, and
    /// timeouts leave it its time.
    pub fn allow_for_redundancy(&mut self) {
        let redundancy = &mut self.redundancy;
        redundancy.fec_receive = true;
        // A code is in use where repeating is too late anyway.
        redundancy.artx = Some(Artx::Slowest);
        // As ECMT has it: inside, the windows that live video leaves are a little small for its
        // largest frames (decision 14).
        redundancy.fec_window = FecWindow::Outside;
        // Told of each loss, windows would not carry live video where it is needed most; of what
        // full queues drop they are told.
        redundancy.fec_losses = FecLosses::Queued;
        let rto = &mut self.timers.rto;
        (rto.min, rto.initial) = (rto.min.max(RTO_WITH_CODE), rto.initial.max(RTO_WITH_CODE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_works_and_is_known_again() {
        for (name, profile) in Profile::ALL {
            let options = Options::of(profile);
            assert_eq!(options.check(), Ok(()), "{name}");
            assert_eq!(options.profile(), Some(profile), "{name}");
            assert_eq!(options.with(|it| it.limits.streams = 8).profile(), Some(profile), "{name}");
            let changed = Options::of(profile).with(|it| it.redundancy.reinject = !it.redundancy.reinject);
            assert_eq!(changed.profile(), None, "{name}");
        }
        assert_eq!(Options::prompt().profile(), None);
    }
}
