use crate::number::Tsn;

/// Which chunks were sent again of late, by TSN, even if they are acknowledged since: 1024 of them,
/// or fewer where their TSNs are the same modulo 1024. Takes no memory before the first.
#[derive(Debug, Default)]
pub(crate) struct SentAgain {
    places: Vec<u64>,
}

impl SentAgain {
    const PLACES: usize = 1024;

    const fn place(tsn: Tsn) -> usize {
        tsn.get() as usize % Self::PLACES
    }

    /// `tsn` was sent again.
    pub(crate) fn note(&mut self, tsn: Tsn) {
        self.places.resize(Self::PLACES, u64::MAX);
        self.places[Self::place(tsn)] = tsn.get();
    }

    /// Returns `true` if `tsn` was sent again.
    pub(crate) fn has(&self, tsn: Tsn) -> bool {
        self.places.get(Self::place(tsn)) == Some(&tsn.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_place_is_known() {
        let mut again = SentAgain::default();
        assert!([0, 7].map(Tsn::new).iter().all(|&tsn| !again.has(tsn)));
        [7, 8, 7 + 1024].into_iter().for_each(|tsn| again.note(Tsn::new(tsn)));
        assert_eq!([7, 8, 1031].map(|tsn| again.has(Tsn::new(tsn))), [false, true, true]);
    }
}
