//! Two ends, two clocks: how far the second is ahead of the first.

/// The shortest ways that were seen between the ends, each from one clock to the other, in ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    there: f64,
    back: f64,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { there: f64::INFINITY, back: f64::INFINITY }
    }
}

impl Clocks {
    /// Something left the first end at `sent` and reached the second at `arrived`, each by its own clock.
    pub(crate) fn there(&mut self, sent: f64, arrived: f64) {
        self.there = self.there.min(arrived - sent);
    }

    /// The same from the second to the first.
    pub(crate) fn back(&mut self, sent: f64, arrived: f64) {
        self.back = self.back.min(arrived - sent);
    }

    /// How far the second clock is ahead, if the shortest way takes as long in both directions;
    /// with one direction only, as if it took half of `round_trip`.
    pub(crate) fn ahead(&self, round_trip: f64) -> f64 {
        match (self.there.is_finite(), self.back.is_finite()) {
            (true, true) => (self.there - self.back) / 2.0,
            (true, false) => self.there - round_trip / 2.0,
            (false, true) => round_trip / 2.0 - self.back,
            (false, false) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_ways_tell_how_far_a_clock_is_ahead() {
        let mut it = Clocks::default();
        assert_eq!(it.ahead(40.0), 0.0);
        // 20 ms in each direction, and a clock that is 1000 ms ahead; one packet stood in a queue.
        it.there(100.0, 1150.0);
        it.there(110.0, 1130.0);
        assert_eq!(it.ahead(40.0), 1000.0);
        it.back(1200.0, 220.0);
        assert_eq!(it.ahead(40.0), 1000.0);
    }
}
