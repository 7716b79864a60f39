use braidcast_core::Instant;
use core::time::Duration;

/// How fast one path delivers: a sample for each acknowledgement (draft-cheng-iccrg-delivery-rate-estimation-02;
/// draft-ietf-ccwg-bbr §4.1).
///
/// The sample spans the flight of the newest packet acknowledged. It divides what was delivered
/// meanwhile by the time that took, or by the time it took to send that, whichever is longer:
/// acknowledgements that come in bursts do not make a path look faster than it is. Each packet
/// keeps a [`Stamp`]; every call takes constant time and allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    /// Bytes delivered so far.
    delivered: u64,
    /// When they last grew.
    delivered_at: Instant,
    /// When the flight that is being measured began.
    first_sent: Instant,
    /// What is sent until more than this many bytes are delivered says what the application had, not
    /// what the path carries.
    limited_until: Option<u64>,
    /// The newest of the packets that this acknowledgement brought, and when it left.
    newest: Option<(Instant, Stamp)>,
}

/// What a packet has to keep until it is acknowledged, besides the time when it left: 12 bytes, as
/// many packets are out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Bytes delivered by then, less multiples of 2³²: a flight holds less.
    delivered: u32,
    /// How long ago they had last grown, in [`TICK`]s.
    since_delivery: u32,
    /// How long before the flight began, in ticks; the highest bit: the application had too little to send.
    since_first: u32,
}

/// Unit of the times in a [`Stamp`], 100 ns; 31 bits of it are 214 s.
const TICK: u32 = 100;
const LIMITED: u32 = 1 << 31;

fn ticks(time: Duration) -> u32 {
    // Without a division of 128 bits, for each packet.
    const A_SECOND: u64 = 1_000_000_000 / TICK as u64;
    let ticks = time.as_secs().saturating_mul(A_SECOND).saturating_add(u64::from(time.subsec_nanos() / TICK));
    u32::try_from(ticks).unwrap_or(u32::MAX).min(LIMITED - 1)
}

fn time(ticks: u32) -> Duration {
    Duration::from_nanos(u64::from(ticks) * u64::from(TICK))
}

/// What a path delivered during the flight of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered.
    pub delivered: u64,
    /// In this time; never zero.
    pub interval: Duration,
    /// Bytes that had been delivered in all when the packet left. A round trip is over when this reaches what had been
    /// delivered at its beginning.
    pub prior_delivered: u64,
    /// The application had too little to send: the path may carry more.
    pub app_limited: bool,
}

impl RateSample {
    /// Bytes per second.
    pub fn rate(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

impl RateSampler {
    /// A packet leaves, while `in_flight` bytes are out; what it has to keep.
    pub fn on_sent(&mut self, now: Instant, in_flight: usize) -> Stamp {
        if in_flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let limited = self.limited_until.is_some_and(|until| self.delivered <= until);
        Stamp {
            delivered: self.delivered as u32,
            since_delivery: ticks(now - self.delivered_at),
            since_first: ticks(now - self.first_sent) | if limited { LIMITED } else { 0 },
        }
    }

    /// A packet of `bytes`, which left at `sent`, is known to have arrived. Call once for each,
    /// then [`sample`](Self::sample).
    pub fn on_delivered(&mut self, now: Instant, sent: Instant, stamp: Stamp, bytes: usize) {
        self.delivered = self.delivered.saturating_add(bytes as u64);
        self.delivered_at = now;
        if self.newest.is_none_or(|(newest, _)| newest <= sent) {
            self.newest = Some((sent, stamp));
        }
    }

    /// Nothing waits to be sent, though the window has room with `in_flight` bytes out.
    pub const fn on_app_limited(&mut self, in_flight: usize) {
        self.limited_until = Some(self.delivered.saturating_add(in_flight as u64));
    }

    /// What the packets say that arrived since the last call. `None`: there were none, or they took
    /// less than `min_rtt`, the shortest round trip known, so that something in between held them
    /// together.
    pub fn sample(&mut self, min_rtt: Option<Duration>) -> Option<RateSample> {
        let (sent, stamp) = self.newest.take()?;
        self.first_sent = sent;
        let sending = time(stamp.since_first & !LIMITED);
        let arriving = self.delivered_at - (sent - time(stamp.since_delivery));
        let interval = sending.max(arriving);
        let delivered = u64::from((self.delivered as u32).wrapping_sub(stamp.delivered));
        let long_enough = interval > Duration::ZERO && min_rtt.is_none_or(|min| interval >= min);
        long_enough.then(|| RateSample {
            delivered,
            interval,
            prior_delivered: self.delivered - delivered,
            app_limited: stamp.since_first & LIMITED != 0,
        })
    }

    /// Bytes delivered so far.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_keeps_twelve_bytes() {
        assert_eq!(size_of::<Stamp>(), 12);
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Packets of 1000 bytes leave each at its time; what the acknowledgement of all of them at `acked` says.
    fn burst(sampler: &mut RateSampler, sent: &[u64], acked: u64) -> Option<RateSample> {
        let mut in_flight = 0;
        let stamps: Vec<_> = sent
            .iter()
            .map(|&ms| {
                in_flight += 1000;
                (at(ms), sampler.on_sent(at(ms), in_flight - 1000))
            })
            .collect();
        stamps.iter().for_each(|&(sent, stamp)| sampler.on_delivered(at(acked), sent, stamp, 1000));
        sampler.sample(Some(Duration::from_millis(10)))
    }

    #[test]
    fn a_sample_spans_the_flight_of_the_newest_packet() {
        let mut sampler = RateSampler::default();
        let sample = burst(&mut sampler, &[0, 10, 20, 30], 100).unwrap();
        assert_eq!((sample.delivered, sample.interval.as_millis(), sample.app_limited), (4000, 100, false));
        assert_eq!(sample.rate(), 40_000.0);
        let sample = burst(&mut sampler, &[200, 250], 300).unwrap();
        assert_eq!((sample.prior_delivered, sample.delivered, sampler.delivered()), (4000, 2000, 6000));
    }

    #[test]
    fn acknowledgements_at_once_do_not_make_a_path_faster_than_it_was_fed() {
        let mut sampler = RateSampler::default();
        // One packet each 20 ms; all but the first are acknowledged at once, a moment after the last left.
        let send = |sampler: &mut RateSampler, ms, in_flight| (at(ms), sampler.on_sent(at(ms), in_flight));
        let first = send(&mut sampler, 0, 0);
        let rest: Vec<_> = (1..=5).map(|n| send(&mut sampler, 20 * n, 1000)).collect();
        sampler.on_delivered(at(90), first.0, first.1, 1000);
        assert_eq!(sampler.sample(None).unwrap().interval.as_millis(), 90);
        rest.into_iter().for_each(|(sent, stamp)| sampler.on_delivered(at(101), sent, stamp, 1000));
        let sample = sampler.sample(None).unwrap();
        assert_eq!((sample.delivered, sample.interval.as_millis()), (6000, 101));
        let late = [110, 200].map(|ms| send(&mut sampler, ms, 1000));
        late.into_iter().for_each(|(sent, stamp)| sampler.on_delivered(at(201), sent, stamp, 1000));
        assert_eq!(sampler.sample(None).unwrap().interval.as_millis(), 100, "since the newest of those had left");
    }

    #[test]
    fn what_takes_less_than_the_shortest_round_trip_says_nothing() {
        let mut sampler = RateSampler::default();
        assert_eq!(burst(&mut sampler, &[0], 9), None);
        assert_eq!(sampler.sample(None), None, "nor does nothing");
    }

    #[test]
    fn an_application_with_too_little_to_say_is_seen_until_its_last_packet_arrived() {
        let mut sampler = RateSampler::default();
        sampler.on_app_limited(0);
        assert!(burst(&mut sampler, &[0, 1], 50).unwrap().app_limited);
        assert!(!burst(&mut sampler, &[60, 61], 110).unwrap().app_limited);
        sampler.on_app_limited(1000);
        assert!(burst(&mut sampler, &[120], 170).unwrap().app_limited);
        assert!(burst(&mut sampler, &[180], 230).unwrap().app_limited);
        assert!(!burst(&mut sampler, &[240], 290).unwrap().app_limited);
    }
}
