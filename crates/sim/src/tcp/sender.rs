use super::config::{Config, ISN};
use super::payload;
use super::scoreboard::{Arrival, Departure, Scoreboard};
use super::segment::{Flags, Options, Segment};
use crate::traffic::{Emission, Source};
use braidcast_cc::{
    Acked, Conditions, Controller, QueueingDelay, RateSampler, RttEstimator, Setup, Siblings, Signal, Standard,
};
use braidcast_core::{Ecn, Instant, Serial, Unwrapper};
use core::time::Duration;

/// Time between samples of the window.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The window at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` until the first loss.
    pub ssthresh: u64,
    /// Smoothed round-trip time; zero until measured.
    pub srtt: Duration,
}

/// What a sender has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderStats {
    /// Segments with data sent, repeats included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer, SYN included.
    pub timeouts: u64,
    /// Fast recoveries: windows that were halved because of loss.
    pub recoveries: u64,
    /// Windows that were halved because of a congestion mark.
    pub marks: u64,
    /// Bytes acknowledged.
    pub acknowledged: u64,
    /// When the last byte of a limited source was acknowledged.
    pub finished: Option<Instant>,
}

/// Until `until` is acknowledged, further losses belong to the same event (RFC 6582 §3.2, RFC 6675 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    Fast { until: u64 },
    Timeout { until: u64 },
}

/// The sending end of a connection. Places in the stream count from 0; only the wire has numbers that wrap.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    source: Box<dyn Source>,
    start: Instant,
    /// What the source hands over next.
    next_emission: Option<Emission>,
    /// Bytes that the source has handed over.
    available: u64,
    /// First byte not acknowledged, and the first never sent (`SND.UNA` and `SND.NXT`).
    una: u64,
    nxt: u64,
    /// What the receiver has room for ends here.
    edge: u64,
    peer_scale: u8,
    acks: Unwrapper<32>,
    first_ack: u64,
    established: bool,
    syn_sent: Option<Instant>,
    syn_due: bool,
    ecn: bool,
    sack: bool,
    /// Duplicate acknowledgements in a row; counted without SACK only.
    duplicates: u32,
    mss: u64,
    board: Scoreboard,
    controller: Box<dyn Controller>,
    rates: RateSampler,
    queueing: QueueingDelay,
    rtt: RttEstimator,
    /// End of the segment that is timed, and when it was sent.
    timed: Option<(u64, Instant)>,
    rto_at: Option<Instant>,
    /// Expiries since something was last acknowledged.
    expiries: u32,
    recovery: Option<Recovery>,
    /// The first lost segment goes out whatever the window says (RFC 6675 §5 step 4.3).
    force: bool,
    /// The window was reduced, and marks do not shrink it again before something sent after that, which has CWR, is
    /// acknowledged (RFC 3168 §6.1.2): more than this.
    marked_until: u64,
    cwr_due: bool,
    last_sent: Instant,
    samples: Vec<Sample>,
    stats: SenderStats,
}

/// A controller that begins with `initial` segments.
fn controller(config: &Config, initial: u64) -> Box<dyn Controller> {
    let mss = usize::from(config.mss);
    let initial = mss * initial.max(1) as usize;
    config.cc.controller(&Setup { initial, ..Setup::new(Standard::RFC_5681, mss) })
}

/// Setting it up, and looking at it.
impl Sender {
    /// A connection that opens at `start`.
    pub(super) fn new(config: Config, mut source: Box<dyn Source>, start: Instant) -> Self {
        let acks = Unwrapper::new(u64::from(ISN.wrapping_add(1)));
        let mss = u64::from(config.mss);
        let next_emission = source.next();
        Self {
            config,
            source,
            start,
            next_emission,
            available: 0,
            una: 0,
            nxt: 0,
            edge: 0,
            peer_scale: 0,
            first_ack: acks.highest(),
            acks,
            established: false,
            syn_sent: None,
            syn_due: false,
            ecn: config.ecn,
            sack: config.sack,
            duplicates: 0,
            mss,
            board: Scoreboard::default(),
            controller: controller(&config, u64::from(config.initial_window)),
            rates: RateSampler::default(),
            queueing: QueueingDelay::default(),
            rtt: RttEstimator::new(config.rto),
            timed: None,
            rto_at: Some(start),
            expiries: 0,
            recovery: None,
            force: false,
            marked_until: 0,
            cwr_due: false,
            last_sent: start,
            samples: Vec::new(),
            stats: SenderStats::default(),
        }
    }

    /// What it has done.
    pub const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// The window, ten times a second while acknowledgements come.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Congestion control.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// Bytes that may be in the network.
    fn cwnd(&self) -> u64 {
        self.controller.window() as u64
    }

    /// Round-trip time and RTO.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Bytes sent and not acknowledged.
    pub const fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// What a reduction starts from: bytes not acknowledged, without those that limited transmit
    /// sent beyond the window (RFC 5681 §3.2 step 2).
    fn counted_flight(&self) -> u64 {
        self.flight().min(self.cwnd())
    }

    /// What congestion control may know of the path.
    fn path(&self, now: Instant) -> Conditions<'static> {
        Conditions {
            now,
            mtu: self.mss as usize,
            in_flight: self.counted_flight() as usize,
            srtt: self.rtt.srtt(),
            queueing: self.queueing.latest(),
            base_rtt: self.queueing.base().unwrap_or_default(),
            shortest_rtt: self.queueing.shortest().unwrap_or_default(),
            loss_rate: 0.0,
            packets: 0,
            lost_packets: 0,
            redundancy: 0,
            siblings: Siblings::default(),
        }
    }

    fn wire(offset: u64) -> u32 {
        Serial::<32>::new(u64::from(ISN) + 1 + offset).get() as u32
    }
}

/// What comes in.
impl Sender {
    pub(super) fn handle(&mut self, now: Instant, segment: &Segment<'_>) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let Some(ack) = self.acks.peek(u64::from(segment.acknowledgement)).checked_sub(self.first_ack) else { return };
        if ack > self.nxt {
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.establish(now, segment);
            return;
        }
        if !self.established {
            return;
        }
        self.acks.unwrap(u64::from(segment.acknowledgement));
        self.edge = self.edge.max(ack + (u64::from(segment.window) << self.peer_scale));
        self.take_acknowledgement(now, ack, segment);
        if self.ecn && segment.flags.has(Flags::ECE) && self.una > self.marked_until && self.recovery.is_none() {
            self.controller.on_marked(&self.path(now), &Signal { bytes: self.mss as usize, new_round: true });
            self.marked_until = self.nxt;
            self.cwr_due = true;
            self.stats.marks += 1;
        }
        self.sample(now);
    }

    fn establish(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.established {
            return;
        }
        self.established = true;
        self.mss = self.mss.min(u64::from(segment.options.mss.unwrap_or(536)).max(1));
        self.sack &= segment.options.sack_permitted;
        self.ecn &= segment.flags.has(Flags::ECE);
        self.peer_scale = segment.options.window_scale.unwrap_or(0).min(14);
        self.edge = u64::from(segment.window);
        self.rto_at = None;
        match self.syn_sent.filter(|_| self.expiries == 0) {
            Some(sent) => self.rtt.sample(now - sent),
            // The SYN was lost: begins with one segment (RFC 5681 §3.1).
            None => self.controller = controller(&self.config, 1),
        }
        self.expiries = 0;
        self.sample(now);
    }

    fn take_acknowledgement(&mut self, now: Instant, ack: u64, segment: &Segment<'_>) {
        // A window that the application doesn't fill does not grow (RFC 7661 §1), nor one in fast recovery.
        let was_full = self.board.pipe() + self.mss > self.cwnd();
        let may_grow = !matches!(self.recovery, Some(Recovery::Fast { .. }));
        let acked = ack.saturating_sub(self.una);
        let (measured, rtt) = self.note_arrivals(now, ack, segment);
        if acked > 0 {
            self.advance(now, ack, acked);
        }
        let rate = self.rates.sample(self.queueing.base());
        let bytes = acked as usize;
        let acked_news =
            Acked { bytes, may_grow, was_full, ack_ratio: 1, rtt, ends_round: measured, rate, ..Acked::default() };
        self.controller.on_acked(&self.path(now), &acked_news);
        if self.sack {
            self.board.detect_losses();
        } else {
            self.count_duplicates(acked, segment);
        }
        let (lost, new_round) = (self.board.take_lost(), self.recovery.is_none() && self.board.first_is_lost());
        if lost > 0 || new_round {
            self.controller.on_lost(&self.path(now), &Signal { bytes: lost as usize, new_round });
        }
        if new_round {
            self.recovery = Some(Recovery::Fast { until: self.nxt });
            self.marked_until = self.nxt;
            self.cwr_due = self.ecn;
            self.force = true;
            self.stats.recoveries += 1;
        }
    }

    /// Takes off what has arrived. Gives whether the segment that is timed has, and the round trip
    /// of the newest, if it was sent once.
    fn note_arrivals(&mut self, now: Instant, ack: u64, segment: &Segment<'_>) -> (bool, Option<Duration>) {
        let probe = self.timed.map(|(end, _)| end);
        let mut measured = probe.is_some_and(|end| end <= ack);
        let (rates, mut newest) = (&mut self.rates, None::<Arrival>);
        let mut arrived = |it: Arrival| {
            rates.on_delivered(now, it.departure.at, it.departure.stamp, it.bytes as usize);
            newest = newest.filter(|newest| newest.departure.at > it.departure.at).or(Some(it));
        };
        self.board.acknowledge(ack, &mut arrived);
        for (left, right) in segment.options.sack.iter() {
            let place = |wire: u32| self.acks.peek(u64::from(wire)).saturating_sub(self.first_ack);
            measured |= self.board.sack(place(left), place(right), probe, &mut arrived);
        }
        let rtt = newest.filter(|it| !it.ambiguous).map(|it| now - it.departure.at);
        rtt.into_iter().for_each(|rtt| self.queueing.observe(now, rtt));
        if let Some((_, sent)) = self.timed.take_if(|_| measured) {
            self.rtt.sample(now - sent);
            self.queueing.end_round();
        }
        (measured, rtt)
    }

    /// `acked` bytes up to `ack` are acknowledged for the first time.
    fn advance(&mut self, now: Instant, ack: u64, acked: u64) {
        self.una = ack;
        self.stats.acknowledged += acked;
        self.expiries = 0;
        self.rto_at = (self.nxt > self.una).then(|| now + self.rtt.rto());
        if self.una == self.available && self.next_emission.is_none() {
            self.stats.finished.get_or_insert(now);
        }
        if let Some(Recovery::Fast { until } | Recovery::Timeout { until }) = self.recovery
            && self.una >= until
        {
            self.recovery = None;
            self.board.presume_nothing();
        }
    }

    /// Finds losses without SACK (RFC 6582 §3.2).
    fn count_duplicates(&mut self, acked: u64, segment: &Segment<'_>) {
        let in_recovery = matches!(self.recovery, Some(Recovery::Fast { .. }));
        if acked > 0 {
            self.duplicates = 0;
            if in_recovery {
                self.board.deflate(acked, self.mss);
                self.board.lose_first();
                self.force = true;
            } else {
                self.board.presume_nothing();
            }
        } else if segment.payload.is_empty()
            && self.flight() > 0
            && !matches!(self.recovery, Some(Recovery::Timeout { .. }))
        {
            self.duplicates += 1;
            self.board.presume_arrived(self.mss);
            if self.duplicates == 3 && !in_recovery {
                self.board.lose_first();
            }
        }
    }

    fn sample(&mut self, now: Instant) {
        if self.samples.last().is_none_or(|last| now >= last.at + SAMPLE_EVERY) {
            let (cwnd, ssthresh) = (self.cwnd(), self.controller.ssthresh() as u64);
            let srtt = self.rtt.srtt().unwrap_or_default();
            self.samples.push(Sample { at: now, cwnd, ssthresh, srtt });
        }
    }

    /// When something is due: the source, or the timer.
    pub(super) fn timeout(&self) -> Option<Instant> {
        // While much waits there is no need to ask the source.
        let source =
            self.next_emission.filter(|_| self.established && self.wants_more()).map(|next| self.start + next.at);
        [source, self.rto_at].into_iter().flatten().min()
    }

    /// Returns `true` if less than a window's worth of data waits to be sent.
    fn wants_more(&self) -> bool {
        self.available - self.nxt < self.mss.max(self.config.receive_window)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.draw(now);
        if self.rto_at.is_none_or(|at| at > now) {
            return;
        }
        if !self.established {
            self.syn_due = true;
            if self.syn_sent.is_some() {
                self.count_expiry();
            }
            return;
        }
        self.controller.on_timeout(&self.path(now));
        self.count_expiry();
        self.board.on_timeout();
        self.timed = None;
        self.force = false;
        self.recovery = Some(Recovery::Timeout { until: self.nxt });
        self.marked_until = self.nxt;
        self.rto_at = Some(now + self.rtt.rto());
    }

    fn count_expiry(&mut self) {
        self.rtt.back_off();
        self.expiries += 1;
        self.stats.timeouts += 1;
    }

    /// Takes what the source has handed over by now.
    fn draw(&mut self, now: Instant) {
        while self.wants_more() {
            let Some(next) = self.next_emission.filter(|next| self.start + next.at <= now) else { return };
            self.available += next.bytes as u64;
            self.next_emission = self.source.next();
        }
    }
}

/// What goes out.
impl Sender {
    /// The next segment, but for its ports, and how to mark it.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Segment<'static>, Ecn)> {
        if self.syn_due {
            self.syn_due = false;
            self.syn_sent = Some(now);
            self.rto_at = Some(now + self.rtt.rto());
            return Some((self.syn(), Ecn::NotEct));
        }
        if !self.established {
            return None;
        }
        self.draw(now);
        if self.flight() == 0 && now - self.last_sent > self.rtt.rto() {
            let initial = u64::from(self.config.initial_window) * self.mss;
            self.controller.on_idle(&self.path(now), initial as usize); // RFC 5681 §4.1.
        }
        let has_room = self.board.pipe() + self.mss <= self.cwnd();
        let segment = self.resend(now, has_room).or_else(|| self.send_new(now, has_room))?;
        self.last_sent = now;
        self.stats.segments += 1;
        self.rto_at.get_or_insert(now + self.rtt.rto());
        Some(segment)
    }

    fn resend(&mut self, now: Instant, has_room: bool) -> Option<(Segment<'static>, Ecn)> {
        let (start, end) = self.board.next_lost().filter(|_| has_room || self.force)?;
        self.force = false;
        let departure = self.depart(now, end - start);
        self.board.resent(departure);
        // What was sent twice is not timed (Karn, RFC 6298 §3).
        self.timed = self.timed.filter(|(timed, _)| *timed != end);
        self.stats.retransmissions += 1;
        if start == self.una {
            self.rto_at = Some(now + self.rtt.rto());
        }
        // Repeats are not ECN-capable (RFC 3168 §6.1.5).
        Some((self.data(start, end), Ecn::NotEct))
    }

    fn send_new(&mut self, now: Instant, has_room: bool) -> Option<(Segment<'static>, Ecn)> {
        let len = self.mss.min(self.available - self.nxt);
        if len == 0 && has_room {
            self.rates.on_app_limited(self.board.pipe() as usize);
        }
        if len == 0 || !has_room || self.nxt + len > self.edge {
            return None;
        }
        let (start, end) = (self.nxt, self.nxt + len);
        let departure = self.depart(now, len);
        self.nxt = end;
        self.board.push(start, end, departure);
        self.timed.get_or_insert((end, now));
        let mut segment = self.data(start, end);
        let ecn = if self.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        segment.flags = segment.flags.with(Flags::CWR, self.ecn && core::mem::take(&mut self.cwr_due));
        Some((segment, ecn))
    }

    /// `bytes` leave.
    fn depart(&mut self, now: Instant, bytes: u64) -> Departure {
        let stamp = self.rates.on_sent(now, self.board.pipe() as usize);
        self.controller.on_sent(&self.path(now), bytes as usize);
        Departure { at: now, stamp }
    }

    fn syn(&self) -> Segment<'static> {
        let (shift, _) = self.config.scaled_window();
        let mss = Some(self.config.mss);
        let options =
            Options { mss, window_scale: Some(shift), sack_permitted: self.config.sack, ..Options::default() };
        let flags = Flags::SYN.with(Flags::ECE | Flags::CWR, self.config.ecn);
        let window = self.config.receive_window.min(0xffff) as u16;
        Segment { sequence: ISN, flags, window, options, ..Segment::default() }
    }

    fn data(&self, start: u64, end: u64) -> Segment<'static> {
        let (_, window) = self.config.scaled_window();
        let payload = payload::at(start, (end - start) as usize);
        let acknowledgement = ISN.wrapping_add(1);
        Segment {
            sequence: Self::wire(start),
            acknowledgement,
            flags: Flags::ACK,
            window,
            payload,
            ..Segment::default()
        }
    }
}
