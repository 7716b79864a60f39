//! The values that flags take, and how they are written.

pub(crate) use super::listen::{Listen, Place, listen};
use super::media::{Direction, UdpMedia, udp};
use super::neighbour::{Neighbour, Scheme, Whereabouts, neighbour};
use super::rtmp::{Publish, publish};
use super::scheme;
use braidcast_dccp::Method;
use braidcast_mpath::SchedulerKind;
use braidcast_sctp::Algorithm;
use braidcast_secure::Fingerprint;
use braidcast_session::Redundancy;
use braidcast_session::tunnel::Class;
use braidcast_session::wire::check_name;
use braidcast_sim::link::parse;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The name of a scheduler; help lists them all.
pub(crate) fn scheduler() -> impl TypedValueParser<Value = SchedulerKind> {
    PossibleValuesParser::new(SchedulerKind::ALL.map(|(name, _)| name)).try_map(|name| name.parse::<SchedulerKind>())
}

/// The name of a congestion controller; help lists them all.
pub(crate) fn controller() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(|(name, _)| name)).try_map(|name| name.parse::<Algorithm>())
}

/// A send queue, or none: then the priorities of streams alone decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MaybeQueue(pub(crate) Option<Method>);

impl fmt::Display for MaybeQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(method) => method.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// A code, or none: what decides by itself needs to know a latency, which a measurement does not have.
pub(crate) fn fixed_redundancy(text: &str) -> Result<Redundancy, String> {
    match text.parse()? {
        Redundancy::Auto => Err("'auto' is for live streams; write for example tetrys:10,9,200, or none".into()),
        fixed => Ok(fixed),
    }
}

/// The name of a send queue, or `off`; help lists them all.
pub(crate) fn maybe_queue() -> impl TypedValueParser<Value = MaybeQueue> {
    let names = Method::ALL.map(|(name, _)| name).into_iter().chain(["off"]);
    let value = |name: String| if name == "off" { Ok(None) } else { name.parse::<Method>().map(Some) };
    PossibleValuesParser::new(names).try_map(move |name| value(name).map(MaybeQueue))
}

/// The name of a send queue; help lists them all.
pub(crate) fn queue() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(|(name, _)| name)).try_map(|name| name.parse::<Method>())
}

/// Parses a number of bytes: `1GB`, `500MB`, `64KiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let (number, unit) =
        UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes))).unwrap_or((text, 1));
    match number.trim_end().parse::<f64>() {
        Ok(n) if n.is_finite() && (1.0..=1e15).contains(&(n * unit as f64)) => Ok((n * unit as f64).round() as u64),
        _ => Err(format!("'{text}' is not a size: write for example 1GB, 500MB or 64KiB")),
    }
}

/// What carries a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// One path.
    Dccp,
    /// As many as there are.
    Sctp,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dccp => "dccp",
            Self::Sctp => "sctp",
        })
    }
}

/// The name of what carries a tunnel; help lists them all.
pub(crate) fn over() -> impl TypedValueParser<Value = Over> {
    let all = [Over::Dccp, Over::Sctp];
    PossibleValuesParser::new(["dccp", "sctp"])
        .map(move |name| all.into_iter().find(|it| it.to_string() == name).unwrap_or(Over::Dccp))
}

/// How long what a port sends is of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deadline {
    /// UDP port, here or where datagrams are forwarded to.
    pub(crate) port: u16,
    /// From application to application.
    pub(crate) time: Duration,
}

/// `PORT=TIME`.
pub(crate) fn deadline(text: &str) -> Result<Deadline, String> {
    let wrong = || format!("'{text}' is not a deadline: write for example 5004=200ms");
    let (port, time) = text.trim().split_once('=').ok_or_else(wrong)?;
    let port = port.trim().parse().map_err(|_| wrong())?;
    Ok(Deadline { port, time: lifetime(time.trim())? })
}

/// Source of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// UDP datagrams that reach this address.
    Udp(UdpMedia),
    /// A neighbour that sends.
    Neighbour(Box<Neighbour>),
}

/// Destination of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// A file, made anew.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// UDP datagrams to this address.
    Udp(UdpMedia),
    /// A neighbour that takes it.
    Neighbour(Box<Neighbour>),
    /// A server that it is published to by RTMP.
    Publish(Box<Publish>),
}

/// A stream that is taken by its name, and where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Accept {
    /// As `send --name` has it.
    pub(crate) name: String,
    /// Its destination.
    pub(crate) output: Output,
}

/// A host, by name or address, and a port; not resolved yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Remote {
    /// Name or address, without brackets.
    pub(crate) host: String,
    /// UDP port, not 0.
    pub(crate) port: u16,
}

/// A local port of a tunnel that applications send to, and what was said of its flows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entrance {
    /// Its address, if one was given.
    pub(crate) addr: Option<IpAddr>,
    /// UDP port.
    pub(crate) port: u16,
    /// How what comes in here waits.
    pub(crate) class: Class,
}

/// Exit of a tunnel: the application that flows go on to, and how its answers wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Exit {
    /// Address of the applications.
    pub(crate) to: Remote,
    /// How what comes back from there waits.
    pub(crate) class: Class,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdin => write!(f, "stdin"),
            Self::Udp(media) => write!(f, "{media}"),
            Self::Neighbour(neighbour) => write!(f, "{neighbour}"),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdout => write!(f, "stdout"),
            Self::Udp(media) => write!(f, "{media}"),
            Self::Neighbour(neighbour) => write!(f, "{neighbour}"),
            Self::Publish(publish) => write!(f, "{publish}"),
        }
    }
}

/// `HOST:PORT`, `ADDR:PORT` or `[ADDR]:PORT`.
pub(crate) fn remote(text: &str) -> Result<Remote, String> {
    let (host, port) =
        text.rsplit_once(':').ok_or("a port is missing: write HOST:PORT, for example home.example:9000")?;
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    if host.is_empty() {
        return Err("a host is missing: write HOST:PORT, for example home.example:9000".into());
    }
    if bare.is_none() {
        scheme::check_host(host, port)?;
    }
    Ok(Remote { host: host.into(), port: self::port(port)? })
}

/// How often statistics are written, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stats {
    pub(crate) each: Duration,
    pub(crate) target: StatsTarget,
}

/// Destination of statistics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StatsTarget {
    Stdout,
    File(PathBuf),
}

impl fmt::Display for StatsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("stdout"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// `TIME`, `TIME,-` or `TIME,FILE`.
pub(crate) fn stats(text: &str) -> Result<Stats, String> {
    let (each, file) = text.split_once(',').map_or((text, "-"), |(each, file)| (each, file.trim()));
    let each = parse::duration(each.trim()).map_err(|error| error.to_string())?;
    if each < Duration::from_millis(50) || each > Duration::from_secs(3600) {
        return Err("statistics come every 50ms to 1h: write for example 1s".into());
    }
    let target = match file {
        "" => return Err(format!("'{text}' names no file behind the comma: write 1s, or 1s,FILE")),
        "-" => StatsTarget::Stdout,
        file => StatsTarget::File(file.into()),
    };
    Ok(Stats { each, target })
}

/// Parses the destination of lines of JSON: `-` or a file.
pub(crate) fn stats_target(text: &str) -> Result<StatsTarget, String> {
    match text.trim() {
        "" => Err("give a file, or - for stdout".into()),
        "-" => Ok(StatsTarget::Stdout),
        file => Ok(StatsTarget::File(file.into())),
    }
}

/// `PORT` of this machine alone, or `ADDR:PORT`.
pub(crate) fn serve_at(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return Ok((Ipv4Addr::LOCALHOST, port(text)?).into());
    }
    text.parse().map_err(|_| {
        format!("'{text}' is neither PORT nor ADDR:PORT: write 8080 for this machine alone, 0.0.0.0:8080 for everybody")
    })
}

/// `PORT`, `:PORT` or `ADDR:PORT`, perhaps with a class.
pub(crate) fn entrance(text: &str) -> Result<Entrance, String> {
    let (at, class) = with_class(text)?;
    let Listen(all) = listen(at)?;
    let [Place { addr, port, zone: None }] = all[..] else { return Err(format!("'{at}' is not one port")) };
    Ok(Entrance { addr, port, class })
}

/// `HOST:PORT`, perhaps with a class.
pub(crate) fn exit(text: &str) -> Result<Exit, String> {
    let (to, class) = with_class(text)?;
    Ok(Exit { to: remote(to)?, class })
}

/// Splits off what is said of flows behind slashes: a kind, or a priority; a lifetime.
fn with_class(text: &str) -> Result<(&str, Class), String> {
    let mut words = text.trim().split('/');
    let at = words.next().unwrap_or_default();
    let (mut class, mut lifetime) = (Class::default(), None);
    for word in words {
        let twice = if let Some(kind) = Class::named(word) {
            let twice = class.priority.is_some();
            class = kind;
            twice
        } else if word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(|c: char| c.is_ascii_alphabetic()) {
            lifetime.replace(self::lifetime(word)?).is_some()
        } else if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
            class.priority.replace(word.parse()?).is_some()
        } else {
            return Err(format!(
                "'{word}' says nothing of a flow: write /audio or /video, or a priority from /0 (first) to /7, and \
                 perhaps a lifetime: {at}/audio/150ms"
            ));
        };
        if twice {
            return Err(format!("'{text}' has two kinds, priorities or lifetimes: give one of each"));
        }
    }
    class.lifetime = lifetime.or(class.lifetime);
    Ok((at, class))
}

/// How long something is of use: more than no time.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    match parse::duration(text) {
        Ok(time) if time.is_zero() => Err(format!("a lifetime of {text} is over at once: write for example 150ms")),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// How long a session waits for networks that do not answer; `None`: for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Patience(pub(crate) Option<Duration>);

/// `never`, or a time.
pub(crate) fn patience(text: &str) -> Result<Patience, String> {
    match text {
        "never" => Ok(Patience(None)),
        _ => match parse::duration(text) {
            Ok(time) if time < Duration::from_secs(1) => {
                Err(format!("after {text} any network would count as lost: write 1s or more, or never"))
            }
            Ok(time) => Ok(Patience(Some(time))),
            Err(error) => Err(format!("{error}, or never")),
        },
    }
}

/// A UDP port that a datagram can be sent to.
fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(not_a_port(text, 1)),
    }
}

pub(super) fn not_a_port(text: &str, least: u16) -> String {
    format!("'{text}' is not a port: ports are {least} to 65535")
}

/// Parses the address of another end: [`remote`], unless the address is one that no single machine
/// has.
pub(crate) fn peer(text: &str) -> Result<Remote, String> {
    let remote = remote(text)?;
    let what = match remote.host.parse::<IpAddr>() {
        Ok(addr) if addr.is_unspecified() => "means every address of a machine, not one to send to",
        Ok(addr) if addr.is_multicast() => "is a multicast group",
        Ok(IpAddr::V4(addr)) if addr.is_broadcast() => "is the broadcast address",
        _ => return Ok(remote),
    };
    Err(format!("{} {what}: write the address of the other end, for example home.example:9000", remote.host))
}

/// How long after its capture a frame is still worth showing. Less than 10 ms is below what reading an input takes; a
/// minute of a 20 Mbit/s stream is 150 MB that both ends have to hold.
pub(crate) fn latency(text: &str) -> Result<Duration, String> {
    const RANGE: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60);
    match parse::duration(text) {
        Ok(time) if RANGE.contains(&time) => Ok(time),
        Ok(_) => Err(
            "a latency is 10ms to 60s: no network keeps to less than 10ms, and both ends hold a stream for as long \
             as it is; --reliable has no limit"
                .into(),
        ),
        Err(_) if text.starts_with('-') => Err("a latency is 10ms to 60s, and not below 0".into()),
        Err(_) if text.parse() == Ok(0) => Err("a latency is 10ms to 60s: no network keeps to less than 10ms".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The slices in which what comes is read and what is due handed out. Longer ones are what nobody
/// waits for without noticing.
pub(crate) fn slice(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_millis(20);
    match parse::duration(text) {
        _ if text == "0" => Ok(Duration::ZERO),
        Ok(time) if time <= LONGEST => Ok(time),
        Ok(_) => Err("a slice is 20ms at most; 0 turns slices off".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// `FILE`, `-`, `udp://HOST:PORT`, `srt://HOST:PORT` or `rist://:PORT`.
pub(crate) fn input(text: &str) -> Result<Input, String> {
    if let Some(neighbour) = neighbour(text) {
        return neighbour.and_then(Neighbour::sending)?.nameless().map(Input::Neighbour);
    }
    match (text, udp(text, Direction::In)) {
        ("-", _) => Ok(Input::Stdin),
        (_, Some(address)) => address.map(Input::Udp),
        _ => scheme::check_media(text).map(|()| Input::File(text.into())),
    }
}

/// `FILE`, `-`, `udp://HOST:PORT`, `srt://HOST:PORT`, `rist://HOST:PORT` or `rtmp://HOST/APP/KEY`.
pub(crate) fn output(text: &str) -> Result<Output, String> {
    if let Some(publish) = publish(text) {
        return publish.map(Box::new).map(Output::Publish);
    }
    if let Some(neighbour) = neighbour(text) {
        return match neighbour? {
            Neighbour { scheme: Scheme::Srtla, .. } => Err("srtla:// is for inputs: write srt://HOST:PORT".into()),
            Neighbour { scheme: Scheme::Rist, at: Whereabouts::Listen(..), .. } => {
                Err("an output by RIST calls its receiver: write rist://HOST:PORT".into())
            }
            neighbour => neighbour.nameless().map(Output::Neighbour),
        };
    }
    match (text, udp(text, Direction::Out)) {
        ("-", _) => Ok(Output::Stdout),
        (_, Some(address)) => address.map(Output::Udp),
        _ => scheme::check_media(text).map(|()| Output::File(text.into())),
    }
}

/// Parses the seed of random choices.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a seed: write a whole number from 0 to {}", u64::MAX))
}

/// The name of a stream.
pub(crate) fn name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

/// Of a public key, as `braidcast key identity` and summaries print it.
pub(crate) fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    text.parse()
        .map_err(|()| "a fingerprint has 64 hexadecimal digits; `braidcast key identity FILE` prints it".to_owned())
}

/// Of a ticket that lasts: it names a file.
pub(crate) fn ticket_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if (1..=32).contains(&text.len()) && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err("a ticket's name has 1 to 32 letters, digits, - and _: write for example cam1".into())
}

/// The same, or nothing.
pub(crate) fn maybe_ticket(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { ticket_name(text) }
}

/// A day.
pub(crate) fn date(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| format!("'{text}' is not a date; write it as 2027-01-31"))
}

/// What a passphrase is for.
pub(crate) fn key_name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.len()) && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err("a name has 1 to 64 bytes, for example studio-4".to_owned()) }
}

/// `NAME=OUTPUT`.
pub(crate) fn accept(text: &str) -> Result<Accept, String> {
    let (name, to) =
        text.split_once('=').ok_or("write NAME=OUTPUT, for example cam1=cam1.ts or cam2=udp://127.0.0.1:5000")?;
    Ok(Accept { name: self::name(name)?, output: output(to)? })
}

/// How long a file of a recording is: a second or more.
pub(crate) fn segment(text: &str) -> Result<Duration, String> {
    match parse::duration(text) {
        Ok(time) if time < Duration::from_secs(1) => {
            Err(format!("{text} is too short for a file: write for example 10min"))
        }
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_brackets_are_told_apart() {
        let show = |text| remote(text).map(|r| r.to_string());
        assert_eq!(show("home.example:9000"), Ok("home.example:9000".into()));
        assert_eq!(show("[::1]:9000"), Ok("[::1]:9000".into()));
        assert!(show("::1:9000").unwrap_err().contains("[::1]:9000"));
        assert!(show("home.example").unwrap_err().contains("port is missing"));
        assert!(show("home.example:0").unwrap_err().contains("1 to 65535"));
        assert!(show(":9000").unwrap_err().contains("host is missing"));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            [size("1GB"), size("64KiB"), size("1.5kB"), size("7")],
            [Ok(1_000_000_000), Ok(65_536), Ok(1500), Ok(7)]
        );
        assert!(size("lots").is_err() && size("-1B").is_err() && size("0").is_err() && size("NaN").is_err());
    }

    #[test]
    fn what_is_said_of_flows_stands_behind_slashes() {
        let said = |text| {
            entrance(text)
                .map(|it| (it.port, it.class.priority.map(|it| it.get()), it.class.lifetime.map(|it| it.as_millis())))
        };
        assert_eq!(said("5004"), Ok((5004, None, None)));
        assert_eq!(said("5004/audio"), Ok((5004, Some(0), Some(200))));
        assert_eq!(said("[::1]:5006/video/1.5s"), Ok((5006, Some(1), Some(1500))));
        assert_eq!(said("5006/7"), Ok((5006, Some(7), None)));
        assert_eq!(said("5006/90ms/3"), Ok((5006, Some(3), Some(90))));
        assert!(said("5006/8").unwrap_err().contains("8 is not a priority; use 0 (first) to 7"));
        assert!(said("5006/300").unwrap_err().contains("'300' is not a priority"));
        assert!(said("5006/-20ms").unwrap_err().contains("'-20ms' says nothing"));
        assert!(said("5006/0ms").unwrap_err().contains("over at once"));
        assert!(said("5006/5lightyears").unwrap_err().contains("unit"));
        assert!(said("5006/loud").unwrap_err().contains("5006/audio/150ms"));
        assert!(said("5006/").unwrap_err().contains("says nothing"));
        assert!(said("5006/audio/1").unwrap_err().contains("one of each"));
        let out = exit("there.example:5004/audio").unwrap();
        assert_eq!((out.to.to_string(), out.class), ("there.example:5004".into(), Class::named("audio").unwrap()));
    }

    #[test]
    fn an_address_that_no_machine_has_is_no_other_end() {
        for (text, why) in [
            ("255.255.255.255:9000", "broadcast"),
            ("0.0.0.0:9000", "every address"),
            ("[::]:9000", "every address"),
            ("239.1.1.1:9000", "multicast"),
        ] {
            assert!(peer(text).unwrap_err().contains(why), "{text}");
        }
        assert_eq!(peer("127.0.0.1:9000").unwrap().to_string(), "127.0.0.1:9000");
    }

    #[test]
    fn a_latency_has_limits_and_says_why() {
        assert_eq!([latency("10ms"), latency("1min")], [Ok(Duration::from_millis(10)), Ok(Duration::from_secs(60))]);
        for text in ["0", "0ms", "9ms", "61s", "10h"] {
            assert!(latency(text).unwrap_err().contains("10ms to 60s"), "{text}");
        }
        assert!(latency("-5ms").unwrap_err().contains("not below 0"));
        assert!(latency("500").unwrap_err().contains("15ms"));
    }

    #[test]
    fn an_address_of_another_kind_is_not_taken_for_a_file() {
        assert_eq!(input("-"), Ok(Input::Stdin));
        assert_eq!(input("a:b.ts"), Ok(Input::File("a:b.ts".into())));
        assert_eq!(input("udp://@:5000?pkt_size=1316").map(|i| i.to_string()), Ok("udp://0.0.0.0:5000".into()));
        assert!(input("rtmp://host/app").unwrap_err().contains("rtmp:// is an OUTPUT of `receive`"));
        assert_eq!(input("srt://host:9000").map(|i| i.to_string()), Ok("srt://host:9000".into()));
        assert!(output("udp://host").unwrap_err().contains("port is missing"));
    }
}
