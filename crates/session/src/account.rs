//! What became of the units of a stream. Each end keeps one account, in which at every moment and
//! for each kind
//!
//! `captured = on_time + late + given_up + missing + not_known_yet`.

use crate::playout::GRACE;
use crate::wire::{Feedback, KINDS};
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_sctp::Why;
use core::time::Duration;
use serde::Serialize;
use std::collections::VecDeque;

/// Span of the recent figures.
const RECENT: Duration = Duration::from_secs(10);
/// Interval of the snapshots from which they are taken.
const SNAPSHOT: Duration = Duration::from_secs(1);
/// Shortest interval between two remembered counts of captured units.
const SPACING: Duration = Duration::from_millis(200);
/// Remembered counts for the time until a unit is settled: what bounds the memory.
const SPACINGS: u32 = 32;

/// What became of the units of one kind since the stream began: `captured` is the sum of `on_time`,
/// `late`, `given_up`, `missing` and `not_known_yet`.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct KindReport {
    /// [`Kind::name`].
    pub kind: &'static str,
    /// Units captured.
    pub captured: u64,
    /// Units that came on time.
    pub on_time: u64,
    /// Units that came too late. They were skipped, but for those of use.
    pub late: u64,
    /// Units of these that were handed out all the same: others need them, they were at most 50 ms
    /// late, and nothing that comes after them in their elementary stream had been handed out. The
    /// receiver knows.
    pub late_of_use: u64,
    /// Units that the sender discarded: `unsent` and `abandoned`, less those that came all the same.
    pub given_up: u64,
    /// Units whose time is over, and that neither came nor were discarded as far as this end knows.
    pub missing: u64,
    /// Units that may still come on time, or of which the other end has not said what became.
    pub not_known_yet: u64,
    /// Units on time of all whose outcome is known, 0 to 1; `None` before any is known.
    pub on_time_share: Option<f64>,
    /// Units never sent, because they would have come too late or found no room.
    pub unsent: u64,
    /// Of those, the ones that would have come too late.
    pub expired: u64,
    /// Of those, the ones whose place in a full queue others took.
    pub crowded_out: u64,
    /// Units abandoned after a part was sent, as far as the sender noticed.
    pub abandoned: u64,
    /// Bytes of the units sent or received; of those that nobody misses (program guides, stuffing)
    /// as they were carried.
    pub bytes: u64,
}

/// What became of the units of one kind in a recent span: `captured` is the sum of the four behind it.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct RecentKind {
    /// [`Kind::name`].
    pub kind: &'static str,
    /// Units whose outcome became known in the span.
    pub captured: u64,
    /// Of those, the ones that came on time.
    pub on_time: u64,
    /// Of those, the ones that came too late.
    pub late: u64,
    /// Of those, the ones that the sender discarded.
    pub given_up: u64,
    /// Of those, the ones that did not come.
    pub missing: u64,
}

/// Counts by [`Kind::index`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) captured: [u64; KINDS],
    pub(crate) unsent: [u64; KINDS],
    pub(crate) expired: [u64; KINDS],
    pub(crate) crowded_out: [u64; KINDS],
    pub(crate) abandoned: [u64; KINDS],
    pub(crate) on_time: [u64; KINDS],
    pub(crate) late: [u64; KINDS],
    pub(crate) late_of_use: [u64; KINDS],
    pub(crate) bytes: [u64; KINDS],
}

impl Counts {
    /// SCTP abandoned a unit of `kind`, an index of [`Kind`], for this reason; `sent`: it was under way.
    pub(crate) fn abandon(&mut self, kind: usize, sent: bool, why: Option<Why>) {
        if sent {
            self.abandoned[kind] += 1;
            return;
        }
        self.unsent[kind] += 1;
        let crowded_out = matches!(why, Some(Why::Replaced | Why::NoRoom));
        *(if crowded_out { &mut self.crowded_out[kind] } else { &mut self.expired[kind] }) += 1;
    }
}

/// Outcome of the units of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Outcome {
    on_time: u64,
    late: u64,
    given_up: u64,
    missing: u64,
    not_known_yet: u64,
}

impl Outcome {
    const fn settled(&self) -> u64 {
        self.on_time + self.late + self.given_up + self.missing
    }

    const fn captured(&self) -> u64 {
        self.settled() + self.not_known_yet
    }
}

/// When the outcome of a unit that did not come is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settles {
    /// This long after its capture.
    After(Duration),
    /// When it comes: a reliable stream loses nothing while it lasts.
    OnArrival,
    /// It is: the stream is over.
    Now,
}

impl Settles {
    /// At the receiver of a stream with `latency`: when it is due, and its sender's next count has come.
    pub(crate) fn at_receiver(latency: Option<Duration>) -> Self {
        latency.map_or(Self::OnArrival, |latency| Self::After(latency + GRACE + Duration::from_millis(450)))
    }

    /// At the sender, which hears once a second what came.
    pub(crate) fn at_sender(latency: Option<Duration>) -> Self {
        latency.map_or(Self::OnArrival, |latency| Self::After(latency + GRACE + Duration::from_millis(1650)))
    }
}

/// The account of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) counts: Counts,
    /// Units captured by earlier moments, oldest first.
    captured: VecDeque<(Instant, [u64; KINDS])>,
    /// Outcomes at earlier moments, oldest first.
    outcomes: VecDeque<(Instant, [Outcome; KINDS])>,
    /// At the sender: what earlier receivers counted, and the present one.
    earlier: [Heard; KINDS],
    present: [Heard; KINDS],
    /// At the sender: when the receiver last said what came.
    heard_at: Option<Instant>,
    /// At the sender: the next word may come from another receiver, which counts from nothing.
    perhaps_another: bool,
}

/// What a receiver counted of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Heard {
    on_time: u64,
    late: u64,
}

impl Account {
    /// Remembers the counts of this moment. Call it some times a second.
    pub(crate) fn tick(&mut self, now: Instant, settles: Settles) {
        let Settles::After(wait) = settles else { return };
        let spacing = SPACING.max(wait / SPACINGS);
        if self.captured.back().is_none_or(|(at, _)| now.since(*at) >= spacing) {
            self.captured.push_back((now, self.counts.captured));
        }
        while self.captured.get(1).is_some_and(|(at, _)| now.since(*at) >= wait) {
            self.captured.pop_front();
        }
        if self.outcomes.back().is_none_or(|(at, _)| now.since(*at) >= SNAPSHOT) {
            self.outcomes.push_back((now, self.all(now, settles)));
        }
        while self.outcomes.get(1).is_some_and(|(at, _)| now.since(*at) >= RECENT) {
            self.outcomes.pop_front();
        }
    }

    /// At the sender: another association is up; who counts at its end may be another receiver.
    pub(crate) const fn on_association(&mut self) {
        self.perhaps_another = true;
    }

    /// At the sender: the receiver says what came. Words overtake each other, and counts only grow:
    /// in one association a smaller count is an older one. The first one in an association that is
    /// smaller is of a receiver that began anew.
    pub(crate) fn hear(&mut self, now: Instant, word: &Feedback) {
        let mut new = [Heard::default(); KINDS];
        for (i, heard) in new.iter_mut().enumerate() {
            *heard = Heard { on_time: word.on_time[i], late: word.late[i] };
        }
        let sum = |heard: &[Heard; KINDS]| heard.iter().map(|it| it.on_time.saturating_add(it.late)).sum::<u64>();
        let smaller = |(new, old): (&Heard, &Heard)| new.on_time < old.on_time || new.late < old.late;
        if core::mem::take(&mut self.perhaps_another) && new.iter().zip(&self.present).any(smaller) {
            for (earlier, present) in self.earlier.iter_mut().zip(&self.present) {
                earlier.on_time = earlier.on_time.saturating_add(present.on_time);
                earlier.late = earlier.late.saturating_add(present.late);
            }
            self.present = [Heard::default(); KINDS];
        }
        self.heard_at = Some(now);
        if sum(&new) < sum(&self.present) {
            return;
        }
        self.present = new;
        for (i, (earlier, present)) in self.earlier.iter().zip(&new).enumerate() {
            self.counts.on_time[i] = earlier.on_time.saturating_add(present.on_time);
            self.counts.late[i] = earlier.late.saturating_add(present.late);
        }
    }

    /// At the sender: time since the receiver last said what came.
    pub(crate) fn unheard_for(&self, now: Instant) -> Option<Duration> {
        self.heard_at.map(|at| now.since(at))
    }

    /// One line for each kind that occurred, with what `earlier` streams add: all of theirs is known.
    pub(crate) fn kinds(&self, now: Instant, settles: Settles, earlier: &Counts) -> Vec<KindReport> {
        let (present, past) = (self.all(now, settles), earlier.settled());
        let line = |kind: Kind| {
            let i = kind.index();
            let (a, b) = (present[i], past[i]);
            let outcome = Outcome {
                on_time: a.on_time + b.on_time,
                late: a.late + b.late,
                given_up: a.given_up + b.given_up,
                missing: a.missing + b.missing,
                not_known_yet: a.not_known_yet,
            };
            let sum = |count: fn(&Counts) -> &[u64; KINDS]| count(&self.counts)[i] + count(earlier)[i];
            (outcome.captured() > 0).then(|| KindReport {
                kind: kind.name(),
                captured: outcome.captured(),
                on_time: outcome.on_time,
                late: outcome.late,
                late_of_use: sum(|it| &it.late_of_use),
                given_up: outcome.given_up,
                missing: outcome.missing,
                not_known_yet: outcome.not_known_yet,
                on_time_share: share(outcome.on_time, outcome.settled()),
                unsent: sum(|it| &it.unsent),
                expired: sum(|it| &it.expired),
                crowded_out: sum(|it| &it.crowded_out),
                abandoned: sum(|it| &it.abandoned),
                bytes: sum(|it| &it.bytes),
            })
        };
        Kind::ALL.into_iter().filter_map(line).collect()
    }

    /// Seconds, at most some more than ten, and what became known in them of each kind.
    pub(crate) fn recent(&self, now: Instant, settles: Settles) -> (f64, Vec<RecentKind>) {
        let Some((since, before)) = self.outcomes.front() else { return (0.0, Vec::new()) };
        let present = self.all(now, settles);
        let line = |kind: Kind| {
            let (new, old) = (present[kind.index()], before[kind.index()]);
            // What was missing may have come after all; then it is on time or late, and missing no more.
            let on_time = new.on_time.saturating_sub(old.on_time);
            let late = new.late.saturating_sub(old.late);
            let given_up = new.given_up.saturating_sub(old.given_up);
            let missing = new.missing.saturating_sub(old.missing);
            let captured = on_time + late + given_up + missing;
            (captured > 0).then(|| RecentKind { kind: kind.name(), captured, on_time, late, given_up, missing })
        };
        (now.since(*since).as_secs_f64(), Kind::ALL.into_iter().filter_map(line).collect())
    }

    /// Outcomes of all kinds.
    fn all(&self, now: Instant, settles: Settles) -> [Outcome; KINDS] {
        let settled = match settles {
            Settles::Now => self.counts.captured,
            Settles::OnArrival => [0; KINDS],
            Settles::After(wait) => {
                let old = self.captured.iter().take_while(|(at, _)| now.since(*at) >= wait).last();
                old.map_or([0; KINDS], |(_, captured)| *captured)
            }
        };
        self.counts.outcomes(&settled)
    }
}

/// `part` of `whole`; `None` of nothing.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Counts {
    /// Adds what an earlier sender, or the same one before its restart, had done.
    pub(crate) fn add(&mut self, earlier: &Self) {
        let sum =
            |a: &mut [u64; KINDS], b: &[u64; KINDS]| a.iter_mut().zip(b).for_each(|(a, b)| *a = a.saturating_add(*b));
        sum(&mut self.captured, &earlier.captured);
        sum(&mut self.unsent, &earlier.unsent);
        sum(&mut self.expired, &earlier.expired);
        sum(&mut self.crowded_out, &earlier.crowded_out);
        sum(&mut self.abandoned, &earlier.abandoned);
        sum(&mut self.on_time, &earlier.on_time);
        sum(&mut self.late, &earlier.late);
        sum(&mut self.late_of_use, &earlier.late_of_use);
        sum(&mut self.bytes, &earlier.bytes);
    }

    /// There was no receiver: what was handed over was never sent.
    pub(crate) const fn nothing_sent(&mut self) {
        (self.unsent, self.bytes) = (self.captured, [0; KINDS]);
    }

    /// Outcomes of a stream that is over.
    fn settled(&self) -> [Outcome; KINDS] {
        self.outcomes(&self.captured)
    }

    /// Outcomes, if the first `settled` units have none to come.
    fn outcomes(&self, settled: &[u64; KINDS]) -> [Outcome; KINDS] {
        let mut outcomes = [Outcome::default(); KINDS];
        for (i, outcome) in outcomes.iter_mut().enumerate() {
            let (on_time, late) = (self.on_time[i], self.late[i]);
            let came = on_time.saturating_add(late);
            // The sender's count comes a moment after its units.
            let captured = self.captured[i].max(came);
            // One that was abandoned may have come: the sender cannot know.
            let given_up = (self.unsent[i].saturating_add(self.abandoned[i])).min(captured - came);
            let known = came + given_up;
            let settled = settled[i].clamp(known, captured);
            *outcome = Outcome { on_time, late, given_up, missing: settled - known, not_known_yet: captured - settled };
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: usize = 3;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn line(account: &Account, now: Instant, settles: Settles) -> KindReport {
        let line = account.kinds(now, settles, &Counts::default()).pop().unwrap_or_default();
        let sum = line.on_time + line.late + line.given_up + line.missing + line.not_known_yet;
        assert_eq!(line.captured, sum, "{line:?}");
        line
    }

    fn word(on_time: u64, late: u64) -> Feedback {
        let mut word = Feedback::default();
        (word.on_time[P], word.late[P]) = (on_time, late);
        word
    }

    #[test]
    fn a_receiver_that_says_nothing_more_leaves_nothing_on_time() {
        let settles = Settles::at_sender(Some(Duration::from_millis(500)));
        let mut account = Account::default();
        account.on_association();
        for tick in 0..150u64 {
            account.counts.captured[P] = tick * 5;
            if tick % 5 == 0 && tick < 50 {
                account.hear(at(tick * 200), &word((tick * 5).saturating_sub(10), 0));
            }
            account.tick(at(tick * 200), settles);
        }
        let end = line(&account, at(30_000), settles);
        assert_eq!((end.captured, end.on_time, end.late), (745, 215, 0));
        assert!(end.not_known_yet <= 70 && end.missing >= 460, "{end:?}");
        assert!(end.on_time_share.unwrap() < 0.33, "{end:?}");
        let (seconds, recent) = account.recent(at(30_000), settles);
        assert!((10.0..=11.2).contains(&seconds), "{seconds}");
        assert_eq!((recent[0].on_time, recent[0].captured), (0, recent[0].missing), "{recent:?}");
        assert_eq!(account.unheard_for(at(30_000)), Some(Duration::from_secs(21)));
    }

    #[test]
    fn a_receiver_that_began_anew_adds_to_what_the_old_one_counted() {
        let settles = Settles::at_sender(Some(Duration::from_millis(500)));
        let mut account = Account::default();
        account.on_association();
        account.counts.captured[P] = 100;
        account.hear(at(0), &word(90, 2));
        account.hear(at(1), &word(80, 2));
        assert_eq!(line(&account, at(2), settles).on_time, 90, "an older word that came later");
        account.on_association();
        account.counts.captured[P] = 200;
        account.hear(at(3), &word(10, 0));
        let both = line(&account, at(4), settles);
        assert_eq!((both.on_time, both.late), (100, 2));
        account.on_association();
        account.hear(at(5), &word(40, 1));
        let same = line(&account, at(6), settles);
        assert_eq!((same.on_time, same.late), (130, 3), "the same receiver goes on counting");
    }

    #[test]
    fn what_is_under_way_is_not_known_yet_and_what_is_given_up_is_known_at_once() {
        let settles = Settles::at_receiver(Some(Duration::from_millis(500)));
        let mut account = Account::default();
        account.counts.captured[P] = 50;
        account.counts.unsent[P] = 5;
        account.counts.abandoned[P] = 5;
        account.counts.on_time[P] = 20;
        account.tick(at(0), settles);
        let now = line(&account, at(0), settles);
        assert_eq!((now.given_up, now.missing, now.not_known_yet), (10, 0, 20));
        assert_eq!(now.on_time_share, Some(20.0 / 30.0));
        let later = line(&account, at(1100), settles);
        assert_eq!((later.missing, later.not_known_yet), (20, 0));
        // Abandoned units that came all the same are not counted twice.
        account.counts.on_time[P] = 45;
        assert_eq!(line(&account, at(1200), settles).given_up, 5);
        assert_eq!(line(&account, at(0), Settles::OnArrival).missing, 0);
        assert_eq!(line(&account, at(0), Settles::Now).not_known_yet, 0);
    }
}
