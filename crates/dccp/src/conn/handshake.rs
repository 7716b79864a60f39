use super::timers::Backoff;
use super::{Connection, Control, Ending, Phase, RateLimit, SYNCS_PER_SECOND};
use crate::ackvec::{AckWindow, ReplayWindow};
use crate::api::{Options, Stats, Wanted};
use crate::ccid::{Ccid, Setup};
use crate::feature::{Negotiation, Place, Preferences, number};
use crate::seq::Seq;
use crate::wire::option::Opt;
use crate::wire::{self, Checksum, Kind, Reset, ServiceCode};
use braidcast_core::{Instant, Rng, Route};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

/// What makes a connection that one and no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    pub(crate) route: Route,
    pub(crate) checksum: Checksum,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) service: ServiceCode,
    /// The number of our first packet.
    pub(crate) iss: Seq,
}

/// First pause between Requests (RFC 4340 §8.1.1).
const REQUEST_RETRY: Duration = Duration::from_secs(1);
/// First pause between Acks in PARTOPEN (RFC 4340 §8.1.5).
pub(super) const PARTOPEN_RETRY: Duration = Duration::from_millis(200);
/// Numbers that a server skips that kept no state: Responses to repeated Requests have taken them.
/// Requests are repeated after 1, 3, 7 and 15 s, so this is enough for a round trip of 15 s.
const RESPONSES_WITHOUT_STATE: u64 = 4;

impl Connection {
    /// A client in REQUEST (RFC 4340 §8.1.1).
    pub(crate) fn connect(now: Instant, options: Arc<Options>, rng: Rng, handshake: Handshake) -> Self {
        let phase = Phase::Request { retry: Backoff::new(now, REQUEST_RETRY), give_up: now + options.request_timeout };
        let mut it = Self::new(now, options, rng, handshake, false, phase);
        it.ask();
        it.control(Control::Request);
        it
    }

    /// A server in RESPOND: the Request `request` with these options has come (RFC 4340 §8.5 step 3).
    ///
    /// # Errors
    /// The Reset that answers the Request, if an option of it calls for one.
    pub(crate) fn respond(
        now: Instant,
        options: Arc<Options>,
        rng: Rng,
        handshake: Handshake,
        request: Seq,
        features: &wire::Options<'_>,
    ) -> Result<Self, Reset> {
        let phase = Phase::Respond { give_up: now + options.handshake_timeout, cookie: Vec::new() };
        let mut it = Self::new(now, options, rng, handshake, true, phase);
        it.numbers.begin_receiving(request);
        it.replay.insert(request);
        it.take_features(now, request, features)?;
        it.protection.iter_mut().for_each(|protection| protection.bind(handshake.service, features));
        it.ask();
        Ok(it)
    }

    /// Queues the Response to the Request that began this, of `most` bytes at most.
    pub(crate) fn answer_request(&mut self, refused_data: bool, most: usize) {
        self.control(Control::Response { refused_data, most });
    }

    /// The Init Cookie for the Response.
    pub(crate) fn set_cookie(&mut self, bytes: Vec<u8>) {
        if let Phase::Respond { cookie, .. } = &mut self.phase {
            *cookie = bytes;
        }
    }

    /// A server whose client has brought its Init Cookie back: the Response left long ago.
    pub(crate) fn revive(&mut self, now: Instant) {
        let mut response = Vec::new();
        self.respond_to_request(now, false, usize::MAX, &mut response);
        self.handshake_sent.clear();
        for _ in 0..RESPONSES_WITHOUT_STATE {
            self.numbers.take();
        }
    }

    /// Writes the Response (RFC 4340 §8.5 step 11), of `most` bytes at most.
    pub(crate) fn respond_to_request(&mut self, now: Instant, refused_data: bool, most: usize, buf: &mut Vec<u8>) {
        self.build(now, &Control::Response { refused_data, most }, buf);
    }

    fn new(now: Instant, options: Arc<Options>, mut rng: Rng, it: Handshake, is_server: bool, phase: Phase) -> Self {
        let ccid = options.ccids.first().copied().unwrap_or_default();
        let setup = Setup {
            now,
            packet_size: options.max_packet,
            rtt: None,
            short_seqnos: options.short_seqnos,
            cc: options.cc,
            tfrc: options.tfrc,
        };
        let mut features = Negotiation::new(is_server);
        prefer(&mut features, &options);
        Self {
            protection: super::protect::Protection::new(&options, is_server, &mut rng),
            replay: ReplayWindow::new(options.sequence_window),
            rng,
            route: it.route,
            checksum: it.checksum,
            local_port: it.local_port,
            remote_port: it.remote_port,
            service: it.service,
            is_server,
            phase,
            ending: Ending::No,
            numbers: super::Numbers::new(it.iss),
            features,
            acks: AckWindow::default(),
            sender: ccid.sender(&setup),
            sending: ccid,
            receiver: ccid.receiver(&setup),
            receiving: ccid,
            queue: super::SendQueue::new(options.queue, options.send_queue),
            reorder: options.reorder.map(super::ReorderBuffer::new),
            inbox: super::Inbox::default(),
            controls: VecDeque::new(),
            events: VecDeque::new(),
            told: Default::default(),
            sync_limit: RateLimit::new(SYNCS_PER_SECOND),
            opened: None,
            handshake_sent: Vec::new(),
            handshake_rtt: None,
            newest_at: now,
            last_valid: now,
            echo: None,
            ndp_run: 0,
            probed: false,
            path_size: super::PathSize::new(now, &options),
            pace: None,
            ratio_pause: now,
            slow: false,
            wanted: Wanted::default(),
            listening: true,
            peer_is_slow: false,
            peer_listens: true,
            asked_anew: false,
            wants_room: false,
            delay: super::Delay::default(),
            moving: None,
            authentic: false,
            stats: Stats::default(),
            options,
        }
    }

    /// Asks for what our options want and is not so yet. A server does so after it has answered what the client asks.
    fn ask(&mut self) {
        let features = &mut self.features;
        // Who cannot do with CCID 2 must say so as mandatory, before anything is sent by it (RFC 4340 §10).
        let mandatory = !self.options.ccids.contains(&Ccid::Two);
        for place in [Place::Local, Place::Remote] {
            features.ask(place, number::CCID, mandatory);
            if self.options.ccids.iter().any(|ccid| ccid.needs_ack_vector()) {
                features.ask(place, number::SEND_ACK_VECTOR, false);
            }
        }
        if self.options.tfrc.ask_loss_event_rate && self.options.ccids.iter().any(|ccid| ccid.is_tfrc()) {
            features.ask(Place::Remote, number::SEND_LOSS_EVENT_RATE, false);
        }
        features.tell(number::SEQUENCE_WINDOW, self.options.sequence_window);
        features.ask(Place::Local, number::ALLOW_SHORT_SEQNOS, false);
        features.ask(Place::Local, number::ECN_INCAPABLE, true); // §12.1
        features.ask(Place::Remote, number::SEND_NDP_COUNT, false);
        features.ask(Place::Local, number::MIN_COVERAGE, false);
        features.ask(Place::Remote, number::CHECK_DATA_CHECKSUM, true); // §9.3.1
    }

    /// Takes the options of a Request: only features outlive the Response, and of the rest a Timestamp is echoed in it.
    fn take_features(&mut self, now: Instant, seq: Seq, options: &wire::Options<'_>) -> Result<(), Reset> {
        let mut any = false;
        for listed in options.iter() {
            let Ok(listed) = listed else { return Err(dangling()) };
            match listed.parse() {
                Some(Opt::Feature(option)) => {
                    self.features.receive(seq, None, &option, listed.mandatory)?;
                    any = true;
                }
                Some(Opt::Timestamp(stamp)) => self.echo = Some((stamp, self.newest_at)),
                None if listed.mandatory => return Err(not_understood(&listed)),
                _ => {}
            }
        }
        if any {
            self.features.end_of_packet(seq);
        }
        self.apply_features(now);
        Ok(())
    }

    /// Step 10: the Response has come.
    pub(super) fn part_open(&mut self, now: Instant, cookie: Vec<u8>) {
        self.phase = Phase::PartOpen {
            // Beyond a round trip: what comes sooner is no answer to what was lost.
            retry: Backoff::new(now, self.handshake_rtt.map_or(PARTOPEN_RETRY, |rtt| PARTOPEN_RETRY.max(rtt * 3 / 2))),
            give_up: now + self.options.handshake_timeout,
            cookie,
        };
    }

    /// The round trip of the handshake: `ack` says which of our packets was answered.
    pub(super) fn measure_handshake(&mut self, now: Instant, ack: Option<Seq>) {
        let which = ack.map(|ack| self.numbers.iss.distance_to(ack)).and_then(|n| usize::try_from(n).ok());
        if let Some(&sent) = which.and_then(|n| self.handshake_sent.get(n)) {
            self.set_handshake_rtt(now, now.since(sent));
        }
        self.handshake_sent = Vec::new();
    }

    pub(super) fn set_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        self.handshake_rtt = Some(rtt);
        self.sender.on_handshake_rtt(now, rtt);
        self.note_rtt(now);
        self.pace = None;
    }

    /// Rebuilds what depends on features that were just negotiated.
    pub(super) fn apply_features(&mut self, now: Instant) {
        let setup = Setup {
            now,
            packet_size: self.options.max_packet,
            rtt: self.rtt(),
            short_seqnos: self.options.short_seqnos,
            cc: self.options.cc,
            tfrc: self.options.tfrc,
        };
        let ccid = |features: &Negotiation, place| Ccid::from_number(features.value(place, number::CCID) as u8);
        if let Some(sending) = ccid(&self.features, Place::Local).filter(|&ccid| ccid != self.sending) {
            self.sender = sending.sender(&setup);
            self.sender.set_wanted(self.wanted);
            self.sending = sending;
        }
        if let Some(receiving) = ccid(&self.features, Place::Remote).filter(|&ccid| ccid != self.receiving) {
            self.receiver = receiving.receiver(&setup);
            self.receiving = receiving;
        }
        self.receiver.set_ack_ratio(self.features.value(Place::Remote, number::ACK_RATIO) as u16);
        self.replay.widen(self.features.value(Place::Remote, number::SEQUENCE_WINDOW) / 4);
        // So many that the peer would take the last of them for valid if all others were lost.
        self.sender.limit(self.features.value(Place::Local, number::SEQUENCE_WINDOW) / 2);
    }

    /// Returns `true` if the state is one in which data and acknowledgements flow.
    pub(super) const fn transfers(&self) -> bool {
        matches!(self.phase, Phase::PartOpen { .. } | Phase::Open)
    }

    /// Returns `true` if all that must be agreed on before data is sent has been (RFC 4341 §4, RFC 4340 §10).
    pub(super) fn may_send_data(&self) -> bool {
        self.transfers()
            && self.features.is_stable(Place::Local, number::CCID)
            && (!self.sending.needs_ack_vector() || self.features.value(Place::Remote, number::SEND_ACK_VECTOR) == 1)
    }

    /// The peer refuses what our congestion control cannot do without (RFC 4341 §4).
    pub(super) fn lacks_ack_vectors(&self) -> bool {
        matches!(self.phase, Phase::Open)
            && self.sending.needs_ack_vector()
            && self.features.is_stable(Place::Remote, number::SEND_ACK_VECTOR)
            && self.features.value(Place::Remote, number::SEND_ACK_VECTOR) == 0
    }

    /// §12.1: who cannot read ECN bits takes no data before the peer knows.
    pub(super) fn may_take_data(&self) -> bool {
        self.options.ecn || self.features.value(Place::Local, number::ECN_INCAPABLE) == 1
    }
}

/// What we answer and ask for, by feature.
fn prefer(features: &mut Negotiation, options: &Options) {
    let ccids: Vec<u8> = options.ccids.iter().map(|ccid| ccid.number()).collect();
    let one_or_none = |wanted: bool| Preferences::new(if wanted { &[1, 0] } else { &[0, 1] });
    let only = |value: bool| Preferences::new(&[u8::from(value)]);
    let vectors = options.ccids.iter().any(|ccid| ccid.needs_ack_vector());
    for place in [Place::Local, Place::Remote] {
        features.prefer(place, number::CCID, Preferences::new(&ccids));
        features.prefer(place, number::SEND_ACK_VECTOR, one_or_none(vectors));
        features.prefer(place, number::CHECK_DATA_CHECKSUM, one_or_none(false));
    }
    features.prefer(Place::Local, number::ALLOW_SHORT_SEQNOS, only(options.short_seqnos));
    features.prefer(Place::Remote, number::ALLOW_SHORT_SEQNOS, one_or_none(false));
    features.prefer(Place::Local, number::ECN_INCAPABLE, only(!options.ecn));
    features.prefer(Place::Remote, number::ECN_INCAPABLE, one_or_none(false));
    features.prefer(Place::Local, number::SEND_NDP_COUNT, one_or_none(false));
    features.prefer(Place::Local, number::SEND_LOSS_EVENT_RATE, one_or_none(false));
    let told = if options.tfrc.ask_loss_event_rate { only(true) } else { one_or_none(false) };
    features.prefer(Place::Remote, number::SEND_LOSS_EVENT_RATE, told);
    // Nothing but 1, as a server's [0, 1] would win against [1, 0].
    let counts = if options.ndp_count { only(true) } else { one_or_none(false) };
    features.prefer(Place::Remote, number::SEND_NDP_COUNT, counts);
    if options.data_checksum {
        features.prefer(Place::Remote, number::CHECK_DATA_CHECKSUM, only(true));
    }
    features.prefer(Place::Local, number::MIN_COVERAGE, Preferences::new(&[options.min_coverage]));
    // As to what the peer accepts, any answer will do.
    features.prefer(Place::Remote, number::MIN_COVERAGE, Preferences::new(&[0, 1, 2, 3, 4, 5, 6, 7]));
}

/// Mandatory without an option after it (RFC 4340 §5.8.2).
pub(super) fn dangling() -> Reset {
    Reset::option(wire::ResetCode::OPTION_ERROR, wire::option::kind::MANDATORY, &[])
}

/// A mandatory option that is not understood (RFC 4340 §5.8.2).
pub(super) fn not_understood(listed: &wire::option::Listed<'_>) -> Reset {
    Reset::option(wire::ResetCode::MANDATORY_ERROR, listed.raw.kind, listed.raw.value)
}

/// The options of a Request that came in an Init Cookie.
pub(crate) const fn options_of_request(bytes: &[u8], service: ServiceCode) -> wire::Options<'_> {
    wire::Options::new(bytes, Kind::Request { service })
}
