use crate::Instant;
use core::time::Duration;

/// How much there was in the last span of time, in `N` slices. Constant time and memory.
#[derive(Clone, Debug)]
pub struct SlidingSum<const N: usize> {
    /// By their numbers modulo `N`.
    slices: [usize; N],
    /// Of one slice, µs.
    length: u64,
    began: Option<Instant>,
    /// The number of the newest slice, counted from `began`.
    newest: u64,
}

impl<const N: usize> SlidingSum<N> {
    /// Over `span`, which counts as `N` µs if it is shorter.
    pub const fn new(span: Duration) -> Self {
        let length = (span.as_micros() / N as u128) as u64;
        Self { slices: [0; N], length: if length == 0 { 1 } else { length }, began: None, newest: 0 }
    }

    /// `amount` more, now. What there was in a second, by all that there was in the span; `None`
    /// before the first span is nearly over.
    pub fn add(&mut self, now: Instant, amount: usize) -> Option<f64> {
        // Microseconds in 64 bits: this may be asked for each packet.
        let age = now.as_micros().saturating_sub(self.began.get_or_insert(now).as_micros());
        let number = age / self.length;
        (self.newest + 1..=number).take(N).for_each(|n| self.slices[(n % N as u64) as usize] = 0);
        self.newest = self.newest.max(number);
        self.slices[(self.newest % N as u64) as usize] += amount;
        // The newest slice has only begun.
        let time = (N as u64 - 1) * self.length + age % self.length;
        (number + 1 >= N as u64 && time > 0).then(|| self.slices.iter().sum::<usize>() as f64 * 1e6 / time as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_span_is_forgotten() {
        let mut sum = SlidingSum::<10>::new(Duration::from_millis(100));
        let mut add = |ms, amount| sum.add(Instant::from_millis(ms), amount);
        assert_eq!(add(5, 100), None);
        assert!((5..100).step_by(10).all(|ms| add(ms + 1, 100).is_none() || ms >= 95));
        let steady = add(105, 0).unwrap();
        assert!((10_000.0..12_500.0).contains(&steady), "1000 in 90 to 100 ms: {steady}");
        assert_eq!(add(405, 0), Some(0.0));
        assert_eq!(add(409, 94), Some(1000.0), "94 in 94 ms");
    }
}
