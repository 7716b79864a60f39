use super::frames::picture;
use super::{Codec, Conference, FrameSize, FrameTrace, Gop, Kind, OnOff, Periods, Stream, Traffic, Voice};
use crate::link::QueueLimit;
use crate::link::parse::{ParseError, duration, fail, number_and_unit, rate};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::path::Path;

const FIRST_WORD: &str = "the traffic is bulk, cbr:, poisson:, exponential:, pareto:, g711, g729, speex, gop:, frames:, \
                          prcmt, conference, conference:, msn or skype";

/// Most calls in one source.
const MAX_CALLS: u16 = 10_000;

impl FromStr for Traffic {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if let Ok(codec) = name.parse::<Codec>() {
            return voice(text, codec, rest).map(Self::Voice);
        }
        match (name, rest) {
            ("bulk", "") => Ok(Self::Bulk(None)),
            ("bulk", limit) => size(limit).map(|limit| Self::Bulk(Some(limit as u64))),
            ("cbr", rest) => cbr(text, rest),
            ("poisson", rest) => stream(text, rest, "poisson:1mbit,500B").map(Self::Poisson),
            ("exponential" | "pareto", rest) => on_off(text, name == "pareto", rest).map(Self::OnOff),
            ("gop", rest) => gop(text, rest).map(Self::Gop),
            ("frames", rest) => frames(text, rest),
            ("prcmt", "") => Ok(Self::Prcmt),
            ("conference", rest) => conference(text, rest).map(Self::Conference),
            ("msn", "") => Ok(Self::Msn),
            ("skype", "") => Ok(Self::Skype),
            _ => fail(text, FIRST_WORD, "bulk or cbr:64kbit,160B"),
        }
    }
}

/// Parses a number of bytes: `160B`, `10MB`.
fn size(text: &str) -> Result<usize, ParseError> {
    match text.parse() {
        Ok(QueueLimit::Bytes(bytes)) => Ok(bytes),
        _ => fail(text, "a size is at least 1 byte, in B, kB, MB, KiB or MiB", "160B or 10MB"),
    }
}

/// The size of one emission, 16 MB at most.
fn packet_size(text: &str) -> Result<usize, ParseError> {
    match size(text)? {
        bytes if bytes <= 16_000_000 => Ok(bytes),
        _ => fail(text, "a packet or frame has at most 16MB", "160B"),
    }
}

fn stream(text: &str, rest: &str, example: &'static str) -> Result<Stream, ParseError> {
    let Some((bits, bytes)) = rest.split_once(',') else { return fail(text, "rate and size are needed", example) };
    Ok(Stream { rate: rate(bits)?, size: packet_size(bytes)? })
}

fn cbr(text: &str, rest: &str) -> Result<Traffic, ParseError> {
    const EXAMPLE: &str = "cbr:64kbit,160B or cbr:64kbit,160B,silent=10s-20s";
    let Some((rest, silence)) = rest.split_once(",silent=") else {
        return stream(text, rest, EXAMPLE).map(Traffic::Cbr);
    };
    let stream = stream(text, rest, EXAMPLE)?;
    let Some((from, until)) = silence.split_once('-') else {
        return fail(text, "a silence is a span of time", EXAMPLE);
    };
    let (from, until) = (duration(from)?, duration(until)?);
    if from >= until {
        return fail(text, "a silence ends after it begins", EXAMPLE);
    }
    Ok(Traffic::Interrupted(stream, from, until))
}

fn on_off(text: &str, pareto: bool, rest: &str) -> Result<OnOff, ParseError> {
    const EXAMPLE: &str = "pareto:on=500ms,off=500ms,rate=64kbit,size=210B,shape=1.5";
    let (mut on, mut off, mut bits, mut bytes, mut shape) = (None, None, None, None, None);
    for pair in rest.split(',') {
        match pair.split_once('=') {
            Some(("on", value)) => on = Some(duration(value)?),
            Some(("off", value)) => off = Some(duration(value)?),
            Some(("rate", value)) => bits = Some(rate(value)?),
            Some(("size", value)) => bytes = Some(packet_size(value)?),
            Some(("shape", value)) if pareto => match number_and_unit(value) {
                Some((number, "")) if number > 1.0 => shape = Some(number),
                _ => return fail(text, "the shape is a number above 1", EXAMPLE),
            },
            _ => return fail(text, "the parameters are on, off, rate and size, for pareto also shape", EXAMPLE),
        }
    }
    // ns-2's default shape.
    let periods = if pareto { Periods::Pareto(shape.unwrap_or(1.5)) } else { Periods::Exponential };
    match (on, off, bits, bytes) {
        (Some(on), Some(off), Some(rate), Some(size)) => Ok(OnOff { on, off, stream: Stream { rate, size }, periods }),
        _ => fail(text, "on, off, rate and size are needed", EXAMPLE),
    }
}

fn voice(text: &str, codec: Codec, rest: &str) -> Result<Voice, ParseError> {
    const EXAMPLE: &str = "g711 or g729:dtx,calls=5,packet=20ms";
    let mut voice = Voice::call(codec);
    for word in rest.split(',').filter(|_| !rest.is_empty()) {
        match word.split_once('=') {
            None if word == "dtx" => voice.dtx = true,
            None if word == "trunk" => voice.trunk = true,
            Some(("calls", value)) => match value.parse() {
                Ok(calls) if (1..=MAX_CALLS).contains(&calls) => voice.calls = calls,
                _ => return fail(text, "calls are a whole number from 1 to 10000", EXAMPLE),
            },
            Some(("packet", value)) => voice.packet = duration(value)?,
            _ => return fail(text, "a call has dtx, trunk, calls= and packet=", EXAMPLE),
        }
    }
    let frame = codec.frame().0.as_nanos();
    if voice.packet.is_zero() || !voice.packet.as_nanos().is_multiple_of(frame) || voice.packet > Duration::from_secs(1)
    {
        return fail(text, "a packet holds whole frames (10ms; speex: 20ms), 1s at most", EXAMPLE);
    }
    Ok(voice)
}

fn fps(text: &str, word: &str) -> Result<f64, ParseError> {
    match number_and_unit(word) {
        Some((number, "fps")) if (0.001..=100_000.0).contains(&number) => Ok(number),
        _ => fail(text, "frames a second are a number above 0 with fps", "30fps"),
    }
}

fn gop(text: &str, rest: &str) -> Result<Gop, ParseError> {
    const EXAMPLE: &str = "gop:IBBPBB,25fps,I=10kB/2kB,P=5kB/1kB,B=2kB";
    let mut words = rest.split(',');
    let pattern: Option<Vec<Kind>> =
        words.next().and_then(|word| word.split("").filter(|letter| !letter.is_empty()).map(picture).collect());
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty() && pattern.len() <= 1000) else {
        return fail(text, "the group begins with its pattern of I, P and B", EXAMPLE);
    };
    let Some(rate) = words.next() else { return fail(text, "frames a second are missing", EXAMPLE) };
    let fps = fps(text, rate)?;
    let mut sizes = [None; 3];
    let mut frames = None;
    for word in words {
        match word.split_once('=') {
            Some(("I", value)) => sizes[0] = Some(frame_size(value)?),
            Some(("P", value)) => sizes[1] = Some(frame_size(value)?),
            Some(("B", value)) => sizes[2] = Some(frame_size(value)?),
            Some(("frames", value)) => match value.parse() {
                Ok(count) => frames = Some(count),
                Err(_) => return fail(text, "frames are a whole number", EXAMPLE),
            },
            _ => return fail(text, "after pattern and fps come I=, P=, B= and frames=", EXAMPLE),
        }
    }
    for (kind, size) in [Kind::I, Kind::P, Kind::B].iter().zip(&sizes) {
        if pattern.contains(kind) && size.is_none() {
            return fail(text, "each type in the pattern needs its size", EXAMPLE);
        }
    }
    let [i, p, b] = sizes.map(Option::unwrap_or_default);
    Ok(Gop { pattern, fps, i, p, b, frames })
}

fn conference(text: &str, rest: &str) -> Result<Conference, ParseError> {
    const EXAMPLE: &str = "conference:audio=74B,gop:IBPB,10fps,I=10kB,P=4kB,B=2kB";
    let mut conference = Conference::default();
    let (sound, pictures) = match rest.split_once("gop:") {
        Some((sound, pictures)) => (sound.strip_suffix(',').unwrap_or(sound), Some(pictures)),
        None => (rest, None),
    };
    match sound.split_once('=') {
        None if sound.is_empty() => {}
        Some(("audio", size)) => conference.sound = packet_size(size)?,
        _ => return fail(text, "a conference has audio= and gop:", EXAMPLE),
    }
    conference.pictures = pictures.map(|pictures| gop(text, pictures)).transpose()?;
    Ok(conference)
}

fn frame_size(text: &str) -> Result<FrameSize, ParseError> {
    let (mean, spread) = text.split_once('/').map_or((text, None), |(mean, spread)| (mean, Some(spread)));
    let spread = spread.map_or(Ok(0), packet_size)?;
    Ok(FrameSize { mean: packet_size(mean)? as f64, spread: spread as f64 })
}

fn frames(text: &str, rest: &str) -> Result<Traffic, ParseError> {
    const EXAMPLE: &str = "frames:film.csv,30fps";
    let Some((path, rate)) = rest.rsplit_once(',') else { return fail(text, "file and fps are needed", EXAMPLE) };
    match FrameTrace::load(Path::new(path), fps(text, rate)?) {
        Ok(trace) => Ok(Traffic::Frames(trace.into())),
        Err(_) => fail(text, "the file cannot be read, or has other lines than `I,9968`", EXAMPLE),
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bulk(None) => f.write_str("bulk"),
            Self::Bulk(Some(limit)) => write!(f, "bulk:{limit}B"),
            Self::Cbr(Stream { rate, size }) => write!(f, "cbr:{rate}bit,{size}B"),
            Self::Interrupted(Stream { rate, size }, from, until) => {
                write!(f, "cbr:{rate}bit,{size}B,silent={}ns-{}ns", from.as_nanos(), until.as_nanos())
            }
            Self::Poisson(Stream { rate, size }) => write!(f, "poisson:{rate}bit,{size}B"),
            Self::OnOff(OnOff { on, off, stream, periods }) => {
                let (name, shape) = match periods {
                    Periods::Exponential => ("exponential", String::new()),
                    Periods::Pareto(shape) => ("pareto", format!(",shape={shape}")),
                };
                let (on, off, Stream { rate, size }) = (on.as_nanos(), off.as_nanos(), stream);
                write!(f, "{name}:on={on}ns,off={off}ns,rate={rate}bit,size={size}B{shape}")
            }
            Self::Voice(voice) => {
                write!(f, "{}:calls={},packet={}ms", voice.codec, voice.calls, voice.packet.as_millis())?;
                f.write_str(if voice.dtx { ",dtx" } else { "" })?;
                f.write_str(if voice.trunk { ",trunk" } else { "" })
            }
            Self::Gop(gop) => write_gop(f, gop),
            Self::Frames(trace) => write!(f, "frames:{},{}fps", trace.name(), trace.fps()),
            Self::Prcmt => f.write_str("prcmt"),
            Self::Msn => f.write_str("msn"),
            Self::Skype => f.write_str("skype"),
            Self::Conference(conference) => {
                write!(f, "conference:audio={}B", conference.sound)?;
                conference.pictures.iter().try_for_each(|gop| f.write_str(",").and_then(|()| write_gop(f, gop)))
            }
        }
    }
}

fn write_gop(f: &mut fmt::Formatter<'_>, gop: &Gop) -> fmt::Result {
    f.write_str("gop:")?;
    gop.pattern.iter().try_for_each(|kind| write!(f, "{kind}"))?;
    write!(f, ",{}fps", gop.fps)?;
    for (kind, size) in [(Kind::I, gop.i), (Kind::P, gop.p), (Kind::B, gop.b)] {
        if gop.pattern.contains(&kind) {
            write!(f, ",{kind}={}B", size.mean)?;
        }
        if gop.pattern.contains(&kind) && size.spread > 0.0 {
            write!(f, "/{}B", size.spread)?;
        }
    }
    gop.frames.map_or(Ok(()), |frames| write!(f, ",frames={frames}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_mean_what_they_say_and_are_said_again() -> Result<(), ParseError> {
        let ms = Duration::from_millis;
        let stream = Stream { rate: 64_000, size: 160 };
        let on_off = |periods| OnOff { on: ms(500), off: ms(1000), stream, periods };
        let call = Voice::call(Codec::G729);
        let size = |mean, spread| FrameSize { mean, spread };
        let pattern = vec![Kind::I, Kind::B, Kind::P];
        let gop = Gop { pattern, fps: 29.97, i: size(1e4, 2e3), p: size(5e3, 0.0), b: size(2e3, 1.0), frames: None };
        let rows = [
            ("bulk", Traffic::Bulk(None)),
            ("bulk:10MB", Traffic::Bulk(Some(10_000_000))),
            ("cbr:64kbit,160B", Traffic::Cbr(stream)),
            ("cbr:64kbit,160B,silent=10s-20s", Traffic::Interrupted(stream, ms(10_000), ms(20_000))),
            ("poisson:64kbit,160B", Traffic::Poisson(stream)),
            ("exponential:on=500ms,off=1s,rate=64kbit,size=160B", Traffic::OnOff(on_off(Periods::Exponential))),
            ("pareto:on=500ms,off=1s,rate=64kbit,size=160B", Traffic::OnOff(on_off(Periods::Pareto(1.5)))),
            ("pareto:on=500ms,off=1s,rate=64kbit,size=160B,shape=1.2", Traffic::OnOff(on_off(Periods::Pareto(1.2)))),
            ("g729", Traffic::Voice(call)),
            (
                "g729:dtx,calls=12,packet=40ms,trunk",
                Traffic::Voice(Voice { dtx: true, calls: 12, packet: ms(40), trunk: true, ..call }),
            ),
            ("gop:IBP,29.97fps,I=10kB/2kB,P=5kB,B=2kB/1B", Traffic::Gop(gop.clone())),
            ("prcmt", Traffic::Prcmt),
            ("msn", Traffic::Msn),
            ("skype", Traffic::Skype),
            ("conference", Traffic::Conference(Conference::default())),
            ("conference:audio=74B", Traffic::Conference(Conference { sound: 74, pictures: None })),
            (
                "conference:audio=20B,gop:IBP,29.97fps,I=10kB/2kB,P=5kB,B=2kB/1B",
                Traffic::Conference(Conference { sound: 20, pictures: Some(gop.clone()) }),
            ),
        ];
        for (words, traffic) in rows {
            assert_eq!(words.parse::<Traffic>()?, traffic, "{words}");
            assert_eq!(traffic.to_string().parse::<Traffic>()?, traffic, "{traffic}");
        }
        Ok(())
    }

    #[test]
    fn errors_say_what_was_wrong_and_give_an_example() {
        let error = "speex:packet=30ms".parse::<Traffic>().map_err(|error| error.to_string());
        let said = "`speex:packet=30ms`: a packet holds whole frames (10ms; speex: 20ms), 1s at most; \
                    write for example g711 or g729:dtx,calls=5,packet=20ms";
        assert_eq!(error, Err(said.to_owned()));
        let wrong = [
            "",
            "ftp",
            "cbr",
            "cbr:64kbit",
            "cbr:64kbit,0B",
            "cbr:64kbit,20p",
            "cbr:64kbit,160B,silent=3s",
            "cbr:64kbit,160B,silent=3s-3s",
            "cbr:64kbit,17MB",
            "bulk:3s",
            "g711:calls=0",
            "g711:loud",
            "g711:packet=0ms",
            "exponential:on=1s,off=1s,rate=1kbit,size=1B,shape=2",
            "prcmt:2",
            "pareto:on=1s,off=1s,rate=1kbit,size=1B,shape=1",
            "pareto:on=1s",
            "gop:",
            "gop:IXP,30fps,I=1B",
            "gop:I,30fps",
            "gop:I,0fps,I=1B",
            "frames:/nowhere.csv,30fps",
            "frames:30fps",
            "conference:74B",
            "conference:audio=0B",
            "conference:gop:",
        ];
        for words in wrong {
            assert!(words.parse::<Traffic>().is_err(), "{words}");
        }
    }

    proptest! {
        #[test]
        fn no_word_makes_the_parser_panic_and_what_it_takes_can_be_run(
            name in "bulk|cbr|poisson|pareto|exponential|g711|speex|gop|prcmt|conference|\\PC{0,5}",
            rest in "|[0-9.]{1,9}(bit|mbit|B),[0-9]{1,8}(B|kB)|[IPB]{1,4},[0-9]{1,3}fps(,[IPB]=[0-9]{1,5}B(/[0-9]{1,5}kB)?){0,4}|\\PC{0,20}",
            seed: u64,
        ) {
            if let Ok(traffic) = format!("{name}:{rest}").parse::<Traffic>() {
                let emissions: Vec<_> = traffic.source(braidcast_core::Rng::from_seed(seed)).take(50).collect();
                prop_assert!(emissions.iter().all(|e| e.bytes > 0));
                prop_assert!(emissions.windows(2).all(|w| w[0].at <= w[1].at));
            }
        }
    }
}
