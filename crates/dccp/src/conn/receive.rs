use super::moving::Move;
use super::protect::Opened;
use super::received::Received;
use super::{Connection, Control, Phase, options};
use crate::api::{CloseReason, State};
use crate::ccid::{Arrival, Feedback};
use crate::feature::{Place, number};
use crate::seq::{Seq, back, extend, later, within};
use crate::wire::{self, Header, Kind, Packet, Reset, ResetCode};
use braidcast_core::events::DccpEvent;
use braidcast_core::{Ecn, Instant, Reason, Route};
use braidcast_secure::{Content, Insecure, Opener};
use core::time::Duration;

impl Connection {
    /// Returns `true` if a packet from elsewhere looks like one of the peer's: it holds a record, and has a number that
    /// the peer could use now. If much got lost meanwhile, that is beyond the window.
    pub(crate) fn may_be_ours(&mut self, packet: &Packet<'_>) -> bool {
        let header = &packet.header;
        if !self.is_protected() || self.is_closed() || Opener::low_bits(packet.payload).is_none() {
            return false;
        }
        let (low, high) = (self.received_window().0, self.numbers.gsr.plus(Move::AHEAD));
        let seq = if header.short { extend(header.seq, self.numbers.gsr) } else { Seq::new(header.seq) };
        within(low, seq, high)
    }

    /// As [`handle_packet`](Self::handle_packet), of a packet that came over `route`, which need not be
    /// the connection's.
    pub(crate) fn handle_packet_from(&mut self, now: Instant, ecn: Ecn, route: Route, packet: &Packet<'_>) -> bool {
        if route != self.route && !self.may_be_ours(packet) {
            return false;
        }
        let newest = self.numbers.gsr;
        self.authentic = false;
        let taken = self.handle_packet(now, ecn, packet);
        let (header, len) = (&packet.header, packet.as_bytes().len());
        if route == self.route {
            let ack = header.kind.ack().filter(|_| self.authentic && self.moving.is_some());
            let full = |ack| if header.short { extend(ack, self.numbers.gss) } else { Seq::new(ack) };
            self.hear_there(route, ack.map(full), len);
        } else if self.authentic {
            let seq = if header.short { extend(header.seq, newest) } else { Seq::new(header.seq) };
            if seq > newest {
                // What was overtaken is of the time before the move (RFC 9000 §9.3).
                self.follow(now, route, len);
            }
            return true;
        }
        taken
    }

    /// Takes a packet of this connection that passed steps 1 and 2: the rest of RFC 4340 §8.5.
    /// Returns `true` if its numbers are those that only the peer knows.
    pub(crate) fn handle_packet(&mut self, now: Instant, ecn: Ecn, packet: &Packet<'_>) -> bool {
        self.stats.received_packets += 1;
        if matches!(self.phase, Phase::Closed { .. }) || !self.prepare_request_state(now, &packet.header) {
            return false;
        }
        if self.protection.is_none() {
            return self.handle_opened(now, ecn, packet, false);
        }
        let mut text = self.lent_text();
        let taken = match self.open_record(now, packet, &mut text) {
            Opened::Clear => self.handle_opened(now, ecn, packet, true),
            Opened::Record(content) => {
                self.authentic = true;
                let packet = packet.with_payload(&text);
                self.handle_opened(now, ecn, &packet, content == Content::Handshake)
            }
            Opened::Nothing => {
                self.stats.invalid_packets += 1;
                false
            }
        };
        self.return_text(text);
        taken
    }

    /// The same once nothing of it is encrypted any more. `keys`: what is data in it are key messages.
    fn handle_opened(&mut self, now: Instant, ecn: Ecn, packet: &Packet<'_>, keys: bool) -> bool {
        let Some(mut it) = self.check_numbers(now, ecn, packet) else { return false };
        it.keys = keys;
        if !self.replay.insert(it.seq) {
            self.stats.duplicates += 1;
            return false;
        }
        if self.is_unexpected(&it) {
            self.sync(now, it.seq); // step 7
            return false;
        }
        self.last_valid = now;
        self.take(now, &it);
        true
    }

    /// A packet with valid numbers.
    fn take(&mut self, now: Instant, it: &Received<'_>) {
        let (packet, taken_in) = (it.packet, self.transfers());
        if !self.process(now, it) {
            return;
        }
        self.tell_packet(now, false, (it.seq, it.kind), packet.payload.len());
        self.advance(now, it, taken_in);
        if it.keys && matches!(it.kind, Kind::Data | Kind::DataAck { .. }) {
            self.take_key_messages(now, packet.payload);
        }
        if self.lacks_ack_vectors() {
            let change = wire::option::kind::CHANGE_R;
            return self.violated(Reset::option(ResetCode::OPTION_ERROR, change, &[number::SEND_ACK_VECTOR]));
        }
        self.end_when_sent(now);
    }

    /// Step 4: in REQUEST only a Response or Reset that answers a Request of ours is welcome.
    fn prepare_request_state(&mut self, now: Instant, header: &Header) -> bool {
        if !matches!(self.phase, Phase::Request { .. }) {
            return true;
        }
        let seq = Seq::new(header.seq);
        let (low, high) = self.sent_window();
        let answers = header.kind.ack().is_some_and(|ack| within(low, Seq::new(ack), high));
        match header.kind {
            Kind::Response { service, .. } if answers && service == self.service => {
                self.numbers.begin_receiving(seq);
                true
            }
            Kind::Reset { .. } if answers => {
                // So that it passes step 6, which wants a number above GSR.
                self.numbers.begin_receiving(back(seq, 1));
                true
            }
            _ => {
                if !matches!(header.kind, Kind::Reset { .. }) && self.sync_limit.allow(now) {
                    // We do not know the peer's numbers, so the packet's are used (§7.5.4, §8.3.1).
                    let number = Seq::new(header.kind.ack().map_or(0, |ack| ack + 1));
                    let reset = Reset::packet_error(header.kind.code());
                    self.control(Control::ForeignReset { reset, seq: number, ack: seq });
                }
                false
            }
        }
    }

    fn sent_window(&mut self) -> (Seq, Seq) {
        self.numbers.sent_window(self.features.value(Place::Local, number::SEQUENCE_WINDOW))
    }

    pub(super) fn received_window(&mut self) -> (Seq, Seq) {
        self.numbers.received_window(self.features.value(Place::Remote, number::SEQUENCE_WINDOW))
    }

    /// Steps 5 and 6: are the numbers valid? Answers with a Sync if they are not.
    fn check_numbers<'a>(&mut self, now: Instant, ecn: Ecn, packet: &'a Packet<'a>) -> Option<Received<'a>> {
        let header = &packet.header;
        let kind = header.kind;
        if header.short && self.features.value(Place::Remote, number::ALLOW_SHORT_SEQNOS) == 0 {
            return None;
        }
        let (seq, ack) = if header.short {
            (extend(header.seq, self.numbers.gsr), kind.ack().map(|ack| extend(ack, self.numbers.gss)))
        } else {
            (Seq::new(header.seq), kind.ack().map(Seq::new))
        };
        let (mut low, mut high) = self.received_window();
        let (mut ack_low, ack_high) = self.sent_window();
        match kind {
            Kind::Sync { .. } | Kind::SyncAck { .. } => {
                // Step 5: above the window too, to get back into step; but not while all goes well (§7.5.3).
                let far = seq > high && !self.is_active(now);
                if far && ack.is_some_and(|ack| within(ack_low, ack, ack_high)) {
                    high = seq;
                }
            }
            Kind::CloseReq { .. } | Kind::Close { .. } | Kind::Reset { .. } => {
                low = self.numbers.gsr.plus(1);
                ack_low = self.numbers.gar;
            }
            _ => {}
        }
        if within(low, seq, high) && ack.is_none_or(|ack| within(ack_low, ack, ack_high)) {
            self.numbers.received(seq);
            if let (Some(ack), false) = (ack, matches!(kind, Kind::Sync { .. })) {
                self.numbers.gar = later(self.numbers.gar, ack);
            }
            return Some(Received { packet, kind, seq, ack, ecn, keys: false });
        }
        self.stats.invalid_packets += 1;
        match kind {
            Kind::Sync { .. } | Kind::SyncAck { .. } => {} // §7.5.4: ignored
            Kind::Reset { .. } => self.sync(now, self.numbers.gsr),
            _ => self.sync(now, seq),
        }
        None
    }

    /// §7.5.3: valid packets came within the last three round trips.
    fn is_active(&self, now: Instant) -> bool {
        now.since(self.last_valid) < self.rtt_or_default() * 3
    }

    /// Step 7.
    fn is_unexpected(&self, it: &Received<'_>) -> bool {
        let late = self.numbers.osr.is_some_and(|osr| it.seq >= osr);
        match it.kind {
            Kind::CloseReq { .. } => self.is_server,
            Kind::Response { .. } => self.is_server || late,
            Kind::Request { .. } => !self.is_server || late,
            Kind::Data => matches!(self.phase, Phase::Respond { .. }),
            _ => false,
        }
    }

    /// Step 8 and congestion control; `false` if the connection did not survive an option.
    fn process(&mut self, now: Instant, it: &Received<'_>) -> bool {
        let previous = self.numbers.acknowledgeable;
        let found = match self.take_options(now, it) {
            Ok(found) => found,
            Err(reset) => {
                self.numbers.acknowledgeable = later(previous, it.seq);
                self.violated(reset);
                return false;
            }
        };
        if !self.reorders() {
            self.may_acknowledge(now, it.seq, it.ecn, found.ndp_count);
        }
        if let (Some(ack), false) = (it.ack, matches!(it.kind, Kind::Sync { .. })) {
            self.acks.acknowledged(ack);
        }
        self.control_congestion(now, it, found);
        true
    }

    fn control_congestion(&mut self, now: Instant, it: &Received<'_>, found: options::Found) {
        if let (Some(ack), false) = (it.ack, matches!(it.kind, Kind::Sync { .. } | Kind::SyncAck { .. })) {
            let options = it.packet.options;
            if found.vectors {
                self.forget_by_vector(ack, it);
            }
            let (has_vectors, has_dropped) = (found.vectors, found.dropped);
            self.sender.on_feedback(now, &Feedback { ack, options, has_vectors, has_dropped });
            if self.sender.take_measured() {
                self.note_rtt(now);
            }
            self.path_size.doubt(self.sender.losses());
            self.pace = None; // the rate may be another one now
        }
        if !self.transfers() {
            return;
        }
        self.steer_features(now);
        let (kind, payload) = (it.kind, it.packet.payload.len());
        let ndp_count = match self.features.value(Place::Remote, number::SEND_NDP_COUNT) {
            1 => Some(found.ndp_count.unwrap_or(0)),
            _ => found.ndp_count,
        };
        let arrival = Arrival {
            seq: it.seq,
            is_data: matches!(kind, Kind::Data | Kind::DataAck { .. }) || (kind.is_data() && payload > 0),
            payload,
            ccval: it.packet.header.ccval,
            ecn: it.ecn,
            ndp_count,
            rtt: self.rtt(),
        };
        self.sender.on_arrival(now, &arrival);
        self.take_in(now, it, arrival);
    }

    /// An Ack Vector may show that an acknowledgement of ours came, though a later packet of ours
    /// is the one acknowledged.
    fn forget_by_vector(&mut self, ack: Seq, it: &Received<'_>) {
        let mut high = ack;
        for run in it.packet.options.ack_vector_runs() {
            let low = back(high, u64::from(run.len) - 1);
            if run.state.arrived() && self.acks.acknowledged_between(low, high) {
                break;
            }
            high = back(low, 1);
        }
    }

    /// Features of ours that follow from how congestion control is doing.
    pub(super) fn steer_features(&mut self, now: Instant) {
        let stable = |it: &Self, number| it.features.is_stable(Place::Local, number);
        // §7.5.2: five times what is out in a round trip, acknowledgements included. Some CCIDs never acknowledge
        // those, so they count up to a limit only: a wide window is easier to hit (§7.5.5).
        let out = self.numbers.gar.distance_to(self.numbers.gss).min(4096);
        let wanted = self.sender.packets_per_rtt(now).max(out).saturating_mul(5);
        let window = self.features.value(Place::Local, number::SEQUENCE_WINDOW);
        if wanted > window && stable(self, number::SEQUENCE_WINDOW) {
            self.features.tell(number::SEQUENCE_WINDOW, (wanted * 2).min((1 << 46) - 1));
        }
        let told = self.features.told(number::ACK_RATIO);
        if let Some(ratio) = self.sender.ack_ratio().map(u64::from)
            && ratio != told
            // A ratio that is too high for a window that fell makes answers late. It falls once in a window by itself.
            && (ratio < told || (stable(self, number::ACK_RATIO) && now >= self.ratio_pause))
        {
            self.features.tell(number::ACK_RATIO, ratio);
            self.ratio_pause = now + (self.rtt_or_default() * 4).max(Duration::from_millis(200));
        }
    }

    /// Steps 9 to 16. Data that was taken in already is left out.
    fn advance(&mut self, now: Instant, it: &Received<'_>, taken_in: bool) {
        let was_request = matches!(self.phase, Phase::Request { .. });
        if matches!(it.kind, Kind::Reset { .. } | Kind::Close { .. }) {
            self.flush(now);
        }
        match it.kind {
            Kind::Reset { reset, .. } => return self.handle_reset(reset, it.packet.payload), // step 9
            Kind::Response { .. } => self.handle_response(now, it),                          // steps 10 and 12
            Kind::Request { .. } if matches!(self.phase, Phase::Respond { .. }) => {
                let most = self.route.longest_answer(it.packet.as_bytes().len());
                self.control(Control::Response { refused_data: !it.packet.payload.is_empty(), most }); // step 11
            }
            Kind::Request { .. } => {}
            kind => {
                self.open(now, kind, it);
                self.assure(kind);
            }
        }
        match it.kind {
            Kind::CloseReq { .. } if self.state() < State::CloseReq => self.closing(now), // step 13
            Kind::Close { .. } => {
                // Step 14.
                self.controls.clear();
                self.control(Control::Reset { reset: Reset::new(ResetCode::CLOSED), ack: it.seq });
                self.closed(CloseReason::Closed, false);
            }
            Kind::Sync { .. } => self.control(Control::SyncAck { ack: it.seq }), // step 15
            Kind::SyncAck { .. } => it.ack.into_iter().for_each(|ack| self.probe_answered(now, ack)),
            Kind::Data | Kind::DataAck { .. } if !taken_in && !it.keys => self.hand_over(it),
            Kind::Response { .. } if was_request && !it.packet.payload.is_empty() && !it.keys => self.hand_over(it),
            _ => {}
        }
    }

    /// Step 9.
    pub(super) fn handle_reset(&mut self, reset: Reset, text: &[u8]) {
        let said = Reason::parse(&text[..text.len().min(CloseReason::MAX_TEXT)]);
        // Of a client that has proved no key only those words count that are ours too.
        let stranger = self.is_server && !self.was_told() && !text.is_empty();
        let closing = matches!(self.phase, Phase::Closing { .. } | Phase::CloseReq { .. });
        let reason = if reset.code == ResetCode::CLOSED && (closing || text.is_empty()) {
            CloseReason::Closed
        } else if let Some(insecure) = Self::insecure(&reset, &said, stranger) {
            CloseReason::Insecure(insecure)
        } else {
            CloseReason::Reset(reset, Insecure::told_by_peer(&said, stranger).text)
        };
        self.controls.clear();
        // A peer that lost its state and asks anew resets our Sync; it would be refused for four
        // minutes (§7.5.6, last example).
        let asks_anew = reset.code == ResetCode::PACKET_ERROR && reset.data[0] == Kind::Sync { ack: 0 }.code();
        self.asked_anew = asks_anew;
        self.closed(reason, !asks_anew);
    }

    /// Steps 10 and 12 for a Response: PARTOPEN, and an Ack for it.
    fn handle_response(&mut self, now: Instant, it: &Received<'_>) {
        let cookie = || {
            let cookies = it.packet.options.known().filter_map(|option| match option {
                crate::wire::Opt::InitCookie(value) => Some(value),
                _ => None,
            });
            cookies.flatten().copied().collect::<Vec<u8>>()
        };
        match &mut self.phase {
            Phase::Request { .. } => {
                self.measure_handshake(now, it.ack);
                self.part_open(now, cookie());
                self.control(Control::Ack);
                self.established(now);
                self.answered(now, it.packet);
            }
            Phase::PartOpen { cookie: kept, .. } => {
                // §8.1.4: the cookie goes with the Response that is acknowledged.
                if it.seq == self.numbers.gsr {
                    *kept = cookie();
                }
                self.control(Control::Ack);
            }
            _ => {}
        }
    }

    /// Steps 11 and 12 for anything that is neither Request nor Response.
    fn open(&mut self, now: Instant, kind: Kind, it: &Received<'_>) {
        match self.phase {
            Phase::Respond { .. } => {
                self.measure_handshake(now, it.ack);
                self.established(now);
            }
            Phase::PartOpen { .. } if !matches!(kind, Kind::Sync { .. }) => {}
            _ => return,
        }
        self.numbers.osr = Some(it.seq);
        self.opened = Some(self.numbers.gss.plus(1));
        self.phase = Phase::Open;
        let (route, ccid) = (self.route, self.sending.number());
        self.tell(now, || DccpEvent::Opened { route, ccid });
    }

    /// A client stays in PARTOPEN, repeating its Ack, until it hears from OPEN (§8.1.5). A server
    /// with nothing to say answers those Acks until something that it sent from OPEN is
    /// acknowledged; in OPEN the client answers no Acks, so this ends.
    fn assure(&mut self, kind: Kind) {
        let Some(opened) = self.opened else { return };
        if self.is_server && self.numbers.gar < opened && matches!(kind, Kind::Ack { .. } | Kind::DataAck { .. }) {
            self.control(Control::Ack);
        }
    }
}
