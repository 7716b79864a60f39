//! RaptorQ from end to end: what was lost comes back, and only what was sent.

use crate::common;
use crate::common::symbol;
use braidcast_core::Rng;
use braidcast_fec::raptorq::{Decoder, Encoder, NoBlock, Repair};
use braidcast_fec::{DecoderLimits, Unusable};
use proptest::prelude::*;

fn encoded(repair: &Repair) -> Vec<u8> {
    let sources: Vec<Vec<u8>> = (repair.first..repair.end()).map(symbol).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut out = Vec::new();
    repair.encode(&sources, &mut out).unwrap();
    out
}

fn recovered(decoder: &mut Decoder) -> Vec<u64> {
    common::recovered(|bytes| decoder.poll_recovered(bytes))
}

/// Of `k` sources, `r` were lost; the repair symbols it took to get them back.
fn repairs_needed(seed: u64, k: u16, r: u16) -> u16 {
    let mut rng = Rng::from_seed(seed);
    let mut decoder = Decoder::new(DecoderLimits::default(), 0);
    let mut lost: Vec<u64> = Vec::new();
    while lost.len() < usize::from(r) {
        let id = rng.below(u64::from(k));
        if !lost.contains(&id) {
            lost.push(id);
        }
    }
    (0..u64::from(k)).filter(|id| !lost.contains(id)).for_each(|id| decoder.on_source(id, &symbol(id)));
    for key in 0..r + 10 {
        let repair = Repair { first: 0, count: k, key };
        decoder.on_repair(&repair, &encoded(&repair)).unwrap();
        let mut back = recovered(&mut decoder);
        if !back.is_empty() {
            back.sort_unstable();
            lost.sort_unstable();
            assert_eq!(back, lost, "the whole block, or nothing");
            let more = decoder.on_repair(&repair, &encoded(&repair));
            assert_eq!(more, Err(Unusable::Redundant));
            return key + 1;
        }
    }
    panic!("{r} of {k} did not come back with {} repair symbols", r + 10);
}

#[test]
fn it_needs_seldom_more_than_what_was_lost() {
    let spare: Vec<u16> = (0..200)
        .map(|seed| {
            let (k, r) = (1 + (seed * 7 % 60) as u16, 1 + (seed % 9) as u16);
            let r = r.min(k);
            repairs_needed(seed, k, r) - r
        })
        .collect();
    assert!(spare.iter().filter(|&&it| it > 0).count() <= 10, "{spare:?}");
    assert!(repairs_needed(1, 600, 30) <= 31, "a block that GF(256) cannot have");
}

#[test]
fn it_drops_lies_and_stays_within_its_bounds() {
    let limits = DecoderLimits { window: 50, repairs: 6, symbol: 500 };
    let mut decoder = Decoder::new(limits, 100);
    (100..120).filter(|id| id % 10 != 3).for_each(|id| decoder.on_source(id, &symbol(id)));
    let over = |first, count, key| Repair { first, count, key };
    let truth = encoded(&over(100, 10, 0));
    for (repair, data, why) in [
        (over(100, 0, 0), &truth[..], Unusable::Outside),
        (over(100, 51, 0), &truth, Unusable::Outside),
        (over(99, 5, 0), &truth, Unusable::TooOld),
        (over(u64::MAX, 5, 0), &truth, Unusable::Outside),
        (over(104, 5, 0), &truth, Unusable::Redundant),
        (over(100, 10, 0), &truth[..1], Unusable::BadLength),
        (over(100, 10, 0), &[0; 503], Unusable::BadLength),
    ] {
        assert_eq!(decoder.on_repair(&repair, data), Err(why), "{repair:?}");
    }
    // Of another length, with other bytes: no block that could be.
    decoder.on_repair(&over(100, 10, 0), &[7; 300]).unwrap();
    decoder.on_repair(&over(100, 10, 0), &[7; 20]).unwrap();
    assert_eq!((recovered(&mut decoder), decoder.stats().inconsistent), (vec![], 2));
    decoder.on_repair(&over(100, 10, 0), &truth).unwrap();
    assert_eq!(recovered(&mut decoder), [103]);
    // Repair symbols for what nobody will ever complete.
    for key in 0..100 {
        let _ = decoder.on_repair(&over(120 + u64::from(key) % 20, 20, key), &[1; 100]);
    }
    assert!(decoder.stats().given_up >= 94, "{:?}", decoder.stats());
}

#[test]
fn a_block_that_cannot_be_is_refused() {
    let (mut out, long) = (vec![1], vec![0; 65_534]);
    let repair = |count| Repair { first: 0, count, key: 0 };
    assert_eq!(repair(0).encode(&[], &mut out), Err(NoBlock));
    assert_eq!(repair(1).encode(&[&long], &mut out), Err(NoBlock));
    assert_eq!(repair(60_000).encode(&[b"".as_slice(); 60_000], &mut out), Err(NoBlock));
    assert!(out.is_empty());
}

proptest! {
    /// Whatever is lost, what comes back is what was sent, once, and was missing.
    #[test]
    fn nothing_comes_back_that_was_not_lost(seed: u64, loss in 0.0..0.5f64, k in 1..20u16, r in 1..6u16) {
        let mut rng = Rng::from_seed(seed);
        let (mut encoder, mut decoder) = (Encoder::new(k + r, k), Decoder::new(DecoderLimits::default(), 5000));
        let (mut back, mut missing) = (Vec::new(), Vec::new());
        for id in 5000..5300 {
            encoder.on_source(id);
            if rng.chance(loss) {
                missing.push(id);
            } else {
                decoder.on_source(id, &symbol(id));
            }
            while let Some(repair) = encoder.poll_repair() {
                if !rng.chance(loss) {
                    let _ = decoder.on_repair(&repair, &encoded(&repair));
                }
            }
            back.extend(recovered(&mut decoder));
        }
        let mut once = back.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), back.len());
        prop_assert!(back.iter().all(|id| missing.contains(id)));
    }
}
