use super::*;
use proptest::prelude::*;

const MTU: usize = 1000;

fn path(packets: usize, rtt_ms: u64) -> CoupledPath {
    CoupledPath { cwnd: packets * MTU, mtu: MTU, rtt: Duration::from_millis(rtt_ms), between_losses: 0 }
}

/// Growth in congestion avoidance of every path, in hundredths of a packet for each window.
fn growth(rule: Congestion, paths: &[CoupledPath]) -> Vec<i64> {
    (0..paths.len()).map(|i| (rule.growth(paths, i).avoidance * 100.0).round() as i64).collect()
}

#[test]
fn names_go_both_ways() {
    for (name, rule) in Congestion::ALL {
        assert_eq!((name.parse(), rule.to_string().as_str()), (Ok(rule), name));
    }
    assert!("reno".parse::<Congestion>().unwrap_err().to_string().contains("per-path, lia, olia, rpv2"));
}

#[test]
fn behaviour() {
    let equal = [path(10, 100), path(10, 100)];
    let asymmetric = [path(20, 100), path(5, 50)];
    let rows: Vec<_> =
        Congestion::ALL.iter().map(|&(name, it)| (name, growth(it, &equal), growth(it, &asymmetric))).collect();
    let expected = [
        ("per-path", vec![100, 100], vec![100, 100]),
        // alpha is 1/2, of which each path has half; in the other case rates are 200 and 100, cwnd/rtt² 2000 and 2000.
        ("lia", vec![25, 25], vec![44, 11]),
        // The squares of the shares of the rate; nothing has been acknowledged, so both are best
        // and the second, without the largest window, gets half a packet that the first loses.
        ("olia", vec![25, 25], vec![44 - 50, 11 + 50]),
        ("rpv2", vec![50, 50], vec![67, 33]),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn olia_moves_the_window_to_the_path_that_loses_less() {
    let worse = CoupledPath { between_losses: 10_000, ..path(20, 100) };
    let better = CoupledPath { between_losses: 90_000, ..path(5, 100) };
    assert_eq!(growth(Congestion::Olia, &[worse, better]), [64 - 50, 4 + 50]);
    assert_eq!(growth(Congestion::Olia, &[better, worse]), [4 + 50, 64 - 50]);
    let largest_and_best = CoupledPath { between_losses: 90_000, ..worse };
    assert_eq!(growth(Congestion::Olia, &[largest_and_best, path(5, 100)]), [64, 4]);
}

#[test]
fn a_loss_takes_half_of_the_total_off_one_path_with_rpv2_and_half_of_its_own_else() {
    let paths = [path(30, 100), path(10, 100)];
    let decrease = |rule: Congestion, this| rule.decrease(&paths, this, 0.5);
    assert_eq!(decrease(Congestion::PerPath, 0), Decrease { kept: 0.5, floor: 4 });
    assert_eq!(decrease(Congestion::Lia, 0), Decrease { kept: 0.5, floor: 2 });
    assert_eq!(decrease(Congestion::Olia, 1), Decrease { kept: 0.5, floor: 1 });
    let Decrease { kept, floor } = decrease(Congestion::RpV2, 0);
    assert!((kept - 1.0 / 3.0).abs() < 1e-9 && floor == 1, "30 packets less half of 40: {kept}");
    assert_eq!(decrease(Congestion::RpV2, 1), Decrease { kept: 0.0, floor: 1 });
}

proptest! {
    /// Goal 2 of RFC 6356 §2: no path is more aggressive than one on its own. And together they are
    /// no faster than the best of them alone, which is what alpha is made for: the sum of the
    /// growth of rates is at most that of the fastest.
    #[test]
    fn together_no_more_aggressive_than_one(
        windows in prop::collection::vec((1_usize..500, 1_u64..1000, 0_u64..1_000_000), 2..6),
    ) {
        let paths: Vec<_> = windows
            .iter()
            .map(|&(packets, rtt, between_losses)| CoupledPath { between_losses, ..path(packets, rtt) })
            .collect();
        for (_, rule) in Congestion::ALL {
            for this in 0..paths.len() {
                let Growth { slow_start, avoidance, .. } = rule.growth(&paths, this);
                prop_assert!((0.0..=1.0).contains(&slow_start) && (-1.0..=1.5).contains(&avoidance), "{rule} {avoidance}");
                if matches!(rule, Congestion::Lia | Congestion::RpV2) {
                    prop_assert!((0.0..=1.0).contains(&avoidance), "{rule} {avoidance}");
                }
                let Decrease { kept, .. } = rule.decrease(&paths, this, 0.5);
                prop_assert!((0.0..=0.5).contains(&kept));
            }
        }
        // With equal round trips LIA adds at most one packet for each round trip in all.
        let equal: Vec<_> = paths.iter().map(|it| CoupledPath { rtt: paths[0].rtt, ..*it }).collect();
        let sum: f64 = (0..equal.len()).map(|i| Congestion::Lia.growth(&equal, i).avoidance).sum();
        prop_assert!(sum <= 1.0 + 1e-9, "{sum}");
        let one = [paths[0]];
        for (_, rule) in Congestion::ALL {
            prop_assert_eq!(rule.growth(&one, 0), Growth::default());
            prop_assert_eq!(rule.decrease(&one, 0, 0.8), Decrease::alone(0.8));
        }
    }
}
