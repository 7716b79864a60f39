use core::time::Duration;

/// Buckets within each doubling: a bucket is at most 1/32 as wide as its values.
const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

/// Durations in buckets whose width grows with them: any number of values in 15 kB, quantiles within 3 %.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; ((64 - SUB_BITS + 1) as u64 * SUB) as usize], total: 0 }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: Duration) {
        self.counts[bucket(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))] += 1;
        self.total += 1;
    }

    /// Values counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The value that a share `q`, 0 to 1, of all values does not exceed, rounded up to the end of
    /// its bucket; `None` if there are no values.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = ((self.total as f64 * q).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map(|bucket| Duration::from_nanos(last_of(bucket as u64)))
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (u64::from(shift) * SUB + (value >> shift)) as usize
}

/// The largest value of a bucket.
const fn last_of(bucket: u64) -> u64 {
    if bucket < 2 * SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    let first = (bucket % SUB + SUB) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_thousand_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=1000).for_each(|n| histogram.add(Duration::from_micros(n * 100)));
        for q in [0.0, 0.01, 0.5, 0.95, 1.0] {
            let exact = (q * 100.0_f64).max(0.1);
            let found = histogram.quantile(q).map_or(0.0, |d| d.as_secs_f64() * 1000.0);
            assert!(found >= exact && found <= exact * 1.04, "{q}: {found} ms against {exact} ms");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_ends_at_or_just_above_its_values(value: u64) {
            let last = last_of(bucket(value) as u64);
            prop_assert!(last >= value && last - value <= value / SUB);
            prop_assert!(bucket(value) < Histogram::default().counts.len());
            prop_assert_eq!(bucket(last), bucket(value));
        }
    }
}
