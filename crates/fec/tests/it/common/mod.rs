//! What tests of all codes share.

use braidcast_core::Rng;

/// The source symbol of this number: its length and bytes follow from it.
pub(crate) fn symbol(id: u64) -> Vec<u8> {
    let mut rng = Rng::from_seed(id);
    let mut bytes = vec![0; rng.below(200) as usize];
    rng.fill(&mut bytes);
    bytes
}

/// What comes back by `poll`, each checked.
pub(crate) fn recovered(mut poll: impl FnMut(&mut Vec<u8>) -> Option<u64>) -> Vec<u64> {
    let mut bytes = Vec::new();
    let next = || {
        let id = poll(&mut bytes)?;
        assert_eq!(bytes, symbol(id), "{id} came back different");
        Some(id)
    };
    core::iter::from_fn(next).collect()
}
