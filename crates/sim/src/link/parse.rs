//! The words by which command lines and scenario files describe links.
//!
#![doc = include_str!("words.md")]

use super::{
    CoDel, Discipline, GilbertElliott, Jitter, Loss, Outage, Policer, Queue, QueueLimit, Rate, Red, Reorder,
    ReorderHow, Schedule, Shape,
};
use braidcast_core::Instant;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::borrow::Cow;

/// The words of this module, as a table in Markdown.
pub const WORDS: &str = include_str!("words.md");

/// Longest duration that is understood.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A word that does not describe what it should; shows what was wrong and an example of what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    text: String,
    wrong: &'static str,
    example: Cow<'static, str>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; write for example {}", self.text, self.wrong, self.example)
    }
}

impl core::error::Error for ParseError {}

pub(crate) fn fail<T>(text: &str, wrong: &'static str, example: &'static str) -> Result<T, ParseError> {
    Err(ParseError { text: text.to_owned(), wrong, example: example.into() })
}

/// Splits `2.5mbit` into 2.5 and `mbit`; the number has digits and at most one point, so it is finite and not negative.
pub(crate) fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse::<f64>().ok()?;
    Some((number, text[end..].trim_start()))
}

/// Parses a rate in bit/s: `8mbit`, `500kbit`.
pub fn rate(text: &str) -> Result<u64, ParseError> {
    const EXAMPLE: &str = "8mbit or 500kbit";
    let Some((number, unit)) = number_and_unit(text) else { return fail(text, "not a number with a unit", EXAMPLE) };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "bit" | "bit/s" => 1.0,
        "kbit" | "kbit/s" => 1e3,
        "mbit" | "mbit/s" => 1e6,
        "gbit" | "gbit/s" => 1e9,
        _ => {
            let mut error = ParseError {
                text: text.to_owned(),
                wrong: "the unit of a rate is bit, kbit, mbit or gbit (per second)",
                example: EXAMPLE.into(),
            };
            // ffmpeg's `8M` means bits, tc's `8mbps` bytes: so neither is guessed.
            if let Some(prefix @ ('k' | 'm' | 'g')) = unit.chars().next().map(|c| c.to_ascii_lowercase()) {
                error.example = format!("{number}{prefix}bit").into();
            }
            return Err(error);
        }
    };
    let bits = number * factor;
    if !(1.0..=1e13).contains(&bits) {
        return fail(text, "a rate is at least 1bit and at most 10000gbit", EXAMPLE);
    }
    Ok(bits.round() as u64)
}

/// Parses a duration: `15ms`, `2s`; at most 366 days.
pub fn duration(text: &str) -> Result<Duration, ParseError> {
    const EXAMPLE: &str = "15ms or 2s";
    let Some((number, unit)) = number_and_unit(text) else { return fail(text, "not a number with a unit", EXAMPLE) };
    let nanos = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return fail(text, "the unit of a duration is ns, us, ms, s, min or h", EXAMPLE),
    };
    let nanos = number * nanos;
    if nanos > LONGEST.as_nanos() as f64 {
        return fail(text, "a duration is at most 366 days", EXAMPLE);
    }
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// Parses a share from 0 to 1: `5%`.
pub fn share(text: &str) -> Result<f64, ParseError> {
    const EXAMPLE: &str = "5% or 0.1%";
    match number_and_unit(text) {
        Some((percent, "%")) if percent <= 100.0 => Ok(percent / 100.0),
        Some((_, "%")) => fail(text, "a share is at most 100%", EXAMPLE),
        // tc takes 5 for 5 %, others 0.05: so it is not guessed.
        Some((percent, "")) if percent <= 100.0 => Err(ParseError {
            text: text.to_owned(),
            wrong: "a share is a number in percent",
            example: format!("{percent}%").into(),
        }),
        _ => fail(text, "a share is a number in percent", EXAMPLE),
    }
}

/// Parses rates in bit/s that change with time: `0s:8mbit,10s:2mbit`, `ramp:0s:8mbit,10s:2mbit`,
/// `0s:8mbit,10s:2mbit,repeat:20s`. One rate alone stands for itself.
pub fn rate_schedule(text: &str) -> Result<Schedule, ParseError> {
    schedule(text, rate, "0s:8mbit,10s:2mbit,repeat:20s")
}

/// Parses delays in nanoseconds that change with time: `0s:15ms,10s:80ms`. One delay alone stands
/// for itself.
pub fn delay_schedule(text: &str) -> Result<Schedule, ParseError> {
    let nanos = |text: &str| duration(text).map(|d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    schedule(text, nanos, "0s:15ms,10s:80ms,repeat:20s")
}

fn schedule(
    text: &str,
    value: impl Fn(&str) -> Result<u64, ParseError>,
    example: &'static str,
) -> Result<Schedule, ParseError> {
    if !text.contains(':') {
        return value(text).map(Schedule::constant);
    }
    let (shape, rest) = text.strip_prefix("ramp:").map_or((Shape::Steps, text), |rest| (Shape::Ramps, rest));
    let (rest, period) = match rest.split_once(",repeat:") {
        Some((rest, period)) => (rest, Some(duration(period)?)),
        None => (rest, None),
    };
    let mut points = Vec::new();
    for point in rest.split(',') {
        let Some((at, amount)) = point.split_once(':') else {
            return fail(text, "a schedule is a list of TIME:VALUE", example);
        };
        points.push((duration(at)?, value(amount)?));
    }
    Schedule::new(&points, shape, period).or_else(|error| fail(text, error.what(), example))
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "unlimited" => Ok(Self::Unlimited),
            _ if text.contains(':') => rate_schedule(text).map(Self::Schedule),
            _ => rate(text).map(Self::Bits),
        }
    }
}

impl FromStr for Loss {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None => share(text).map(Self::Uniform),
            Some(("burst", rest)) => burst_loss(text, rest),
            Some(("ge", rest)) => gilbert_elliott(text, rest).map(Self::GilbertElliott),
            Some(("packets", rest)) => match rest.split(',').map(str::parse).collect() {
                Ok(numbers) => Ok(Self::Packets(numbers)),
                Err(_) => fail(text, "packets are whole numbers from 0", "packets:3,7"),
            },
            Some(_) => fail(text, "loss is none, a share, burst:, ge: or packets:", "5% or burst:5%,4"),
        }
    }
}

fn burst_loss(text: &str, rest: &str) -> Result<Loss, ParseError> {
    const EXAMPLE: &str = "burst:5%,4 (mean loss, mean packets per burst)";
    let Some((mean, burst)) = rest.split_once(',') else { return fail(text, "the mean burst is missing", EXAMPLE) };
    let mean = share(mean)?;
    let Some((burst, "")) = number_and_unit(burst) else { return fail(text, "the burst is not a number", EXAMPLE) };
    match Loss::bursts(mean, burst) {
        Some(loss) => Ok(loss),
        None => fail(text, "a burst is at least 1 packet, and the loss at most burst / (burst + 1)", EXAMPLE),
    }
}

fn gilbert_elliott(text: &str, rest: &str) -> Result<GilbertElliott, ParseError> {
    const EXAMPLE: &str = "ge:p=1%,r=30%,bad=100%,good=0%";
    let (mut p, mut r, mut good, mut bad) = (None, None, 0.0, 1.0);
    for pair in rest.split(',') {
        match pair.split_once('=') {
            Some(("p", value)) => p = Some(share(value)?),
            Some(("r", value)) => r = Some(share(value)?),
            Some(("good", value)) => good = share(value)?,
            Some(("bad", value)) => bad = share(value)?,
            _ => return fail(text, "the parameters are p, r, bad and good", EXAMPLE),
        }
    }
    match (p, r) {
        (Some(p), Some(r)) => Ok(GilbertElliott { p, r, good, bad }),
        _ => fail(text, "p (good to bad) and r (bad to good) are needed", EXAMPLE),
    }
}

impl FromStr for QueueLimit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXAMPLE: &str = "100p, 64kB or 300ms";
        let Some((number, unit)) = number_and_unit(text) else {
            return fail(text, "not a number with a unit", EXAMPLE);
        };
        let factor = match unit {
            "p" | "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            _ => match duration(text) {
                Ok(limit) => return Ok(Self::Time(limit)),
                Err(_) => {
                    return fail(
                        text,
                        "a queue is in packets (p), bytes (B, kB, MB, KiB, MiB) or time (ms, s)",
                        EXAMPLE,
                    );
                }
            },
        };
        let amount = number * factor;
        if !(1.0..=1e12).contains(&amount) {
            return fail(text, "a queue holds at least 1 packet or byte and at most 10^12", EXAMPLE);
        }
        let amount = amount.round() as usize;
        Ok(if unit == "p" { Self::Packets(amount) } else { Self::Bytes(amount) })
    }
}

impl FromStr for Queue {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(rest) = text.strip_prefix("red:") {
            return red(text, rest);
        }
        if let Some(limit) = text.strip_prefix("netem:") {
            return Ok(Self { limit: limit.parse()?, discipline: Discipline::Netem });
        }
        match text.strip_prefix("codel") {
            Some("") => Ok(Self { limit: QueueLimit::default(), discipline: Discipline::CoDel(CoDel::default()) }),
            Some(rest) => match rest.strip_prefix(':') {
                Some(rest) => codel(text, rest),
                None => {
                    fail(text, "a queue is a size, netem:, red: or codel", "300ms, red:5p,15p,10% or codel:5ms,100ms")
                }
            },
            None => text.parse().map(QueueLimit::into),
        }
    }
}

fn red(text: &str, rest: &str) -> Result<Queue, ParseError> {
    const EXAMPLE: &str = "red:5p,15p,10% or red:5p,15p,10%,gentle,ecn,weight=0.2%,limit=50p";
    let mut words = rest.split(',');
    let (Some(min), Some(max), Some(max_p)) = (words.next(), words.next(), words.next()) else {
        return fail(text, "min, max and max_p are needed", EXAMPLE);
    };
    let (Some((min, "p")), Some((max, "p"))) = (number_and_unit(min), number_and_unit(max)) else {
        return fail(text, "min and max are in packets", EXAMPLE);
    };
    let mut red = Red::new(min, max, share(max_p)?);
    if red.min >= red.max {
        return fail(text, "min is below max", EXAMPLE);
    }
    let mut limit = QueueLimit::default();
    for word in words {
        match word.split_once('=') {
            None if word == "gentle" => red.gentle = true,
            None if word == "ecn" => red.ecn = true,
            Some(("weight", weight)) => red.weight = share(weight)?,
            Some(("limit", size)) => limit = size.parse()?,
            _ => return fail(text, "RED also knows gentle, ecn, weight= and limit=", EXAMPLE),
        }
    }
    Ok(Queue { limit, discipline: Discipline::Red(red) })
}

fn codel(text: &str, rest: &str) -> Result<Queue, ParseError> {
    const EXAMPLE: &str = "codel:5ms,100ms or codel:5ms,100ms,ecn,limit=1000p";
    let mut words = rest.split(',');
    let (Some(target), Some(interval)) = (words.next(), words.next()) else {
        return fail(text, "target and interval are needed", EXAMPLE);
    };
    let mut codel = CoDel { target: duration(target)?, interval: duration(interval)?, ecn: false };
    if codel.interval.is_zero() || codel.target > codel.interval {
        return fail(text, "the interval is above 0 and not below the target", EXAMPLE);
    }
    let mut limit = QueueLimit::default();
    for word in words {
        match word.split_once('=') {
            None if word == "ecn" => codel.ecn = true,
            Some(("limit", size)) => limit = size.parse()?,
            _ => return fail(text, "CoDel also knows ecn and limit=", EXAMPLE),
        }
    }
    Ok(Queue { limit, discipline: Discipline::CoDel(codel) })
}

impl FromStr for Policer {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXAMPLE: &str = "1.5mbit,15kB (rate, depth)";
        let Some((bits_per_second, depth)) = text.split_once(',') else {
            return fail(text, "a policer is a rate and the depth of its bucket", EXAMPLE);
        };
        match depth.parse()? {
            QueueLimit::Bytes(depth) => Ok(Self { bits_per_second: rate(bits_per_second)?, depth }),
            _ => fail(text, "the depth of a bucket is in bytes", EXAMPLE),
        }
    }
}

impl FromStr for Jitter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.split_once(':') {
            None => duration(text).map(Self::Uniform),
            Some(("uniform", spread)) => duration(spread).map(Self::Uniform),
            Some(("normal", spread)) => duration(spread).map(Self::Normal),
            Some(_) => fail(text, "jitter is uniform or normal", "5ms or normal:5ms"),
        }
    }
}

impl FromStr for Reorder {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.split_once(',') {
            None => Ok(Self { share: share(text)?, how: ReorderHow::Skip }),
            Some((part, late)) => {
                let how = match late.split_once(',') {
                    None => ReorderHow::Late(duration(late)?),
                    Some((mean, spread)) => ReorderHow::LateBy { mean: duration(mean)?, spread: duration(spread)? },
                };
                Ok(Self { share: share(part)?, how })
            }
        }
    }
}

impl FromStr for Outage {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXAMPLE: &str = "10s-12s or every:3s,250ms or every:3s,250ms,hold";
        let (times, hold) = text.strip_suffix(",hold").map_or((text, false), |times| (times, true));
        let outage = if let Some(rest) = times.strip_prefix("every:") {
            let Some((period, length)) = rest.split_once(',') else {
                return fail(text, "the length is missing", EXAMPLE);
            };
            let (period, length) = (duration(period)?, duration(length)?);
            if period < length + Duration::from_millis(1) {
                return fail(text, "the period is longer than the outage, by 1ms at least", EXAMPLE);
            }
            Self::every(period, length)
        } else {
            let Some((from, until)) = times.split_once('-') else { return fail(text, "not a span of time", EXAMPLE) };
            let (from, until) = (Instant::ZERO + duration(from)?, Instant::ZERO + duration(until)?);
            if until <= from {
                return fail(text, "an outage ends after it begins", EXAMPLE);
            }
            Self::window(from, until)
        };
        Ok(if hold { outage.holding() } else { outage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn words_mean_what_they_say() {
        assert_eq!([rate("8mbit"), rate("500kbit"), rate("2.5Mbit")], [Ok(8_000_000), Ok(500_000), Ok(2_500_000)]);
        assert_eq!([rate("8 Mbit/s"), rate("500 bit/s")], [Ok(8_000_000), Ok(500)], "as the tables print them");
        assert_eq!("unlimited".parse(), Ok(Rate::Unlimited));
        assert_eq!([duration("15ms"), duration("2s"), duration("1.5min")], [Ok(ms(15)), Ok(ms(2000)), Ok(ms(90_000))]);
        assert_eq!("5%".parse(), Ok(Loss::Uniform(0.05)));
        assert_eq!("burst:5%,4".parse().ok(), Loss::bursts(0.05, 4.0));
        let ge = GilbertElliott { p: 0.01, r: 0.3, good: 0.0, bad: 0.5 };
        assert_eq!("ge:p=1%,r=30%,bad=50%".parse(), Ok(Loss::GilbertElliott(ge)));
        assert_eq!("packets:7,3".parse(), Ok(Loss::Packets([3, 7].into())));
        assert_eq!("100p".parse(), Ok(QueueLimit::Packets(100)));
        assert_eq!("64kB".parse(), Ok(QueueLimit::Bytes(64_000)));
        assert_eq!("300ms".parse(), Ok(QueueLimit::Time(ms(300))));
        let held = Queue { limit: QueueLimit::Packets(57), discipline: Discipline::Netem };
        assert_eq!("netem:57p".parse(), Ok(held));
        let red = Red { gentle: true, weight: 0.01, ..Red::new(5.0, 15.0, 0.1) };
        let queue = Queue { limit: QueueLimit::Packets(50), discipline: Discipline::Red(red) };
        assert_eq!("red:5p,15p,10%,weight=1%,gentle,limit=50p".parse(), Ok(queue));
        let codel = |codel, limit| Ok(Queue { limit, discipline: Discipline::CoDel(codel) });
        assert_eq!("codel".parse(), codel(CoDel::default(), QueueLimit::default()));
        let marking = CoDel { target: ms(10), interval: ms(200), ecn: true };
        assert_eq!("codel:10ms,200ms,ecn,limit=1MB".parse(), codel(marking, QueueLimit::Bytes(1_000_000)));
        assert_eq!("300ms".parse(), Ok(Queue::from(QueueLimit::Time(ms(300)))));
        let points = [(ms(0), 8_000_000), (ms(10_000), 2_000_000)];
        let schedule = |shape, period| Ok(Rate::Schedule(Schedule::new(&points, shape, period).unwrap()));
        assert_eq!("0s:8mbit,10s:2mbit".parse(), schedule(Shape::Steps, None));
        assert_eq!("ramp:0s:8mbit,10s:2mbit,repeat:20s".parse(), schedule(Shape::Ramps, Some(ms(20_000))));
        assert_eq!(delay_schedule("15ms"), Ok(Schedule::constant(15_000_000)));
        assert_eq!("1.5mbit,15kB".parse(), Ok(Policer { bits_per_second: 1_500_000, depth: 15_000 }));
        assert_eq!("5ms".parse(), Ok(Jitter::Uniform(ms(5))));
        assert_eq!("normal:5ms".parse(), Ok(Jitter::Normal(ms(5))));
        assert_eq!("2%".parse(), Ok(Reorder { share: 0.02, how: ReorderHow::Skip }));
        assert_eq!("2%,30ms".parse(), Ok(Reorder { share: 0.02, how: ReorderHow::Late(ms(30)) }));
        let how = ReorderHow::LateBy { mean: ms(30), spread: ms(10) };
        assert_eq!("2%,30ms,10ms".parse(), Ok(Reorder { share: 0.02, how }));
        assert_eq!("10s-12s".parse(), Ok(Outage::window(Instant::from_millis(10_000), Instant::from_millis(12_000))));
        assert_eq!("every:3s,250ms,hold".parse(), Ok(Outage::every(ms(3000), ms(250)).holding()));
    }

    #[test]
    fn errors_say_what_was_wrong_and_give_an_example() {
        let shown = |error: ParseError| error.to_string();
        for (text, example) in
            [("8MB", "8mbit"), ("2.5M", "2.5mbit"), ("500kbps", "500kbit"), ("8", "8mbit or 500kbit")]
        {
            let why = "the unit of a rate is bit, kbit, mbit or gbit (per second)";
            assert_eq!(rate(text).map_err(shown), Err(format!("`{text}`: {why}; write for example {example}")));
        }
        let bare = "`15`: the unit of a duration is ns, us, ms, s, min or h; write for example 15ms or 2s";
        assert_eq!(duration("15").map_err(shown), Err(bare.to_owned()));
        for bad in ["-5%", "5", "101%", "burst:5%", "burst:99%,2", "ge:p=1%", "ge:q=1%", "lots:1", "packets:a", ""] {
            assert!(bad.parse::<Loss>().is_err(), "{bad}");
        }
        for bad in ["12s-10s", "10s", "every:3s", "every:3s,4s", "every:1us,0ms", "every:", "10s-12s,keep"] {
            assert!(bad.parse::<Outage>().is_err(), "{bad}");
        }
        for bad in ["0bit", "nanmbit", "1e9bit", "99999gbit", "1..2mbit", "mbit"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        let late = "`1s:8mbit`: a schedule begins at 0s; write for example 0s:8mbit,10s:2mbit,repeat:20s";
        assert_eq!("1s:8mbit".parse::<Rate>().map_err(shown), Err(late.to_owned()));
        for bad in ["0s:8mbit,-1s:2mbit", "0s:8mbit,0s:2mbit", "0s:1mbit,9s:2mbit,5s:1mbit", "0s:1mbit,repeat:0s", ":"]
        {
            assert!(bad.parse::<Rate>().is_err() && delay_schedule(bad).is_err(), "{bad}");
        }
        for bad in ["red:15p,5p,10%", "red:5p,15p", "red:5kB,15kB,10%", "red:5p,15p,10%,wild", "codel:5ms", "codels"] {
            assert!(bad.parse::<Queue>().is_err(), "{bad}");
        }
        for bad in ["", "1.5mbit", "15kB,1.5mbit", "1.5mbit,15p", "1.5mbit,15ms", "1.5mbit,", "0bit,15kB"] {
            assert!(bad.parse::<Policer>().is_err(), "{bad}");
        }
        assert!("netem:".parse::<Queue>().is_err() && "netem:57".parse::<Queue>().is_err());
        assert!("codel:5ms,0ms".parse::<Queue>().is_err() && "codel:5ms,100ms,limit=".parse::<Queue>().is_err());
        assert!("0p".parse::<QueueLimit>().is_err() && "10kb".parse::<QueueLimit>().is_err());
        assert!(duration("9999999h").is_err());
    }

    proptest! {
        #[test]
        fn no_word_makes_a_parser_panic(text in "\\PC*|[0-9.]{0,5}(p|%|ms|mbit|kB)?[,:-]?[0-9.a-z%é]{0,9}") {
            let _ = (rate(&text), duration(&text), share(&text));
            let _ = (text.parse::<Loss>(), text.parse::<Queue>(), text.parse::<Outage>());
            let _ = (text.parse::<Jitter>(), text.parse::<Reorder>(), format!("ge:{text}").parse::<Loss>());
            let _ = (text.parse::<Rate>(), delay_schedule(&text), format!("0s:1mbit,{text}").parse::<Rate>());
            let _ = (text.parse::<Policer>(), format!("1mbit,{text}").parse::<Policer>());
            let _ = (format!("red:{text}").parse::<Queue>(), format!("codel:{text}").parse::<Queue>());
        }
    }
}
