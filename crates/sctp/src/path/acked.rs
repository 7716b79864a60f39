use super::{Path, Timer};
use crate::api::{CwndUpdate, RttSamples};
use crate::number::Order;
use crate::tx::{Acked, LossCause, Was};
use braidcast_cc::{self as cc, Policing, QueueingDelay, Siblings};
use braidcast_core::Instant;
use core::time::Duration;

/// If acknowledgements do not measure a busy path for this long, a heartbeat asks it, which is
/// answered at once and over the same path.
const MEASURED_EACH: Duration = Duration::from_secs(1);

/// What one SACK said about one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    /// Bytes newly acknowledged that count for the window.
    acked: usize,
    /// Of these, those below the cumulative acknowledgement.
    cumulative: usize,
    /// The most recently sent chunk that is newly acknowledged and was sent once: its place and send time.
    newest: Option<(Order, Instant)>,
    /// Lowest place in the send order that is newly acknowledged.
    lowest_order: Option<Order>,
    /// Something was newly acknowledged by a gap block.
    by_gap: bool,
    /// Highest place in the send order that is newly acknowledged.
    highest_order: Option<Order>,
    /// The same among chunks of which a copy went over another path; those are not in the above.
    highest_copied: Option<Order>,
    /// Something that was abandoned in flight was acknowledged.
    without_credit: bool,
    /// What the window waits for was acknowledged ([`CwndUpdate`]).
    advanced: bool,
}

/// What is out over a path, as the ledger has it, when a SACK is dealt with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// Bytes of the window that were taken before.
    pub(crate) occupied_before: usize,
    /// Bytes in flight now.
    pub(crate) in_flight: usize,
    /// The place in the send order that the next chunk gets.
    pub(crate) next: Order,
    /// The oldest chunk that was out was acknowledged.
    pub(crate) oldest_is_gone: bool,
    /// The SACK came back over this path.
    pub(crate) returned_here: bool,
    /// Half of the shortest round trip over the path that it came back over; zero where delays are
    /// not measured one way.
    pub(crate) return_delay: Duration,
    /// A packet over this path cannot be there sooner, if it was and redundancy over a quicker path
    /// did not stand in for it.
    pub(crate) soonest: Duration,
    /// It newly acknowledges what was sent over this path only.
    pub(crate) alone: bool,
    /// It moved the cumulative acknowledgement.
    pub(crate) moved: bool,
}

impl News {
    /// Returns `true` if the SACK said anything about the path.
    pub(crate) const fn any(&self) -> bool {
        self.highest_order.is_some() || self.acked > 0 || self.without_credit
    }

    /// The lowest place in the send order that is newly acknowledged, if a gap block named any.
    pub(crate) fn lowest_by_gap(&self) -> Option<Order> {
        self.lowest_order.filter(|_| self.by_gap)
    }

    /// The highest place in the send order that arrived for sure: the path works.
    pub(crate) const fn proven(&self) -> Option<Order> {
        self.highest_order
    }

    /// Returns `true` if what the newest chunk took until this SACK came measures the path; `answered`: its
    /// packet asked for that SACK; `shared`: SACKs of late were for several paths.
    ///
    /// A SACK that came back over another path says nothing about this path's round trip (THESIS
    /// §6.2.4). One that acknowledges what came over several may have waited for another path's
    /// packet, unless ours made it leave; and which ones are for one path alone is no chance then:
    /// those late in a burst are, which find the queue longer.
    const fn measures(samples: RttSamples, flight: &Flight, answered: bool, shared: bool) -> bool {
        matches!(samples, RttSamples::AnyReturn) || (flight.returned_here && (answered || (flight.alone && !shared)))
    }
}

impl Path {
    /// A chunk that was last sent over this path, in place `order`, was acknowledged; `next` is the
    /// place that the next one gets. `earliest`: redundancy is sent, and nothing that took this path
    /// is acknowledged before then; `returned_here`: the SACK came back over this path. Returns
    /// something if redundancy seems to have made up for the chunk: `true` if that counts as a loss.
    pub(crate) fn on_chunk_acked(
        &mut self,
        now: Instant,
        (order, next): (Order, Order),
        acked: &Acked,
        earliest: Option<Instant>,
        returned_here: bool,
        news: &mut News,
    ) -> Option<bool> {
        match acked.was {
            Was::InFlight { awaited } => {
                let copied = acked.copied.is_some_and(|answers| now >= answers);
                let too_soon = earliest.is_some_and(|earliest| now < earliest);
                let made_up_for = earliest.is_some() && !copied && (too_soon || order < self.acked_order);
                let counts = self.note_fate(Some(made_up_for));
                news.acked += acked.len;
                news.cumulative += if acked.cumulative { acked.len } else { 0 };
                news.advanced |= awaited;
                if copied {
                    // Perhaps the copy alone arrived: that says next to nothing about this path.
                    news.highest_copied = news.highest_copied.max(Some(order));
                    self.copied_order = self.copied_order.max(order);
                    return None;
                }
                if too_soon {
                    self.stats.repaired_chunks += 1;
                    return Some(counts); // While it is in flight it says nothing of those before it, either.
                }
                if acked.repeated && !returned_here && self.rank() != Some(0) {
                    // Perhaps what went before it over another path arrived late: that brings back no path
                    // that is silent. Its next heartbeat, or what is new there, shows for sure.
                    news.highest_copied = news.highest_copied.max(Some(order));
                    return None;
                }
                news.highest_order = news.highest_order.max(Some(order));
                news.lowest_order = Some(news.lowest_order.map_or(order, |lowest| lowest.min(order)));
                news.by_gap |= !acked.cumulative;
                if made_up_for {
                    // Perhaps it never arrived: that says nothing about the path's rate, delay and MTU.
                    self.stats.repaired_chunks += 1;
                    return Some(counts);
                }
                self.rates.on_delivered(now, acked.sent, acked.stamp, acked.len);
                if let Some(size) = self.sizes.of(order) {
                    self.pmtu.on_delivered(size);
                }
                self.ect.on_acked(order, next);
                self.rack.on_delivered(now, acked.sent, order.get(), acked.repeated, self.rtt.min());
                if !acked.repeated
                    && acked.sent >= self.awake_since
                    && news.newest.is_none_or(|(newest, _)| newest < order)
                {
                    news.newest = Some((order, acked.sent));
                }
            }
            Was::Lost(cause) => {
                self.rack.on_spurious();
                // Told over another path, it may as well have arrived before its own path failed,
                // and the SACK for it have been lost with that path: this does not bring back a
                // path that fell silent or timed out, contrary to RFC 9260 §8.2 ("SHOULD clear"),
                // or else a failover of bulk data takes twice as long.
                if returned_here || cause == LossCause::Reported {
                    self.cc.on_spurious_timeout();
                    news.highest_order = news.highest_order.max(Some(order));
                }
            }
            Was::GivenUp => news.without_credit = true,
        }
        None
    }

    /// The data in place `order` arrived.
    pub(crate) fn on_proven(&mut self, order: Order) {
        self.redundant.on_acked(order);
        self.acked_order = self.acked_order.max(order);
    }

    /// A SACK said `news` of this path, whose window may depend on those of its `siblings`.
    pub(crate) fn on_acked(&mut self, now: Instant, news: &News, flight: &Flight, siblings: Siblings<'_>) {
        self.measure(now, news, flight);
        self.recent.add(now, news.acked);
        // A window that has room for copied chunks alone would never grow, nor its recovery end: as
        // far as the first window, with which any path may begin, those count too.
        let copied = news.highest_copied.filter(|_| self.cwnd() < self.initial_window);
        let reached = news.highest_order.max(copied);
        if self.recovery.is_some_and(|until| reached >= Some(until)) {
            self.recovery = None;
            self.rack.on_recovered();
        }
        let grows = news.advanced || (flight.moved && self.options.papers.cwnd_update == CwndUpdate::Plain);
        let steady = self.recovery.is_none() || self.options.papers.growth_in_recovery;
        let any_return = self.options.papers.rtt_samples == RttSamples::AnyReturn;
        let was_full = self.was_full(flight.occupied_before);
        let acked = cc::Acked {
            bytes: news.acked,
            uncredited: if self.options.papers.credit_when_full && !was_full { news.cumulative } else { 0 },
            may_grow: steady && grows && reached.is_some() && !self.has_long_queue(),
            was_full,
            rtt: news.newest.filter(|_| any_return || self.is_comparable(flight)).map(|(_, sent)| now - sent),
            ends_round: news.newest.is_some_and(|(order, _)| order >= self.cc_round),
            rate: self.rates.sample(self.shortest_by_any_way()),
            ..cc::Acked::default()
        };
        acked.rate.iter().for_each(|sample| self.capacity.on_sample(now, sample));
        if acked.ends_round {
            self.cc_round = flight.next;
        }
        let conditions = self.conditions(now, flight.in_flight, siblings);
        self.cc.on_acked(&conditions, &acked);
        self.heed_policer();
        if flight.in_flight == 0 {
            self.timers.stop(Timer::Retransmission);
            self.timers.stop(Timer::Probe);
            return;
        }
        // The timer starts anew when the oldest chunk out on this path was acknowledged (RFC 9260 §6.3.2 R3).
        if flight.oldest_is_gone {
            self.timers.set(Timer::Retransmission, now + self.rtt.rto());
        }
        if news.proven().is_some() {
            let timeout = self.probe_timeout().filter(|_| self.options.paths.probe);
            self.timers.set_or_stop(Timer::Probe, timeout.map(|timeout| now + timeout));
        }
    }

    /// If a policer drops what comes too fast, packets leave one by one; what it dropped until it was found, no
    /// redundancy is to make up for.
    fn heed_policer(&mut self) {
        let policing = self.cc.policing();
        if policing == self.policing {
            return;
        }
        self.policing = policing;
        let mtu = self.mtu();
        self.pacer.set_close(policing != Policing::None, mtu);
        if policing == Policing::Known {
            self.losses.forget();
        }
    }

    /// Returns `true` if the acknowledgement came back over the path by which the shortest round trip in
    /// [`conditions`](Self::conditions) is measured. Over another one it may take longer, and that would be taken for
    /// a queue on this path. With none at all, a window in slow start would see its own queue at the end of the round
    /// only, which over a far path is hundreds of milliseconds of queue too late.
    fn is_comparable(&self, flight: &Flight) -> bool {
        flight.returned_here != self.is_one_way()
    }

    /// What the newest chunk acknowledged says about the round trip and the queues.
    fn measure(&mut self, now: Instant, news: &News, flight: &Flight) {
        let Some((order, sent)) = news.newest else { return };
        let samples = self.options.papers.rtt_samples;
        let any_return = samples == RttSamples::AnyReturn;
        let answered = self.asked.is_answered(order);
        if !flight.alone {
            self.shared = Some(now);
        }
        let rtt = now - sent;
        if flight.returned_here || any_return {
            self.queueing.observe(now, rtt);
            self.rtt.observe(rtt);
            if !self.is_one_way() {
                self.correct_backlog(now, sent, rtt.saturating_sub(self.queueing.base().unwrap_or(rtt)));
            }
        } else {
            self.return_delay = flight.return_delay;
            let delay = rtt.saturating_sub(flight.return_delay);
            // As often as not, a queue stands when the other return path is seen for the first time.
            let without_queue = delay.saturating_sub(self.queueing.of_last(now));
            self.detour.begin(now, without_queue.max(flight.soonest));
            self.detour.observe(now, delay.max(flight.soonest));
            self.correct_backlog(now, sent, delay.saturating_sub(self.detour.base().unwrap_or(delay)));
        }
        if order >= self.next_rtt_order && News::measures(samples, flight, answered, self.shares_sacks(now)) {
            self.next_rtt_order = flight.next;
            self.rtt.sample(rtt);
            self.measured = now;
            self.heartbeats.postpone(now, self.heartbeat_pause());
        } else if !any_return && now - self.measured >= MEASURED_EACH {
            self.measured = now;
            self.pending.heartbeat = !self.heartbeats.awaits_answer(now);
        }
        let next =
            if flight.returned_here || any_return { &mut self.next_queue_order } else { &mut self.next_detour_order };
        if order >= *next {
            *next = flight.next;
            self.shorten_queue(now, flight.in_flight, !flight.returned_here && !any_return);
        }
    }

    /// Returns `true` if SACKs of late told of other paths too.
    pub(super) fn shares_sacks(&self, now: Instant) -> bool {
        self.shared.is_some_and(|at| now - at < MEASURED_EACH)
    }

    /// The shortest round trip known, be it back over another path: where that is quicker,
    /// acknowledgements come sooner than a round trip over this path takes in both directions.
    fn shortest_by_any_way(&self) -> Option<Duration> {
        let detour = self.detour.shortest().map(|delay| delay + self.return_delay);
        self.rtt.min().into_iter().chain(detour).min()
    }

    /// Returns `true` if `occupied` bytes used the window up ([`CwndUnit`](crate::CwndUnit)).
    fn was_full(&self, occupied: usize) -> bool {
        let missing = if self.uncounted == 0 { self.unit() } else { 1 };
        occupied + missing > self.cwnd()
    }

    /// At the end of a round: less may be out if packets stood in queues longer than the limit.
    pub(super) fn shorten_queue(&mut self, now: Instant, in_flight: usize, detoured: bool) {
        let unit = self.unit();
        self.detoured = detoured;
        let round = if detoured {
            self.detour.end_round().map(|(queueing, delay)| (queueing, delay + self.return_delay))
        } else {
            self.queueing.end_round()
        };
        if detoured && let Some((queueing, _)) = round {
            self.usual_queue = Some(self.usual_queue.map_or(queueing, |usual| (usual * 7 + queueing) / 8));
        }
        if let (Some(limit), Some((queueing, base))) = (self.options.congestion.queueing_limit, round)
            && queueing > limit
        {
            let target = QueueingDelay::within(limit, self.cwnd(), queueing, base);
            let conditions = self.conditions(now, in_flight, Siblings::default());
            self.cc.settle(&conditions, target.max(4 * unit));
        }
    }

    /// Nothing is out over any path.
    pub(crate) const fn on_nothing_out(&mut self) {
        self.timers.stop(Timer::Retransmission);
        self.timers.stop(Timer::Probe);
        self.timers.stop(Timer::Reordering);
    }

    /// All that is out has been gap-acknowledged: in case the peer withdraws that, a timer must run.
    pub(crate) fn guard_gap_acks(&mut self, now: Instant) {
        self.timers.start(Timer::Retransmission, now + self.rtt.rto());
    }

    /// An acknowledgement came, `after_retransmission` of data that was sent again: the next burst may leave
    /// (Max.Burst).
    pub(crate) fn end_burst(&mut self, after_retransmission: bool) {
        let rules = &self.options.papers;
        if rules.max_burst_after_retransmission {
            let was_long = rules.max_burst.is_some_and(|most| self.burst >= most);
            self.burst_bounded = after_retransmission || self.burst_bounded && !was_long;
        }
        self.burst = 0;
    }

    /// When what was sent at `sent`, in place `order`, is to be taken for lost; `None` while
    /// nothing sent after it has arrived.
    pub(crate) fn lost_at(&self, sent: Instant, order: Order) -> Option<Instant> {
        self.rack.lost_at(sent, order.get(), self.reordering_trip(), self.rtt.srtt())
    }

    /// When what was sent at `sent`, in place `order`, is to be taken for lost though nothing sent after it is known
    /// to have arrived: copies of such chunks went over other paths too, and perhaps they alone arrived. `None`: none
    /// of what was sent after it was acknowledged.
    pub(crate) fn unanswered_at(&self, sent: Instant, order: Order) -> Option<Instant> {
        (order < self.copied_order).then(|| sent.max(self.answered) + self.rtt.rto())
    }

    /// What was overtaken becomes lost at `at`; `None`: nothing was.
    pub(crate) const fn expect_loss(&mut self, at: Option<Instant>) {
        self.timers.set_or_stop(Timer::Reordering, at);
    }

    /// A repeat of what went over this path was not needed: packets overtake each other more than was thought.
    pub(crate) fn on_spurious(&mut self) {
        self.rack.on_spurious();
    }

    /// A chunk sent over this path was acknowledged or lost, or `None`: nothing was heard of it in
    /// time. What a path does with packets that does not answer cannot be told: most may arrive
    /// yet. What is lost while a queue stands was dropped there: redundancy would make the queue
    /// longer. Returns `true` if it counts as a loss that redundancy is to make up for.
    pub(crate) fn note_fate(&mut self, lost: Option<bool>) -> bool {
        self.loss_rate += (f32::from(u8::from(lost != Some(false))) - self.loss_rate) / 64.0;
        let counts = lost == Some(true) && !self.has_long_queue();
        if let Some(lost) = lost {
            self.losses.on_packet(counts);
            self.known = (self.known.0 + 1, self.known.1 + u64::from(lost));
        }
        counts
    }

    /// What redundancy made up for arrived after all, and [counted as a loss](Self::note_fate) or
    /// not.
    pub(crate) fn on_late_arrival(&mut self, counted: bool) {
        self.loss_rate = (self.loss_rate - 1.0 / 64.0).max(0.0);
        if counted {
            self.losses.on_late_arrival();
        }
        self.known.1 = self.known.1.saturating_sub(1);
        self.stats.repaired_chunks = self.stats.repaired_chunks.saturating_sub(1);
    }

    /// The chunk in place `order` got lost while others arrived: perhaps its packet was too large.
    pub(crate) fn on_reported_lost(&mut self, now: Instant, order: Order) {
        if let Some(size) = self.sizes.of(order) {
            self.pmtu.on_lost(now, size);
        }
    }

    /// `chunks` of this path were taken for lost by `cause`.
    pub(crate) fn on_lost(&mut self, chunks: u64, cause: LossCause) {
        for _ in 0..chunks {
            self.note_fate((cause == LossCause::Reported).then_some(true));
        }
        if cause != LossCause::Silence {
            self.stats.lost_chunks += chunks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Options, PathState, SackPath};
    use crate::number::Tsn;
    use braidcast_core::{PathId, Route, SocketId};
    use std::sync::Arc;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// A path of 250 ms there and 50 back, whose SACKs come back over another one of 20 ms.
    #[test]
    fn a_delay_is_known_one_way_where_sacks_come_back_over_another_path() {
        let route = Route::new(SocketId(0), ([192, 0, 2, 1], 9899).into());
        let options = Options::live().with(|it| {
            it.sack.path = SackPath::Quickest;
            it.timers.reordering = Some(ms(15));
        });
        let mut path = Path::new(Instant::ZERO, PathId(0), route, PathState::Active, Arc::new(options));
        path.rtt.sample(ms(300));
        assert_eq!((path.shortest_delay(), path.measured_delay(), path.answer()), (Some(ms(150)), None, Some(ms(300))));
        assert_eq!(path.known_lost(), Some(ms(300 + 75)), "no detour yet: a quarter of 300 ms");
        for n in 0..20 {
            // From the tenth packet on a queue stands for 30 ms.
            let (order, queued) = (Order::new(n), if n < 10 { 0 } else { 30 });
            let sent = Instant::from_millis(10 * n);
            let news = News { acked: 1000, newest: Some((order, sent)), highest_order: Some(order), ..News::default() };
            let flight = Flight {
                occupied_before: 2000,
                in_flight: 1000,
                next: order.next(),
                oldest_is_gone: true,
                returned_here: false,
                return_delay: ms(20),
                soonest: Duration::ZERO,
                alone: true,
                moved: true,
            };
            path.on_acked(sent + ms(270 + queued), &news, &flight, Siblings::default());
        }
        let known = (path.shortest_delay(), path.measured_delay(), path.shortest_answer(), path.answer());
        assert_eq!(known, (Some(ms(250)), Some(ms(280)), Some(ms(270)), Some(ms(300))));
        assert_eq!(path.shortest_round_trip(), Some(ms(300)), "its own is what it was");
        assert_eq!(path.known_lost(), Some(ms(300 + 15)), "in place of a quarter of 300 ms");
    }

    /// Of four chunks the last two are acknowledged when copies of them may have arrived over another path: that does
    /// not show that the first two were overtaken, but they do not wait for ever.
    #[test]
    fn what_waits_behind_acknowledged_copies_is_lost_an_rto_after_the_path_last_proved_to_work() {
        let route = Route::new(SocketId(0), ([192, 0, 2, 1], 9899).into());
        let mut path = Path::new(Instant::ZERO, PathId(0), route, PathState::Active, Arc::new(Options::live()));
        path.rtt.sample(ms(80));
        let sent = |n: u64| Instant::from_millis(1000 + n);
        let now = sent(100);
        assert_eq!([0, 1, 3].map(|n| path.unanswered_at(sent(n), Order::new(n))), [None; 3]);
        let mut news = News::default();
        for n in [2, 3] {
            let acked = Acked {
                tsn: Tsn::new(n),
                place: None,
                len: 1000,
                sent: sent(n),
                stamp: cc::Stamp::default(),
                repeated: false,
                cumulative: true,
                copied: Some(now),
                was: Was::InFlight { awaited: false },
            };
            path.on_chunk_acked(now, (Order::new(n), Order::new(4)), &acked, None, true, &mut news);
        }
        let rto = path.rtt.rto();
        assert_eq!([0, 1].map(|n| path.lost_at(sent(n), Order::new(n))), [None; 2]);
        assert_eq!([0, 1].map(|n| path.unanswered_at(sent(n), Order::new(n))), [0, 1].map(|n| Some(sent(n) + rto)));
        assert_eq!(path.unanswered_at(sent(3), Order::new(3)), None, "the newest has its own timers");
        path.on_answer(now, false);
        assert_eq!(path.unanswered_at(sent(0), Order::new(0)), Some(now + rto));
    }

    /// In the middle of a round, with a window that is full, packets begin to stand in a queue for longer than they are
    /// to.
    #[test]
    fn slow_start_sees_its_queue_where_sacks_come_back_over_another_path() {
        let route = Route::new(SocketId(0), ([192, 0, 2, 1], 9899).into());
        let options = Options::live().with(|it| {
            it.sack.path = SackPath::Quickest;
            it.congestion.algorithm = braidcast_cc::Algorithm::Live;
        });
        let limit = options.congestion.queueing_limit.unwrap();
        let mut path = Path::new(Instant::ZERO, PathId(0), route, PathState::Active, Arc::new(options));
        path.rtt.sample(ms(500));
        let mut acked = |n: u64, queued| {
            let (order, sent) = (Order::new(n), Instant::from_millis(n));
            let news = News { acked: 1000, newest: Some((order, sent)), highest_order: Some(order), ..News::default() };
            let flight = Flight {
                occupied_before: 1 << 20,
                in_flight: 1 << 20,
                next: Order::new(1000),
                oldest_is_gone: true,
                returned_here: false,
                return_delay: ms(20),
                soonest: Duration::ZERO,
                alone: true,
                moved: true,
            };
            path.on_acked(sent + ms(270) + queued, &news, &flight, Siblings::default());
            path.cwnd()
        };
        let windows =
            [(0, ms(0)), (1, limit - ms(1)), (2, limit + ms(1)), (3, limit + ms(1))].map(|(n, it)| acked(n, it));
        assert_eq!(windows.map(|it| it - windows[0]), [0, 1000, 1000, 1000]);
    }

    /// What went over another path first may have arrived from there.
    #[test]
    fn what_goes_again_over_a_silent_path_brings_it_back_only_by_its_own_answer() {
        let route = Route::new(SocketId(0), ([192, 0, 2, 1], 9899).into());
        for (silent, repeated, returned_here) in
            [(true, true, false), (true, true, true), (true, false, false), (false, true, false)]
        {
            let mut path = Path::new(Instant::ZERO, PathId(0), route, PathState::Active, Arc::new(Options::live()));
            let sent = Instant::from_millis(1000);
            if silent {
                path.fall_silent(sent);
            }
            let (place, stamp) = (None, cc::Stamp::default());
            let was = Was::InFlight { awaited: true };
            let acked = Acked {
                tsn: Tsn::new(1),
                place,
                len: 1000,
                sent,
                repeated,
                cumulative: true,
                copied: None,
                stamp,
                was,
            };
            let (mut news, orders) = (News::default(), (Order::new(0), Order::new(1)));
            path.on_chunk_acked(sent + ms(1), orders, &acked, None, returned_here, &mut news);
            let proves = !silent || !repeated || returned_here;
            assert_eq!(news.proven().is_some(), proves, "silent {silent}, again {repeated}, back here {returned_here}");
            assert_eq!(news.acked, 1000);
        }
    }
}
