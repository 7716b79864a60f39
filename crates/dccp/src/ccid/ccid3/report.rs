//! What a feedback packet reports to the sender (RFC 4342 §6).

use super::super::ccid4::ShortIntervals;
use crate::ccid::Feedback;
use crate::seq::{Seq, back};
use crate::wire::Opt;
use crate::wire::option::{Ccid3Option, DroppedPackets, from_units};
use braidcast_cc::tfrc::mean_interval;
use core::time::Duration;

/// Intervals that the mean takes.
const COUNT: usize = 9;

/// The options of one packet.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) recv_rate: f64,
    pub(super) elapsed: Duration,
    /// From Loss Event Rate.
    loss_event_rate: Option<f64>,
    /// First number, data length and drop count, newest first.
    intervals: [(Seq, u32, u32); COUNT],
    count: usize,
    /// The number after the newest interval.
    end: Seq,
}

impl Told {
    /// `None` for acknowledgements that are no feedback: those without Receive Rate, or without both Loss Intervals and
    /// Loss Event Rate. RFC 4342 §6 asks for Loss Intervals and Elapsed Time in any case, but Linux sends neither.
    pub(super) fn read(feedback: &Feedback<'_>) -> Option<Self> {
        let mut told = Self {
            recv_rate: 0.0,
            elapsed: Duration::ZERO,
            loss_event_rate: None,
            intervals: [(Seq::default(), 0, 0); COUNT],
            count: 0,
            end: feedback.ack.plus(1),
        };
        let (mut recv_rate, mut dropped, mut at) = (None, 0, feedback.ack);
        for option in feedback.options.known() {
            match option {
                Opt::ElapsedTime(units) | Opt::TimestampEcho { elapsed: units, .. } => {
                    told.elapsed = told.elapsed.max(from_units(units));
                }
                Opt::Ccid(raw) => match Ccid3Option::parse(raw) {
                    Some(Ccid3Option::ReceiveRate(rate)) => recv_rate = Some(f64::from(rate)),
                    Some(Ccid3Option::LossEventRate(u32::MAX)) => told.loss_event_rate = Some(0.0),
                    Some(Ccid3Option::LossEventRate(n)) => told.loss_event_rate = Some(1.0 / f64::from(n.max(1))),
                    // §8.6.1: only the first option may skip packets.
                    Some(Ccid3Option::LossIntervals(it)) if told.count == 0 || it.skip == 0 => {
                        at = back(at, u64::from(it.skip));
                        if told.count == 0 {
                            told.end = at.plus(1);
                        }
                        for interval in it.iter() {
                            at = back(at, u64::from(interval.lossless) + u64::from(interval.loss));
                            told.push((at.plus(1), interval.data, interval.loss));
                        }
                    }
                    Some(Ccid3Option::LossIntervals(_)) => {}
                    None => {
                        for count in DroppedPackets::parse(raw).iter().flat_map(DroppedPackets::iter) {
                            told.drop(dropped, count);
                            dropped += 1;
                        }
                    }
                },
                _ => {}
            }
        }
        told.recv_rate = recv_rate?;
        (told.loss_event_rate.is_some() || told.count > 0).then_some(told)
    }

    /// RFC 5622 §8.7: without a drop count, the loss length counts.
    fn push(&mut self, interval: (Seq, u32, u32)) {
        if let Some(slot) = self.intervals.get_mut(self.count) {
            *slot = interval;
            self.count += 1;
        }
    }

    /// No more than the loss length is taken.
    fn drop(&mut self, index: usize, count: u32) {
        if let Some((_, _, drops)) = self.intervals[..self.count].get_mut(index) {
            *drops = count.min(*drops);
        }
    }

    /// The first number of the newest loss event, once there was one.
    pub(super) fn newest_event(&self) -> Option<Seq> {
        // The interval before the first loss event is none.
        self.intervals[..self.count].first().filter(|_| self.count > 1).map(|&(start, ..)| start)
    }

    /// The loss event rate, the receiver's or computed from the intervals (RFC 5348 §5.4, and RFC
    /// 4828 §4.4 with `short`). Unless we have `asked` for the former, the latter goes first.
    pub(super) fn loss_event_rate(&self, asked: bool, short: Option<&mut ShortIntervals>) -> f64 {
        if let Some(p) = self.loss_event_rate.filter(|_| asked || self.count == 0) {
            return p;
        }
        let intervals = &self.intervals[..self.count];
        let mut lengths = [0.0; COUNT];
        let leave_out = if let Some(short) = short {
            short.lengths(self.end, intervals, &mut lengths)
        } else {
            lengths.iter_mut().zip(intervals).for_each(|(length, &(_, data, _))| *length = f64::from(data));
            false
        };
        mean_interval(&lengths[..self.count], leave_out).map_or(0.0, |mean| 1.0 / mean.max(1.0))
    }
}
