use super::adaptive::Adaptive;
use super::heard::Heard;
use braidcast_core::Instant;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::VecDeque;

/// When packets are played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Playout {
    /// As soon as they come: there is no buffer. What was overtaken is lost.
    Immediate,
    /// This long after the quickest packet of the call would have been there. For clocks of the
    /// same speed.
    Fixed(Duration),
    /// As long as the network's jitter makes necessary: four times the deviation of the transit
    /// time after its mean, but between these bounds (Ramjee et al., INFOCOM 1994, algorithm 4).
    /// Changes between talk spurts, and each second within one.
    Adaptive {
        /// The least time after the mean; a packet or two.
        least: Duration,
        /// The greatest.
        most: Duration,
    },
}

impl fmt::Display for Playout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Immediate => f.write_str("immediate"),
            Self::Fixed(depth) => write!(f, "fixed:{}ms", depth.as_millis()),
            Self::Adaptive { least, most } => {
                write!(f, "adaptive:{}ms,{}ms", least.as_millis(), most.as_millis())
            }
        }
    }
}

/// A word that is no [`Playout`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPlayout(String);

impl fmt::Display for UnknownPlayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no playout; write immediate, fixed:60ms or adaptive:20ms,400ms (least and most)", self.0)
    }
}

impl core::error::Error for UnknownPlayout {}

impl FromStr for Playout {
    type Err = UnknownPlayout;

    fn from_str(text: &str) -> Result<Self, UnknownPlayout> {
        // An hour is more than anybody waits for an answer.
        let time = |word: &str| {
            let ms = word.strip_suffix("ms").and_then(|ms| ms.parse().ok()).filter(|ms| *ms <= 3_600_000);
            ms.map(Duration::from_millis)
        };
        let found = match text.split_once(':') {
            None if text == "immediate" => Some(Self::Immediate),
            Some(("fixed", depth)) => time(depth).map(Self::Fixed),
            Some(("adaptive", bounds)) => bounds.split_once(',').and_then(|(least, most)| {
                let (least, most) = (time(least)?, time(most)?);
                (least <= most).then_some(Self::Adaptive { least, most })
            }),
            _ => None,
        };
        found.ok_or_else(|| UnknownPlayout(text.to_owned()))
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is played then.
    Played(Instant),
    /// Its turn is over.
    Late,
    /// It was there before.
    Duplicate,
}

/// A jitter buffer that holds no speech: it decides which packets a listener hears.
///
/// A packet that comes after the time at which it should be played counts as lost; what is out of
/// order but in time is played. Takes constant time for each packet, a few steps more for one out
/// of order, and at most 32 kB.
#[derive(Clone, Debug)]
pub struct JitterBuffer {
    playout: Playout,
    /// Least transit time, ns; of unrelated clocks it may be negative.
    quickest: i64,
    last_transit: Option<i64>,
    adaptive: Option<Adaptive>,
    /// Packets that wait for their time, by number.
    waiting: VecDeque<Waiting>,
    /// The first number that may still come.
    next: u64,
    /// Which of the 128 numbers before `next` came, the last one in the lowest bit.
    came: u128,
    heard: Heard,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    /// When it is played.
    at: Instant,
    /// The same after it was sent, and after it could have been there, ns.
    offset: i64,
    buffering: i64,
}

impl JitterBuffer {
    /// Packets that wait at most; then the first is played early.
    const MAX: usize = 1024;

    /// An empty one.
    pub fn new(playout: Playout) -> Self {
        Self {
            playout,
            quickest: i64::MAX,
            last_transit: None,
            adaptive: None,
            waiting: VecDeque::new(),
            next: 0,
            came: 0,
            heard: Heard::default(),
        }
    }

    /// Packet `number` arrives at `now`. Numbers go up by one from packet to packet; the first to
    /// arrive may have any. `sent` is when it was made, by the sender's clock, which may have
    /// another origin.
    pub fn arrive(&mut self, number: u64, sent: Instant, now: Instant) -> Arrival {
        let transit = now.as_nanos().wrapping_sub(sent.as_nanos()).cast_signed();
        if self.last_transit.is_none() {
            self.next = number;
        }
        self.play_until(now);
        let place = self.waiting.partition_point(|it| it.number < number);
        if self.waiting.get(place).is_some_and(|it| it.number == number) || self.came_before(number) {
            self.heard.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.note_jitter(transit);
        let offset = self.offset(sent, transit);
        if number < self.next || transit > offset {
            self.heard.late += 1;
            self.came |= self.mark(number);
            return Arrival::Late;
        }
        let at = Instant::from_nanos(sent.as_nanos().saturating_add_signed(offset));
        let buffering = offset.saturating_sub(self.quickest);
        self.waiting.insert(place, Waiting { number, at, offset, buffering });
        if self.waiting.len() > Self::MAX {
            self.play_first();
        }
        Arrival::Played(at)
    }

    /// What was heard so far: packets whose time has come. Losses show with the next packet after them.
    pub const fn heard(&self) -> &Heard {
        &self.heard
    }

    /// Plays what waits. Returns what was heard of the whole call.
    pub fn finish(mut self) -> Heard {
        while !self.waiting.is_empty() {
            self.play_first();
        }
        self.heard
    }

    fn play_until(&mut self, now: Instant) {
        while self.waiting.front().is_some_and(|it| it.at <= now) {
            self.play_first();
        }
    }

    fn play_first(&mut self) {
        let Some(packet) = self.waiting.pop_front() else { return };
        let missing = packet.number - self.next;
        self.heard.lost = self.heard.lost.saturating_add(missing);
        self.heard.bursts += u64::from(missing > 0);
        self.heard.played += 1;
        self.heard.delay += i128::from(packet.offset);
        self.heard.buffering += i128::from(packet.buffering);
        let steps = u32::try_from(missing.saturating_add(1)).unwrap_or(u32::MAX);
        self.came = self.came.checked_shl(steps).unwrap_or(0) | 1;
        self.next = packet.number.saturating_add(1);
    }

    /// The bit of `came` for `number`; none if it is not among those 128.
    fn mark(&self, number: u64) -> u128 {
        let back = self.next.checked_sub(number).and_then(|back| back.checked_sub(1));
        back.and_then(|back| u32::try_from(back).ok()).and_then(|back| 1_u128.checked_shl(back)).unwrap_or(0)
    }

    fn came_before(&self, number: u64) -> bool {
        self.came & self.mark(number) != 0
    }

    fn note_jitter(&mut self, transit: i64) {
        if let Some(last) = self.last_transit.replace(transit) {
            let difference = transit.abs_diff(last);
            self.heard.steps += 1;
            self.heard.jitter += u128::from(difference);
            self.heard.max_jitter = self.heard.max_jitter.max(difference);
        }
        self.quickest = self.quickest.min(transit);
    }

    /// When a packet is played, in ns after it was sent.
    fn offset(&mut self, sent: Instant, transit: i64) -> i64 {
        match self.playout {
            Playout::Immediate => transit,
            Playout::Fixed(depth) => self.quickest.saturating_add(i64::try_from(depth.as_nanos()).unwrap_or(i64::MAX)),
            Playout::Adaptive { least, most } => {
                self.adaptive.get_or_insert_with(|| Adaptive::new(least, most, sent, transit)).offset(sent, transit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;
    use proptest::prelude::*;

    const FIXED: Playout = Playout::Fixed(Duration::from_millis(60));
    const ADAPTIVE: Playout = Playout::Adaptive { least: Duration::from_millis(20), most: Duration::from_millis(400) };

    /// Hears a packet each 20 ms. Those of `delays` that are `Some` arrive after this number of ms,
    /// in order of arrival.
    fn hear(playout: Playout, delays: &[Option<u64>]) -> Heard {
        let packets = delays.iter().zip(0..);
        let mut arrivals: Vec<(u64, u64)> =
            packets.filter_map(|(delay, number)| delay.map(|delay| (20 * number + delay, number))).collect();
        arrivals.sort_unstable();
        let mut buffer = JitterBuffer::new(playout);
        for (at, number) in arrivals {
            buffer.arrive(number, Instant::from_millis(20 * number), Instant::from_millis(at));
        }
        buffer.finish()
    }

    #[test]
    fn a_fixed_buffer_plays_what_comes_in_time() {
        // 100 ms are as late as may be after the quickest, at 40; 101 are too late. 3 comes before
        // 2 and both are played.
        let heard = hear(FIXED, &[Some(40), Some(100), Some(80), Some(50), Some(101), None, Some(40), None, Some(40)]);
        assert_eq!((heard.played, heard.lost, heard.late, heard.bursts), (6, 3, 1, 2));
        assert_eq!((heard.delay(), heard.buffering()), (Duration::from_millis(100), Duration::from_millis(60)));
        assert!((heard.loss() - 1.0 / 3.0).abs() < 1e-12);
        // Two runs of 1.5 in the mean; independent losses at this rate have runs of 1.5.
        assert!((heard.burst_ratio() - 1.0).abs() < 1e-12, "{}", heard.burst_ratio());
        assert_eq!(heard.max_jitter(), Duration::from_millis(61));
    }

    #[test]
    fn without_a_buffer_what_was_overtaken_is_lost() {
        // 1 comes after 2, at 95 and 80 ms; 3 does not come at all.
        let heard = hear(Playout::Immediate, &[Some(40), Some(75), Some(40), None, Some(40)]);
        assert_eq!((heard.played, heard.lost, heard.late, heard.bursts), (3, 2, 1, 2));
        assert_eq!((heard.delay(), heard.buffering()), (Duration::from_millis(40), Duration::ZERO));
        // Late, but not overtaken.
        let heard = hear(Playout::Immediate, &[Some(40), Some(59), Some(40), Some(40)]);
        assert_eq!((heard.played, heard.lost), (4, 0));
    }

    #[test]
    fn playouts_are_read_and_written() {
        for (text, playout) in
            [("immediate", Playout::Immediate), ("fixed:60ms", FIXED), ("adaptive:20ms,400ms", ADAPTIVE)]
        {
            assert_eq!((text.parse(), playout.to_string().as_str()), (Ok(playout), text));
        }
        for bad in
            ["", "fixed", "fixed:60", "fixed:9999999999ms", "adaptive:20ms", "adaptive:400ms,20ms", "immediate:1ms"]
        {
            assert!(bad.parse::<Playout>().unwrap_err().to_string().contains("fixed:60ms"), "{bad}");
        }
    }

    #[test]
    fn what_came_before_is_not_played_twice() {
        let mut buffer = JitterBuffer::new(FIXED);
        let mut arrive =
            |number, at| buffer.arrive(number, Instant::from_millis(20 * number), Instant::from_millis(at));
        assert_eq!(arrive(7, 180), Arrival::Played(Instant::from_millis(240)));
        assert_eq!(arrive(7, 190), Arrival::Duplicate);
        assert_eq!(arrive(9, 220), Arrival::Played(Instant::from_millis(280)));
        assert_eq!(arrive(7, 270), Arrival::Duplicate, "already played");
        assert_eq!(arrive(8, 261), Arrival::Late);
        assert_eq!(arrive(10, 300), Arrival::Played(Instant::from_millis(300)));
        assert_eq!((buffer.heard().played, buffer.heard().lost), (2, 1), "the count is up to date");
        let heard = buffer.finish();
        assert_eq!((heard.played, heard.lost, heard.late, heard.duplicates), (3, 1, 1, 2));
    }

    #[test]
    fn clocks_need_not_agree() {
        let (mut ours, mut theirs) = (JitterBuffer::new(ADAPTIVE), JitterBuffer::new(ADAPTIVE));
        let mut rng = Rng::from_seed(3);
        for number in 0..2000 {
            let sent = Instant::from_millis(20 * number);
            let now = sent + Duration::from_millis(50 + rng.below(40));
            let there = ours.arrive(number, sent, now);
            let ahead = theirs.arrive(number, sent + Duration::from_secs(1_000_000), now);
            assert_eq!(matches!(there, Arrival::Late), matches!(ahead, Arrival::Late));
        }
        let (ours, theirs) = (ours.finish(), theirs.finish());
        assert_eq!((ours.played, ours.lost, ours.buffering()), (theirs.played, theirs.lost, theirs.buffering()));
        assert_eq!(theirs.delay(), Duration::ZERO);
    }

    #[test]
    fn an_adaptive_buffer_grows_with_jitter_and_shrinks_again() {
        let mut rng = Rng::from_seed(1);
        let mut jitter = |bound: u64, count: usize| (0..count).map(|_| Some(30 + rng.below(bound))).collect::<Vec<_>>();
        let (calm, rough) = (jitter(4, 1000), jitter(150, 1000));
        let (few, much) = (hear(ADAPTIVE, &calm), hear(ADAPTIVE, &rough));
        assert!(few.buffering() < Duration::from_millis(40), "{:?}", few.buffering());
        assert!((100..250).contains(&much.buffering().as_millis()), "{:?}", much.buffering());
        assert!(much.loss() < 0.03 && hear(FIXED, &rough).loss() > 0.5, "{}", much.loss());
        let both: Vec<_> = rough.iter().chain(&calm).chain(&calm).copied().collect();
        assert!(hear(ADAPTIVE, &both).buffering() < much.buffering() / 2 + Duration::from_millis(20));
    }

    #[test]
    fn an_adaptive_buffer_rides_a_spike() {
        // 3 s, then a delay of 400 ms that drains at 20 ms a packet, as a queue does.
        let calm = (0..150).map(|_| Some(30));
        let spike = (0..20).map(|n| Some(430 - 20 * n));
        let delays: Vec<_> = calm.clone().chain(spike).chain(calm).collect();
        let heard = hear(ADAPTIVE, &delays);
        assert!(heard.late <= 20 && heard.played >= 300, "{heard:?}");
    }

    #[test]
    fn a_part_of_a_call_can_be_rated() {
        let mut buffer = JitterBuffer::new(FIXED);
        let mut arrive = |numbers: core::ops::Range<u64>, skipped: u64| {
            for number in numbers.filter(|number| number % 10 >= skipped) {
                let sent = Instant::from_millis(20 * number);
                buffer.arrive(number, sent, sent + Duration::from_millis(50));
            }
            *buffer.heard()
        };
        let first = arrive(0..1000, 0);
        let second = arrive(1000..2000, 3).since(&first);
        assert_eq!(first.loss(), 0.0);
        assert!((second.loss() - 0.3).abs() < 0.005 && (second.burst_ratio() - 2.1).abs() < 0.02, "{second:?}");
        assert_eq!(second.delay(), Duration::from_millis(110));
    }

    proptest! {
        /// Every number up to the last is played or lost, none both, and a deeper buffer loses no more.
        #[test]
        fn each_packet_has_one_fate(delays in prop::collection::vec(prop::option::of(0_u64..300), 1..300)) {
            let shallow = hear(FIXED, &delays);
            let deep = hear(Playout::Fixed(Duration::from_millis(300)), &delays);
            let came = delays.iter().flatten().count() as u64;
            prop_assert_eq!(deep.played + deep.late, came);
            prop_assert_eq!(shallow.played + shallow.late, came);
            prop_assert!(deep.played >= shallow.played && deep.bursts <= deep.lost);
            prop_assert!(deep.played + deep.lost <= delays.len() as u64);
            prop_assert!(hear(ADAPTIVE, &delays).played <= came);
        }

        /// Numbers and times from the network can be anything.
        #[test]
        fn nothing_makes_it_panic(packets in prop::collection::vec(any::<(u64, u64, u64)>(), 0..50), fixed: bool) {
            let mut buffer = JitterBuffer::new(if fixed { FIXED } else { ADAPTIVE });
            for (number, sent, now) in packets {
                buffer.arrive(number, Instant::from_nanos(sent), Instant::from_nanos(now));
                buffer.arrive(number.wrapping_add(1), Instant::from_nanos(sent), Instant::from_nanos(now));
            }
            let heard = buffer.finish();
            prop_assert!((0.0..=1.0).contains(&heard.loss()) && heard.burst_ratio() >= 0.0);
        }

        #[test]
        fn memory_is_bounded(numbers in prop::collection::vec(0_u64..5000, 2000)) {
            let mut buffer = JitterBuffer::new(Playout::Fixed(Duration::from_secs(3600)));
            for number in numbers {
                buffer.arrive(number, Instant::from_millis(20 * number), Instant::from_millis(20 * number));
                prop_assert!(buffer.waiting.len() <= JitterBuffer::MAX);
            }
        }
    }
}
