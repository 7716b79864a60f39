use super::asconf::Reconfiguration;
use super::fec::Fec;
use super::stream_changes::StreamChanges;
use crate::addresses::Addresses;
use crate::api::Options;
use crate::auth::AuthKeys;
use crate::capabilities::{Agreed, Offer};
use crate::cookie::Cookie;
use crate::rx::{Limits, Tracker};
use crate::tx::Ledger;
use crate::wire::Times;
use crate::wire::chunk::Init;
use braidcast_core::Instant;
use braidcast_secure::{Role, Transcript};

/// Which records may go without checksum: those to who said that it takes them (RFC 9653 §5.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct ZeroChecksum {
    /// We said so.
    pub(super) taken: bool,
    /// The peer did.
    pub(super) sent: bool,
}

impl ZeroChecksum {
    const fn new(ours: &Offer, theirs: &Offer) -> Self {
        Self { taken: ours.zero_checksum, sent: theirs.zero_checksum }
    }
}

/// What INIT and INIT ACK settle for an association, and what it begins with.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) peer_tag: u32,
    pub(super) peer_addresses: Addresses,
    pub(super) agreed: Agreed,
    pub(super) zero_checksum: ZeroChecksum,
    pub(super) auth: Option<AuthKeys>,
    /// Our role in the key handshake, if the association is to be protected, and what keys depend on.
    pub(super) keys: Option<(Role, Transcript)>,
    pub(super) outbound_streams: u16,
    inbound_streams: u16,
    local_initial_tsn: u32,
    peer_initial_tsn: u32,
    /// Bytes that the peer has room for at first.
    peer_window: usize,
}

impl Settled {
    /// We sent INIT with `initial_tsn` and `offer`, and the peer `init_ack` with `peer_offer`.
    pub(super) fn by_init_ack(
        options: &Options,
        (initial_tsn, offer): (u32, &Offer),
        (init_ack, peer_offer): (&Init<'_>, &Offer),
        bound: [u8; 16],
    ) -> Self {
        Self {
            peer_tag: init_ack.initiate_tag,
            peer_addresses: Addresses::of_peer(options, init_ack.parameters),
            agreed: Agreed::new(offer, peer_offer),
            zero_checksum: ZeroChecksum::new(offer, peer_offer),
            auth: AuthKeys::new(offer, peer_offer, &options.key),
            keys: offer.agree_on_keys(peer_offer, bound).ok().flatten(),
            outbound_streams: options.limits.streams.min(init_ack.inbound_streams),
            inbound_streams: options.limits.streams.min(init_ack.outbound_streams),
            local_initial_tsn: initial_tsn,
            peer_initial_tsn: init_ack.initial_tsn,
            peer_window: init_ack.a_rwnd as usize,
        }
    }

    /// The peer sent INIT and we INIT ACK, which `cookie` remembers.
    pub(super) fn by_cookie(options: &Options, cookie: &Cookie) -> Self {
        Self {
            peer_tag: cookie.peer_tag,
            peer_addresses: cookie.peer_addresses,
            agreed: Agreed::new(&cookie.local_offer, &cookie.peer_offer),
            zero_checksum: ZeroChecksum::new(&cookie.local_offer, &cookie.peer_offer),
            auth: AuthKeys::new(&cookie.local_offer, &cookie.peer_offer, &options.key),
            keys: cookie.local_offer.agree_on_keys(&cookie.peer_offer, cookie.bound).ok().flatten(),
            outbound_streams: cookie.outbound_streams,
            inbound_streams: cookie.inbound_streams,
            local_initial_tsn: cookie.local_initial_tsn,
            peer_initial_tsn: cookie.peer_initial_tsn,
            peer_window: cookie.peer_a_rwnd as usize,
        }
    }

    pub(super) fn ledger(&self, options: &Options) -> Ledger {
        Ledger::new(options, self.local_initial_tsn, self.peer_window)
    }

    pub(super) fn tracker(&self) -> Tracker {
        Tracker::new(self.peer_initial_tsn)
    }

    pub(super) const fn receive_limits(&self, options: &Options) -> Limits {
        // What a message carries of times is not the application's.
        let times = if self.agreed.timed { Times::LEN } else { 0 };
        Limits {
            streams: self.inbound_streams,
            interleaving: self.agreed.interleaving,
            max_message: options.limits.max_message + times,
        }
    }

    pub(super) fn reconfiguration(&self, now: Instant, options: &Options) -> Reconfiguration {
        let listed = options.local_addresses.first().copied();
        Reconfiguration::new(now, self.local_initial_tsn, self.peer_initial_tsn, listed)
    }

    /// What changes of streams begin with, if both ends agreed on them.
    pub(super) fn stream_changes(&self) -> Option<Box<StreamChanges>> {
        let changes = || Box::new(StreamChanges::new(self.local_initial_tsn, self.peer_initial_tsn));
        self.agreed.reconfiguration.then(changes)
    }

    /// The code, if both ends agreed on redundancy.
    pub(super) fn fec(&self, options: &Options, ledger: &Ledger, tracker: &Tracker) -> Option<Box<Fec>> {
        let (local, peer) = (ledger.next_tsn(), tracker.cumulative().next());
        let fec = || Box::new(Fec::new(options, self.agreed.interleaving, local, peer, self.peer_window));
        self.agreed.redundancy.then(fec)
    }
}
