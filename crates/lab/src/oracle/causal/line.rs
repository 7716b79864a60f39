use super::super::Route;
use core::time::Duration;

/// What is behind the last chance of a link is as it was then, for this many ms.
const BEYOND: u64 = 2000;

/// A link, ms by ms.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line {
    /// Bytes that it takes in each ms.
    bytes: Vec<f64>,
    /// Until they arrive, ms.
    delays: Vec<u64>,
    /// The share of packets that it loses, 0 to 1.
    pub loss: f64,
}

impl Line {
    /// The link that `route`, from which the loss was taken off, is of.
    pub(crate) fn of(route: &Route, loss: f64, from: Duration, until: Duration) -> Self {
        let (from, until) = (from.as_millis() as u64, until.as_millis() as u64 + BEYOND);
        let (mut bytes, mut delays) = (Vec::new(), Vec::new());
        let mut delay = route.first().map_or(0, |it| it.delay.as_millis() as u64);
        let mut chances = route.iter().peekable();
        for step in from..until {
            let mut sum = 0.0;
            while let Some(chance) = chances.next_if(|it| it.at.as_millis() as u64 <= step) {
                sum += chance.bytes / (1.0 - loss);
                delay = chance.delay.as_millis() as u64;
            }
            bytes.push(sum);
            delays.push(delay);
        }
        Self { bytes, delays, loss }
    }

    fn place(&self, at: u64) -> usize {
        (at as usize).min(self.bytes.len().saturating_sub(1))
    }

    /// Bytes that it takes at this time, ms.
    pub(super) fn bytes(&self, at: u64) -> f64 {
        self.bytes.get(self.place(at)).copied().unwrap_or(0.0)
    }

    /// Until what leaves at this time arrives, ms.
    pub(super) fn delay(&self, at: u64) -> u64 {
        self.delays.get(self.place(at)).copied().unwrap_or(0)
    }

    /// Bytes in a ms, as the mean over `span` ms that end with `at`.
    pub(super) fn mean(&self, at: u64, span: u64) -> f64 {
        let end = self.place(at) + 1;
        let first = end.saturating_sub(span as usize);
        let all = self.bytes.get(first..end).unwrap_or(&[]);
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }
}
