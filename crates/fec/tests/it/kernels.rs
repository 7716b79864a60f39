//! Every kernel gives what the portable one gives.

use braidcast_core::Rng;
use braidcast_fec::{Kernel, gf};
use proptest::prelude::*;

fn available() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().map(|(_, kernel)| kernel).filter(|kernel| kernel.is_available())
}

#[test]
fn the_best_kernel_is_one_that_there_is() {
    assert!(Kernel::best().is_available());
    // What `make miri` is there for.
    assert!(!cfg!(miri) || Kernel::best() != Kernel::Portable);
    assert_eq!(Some(Kernel::best()), available().last());
    for (name, kernel) in Kernel::ALL {
        assert_eq!((name.parse(), kernel.to_string()), (Ok(kernel), name.to_owned()));
    }
}

/// All 65,536 products, in every place of a vector and of what follows the last whole one.
#[test]
fn every_product_in_every_place() {
    let bytes: Vec<u8> = (0..=255).cycle().take(256 + 255).collect();
    for kernel in available() {
        // Miri takes a thousand times as long; it looks at memory, not at products.
        for coefficient in (0..=255).step_by(if cfg!(miri) { 85 } else { 1 }) {
            // Each length ends at another place of a vector, each start brings other bytes there.
            for (start, len) in [(0, 256), (1, 255), (17, 223), (63, 193), (100, 130), (255, 256)] {
                let source = &bytes[start..start + len];
                let mut sum = [0x5a; 256 + 64];
                let sum = &mut sum[start % 64..][..256];
                kernel.add_multiple(sum, source, coefficient);
                let product = |i| if i < len { gf::mul(coefficient, source[i]) } else { 0 };
                assert!((0..256).all(|i| sum[i] == 0x5a ^ product(i)), "{kernel}: {coefficient} · {start}..+{len}");
            }
        }
    }
}

/// Sums, sources and bytes; Miri takes a thousand times as long.
const MOST: (usize, usize, usize) = if cfg!(miri) { (4, 4, 150) } else { (11, 30, 1500) };

proptest! {
    #[test]
    fn combinations_are_the_same_with_every_kernel(
        seed: u64, sums in 1..MOST.0, sources in 0..MOST.1, len in 0..MOST.2, unlike: bool, ones: bool,
    ) {
        let mut rng = Rng::from_seed(seed);
        let mut bytes = |len: usize| {
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            bytes
        };
        let sources: Vec<Vec<u8>> = (0..sources).map(|n| bytes(if unlike { len.saturating_sub(n * 7) } else { len })).collect();
        let mut coefficients = bytes(sums * sources.len());
        if ones {
            coefficients.fill(1);
        }
        let before = bytes(len);
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let with = |kernel: Kernel| {
            let mut results = vec![before.clone(); sums];
            let mut places: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
            kernel.add_combinations(&mut places, &sources, &coefficients);
            results
        };
        let expected = with(Kernel::Portable);
        for kernel in available() {
            prop_assert_eq!(&with(kernel), &expected, "{}", kernel);
        }
        // And the portable one does what is said.
        let sum = (0..sources.len()).fold(before.clone(), |sum, j| {
            let product = |i: usize| sources[j].get(i).map_or(0, |&byte| gf::mul(coefficients[j], byte));
            sum.iter().enumerate().map(|(i, byte)| byte ^ product(i)).collect()
        });
        prop_assert_eq!(&expected[0], &sum);
    }
}
