use super::received::Received;
use super::{Connection, Phase, handshake};
use crate::wire::option::{DropCode, from_units, kind};
use crate::wire::{Kind, Opt, Packet, Reset};
use braidcast_core::Instant;
use core::time::Duration;

/// What options of one packet are of use later on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub(super) ndp_count: Option<u64>,
    /// Options that are read again where they are used, if there are any.
    pub(super) vectors: bool,
    pub(super) dropped: bool,
    checksum: bool,
}

impl Connection {
    /// Step 8 of RFC 4340 §8.5: the options, one after the other.
    ///
    /// # Errors
    /// The Reset that ends the connection.
    pub(super) fn take_options(&mut self, now: Instant, it: &Received<'_>) -> Result<Found, Reset> {
        let (mut found, mut features, mut slow) = (Found::default(), false, false);
        for listed in it.packet.options.iter() {
            let Ok(listed) = listed else { return Err(handshake::dangling()) };
            match listed.parse() {
                Some(Opt::Feature(option)) => {
                    self.features.receive(it.seq, it.ack, &option, listed.mandatory)?;
                    features = true;
                }
                Some(Opt::SlowReceiver) => slow = true,
                Some(Opt::NdpCount(count)) => found.ndp_count = Some(count),
                Some(Opt::Timestamp(stamp)) => self.echo = Some((stamp, now)),
                Some(Opt::TimestampEcho { echo, elapsed }) => self.take_echo(now, echo, elapsed),
                Some(Opt::Ccid(raw)) => {
                    let understood = if raw.kind >= kind::CCID_RECEIVER_FIRST {
                        self.sender.understands(raw)
                    } else {
                        self.receiver.understands(raw)
                    };
                    if listed.mandatory && !understood {
                        return Err(handshake::not_understood(&listed));
                    }
                }
                Some(Opt::AckVector(_)) => found.vectors = true,
                Some(Opt::DataDropped(_)) => found.dropped = true,
                Some(Opt::DataChecksum(_)) => found.checksum = true,
                // Cookies are for the endpoint and REQUEST, Elapsed Time for the CCID.
                Some(Opt::ElapsedTime(_) | Opt::InitCookie(_) | Opt::Protection(_)) => {}
                None if listed.mandatory => return Err(handshake::not_understood(&listed)),
                None => {}
            }
        }
        if features {
            self.features.end_of_packet(it.seq);
            self.apply_features(now);
        }
        self.after_options(now, it, slow, found);
        Ok(found)
    }

    fn after_options(&mut self, now: Instant, it: &Received<'_>, slow: bool, found: Found) {
        if slow {
            self.sender.on_slow_receiver(now);
        }
        if it.ack.is_some() {
            self.peer_is_slow = slow;
        }
        // §11.7.2: once the peer's application listens no longer it never will again.
        let deaf = |code| code == Some(DropCode::NotListening);
        if found.dropped && self.peer_listens && it.packet.options.dropped_runs().any(|run| deaf(run.code)) {
            self.peer_listens = false;
            self.queue.clear();
        }
        // §9.3: packets without data are checked as well.
        let carries_data = matches!(it.kind, Kind::Data | Kind::DataAck { .. });
        if found.checksum && !carries_data && !checksum_is_right(it.packet) {
            self.acks.dropped(it.seq, DropCode::Corrupt);
        }
    }

    /// Our Response carried a Timestamp: a server without state learns the round-trip time from its echo.
    fn take_echo(&mut self, now: Instant, echo: u32, elapsed: u32) {
        /// Longer ones are forged, or from another life.
        const LONGEST: Duration = Duration::from_secs(60);
        let passed = from_units(((now.as_micros() / 10) as u32).wrapping_sub(echo));
        let rtt = passed.saturating_sub(from_units(elapsed));
        if self.handshake_rtt.is_none() && rtt < LONGEST && !matches!(self.phase, Phase::Request { .. }) {
            self.set_handshake_rtt(now, rtt);
        }
    }
}

/// Returns `true` if the data matches its Data Checksum, if there is one (RFC 4340 §9.3).
pub(super) fn checksum_is_right(packet: &Packet<'_>) -> bool {
    packet.options.known().all(|option| match option {
        Opt::DataChecksum(sum) => crc_fast::crc32_iscsi(packet.payload) == sum,
        _ => true,
    })
}
