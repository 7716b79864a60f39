//! Codes from end to end: what was lost comes back, and only what was sent.

use crate::common;
use crate::common::symbol;
use braidcast_core::Rng;
use braidcast_fec::{Code, Coefficients, Combination, DecoderLimits, Evicted, LinearDecoder, Unusable};
use proptest::prelude::*;

fn repair(combination: &Combination) -> Vec<u8> {
    let sources: Vec<Vec<u8>> = (combination.first..combination.end()).map(symbol).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut out = Vec::new();
    combination.encode(&sources, &mut Vec::new(), &mut out).unwrap();
    out
}

/// What comes back, each checked.
fn recovered(decoder: &mut LinearDecoder) -> Vec<u64> {
    common::recovered(|bytes| decoder.poll_recovered(bytes))
}

/// Sends sources and repairs of `code`; a packet is lost if `lost` says so. Returns what came back,
/// and what was lost.
fn over(code: Code, ids: core::ops::Range<u64>, mut lost: impl FnMut() -> bool) -> (Vec<u64>, Vec<u64>) {
    let (mut encoder, mut decoder) = (code.encoder(), LinearDecoder::new(DecoderLimits::default(), ids.start));
    let (mut back, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        encoder.on_source(id);
        if lost() {
            missing.push(id);
        } else {
            decoder.on_source(id, &symbol(id));
        }
        while let Some(combination) = encoder.poll_repair() {
            if !lost() {
                let _ = decoder.on_repair(&combination, &repair(&combination));
            }
        }
        back.extend(recovered(&mut decoder));
    }
    (back, missing)
}

#[test]
fn a_block_makes_up_for_as_many_as_it_has_repairs_whichever_they_are() {
    for seed in 0..300 {
        let mut rng = Rng::from_seed(seed);
        let (k, r) = (1 + rng.below(100), 1 + rng.below(20));
        let mut decoder = LinearDecoder::new(DecoderLimits::default(), 1000 * seed);
        let mut order: Vec<u64> = (0..k).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let lost = order.split_off(order.len() - (r.min(k) as usize));
        let base = 1000 * seed;
        for &id in &order {
            let whole = symbol(base + id);
            let (head, body) = whole.split_at(rng.below(whole.len() as u64 + 1) as usize);
            decoder.on_source_of(base + id, head, body);
        }
        for key in 0..r as u16 {
            let combination = Combination { coefficients: Coefficients::Cauchy, first: base, count: k as u16, key };
            let outcome = decoder.on_repair(&combination, &repair(&combination));
            assert_eq!(outcome.is_ok(), usize::from(key) < lost.len(), "{k} sources, repair {key} of {r}");
        }
        let mut back = recovered(&mut decoder);
        back.sort_unstable();
        let mut lost: Vec<_> = lost.into_iter().map(|id| base + id).collect();
        lost.sort_unstable();
        assert_eq!(back, lost);
    }
}

#[test]
fn tetrys_makes_up_for_a_burst_that_is_too_long_for_a_block() {
    let burst = || {
        let mut n = 0;
        move || {
            n += 1;
            (40..44).contains(&n)
        }
    };
    let over = |code: &str| {
        let (back, missing) = over(code.parse().unwrap(), 0..200, burst());
        (back.len(), missing.len())
    };
    // Three sources and a repair are lost.
    assert_eq!(over("block:10,9"), (0, 3));
    assert_eq!(over("convolutional:10,9,20"), (0, 3), "only two repairs cover all of them");
    assert_eq!(over("tetrys:10,9,100"), (3, 3));
}

#[test]
fn what_comes_late_serves_as_well() {
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 0);
    for id in [0, 1, 2, 7, 8, 9] {
        decoder.on_source(id, &symbol(id));
    }
    let combination = |key| Combination { coefficients: Coefficients::Random, first: 0, count: 10, key };
    for key in 1..=3 {
        decoder.on_repair(&combination(key), &repair(&combination(key))).unwrap();
    }
    assert_eq!(recovered(&mut decoder), [], "four are missing, and there are three repairs");
    decoder.on_source(5, &symbol(5));
    let mut back = recovered(&mut decoder);
    back.sort_unstable();
    assert_eq!(back, [3, 4, 6]);
    assert_eq!(decoder.on_repair(&combination(4), &repair(&combination(4))), Err(Unusable::Redundant));
}

#[test]
fn lies_are_dropped_and_counted() {
    let limits = DecoderLimits { window: 100, repairs: 8, symbol: 500 };
    let mut decoder = LinearDecoder::new(limits, 1000);
    (1000..1050).filter(|id| id % 10 != 3).for_each(|id| decoder.on_source(id, &symbol(id)));
    let over = |first, count| Combination { coefficients: Coefficients::Random, first, count, key: 1 };
    let data = [7; 300];
    assert_eq!(decoder.on_repair(&over(1000, 0), &data), Err(Unusable::Outside));
    assert_eq!(decoder.on_repair(&over(1000, 60_000), &data), Err(Unusable::Outside));
    assert_eq!(decoder.on_repair(&over(u64::MAX - 3, 50), &data), Err(Unusable::Outside));
    assert_eq!(decoder.on_repair(&over(3, 50), &data), Err(Unusable::TooOld));
    assert_eq!(decoder.on_repair(&over(1000, 10), &[1]), Err(Unusable::BadLength));
    assert_eq!(decoder.on_repair(&over(1000, 10), &[1; 503]), Err(Unusable::BadLength));
    // It covers one missing symbol, so it is solved at once; but its length, 1799 or so, is nonsense.
    decoder.on_repair(&over(1000, 10), &data).unwrap();
    assert_eq!(recovered(&mut decoder), []);
    assert_eq!((decoder.stats().inconsistent, decoder.stats().unusable), (1, 6));
    // The truth still works.
    decoder.on_repair(&over(1000, 10), &repair(&over(1000, 10))).unwrap();
    assert_eq!(recovered(&mut decoder), [1003]);
}

#[test]
fn the_last_numbers_that_there_are_serve_as_any() {
    let first = u64::MAX - 10;
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), first);
    (first..u64::MAX - 1).for_each(|id| decoder.on_source(id, &symbol(id)));
    let all = Combination { coefficients: Coefficients::Random, first, count: 10, key: 1 };
    decoder.on_repair(&all, &repair(&all)).unwrap();
    assert_eq!(recovered(&mut decoder), [u64::MAX - 1]);
}

#[test]
fn memory_has_a_bound() {
    let limits = DecoderLimits { window: 64, repairs: 8, symbol: 500 };
    let mut decoder = LinearDecoder::new(limits, 0);
    decoder.on_source(0, b"first");
    for n in 0..1000u64 {
        // Always two missing for each repair, so nothing can be solved.
        let combination = Combination { coefficients: Coefficients::Random, first: 2 * n + 1, count: 3, key: n as u16 };
        let _ = decoder.on_repair(&combination, &repair(&combination));
        decoder.on_source(2 * n + 1, &symbol(2 * n + 1));
        assert!(decoder.waiting() <= 8);
    }
}

/// Nothing has come yet that would say where the window is; the first number does.
#[test]
fn before_anything_came_a_lie_can_name_no_far_symbols() {
    let mut decoder = LinearDecoder::new(DecoderLimits { window: 100, ..DecoderLimits::default() }, 7);
    let over = |first, count| Combination { coefficients: Coefficients::Random, first, count, key: 1 };
    decoder.on_repair(&over(7, 2), &repair(&over(7, 2))).unwrap();
    for (first, why) in [(6, Unusable::TooOld), (1 << 50, Unusable::Outside), (206, Unusable::Outside)] {
        assert_eq!(decoder.on_repair(&over(first, 2), &[0; 50]), Err(why), "{first}");
    }
    decoder.on_source(8, &symbol(8));
    assert_eq!(recovered(&mut decoder), [7]);
}

/// What is found ahead of all that came does not push out what waiting repair symbols need.
#[test]
fn a_symbol_that_is_found_moves_no_window() {
    let mut decoder = LinearDecoder::new(DecoderLimits { window: 20, ..DecoderLimits::default() }, 0);
    let over = |first, count, key| Combination { coefficients: Coefficients::Random, first, count, key };
    (0..20).filter(|id| ![3, 4].contains(id)).for_each(|id| decoder.on_source(id, &symbol(id)));
    decoder.on_repair(&over(0, 20, 1), &repair(&over(0, 20, 1))).unwrap();
    decoder.on_repair(&over(30, 1, 2), &repair(&over(30, 1, 2))).unwrap();
    assert_eq!(recovered(&mut decoder), [30]);
    decoder.on_repair(&over(0, 20, 3), &repair(&over(0, 20, 3))).unwrap();
    let mut back = recovered(&mut decoder);
    back.sort_unstable();
    assert_eq!(back, [3, 4]);
}

proptest! {
    /// Whatever is lost, what comes back is what was sent, once, and was missing.
    #[test]
    fn nothing_comes_back_that_was_not_lost(
        seed: u64,
        loss in 0.0..0.5f64,
        code in prop_oneof![
            (1..20u16, 1..6u16).prop_map(|(k, r)| Code::Block { n: k + r, k }),
            (1..20u16, 1..6u16, 1..60u16).prop_map(|(k, r, m)| Code::Convolutional { n: k + r, k, m }),
            (1..20u16, 1..6u16, 1..60u16).prop_map(|(k, r, m)| Code::Tetrys { n: k + r, k, m }),
        ],
    ) {
        let mut rng = Rng::from_seed(seed);
        let (back, missing) = over(code, 5000..5300, || rng.chance(loss));
        let mut once = back.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), back.len());
        prop_assert!(back.iter().all(|id| missing.contains(id)));
    }
}

#[test]
fn a_repair_may_leave_some_of_its_range_out() {
    let combination = Combination { coefficients: Coefficients::Cauchy, first: 10, count: 8, key: 1 };
    let covers = |at: usize| at % 2 == 1;
    let (mut coefficients, mut sum) = (Vec::new(), Vec::new());
    combination.coefficients(&mut coefficients).unwrap();
    for (at, &coefficient) in coefficients.iter().enumerate().filter(|&(at, _)| covers(at)) {
        let bytes = symbol(10 + at as u64);
        let (head, rest) = bytes.split_at(bytes.len() / 3);
        Combination::add_sources(&[coefficient], &[head], &[rest], &mut sum);
    }
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 10);
    [11, 15, 17].iter().for_each(|&id| decoder.on_source(id, &symbol(id)));
    decoder.on_repair_of(&combination, covers, &sum).unwrap();
    assert_eq!(recovered(&mut decoder), [13], "what is left out need not be there");
    assert_eq!(decoder.on_repair_of(&combination, |_| false, &sum), Err(Unusable::Outside));
}

#[test]
fn what_is_of_the_least_use_goes_first() {
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 0);
    [0, 1, 2, 3, 4, 7, 8].iter().for_each(|&id| decoder.on_source(id, &symbol(id)));
    let late = Combination { coefficients: Coefficients::Random, first: 3, count: 6, key: 1 };
    decoder.on_repair(&late, &repair(&late)).unwrap();
    assert_eq!(decoder.held(), repair(&late).len(), "all sources have another holder");
    decoder.settle(5);
    let settled: usize = (0..5).map(|id| 2 + symbol(id).len()).sum();
    assert_eq!(decoder.held(), settled + repair(&late).len());
    let evicted: Vec<_> = core::iter::from_fn(|| decoder.evict()).collect();
    use Evicted::{Repair, Source};
    assert_eq!(evicted, [Source, Source, Source, Source, Source, Repair]);
    assert_eq!(decoder.held(), 0);
    assert_eq!(decoder.on_repair(&late, &repair(&late)), Err(Unusable::TooOld));
    assert_eq!(decoder.source(7), Some(&symbol(7)[..]));
}

/// Found by the fuzz target `fec_decoder`: it went through all numbers up to the last.
#[test]
fn with_nothing_to_evict_the_search_for_it_ends() {
    let mut decoder = LinearDecoder::new(DecoderLimits { window: 20, ..DecoderLimits::default() }, 0);
    decoder.settle(u64::MAX);
    assert_eq!(decoder.evict(), None);
}

#[test]
fn a_solution_that_is_not_plausible_is_not_believed() {
    let mut decoder = LinearDecoder::with_check(DecoderLimits::default(), 0, |id, bytes| bytes == symbol(id));
    decoder.on_source(0, &symbol(0));
    let combination = Combination { coefficients: Coefficients::Random, first: 0, count: 2, key: 1 };
    let (mut coefficients, mut lie) = (Vec::new(), Vec::new());
    combination.coefficients(&mut coefficients).unwrap();
    for (source, &coefficient) in [&symbol(0)[..], b"a lie"].iter().zip(&coefficients) {
        Combination::add_sources(&[coefficient], &[b""], &[source], &mut lie);
    }
    decoder.on_repair(&combination, &lie).unwrap();
    assert_eq!((recovered(&mut decoder), decoder.stats().inconsistent), (vec![], 1));
    decoder.on_repair(&combination, &repair(&combination)).unwrap();
    assert_eq!(recovered(&mut decoder), [1]);
}

#[test]
fn what_is_found_after_its_eviction_is_taken_out_of_the_repairs_that_wait() {
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 0);
    [0, 2, 3].iter().for_each(|&id| decoder.on_source(id, &symbol(id)));
    for (count, key) in [(4, 1), (6, 2)] {
        let combination = Combination { coefficients: Coefficients::Random, first: 1, count, key };
        decoder.on_repair(&combination, &repair(&combination)).unwrap();
    }
    decoder.settle(3);
    assert_eq!([(); 2].map(|()| decoder.evict()), [Some(Evicted::Source); 2], "0, and 2, past 1");
    decoder.on_source(4, &symbol(4));
    assert_eq!(recovered(&mut decoder), [1]);
    decoder.on_source(5, &symbol(5));
    assert_eq!(recovered(&mut decoder), [6]);
}

#[test]
fn what_comes_after_its_eviction_is_taken_out_of_the_repairs_that_wait() {
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 0);
    [0, 2].iter().for_each(|&id| decoder.on_source(id, &symbol(id)));
    let combination = Combination { coefficients: Coefficients::Random, first: 1, count: 3, key: 1 };
    decoder.on_repair(&combination, &repair(&combination)).unwrap();
    decoder.settle(3);
    assert_eq!([(); 2].map(|()| decoder.evict()), [Some(Evicted::Source); 2], "0, and 2, past 1");
    decoder.on_source(1, &symbol(1));
    assert_eq!(recovered(&mut decoder), [3]);
}

#[test]
fn what_is_evicted_is_not_needed_any_more() {
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 0);
    [0, 1, 2, 4, 6, 7].iter().for_each(|&id| decoder.on_source(id, &symbol(id)));
    for key in [1, 2] {
        let combination = Combination { coefficients: Coefficients::Random, first: 1, count: 8, key };
        decoder.on_repair(&combination, &repair(&combination)).unwrap();
    }
    decoder.settle(3);
    assert_eq!([(); 3].map(|()| decoder.evict()), [Some(Evicted::Source); 3]);
    decoder.on_source(5, &symbol(5));
    let mut back = recovered(&mut decoder);
    back.sort_unstable();
    assert_eq!(back, [3, 8]);
}
