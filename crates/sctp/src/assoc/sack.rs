use super::Open;
use super::coupled::Coupled;
use crate::api::{FecLosses, LossDetection, SackPath};
use crate::number::{Order, Tsn};
use crate::path::{Congested, Flight, News, PathIndex};
use crate::tx::{Ack, AckReport};
use crate::wire::chunk::{GapBlocks, Sack};
use braidcast_core::Instant;
use braidcast_core::events::SctpEvent;
use core::time::Duration;

/// How a peer is told that its acknowledgements are not to be believed.
const LIE: &str = "acknowledged data that was never sent";

/// What is acknowledged within this share of the shortest round trip was made up for by redundancy
/// over a quicker path. A path that becomes shorter by less than the rest is still measured.
const SURELY: f64 = 0.75;

/// What one SACK said, gathered before it is acted on; kept between calls so that nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct AckScratch {
    report: AckReport,
    /// By [`PathIndex`].
    paths: Vec<PathNews>,
    overdue: Vec<(Tsn, PathIndex, Order)>,
}

/// What it said about one path.
#[derive(Clone, Copy, Debug, Default)]
struct PathNews {
    news: News,
    /// Bytes of the window that were taken before.
    occupied_before: usize,
}

impl Open {
    /// A SACK that came over the path `arrived` (RFC 9260 §6.2.1; for several paths: Iyengar et al.
    /// 2006 §III, PRCMT fig. 6).
    ///
    /// `kept`: the gap blocks of an NR-SACK that the peer cannot withdraw, which are not among those of `sack`.
    pub(super) fn handle_sack(&mut self, now: Instant, arrived: PathIndex, sack: &Sack<'_>, kept: GapBlocks<'_>) {
        if !self.state.is_up() {
            return;
        }
        if self.names_unsent(sack, kept) {
            return self.violation(LIE); // RFC 9260 §12.4.
        }
        self.note_duplicates(sack);
        let (cumulative, window, gaps) = (sack.cumulative_tsn, sack.a_rwnd, sack.gaps.len().max(kept.len()) as u16);
        let path = self.paths[arrived].id();
        self.journal.tell(|| SctpEvent::SackReceived { path, cumulative, gaps, window });
        let mut scratch = core::mem::take(&mut self.scratch.ack);
        let AckScratch { report, paths, overdue } = &mut scratch;
        let ack = Ack { cumulative: sack.cumulative_tsn, window: sack.a_rwnd, gaps: sack.gaps, kept };
        let (ledger, books) = self.books();
        let news = ledger.acknowledge(books, &ack, report);
        if ledger.was_lied_to() {
            self.scratch.ack = scratch;
            return self.violation(LIE);
        }
        if news {
            if sack.a_rwnd == 0 {
                self.errors = 0; // RFC 9260 §6.1 A: a peer without room is not dead.
            }
            self.gather(now, arrived, report, paths);
            let alone = paths.iter().filter(|it| it.news.proven().is_some()).count() == 1;
            for (place, it) in paths.iter().enumerate().filter(|(_, it)| it.news.any()) {
                self.path_acked(now, PathIndex::new(place), it, (arrived, alone, report.moved));
            }
            if self.options.papers.timer_follows_cumulative {
                self.restart_passed(now, &report.passed);
            }
            let after_retransmission =
                self.options.papers.max_burst_after_retransmission && report.chunks.iter().any(|it| it.repeated);
            self.paths.iter_mut().for_each(|path| path.end_burst(after_retransmission));
            self.scheduler.on_acknowledged();
            overdue.clear();
            self.report_missing(sack, report, (paths, alone), overdue);
            for &(tsn, path, order) in overdue.iter() {
                self.lose_unless_held(now, tsn, path, order);
                if self.options.papers.timer_follows_cumulative && self.ledger.oldest_is_gone(path) {
                    self.restart_timer(now, path);
                }
            }
            self.detect_losses(now);
            self.after_ack(now);
        }
        self.scratch.ack = scratch;
    }

    /// The cumulative acknowledgement moved past what last went over these paths: their timers start
    /// anew, as ns-2.35's do.
    fn restart_passed(&mut self, now: Instant, passed: &[bool]) {
        for (place, _) in passed.iter().enumerate().filter(|(_, passed)| **passed) {
            self.restart_timer(now, PathIndex::new(place));
        }
    }

    /// T3-rtx of the path `index` starts anew if anything is out there.
    fn restart_timer(&mut self, now: Instant, index: PathIndex) {
        if self.ledger.in_flight_over(index) > 0 {
            self.paths[index].restart_retransmission(now);
        }
    }

    /// Returns `true` if it acknowledges what was never sent.
    pub(super) fn names_unsent(&self, sack: &Sack<'_>, kept: GapBlocks<'_>) -> bool {
        let blocks = sack.gaps.iter().chain(kept.iter()).filter(|gap| gap.start <= gap.end);
        let highest = blocks.map(|gap| u64::from(gap.end)).max().unwrap_or(0);
        self.ledger.unwrap(sack.cumulative_tsn) + highest >= self.ledger.next_tsn()
    }

    /// Informs each path what became of its chunks.
    fn gather(&mut self, now: Instant, arrived: PathIndex, report: &AckReport, paths: &mut Vec<PathNews>) {
        paths.clear();
        paths.resize_with(self.paths.places(), PathNews::default);
        for (index, path) in self.paths.enumerate() {
            let before = report.in_flight_before.get(index.get()).copied().unwrap_or_default();
            paths[index.get()].occupied_before = path.occupied(before);
        }
        let redundant = self.sends_redundancy();
        for acked in &report.chunks {
            let Some((index, order)) = acked.place else { continue };
            let orders = (order, self.ledger.next_order(index));
            let earliest = redundant.then(|| acked.sent + self.shortest(index, arrived).mul_f64(SURELY));
            let news = &mut paths[index.get()].news;
            let made_up = self.paths[index].on_chunk_acked(now, orders, acked, earliest, index == arrived, news);
            if let Some(counts) = made_up {
                self.note_made_up_for(acked.tsn, index, counts);
                self.note_repaired(now, index, order);
            }
        }
    }

    /// The path `index` had chunks acknowledged by a SACK that came back over `back`, for it alone
    /// or not, and moved the cumulative acknowledgement or not.
    fn path_acked(
        &mut self,
        now: Instant,
        index: PathIndex,
        it: &PathNews,
        (back, alone, moved): (PathIndex, bool, bool),
    ) {
        if let Some(order) = it.news.proven() {
            self.paths[index].on_proven(order);
            self.path_answers(now, index);
        }
        let flight = Flight {
            occupied_before: it.occupied_before,
            in_flight: self.ledger.in_flight_over(index),
            next: self.ledger.next_order(index),
            oldest_is_gone: self.ledger.oldest_is_gone(index),
            returned_here: back == index,
            return_delay: self.return_delay(back),
            soonest: self.soonest(index, back),
            alone,
            moved,
        };
        let coupled = self.coupled(index);
        let siblings = coupled.as_ref().map(Coupled::siblings).unwrap_or_default();
        self.paths[index].on_acked(now, &it.news, &flight, siblings);
    }

    /// How long an acknowledgement that came over `back` was in flight, where delays are measured one way; else zero:
    /// times are those of whole round trips.
    fn return_delay(&self, back: PathIndex) -> Duration {
        match self.options.sack.path {
            SackPath::Quickest => self.paths[back].shortest_round_trip().unwrap_or_default() / 2,
            SackPath::Last | SackPath::Rotate => Duration::ZERO,
        }
    }

    /// Half a round trip over each of both paths where redundancy goes over others, or over the first if delays are
    /// measured one way; else what was measured counts.
    fn soonest(&self, there: PathIndex, back: PathIndex) -> Duration {
        if there == back || !self.sends_redundancy() {
            return Duration::ZERO;
        }
        match self.options.sack.path {
            SackPath::Quickest => self.paths[there].rtt().min().unwrap_or_default() / 2,
            SackPath::Last | SackPath::Rotate => self.shortest(there, back),
        }
    }

    /// Half of the shortest round trip over each of both paths.
    fn shortest(&self, there: PathIndex, back: PathIndex) -> Duration {
        [there, back].iter().filter_map(|&path| self.paths[path].rtt().min()).sum::<Duration>() / 2
    }

    /// A chunk that went over the path `index` as number `order` was acknowledged after later ones:
    /// redundancy made up for it, if it was not only late. Without a code nobody asks.
    fn note_repaired(&mut self, now: Instant, index: PathIndex, order: Order) {
        let path = &mut self.paths[index];
        let told = match self.options.redundancy.fec_losses {
            FecLosses::Hidden => false,
            FecLosses::Queued => path.shows_congestion(),
            FecLosses::Told => true,
        };
        if told && path.enter_recovery(order, self.ledger.next_order(index)) {
            self.reduce(now, index, Congested::Lost);
        }
    }

    /// Counts reports that chunks are missing, where the rule asks for that, and puts into
    /// `overdue` what is missing for good.
    fn report_missing(
        &mut self,
        sack: &Sack<'_>,
        report: &AckReport,
        (paths, alone): (&[PathNews], bool),
        overdue: &mut Vec<(Tsn, PathIndex, Order)>,
    ) {
        match self.options.papers.loss_detection {
            LossDetection::Time => {}
            // A SACK reports everything missing below the highest TSN that it newly acknowledges
            // (HTNA), and if it moves the cumulative TSN during a recovery, everything missing
            // below the highest that it names (RFC 9260 §7.2.4).
            LossDetection::PlainCount => {
                let recovering = self.paths.iter().any(crate::path::Path::is_recovering);
                let named = || {
                    Some(
                        self.ledger.unwrap(sack.cumulative_tsn) + u64::from(sack.gaps.iter().map(|gap| gap.end).max()?),
                    )
                };
                let limit = if report.moved && recovering { named() } else { report.highest };
                if let Some(highest) = limit {
                    self.ledger.report_missing_plainly(highest, overdue);
                }
            }
            LossDetection::Count => {
                // DAC: one SACK may stand for several packets, if all it newly acknowledges took
                // one path (Iyengar et al. §III-D).
                let by_gaps = self.options.papers.reports_by_gaps;
                let gaps = || paths.iter().filter(|it| it.news.lowest_by_gap().is_some()).count() == 1;
                let packets = if by_gaps { gaps() } else { alone }.then_some((sack.flags >> 6).max(1));
                for (place, it) in paths.iter().enumerate() {
                    let Some(highest) = it.news.proven() else { continue };
                    // What lies within the acknowledged gets one report in ns-2.
                    let lowest = it.news.lowest_by_gap().filter(|_| by_gaps).unwrap_or(highest);
                    let index = PathIndex::new(place);
                    self.ledger.report_missing(index, (lowest, highest), packets.unwrap_or(1), overdue);
                }
            }
        }
    }

    /// What follows whenever the cumulative acknowledgement may have moved.
    fn after_ack(&mut self, now: Instant) {
        if self.ledger.is_empty() {
            self.paths.iter_mut().for_each(crate::path::Path::on_nothing_out);
        } else if self.ledger.in_flight() == 0
            && self.ledger.has_no_repeats()
            && !self.ledger.is_forwarding()
            && let Some(index) = self.paths.for_control(None)
        {
            self.paths[index].guard_gap_acks(now);
        }
    }

    /// Duplicates mean repeats that were not needed; they widen the reordering window of the path they took.
    fn note_duplicates(&mut self, sack: &Sack<'_>) {
        self.journal.stats.duplicates_reported += sack.duplicates.len() as u64;
        for wire in sack.duplicates.iter() {
            let tsn = self.ledger.unwrap(wire);
            let again = self.ledger.was_sent_again(tsn);
            self.journal.stats.spurious_retransmissions += u64::from(again);
            if self.fec.is_some() && !again {
                self.note_overtaken(tsn);
                continue;
            }
            let chunk = self.ledger.get(tsn).filter(|chunk| chunk.has_message());
            let chunk = chunk.filter(|chunk| !self.queue.get(chunk.piece().message).copied);
            if let Some((index, _)) = chunk.and_then(crate::tx::Chunk::place) {
                self.paths[index].on_spurious();
            }
        }
    }
}
