//! Which message a path takes a part of, where what waits is laid over all paths.

use super::{ByWorth, CHAIN, Entry, INTRA, level};
use crate::{Place, Planned, Ways};
use braidcast_core::Instant;
use core::fmt;

/// What a plan leaves to others: each part is a packet of its own. Bytes.
const LEAST_PART: f64 = 1000.0;

/// Messages are planned to be there so much before they are due: forecasts differ by that. Of 0, 20 and 50 ms this one
/// shows most (decision 41).
const AHEAD: f64 = 0.02;

/// What is never due is planned to be there by then, s.
const UNHURRIED: f64 = 1.0;

/// Messages that one look leaves out at most because too much waits: each has all laid anew.
const LEFT_OUT: usize = 16;

/// What came of laying all that waits over the paths.
enum Laid {
    Takes(Planned),
    Nothing,
    /// Up to this place it is more than they carry in time.
    TooMuch(usize),
}

/// Seconds that are left until `due`, less what forecasts differ by.
fn time(now: Instant, due: Option<Instant>) -> f64 {
    due.map_or(UNHURRIED, |due| due.since(now).as_secs_f64()) - AHEAD
}

/// What came of one message.
struct Share {
    /// It takes more than the time that it has.
    is_late: bool,
    /// The path has a part of it that is worth a packet.
    is_mine: bool,
}

impl<M: fmt::Debug + Send> ByWorth<M> {
    /// Lays a message over `ways`, of which the path `mine` is one. If others need it, a path that loses or delays
    /// its part takes it while there is time to repeat it, as long as all of it can be there so.
    fn share(ways: &mut Ways, mine: usize, bytes: usize, time: f64, is_needed: bool) -> Share {
        let (before, bytes) = (ways.first(mine), bytes as f64);
        let to_repeat = is_needed && ways.lay_to_repeat(bytes, time);
        let is_late = !to_repeat && ways.lay(bytes, time) > 1.0;
        let latest = if to_repeat { time - ways.again(mine) } else { time };
        Share { is_late, is_mine: before < latest && ways.share_since(mine, before) >= LEAST_PART.min(bytes) }
    }

    /// Lays what waits and is not left out, in the order in which it came, up to the first of which the path `mine` has
    /// a part. Much is risked for what begins a group, and what is under way is helped as long as that can be in time.
    fn lay(
        &self,
        now: Instant,
        ways: &mut Ways,
        mine: usize,
        under_way: Option<(usize, Option<Instant>)>,
        may: &dyn Fn(&M) -> bool,
    ) -> Laid {
        ways.begin();
        if let Some((bytes, due)) = under_way
            && Self::share(ways, mine, bytes, time(now, due), true).is_mine
        {
            return Laid::Takes(Planned::UnderWay);
        }
        for (place, Entry { tag, message, .. }) in self.waiting.iter().enumerate().filter(|(_, entry)| !entry.left_out)
        {
            if level(tag) == 0 {
                ways.lay_first(tag.len as f64);
                continue;
            }
            let share = Self::share(ways, mine, tag.len, time(now, tag.due()), level(tag) <= CHAIN);
            if share.is_late && self.worst(place).is_some() {
                return Laid::TooMuch(place);
            }
            if share.is_mine && may(message) {
                return Laid::Takes(Planned::Waiting(Place(place)));
            }
        }
        Laid::Nothing
    }

    /// What is worth least of all up to `place` that is not left out: of those alike the last, which the fewest need;
    /// `None` if all begins groups or is worth more.
    fn worst(&self, place: usize) -> Option<usize> {
        let laid = self.waiting.iter().enumerate().take(place + 1);
        let fewer = laid.filter(|(_, entry)| !entry.left_out && level(&entry.tag) > INTRA);
        fewer.map(|(place, entry)| (level(&entry.tag), place)).max().map(|(_, place)| place)
    }

    /// What the path `mine` takes a part of next ([`SendQueue::planned`](crate::SendQueue::planned)).
    pub(super) fn take_next(
        &mut self,
        now: Instant,
        ways: &mut Ways,
        mine: usize,
        under_way: Option<(usize, Option<Instant>)>,
        may: &dyn Fn(&M) -> bool,
    ) -> Option<Planned> {
        self.waiting.iter_mut().for_each(|entry| entry.left_out = entry.hopeless || entry.cut);
        for _ in 0..LEFT_OUT {
            match self.lay(now, ways, mine, under_way, may) {
                Laid::Takes(planned) => return Some(planned),
                Laid::TooMuch(place) => {
                    let worst = self.worst(place)?;
                    self.waiting[worst].left_out = true;
                }
                Laid::Nothing => return None,
            }
        }
        None
    }
}
