use super::{Path, PathIndex};
use crate::api::{JoinError, Options, PathState};
use braidcast_core::{Instant, PathId, Route};
use core::ops::{Index, IndexMut};
use core::time::Duration;
use std::sync::Arc;

/// The paths of an association. Places are used again, [`PathId`]s only after 65,536 paths.
#[derive(Debug)]
pub(crate) struct Paths {
    options: Arc<Options>,
    places: Vec<Option<Path>>,
    next_id: u16,
    primary: PathIndex,
    last: PathIndex,
    /// When one of them last answered.
    answered: Option<Instant>,
    changes: Vec<(Route, bool)>,
    /// The maximum rate over a route, there or yet to come, bytes per second.
    limits: Vec<(Route, f64)>,
}

impl Paths {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        let first = PathIndex::new(0);
        Self {
            options,
            places: Vec::new(),
            next_id: 0,
            primary: first,
            last: first,
            answered: None,
            changes: Vec::new(),
            limits: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, now: Instant, route: Route, state: PathState) -> PathIndex {
        // After 65,536 joins ids begin anew, and one of them may be in use still.
        while self.by_id(PathId(self.next_id)).is_some() {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let mut path = Path::new(now, PathId(self.next_id), route, state, self.options.clone());
        path.set_limit(self.limit(route));
        self.next_id = self.next_id.wrapping_add(1);
        self.changes.push((route, true));
        let place = self.places.iter().position(Option::is_none).unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(path);
        PathIndex::new(place)
    }

    /// Takes a path out. What names it by its index must go with it.
    pub(crate) fn remove(&mut self, index: PathIndex) -> Option<Path> {
        let path = self.places.get_mut(index.get())?.take()?;
        self.changes.push((path.route, false));
        if self.primary == index {
            let first = self.indices().next();
            self.primary = first.unwrap_or(PathIndex::new(0));
        }
        Some(path)
    }

    /// The path begins anew, as the peer has restarted.
    pub(crate) fn renew(&mut self, now: Instant, index: PathIndex) {
        let limit = self.limit(self[index].route);
        let path = &mut self[index];
        *path = Path::new(now, path.id, path.route, PathState::Active, path.options.clone());
        path.set_limit(limit);
    }

    /// The maximum rate over `route`, bytes per second with all headers.
    fn limit(&self, route: Route) -> Option<f64> {
        self.limits.iter().find(|(limited, _)| *limited == route).map(|&(_, limit)| limit)
    }

    /// No more than `limit` is sent over `route`, bytes per second with all headers, from now on and whenever it
    /// becomes a path. `None`: as much as it carries.
    pub(crate) fn set_limit(&mut self, route: Route, limit: Option<f64>) {
        self.limits.retain(|(limited, _)| *limited != route);
        self.limits.extend(limit.map(|limit| (route, limit)));
        if let Some(index) = self.by_route(route) {
            self[index].set_limit(limit);
        }
    }

    pub(crate) fn by_route(&self, route: Route) -> Option<PathIndex> {
        self.enumerate().find(|(_, path)| path.route == route).map(|(index, _)| index)
    }

    pub(crate) fn by_id(&self, id: PathId) -> Option<PathIndex> {
        self.enumerate().find(|(_, path)| path.id == id).map(|(index, _)| index)
    }

    /// Returns `true` if one more path may be added.
    pub(crate) fn check_room(&self) -> Result<(), JoinError> {
        let limit = self.options.paths.max_paths;
        if self.len() < limit { Ok(()) } else { Err(JoinError::TooManyPaths { limit }) }
    }

    /// One past the highest place.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// The path, where there never was a second one at a time.
    pub(crate) fn only(&self) -> Option<PathIndex> {
        if let [Some(_)] = self.places[..] { Some(PathIndex::new(0)) } else { None }
    }

    /// The path in `place`, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<PathIndex> {
        self.places.get(place)?.as_ref().map(|_| PathIndex::new(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = PathIndex> + '_ {
        self.enumerate().map(|(index, _)| index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.places.iter_mut().flatten()
    }

    /// Paths with their indices.
    pub(crate) fn enumerate(&self) -> impl Iterator<Item = (PathIndex, &Path)> {
        self.places.iter().enumerate().filter_map(|(place, path)| Some((PathIndex::new(place), path.as_ref()?)))
    }

    /// Routes that became or ceased to be paths since the last call, for the endpoint's index.
    pub(crate) fn take_changes(&mut self) -> impl Iterator<Item = (Route, bool)> + '_ {
        self.changes.drain(..)
    }

    /// Returns `true` if paths came or went since then.
    pub(crate) const fn have_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// When a path last answered; `None` before the first answer.
    pub(crate) const fn answered(&self) -> Option<Instant> {
        self.answered
    }

    /// A path answers.
    pub(crate) const fn note_answer(&mut self, now: Instant) {
        self.answered = Some(now);
    }

    /// We did not run for `late`, until `now`: no path is to blame for that.
    pub(crate) fn on_late_wake(&mut self, now: Instant, late: Duration) {
        self.iter_mut().for_each(|path| path.on_late_wake(now, late));
        self.answered = self.answered.map(|at| at + late);
    }

    /// The path of the handshake, or the one that data went to last.
    pub(crate) const fn last(&self) -> PathIndex {
        self.last
    }

    /// Data went over the path `index`.
    pub(crate) const fn note_last(&mut self, index: PathIndex) {
        self.last = index;
    }

    /// Makes the path `index` the primary one (RFC 9260 §6.4).
    pub(crate) const fn set_primary(&mut self, index: PathIndex) {
        self.primary = index;
    }

    /// The primary path, if there is one still.
    pub(crate) fn primary(&self) -> Option<PathIndex> {
        self.at(self.primary.get())
    }

    /// The rank of the best path that there is, not counting `except`.
    pub(crate) fn best_rank(&self, except: Option<PathIndex>) -> Option<u8> {
        self.enumerate().filter(|&(index, _)| Some(index) != except).filter_map(|(_, path)| path.rank()).min()
    }

    /// The best paths that there are: those that new data may go over.
    pub(crate) fn best(&self) -> impl Iterator<Item = (PathIndex, &Path)> + Clone {
        self.of_rank(self.best_rank(None))
    }

    /// The paths of a rank; with `None` there are none.
    fn of_rank(&self, rank: Option<u8>) -> impl Iterator<Item = (PathIndex, &Path)> + Clone {
        let places = self.places.iter().enumerate();
        let paths = places.filter_map(|(place, path)| Some((PathIndex::new(place), path.as_ref()?)));
        paths.filter(move |(_, path)| rank.is_some() && path.rank() == rank)
    }

    /// Returns `true` if the path `index` is among the best that there are.
    pub(crate) fn is_best(&self, index: PathIndex) -> bool {
        let rank = self[index].rank();
        rank.is_some() && rank == self.best_rank(None)
    }

    /// A path for control chunks: `preferred` unless another one answers better, then the one of
    /// the lowest RTT.
    pub(crate) fn for_control(&self, preferred: Option<PathIndex>) -> Option<PathIndex> {
        let best = self.best_rank(None)?;
        let good = |&index: &PathIndex| self[index].rank() == Some(best);
        preferred
            .filter(good)
            .or_else(|| self.of_rank(Some(best)).min_by_key(|(_, path)| path.rtt.srtt()).map(|(index, _)| index))
    }

    /// The path whose turn it is, number `turn`, of all that may be used, failed or not.
    pub(crate) fn usable_in_turn(&self, turn: usize) -> Option<PathIndex> {
        let usable = || self.enumerate().filter(|(_, path)| path.is_usable()).map(|(index, _)| index);
        usable().nth(turn % usable().count().max(1))
    }

    /// The path that new data goes over when one is used at a time: the primary one if it is among
    /// the best, else the first of those (RFC 9260 §6.4.1 leaves the choice open).
    pub(crate) fn data_path(&self) -> Option<PathIndex> {
        let best = self.best_rank(None)?;
        let primary = self.at(self.primary.get()).filter(|&index| self[index].rank() == Some(best));
        primary.or_else(|| self.of_rank(Some(best)).next().map(|(index, _)| index))
    }

    /// The paths that data may go over now: the best ones, or one of them where one is used at a
    /// time.
    pub(crate) fn for_data(&self) -> impl Iterator<Item = (PathIndex, &Path)> + Clone {
        let only = if self.options.paths.concurrent { None } else { self.data_path() };
        let all = self.options.paths.concurrent;
        self.best().filter(move |&(index, _)| all || only == Some(index))
    }

    /// Returns `true` if data may go over the path `index` now.
    pub(crate) fn is_for_data(&self, index: PathIndex) -> bool {
        if self.options.paths.concurrent { self.is_best(index) } else { self.data_path() == Some(index) }
    }

    /// The best path but `index` that carries packets of `size` bytes, unless it has failed.
    pub(crate) fn best_other(&self, index: PathIndex, size: usize) -> Option<PathIndex> {
        let others = self.enumerate().filter(|&(other, path)| other != index && path.mtu() >= size);
        let alive = others.filter_map(|(other, path)| Some((path.rank().filter(|&rank| rank <= 1)?, path, other)));
        alive.min_by_key(|&(rank, path, _)| (rank, path.rtt.srtt())).map(|(_, _, other)| other)
    }

    /// The path that has failed most often of those that are not active: the one to drop for a new
    /// one.
    pub(crate) fn worst(&self) -> Option<PathIndex> {
        let idle = self.enumerate().filter(|(_, path)| path.state != PathState::Active);
        idle.max_by_key(|(_, path)| path.errors).map(|(index, _)| index)
    }

    /// The packet size that every path carries which may be used, for cutting messages.
    pub(crate) fn common_mtu(&self) -> usize {
        self.iter().filter(|path| path.is_usable()).map(Path::mtu).min().unwrap_or(self.options.paths.base_mtu)
    }
}

impl Index<PathIndex> for Paths {
    type Output = Path;

    fn index(&self, index: PathIndex) -> &Path {
        self.places[index.get()].as_ref().expect("whatever names a path goes when the path goes")
    }
}

impl IndexMut<PathIndex> for Paths {
    fn index_mut(&mut self, index: PathIndex) -> &mut Path {
        self.places[index.get()].as_mut().expect("whatever names a path goes when the path goes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::SocketId;

    #[test]
    fn ids_that_begin_anew_leave_out_those_in_use() {
        let mut paths = Paths::new(Arc::new(Options::default()));
        let route = |port| Route::new(SocketId(0), ([192, 0, 2, 1], port).into());
        let add = |paths: &mut Paths, port| {
            let index = paths.add(Instant::ZERO, route(port), PathState::Active);
            paths[index].id()
        };
        let kept = add(&mut paths, 1);
        paths.next_id = u16::MAX;
        assert_eq!(kept, PathId(0));
        assert_eq!([2, 3].map(|port| add(&mut paths, port)), [PathId(u16::MAX), PathId(1)]);
    }
}
