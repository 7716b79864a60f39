/// Which chunks were sent again of late, by TSN, even if they are acknowledged since: 1024 of them, or fewer where their TSNs
/// are the same modulo 1024. Takes no memory before the first.
#[derive(Debug, Default)]
pub(crate) struct SentAgain {
    places: Vec<u64>,
}

impl SentAgain {
    const PLACES: usize = 1024;

    /// `tsn` was sent again.
    pub(crate) fn note(&mut self, tsn: u64) {
        self.places.resize(Self::PLACES, u64::MAX);
        self.places[tsn as usize % Self::PLACES] = tsn;
    }

    /// Whether `tsn` was sent again.
    pub(crate) fn has(&self, tsn: u64) -> bool {
        self.places.get(tsn as usize % Self::PLACES) == Some(&tsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_place_is_known() {
        let mut again = SentAgain::default();
        assert!(!again.has(0) && !again.has(7));
        [7, 8, 7 + 1024].into_iter().for_each(|tsn| again.note(tsn));
        assert!(!again.has(7) && again.has(8) && again.has(1031));
    }
}
