use super::moving::Move;
use super::path_size::FILLING;
use super::protect::{FRAGMENT, LEAST_FRAGMENT};
use super::{Connection, Control, Phase};
use crate::api::State;
use crate::ccid::{Permit, Sent};
use crate::feature::{Place, number};
use crate::seq::Seq;
use crate::wire::option::{
    DataDropped, DropCode, DropRun, emit_data_checksum, emit_elapsed, emit_init_cookies, emit_ndp_count,
    emit_protection, emit_slow_receiver, emit_timestamp, emit_timestamp_echo, to_units,
};
use crate::wire::{Builder, Header, Kind, Packet};
use braidcast_core::{Ecn, Instant, Transmit};
use braidcast_secure::{Content, HEADER};

/// Bytes that options take besides Ack Vectors, cookies and features.
const COMMON_OPTIONS: usize = 40;
/// Bytes that may be handed out at once, as the kernel cuts no more than one IP packet's worth.
const MAX_BATCH: usize = 65_000;

impl Connection {
    /// The next packet, and after data more of the same size, to be handed to the kernel at once.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if self.is_held() {
            return None;
        }
        let mut ecn = self.next_packet(now, buf)?;
        while buf.is_empty() {
            ecn = self.next_packet(now, buf)?; // Its keys were used up: the connection ends.
        }
        self.spend(buf.len());
        let (size, mut segments, mut segment_size) = (buf.len(), 1, None);
        let plain = Header::is_plain_data(buf, self.data_header_len());
        // Whether a packet is the shorter one that must be the last shows in `buf`.
        while plain
            && self.moving.is_none()
            && segments < self.options.max_segments
            && buf.len() == segments * size
            && buf.len() + size <= MAX_BATCH
            && self.plain_data_len(now).is_some_and(|len| len <= size)
            && self.send_data(now, buf).is_some()
        {
            segments += 1;
            segment_size = Some(size);
        }
        Some(Transmit { route: self.route, ecn, segment_size })
    }

    /// Returns `true` if the next packet has to wait until more has come from where it goes.
    pub(super) fn is_held(&self) -> bool {
        let Some(it) = &self.moving else { return false };
        let longest = self.path_size.current() + self.route.headers();
        let next = match self.controls.front() {
            Some(Control::Sync { .. }) => Move::QUESTION,
            None if !self.has_key_messages() => {
                let around = 24 + self.ack_options_len() + self.framing() + self.route.headers();
                match (self.queue.len(), self.queue.next_len()) {
                    (0, _) => around + self.options.padding.as_ref().map_or(0, |it| it.len()),
                    (1, Some(len)) => around + len,
                    _ => longest, // Any of them may be chosen.
                }
            }
            _ => longest,
        };
        it.credit() < next.min(longest)
    }

    /// Length of the next packet if it is data and nothing else, all of which look the same but for length.
    fn plain_data_len(&self, now: Instant) -> Option<usize> {
        let with_ack = self.receiver.ack_due().is_some() || self.echo.is_some() || self.sender.wants_ack_of_ack();
        let plain = matches!(self.phase, Phase::Open)
            && self.controls.is_empty()
            && self.may_seal()
            && !self.has_key_messages()
            && !self.counts_ndp()
            && !with_ack
            && !self.features.is_due()
            && !self.options.ecn_nonce;
        if !plain {
            return None;
        }
        let header = self.data_header_len();
        self.certain_len(now).map(|len| header + self.framing() + len)
    }

    /// Bytes before the data of a packet that is data and nothing else.
    fn data_header_len(&self) -> usize {
        let header = if self.features.value(Place::Local, number::ALLOW_SHORT_SEQNOS) == 1 { 12 } else { 16 };
        header + if self.options.data_checksum { 8 } else { 0 }
    }

    /// Returns `true` if an NDP Count goes on the next packet.
    fn counts_ndp(&self) -> bool {
        self.ndp_run > 0 && (self.probed || self.features.value(Place::Local, number::SEND_NDP_COUNT) == 1)
    }

    /// First what is due in any case, then data, then acknowledgements.
    fn next_packet(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Ecn> {
        self.probe_path(now);
        let ecn = if let Some(control) = self.controls.pop_front() {
            self.build(now, &control, buf)
        } else if !self.transfers() {
            return None;
        } else if let Some(ecn) = self.send_key_messages(now, buf) {
            ecn
        } else if let Some(ecn) = self.send_data(now, buf) {
            ecn
        } else if self.is_ack_due(now) {
            self.build(now, &Control::Ack, buf)
        } else {
            self.end_when_sent(now);
            let control = self.controls.pop_front()?;
            self.build(now, &control, buf)
        };
        Some(ecn)
    }

    /// Sends a fragment of key messages, if congestion control lets one go. They go before all other data.
    fn send_key_messages(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Ecn> {
        if !self.has_key_messages() || !self.may_send_data() {
            return None;
        }
        let partly_open = matches!(self.phase, Phase::PartOpen { .. });
        let room = self.key_packet().saturating_sub(self.framing());
        let behind_ack = room.saturating_sub(24 + self.ack_options_len());
        let with_ack = behind_ack >= LEAST_FRAGMENT;
        if partly_open && !with_ack {
            return None; // Until the cookie is gone.
        }
        let room = if with_ack { behind_ack } else { room.saturating_sub(24) }.min(FRAGMENT);
        let len = self.protection.as_ref()?.next_key_message(room)?;
        let waits = self.pace.is_some_and(|at| at > now);
        if !self.is_early(len) && (waits || !self.is_let_go(now, len)) {
            return None;
        }
        let mut fragment = Vec::with_capacity(len);
        self.protection.as_mut()?.take_key_message(now, room, &mut fragment);
        let ack = self.numbers.acknowledgeable.get();
        let kind = if with_ack { Kind::DataAck { ack } } else { Kind::Data };
        Some(self.finish(now, kind, 0, (&fragment, Content::Handshake), None, buf))
    }

    /// Returns `true` if congestion control lets a packet with `len` bytes go now; if it says when, that is waited for.
    fn is_let_go(&mut self, now: Instant, len: usize) -> bool {
        let permit = self.sender.permit(now, len);
        if let Permit::At(at) = permit {
            self.pace = Some(at);
        }
        permit == Permit::Now
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.receiver.ack_due().is_some_and(|at| at <= now) || self.features.is_pending(now)
    }

    /// Sends the message that should go next, if one may (RFC 4340 §8.2). A separate Ack goes
    /// before it if they do not fit into one packet (§11.2).
    fn send_data(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Ecn> {
        if !self.may_send_data() || !self.may_seal() {
            return None;
        }
        let padding = if self.queue.is_empty() { self.padding(now) } else { None };
        let len = self.queue.next_len().or(padding)?;
        if self.pace.is_some_and(|at| at > now) {
            return None;
        }
        let partly_open = matches!(self.phase, Phase::PartOpen { .. });
        let owes = self.is_ack_due(now) || self.receiver.ack_due().is_some();
        let with_ack = partly_open || owes || self.echo.is_some() || self.sender.wants_ack_of_ack();
        let options = self.ack_options_len();
        let current = self.path_size.current() - self.framing();
        if with_ack && 24 + options + len > current {
            if partly_open {
                return None; // until the handshake is done and the cookie is gone
            }
            if owes {
                return Some(self.build(now, &Control::Ack, buf));
            }
        }
        if !self.is_let_go(now, len) {
            return None;
        }
        let ack = self.numbers.acknowledgeable.get();
        let kind = |len| {
            if with_ack && 24 + options + len <= current { Kind::DataAck { ack } } else { Kind::Data }
        };
        if let Some(padding) = self.options.padding.clone().filter(|_| self.queue.is_empty()) {
            self.padded(padding.len());
            return Some(self.finish(now, kind(padding.len()), 0, (&padding, Content::Application), None, buf));
        }
        // Not before: what is chosen may be another one than was asked for.
        let Some(message) = self.dequeue(now) else {
            return self.send_data(now, buf); // Nothing waits now, but padding may be due.
        };
        let kind = kind(message.bytes.len());
        let ecn = self.finish(now, kind, message.coverage, (&message.bytes, Content::Application), None, buf);
        self.queue.recycle(message);
        self.stats.sent_messages += 1;
        Some(ecn)
    }

    /// Appends a control packet to `buf`.
    pub(super) fn build(&mut self, now: Instant, control: &Control, buf: &mut Vec<u8>) -> Ecn {
        let ack = self.numbers.acknowledgeable.get();
        let service = self.service;
        let kind = match *control {
            Control::Request => Kind::Request { service },
            Control::Response { .. } => Kind::Response { ack, service },
            Control::Ack => Kind::Ack { ack },
            Control::Sync { ack } => Kind::Sync { ack: ack.get() },
            Control::Probe { .. } => Kind::Sync { ack },
            Control::SyncAck { ack } => Kind::SyncAck { ack: ack.get() },
            Control::CloseReq => Kind::CloseReq { ack },
            Control::Close => Kind::Close { ack },
            Control::Reset { reset, ack } | Control::ForeignReset { reset, ack, .. } => {
                Kind::Reset { ack: ack.get(), reset }
            }
        };
        let text = if matches!(control, Control::Reset { .. }) { self.refusal() } else { Vec::new() };
        let start = buf.len();
        let ecn = self.finish(now, kind, 0, (&text, Content::Application), Some(control), buf);
        if let (Control::Request, Some(protection)) = (control, &mut self.protection)
            && let Ok(request) = Packet::parse(&buf[start..], self.checksum)
        {
            protection.bind(service, &request.options);
        }
        ecn
    }

    /// Bytes of the options of a packet that acknowledges, at most.
    pub(super) fn ack_options_len(&self) -> usize {
        let cookie = if let Phase::PartOpen { cookie, .. } = &self.phase { cookie.len() + 8 } else { 0 };
        COMMON_OPTIONS + cookie + self.acks.emitted_len() + self.receiver.options_len()
    }

    /// Appends a packet with all options that belong on it, and informs congestion control.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        kind: Kind,
        coverage: u8,
        (payload, content): (&[u8], Content),
        control: Option<&Control>,
        buf: &mut Vec<u8>,
    ) -> Ecn {
        let start = buf.len();
        let foreign = if let Some(Control::ForeignReset { seq, .. }) = control { Some(*seq) } else { None };
        let seq = foreign.unwrap_or_else(|| self.numbers.take());
        let short = kind.may_be_short() && self.features.value(Place::Local, number::ALLOW_SHORT_SEQNOS) == 1;
        let is_data = matches!(kind, Kind::Data | Kind::DataAck { .. });
        let ccval = if is_data { self.sender.ccval(now) } else { 0 };
        let mask = if short { 0xff_ffff } else { u64::MAX };
        let header = Header {
            source_port: self.local_port,
            destination_port: self.remote_port,
            ccval,
            coverage,
            short,
            seq: seq.get() & mask,
            kind: if short { shorten(kind, mask) } else { kind },
        };
        let mut builder = Builder::begin(buf, &header);
        self.emit_options(now, seq, kind, payload, control, &mut builder);
        let payload = if let Some(&Control::Probe { size }) = control {
            self.probe_left(seq, size);
            &FILLING[..size.saturating_sub(builder.header_len() + self.framing_now()).min(FILLING.len())]
        } else {
            payload
        };
        let head = builder.pad();
        // Of the application nothing goes in clear, and of the rest all that can be protected.
        let is_message = is_data && content == Content::Application;
        if foreign.is_none() && self.protection.is_some() && (is_message || self.is_sealing()) {
            let record = buf.len();
            buf.extend_from_slice(&[0; HEADER]);
            buf.extend_from_slice(payload);
            self.seal(now, buf, start, record, content);
            if buf.len() == start {
                return Ecn::NotEct;
            }
        } else {
            buf.extend_from_slice(payload);
        }
        head.finish(buf, self.checksum);
        if foreign.is_some() {
            return Ecn::NotEct;
        }
        self.after_sending(now, seq, &header, (payload.len(), content), buf.len() - start)
    }

    fn emit_options(
        &mut self,
        now: Instant,
        seq: Seq,
        kind: Kind,
        payload: &[u8],
        control: Option<&Control>,
        builder: &mut Builder<'_>,
    ) {
        // Features that do not fit go on later packets.
        let room = match control {
            Some(&Control::Response { most, .. }) => builder.room_within(most),
            _ => builder.room(),
        };
        let w = &mut builder.options();
        let start = w.position();
        if let (Kind::Request { .. } | Kind::Response { .. }, Some(protection)) = (kind, &self.protection) {
            emit_protection(protection.offer().value(), w);
        }
        if self.counts_ndp() {
            emit_ndp_count(self.ndp_run, w);
        }
        if self.options.data_checksum && !payload.is_empty() {
            emit_data_checksum(payload, w);
        }
        if let Phase::PartOpen { cookie, .. } | Phase::Respond { cookie, .. } = &self.phase {
            emit_init_cookies(cookie, w);
        }
        if let Some((stamp, at)) = self.echo.filter(|_| kind != Kind::Data) {
            emit_timestamp_echo(stamp, to_units(now.since(at)), w);
            self.echo = None;
        }
        match control {
            Some(Control::Response { refused_data, .. }) => {
                emit_timestamp(now, w);
                if *refused_data {
                    // §8.1.3: data on a Request is not taken.
                    let run = DropRun { code: Some(DropCode::ProtocolConstraints), len: 1 };
                    DataDropped::new(&[run.byte()]).emit(w);
                }
            }
            None | Some(Control::Ack) if kind != Kind::Data => self.emit_acknowledgement(now, seq, w),
            _ => {}
        }
        // Feature options go on anything but Data; not on the last packets, whose answers nobody awaits.
        if kind != Kind::Data && !matches!(kind, Kind::Reset { .. } | Kind::Close { .. } | Kind::CloseReq { .. }) {
            let rtt = self.rtt_or_default();
            let left = room.saturating_sub(w.position() - start);
            let repeat = matches!(kind, Kind::Request { .. } | Kind::Response { .. });
            self.features.keep_confirms(matches!(self.phase, Phase::PartOpen { .. }));
            self.features.emit(now, seq, rtt, repeat, left, w);
        }
    }

    fn emit_acknowledgement(&mut self, now: Instant, seq: Seq, w: &mut braidcast_core::Writer<'_>) {
        if self.slow {
            emit_slow_receiver(w);
        }
        if !self.acks.is_empty() {
            self.acks.emit(seq, self.numbers.acknowledgeable, self.options.ecn, w);
        }
        let held = to_units(now.since(self.newest_at));
        if held > 0 || self.receiving.is_tfrc() {
            emit_elapsed(held, w);
        }
        self.receiver.emit_options(now, w);
        self.receiver.on_ack_sent(now);
    }

    /// Books a packet that leaves; gives its ECN mark.
    fn after_sending(
        &mut self,
        now: Instant,
        seq: Seq,
        header: &Header,
        (payload, content): (usize, Content),
        len: usize,
    ) -> Ecn {
        let kind = header.kind;
        self.ndp_run = if kind.is_data() { 0 } else { self.ndp_run + 1 };
        self.probed &= !kind.is_data();
        if kind.is_data() {
            self.path_size.sent(len, self.options.base_packet);
        }
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += len as u64;
        if matches!(kind, Kind::Request { .. } | Kind::Response { .. }) {
            /// Repeated for longer than that, it is not worth measuring.
            const MAX: usize = 8;
            if self.handshake_sent.len() < MAX && matches!(self.phase, Phase::Request { .. } | Phase::Respond { .. }) {
                self.handshake_sent.push(now);
            }
        }
        let can = self.options.ecn && self.features.value(Place::Remote, number::ECN_INCAPABLE) == 0;
        let can = can && !self.doubts_ecn();
        let ecn = match kind {
            Kind::Data | Kind::DataAck { .. } | Kind::Ack { .. } if can && self.state() >= State::PartOpen => {
                let nonce = self.options.ecn_nonce && kind.is_data() && self.rng.chance(0.5);
                if nonce { Ecn::Ect1 } else { Ecn::Ect0 }
            }
            _ => Ecn::NotEct,
        };
        self.sender.on_sent(
            now,
            &Sent {
                seq,
                is_data: matches!(kind, Kind::Data | Kind::DataAck { .. }),
                payload,
                nonce: ecn == Ecn::Ect1,
                is_ack: kind.ack().is_some(),
                is_key: content == Content::Handshake,
            },
        );
        self.tell_packet(now, true, (seq, kind), payload);
        ecn
    }
}

/// The type with the low bits of its acknowledgement number only.
const fn shorten(kind: Kind, mask: u64) -> Kind {
    match kind {
        Kind::Ack { ack } => Kind::Ack { ack: ack & mask },
        Kind::DataAck { ack } => Kind::DataAck { ack: ack & mask },
        kind => kind,
    }
}
